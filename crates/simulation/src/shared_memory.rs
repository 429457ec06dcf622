//! What do the connections of one database share in memory?

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Locks of the shared memory.
pub const NUM_LOCKS: usize = 8;

/// The shared memory of a database that is open.
#[derive(Debug, Default)]
pub struct SharedMemory(Mutex<Shared>);

/// Its present contents.
#[derive(Debug, Default)]
pub struct Shared {
    /// Regions of equal size, in order.
    pub regions: Vec<Box<[u64]>>,
    /// How many handles share each lock; -1 where one has it alone.
    pub locks: [i32; NUM_LOCKS],
    /// Handles that have it mapped.
    pub num_users: usize,
}

impl SharedMemory {
    /// The present contents, to look at and to change.
    pub fn state(&self) -> MutexGuard<'_, Shared> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
