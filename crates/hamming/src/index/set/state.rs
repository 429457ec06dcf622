//! What is the state of a set of fingerprints at one moment?

use std::sync::Arc;

use super::segment::Segment;
use crate::index::search::scanned::Planes;

/// The data that a search needs: cheap to clone.
#[derive(Debug, Clone)]
pub(crate) struct State {
    pub(crate) segments: Vec<Arc<Segment>>,
    pub(crate) tail: Vec<Arc<Planes>>,
    pub(crate) removed: Arc<Removed>,
    /// One more than the greatest row ever inserted.
    pub(crate) next_row: u64,
    /// Number of rows in segments and tail, including removed ones.
    pub(crate) num_rows: usize,
}

impl State {
    /// Marks the rows that are missing among the new ones.
    pub(crate) fn skip(&mut self, rows: &[u32]) {
        if !are_dense(self.next_row, rows) {
            Arc::make_mut(&mut self.removed).skip(self.next_row, rows);
        }
    }

    pub(crate) fn tail_len(&self) -> usize {
        self.tail.iter().map(|planes| planes.len()).sum()
    }
}

/// Rows below `next_row` that must not be found: never inserted, or removed.
#[derive(Debug, Clone, Default)]
pub(crate) struct Removed {
    pub(crate) bits: Vec<u64>,
    /// How many of them are still in a segment or the tail.
    pub(crate) num_present: usize,
}

impl Removed {
    pub(crate) fn contains(&self, row: u32) -> bool {
        self.bits
            .get(row as usize / 64)
            .is_some_and(|word| word >> (row % 64) & 1 == 1)
    }

    /// Marks a row; returns whether it was unmarked.
    pub(crate) fn insert(&mut self, row: u32) -> bool {
        let word = row as usize / 64;
        if self.bits.len() <= word {
            self.bits.resize(word + 1, 0);
        }
        let is_new = self.bits[word] >> (row % 64) & 1 == 0;
        self.bits[word] |= 1 << (row % 64);
        is_new
    }

    /// Marks the rows from `next_row` on that are missing in ascending `rows`.
    pub(crate) fn skip(&mut self, next_row: u64, rows: &[u32]) {
        let mut expected = next_row as u32;
        for &row in rows {
            for skipped in expected..row {
                self.insert(skipped);
            }
            expected = row + 1;
        }
    }
}

/// Whether ascending rows are consecutive from `next_row` on.
pub(crate) fn are_dense(next_row: u64, rows: &[u32]) -> bool {
    rows.last()
        .is_none_or(|&last| u64::from(last) + 1 == next_row + rows.len() as u64)
}

/// Drops removed rows and their codes; returns how many.
pub(crate) fn purge(
    codes: &mut Vec<u64>,
    rows: &mut Vec<u32>,
    removed: &Removed,
    num_words: usize,
) -> usize {
    if removed.num_present == 0 {
        return 0;
    }
    let mut kept = 0;
    for i in 0..rows.len() {
        if !removed.contains(rows[i]) {
            rows[kept] = rows[i];
            codes.copy_within(i * num_words..(i + 1) * num_words, kept * num_words);
            kept += 1;
        }
    }
    let num_purged = rows.len() - kept;
    rows.truncate(kept);
    codes.truncate(kept * num_words);
    num_purged
}
