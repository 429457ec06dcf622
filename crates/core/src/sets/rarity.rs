//! In how many documents does a feature occur, about?

use std::sync::atomic::{AtomicU8, AtomicU32, AtomicU64, Ordering};

use crate::prefetch::prefetch_read;

/// Counts of documents by feature, never too low, in byte cells: a quarter of the text's bytes, at most 64 MiB.
#[derive(Debug)]
pub struct Rarity {
    cells: Box<[AtomicU8]>,
    /// What cells that are full could not take, by other bits of the feature.
    beyond: Box<[AtomicU32]>,
}

const MIN_CELLS: u64 = 1 << 10;
const MAX_CELLS: u64 = 1 << 26;
const BYTES_OF_TEXT_PER_CELL: u64 = 4;
const CELLS_PER_BEYOND: usize = 64;
/// Features ahead for which memory is asked.
const LOOKAHEAD: usize = 16;

impl Rarity {
    /// No counts yet; sized for so many bytes of text.
    pub fn new(num_text_bytes: u64) -> Self {
        let num_cells = (num_text_bytes / BYTES_OF_TEXT_PER_CELL)
            .clamp(MIN_CELLS, MAX_CELLS)
            .next_power_of_two() as usize;
        Rarity {
            cells: (0..num_cells).map(|_| AtomicU8::new(0)).collect(),
            beyond: (0..num_cells / CELLS_PER_BEYOND)
                .map(|_| AtomicU32::new(0))
                .collect(),
        }
    }

    /// Counts the distinct features of one document. Cost: about a cache miss in four features.
    pub fn add(&self, features: &[u64]) {
        for (i, &feature) in features.iter().enumerate() {
            if let Some(&ahead) = features.get(i + LOOKAHEAD) {
                prefetch_read(&self.cells, self.cell(ahead));
            }
            let cell = &self.cells[self.cell(feature)];
            let raised = cell.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |count| {
                count.checked_add(1)
            });
            if raised.is_err() {
                // 2^32 documents are more than a run takes.
                self.beyond[self.place_beyond(feature)].fetch_add(1, Ordering::Relaxed);
            }
        }
    }

    /// At least the number of documents that hold the feature; 1 is exact.
    #[inline]
    pub fn num_documents(&self, feature: u64) -> u32 {
        match self.cells[self.cell(feature)].load(Ordering::Relaxed) {
            u8::MAX => {
                let beyond = self.beyond[self.place_beyond(feature)].load(Ordering::Relaxed);
                beyond.saturating_add(u32::from(u8::MAX))
            }
            count => u32::from(count),
        }
    }

    /// Asks for the cell of a feature that will be looked up soon.
    #[inline]
    pub(super) fn prefetch(&self, feature: u64) {
        prefetch_read(&self.cells, self.cell(feature));
    }

    pub fn num_bytes(&self) -> usize {
        self.cells.len() + 4 * self.beyond.len()
    }

    fn cell(&self, feature: u64) -> usize {
        (feature >> 32) as usize & (self.cells.len() - 1)
    }

    fn place_beyond(&self, feature: u64) -> usize {
        feature as u32 as usize & (self.beyond.len() - 1)
    }
}

/// Which features are asked for, hashed into bits: none that is asked for is missing, some others are there.
#[derive(Debug)]
pub struct Wanted {
    words: Box<[AtomicU64]>,
}

impl Wanted {
    /// Nothing asked for yet; a bit for each cell of the counts.
    pub fn new(rarity: &Rarity) -> Self {
        Wanted {
            words: (0..rarity.cells.len() / 64)
                .map(|_| AtomicU64::new(0))
                .collect(),
        }
    }

    #[inline]
    pub fn insert(&self, feature: u64) {
        let (word, bit) = self.place(feature);
        self.words[word].fetch_or(bit, Ordering::Relaxed);
    }

    /// Whether the feature, or one of the same bit, was asked for.
    #[inline]
    pub fn contains(&self, feature: u64) -> bool {
        let (word, bit) = self.place(feature);
        self.words[word].load(Ordering::Relaxed) & bit != 0
    }

    pub fn num_bytes(&self) -> usize {
        8 * self.words.len()
    }

    fn place(&self, feature: u64) -> (usize, u64) {
        // Other bits than those of the cell, so that the two do not err on the same features.
        let place = feature as usize;
        ((place >> 6) & (self.words.len() - 1), 1 << (place & 63))
    }
}
