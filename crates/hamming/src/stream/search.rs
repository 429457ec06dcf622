//! How are the tables searched for the codes of a block?
//!
//! Lookups are collected by the thousand and first sorted by the region of their bucket: a region stays in the nearest
//! caches while all its lookups are processed, and prefetching hides the cost of a bucket that was not read before.

use std::ops::Range;

use super::kernels::{CheckKernel, STEP};
use super::table::{Checks, KeyTable, fold, fold_narrow};
use super::{BLOCK_LEN, StreamTables, pack_hit};
use crate::distance::distance;
use likewise_core::prefetch::prefetch_read;

/// Number of regions of a table.
const REGION_BITS: u32 = 8;
const NUM_REGIONS: usize = 1 << REGION_BITS;
/// Number of buckets prefetched before the first of them is compared.
const NUM_PENDING: usize = 32;
/// Number of 32-bit check words in a cache line.
const NARROW_LINE: usize = 16;

/// A lookup: its bucket (28 bits), the code of the block (18), and the number of the neighbor of its value (18).
#[derive(Debug, Clone, Copy, Default)]
struct Probe {
    packed: u64,
    /// The folded code.
    check: u64,
}

const BUCKET_SHIFT: u32 = 36;
const CODE_SHIFT: u32 = 18;

impl Probe {
    #[inline(always)]
    fn bucket(self) -> usize {
        (self.packed >> BUCKET_SHIFT) as usize
    }

    #[inline(always)]
    fn code(self) -> usize {
        (self.packed >> CODE_SHIFT) as usize % (1 << (BUCKET_SHIFT - CODE_SHIFT))
    }

    #[inline(always)]
    fn neighbor(self) -> usize {
        self.packed as usize % (1 << CODE_SHIFT)
    }
}

/// Memory for the lookups of a batch.
#[derive(Default)]
pub(super) struct Scratch {
    probes: Vec<Probe>,
}

#[inline(always)]
fn code_at<const W: usize>(codes: &[u64], index: usize) -> [u64; W] {
    std::array::from_fn(|word| codes[index * W + word])
}

/// Packs the hits of the codes of a block, table by table; stops once there are more than `limit`.
///
/// # Safety
/// The processor has the kernel's instruction set; the queries have `W` words.
#[inline(always)]
pub(super) unsafe fn search_block<K: CheckKernel, const W: usize>(
    tables: &StreamTables,
    codes: &[u64],
    limit: usize,
    scratch: &mut Scratch,
    hits: &mut Vec<u64>,
) {
    let num_codes = codes.len() / W;
    for (rank, table) in tables.tables.iter().enumerate() {
        let batch_len = (BLOCK_LEN / table.neighbors.len()).max(1);
        for start in (0..num_codes).step_by(batch_len) {
            let batch = start..(start + batch_len).min(num_codes);
            // SAFETY: guaranteed by the caller.
            unsafe { sort_by_region::<K, W>(table, codes, batch, scratch) };
            for probes in scratch.probes.chunks(NUM_PENDING) {
                // SAFETY: guaranteed by the caller.
                unsafe { compare_buckets::<K, W>(tables, rank, codes, probes, hits) };
                if hits.len() > limit {
                    return;
                }
            }
        }
    }
}

/// Collects the lookups of some codes in one table, sorted by the region of their bucket.
///
/// # Safety
/// Same as [`search_block`].
#[inline(always)]
unsafe fn sort_by_region<K: CheckKernel, const W: usize>(
    table: &KeyTable,
    codes: &[u64],
    batch: Range<usize>,
    scratch: &mut Scratch,
) {
    let shift = table.num_bucket_bits().saturating_sub(REGION_BITS);
    let mut next = [0_u32; NUM_REGIONS];
    for index in batch.clone() {
        // SAFETY: guaranteed by the caller.
        let value = unsafe { table.key.of::<K, W>(&code_at(codes, index)) };
        for &mask in &table.neighbors {
            next[(table.bucket(value ^ mask) >> shift) % NUM_REGIONS] += 1;
        }
    }
    let mut total = 0;
    for slot in &mut next {
        total += std::mem::replace(slot, total);
    }
    scratch.probes.resize(total as usize, Probe::default());
    for index in batch {
        let code = code_at(codes, index);
        // SAFETY: guaranteed by the caller.
        let value = unsafe { table.key.of::<K, W>(&code) };
        let check = fold(&code);
        for (neighbor, &mask) in table.neighbors.iter().enumerate() {
            let bucket = table.bucket(value ^ mask);
            let slot = &mut next[(bucket >> shift) % NUM_REGIONS];
            scratch.probes[*slot as usize] = Probe {
                packed: (bucket as u64) << BUCKET_SHIFT
                    | (index as u64) << CODE_SHIFT
                    | neighbor as u64,
                check,
            };
            *slot += 1;
        }
    }
}

/// Compares a few buckets of table `rank`.
///
/// # Safety
/// Same as [`search_block`]; the lookups must belong to that table and block.
#[inline(always)]
unsafe fn compare_buckets<K: CheckKernel, const W: usize>(
    tables: &StreamTables,
    rank: usize,
    codes: &[u64],
    probes: &[Probe],
    hits: &mut Vec<u64>,
) {
    let table = &tables.tables[rank];
    let within = tables.plan.within();
    let mut ranges = [(0_u32, 0_u32); NUM_PENDING];
    for (range, probe) in ranges.iter_mut().zip(probes) {
        let bucket = probe.bucket();
        *range = (table.offsets[bucket], table.offsets[bucket + 1]);
        match &table.checks {
            Checks::Narrow(checks) => {
                prefetch_read(checks, range.0 as usize);
                prefetch_read(checks, range.0 as usize + NARROW_LINE);
            }
            Checks::Wide(checks) => {
                prefetch_read(checks, range.0 as usize);
                prefetch_read(checks, range.0 as usize + NARROW_LINE / 2);
            }
        }
    }
    for (&(start, end), probe) in ranges.iter().zip(probes) {
        let mut at = start;
        // The first step is also done for an empty bucket: whether it is empty cannot be predicted.
        loop {
            // SAFETY: `at` is at most the number of queries and STEP words of padding follow them; the rest is
            // guaranteed by the caller.
            let near = unsafe {
                match &table.checks {
                    Checks::Narrow(checks) => {
                        let checks = checks[at as usize..].as_ptr();
                        K::near_narrow(checks, fold_narrow(probe.check), within)
                    }
                    Checks::Wide(checks) => {
                        K::near_wide(checks[at as usize..].as_ptr(), probe.check, within)
                    }
                }
            };
            let live = ((1_u64 << (end - at).min(STEP as u32)) - 1) as u32;
            if near & live != 0 {
                // SAFETY: guaranteed by the caller.
                unsafe { report::<K, W>(tables, rank, codes, *probe, at, near & live, hits) };
            }
            if end - at <= STEP as u32 {
                break;
            }
            at += STEP as u32;
        }
    }
}

/// Keeps those of the near check words at `at` whose codes are near, each in the first table that finds it.
///
/// # Safety
/// Same as [`search_block`].
#[inline(always)]
unsafe fn report<K: CheckKernel, const W: usize>(
    tables: &StreamTables,
    rank: usize,
    codes: &[u64],
    probe: Probe,
    at: u32,
    mut near: u32,
    hits: &mut Vec<u64>,
) {
    let (before, rest) = tables.tables.split_at(rank);
    let table: &KeyTable = &rest[0];
    let code: [u64; W] = code_at(codes, probe.code());
    // SAFETY: guaranteed by the caller.
    let value = unsafe { table.key.of::<K, W>(&code) };
    let asked = value ^ table.neighbors[probe.neighbor()];
    while near != 0 {
        let row = table.rows[at as usize + near.trailing_zeros() as usize];
        near &= near - 1;
        let query = tables.queries.get::<W>(row as usize);
        let between = distance(&query, &code);
        if between > tables.plan.within() {
            continue;
        }
        // Values wider than the directory share buckets: this query may belong to another value, for which it is found
        // again.
        // SAFETY: guaranteed by the caller.
        if unsafe { table.key.of::<K, W>(&query) } != asked {
            continue;
        }
        let differing: [u64; W] = std::array::from_fn(|word| query[word] ^ code[word]);
        if !before.iter().any(|table| table.key.finds(&differing)) {
            hits.push(pack_hit(probe.code() as u32, row, between));
        }
    }
}
