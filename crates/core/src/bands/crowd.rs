//! Which documents met a full bucket?

use std::sync::atomic::{AtomicU64, Ordering};

/// Positions that met a full first-level bucket in some band. Two of them are not compared through their bands, unless
/// one is among the first [`BUCKET_SIZE`](super::BUCKET_SIZE) members of a bucket.
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

    pub fn positions(&self) -> Vec<u32> {
        let mut found = Vec::new();
        for (number, word) in self.words.iter().enumerate() {
            super::position_set::push_bits(number as u32, word.load(Ordering::Relaxed), &mut found);
        }
        found
    }
}
