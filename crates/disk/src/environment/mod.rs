//! What do the store, its segments and the online index use of the system?
//!
//! Files, the clock and background work, behind one value, so that tests can simulate a disk, a clock and a scheduler.
//! Everything outside tests uses the [plain](Environment::default) environment.
//!
//! It also holds the name of SQLite's virtual file system, so one simulated disk serves SQLite and the segments alike.

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

/// What the store, its segments and the online index use of the system.
#[derive(Debug, Clone)]
pub struct Environment {
    /// Every file except those that SQLite opens.
    pub files: Arc<dyn Files>,
    /// The name of the registered SQLite VFS that opens the database; the system's where `None`.
    pub vfs: Option<String>,
    /// The time.
    pub clock: Arc<dyn Clock>,
    /// What runs next to the callers.
    pub background: Arc<dyn Background>,
}

impl Default for Environment {
    /// The files, the clock and the threads of the system.
    fn default() -> Self {
        Environment {
            files: Arc::new(PlainFiles),
            vfs: None,
            clock: Arc::new(SystemClock),
            background: Arc::new(Threads),
        }
    }
}
