//! What are the parts of a set, for writing it to a file and reading it again?

use crate::index::table::directory::{Directory, Shape};
use crate::index::table::packed;
use crate::index::table::permutation::Permutation;
use crate::index::table::rows::Rows;
use crate::index::table::table::{Table, residual_bits};
use crate::index::table::words::Words;
use crate::plan::{Key, SearchPlan};
use likewise_core::error::{Error, Result};

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
