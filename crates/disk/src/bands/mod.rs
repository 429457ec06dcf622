//! Which documents share a bucket, where memory does not hold the buckets?
//!
//! Bands are gone through one after the other, and of each a part of its keys at a time, so that memory follows neither documents nor
//! collisions. What comes of a part is appended to four files, and who looks at what stands there in runs in order of position; a range of
//! positions is brought together from all runs when it is asked for. Nothing is kept: the files have no name once they are mapped.
//!
//! A part holds the keys of one remainder, each pass over the signatures computing them again: a key takes 10 ns,
//! whereas writing and reading it would move 24 bytes. A bucket is in one part as a whole, so levels are those of
//! buckets in memory. Spilled keys would pay where signatures exceed the page cache and bands are many; only the speed
//! would differ.

mod column;
#[cfg(test)]
mod tests;

use std::ops::Range;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

use likewise_core::bands::{BandEntries, BandFiller, BucketView, Crowd, Pairs, check_bands};
use likewise_core::isa::Isa;
use likewise_core::parallel::map_ranges;
use likewise_core::sketch::Signatures;

use crate::error::Error;
use column::{Column, ColumnFile};

/// Bytes a position of a part that a thread holds: 28 of the filler, and what usual buckets come to.
const BYTES_A_POSITION: usize = 60;
/// Parts of the keys of a band, at most: each is a pass over the signatures.
const MAX_PARTS: usize = 1 << 12;

/// For every document the bucket members that it looks at, in files; as [`likewise_core::bands::BandBuckets`], which has them in memory.
#[derive(Debug)]
pub struct SpilledBuckets {
    members: Column,
    /// Two words a chunk.
    chunks: Column,
    lookers: Column,
    slices: Column,
    /// Lookers of one part each, ascending.
    runs: Vec<Range<usize>>,
    num_positions: usize,
    num_rows: usize,
    num_capped: u64,
    crowded: Vec<u32>,
}

/// What threads append to.
struct Files {
    members: ColumnFile,
    chunks: ColumnFile,
    lookers: ColumnFile,
    slices: ColumnFile,
    runs: Vec<Range<usize>>,
    num_capped: u64,
}

impl SpilledBuckets {
    /// Puts every position into its buckets, band by band, on `num_levels` levels, with about `scratch_bytes` of memory for all threads.
    ///
    /// `folder` takes files of 12 bytes for each (position, level) with anything to look at and 4 a member of a bucket of two or more.
    ///
    /// # Errors
    /// As [`likewise_core::bands::BandBuckets::build`]; [`Error::Io`].
    ///
    /// # Cost
    /// That of the buckets in memory, and 10 ns a (position, band) for each further part. A quarter of a byte a position stays a thread's own
    /// beside `scratch_bytes`.
    #[allow(clippy::too_many_arguments)]
    pub fn build(
        signatures: Signatures<'_>,
        order: &[u32],
        bands: u32,
        rows: u32,
        num_levels: u32,
        folder: &Path,
        scratch_bytes: usize,
        threads: usize,
        cancel: &AtomicBool,
    ) -> Result<Self, Error> {
        check_bands(&signatures, order, bands, rows)?;
        let threads = threads.clamp(1, bands as usize);
        let needed = BYTES_A_POSITION * threads * order.len();
        let num_parts = needed.div_ceil(scratch_bytes.max(1)).clamp(1, MAX_PARTS);
        let files = Mutex::new(Files::create(folder)?);
        let is_failed = AtomicBool::new(false);
        let crowd = Crowd::new(order.len());
        let done = map_ranges(
            bands as usize,
            1,
            threads,
            cancel,
            || {
                let filler =
                    BandFiller::new(signatures, order, rows, num_levels, num_parts, &crowd);
                (filler, BandEntries::default(), Vec::new())
            },
            |(filler, entries, sorted), range| {
                let mut flush = |entries: &mut BandEntries| {
                    if cancel.load(Ordering::Relaxed) || is_failed.load(Ordering::Relaxed) {
                        return Err(Error::Canceled);
                    }
                    sort_by_looker(entries, sorted);
                    let mut files = files.lock().unwrap_or_else(PoisonError::into_inner);
                    files.append(entries)
                };
                let filled = filler.fill(range.start as u32, entries, &mut flush);
                is_failed.fetch_or(filled.is_err(), Ordering::Relaxed);
                filled
            },
        )?;
        let mut failures: Vec<Error> = done.into_iter().filter_map(Result::err).collect();
        // Threads that only gave up since another failed say nothing.
        if let Some(first) = failures.iter().position(|e| !matches!(e, Error::Canceled)) {
            return Err(failures.swap_remove(first));
        }
        if let Some(canceled) = failures.pop() {
            return Err(canceled);
        }
        let files = files.into_inner().unwrap_or_else(PoisonError::into_inner);
        Ok(SpilledBuckets {
            members: files.members.map()?,
            chunks: files.chunks.map()?,
            lookers: files.lookers.map()?,
            slices: files.slices.map()?,
            runs: files.runs,
            num_positions: order.len(),
            num_rows: signatures.len(),
            num_capped: files.num_capped,
            crowded: crowd.positions(),
        })
    }

    /// How often a document met a full last level.
    pub fn num_capped(&self) -> u64 {
        self.num_capped
    }

    /// Positions that met a full first-level bucket in some band, ascending.
    pub fn crowded(&self) -> &[u32] {
        &self.crowded
    }

    /// Bytes on disk.
    pub fn num_bytes(&self) -> usize {
        let columns = [&self.members, &self.chunks, &self.lookers, &self.slices];
        columns.iter().map(|column| column.num_bytes()).sum()
    }

    /// As [`likewise_core::bands::BandBuckets::candidates_up_to`].
    ///
    /// # Errors
    /// The same.
    ///
    /// # Cost
    /// The same, and bringing the slices of the range together: 8 bytes each.
    #[allow(clippy::too_many_arguments)]
    pub fn candidates_up_to(
        &self,
        max_pairs: usize,
        signatures: Signatures<'_>,
        order: &[u32],
        range: Range<u32>,
        states: Option<&[u8]>,
        min_equal: u32,
        isa: Isa,
        threads: usize,
        cancel: &AtomicBool,
    ) -> Result<Pairs, Error> {
        if range.start > range.end || range.end as usize > self.num_positions {
            return Err(Error::invalid(
                "range",
                format!("{range:?} is outside the {} positions", self.num_positions),
            ));
        }
        let (offsets, slices) = self.bring_together(&range);
        let view = BucketView {
            members: self.members.u32s(),
            chunks: self.chunks.u64s().as_chunks().0,
            slices: &slices,
            offsets: &offsets,
            first: range.start as usize,
            num_positions: self.num_positions,
            num_rows: self.num_rows,
        };
        Ok(view.candidates_up_to(
            max_pairs, signatures, order, range, states, min_equal, isa, threads, cancel,
        )?)
    }

    /// Offsets and slices of the positions of a range.
    fn bring_together(&self, range: &Range<u32>) -> (Vec<usize>, Vec<u64>) {
        let (lookers, slices) = (self.lookers.u32s(), self.slices.u64s());
        let mut offsets = vec![0; range.len() + 1];
        let mut parts = Vec::new();
        for run in &self.runs {
            let of_run = &lookers[run.clone()];
            let start = run.start + of_run.partition_point(|&looker| looker < range.start);
            let end = start + lookers[start..run.end].partition_point(|&looker| looker < range.end);
            if start < end {
                for &looker in &lookers[start..end] {
                    offsets[(looker - range.start) as usize] += 1;
                }
                parts.push(start..end);
            }
        }
        let mut total = 0;
        for offset in &mut offsets {
            total += *offset;
            *offset = total;
        }
        let mut found = vec![0; total];
        // Offsets stand at the ends of the positions' slices and walk down to their starts.
        for part in parts {
            for (&looker, &slice) in lookers[part.clone()].iter().zip(&slices[part]) {
                let place = &mut offsets[(looker - range.start) as usize];
                *place -= 1;
                found[*place] = slice;
            }
        }
        (offsets, found)
    }
}

impl Files {
    fn create(folder: &Path) -> Result<Self, Error> {
        let column = || ColumnFile::create(folder);
        Ok(Files {
            members: column()?,
            chunks: column()?,
            lookers: column()?,
            slices: column()?,
            runs: Vec::new(),
            num_capped: 0,
        })
    }

    /// Appends what a part came to, and forgets it.
    fn append(&mut self, entries: &mut BandEntries) -> Result<(), Error> {
        entries.rebase(self.members.len(4), self.chunks.len(16));
        let first = self.lookers.len(4);
        self.members.append(&entries.members)?;
        self.chunks.append(entries.chunks.as_flattened())?;
        self.lookers.append(&entries.lookers)?;
        self.slices.append(&entries.slices)?;
        if !entries.lookers.is_empty() {
            self.runs.push(first..first + entries.lookers.len());
        }
        self.num_capped += entries.num_capped;
        entries.clear();
        Ok(())
    }
}

/// Brings lookers and their slices into order of the looker.
fn sort_by_looker(entries: &mut BandEntries, sorted: &mut Vec<(u32, u64)>) {
    sorted.clear();
    sorted.extend(
        entries
            .lookers
            .iter()
            .copied()
            .zip(entries.slices.iter().copied()),
    );
    sorted.sort_unstable();
    for (i, &(looker, slice)) in sorted.iter().enumerate() {
        entries.lookers[i] = looker;
        entries.slices[i] = slice;
    }
}
