//! How are the tables on blocks built and searched?

use std::ops::Range;

use super::code_planes::CodePlanes;
use super::distance::distance;
use super::kernels::{Kernel, LANES};
use super::tables::{Request, pack_hit};
use super::{BLOCK_BITS, NUM_BLOCK_VALUES};
use likewise_core::prefetch::prefetch_read;
use likewise_core::states::REMOVED;

/// Buckets asked for before the first of them is compared.
const NUM_PENDING: usize = 64;
/// Size from which finding the end of the earlier members beats comparing all.
const LARGE_BUCKET: u32 = 64;

/// The codes by the value of one block.
#[derive(Debug)]
pub(super) struct BlockTable {
    /// First bit of the block within its word, and the word.
    shift: u32,
    word: usize,
    pub(super) radius: u32,
    /// Bucket of value `v` is `offsets[v]..offsets[v + 1]`.
    offsets: Vec<u32>,
    /// Where a position stands: the members of its bucket before it are the earlier ones.
    slots: Vec<u32>,
    /// Positions, ascending within a bucket.
    positions: Vec<u32>,
    /// Codes of `positions`, so that comparing a bucket reads memory in one stretch.
    codes: CodePlanes,
}

/// What is XORed to a block to reach all values near it.
#[derive(Debug)]
pub(super) struct Neighbours {
    /// Values by weight; the first is 0.
    masks: Vec<u16>,
    /// Number of masks of weight `radius` or less.
    ends: Vec<usize>,
}

impl Neighbours {
    pub(super) fn new(max_radius: u32) -> Self {
        let mut masks: Vec<u16> = if max_radius == 0 {
            vec![0]
        } else {
            (0..=u16::MAX)
                .filter(|mask| mask.count_ones() <= max_radius)
                .collect()
        };
        masks.sort_by_key(|mask| mask.count_ones());
        let ends = (0..=max_radius)
            .map(|radius| masks.partition_point(|mask| mask.count_ones() <= radius))
            .collect();
        Neighbours { masks, ends }
    }

    /// Masks of weight 0 to `radius`, 0 first.
    fn within(&self, radius: u32) -> &[u16] {
        &self.masks[..self.ends[radius as usize]]
    }
}

impl BlockTable {
    pub(super) fn new(codes: &CodePlanes, block: u32, radius: u32) -> Self {
        let blocks_a_word = u64::BITS / BLOCK_BITS;
        let mut offsets = vec![0_u32; NUM_BLOCK_VALUES + 1];
        for value in codes.block_values(block) {
            offsets[value] += 1;
        }
        let mut total = 0;
        for offset in &mut offsets {
            total += std::mem::replace(offset, total);
        }
        let mut next = offsets.clone();
        let slots: Vec<u32> = codes
            .block_values(block)
            .map(|value| {
                let slot = next[value];
                next[value] += 1;
                slot
            })
            .collect();
        let mut positions = vec![0; codes.len()];
        for (position, &slot) in slots.iter().enumerate() {
            positions[slot as usize] = position as u32;
        }
        let mut sorted = CodePlanes::new(codes.len(), codes.num_words());
        for word in 0..codes.num_words() {
            let target = sorted.plane_mut(word);
            for (&code, &slot) in codes.plane(word).iter().zip(&slots) {
                target[slot as usize] = code;
            }
        }
        BlockTable {
            shift: block % blocks_a_word * BLOCK_BITS,
            word: (block / blocks_a_word) as usize,
            radius,
            offsets,
            slots,
            positions,
            codes: sorted,
        }
    }

    #[inline(always)]
    fn block_of<const W: usize>(&self, code: &[u64; W]) -> u16 {
        (code[self.word % W] >> self.shift) as u16
    }

    /// Whether two codes lie within the radius in this block.
    #[inline(always)]
    fn finds<const W: usize>(&self, differing: &[u64; W]) -> bool {
        self.block_of(differing).count_ones() <= self.radius
    }
}

/// A bucket to compare with a later position.
#[derive(Clone, Copy, Default)]
struct Probe {
    later: u32,
    start: u32,
    end: u32,
}

/// Buckets that were asked for and not compared yet.
struct Pending {
    probes: [Probe; NUM_PENDING],
    len: usize,
}

impl Pending {
    /// Takes a bucket in; an empty one is dropped. Returns whether there is no room for another.
    #[inline(always)]
    fn push<const W: usize>(&mut self, table: &BlockTable, probe: Probe) -> bool {
        self.probes[self.len] = probe;
        if probe.start < probe.end {
            self.len += 1;
            for word in 0..W {
                let first = word * table.codes.stride() + probe.start as usize;
                prefetch_read(table.codes.data(), first);
                prefetch_read(table.codes.data(), first + LANES - 1);
            }
        }
        self.len == NUM_PENDING
    }
}

/// Searches all tables for the positions of `piece`.
///
/// # Safety
/// The processor has the kernel's instruction set; the codes have `W` words.
#[inline(always)]
pub(super) unsafe fn probe_range<K: Kernel, const W: usize>(
    request: &Request<'_>,
    piece: Range<u32>,
    hits: &mut Vec<u64>,
) {
    let codes = &request.tables.codes;
    let mut pending = Pending {
        probes: [Probe::default(); NUM_PENDING],
        len: 0,
    };
    for (rank, table) in request.tables.tables.iter().enumerate() {
        let masks = request.tables.neighbours.within(table.radius);
        for later in piece.clone() {
            let value = table.block_of(&codes.get::<W>(later as usize));
            for &mask in masks {
                let near = usize::from(value ^ mask);
                let start = table.offsets[near];
                // In its own bucket the earlier ones stand before it.
                let end = if mask == 0 {
                    table.slots[later as usize]
                } else {
                    table.offsets[near + 1]
                };
                if pending.push::<W>(table, Probe { later, start, end }) {
                    // SAFETY: passed on from the caller.
                    unsafe {
                        compare_buckets::<K, W>(request, rank, &pending.probes, &piece, hits);
                    }
                    if request.is_too_dense(&piece, hits.len()) {
                        return;
                    }
                    pending.len = 0;
                }
            }
        }
        // SAFETY: passed on from the caller.
        unsafe {
            let probes = &pending.probes[..pending.len];
            compare_buckets::<K, W>(request, rank, probes, &piece, hits);
        }
        pending.len = 0;
    }
}

/// Compares buckets of table `rank` and keeps the pairs that this table owns: the first one that finds a pair reports it.
///
/// # Safety
/// As [`probe_range`]; the probes are of that table.
#[inline(always)]
unsafe fn compare_buckets<K: Kernel, const W: usize>(
    request: &Request<'_>,
    rank: usize,
    probes: &[Probe],
    piece: &Range<u32>,
    hits: &mut Vec<u64>,
) {
    let (before, rest) = request.tables.tables.split_at(rank);
    let table = &rest[0];
    let within = request.tables.within;
    let stride = table.codes.stride();
    for &Probe {
        later,
        start,
        mut end,
    } in probes
    {
        let query = request.tables.codes.get::<W>(later as usize);
        if end - start > LARGE_BUCKET {
            // Small buckets are counted when all that were asked for are compared.
            if request.is_too_dense(piece, hits.len()) {
                return;
            }
            let members = &table.positions[start as usize..end as usize];
            end = start + members.partition_point(|&member| member < later) as u32;
        }
        let mut index = start as usize;
        while index < end as usize {
            let codes = &table.codes.data()[index..];
            // SAFETY: `index` is below the length of the planes, which are padded by LANES words each; the rest is passed on.
            let mut near = unsafe { K::within8::<W>(codes.as_ptr(), stride, &query, within) };
            let left = end as usize - index;
            if left < LANES {
                near &= (1 << left) - 1;
            }
            while near != 0 {
                let member = index + near.trailing_zeros() as usize;
                near &= near - 1;
                let earlier = table.positions[member];
                let removed = request
                    .states
                    .is_some_and(|states| states[earlier as usize] == REMOVED);
                if earlier >= later || removed {
                    continue;
                }
                let code = table.codes.get::<W>(member);
                let differing: [u64; W] = std::array::from_fn(|word| code[word] ^ query[word]);
                if !is_owned(before, &differing) {
                    hits.push(pack_hit(
                        later - piece.start,
                        earlier,
                        distance(&code, &query),
                    ));
                }
            }
            index += LANES;
        }
    }
}

/// Whether an earlier table finds the pair.
#[inline(always)]
fn is_owned<const W: usize>(before: &[BlockTable], differing: &[u64; W]) -> bool {
    before.iter().any(|table| table.finds(differing))
}
