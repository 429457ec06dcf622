//! Which services of the system do the store, its segments and the online index use?
//!
//! Files, the clock and background work are behind one value, so that tests can simulate a disk, a clock and a
//! scheduler. Production code uses the [default](Environment::default) environment.
//!
//! It also holds the name of SQLite's virtual file system, so one simulated disk can serve both SQLite and the
//! segments.

mod background;
mod clock;
mod files;
mod mapping;
mod process;

use std::sync::Arc;

pub use background::{Background, Task, Threads};
pub use clock::{Clock, SystemClock, Uptime};
pub use files::{Entry, Facts, FileLock, Files, OpenFile, PlainFiles, SegmentFile, Stamp};
pub(crate) use mapping::Fault;
pub use process::process_id;

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
