//! How are the pieces of a table converted to the words of its sections?

use super::builder::{TableBuilder, TablePiece};
use super::packed::{PADDING, PackedWriter};
use super::rows::width_of;

/// The section that words belong to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TableSection {
    Lines,
    /// Packed remaining bits.
    Residuals,
    /// Other words.
    Rest,
    /// Packed numbers of rows and groups.
    Numbers,
    Escapes,
    GroupEnds,
    GroupRows,
}

/// The totals of a table after all of it was emitted.
#[derive(Debug, Clone, Copy)]
pub struct StreamedTable {
    pub num_entries: usize,
    /// Number of bits of a number of a row or group.
    pub row_width: u32,
    /// Number of rows, if they are kept.
    pub num_rows: usize,
}

/// Concatenates the pieces of a table without storing them.
#[derive(Debug)]
pub struct TableStream<'a> {
    builder: &'a TableBuilder,
    num_entries: usize,
    starts: HalfWords,
    residuals: Bits,
    escapes: HalfWords,
    row_width: u32,
    numbers: Bits,
    num_rows: usize,
    num_groups: usize,
    group_ends: HalfWords,
    group_rows: HalfWords,
    words: Vec<u64>,
}

impl<'a> TableStream<'a> {
    /// Creates the stream of a table whose rows are at most `max_row`.
    pub fn new(builder: &'a TableBuilder, max_row: u32) -> Self {
        TableStream {
            builder,
            num_entries: 0,
            starts: HalfWords::default(),
            residuals: Bits::default(),
            escapes: HalfWords::default(),
            row_width: width_of(max_row),
            numbers: Bits::default(),
            num_rows: 0,
            num_groups: 0,
            group_ends: HalfWords::default(),
            group_rows: HalfWords::default(),
            words: Vec::new(),
        }
    }

    /// Passes the words of the next piece to `put`, section by section.
    pub fn append<E>(
        &mut self,
        piece: TablePiece,
        put: &mut impl FnMut(TableSection, &[u64]) -> Result<(), E>,
    ) -> Result<(), E> {
        let TablePiece {
            directory,
            residuals,
            rest,
            rows,
            num_entries,
        } = piece;
        let words = &mut self.words;
        words.clear();
        if self.builder.shape.is_unary {
            directory.append_lines(words, self.num_entries, self.escapes.len);
        } else {
            let before = self.num_entries as u32;
            let starts = directory.starts.iter().map(|start| start + before);
            self.starts.append(starts, words);
        }
        put(TableSection::Lines, words)?;
        words.clear();
        self.residuals
            .append(&residuals.words, residuals.num_bits, words);
        put(TableSection::Residuals, words)?;
        put(TableSection::Rest, &rest)?;
        words.clear();
        self.escapes
            .append(directory.escapes.iter().copied(), words);
        put(TableSection::Escapes, words)?;
        self.num_entries += num_entries;
        if !self.builder.with_rows {
            return Ok(());
        }
        let mut numbers = PackedWriter::new(self.row_width, rows.numbers.len());
        let mut multiple = rows.multiple.iter().copied().peekable();
        for (rank, number) in (0..).zip(&rows.numbers) {
            numbers.push(match multiple.next_if_eq(&rank) {
                Some(_) => (u64::from(*number) + self.num_groups as u64) << 1 | 1,
                None => u64::from(*number) << 1,
            });
        }
        let numbers = numbers.finish();
        words.clear();
        self.numbers.append(&numbers.words, numbers.num_bits, words);
        put(TableSection::Numbers, words)?;
        words.clear();
        let before = self.group_rows.len as u32;
        let ends = rows.group_ends.iter().map(|end| end + before);
        self.group_ends.append(ends, words);
        put(TableSection::GroupEnds, words)?;
        words.clear();
        self.group_rows
            .append(rows.group_rows.iter().copied(), words);
        put(TableSection::GroupRows, words)?;
        self.num_groups += rows.group_ends.len();
        self.num_rows += rows.numbers.len() - rows.multiple.len() + rows.group_rows.len();
        Ok(())
    }

    /// Passes the remaining words and the padding to `put`.
    pub fn finish<E>(
        mut self,
        put: &mut impl FnMut(TableSection, &[u64]) -> Result<(), E>,
    ) -> Result<StreamedTable, E> {
        if !self.builder.shape.is_unary {
            let mut words = Vec::new();
            self.starts
                .append([self.num_entries as u32].into_iter(), &mut words);
            words.extend(self.starts.rest());
            put(TableSection::Lines, &words)?;
        }
        put(TableSection::Residuals, &self.residuals.rest())?;
        put(
            TableSection::Rest,
            &vec![0; PADDING * (self.builder.num_words - 1)],
        )?;
        put(TableSection::Escapes, &self.escapes.rest())?;
        if self.builder.with_rows {
            put(TableSection::Numbers, &self.numbers.rest())?;
            put(TableSection::GroupEnds, &self.group_ends.rest())?;
            put(TableSection::GroupRows, &self.group_rows.rest())?;
        }
        Ok(StreamedTable {
            num_entries: self.num_entries,
            row_width: self.row_width,
            num_rows: self.num_rows,
        })
    }
}

/// Combines 32-bit numbers into words, the lower half first.
#[derive(Debug, Default)]
struct HalfWords {
    waiting: Option<u32>,
    len: usize,
}

impl HalfWords {
    fn append(&mut self, numbers: impl Iterator<Item = u32>, words: &mut Vec<u64>) {
        for number in numbers {
            self.len += 1;
            match self.waiting.take() {
                None => self.waiting = Some(number),
                Some(low) => words.push(u64::from(low) | u64::from(number) << 32),
            }
        }
    }

    /// Returns the last number, followed by a 0, if it has no other half.
    fn rest(&self) -> Vec<u64> {
        self.waiting.map(u64::from).into_iter().collect()
    }
}

/// Combines bits into words.
#[derive(Debug, Default)]
pub(super) struct Bits {
    current: u64,
    /// Number of its bits in use, below 64.
    filled: u32,
}

impl Bits {
    /// Appends bits from bit 0 of `bits` on; bits beyond the last must be 0.
    pub(super) fn append(&mut self, bits: &[u64], num_bits: usize, words: &mut Vec<u64>) {
        let (shift, num_whole) = (self.filled, num_bits / 64);
        // Two shifts, since a single shift by 64 is invalid.
        let above = |word: u64| word >> 1 >> (63 - shift);
        for &word in &bits[..num_whole] {
            words.push(self.current | word << shift);
            self.current = above(word);
        }
        let left = (num_bits % 64) as u32;
        if left == 0 {
            return;
        }
        let word = bits[num_whole];
        self.current |= word << shift;
        if shift + left >= 64 {
            words.push(self.current);
            self.current = above(word);
        }
        self.filled = (shift + left) % 64;
    }

    /// Returns the last bits, and padding.
    pub(super) fn rest(&self) -> Vec<u64> {
        let mut words = Vec::new();
        if self.filled > 0 {
            words.push(self.current);
        }
        words.resize(words.len() + PADDING, 0);
        words
    }
}
