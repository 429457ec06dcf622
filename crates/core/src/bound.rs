//! How many results may one call hold?
//!
//! Pieces of a range are searched on several threads, and how much each will find is unknown. So they share a count:
//! once the limit is reached, no further piece starts, and the results after the first incomplete piece are dropped.

use std::sync::atomic::{AtomicUsize, Ordering};

/// A limit that the pieces of one call share.
pub struct Bound {
    max: usize,
    a_piece: usize,
    found: AtomicUsize,
}

impl Bound {
    /// Allows at most about twice `max` results at once, on any number of threads.
    pub fn new(max: usize, threads: usize) -> Self {
        Bound {
            max,
            a_piece: (max / threads.max(1)).max(1),
            found: AtomicUsize::new(0),
        }
    }

    /// How much one piece may find before it stops at the end of a position.
    pub fn a_piece(&self) -> usize {
        self.a_piece
    }

    /// Whether the piece that starts there should not be started. The first piece always is, regardless of timing.
    pub fn is_reached(&self, start: usize) -> bool {
        start > 0 && self.found.load(Ordering::Relaxed) >= self.max
    }

    pub fn add(&self, num: usize) {
        self.found.fetch_add(num, Ordering::Relaxed);
    }
}

/// Returns the pieces up to the first that stopped early: its result, where it stopped, where it should have.
pub fn unbroken<T>(pieces: Vec<Option<(T, u32, u32)>>) -> Vec<(T, u32)> {
    let mut whole = Vec::with_capacity(pieces.len());
    for (found, end, asked) in pieces.into_iter().map_while(|piece| piece) {
        whole.push((found, end));
        if end < asked {
            break;
        }
    }
    whole
}
