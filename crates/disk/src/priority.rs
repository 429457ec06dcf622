//! Who goes first where threads want the same core?

/// Niceness of a thread that can wait: beside busy ones it gets a tenth of a core, and all that is idle.
#[cfg(target_os = "linux")]
const NICENESS: i32 = 10;

/// Runs `work` on a thread of its own that lets others go first, and waits for it; a panic goes on here.
///
/// The caller's priority stays as it is, so that it may take locks afterwards: whoever held one at a low priority would hold up all who wait
/// for it, and a priority once lowered cannot be raised again. Linux alone has a priority for each thread; elsewhere, and where there is no
/// room for a thread, `work` runs at that of the process.
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

/// Lowers the priority of this thread; one that is low already stays.
#[cfg(target_os = "linux")]
fn lower() {
    // Of no process it is this thread. What is refused costs speed only.
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
