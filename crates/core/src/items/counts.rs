//! How many documents contain the n-grams and words of the items?

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use super::table::ItemTable;

/// Counts of documents. Threads may share it; the result does not depend on their order.
#[derive(Debug)]
pub struct ItemCounts {
    grams: Box<[AtomicU32]>,
    words: Box<[AtomicU32]>,
    num_documents: AtomicU64,
    num_sampled: AtomicU64,
}

impl ItemCounts {
    /// Creates zero counts: 4 bytes per distinct n-gram and word.
    pub fn new(table: &ItemTable) -> Self {
        let zeros = |len: usize| (0..len).map(|_| AtomicU32::new(0)).collect();
        ItemCounts {
            grams: zeros(table.num_grams()),
            words: zeros(table.num_words()),
            num_documents: AtomicU64::new(0),
            num_sampled: AtomicU64::new(0),
        }
    }

    /// Continues from the result of [`ItemCounts::taken`] for a table of the same items.
    pub fn from_taken(grams: &[u32], words: &[u32], num_documents: u64, num_sampled: u64) -> Self {
        let held = |counts: &[u32]| counts.iter().map(|&count| AtomicU32::new(count)).collect();
        ItemCounts {
            grams: held(grams),
            words: held(words),
            num_documents: AtomicU64::new(num_documents),
            num_sampled: AtomicU64::new(num_sampled),
        }
    }

    /// Returns the numbers of documents by n-gram, of sampled documents by word, of documents, and of sampled ones.
    pub fn taken(&self) -> (Vec<u32>, Vec<u32>, u64, u64) {
        let held = |counts: &[AtomicU32]| {
            counts
                .iter()
                .map(|count| count.load(Ordering::Relaxed))
                .collect()
        };
        (
            held(&self.grams),
            held(&self.words),
            self.num_documents.load(Ordering::Relaxed),
            self.num_sampled.load(Ordering::Relaxed),
        )
    }

    /// Counts a document, given its distinct n-grams.
    pub(super) fn add(&self, grams: &[u32]) {
        self.num_documents.fetch_add(1, Ordering::Relaxed);
        for &gram in grams {
            self.grams[gram as usize].fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Counts a sampled document, given its distinct words.
    pub(super) fn add_sampled(&self, words: &[u32]) {
        self.num_sampled.fetch_add(1, Ordering::Relaxed);
        for &word in words {
            self.words[word as usize].fetch_add(1, Ordering::Relaxed);
        }
    }
}
