//! Which documents met a full bucket?

use std::sync::atomic::{AtomicU64, Ordering};

/// Positions that met a full first-level bucket in some band, one bit each; filled by several threads. Two documents
/// that share a band key are compared through their bands unless both are here: the first
/// [`BUCKET_SIZE`](super::BUCKET_SIZE) members of a bucket are compared with every later document.
#[derive(Debug)]
pub struct Crowd {
    words: Vec<AtomicU64>,
}

impl Crowd {
    /// Creates an empty set for `num_positions` positions.
    pub fn new(num_positions: usize) -> Self {
        Crowd {
            words: (0..num_positions.div_ceil(64))
                .map(|_| AtomicU64::new(0))
                .collect(),
        }
    }

    pub(super) fn insert(&self, position: u32) {
        let word = &self.words[position as usize / 64];
        word.fetch_or(1 << (position % 64), Ordering::Relaxed);
    }

    /// Returns the positions, ascending.
    pub fn positions(&self) -> Vec<u32> {
        let mut found = Vec::new();
        for (number, word) in self.words.iter().enumerate() {
            super::position_set::push_bits(number as u32, word.load(Ordering::Relaxed), &mut found);
        }
        found
    }
}
