//! What is the state of a set of fingerprints at one moment?

use std::sync::Arc;

use likewise_core::error::{Error, Result};

use super::segment::Segment;
use crate::index::search::scanned::Planes;
use crate::index::table::directory::{Directory, Shape};
use crate::index::table::packed;
use crate::index::table::permutation::Permutation;
use crate::index::table::rows::Rows;
use crate::index::table::table::{Table, residual_bits};
use crate::index::table::words::Words;
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
    pub rows: Option<RowParts>,
}

#[derive(Debug, Clone)]
pub struct TableParts {
    pub prefix_bits: u32,
    /// A line holds `2^line_shift` buckets.
    pub line_shift: u32,
    /// Whether lines are unary; otherwise the directory holds plain starts.
    pub is_unary: bool,
    pub num_entries: usize,
    pub lines: Words,
    pub escapes: Words,
    /// Packed remaining bits.
    pub residuals: Words,
    pub rest: Words,
}

#[derive(Debug, Clone)]
pub struct RowParts {
    /// Packed numbers.
    pub numbers: Words,
    /// Number of bits of a packed number.
    pub width: u32,
    /// End of each group.
    pub group_ends: Words,
    pub group_rows: Words,
    /// Total number of rows.
    pub num_rows: usize,
}

pub(crate) fn table_parts(table: &Table) -> TableParts {
    let Shape {
        prefix_bits,
        line_shift,
        is_unary,
    } = table.directory.shape;
    TableParts {
        prefix_bits,
        line_shift,
        is_unary,
        num_entries: table.num_entries,
        lines: table.directory.lines.clone(),
        escapes: table.directory.escapes.clone(),
        residuals: table.residuals.clone(),
        rest: table.rest.clone(),
    }
}

pub(crate) fn row_parts(rows: &Rows) -> RowParts {
    RowParts {
        numbers: rows.numbers.clone(),
        width: rows.width,
        group_ends: rows.group_ends.clone(),
        group_rows: rows.group_rows.clone(),
        num_rows: rows.num_rows,
    }
}

pub(crate) fn table_of(key: Key, bits: u32, parts: TableParts) -> Result<Table> {
    let top_bits = Permutation::new(bits, &key).top_bits();
    let shape = Shape {
        prefix_bits: parts.prefix_bits,
        line_shift: parts.line_shift,
        is_unary: parts.is_unary,
    };
    if !shape.is_sound(key.width(), top_bits) || parts.num_entries >= u32::MAX as usize {
        return Err(Error::Damaged);
    }
    let width = residual_bits(top_bits, parts.prefix_bits);
    let rest_words = bits.div_ceil(64) as usize - 1;
    let fits = parts.lines.as_slice().len() == shape.num_words()
        && parts.residuals.as_slice().len() == packed::num_words(parts.num_entries, width)
        && parts.rest.as_slice().len() == (parts.num_entries + packed::PADDING) * rest_words;
    if !fits {
        return Err(Error::Damaged);
    }
    let directory = Directory {
        shape,
        lines: parts.lines,
        escapes: parts.escapes,
    };
    Ok(Table::new(
        key,
        bits,
        directory,
        parts.num_entries,
        parts.residuals,
        parts.rest,
    ))
}

pub(crate) fn rows_of(parts: RowParts, num_entries: usize) -> Result<Rows> {
    let fits = (1..=33).contains(&parts.width)
        && parts.numbers.as_slice().len() == packed::num_words(num_entries, parts.width)
        && parts.num_rows >= num_entries;
    match fits {
        true => Ok(Rows {
            numbers: parts.numbers,
            width: parts.width,
            group_ends: parts.group_ends,
            group_rows: parts.group_rows,
            num_rows: parts.num_rows,
        }),
        false => Err(Error::Damaged),
    }
}
