//! How many results may one call hold?
//!
//! Pieces of a range are searched on several threads, and nobody knows beforehand how much each will find. So they share a
//! count: once it is reached no further piece begins, and what lies behind the first piece that is not whole is dropped.

use std::sync::atomic::{AtomicUsize, Ordering};

/// A bound that the pieces of one call share.
pub struct Bound {
    max: usize,
    a_piece: usize,
    found: AtomicUsize,
}

impl Bound {
    /// At most about twice `max` results are held at once, on any number of threads.
    pub fn new(max: usize, threads: usize) -> Self {
        Bound {
            max,
            a_piece: (max / threads.max(1)).max(1),
            found: AtomicUsize::new(0),
        }
    }

    /// What one piece may find before it stops at the end of a position.
    pub fn a_piece(&self) -> usize {
        self.a_piece
    }

    /// Whether the piece that starts there should not begin. The first one always does, whoever was faster.
    pub fn is_reached(&self, start: usize) -> bool {
        start > 0 && self.found.load(Ordering::Relaxed) >= self.max
    }

    /// Counts what a piece found.
    pub fn add(&self, num: usize) {
        self.found.fetch_add(num, Ordering::Relaxed);
    }
}

/// The pieces up to the first that did not come to its own end, that one included.
///
/// Each piece is what it found, where it stopped, and where it should have; `None` was not begun.
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
