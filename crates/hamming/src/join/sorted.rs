//! How are pairs sorted?

use std::sync::atomic::AtomicBool;

use super::output::PairBatch;
use likewise_core::error::Result;
use likewise_core::parallel::map_ranges;

/// Approximate number of pairs per stretch of left rows: they fit in the L2 cache.
const STRETCH_LEN: usize = 1 << 15;
const MAX_STRETCHES: usize = 1 << 12;

/// Pairs by left row, then right row.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SortedPairs {
    /// Left and right row of each pair, consecutively.
    pub rows: Vec<i64>,
    /// Number of differing bits of each pair.
    pub distance: Vec<u16>,
}

/// Returns the pairs of all batches, sorted by left row, then right row, with 12 bytes per pair.
pub fn sort_pairs(
    batches: Vec<PairBatch>,
    threads: usize,
    cancel: &AtomicBool,
) -> Result<SortedPairs> {
    let len: usize = batches.iter().map(PairBatch::len).sum();
    let lefts = batches.iter().flat_map(|batch| &batch.left);
    let num_rows = lefts.max().map_or(1, |&row| row as usize + 1);
    let num_stretches = len.div_ceil(STRETCH_LEN).clamp(1, MAX_STRETCHES);
    let stretch_of = |left: u32| left as usize * num_stretches / num_rows;
    let mut ends = vec![0; num_stretches + 2];
    for batch in &batches {
        for &left in &batch.left {
            ends[stretch_of(left) + 2] += 1;
        }
    }
    let mut total = 0;
    for end in &mut ends {
        total += *end;
        *end = total;
    }
    let mut pairs = vec![(0_u32, 0_u32, 0_u16); len];
    for batch in batches {
        for index in 0..batch.len() {
            let end = &mut ends[stretch_of(batch.left[index]) + 1];
            pairs[*end] = (batch.left[index], batch.right[index], batch.distance[index]);
            *end += 1;
        }
    }
    let parts = map_ranges(
        num_stretches,
        1,
        threads,
        cancel,
        || (),
        |(), range| {
            let mut keys: Vec<(u64, u16)> = pairs[ends[range.start]..ends[range.end]]
                .iter()
                .map(|&(left, right, distance)| {
                    (u64::from(left) << 32 | u64::from(right), distance)
                })
                .collect();
            keys.sort_unstable();
            keys
        },
    )?;
    let mut sorted = SortedPairs {
        rows: Vec::with_capacity(2 * len),
        distance: Vec::with_capacity(len),
    };
    for part in parts {
        for (key, distance) in part {
            sorted
                .rows
                .extend([(key >> 32) as i64, (key & 0xffff_ffff) as i64]);
            sorted.distance.push(distance);
        }
    }
    Ok(sorted)
}
