//! Which cells of a table are processed together?

use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use likewise_core::parallel::map_ranges;
use likewise_hamming::index::TableBuilder;
use likewise_hamming::plan::Key;

use super::HammingBuild;
use crate::error::{Error, Result};
use crate::hamming_file::source::MAX_READ_ROWS;

/// Bits of the cells by which fingerprints are counted; the number grows if a cell would be too large.
const CELL_BITS: [u32; 3] = [14, 18, 22];
/// Memory that a thread needs for reading and for writing.
const BUFFER_BYTES: usize = 8 << 20;
/// Rows counted by a thread at once: whole reads, so that the checksums are the same in every pass.
const COUNT_ROWS: usize = 1 << 22;
/// Entries packed at once, unless a cell has more.
pub(super) const MIN_PACKED: usize = 1 << 16;
/// Pieces per thread that are packed before they are written.
pub(super) const PIECES_A_THREAD: usize = 4;
const _: () = assert!(COUNT_ROWS.is_multiple_of(MAX_READ_ROWS));

/// Neighboring cells and their entries.
pub(super) struct Slice {
    pub(super) cells: Range<usize>,
    pub(super) num_entries: usize,
}

/// The order in which the cells of a table are processed.
pub(super) struct Schedule {
    /// Number of fingerprints of each cell.
    pub(super) counts: Vec<u32>,
    /// A slice for each thread; the slices of one wave are in memory together.
    pub(super) waves: Vec<Vec<Slice>>,
}

impl Schedule {
    /// Number of passes over the fingerprints, including the one that counts them.
    pub(super) fn num_passes(&self) -> usize {
        1 + self.waves.len()
    }

    /// Counts the fingerprints by cell and assigns the cells to waves.
    pub(super) fn make(
        build: &HammingBuild<'_>,
        key: &Key,
        num_expected: usize,
        with_rows: bool,
    ) -> Result<(TableBuilder, Self)> {
        let threads = build.threads.max(1);
        let mut least_needed = usize::MAX;
        for cell_bits in CELL_BITS {
            let bits = build.source.bits();
            let builder = TableBuilder::new(bits, key, num_expected, with_rows, cell_bits);
            let counts = count(build, &builder)?;
            let largest = counts.iter().copied().max().unwrap_or(0) as usize;
            let entry_bytes = 8 * builder.entry_words();
            // Entries being packed exist in their original order, sorted, and as a piece, and then wait as a piece.
            let packing =
                6 * PIECES_A_THREAD * MIN_PACKED.min(build.source.len()).max(1) + 4 * largest;
            let fixed =
                4 * (threads + 1) * counts.len() + threads * (BUFFER_BYTES + entry_bytes * packing);
            let needed = fixed + threads * entry_bytes * largest;
            if needed <= build.memory_bytes {
                let most = (build.memory_bytes - fixed) / entry_bytes / threads;
                let waves = waves(&counts, most.min(u32::MAX as usize - 1), threads);
                return Ok((builder, Schedule { counts, waves }));
            }
            least_needed = least_needed.min(needed);
            if !builder.can_be_finer() {
                break;
            }
        }
        Err(Error::invalid(
            "memory",
            format!(
                "{} bytes are too few: so many fingerprints share their first bits that {least_needed} are needed",
                build.memory_bytes
            ),
        ))
    }
}

fn count(build: &HammingBuild<'_>, builder: &TableBuilder) -> Result<Vec<u32>> {
    let source = build.source;
    let total = Mutex::new(vec![0_u32; builder.num_cells()]);
    let checksum = AtomicU64::new(0);
    let parts = map_ranges(
        source.len(),
        COUNT_ROWS,
        build.threads,
        build.cancel,
        || (Vec::new(), vec![0_u32; builder.num_cells()]),
        |(words, counts), range| {
            let mut is_wide = Ok(());
            let part = source.each(range, words, build.cancel, |_, codes| {
                builder.count(codes, counts, build.isa);
                if is_wide.is_ok() {
                    is_wide = source.check_width(codes);
                }
            })?;
            checksum.fetch_add(part, Ordering::Relaxed);
            let mut total = total.lock().unwrap_or_else(PoisonError::into_inner);
            for (total, count) in total.iter_mut().zip(counts) {
                *total += std::mem::take(count);
            }
            is_wide
        },
    )?;
    parts.into_iter().collect::<Result<()>>()?;
    source.check_pass(checksum.into_inner())?;
    Ok(total.into_inner().unwrap_or_else(PoisonError::into_inner))
}

/// Divides the cells into slices of neighboring cells with at most `most` entries, one for each thread of each wave.
fn waves(counts: &[u32], most: usize, threads: usize) -> Vec<Vec<Slice>> {
    let total: usize = counts.iter().map(|&count| count as usize).sum();
    // Equal waves of equal slices.
    let num_slices = total.div_ceil(most.max(1)).max(1).next_multiple_of(threads);
    let fair = total.div_ceil(num_slices);
    let mut slices = Vec::new();
    let (mut start, mut num_entries) = (0, 0);
    for (cell, &count) in counts.iter().enumerate() {
        let count = count as usize;
        let is_full = num_entries + count > most || num_entries + count / 2 > fair;
        if is_full && num_entries > 0 {
            slices.push(Slice {
                cells: start..cell,
                num_entries,
            });
            (start, num_entries) = (cell, 0);
        }
        num_entries += count;
    }
    slices.push(Slice {
        cells: start..counts.len(),
        num_entries,
    });
    let mut slices = slices.into_iter().peekable();
    let mut waves = Vec::new();
    while slices.peek().is_some() {
        waves.push(slices.by_ref().take(threads).collect());
    }
    waves
}
