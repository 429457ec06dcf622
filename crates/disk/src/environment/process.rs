//! Which process is this?
//!
//! Every call of an index asks, since a forked process must not use what its parent opened. Asking the system takes a
//! tenth of the time of a small check, so the answer is cached, and the cache is cleared in the child of each fork.

#[cfg(unix)]
pub use kept::process_id;
#[cfg(not(unix))]
pub use std::process::id as process_id;

#[cfg(unix)]
mod kept {
    use std::process;
    use std::sync::Mutex;
    use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

    /// The number of the process; 0, which no process has, means unknown.
    static KNOWN: AtomicU32 = AtomicU32::new(0);

    extern "C" fn forget() {
        KNOWN.store(0, Ordering::Relaxed);
    }

    pub fn process_id() -> u32 {
        match KNOWN.load(Ordering::Relaxed) {
            0 => asked(),
            known => known,
        }
    }

    #[cold]
    fn asked() -> u32 {
        let id = process::id();
        if forgets_in_children() {
            KNOWN.store(id, Ordering::Relaxed);
        }
        id
    }

    /// Arranges for the cache to be cleared in forked children, if the system supports it.
    fn forgets_in_children() -> bool {
        static IS_DONE: AtomicBool = AtomicBool::new(false);
        static ONCE: Mutex<()> = Mutex::new(());
        if IS_DONE.load(Ordering::Acquire) {
            return true;
        }
        let Ok(_alone) = ONCE.try_lock() else {
            // Another thread is doing it, or was doing it when this process was forked; in that case it is never done
            // here.
            return false;
        };
        if !IS_DONE.load(Ordering::Acquire) {
            // SAFETY: the function only stores a number, which is allowed in the child of a process with threads.
            let failed = unsafe { libc::pthread_atfork(None, None, Some(forget)) } != 0;
            IS_DONE.store(!failed, Ordering::Release);
        }
        IS_DONE.load(Ordering::Acquire)
    }
}
