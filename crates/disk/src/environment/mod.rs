//! Which services of the system do the store, its segments and the online index use?
//!
//! Files, the clock and background work are behind one value, so that tests can simulate a disk, a clock and a
//! scheduler. Production code uses the [default](Environment::default) environment.
//!
//! It also holds the name of SQLite's virtual file system, so one simulated disk can serve both SQLite and the
//! segments.

mod files;
mod mapping;

use std::fmt::Debug;
use std::io;
use std::sync::Arc;
use std::thread::{Builder, JoinHandle, park_timeout};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

pub(crate) use mapping::Fault;

pub use files::{Entry, Facts, FileLock, Files, OpenFile, PlainFiles, SegmentFile, Stamp};

#[cfg(unix)]
pub use kept::process_id;
#[cfg(not(unix))]
pub use std::process::id as process_id;

/// The services of the system that the store, its segments and the online index use.
#[derive(Debug, Clone)]
pub struct Environment {
    /// Every file except those that SQLite opens.
    pub files: Arc<dyn Files>,
    /// The name of the registered SQLite VFS that opens the database; `None` for the system's VFS.
    pub vfs: Option<String>,
    pub clock: Arc<dyn Clock>,
    pub background: Arc<dyn Background>,
}

impl Default for Environment {
    /// Returns the files, the clock and the threads of the system.
    fn default() -> Self {
        Environment {
            files: Arc::new(PlainFiles),
            vfs: None,
            clock: Arc::new(SystemClock),
            background: Arc::new(Threads),
        }
    }
}

pub trait Background: Debug + Send + Sync {
    fn spawn(&self, name: &str, work: Box<dyn FnOnce() + Send>) -> io::Result<Box<dyn Task>>;

    /// Waits for this long, or until [`Task::wake`] wakes the calling task. It may return earlier.
    fn pause(&self, time: Duration);
}

pub trait Task: Debug + Send {
    fn is_finished(&self) -> bool;

    /// Ends its [pause](Background::pause).
    fn wake(&self);

    /// Waits until it has ended. A panic of the task is not passed on.
    fn join(self: Box<Self>);
}

/// A thread of the system for each task.
#[derive(Debug, Clone, Copy, Default)]
pub struct Threads;

impl Background for Threads {
    fn spawn(&self, name: &str, work: Box<dyn FnOnce() + Send>) -> io::Result<Box<dyn Task>> {
        let thread = Builder::new().name(name.to_owned()).spawn(work)?;
        Ok(Box::new(thread))
    }

    fn pause(&self, time: Duration) {
        park_timeout(time);
    }
}

impl Task for JoinHandle<()> {
    fn is_finished(&self) -> bool {
        JoinHandle::is_finished(self)
    }

    fn wake(&self) {
        self.thread().unpark();
    }

    fn join(self: Box<Self>) {
        drop(JoinHandle::join(*self));
    }
}

pub trait Clock: Debug + Send + Sync {
    /// Returns seconds since 1970. This clock can be set, so it may jump in either direction.
    fn unix_s(&self) -> u64;

    /// Returns how long the machine has been running. This clock cannot be set.
    fn uptime(&self) -> Uptime;
}

/// How long the machine has been running.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Uptime {
    /// Identity of the boot: times of different boots cannot be compared.
    pub boot_id: u128,
    /// Time since the boot, which may include time asleep.
    pub elapsed: Duration,
}

/// The clocks of the system: on Linux since the boot, suspended time included, elsewhere since the process first asked.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    fn unix_s(&self) -> u64 {
        SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .map_or(0, |time| time.as_secs())
    }

    fn uptime(&self) -> Uptime {
        system::uptime()
    }
}

#[cfg(target_os = "linux")]
mod system {
    use std::fs;
    use std::sync::OnceLock;
    use std::time::Duration;

    use rustix::time::{ClockId, clock_gettime};

    use super::Uptime;

    pub(super) fn uptime() -> Uptime {
        static BOOT_ID: OnceLock<u128> = OnceLock::new();
        let time = clock_gettime(ClockId::Boottime);
        Uptime {
            boot_id: *BOOT_ID.get_or_init(|| boot_id().unwrap_or_else(super::random_id)),
            elapsed: Duration::new(time.tv_sec as u64, time.tv_nsec as u32),
        }
    }

    fn boot_id() -> Option<u128> {
        let text = fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?;
        u128::from_str_radix(&text.trim().replace('-', ""), 16).ok()
    }
}

#[cfg(not(target_os = "linux"))]
mod system {
    use std::sync::OnceLock;
    use std::time::Instant;

    use super::Uptime;

    pub(super) fn uptime() -> Uptime {
        static START: OnceLock<(u128, Instant)> = OnceLock::new();
        let (boot_id, start) = START.get_or_init(|| (super::random_id(), Instant::now()));
        Uptime {
            boot_id: *boot_id,
            elapsed: start.elapsed(),
        }
    }
}

/// Returns an id for a process that cannot know the id of the boot.
fn random_id() -> u128 {
    use std::hash::{BuildHasher, RandomState};

    // Each hasher of the standard library has new random keys.
    let half = |number: u8| u128::from(RandomState::new().hash_one(number));
    half(0) << 64 | half(1)
}

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_uptime_advances_under_one_boot_id() {
        let (first, second) = (SystemClock.uptime(), SystemClock.uptime());
        assert_eq!(first.boot_id, second.boot_id);
        assert!(first.elapsed <= second.elapsed);
        assert!(SystemClock.unix_s() > 1_700_000_000);
    }
}
