//! What is the state of a set of fingerprints at one moment?

use std::sync::Arc;

use likewise_core::error::{Error, Result};

use super::segment::Segment;
use crate::index::search::scanned::Planes;
use crate::index::table::directory::Directory;
use crate::index::table::packed;
use crate::index::table::permutation::Permutation;
use crate::index::table::rows::Rows;
use crate::index::table::table::Table;
use crate::index::table::words::Words;
use crate::plan::shape::residual_bits;
use crate::plan::{Key, SearchPlan};

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

#[derive(Debug)]
pub struct SetParts {
    pub plan: SearchPlan,
    pub segments: Vec<SegmentParts>,
    /// Fingerprints that are scanned, row-major.
    pub tail_codes: Vec<u64>,
    /// Rows of these, ascending.
    pub tail_rows: Vec<u32>,
    /// A bit for each row that must not be found.
    pub removed: Vec<u64>,
    /// How many of these are still in segments or the tail.
    pub num_removed_present: usize,
    /// One more than the greatest row.
    pub next_row: u64,
}

#[derive(Debug, Clone)]
pub struct SegmentParts {
    pub tables: Vec<TableParts>,
    /// Rows of the first table's entries, if they are kept.
    pub rows: Option<Rows>,
}

#[derive(Debug, Clone)]
pub struct TableParts {
    pub directory: Directory,
    pub num_entries: usize,
    /// Packed remaining bits.
    pub residuals: Words,
    pub rest: Words,
}

pub(crate) fn table_parts(table: &Table) -> TableParts {
    TableParts {
        directory: table.directory.clone(),
        num_entries: table.num_entries,
        residuals: table.residuals.clone(),
        rest: table.rest.clone(),
    }
}

pub(crate) fn table_of(key: Key, bits: u32, parts: TableParts) -> Result<Table> {
    let top_bits = Permutation::new(bits, &key).top_bits();
    let shape = parts.directory.shape;
    let rest_words = bits.div_ceil(64) as usize - 1;
    let fits = shape.is_sound(key.width(), top_bits)
        && parts.num_entries < u32::MAX as usize
        && parts.directory.lines.as_slice().len() == shape.num_words()
        && parts.residuals.as_slice().len()
            == packed::num_words(
                parts.num_entries,
                residual_bits(top_bits, shape.prefix_bits),
            )
        && parts.rest.as_slice().len() == (parts.num_entries + packed::PADDING) * rest_words;
    if !fits {
        return Err(Error::Damaged);
    }
    let (residuals, rest) = (parts.residuals, parts.rest);
    Ok(Table::new(
        key,
        bits,
        parts.directory,
        parts.num_entries,
        residuals,
        rest,
    ))
}
