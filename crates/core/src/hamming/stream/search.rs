//! How are the tables asked for the codes of a block?

use super::kernels::{CheckKernel, STEP};
use super::table::{Checks, KeyTable, fold, fold_narrow};
use super::{StreamTables, pack_hit};
use crate::hamming::distance::distance;
use crate::prefetch::prefetch_read;

/// Buckets asked for before the first of them is compared.
const NUM_PENDING: usize = 64;
/// Check words of 32 bits in a cache line.
const NARROW_LINE: usize = 16;

/// A bucket to compare with a code of the block.
#[derive(Clone, Copy, Default)]
struct Probe {
    code: u32,
    /// Value of the key that is looked up.
    value: u64,
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
    hits: &mut Vec<u64>,
) {
    let num_codes = codes.len() / W;
    let mut probes = [Probe::default(); NUM_PENDING];
    for (rank, table) in tables.tables.iter().enumerate() {
        let mut num_pending = 0;
        for index in 0..num_codes {
            // SAFETY: passed on from the caller.
            let value = unsafe { table.key.of::<K, W>(&code_at(codes, index)) };
            for &mask in &table.neighbours {
                let probe = Probe {
                    code: index as u32,
                    value: value ^ mask,
                };
                prefetch_read(&table.offsets, table.bucket(probe.value));
                probes[num_pending] = probe;
                num_pending += 1;
                if num_pending == NUM_PENDING {
                    // SAFETY: passed on from the caller.
                    unsafe { compare_buckets::<K, W>(tables, rank, codes, &probes, hits) };
                    num_pending = 0;
                    if hits.len() > limit {
                        return;
                    }
                }
            }
        }
        // SAFETY: passed on from the caller.
        unsafe { compare_buckets::<K, W>(tables, rank, codes, &probes[..num_pending], hits) };
        if hits.len() > limit {
            return;
        }
    }
}

#[inline(always)]
fn code_at<const W: usize>(codes: &[u64], index: usize) -> [u64; W] {
    std::array::from_fn(|word| codes[index * W + word])
}

/// Compares the buckets of table `rank` with their codes.
///
/// # Safety
/// As [`search_block`]; the probes are of that table and block.
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
    let mut buckets = [(0_u32, 0_u32); NUM_PENDING];
    for (range, probe) in buckets.iter_mut().zip(probes) {
        let bucket = table.bucket(probe.value);
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
    for (&(start, end), probe) in buckets.iter().zip(probes) {
        let check = fold(&code_at::<W>(codes, probe.code as usize));
        for at in (start..end).step_by(STEP) {
            // SAFETY: `at` is below the number of queries and STEP words of padding follow them; the rest is passed on.
            let mut near = unsafe {
                match &table.checks {
                    Checks::Narrow(checks) => {
                        let checks = checks[at as usize..].as_ptr();
                        K::near_narrow(checks, fold_narrow(check), within)
                    }
                    Checks::Wide(checks) => {
                        K::near_wide(checks[at as usize..].as_ptr(), check, within)
                    }
                }
            };
            let left = end - at;
            if left < STEP as u32 {
                near &= (1 << left) - 1;
            }
            if near != 0 {
                // SAFETY: passed on from the caller.
                unsafe { report::<K, W>(tables, rank, codes, probe, at, near, hits) };
            }
        }
    }
}

/// Keeps those of the near check words at `at` whose codes are near, each in the first table that finds it.
///
/// # Safety
/// As [`search_block`].
#[inline(always)]
unsafe fn report<K: CheckKernel, const W: usize>(
    tables: &StreamTables,
    rank: usize,
    codes: &[u64],
    probe: &Probe,
    at: u32,
    mut near: u32,
    hits: &mut Vec<u64>,
) {
    let (before, rest) = tables.tables.split_at(rank);
    let table: &KeyTable = &rest[0];
    let code: [u64; W] = code_at(codes, probe.code as usize);
    while near != 0 {
        let row = table.rows[at as usize + near.trailing_zeros() as usize];
        near &= near - 1;
        let query = tables.queries.get::<W>(row as usize);
        let between = distance(&query, &code);
        if between > tables.plan.within() {
            continue;
        }
        // Values that are wider than the directory share buckets: this one may be another's, and come again with its own.
        // SAFETY: passed on from the caller.
        if unsafe { table.key.of::<K, W>(&query) } != probe.value {
            continue;
        }
        let differing: [u64; W] = std::array::from_fn(|word| query[word] ^ code[word]);
        if !before.iter().any(|table| table.key.finds(&differing)) {
            hits.push(pack_hit(probe.code, row, between));
        }
    }
}
