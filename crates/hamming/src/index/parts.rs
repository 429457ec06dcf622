//! What does a set consist of, for whoever writes it to a file and reads it again?

use std::sync::Arc;

use super::super::plan::{Key, SearchPlan};
use super::directory::{Directory, Shape};
use super::packed;
use super::permutation::Permutation;
use super::planes::check_rows;
use super::removed::Removed;
use super::rows::Rows;
use super::segment::Segment;
use super::set::HammingSet;
use super::set_state::State;
use super::table::{Table, residual_bits};
use super::words::Words;
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

impl HammingSet {
    /// The set as plain data; tables are shared, not copied.
    pub fn parts(&self) -> SetParts {
        let state = self.state();
        let mut parts = SetParts {
            plan: self.plan().clone(),
            segments: state
                .segments
                .iter()
                .map(|segment| SegmentParts {
                    tables: segment.tables.iter().map(table_parts).collect(),
                    rows: segment.rows.as_ref().map(row_parts),
                })
                .collect(),
            tail_codes: Vec::new(),
            tail_rows: Vec::new(),
            removed: state.removed.bits.clone(),
            num_removed_present: state.removed.num_present,
            next_row: state.next_row,
        };
        for planes in &state.tail {
            planes.copy_codes(&mut parts.tail_codes);
            parts.tail_rows.extend_from_slice(planes.rows());
        }
        parts
    }

    /// The set of these parts.
    ///
    /// # Errors
    /// [`Error::Damaged`] where lengths contradict each other. What the tables say is checked when it is used.
    pub fn of_parts(parts: SetParts) -> Result<Self, Error> {
        let bits = parts.plan.bits();
        let mut segments = Vec::new();
        let mut num_rows = parts.tail_rows.len();
        for segment in parts.segments {
            if segment.tables.len() != parts.plan.keys().len() {
                return Err(Error::Damaged);
            }
            let tables = parts
                .plan
                .keys()
                .iter()
                .zip(segment.tables)
                .map(|(key, table)| table_of(*key, bits, table))
                .collect::<Result<Vec<Table>, Error>>()?;
            let num_entries = tables.first().map_or(0, |table| table.num_entries);
            if tables.iter().any(|table| table.num_entries != num_entries) {
                return Err(Error::Damaged);
            }
            let rows = segment
                .rows
                .map(|rows| rows_of(rows, num_entries))
                .transpose()?;
            let segment = Segment::of_parts(parts.plan.clone(), tables, rows);
            num_rows += segment.len();
            segments.push(Arc::new(segment));
        }
        let num_words = bits.div_ceil(64) as usize;
        let tail_fits = parts.tail_codes.len() == parts.tail_rows.len() * num_words
            && check_rows(&parts.tail_rows, parts.tail_rows.len(), 0).is_ok();
        let last_row = parts.tail_rows.last().map_or(0, |&row| u64::from(row) + 1);
        if !tail_fits
            || last_row > parts.next_row
            || parts.next_row > u64::from(u32::MAX)
            || parts.num_removed_present > num_rows
        {
            return Err(Error::Damaged);
        }
        let set = HammingSet::of_state(
            parts.plan,
            State {
                segments,
                tail: Vec::new(),
                removed: Arc::new(Removed {
                    bits: parts.removed,
                    num_present: parts.num_removed_present,
                }),
                next_row: parts.next_row,
                num_rows,
            },
        );
        set.restore_tail(&parts.tail_codes, &parts.tail_rows);
        Ok(set)
    }
}

fn table_parts(table: &Table) -> TableParts {
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

fn row_parts(rows: &Rows) -> RowParts {
    RowParts {
        numbers: rows.numbers.clone(),
        width: rows.width,
        group_ends: rows.group_ends.clone(),
        group_rows: rows.group_rows.clone(),
        num_rows: rows.num_rows,
    }
}

fn table_of(key: Key, bits: u32, parts: TableParts) -> Result<Table, Error> {
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

fn rows_of(parts: RowParts, num_entries: usize) -> Result<Rows, Error> {
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
