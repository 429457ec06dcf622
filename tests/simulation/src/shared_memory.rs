//! Which memory do the connections of one database share?

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Locks of the shared memory.
pub const NUM_LOCKS: usize = 8;

/// The shared memory of an open database.
#[derive(Debug, Default)]
pub struct SharedMemory(Mutex<Shared>);

/// Its current contents.
#[derive(Debug, Default)]
pub struct Shared {
    /// Regions of equal size, in order.
    pub regions: Vec<Box<[u64]>>,
    /// How many handles share each lock; -1 if one handle has it exclusively.
    pub locks: [i32; NUM_LOCKS],
    /// Number of handles that have it mapped.
    pub num_users: usize,
}

impl SharedMemory {
    /// Locks the current contents for reading and writing.
    pub fn state(&self) -> MutexGuard<'_, Shared> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
