//! May this process open a database?
//!
//! SQLite tracks its locks on a file per process, and a fork copies that state: the child believes that it holds its
//! parent's locks, takes none itself, and would wait forever for a mutex held by a thread that does not exist in the
//! child. So a process that was forked while a connection was open cannot open any.

use std::process;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::error::{Error, Result};

/// The process that last opened connections and, in the low bits, how many of them are open.
static OPEN: AtomicU64 = AtomicU64::new(0);

fn of(state: u64) -> (u32, u32) {
    ((state >> 32) as u32, state as u32)
}

/// Returns the state after one more connection is opened in a process, or `None` if it inherited open ones.
fn one_more(state: u64, process: u32) -> Option<u64> {
    match of(state) {
        (owner, _) if owner == process => Some(state + 1),
        (_, 0) => Some((u64::from(process) << 32) + 1),
        _ => None,
    }
}

/// Returns the state after one connection is closed. Inherited connections remain counted after a process closes them.
fn one_less(state: u64, process: u32) -> u64 {
    match of(state) {
        (owner, num) if owner == process && num > 0 => state - 1,
        _ => state,
    }
}

/// Represents a connection: created before it is opened, dropped after it is closed.
#[derive(Debug)]
pub(super) struct OpenMark;

impl OpenMark {
    /// Returns [`Error::Forked`] if the process inherited open connections.
    pub(super) fn new() -> Result<Self> {
        let process = process::id();
        OPEN.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |state| {
            one_more(state, process)
        })
        .map(|_| OpenMark)
        .map_err(|_| Error::Forked)
    }
}

impl Drop for OpenMark {
    fn drop(&mut self) {
        let process = process::id();
        let _ = OPEN.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |state| {
            Some(one_less(state, process))
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_child_opens_what_it_likes_unless_its_parent_had_something_open() {
        let (parent, child) = (70, 71);
        let two = one_more(one_more(0, parent).unwrap(), parent).unwrap();
        assert_eq!(of(two), (parent, 2));
        assert_eq!(one_more(two, child), None);
        // Closing inherited connections changes nothing: they are open in the parent.
        assert_eq!(one_less(two, child), two);
        let none = one_less(one_less(two, parent), parent);
        assert_eq!(of(none), (parent, 0));
        assert_eq!(one_less(none, parent), none);
        assert_eq!(one_more(none, child).map(of), Some((child, 1)));
        assert_eq!(one_more(none, parent).map(of), Some((parent, 1)));
    }
}
