//! How is a table built?
//!
//! The range of prefixes is cut into slices with about equal numbers of codes. A slice is a piece of work for one
//! thread: it reads all codes and copies those of its range into their cells, whose sizes were counted before; then it
//! sorts some cells at a time, drops duplicates, and packs. So threads share nothing, no order of writes is needed,
//! sorting stays in the caches, and a table of more codes than fit in memory twice is built slice by slice from a
//! mapped file.

use std::ops::Range;

use super::builder::{Layout, Part, Places, RowsOf, count, spread};
use super::directory::Directory;
use super::packed;
use super::rows::{Rows, RowsBuilder};
use super::table::Table;
use super::words::{Words, WordsMut};
use crate::distance::Fingerprints;
use crate::kernels::run_kernel;
use crate::plan::Key;
use crate::plan::shape::residual_bits;
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

/// Fingerprints that can be read repeatedly.
pub trait Codes: Sync {
    fn len(&self) -> usize;

    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the words of the fingerprints of a range, row-major; `buffer` may be used to hold them.
    fn read<'a>(&'a self, range: Range<usize>, buffer: &'a mut Vec<u64>) -> Result<&'a [u64]>;
}

impl Codes for Fingerprints<'_> {
    fn len(&self) -> usize {
        Fingerprints::len(self)
    }

    fn read<'a>(&'a self, range: Range<usize>, _: &'a mut Vec<u64>) -> Result<&'a [u64]> {
        let num_words = self.num_words();
        Ok(&self.words[range.start * num_words..range.end * num_words])
    }
}

#[derive(Clone, Copy)]
pub(crate) struct Source<'a> {
    pub(crate) codes: &'a dyn Codes,
    pub(crate) bits: u32,
    /// Row of each fingerprint; `None` if rows are positions.
    pub(crate) rows: Option<&'a [u32]>,
}

#[derive(Clone, Copy)]
pub(crate) struct Means<'a> {
    pub(crate) isa: Isa,
    pub(crate) run: Run<'a>,
    /// Maximum size of the slices in progress of all threads, in bytes.
    pub(crate) slice_bytes: usize,
}

struct Job<'a> {
    source: Source<'a>,
    layout: Layout,
}

/// Neighboring cells and the codes in them.
struct Slice {
    cells: Range<usize>,
    num_codes: usize,
}

/// Builds the table of `key` for about `num_expected` distinct codes, or a few less.
pub(crate) fn build_table(
    source: Source<'_>,
    key: Key,
    num_expected: usize,
    with_rows: bool,
    means: Means<'_>,
) -> Result<(Table, Option<Rows>)> {
    let bits = source.bits;
    let job = Job {
        source,
        layout: Layout::new(bits, &key, num_expected, with_rows, MAX_CELL_BITS),
    };
    let counts = job.count_cells(means)?;
    let slices = job.cut(&counts, means);
    let mut assembly = Assembly::new(&job, source.codes.len())?;
    for wave in slices.chunks(means.run.threads.max(1)) {
        let slices = means
            .run
            .each(wave.len(), |i| job.build_slice(&wave[i], &counts, means))?;
        for parts in slices {
            for part in parts? {
                assembly.append(&job, part);
            }
        }
    }
    assembly.finish(&job, key, bits)
}

impl Job<'_> {
    fn count_cells(&self, means: Means<'_>) -> Result<Vec<usize>> {
        let parts = means.run.map(self.source.codes.len(), COUNT_GRAIN, Vec::new, |buffer, range| {
                let mut counts = vec![0_u32; 1 << self.layout.cell_bits];
                let (layout, counts_of) = (&self.layout, counts.as_mut_slice());
                let codes = self.source.codes.read(range, buffer)?;
                run_kernel!(means.isa, layout.num_words, count, (layout: &Layout, codes: &[u64], counts_of: &mut [u32]));
                Ok(counts)
            })?;
        let mut total = vec![0; 1 << self.layout.cell_bits];
        for counts in parts {
            for (total, count) in total.iter_mut().zip(counts?) {
                *total += count as usize;
            }
        }
        Ok(total)
    }

    /// Returns slices with about equal numbers of codes.
    fn cut(&self, counts: &[usize], means: Means<'_>) -> Vec<Slice> {
        let len = self.source.codes.len();
        let threads = means.run.threads.max(1);
        let entry_bytes = 8 * self.layout.entry_words();
        // Memory for the entries, and for their packed form.
        let most = means.slice_bytes / threads / (2 * entry_bytes);
        let fair = len.div_ceil(threads);
        let target = fair.min(most).max(MIN_SLICE);
        let mut slices = Vec::new();
        let mut slice = Slice {
            cells: 0..0,
            num_codes: 0,
        };
        for (cell, &count) in counts.iter().enumerate() {
            if slice.num_codes > 0 && slice.num_codes + count / 2 > target {
                let end = slice.cells.end;
                slices.push(std::mem::replace(
                    &mut slice,
                    Slice {
                        cells: end..end,
                        num_codes: 0,
                    },
                ));
            }
            slice.cells.end = cell + 1;
            slice.num_codes += count;
        }
        slices.push(slice);
        slices
    }

    fn build_slice(&self, slice: &Slice, counts: &[usize], means: Means<'_>) -> Result<Vec<Part>> {
        let width = self.layout.entry_words();
        let mut entries = WordsMut::zeroed(slice.num_codes * width)?;
        let counts = &counts[slice.cells.clone()];
        let mut next = Vec::with_capacity(counts.len());
        let mut total = 0;
        for &count in counts {
            next.push(total as u32);
            total += count;
        }
        let mut places = Places {
            first_cell: slice.cells.start,
            next: &mut next,
            entries: entries.as_mut_slice(),
            is_over: false,
        };
        self.collect(&mut places, means)?;
        let mut end = 0;
        let is_whole = next.iter().zip(counts).all(|(&next, &count)| {
            end += count;
            next as usize == end
        });
        if !is_whole {
            // These are not the codes that were counted.
            return Err(Error::Damaged);
        }
        let mut parts = Vec::new();
        let mut entries = entries.as_mut_slice();
        let mut from = slice.cells.start;
        let mut num_codes = 0;
        for (cell, &count) in (slice.cells.clone()).zip(counts) {
            num_codes += count;
            if num_codes < PACKED_CODES && cell + 1 < slice.cells.end {
                continue;
            }
            means.run.cancel.check()?;
            let (packed, others) = entries.split_at_mut(num_codes * width);
            parts.push(self.layout.pack(from..cell + 1, packed));
            (entries, from, num_codes) = (others, cell + 1, 0);
        }
        Ok(parts)
    }

    /// Copies the permuted codes of some cells to their places, with their rows if these are kept.
    fn collect(&self, places: &mut Places<'_>, means: Means<'_>) -> Result<()> {
        let layout = &self.layout;
        let len = self.source.codes.len();
        let mut buffer = Vec::new();
        for start in (0..len).step_by(COUNT_GRAIN) {
            means.run.cancel.check()?;
            let range = start..len.min(start + COUNT_GRAIN);
            let rows = match self.source.rows {
                Some(rows) => RowsOf::Given(&rows[range.clone()]),
                None => RowsOf::From(start as u32),
            };
            let codes = self.source.codes.read(range, &mut buffer)?;
            run_kernel!(means.isa, layout.num_words, spread, (layout: &Layout, codes: &[u64], rows: RowsOf<'_>, places: &mut Places<'_>));
        }
        Ok(())
    }
}

/// A table that grows part by part.
struct Assembly {
    lines: WordsMut,
    line_at: usize,
    escapes: Vec<u32>,
    residuals: WordsMut,
    residual_at: usize,
    rest: WordsMut,
    rows: Option<RowsBuilder>,
    num_entries: usize,
}

impl Assembly {
    fn new(job: &Job<'_>, num_codes: usize) -> Result<Self> {
        let top_bits = job.layout.permutation.top_bits();
        let width = residual_bits(top_bits, job.layout.shape.prefix_bits);
        let max_row = match job.source.rows {
            Some(rows) => rows.iter().copied().max().unwrap_or(0),
            None => num_codes.saturating_sub(1) as u32,
        };
        let rows = match job.layout.with_rows {
            true => Some(RowsBuilder::new(max_row, num_codes)?),
            false => None,
        };
        Ok(Assembly {
            lines: WordsMut::zeroed(job.layout.shape.num_words())?,
            line_at: 0,
            escapes: Vec::new(),
            residuals: WordsMut::zeroed(packed::num_words(num_codes, width))?,
            residual_at: 0,
            rest: WordsMut::zeroed((num_codes + packed::PADDING) * (job.layout.num_words - 1))?,
            rows,
            num_entries: 0,
        })
    }

    fn append(&mut self, job: &Job<'_>, part: Part) {
        self.line_at = part.directory.copy_to(
            job.layout.shape,
            self.lines.as_mut_slice(),
            self.line_at,
            self.num_entries,
            self.escapes.len(),
        );
        self.escapes.extend(&part.directory.escapes);
        self.residual_at = part
            .residuals
            .copy_to(self.residuals.as_mut_slice(), self.residual_at);
        let at = self.num_entries * (job.layout.num_words - 1);
        self.rest.as_mut_slice()[at..at + part.rest.len()].copy_from_slice(&part.rest);
        if let Some(rows) = &mut self.rows {
            rows.append(part.rows);
        }
        self.num_entries += part.num_entries;
    }

    fn finish(mut self, job: &Job<'_>, key: Key, bits: u32) -> Result<(Table, Option<Rows>)> {
        if !job.layout.shape.is_unary {
            let end = self.num_entries as u64;
            self.lines.as_mut_slice()[self.line_at / 2] |= end << (32 * (self.line_at % 2));
        }
        let directory = Directory {
            shape: job.layout.shape,
            lines: self.lines.freeze(),
            escapes: Words::from_u32(&self.escapes)?,
        };
        let width = residual_bits(
            job.layout.permutation.top_bits(),
            job.layout.shape.prefix_bits,
        );
        let num_entries = self.num_entries;
        let residuals = self
            .residuals
            .freeze()
            .first(packed::num_words(num_entries, width));
        let rest_len = (num_entries + packed::PADDING) * (job.layout.num_words - 1);
        let rest = self.rest.freeze().first(rest_len);
        let rows = self.rows.map(RowsBuilder::finish).transpose()?;
        let table = Table::new(key, bits, directory, num_entries, residuals, rest);
        Ok((table, rows))
    }
}
