//! How is a lock taken whose holder may have panicked?

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Takes a lock, also after a panic of its holder, since single assignments leave values whole.
pub fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
