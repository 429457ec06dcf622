//! How is a lock taken whose holder may have panicked?

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Takes a lock. Whoever panicked while holding it left what it guards whole: it is changed by single assignments and inserts, and the truth is
/// elsewhere.
pub fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
