//! How are the tables on blocks searched?

use std::ops::Range;

use super::block_table::BlockTable;
use super::request::{Request, pack_hit};
use crate::distance::distance;
use crate::kernels::{Kernel, LANES};
use likewise_core::prefetch::prefetch_read;
use likewise_core::states::REMOVED;

/// Number of buckets prefetched before the first of them is compared.
const NUM_PENDING: usize = 64;
/// Size from which finding the end of the earlier members beats comparing all.
const LARGE_BUCKET: u32 = 64;

/// A bucket to compare with a later position.
#[derive(Clone, Copy, Default)]
struct Probe {
    later: u32,
    start: u32,
    end: u32,
}

/// Buckets that were prefetched and not compared yet.
struct Pending {
    probes: [Probe; NUM_PENDING],
    len: usize,
}

impl Pending {
    /// Adds a bucket; an empty one is dropped. Returns whether the list is full.
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
/// The processor must have the kernel's instruction set, and the codes must have `W` words.
#[inline(always)]
pub(super) unsafe fn probe_range<K: Kernel, const W: usize>(
    request: &Request<'_>,
    piece: Range<u32>,
    hits: &mut Vec<u64>,
) {
    let codes = request.codes;
    let mut pending = Pending {
        probes: [Probe::default(); NUM_PENDING],
        len: 0,
    };
    for (rank, table) in request.tables.iter().enumerate() {
        let masks = request.neighbors.within(table.radius);
        for later in piece.clone() {
            let value = table.block_of(&codes.get::<W>(later as usize));
            for &mask in masks {
                let near = usize::from(value ^ mask);
                let start = table.offsets[near];
                // In its own bucket, the earlier positions precede it.
                let end = if mask == 0 {
                    table.slots[later as usize]
                } else {
                    table.offsets[near + 1]
                };
                if pending.push::<W>(table, Probe { later, start, end }) {
                    // SAFETY: guaranteed by the caller.
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
        // SAFETY: guaranteed by the caller.
        unsafe {
            let probes = &pending.probes[..pending.len];
            compare_buckets::<K, W>(request, rank, probes, &piece, hits);
        }
        pending.len = 0;
    }
}

/// Compares buckets of table `rank` and keeps the pairs that this table owns: the first table that finds a pair reports
/// it.
///
/// # Safety
/// Same as [`probe_range`]; the probes must belong to that table.
#[inline(always)]
unsafe fn compare_buckets<K: Kernel, const W: usize>(
    request: &Request<'_>,
    rank: usize,
    probes: &[Probe],
    piece: &Range<u32>,
    hits: &mut Vec<u64>,
) {
    let (before, rest) = request.tables.split_at(rank);
    let table = &rest[0];
    let within = request.within;
    let stride = table.codes.stride();
    for &Probe {
        later,
        start,
        mut end,
    } in probes
    {
        let query = request.codes.get::<W>(later as usize);
        if end - start > LARGE_BUCKET {
            // Small buckets are counted when all prefetched ones have been compared.
            if request.is_too_dense(piece, hits.len()) {
                return;
            }
            let members = &table.positions[start as usize..end as usize];
            end = start + members.partition_point(|&member| member < later) as u32;
        }
        let mut index = start as usize;
        while index < end as usize {
            let codes = &table.codes.data()[index..];
            // SAFETY: `index` is below the length of the planes, which are padded by LANES words each; the rest is
            // guaranteed by the caller.
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
