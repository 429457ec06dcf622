//! What does one band add to the buckets?

use std::sync::atomic::{AtomicU64, Ordering};

use super::BUCKET_SIZE;
use super::grouping::Grouper;
use crate::hash::xxh3_64_with_seed;
use crate::prefetch::prefetch_read;
use crate::sketch::Signatures;

/// Number of rows that are prefetched ahead while keys are computed.
const LOOKAHEAD: usize = 16;

/// Number of positions whose keys are computed together.
const BLOCK: usize = 4096;

/// Number of bits of a packed slice for its length.
const LENGTH_BITS: u32 = 8;

/// Members of a full bucket among 64 neighboring positions: `[word, bits]`, bit `i` for position `64 * word + i`.
pub type Chunk = [u64; 2];

/// The entries of one band, or of one part of its keys.
#[derive(Debug, Default)]
pub struct BandEntries {
    /// Members of buckets of two or more, ascending within each.
    pub members: Vec<u32>,
    /// Members of the full buckets.
    pub chunks: Vec<Chunk>,
    /// The position that looks at each slice.
    pub lookers: Vec<u32>,
    /// Packed: `start << 8 | length`; a length above [`BUCKET_SIZE`] is that plus the length of a slice of `chunks`.
    pub slices: Vec<u64>,
    /// Number of times a position met a full last level.
    pub num_capped: u64,
}

impl BandEntries {
    /// Moves the slices by `num_members` members and `num_chunks` chunks.
    pub fn rebase(&mut self, num_members: usize, num_chunks: usize) {
        let (few, full) = (pack(num_members, 0), pack(num_chunks, 0));
        for slice in &mut self.slices {
            let is_few = unpack(*slice).1 <= BUCKET_SIZE;
            *slice += if is_few { few } else { full };
        }
    }

    /// Clears the entries but keeps their memory.
    pub fn clear(&mut self) {
        self.members.clear();
        self.chunks.clear();
        self.lookers.clear();
        self.slices.clear();
        self.num_capped = 0;
    }
}

pub(super) fn pack(start: usize, length: usize) -> u64 {
    (start as u64) << LENGTH_BITS | length as u64
}

#[inline(always)]
pub(super) fn unpack(slice: u64) -> (usize, usize) {
    let length = slice as usize & ((1 << LENGTH_BITS) - 1);
    ((slice >> LENGTH_BITS) as usize, length)
}

/// Fills the buckets of one band after another, a part of the keys at a time, with up to 60 bytes per position of it.
#[derive(Debug)]
pub struct BandFiller<'a> {
    signatures: Signatures<'a>,
    order: &'a [u32],
    rows: u32,
    num_levels: u32,
    num_parts: u64,
    crowd: &'a Crowd,
    grouper: Grouper,
    keys: Vec<u64>,
    positions: Vec<u32>,
}

impl<'a> BandFiller<'a> {
    /// Creates a filler; `order[p]` is the row of position `p`, and positions that meet a full bucket go to `crowd`.
    pub fn new(
        signatures: Signatures<'a>,
        order: &'a [u32],
        rows: u32,
        num_levels: u32,
        num_parts: usize,
        crowd: &'a Crowd,
    ) -> Self {
        BandFiller {
            signatures,
            order,
            rows,
            num_levels,
            num_parts: num_parts.max(1) as u64,
            crowd,
            grouper: Grouper::default(),
            keys: Vec::new(),
            positions: Vec::new(),
        }
    }

    /// Adds the buckets of a band to `entries`; `flush`, called after each part, may remove them.
    pub fn fill<E>(
        &mut self,
        band: u32,
        entries: &mut BandEntries,
        flush: &mut dyn FnMut(&mut BandEntries) -> Result<(), E>,
    ) -> Result<(), E> {
        let mut looking: Option<Positions> = None;
        for level in 0..self.num_levels {
            let mut overflow = Positions::default();
            let num_looking = looking.as_ref().map_or(self.order.len(), |held| held.len);
            let num_parts = (self.num_parts).min(num_looking as u64).max(1);
            for part in 0..num_parts {
                self.load(band, level, looking.as_ref(), part, num_parts);
                let positions = &self.positions;
                let order_len = self.order.len();
                let crowd = self.crowd;
                self.grouper.for_each_run(&self.keys, |run| {
                    add_bucket(run, positions, entries, |position| {
                        overflow.insert(position, order_len);
                        if level == 0 {
                            crowd.insert(position);
                        }
                    });
                });
                if level + 1 == self.num_levels && part + 1 == num_parts {
                    entries.num_capped += overflow.len as u64;
                }
                flush(entries)?;
            }
            if overflow.len == 0 {
                break;
            }
            looking = Some(overflow);
        }
        Ok(())
    }

    /// Collects the keys of one part with their positions, ascending.
    fn load(
        &mut self,
        band: u32,
        level: u32,
        looking: Option<&Positions>,
        part: u64,
        num_parts: u64,
    ) {
        let BandFiller {
            signatures,
            order,
            keys,
            positions,
            ..
        } = self;
        let mut key = BandKey::new(signatures, band, self.rows, level);
        let row_bytes = signatures.num_slots * signatures.slot_bytes;
        keys.clear();
        positions.clear();
        let mut block: Vec<u32> = Vec::with_capacity(BLOCK);
        let mut next = 0;
        while next < order.len() {
            block.clear();
            match looking {
                None => {
                    let end = (next + BLOCK).min(order.len());
                    block.extend(next as u32..end as u32);
                    next = end;
                }
                Some(looking) => next = looking.take_block(next, order.len(), &mut block),
            }
            for (i, &position) in block.iter().enumerate() {
                if let Some(&ahead) = block.get(i + LOOKAHEAD) {
                    let row = order[ahead as usize] as usize;
                    prefetch_read(signatures.bytes, row * row_bytes + key.start);
                }
                let value = key.of(signatures.row(order[position as usize] as usize));
                // By the low bits: the grouper sorts by the high ones.
                if num_parts == 1 || value % num_parts == part {
                    keys.push(value);
                    positions.push(position);
                }
            }
        }
    }
}

/// Adds the bucket of a run of equal keys: the slices of its members, and the overflow to the next level.
fn add_bucket(
    run: &[u32],
    positions: &[u32],
    entries: &mut BandEntries,
    mut overflow: impl FnMut(u32),
) {
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
            overflow(position_of(i));
        }
    }
}

/// Appends the members of a full bucket, ascending; returns the packed slice.
fn add_chunks(chunks: &mut Vec<Chunk>, members: &[u32]) -> u64 {
    let start = chunks.len();
    for same_word in members.chunk_by(|a, b| a / 64 == b / 64) {
        let bits = same_word
            .iter()
            .fold(0, |bits, member| bits | 1 << (member % 64));
        chunks.push([u64::from(same_word[0] / 64), bits]);
    }
    pack(start, BUCKET_SIZE + chunks.len() - start)
}

/// A set of positions, one bit each.
#[derive(Debug, Default)]
struct Positions {
    words: Vec<u64>,
    len: usize,
}

impl Positions {
    /// Adds an absent position, below `num_positions`.
    fn insert(&mut self, position: u32, num_positions: usize) {
        if self.words.is_empty() {
            self.words.resize(num_positions.div_ceil(64), 0);
        }
        self.words[position as usize / 64] |= 1 << (position % 64);
        self.len += 1;
    }

    /// Appends at least [`BLOCK`] members from `next` on, if there are; returns where to continue.
    fn take_block(&self, next: usize, end: usize, block: &mut Vec<u32>) -> usize {
        let mut word = next / 64;
        while word < self.words.len() && block.len() < BLOCK {
            push_bits(word as u32, self.words[word], block);
            word += 1;
        }
        (word * 64).min(end)
    }
}

/// A set of positions that is drained in ascending order: one bit per position, and one bit per 64 of these.
pub(super) struct PositionSet {
    words: Vec<u64>,
    /// Bit `i` of entry `j` is set if word `64*j + i` is not zero.
    summary: Vec<u64>,
}

impl PositionSet {
    /// Creates an empty set for positions below `len`, with `len / 8` bytes.
    pub(super) fn new(len: usize) -> Self {
        let num_words = len.div_ceil(64);
        PositionSet {
            words: vec![0; num_words],
            summary: vec![0; num_words.div_ceil(64)],
        }
    }

    /// The fixed cost of [`PositionSet::drain_into`], in words read.
    pub(super) fn summary_len(&self) -> usize {
        self.summary.len()
    }

    #[inline(always)]
    pub(super) fn insert(&mut self, position: u32) {
        self.insert_word(position / 64, 1 << (position % 64));
    }

    /// Inserts position `64 * word + i` for every bit `i` set in `bits`, which is not 0.
    #[inline(always)]
    pub(super) fn insert_word(&mut self, word: u32, bits: u64) {
        let word = word as usize;
        self.words[word] |= bits;
        self.summary[word / 64] |= 1 << (word % 64);
    }

    /// Appends the members in ascending order and clears the set.
    pub(super) fn drain_into(&mut self, out: &mut Vec<u32>) {
        for (i, summary) in self.summary.iter_mut().enumerate() {
            let mut live = std::mem::take(summary);
            while live != 0 {
                let word = i * 64 + live.trailing_zeros() as usize;
                live &= live - 1;
                push_bits(word as u32, std::mem::take(&mut self.words[word]), out);
            }
        }
    }
}

/// Appends position `64 * word + i` for every bit `i` set in `bits`.
#[inline(always)]
pub(super) fn push_bits(word: u32, mut bits: u64, out: &mut Vec<u32>) {
    while bits != 0 {
        out.push(word * 64 + bits.trailing_zeros());
        bits &= bits - 1;
    }
}

/// Computes the keys of one band at one level, row by row.
#[derive(Debug, Clone)]
pub struct BandKey {
    seed: u64,
    /// First byte of the band in a row.
    pub start: usize,
    /// Number of bytes up to the end of the row or of the key, whichever comes first.
    head_end: usize,
    /// Number of bytes from the start of the row if the key wraps around its end.
    tail_end: usize,
    joined: Vec<u8>,
}

impl BandKey {
    /// Creates the key of band `band` at `level`: `min(num_slots, rows * 2^level)` slots, taken cyclically.
    pub fn new(signatures: &Signatures<'_>, band: u32, rows: u32, level: u32) -> Self {
        let num_slots = signatures.num_slots;
        let length = ((rows as usize) << level).min(num_slots);
        let start = band as usize * rows as usize;
        let end = start + length;
        BandKey {
            seed: u64::from(band) * 256 + u64::from(level),
            start: start * signatures.slot_bytes,
            head_end: end.min(num_slots) * signatures.slot_bytes,
            tail_end: end.saturating_sub(num_slots) * signatures.slot_bytes,
            joined: Vec::new(),
        }
    }

    /// Returns the key of one row. Panics if the row is shorter than those of the signatures that this was created for.
    #[inline]
    pub fn of(&mut self, row: &[u8]) -> u64 {
        if self.tail_end == 0 {
            return xxh3_64_with_seed(&row[self.start..self.head_end], self.seed);
        }
        self.joined.clear();
        self.joined
            .extend_from_slice(&row[self.start..self.head_end]);
        self.joined.extend_from_slice(&row[..self.tail_end]);
        xxh3_64_with_seed(&self.joined, self.seed)
    }
}

/// Positions that met a full first-level bucket in some band. Two of them are not compared through their bands, unless
/// one is among the first [`BUCKET_SIZE`](super::BUCKET_SIZE) members of a bucket.
#[derive(Debug)]
pub struct Crowd {
    words: Vec<AtomicU64>,
}

impl Crowd {
    /// Creates an empty set for `num_positions` positions.
    pub fn new(num_positions: usize) -> Self {
        Crowd {
            words: (0..num_positions.div_ceil(64))
                .map(|_| AtomicU64::new(0))
                .collect(),
        }
    }

    pub(super) fn insert(&self, position: u32) {
        let word = &self.words[position as usize / 64];
        word.fetch_or(1 << (position % 64), Ordering::Relaxed);
    }

    pub fn positions(&self) -> Vec<u32> {
        let mut found = Vec::new();
        for (number, word) in self.words.iter().enumerate() {
            push_bits(number as u32, word.load(Ordering::Relaxed), &mut found);
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_hashes_of_the_slots_of_the_band_taken_cyclically() {
        let bytes: Vec<u8> = (0..10).collect();
        let signatures = Signatures {
            bytes: &bytes,
            num_slots: 5,
            slot_bytes: 2,
        };
        // Slots 2 and 3; then 2, 3, 4, 0; then all five, from 2 on. Seeds are band * 256 + level.
        let expected: [(u32, &[u8], u64); 3] = [
            (0, &[4, 5, 6, 7], 256),
            (1, &[4, 5, 6, 7, 8, 9, 0, 1], 257),
            (2, &[4, 5, 6, 7, 8, 9, 0, 1, 2, 3], 258),
        ];
        for (level, slots, seed) in expected {
            let key = BandKey::new(&signatures, 1, 2, level).of(signatures.row(0));
            assert_eq!(key, xxh3_64_with_seed(slots, seed), "{level}");
        }
    }
}
