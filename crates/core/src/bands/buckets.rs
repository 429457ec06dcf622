//! Which earlier documents does a document find in its buckets?

use super::BUCKET_SIZE;
use super::entries::{BandEntries, BandFiller, Chunk, Crowd, unpack};
use crate::error::{Error, invalid_if};
use crate::parallel::Run;
use crate::sketch::Signatures;

/// For each document, the bucket members that it looks at, in all bands: 8 bytes for each (position, level) with
/// members, 4 per member (up to 20 if full), 8 per position; `order[p]` is the row of position `p`.
#[derive(Debug)]
pub struct BandBuckets {
    /// Members of all buckets, ascending within each.
    members: Vec<u32>,
    /// Members of all full buckets.
    chunks: Vec<Chunk>,
    /// Packed slices, as in [`BandEntries`], ordered by the position that looks at them.
    slices: Vec<u64>,
    /// Position `p` looks at `slices[offsets[p]..offsets[p + 1]]`.
    offsets: Vec<usize>,
    num_rows: usize,
    /// How many times a document met a full last level: it looked at the members there without becoming one.
    pub num_capped: u64,
    crowded: Vec<u32>,
}

/// The members of one bucket that a position looks at.
pub(super) enum Slice<'a> {
    /// The first members, ascending.
    Few(&'a [u32]),
    /// All members of a full bucket.
    Full(&'a [Chunk]),
}

#[inline(always)]
pub(super) fn num_members(slice: u64) -> usize {
    unpack(slice).1.min(BUCKET_SIZE)
}

impl BandBuckets {
    /// Puts every position into its buckets, band by band: about 40 ns per (position, band), 28 bytes of scratch a
    /// thread.
    pub fn build(
        signatures: Signatures<'_>,
        order: &[u32],
        bands: u32,
        rows: u32,
        num_levels: u32,
        run: Run<'_>,
    ) -> Result<Self, Error> {
        check_bands(&signatures, order, bands, rows)?;
        let crowd = Crowd::new(order.len());
        let make = || BandFiller::new(signatures, order, rows, num_levels, 1, &crowd);
        let parts = run.map(bands as usize, 1, make, |filler, range| {
            let mut entries = BandEntries::default();
            filler.fill(range.start as u32, &mut entries, &mut |_| Ok(()))?;
            Ok::<_, Error>(entries)
        })?;
        let parts = parts.into_iter().collect::<Result<_, _>>()?;
        let merged = merge(order.len(), signatures.len(), parts);
        Ok(BandBuckets {
            crowded: crowd.positions(),
            ..merged
        })
    }

    /// Positions that met a full first-level bucket in at least one band, ascending.
    pub fn crowded(&self) -> &[u32] {
        &self.crowded
    }

    pub fn len(&self) -> usize {
        self.offsets.len() - 1
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    pub fn num_bytes(&self) -> usize {
        4 * (self.members.capacity() + self.crowded.capacity())
            + 16 * self.chunks.capacity()
            + 8 * self.slices.capacity()
            + 8 * self.offsets.capacity()
    }

    /// Returns a view of everything that a search reads.
    pub fn view(&self) -> BucketView<'_> {
        BucketView {
            members: &self.members,
            chunks: &self.chunks,
            slices: &self.slices,
            offsets: &self.offsets,
            first: 0,
            num_positions: self.len(),
            num_rows: self.num_rows,
        }
    }
}

/// The parts of buckets that a search reads: all members, and the slices of some consecutive positions.
#[derive(Debug, Clone, Copy)]
pub struct BucketView<'a> {
    pub members: &'a [u32],
    pub chunks: &'a [Chunk],
    /// Packed slices, as in [`BandEntries`], ordered by the position that looks at them.
    pub slices: &'a [u64],
    /// Position `first + p` looks at `slices[offsets[p]..offsets[p + 1]]`.
    pub offsets: &'a [usize],
    /// The first position whose slices are available.
    pub first: usize,
    pub num_positions: usize,
    pub num_rows: usize,
}

impl<'a> BucketView<'a> {
    #[inline(always)]
    pub(super) fn slices_of(&self, position: usize) -> &'a [u64] {
        let place = position - self.first;
        &self.slices[self.offsets[place]..self.offsets[place + 1]]
    }

    /// Returns the members of a packed slice.
    #[inline(always)]
    pub(super) fn unpack(&self, slice: u64) -> Slice<'a> {
        let (start, length) = unpack(slice);
        if length <= BUCKET_SIZE {
            Slice::Few(&self.members[start..start + length])
        } else {
            Slice::Full(&self.chunks[start..start + length - BUCKET_SIZE])
        }
    }
}

/// Merges the slices of all bands in order of position.
fn merge(num_positions: usize, num_rows: usize, bands: Vec<BandEntries>) -> BandBuckets {
    let mut offsets = vec![0_usize; num_positions + 1];
    for &position in bands.iter().flat_map(|band| &band.lookers) {
        offsets[position as usize] += 1;
    }
    let mut total = 0;
    for offset in &mut offsets {
        total += *offset;
        *offset = total;
    }
    let mut merged = BandBuckets {
        members: Vec::with_capacity(bands.iter().map(|band| band.members.len()).sum()),
        slices: vec![0; total],
        num_rows,
        offsets,
        chunks: Vec::with_capacity(bands.iter().map(|band| band.chunks.len()).sum()),
        num_capped: bands.iter().map(|band| band.num_capped).sum(),
        crowded: Vec::new(),
    };
    // Each offset starts at the end of its position's slices and moves down to the start.
    for mut band in bands {
        band.rebase(merged.members.len(), merged.chunks.len());
        merged.members.extend_from_slice(&band.members);
        merged.chunks.extend_from_slice(&band.chunks);
        for (&position, &slice) in band.lookers.iter().zip(&band.slices) {
            let slot = &mut merged.offsets[position as usize];
            *slot -= 1;
            merged.slices[*slot] = slice;
        }
    }
    merged
}

/// Checks that the bytes are whole rows of slots.
pub(super) fn check_layout(signatures: &Signatures<'_>) -> Result<(), Error> {
    let Signatures {
        bytes,
        num_slots,
        slot_bytes,
    } = *signatures;
    invalid_if(
        num_slots == 0 || ![1, 2, 4].contains(&slot_bytes),
        "signatures",
        || format!("{num_slots} slots of {slot_bytes} bytes; slots are 1 or more, bytes 1, 2 or 4"),
    )?;
    let row_bytes = num_slots * slot_bytes;
    invalid_if(!bytes.len().is_multiple_of(row_bytes), "signatures", || {
        format!(
            "{} bytes are not a multiple of the row size, {row_bytes} bytes",
            bytes.len()
        )
    })?;
    Ok(())
}

pub fn check_bands(
    signatures: &Signatures<'_>,
    order: &[u32],
    bands: u32,
    rows: u32,
) -> Result<(), Error> {
    check_layout(signatures)?;
    invalid_if(u32::try_from(order.len()).is_err(), "order", || {
        format!("{} positions; at most 4294967295 fit", order.len())
    })?;
    let num_rows = signatures.len();
    if let Some(row) = order.iter().find(|&&row| row as usize >= num_rows) {
        return Err(Error::invalid(
            "order",
            format!("row {row} is outside the {num_rows} rows of the signatures"),
        ));
    }
    let num_slots = signatures.num_slots;
    if bands == 0 || rows == 0 || u64::from(bands) * u64::from(rows) > num_slots as u64 {
        return Err(Error::invalid(
            "bands",
            format!(
                "{bands} bands of {rows} rows; both are 1 or more and bands * rows at most {num_slots}, the slots"
            ),
        ));
    }
    Ok(())
}
