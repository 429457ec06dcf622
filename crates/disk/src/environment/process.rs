//! Which process is this?
//!
//! Every call of an index asks, since a forked process must not use what its parent opened. To ask the system takes as long as a tenth of a small check, so the
//! answer is kept, and forgotten in the child of each fork.

#[cfg(unix)]
pub use kept::process_id;
#[cfg(not(unix))]
pub use std::process::id as process_id;

#[cfg(unix)]
mod kept {
    use std::process;
    use std::sync::Mutex;
    use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

    /// The number of the process; 0 where it is to be asked for, which no process has.
    static KNOWN: AtomicU32 = AtomicU32::new(0);

    extern "C" fn forget() {
        KNOWN.store(0, Ordering::Relaxed);
    }

    /// The number of this process.
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

    /// Has the number forgotten in children from now on, if the system can.
    fn forgets_in_children() -> bool {
        static IS_DONE: AtomicBool = AtomicBool::new(false);
        static ONCE: Mutex<()> = Mutex::new(());
        if IS_DONE.load(Ordering::Acquire) {
            return true;
        }
        let Ok(_alone) = ONCE.try_lock() else {
            // Another thread does it; or one did when this process was forked, and then it is never done here.
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
