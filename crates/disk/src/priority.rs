//! Which thread has priority if several compete for a core?

/// Niceness of a thread that can wait: it gets a tenth of a core in competition with busy threads, and any idle core.
#[cfg(target_os = "linux")]
const NICENESS: i32 = 10;

/// Runs `work` on a separate thread with low priority (on Linux), and waits for it; a panic is propagated. The caller
/// keeps its priority, which could not be raised again, and would delay others if it holds a lock.
pub fn at_low_priority<T: Send>(name: &str, work: impl Fn() -> T + Sync) -> T {
    std::thread::scope(|scope| {
        let lowered = || {
            lower();
            work()
        };
        let thread = std::thread::Builder::new()
            .name(name.to_owned())
            .spawn_scoped(scope, lowered);
        match thread.map(std::thread::ScopedJoinHandle::join) {
            Ok(Ok(done)) => done,
            Ok(Err(panic)) => std::panic::resume_unwind(panic),
            Err(_) => work(),
        }
    })
}

/// Lowers the priority of this thread, unless it is already low.
#[cfg(target_os = "linux")]
fn lower() {
    // `None` means this thread. A failure only costs speed.
    if rustix::process::getpriority_process(None).is_ok_and(|niceness| niceness < NICENESS) {
        let _ = rustix::process::setpriority_process(None, NICENESS);
    }
}

#[cfg(not(target_os = "linux"))]
fn lower() {}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(target_os = "linux")]
    #[test]
    fn the_thread_is_nicer_and_the_caller_stays_as_it_is() {
        let niceness = || rustix::process::getpriority_process(None).unwrap();
        let before = niceness();
        assert_eq!(at_low_priority("low", niceness), before.max(NICENESS));
        assert_eq!(niceness(), before);
    }

    #[test]
    #[should_panic(expected = "as it was")]
    fn a_panic_goes_on_in_the_caller() {
        at_low_priority("low", || panic!("as it was"));
    }
}
