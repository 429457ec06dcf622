//! How is a table built?
//!
//! The range of prefixes is cut into slices of about equal numbers of codes. A slice is one piece of work for one thread: it goes over all
//! codes and takes those of its range, sorts them, drops repetitions, and packs them. So threads share nothing, no order of writing
//! has to be agreed on, and a table of more codes than fit in memory twice is built slice after slice from a mapped file.

use std::ops::Range;
use std::sync::atomic::AtomicBool;

use super::super::distance::Fingerprints;
use super::super::kernels::run_kernel;
use super::super::plan::Key;
use super::directory::Directory;
use super::kernel::TableKernel;
use super::packed;
use super::piece::{Layout, Part};
use super::rows::{Rows, RowsBuilder};
use super::table::{Table, residual_bits};
use super::words::{Words, WordsMut};
use crate::error::Error;
use crate::isa::Isa;
use crate::parallel::map_ranges;

/// Bits of the prefix by which codes are counted before slices are cut.
const MAX_CELL_BITS: u32 = 14;
/// Codes counted by a thread at once.
const COUNT_GRAIN: usize = 1 << 18;
/// Fewer codes are not worth a slice of their own.
const MIN_SLICE: usize = 1 << 15;

/// What tables are built from.
#[derive(Clone, Copy)]
pub(super) struct Source<'a> {
    pub(super) fingerprints: Fingerprints<'a>,
    /// Row of each fingerprint; its position where `None`.
    pub(super) rows: Option<&'a [u32]>,
}

/// How tables are built.
#[derive(Clone, Copy)]
pub(super) struct Means<'a> {
    pub(super) isa: Isa,
    pub(super) threads: usize,
    /// Most bytes of the slices in progress, all threads together.
    pub(super) slice_bytes: usize,
    pub(super) cancel: &'a AtomicBool,
}

/// One table in the making.
struct Job<'a> {
    source: Source<'a>,
    layout: Layout,
}

/// Neighbouring cells and the codes in them.
struct Slice {
    cells: Range<usize>,
    num_codes: usize,
}

/// The table of `key`, with its rows if `with_rows`. `num_expected`: distinct codes, or a number not far above.
///
/// # Errors
/// [`Error::Cancelled`], [`Error::OutOfMemory`].
pub(super) fn build_table(
    source: Source<'_>,
    key: Key,
    num_expected: usize,
    with_rows: bool,
    means: Means<'_>,
) -> Result<(Table, Option<Rows>), Error> {
    let bits = source.fingerprints.bits;
    let job = Job {
        source,
        layout: Layout::new(bits, &key, num_expected, with_rows, MAX_CELL_BITS),
    };
    let counts = job.count_cells(means)?;
    let slices = job.cut(&counts, means);
    let mut assembly = Assembly::new(&job, source.fingerprints.len())?;
    for wave in slices.chunks(means.threads.max(1)) {
        let parts = map_ranges(
            wave.len(),
            1,
            means.threads,
            means.cancel,
            || (),
            |(), range| job.build_slice(&wave[range.start], means.isa),
        )?;
        for part in parts {
            assembly.append(&job, part);
        }
    }
    assembly.finish(&job, key, bits)
}

impl Job<'_> {
    fn count_cells(&self, means: Means<'_>) -> Result<Vec<usize>, Error> {
        let parts = map_ranges(
            self.source.fingerprints.len(),
            COUNT_GRAIN,
            means.threads,
            means.cancel,
            || (),
            |(), range| {
                let mut counts = vec![0_u32; 1 << self.layout.cell_bits];
                let (job, counts_of, range) = (self, counts.as_mut_slice(), range);
                run_kernel!(means.isa, self.layout.num_words, count, (job: &Job<'_>, range: Range<usize>, counts_of: &mut [u32]));
                counts
            },
        )?;
        let mut total = vec![0; 1 << self.layout.cell_bits];
        for counts in parts {
            for (total, count) in total.iter_mut().zip(counts) {
                *total += count as usize;
            }
        }
        Ok(total)
    }

    /// Slices of about equal numbers of codes.
    fn cut(&self, counts: &[usize], means: Means<'_>) -> Vec<Slice> {
        let len = self.source.fingerprints.len();
        let threads = means.threads.max(1);
        let entry_bytes = 8 * self.layout.entry_words();
        // Entries, as many to sort through, and what they become.
        let most = means.slice_bytes / threads / (3 * entry_bytes);
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

    fn build_slice(&self, slice: &Slice, isa: Isa) -> Part {
        let num_words = self.layout.num_words;
        let width = self.layout.entry_words();
        let mut flat = vec![0_u64; (slice.num_codes + 1) * width];
        let (job, found) = (self, flat.as_mut_slice());
        run_kernel!(isa, num_words, collect, (job: &Job<'_>, slice: &Slice, found: &mut [u64]));
        flat.truncate(slice.num_codes * width);
        self.layout.pack(slice.cells.clone(), &mut flat)
    }
}

/// Counts the codes of a range by cell.
///
/// # Safety
/// The processor has the kernel's instruction set; the codes have `W` words.
#[inline(always)]
unsafe fn count<K: TableKernel, const W: usize>(
    job: &Job<'_>,
    range: Range<usize>,
    counts: &mut [u32],
) {
    let (codes, _) = job.source.fingerprints.words.as_chunks::<W>();
    for code in &codes[range] {
        // SAFETY: passed on from the caller.
        let permuted = unsafe { K::permute(&job.layout.permutation, code) };
        counts[job.layout.cell_of(permuted[0]) as usize] += 1;
    }
}

/// Writes the permuted codes of a slice one after the other, with their rows where these are kept. There is room for one more.
///
/// # Safety
/// As [`count`].
#[inline(always)]
unsafe fn collect<K: TableKernel, const W: usize>(job: &Job<'_>, slice: &Slice, found: &mut [u64]) {
    let (codes, _) = job.source.fingerprints.words.as_chunks::<W>();
    let width = W + usize::from(job.layout.with_rows);
    let (from, num_cells) = (slice.cells.start as u64, slice.cells.len() as u64);
    let mut at = 0;
    for (position, code) in codes.iter().enumerate() {
        // SAFETY: passed on from the caller.
        let permuted = unsafe { K::permute(&job.layout.permutation, code) };
        // Written in any case and overwritten by the next unless it belongs here: a branch would be guessed wrong half of the time.
        found[at..at + W].copy_from_slice(&permuted);
        if job.layout.with_rows {
            found[at + W] = match job.source.rows {
                Some(rows) => u64::from(rows[position]),
                None => position as u64,
            };
        }
        let is_inside = job.layout.cell_of(permuted[0]).wrapping_sub(from) < num_cells;
        at += width * usize::from(is_inside);
    }
}

/// A table growing part by part.
struct Assembly {
    lines: WordsMut,
    /// Where the next line or start goes.
    line_at: usize,
    escapes: Vec<u32>,
    residuals: WordsMut,
    residual_at: usize,
    rest: WordsMut,
    rows: Option<RowsBuilder>,
    num_entries: usize,
}

impl Assembly {
    fn new(job: &Job<'_>, num_codes: usize) -> Result<Self, Error> {
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

    fn finish(
        mut self,
        job: &Job<'_>,
        key: Key,
        bits: u32,
    ) -> Result<(Table, Option<Rows>), Error> {
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
