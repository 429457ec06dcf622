//! Which documents share a bucket, if the buckets do not fit in memory?
//!
//! Bands are processed one after another, and each band in parts of its keys, so that memory depends neither on the
//! number of documents nor on collisions. The results of a part are appended to four files. In each part, documents and
//! the slices that they look at are in order of position; the slices of a range of positions are merged from all parts
//! when the range is requested. The files have no name once they are mapped, so nothing remains on disk.
//!
//! A part holds the keys with one remainder. Each pass over the signatures computes the keys again: a key takes 10 ns,
//! whereas writing and reading it would move 24 bytes. Every bucket lies entirely in one part, so levels are the same
//! as for buckets in memory. Spilling keys would be faster only for many bands and signatures larger than the page
//! cache.

#[cfg(test)]
mod tests;

use std::io::Write;
use std::ops::Range;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

use likewise_core::bands::{BandEntries, BandFiller, BucketView, Crowd, check_bands};
use likewise_core::error::invalid_if;
use likewise_core::parallel::{Run, lock};
use likewise_core::search::{Call, Pairs};
use likewise_core::sketch::Signatures;
use memmap2::Mmap;
use zerocopy::{FromBytes, Immutable, IntoBytes};

use crate::error::{Doing, Error, Result};
use crate::whole::TemporaryFile;

/// Bytes per position of the part that a thread holds: 28 of the filler, and the size of typical buckets.
const BYTES_A_POSITION: usize = 60;
/// Maximum number of key parts per band. Each part takes one pass over the signatures.
const MAX_PARTS: usize = 1 << 12;

/// The bucket members that each document looks at, stored in files. [`likewise_core::bands::BandBuckets`] holds them in
/// memory.
#[derive(Debug)]
pub struct SpilledBuckets {
    members: Column,
    /// Two words per chunk.
    chunks: Column,
    lookers: Column,
    slices: Column,
    /// The lookers of each part, ascending.
    runs: Vec<Range<usize>>,
    num_positions: usize,
    num_rows: usize,
    num_capped: u64,
    crowded: Vec<u32>,
}

/// Files that the threads append to.
struct Files {
    members: ColumnFile,
    chunks: ColumnFile,
    lookers: ColumnFile,
    slices: ColumnFile,
    runs: Vec<Range<usize>>,
    num_capped: u64,
}

impl SpilledBuckets {
    /// Puts every position into its buckets, band by band, on `num_levels` levels, with about `scratch_bytes` of memory
    /// for all threads. The files in `folder` take 12 bytes for each (position, level) that has members to look at, and
    /// 4 bytes for each member of a bucket of two or more. Cost: the cost of building the buckets in memory, and 10 ns
    /// per (position, band) for each further part. In addition to `scratch_bytes`, each thread keeps a quarter of a
    /// byte per position.
    #[allow(clippy::too_many_arguments)]
    pub fn build(
        signatures: Signatures<'_>,
        order: &[u32],
        bands: u32,
        rows: u32,
        num_levels: u32,
        folder: &Path,
        scratch_bytes: usize,
        run: Run<'_>,
    ) -> Result<Self, Error> {
        check_bands(&signatures, order, bands, rows)?;
        let threads = run.threads.clamp(1, bands as usize);
        let run = Run { threads, ..run };
        let needed = BYTES_A_POSITION * threads * order.len();
        let num_parts = needed.div_ceil(scratch_bytes.max(1)).clamp(1, MAX_PARTS);
        let files = Mutex::new(Files::create(folder)?);
        let is_failed = AtomicBool::new(false);
        let crowd = Crowd::new(order.len());
        let make = || {
            let filler = BandFiller::new(signatures, order, rows, num_levels, num_parts, &crowd);
            (filler, BandEntries::default(), Vec::new())
        };
        let done = run.map(
            bands as usize,
            1,
            make,
            |(filler, entries, sorted), range| {
                let mut flush = |entries: &mut BandEntries| {
                    if run.cancel.load(Ordering::Relaxed) || is_failed.load(Ordering::Relaxed) {
                        return Err(Error::Canceled);
                    }
                    sort_by_looker(entries, sorted);
                    let mut files = lock(&files);
                    files.append(entries)
                };
                let filled = filler.fill(range.start as u32, entries, &mut flush);
                is_failed.fetch_or(filled.is_err(), Ordering::Relaxed);
                filled
            },
        )?;
        // Threads that stopped because another thread failed are not reported.
        let failures = done.into_iter().filter_map(Result::err);
        if let Some(error) = failures.min_by_key(|error| matches!(error, Error::Canceled)) {
            return Err(error);
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

    /// How many times a document met a full last level.
    pub fn num_capped(&self) -> u64 {
        self.num_capped
    }

    /// Positions that met a full first-level bucket in at least one band, ascending.
    pub fn crowded(&self) -> &[u32] {
        &self.crowded
    }

    /// Bytes on disk.
    pub fn num_bytes(&self) -> usize {
        let columns = [&self.members, &self.chunks, &self.lookers, &self.slices];
        columns.iter().map(|column| column.num_bytes()).sum()
    }

    /// The file-based version of [`likewise_core::bands::BandBuckets::candidates`]. Cost: the same, and merging the
    /// slices of the range: 8 bytes per slice.
    pub fn candidates(
        &self,
        signatures: Signatures<'_>,
        order: &[u32],
        call: &Call<'_>,
    ) -> Result<Pairs, Error> {
        let range = &call.range;
        invalid_if(
            range.start > range.end || range.end as usize > self.num_positions,
            "range",
            || format!("{range:?} is outside the {} positions", self.num_positions),
        )?;
        let (offsets, slices) = self.bring_together(range);
        let view = BucketView {
            members: self.members.u32s(),
            chunks: self.chunks.u64s().as_chunks().0,
            slices: &slices,
            offsets: &offsets,
            first: range.start as usize,
            num_positions: self.num_positions,
            num_rows: self.num_rows,
        };
        Ok(view.candidates(signatures, order, call)?)
    }

    /// Returns the offsets and slices of the positions of a range.
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
        // Each offset starts at the end of its position's slices and moves down to the start.
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

/// Sorts lookers and their slices by looker.
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

/// A file that numbers are appended to. It is deleted when it is dropped.
pub(super) struct ColumnFile {
    spilled: TemporaryFile,
    num_bytes: usize,
}

/// The numbers of a file, mapped.
#[derive(Debug)]
pub(super) struct Column {
    /// `None` if the file is empty: an empty file cannot be mapped.
    map: Option<Mmap>,
}

impl ColumnFile {
    pub(super) fn create(folder: &Path) -> Result<Self> {
        Ok(ColumnFile {
            spilled: TemporaryFile::create(folder, "bands")?,
            num_bytes: 0,
        })
    }

    /// Number of values of `value_bytes` bytes written so far.
    pub(super) fn len(&self, value_bytes: usize) -> usize {
        self.num_bytes / value_bytes
    }

    pub(super) fn append<T: IntoBytes + Immutable>(&mut self, values: &[T]) -> Result<()> {
        let bytes = values.as_bytes();
        self.spilled.file.write_all(bytes).doing("write")?;
        self.num_bytes += bytes.len();
        Ok(())
    }

    /// Maps the file and removes its name.
    pub(super) fn map(self) -> Result<Column> {
        if self.num_bytes == 0 {
            return Ok(Column { map: None });
        }
        // SAFETY: the file was created here, no other code knows it, and `self` is consumed, so nothing writes to it
        // afterward.
        let map = unsafe { Mmap::map(&self.spilled.file) }.doing("map")?;
        Ok(Column { map: Some(map) })
    }
}

impl Column {
    pub(super) fn num_bytes(&self) -> usize {
        self.map.as_ref().map_or(0, |map| map.len())
    }

    pub(super) fn u32s(&self) -> &[u32] {
        self.values()
    }

    pub(super) fn u64s(&self) -> &[u64] {
        self.values()
    }

    /// A mapping starts at a page boundary and holds whole values, as they were appended.
    fn values<T: FromBytes + Immutable>(&self) -> &[T] {
        self.map
            .as_ref()
            .and_then(|map| <[T]>::ref_from_bytes(map).ok())
            .unwrap_or(&[])
    }
}
