//! Which rows are no longer to be found?

use super::set::HammingSet;

impl HammingSet {
    /// Whether each of these rows is there: inserted, and not removed since; 1 or 0.
    #[must_use]
    pub fn holds(&self, rows: &[u32]) -> Vec<u8> {
        let state = self.state();
        let is_held = |&row: &u32| u64::from(row) < state.next_row && !state.removed.contains(row);
        rows.iter().map(|row| u8::from(is_held(row))).collect()
    }
}

/// Rows below `next_row` that are not to be found: never inserted, or removed.
#[derive(Debug, Clone, Default)]
pub(super) struct Removed {
    pub(super) bits: Vec<u64>,
    /// Those of them that are still in a segment or the tail.
    pub(super) num_present: usize,
}

impl Removed {
    pub(super) fn contains(&self, row: u32) -> bool {
        self.bits
            .get(row as usize / 64)
            .is_some_and(|word| word >> (row % 64) & 1 == 1)
    }

    /// Whether the row was not marked yet.
    pub(super) fn insert(&mut self, row: u32) -> bool {
        let word = row as usize / 64;
        if self.bits.len() <= word {
            self.bits.resize(word + 1, 0);
        }
        let is_new = self.bits[word] >> (row % 64) & 1 == 0;
        self.bits[word] |= 1 << (row % 64);
        is_new
    }

    /// Marks the rows from `next_row` on that ascending rows leave out.
    pub(super) fn skip(&mut self, next_row: u64, rows: &[u32]) {
        let mut expected = next_row as u32;
        for &row in rows {
            for skipped in expected..row {
                self.insert(skipped);
            }
            expected = row + 1;
        }
    }
}

/// Whether ascending rows leave out none from `next_row` on.
pub(super) fn are_dense(next_row: u64, rows: &[u32]) -> bool {
    rows.last()
        .is_none_or(|&last| u64::from(last) + 1 == next_row + rows.len() as u64)
}

/// Drops removed rows and their codes; gives how many.
pub(super) fn purge(
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
