//! What does a set consist of, for whoever writes it to a file and reads it again?

use crate::index::table::directory::{Directory, Shape};
use crate::index::table::packed;
use crate::index::table::permutation::Permutation;
use crate::index::table::rows::Rows;
use crate::index::table::table::{Table, residual_bits};
use crate::index::table::words::Words;
use crate::plan::{Key, SearchPlan};
use likewise_core::error::Error;

/// A set as plain data.
#[derive(Debug)]
pub struct SetParts {
    /// The plan.
    pub plan: SearchPlan,
    /// Segments, oldest first.
    pub segments: Vec<SegmentParts>,
    /// Fingerprints that are scanned, row-major, and their rows.
    pub tail_codes: Vec<u64>,
    /// Rows of those, ascending.
    pub tail_rows: Vec<u32>,
    /// A bit for each row that is not to be found.
    pub removed: Vec<u64>,
    /// Those of them that segments or tail still hold.
    pub num_removed_present: usize,
    /// Above all rows.
    pub next_row: u64,
}

/// A segment as plain data.
#[derive(Debug, Clone)]
pub struct SegmentParts {
    /// In order of the keys.
    pub tables: Vec<TableParts>,
    /// Rows of the first table's entries, where they are kept.
    pub rows: Option<RowParts>,
}

/// A table as plain data.
#[derive(Debug, Clone)]
pub struct TableParts {
    /// Bits of a prefix.
    pub prefix_bits: u32,
    /// Lines hold `2^line_shift` buckets.
    pub line_shift: u32,
    /// Unary lines, or plain starts.
    pub is_unary: bool,
    /// Distinct fingerprints.
    pub num_entries: usize,
    /// Lines or starts.
    pub lines: Words,
    /// Ends of the buckets of escaped lines.
    pub escapes: Words,
    /// Packed remaining bits.
    pub residuals: Words,
    /// Other words.
    pub rest: Words,
}

/// Rows as plain data.
#[derive(Debug, Clone)]
pub struct RowParts {
    /// Packed numbers.
    pub numbers: Words,
    /// Bits of one.
    pub width: u32,
    /// Ends of the groups.
    pub group_ends: Words,
    /// Rows of the groups.
    pub group_rows: Words,
    /// Rows in all.
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

pub(crate) fn table_of(key: Key, bits: u32, parts: TableParts) -> Result<Table, Error> {
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

pub(crate) fn rows_of(parts: RowParts, num_entries: usize) -> Result<Rows, Error> {
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
