//! Which earlier documents does a document find in its buckets?

use std::sync::atomic::AtomicBool;

use super::grouping::Grouper;
use super::keys::BandKey;
use super::{BUCKET_SIZE, NUM_LEVELS};
use crate::error::Error;
use crate::parallel::map_ranges;
use crate::prefetch::prefetch_read;
use crate::sketch::Signatures;

/// Rows ahead for which memory is asked while keys are computed.
const LOOKAHEAD: usize = 16;

/// Bits of a packed slice that hold its length.
const LENGTH_BITS: u32 = 8;

/// For every document the bucket members that it looks at, in all bands.
///
/// Documents are *positions*, `0..order.len()`, in order of priority; `order[p]` is the row of position `p` in the signatures.
/// Memory follows the real collisions: 8 bytes for each (position, level) with anything to look at, 4 bytes a member of a bucket of
/// two or more (up to 20 if it is full), 8 bytes a position.
#[derive(Debug)]
pub struct BandBuckets {
    /// Members of all buckets, each bucket's ascending.
    members: Vec<u32>,
    /// Members of all full buckets.
    chunks: Vec<Chunk>,
    /// Packed slices, ordered by the position that looks at them: `start << 8 | length`. Up to [`BUCKET_SIZE`] the length is that of a slice of
    /// `members`, above it is [`BUCKET_SIZE`] more than that of a slice of `chunks`.
    pub(super) slices: Vec<u64>,
    /// Position `p` looks at `slices[offsets[p]..offsets[p + 1]]`.
    pub(super) offsets: Vec<usize>,
    /// Rows of the signatures.
    pub(super) num_rows: usize,
    num_capped: u64,
}

/// Members of a bucket among 64 neighbouring positions. Everybody behind a full bucket looks at the same members, so they are
/// kept as a set of positions takes them in: several at once.
#[derive(Debug, Clone, Copy)]
pub(super) struct Chunk {
    /// Positions `64 * word` and up.
    pub(super) word: u32,
    /// Bit `i`: position `64 * word + i`.
    pub(super) bits: u64,
}

/// Members of one bucket that a position looks at.
pub(super) enum Slice<'a> {
    /// The first members, ascending.
    Few(&'a [u32]),
    /// All members of a full bucket.
    Full(&'a [Chunk]),
}

/// What one band adds.
#[derive(Default)]
struct BandEntries {
    members: Vec<u32>,
    chunks: Vec<Chunk>,
    /// Positions that look, beside the slices they look at.
    lookers: Vec<u32>,
    slices: Vec<u64>,
    num_capped: u64,
}

fn pack(start: usize, length: usize) -> u64 {
    (start as u64) << LENGTH_BITS | length as u64
}

#[inline(always)]
fn unpack(slice: u64) -> (usize, usize) {
    let length = slice as usize & ((1 << LENGTH_BITS) - 1);
    ((slice >> LENGTH_BITS) as usize, length)
}

/// Number of members in a packed slice.
#[inline(always)]
pub(super) fn num_members(slice: u64) -> usize {
    unpack(slice).1.min(BUCKET_SIZE)
}

impl BandBuckets {
    /// Puts every position into its buckets, band by band.
    ///
    /// # Errors
    /// [`Error::InvalidParameter`] where the shapes do not fit (`bands * rows` above the slots, a row of `order` that does not exist,
    /// bytes that are not whole rows); [`Error::Cancelled`].
    ///
    /// # Cost
    /// About 40 ns a (position, band) on one core; 28 bytes a position of scratch a thread.
    pub fn build(
        signatures: Signatures<'_>,
        order: &[u32],
        bands: u32,
        rows: u32,
        threads: usize,
        cancel: &AtomicBool,
    ) -> Result<Self, Error> {
        check_shapes(&signatures, order, bands, rows)?;
        let parts = map_ranges(
            bands as usize,
            1,
            threads,
            cancel,
            Grouper::default,
            |grouper, range| fill_band(&signatures, order, range.start as u32, rows, grouper),
        )?;
        Ok(merge(order.len(), signatures.len(), parts))
    }

    /// How often a document met a full last level: it looked at the members there and became none.
    pub fn num_capped(&self) -> u64 {
        self.num_capped
    }

    /// Number of positions.
    pub fn len(&self) -> usize {
        self.offsets.len() - 1
    }

    /// Whether there is no position.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Bytes held.
    pub fn num_bytes(&self) -> usize {
        4 * self.members.capacity()
            + 16 * self.chunks.capacity()
            + 8 * self.slices.capacity()
            + 8 * self.offsets.capacity()
    }

    /// The members of a packed slice.
    #[inline(always)]
    pub(super) fn unpack(&self, slice: u64) -> Slice<'_> {
        let (start, length) = unpack(slice);
        if length <= BUCKET_SIZE {
            Slice::Few(&self.members[start..start + length])
        } else {
            Slice::Full(&self.chunks[start..start + length - BUCKET_SIZE])
        }
    }
}

/// Whether the bytes are whole rows of slots.
pub(super) fn check_layout(signatures: &Signatures<'_>) -> Result<(), Error> {
    let Signatures {
        bytes,
        num_slots,
        slot_bytes,
    } = *signatures;
    if num_slots == 0 || ![1, 2, 4].contains(&slot_bytes) {
        return Err(Error::invalid(
            "signatures",
            format!(
                "{num_slots} slots of {slot_bytes} bytes; slots are 1 or more, bytes 1, 2 or 4"
            ),
        ));
    }
    let row_bytes = num_slots * slot_bytes;
    if !bytes.len().is_multiple_of(row_bytes) {
        return Err(Error::invalid(
            "signatures",
            format!("{} bytes are not whole rows of {row_bytes}", bytes.len()),
        ));
    }
    Ok(())
}

fn check_shapes(
    signatures: &Signatures<'_>,
    order: &[u32],
    bands: u32,
    rows: u32,
) -> Result<(), Error> {
    check_layout(signatures)?;
    if u32::try_from(order.len()).is_err() {
        return Err(Error::invalid(
            "order",
            format!("{} positions; at most 4294967295 fit", order.len()),
        ));
    }
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

fn fill_band(
    signatures: &Signatures<'_>,
    order: &[u32],
    band: u32,
    rows: u32,
    grouper: &mut Grouper,
) -> BandEntries {
    let mut entries = BandEntries::default();
    let mut positions: Vec<u32> = (0..order.len() as u32).collect();
    let mut keys: Vec<u64> = Vec::new();
    let mut overflow: Vec<u32> = Vec::new();
    for level in 0..NUM_LEVELS {
        let mut key = BandKey::new(signatures, band, rows, level);
        let row_bytes = signatures.num_slots * signatures.slot_bytes;
        keys.clear();
        keys.extend(positions.iter().enumerate().map(|(i, &position)| {
            if let Some(&ahead) = positions.get(i + LOOKAHEAD) {
                let row = order[ahead as usize] as usize;
                prefetch_read(signatures.bytes, row * row_bytes + key.start());
            }
            key.of(signatures.row(order[position as usize] as usize))
        }));
        grouper.for_each_run(&keys, |run| {
            let held = run.len().min(BUCKET_SIZE);
            let start = entries.members.len();
            let position_of = |&i: &u32| positions[i as usize];
            entries.members.extend(run[..held].iter().map(position_of));
            for (num_earlier, i) in run[..held].iter().enumerate().skip(1) {
                entries.lookers.push(position_of(i));
                entries.slices.push(pack(start, num_earlier));
            }
            if run.len() > BUCKET_SIZE {
                let full = add_chunks(&mut entries.chunks, &entries.members[start..]);
                for i in &run[held..] {
                    entries.lookers.push(position_of(i));
                    entries.slices.push(full);
                    overflow.push(position_of(i));
                }
            }
        });
        if overflow.is_empty() {
            break;
        }
        // Runs come in order of key; members of the next level are chosen in order of priority.
        overflow.sort_unstable();
        std::mem::swap(&mut positions, &mut overflow);
        overflow.clear();
        if level + 1 == NUM_LEVELS {
            entries.num_capped = positions.len() as u64;
        }
    }
    entries
}

/// Appends the members of a full bucket, ascending, and returns the packed slice.
fn add_chunks(chunks: &mut Vec<Chunk>, members: &[u32]) -> u64 {
    let start = chunks.len();
    for same_word in members.chunk_by(|a, b| a / 64 == b / 64) {
        chunks.push(Chunk {
            word: same_word[0] / 64,
            bits: same_word
                .iter()
                .fold(0, |bits, member| bits | 1 << (member % 64)),
        });
    }
    pack(start, BUCKET_SIZE + chunks.len() - start)
}

/// Brings the slices of all bands into order of position.
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
    };
    // Offsets stand at the ends of the positions' slices and walk down to their starts.
    for band in bands {
        let few_base = pack(merged.members.len(), 0);
        let full_base = pack(merged.chunks.len(), 0);
        merged.members.extend_from_slice(&band.members);
        merged.chunks.extend_from_slice(&band.chunks);
        for (&position, &slice) in band.lookers.iter().zip(&band.slices) {
            let slot = &mut merged.offsets[position as usize];
            *slot -= 1;
            let is_few = unpack(slice).1 <= BUCKET_SIZE;
            merged.slices[*slot] = slice + if is_few { few_base } else { full_base };
        }
    }
    merged
}
