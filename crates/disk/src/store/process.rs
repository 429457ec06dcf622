//! May this process open a database?
//!
//! What the library knows of the locks on a file it knows once a process, and a fork copies that: the child believes to hold what its parent holds, takes
//! no locks of its own, and would wait for ever for a mutex that a thread held which it has not. So who was forked while something was open opens nothing.

use std::process;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::error::Error;

/// The process that opened connections last, and below it how many of them are open.
static OPEN: AtomicU64 = AtomicU64::new(0);

fn of(state: u64) -> (u32, u32) {
    ((state >> 32) as u32, state as u32)
}

/// The state once one connection more is open in a process; nothing where it inherited open ones.
fn one_more(state: u64, process: u32) -> Option<u64> {
    match of(state) {
        (owner, _) if owner == process => Some(state + 1),
        (_, 0) => Some((u64::from(process) << 32) + 1),
        _ => None,
    }
}

/// The state once one connection less is open: what was inherited stays, whoever lets go of it.
fn one_less(state: u64, process: u32) -> u64 {
    match of(state) {
        (owner, num) if owner == process && num > 0 => state - 1,
        _ => state,
    }
}

/// Stands for a connection: made before it is opened, dropped after it is closed.
#[derive(Debug)]
pub(super) struct OpenMark;

impl OpenMark {
    /// # Errors
    /// [`Error::Forked`].
    pub(super) fn new() -> Result<Self, Error> {
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
        // Letting go of what was inherited changes nothing: it is open in the parent.
        assert_eq!(one_less(two, child), two);
        let none = one_less(one_less(two, parent), parent);
        assert_eq!(of(none), (parent, 0));
        assert_eq!(one_less(none, parent), none);
        assert_eq!(one_more(none, child).map(of), Some((child, 1)));
        assert_eq!(one_more(none, parent).map(of), Some((parent, 1)));
    }
}
