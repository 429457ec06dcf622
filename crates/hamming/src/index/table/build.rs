//! How is a table built?
//!
//! The range of prefixes is cut into slices with about equal numbers of codes. A slice is a piece of work for one
//! thread: it reads all codes and copies those of its range into their cells, whose sizes were counted before; then it
//! sorts some cells at a time, drops duplicates, and packs. So threads share nothing, no order of writes is needed,
//! and sorting stays in the caches.

use std::ops::Range;

use super::builder::{Places, RowsOf, Slice, TableBuilder, TablePiece, waves};
use super::directory::Directory;
use super::packed;
use super::rows::Rows;
use super::stream::{TableSection, TableStream};
use super::table::Table;
use super::words::{Words, WordsMut};
use crate::distance::Fingerprints;
use crate::plan::Key;
use likewise_core::error::{Error, Result};
use likewise_core::isa::Isa;
use likewise_core::parallel::{Cancel, Run};

/// Maximum number of prefix bits by which codes are counted before slices are cut.
const MAX_CELL_BITS: u32 = 14;
/// Codes counted by a thread at a time.
const COUNT_GRAIN: usize = 1 << 18;
/// Minimum number of codes that is worth a slice.
const MIN_SLICE: usize = 1 << 15;
/// Codes that are sorted and packed together, if they belong to several cells.
const PACKED_CODES: usize = 1 << 14;

#[derive(Clone, Copy)]
pub(crate) struct Source<'a> {
    pub(crate) fingerprints: Fingerprints<'a>,
    /// Row of each fingerprint; `None` if rows are positions.
    pub(crate) rows: Option<&'a [u32]>,
}

impl<'a> Source<'a> {
    /// The words of the fingerprints of a range, row-major.
    fn words(&self, range: Range<usize>) -> &'a [u64] {
        let num_words = self.fingerprints.num_words();
        &self.fingerprints.words[range.start * num_words..range.end * num_words]
    }
}

#[derive(Clone, Copy)]
pub struct Building<'a> {
    pub isa: Isa,
    pub run: Run<'a>,
    /// Memory for sorting in addition to the tables themselves, in bytes.
    pub memory_bytes: usize,
    /// Whether rows are kept; without them, a search returns fingerprints instead of rows.
    pub with_rows: bool,
}

/// Builds the table of `key` for about `num_expected` distinct codes, or a few less.
pub(crate) fn build_table(
    source: Source<'_>,
    key: Key,
    num_expected: usize,
    building: Building<'_>,
) -> Result<(Table, Option<Rows>)> {
    let Building { run, with_rows, .. } = building;
    let (bits, num_codes) = (source.fingerprints.bits, source.fingerprints.len());
    let builder = TableBuilder::new(bits, &key, num_expected, with_rows, MAX_CELL_BITS);
    let max_row = match source.rows {
        Some(rows) => rows.iter().copied().max().unwrap_or(0),
        None => num_codes.saturating_sub(1) as u32,
    };
    let counts = count_cells(&builder, source, building)?;
    let threads = run.threads.max(1);
    // Memory for the entries, and for their packed form.
    let most = building.memory_bytes / threads / (2 * 8 * builder.entry_words());
    let mut sections = Sections::new(&builder, num_codes, max_row)?;
    let mut stream = TableStream::new(&builder, max_row);
    for wave in waves(&counts, (MIN_SLICE, most), threads) {
        let build = |i: usize| build_slice(&builder, source, &wave[i], &counts, building);
        for pieces in run.each(wave.len(), build)? {
            for piece in pieces? {
                stream.append(piece, &mut |section, words| sections.put(section, words))?;
            }
        }
    }
    let totals = stream.finish(&mut |section, words| sections.put(section, words))?;
    let [lines, residuals, rest, numbers] =
        (sections.large).map(|(words, len)| words.freeze().first(len));
    let [escapes, group_ends, group_rows] =
        (sections.small).map(|words| Words::try_from(&words[..]));
    let directory = Directory {
        shape: builder.shape,
        lines,
        escapes: escapes?,
    };
    let rows = Rows {
        numbers,
        width: totals.row_width,
        group_ends: group_ends?,
        group_rows: group_rows?,
        num_rows: totals.num_rows,
    };
    let table = Table::new(key, bits, directory, totals.num_entries, residuals, rest);
    Ok((table, with_rows.then_some(rows)))
}

fn count_cells(
    builder: &TableBuilder,
    source: Source<'_>,
    building: Building<'_>,
) -> Result<Vec<u32>> {
    let parts = (building.run).ranges(source.fingerprints.len(), COUNT_GRAIN, |range| {
        let mut counts = vec![0; builder.num_cells()];
        builder.count(source.words(range), &mut counts, building.isa);
        counts
    })?;
    let mut total = vec![0; builder.num_cells()];
    for counts in parts {
        for (total, count) in total.iter_mut().zip(counts) {
            *total += count;
        }
    }
    Ok(total)
}

fn build_slice(
    builder: &TableBuilder,
    source: Source<'_>,
    slice: &Slice,
    counts: &[u32],
    building: Building<'_>,
) -> Result<Vec<TablePiece>> {
    let mut entries = WordsMut::zeroed(slice.num_codes * builder.entry_words())?;
    let mut places = Places::new(slice, counts, entries.as_mut_slice());
    let len = source.fingerprints.len();
    for start in (0..len).step_by(COUNT_GRAIN) {
        building.run.cancel.check()?;
        let range = start..len.min(start + COUNT_GRAIN);
        let rows = match source.rows {
            Some(rows) => RowsOf::Given(&rows[range.clone()]),
            None => RowsOf::From(start as u32),
        };
        builder.spread(source.words(range), rows, &mut places, building.isa);
    }
    if !places.are_full() {
        // These are not the codes that were counted.
        return Err(Error::Damaged);
    }
    let limits = (PACKED_CODES, usize::MAX);
    let groups = builder.groups(slice, counts, entries.as_mut_slice(), limits);
    let pack = |group| {
        building.run.cancel.check()?;
        Ok(builder.pack(group))
    };
    groups.into_iter().map(pack).collect()
}

/// The sections of a table in memory.
struct Sections {
    /// Those whose greatest length is known, with their present length.
    large: [(WordsMut, usize); 4],
    small: [Vec<u64>; 3],
}

impl Sections {
    fn new(builder: &TableBuilder, num_codes: usize, max_row: u32) -> Result<Self> {
        let large = [
            builder.num_line_words(),
            packed::num_words(num_codes, builder.residual_bits()),
            (num_codes + packed::PADDING) * (builder.num_words - 1),
            packed::num_words(num_codes, builder.row_bits(max_row)),
        ];
        let [lines, residuals, rest, numbers] =
            large.map(|len| Ok::<_, Error>((WordsMut::zeroed(len)?, 0)));
        Ok(Sections {
            large: [lines?, residuals?, rest?, numbers?],
            small: Default::default(),
        })
    }

    fn put(&mut self, section: TableSection, words: &[u64]) -> Result<()> {
        let number = section as usize;
        match self.large.get_mut(number) {
            Some((all, len)) => {
                all.as_mut_slice()[*len..*len + words.len()].copy_from_slice(words);
                *len += words.len();
            }
            None => self.small[number - self.large.len()].extend_from_slice(words),
        }
        Ok(())
    }
}
