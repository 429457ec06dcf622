//! How is every query compared with every code?

use super::{StreamTables, pack_hit};
use crate::distance::distance;
use crate::kernels::{Kernel, LANES};

/// Codes compared with each vector of queries, so that a vector is loaded once.
const NUM_CODES: usize = 4;
/// Words of queries that stay in the L1 cache while the codes of a block pass over them.
const TILE_WORDS: usize = 2048;

/// Packs the hits of the codes of a block; stops once there are more than `limit`.
///
/// # Safety
/// The processor has the kernel's instruction set; the queries have `W` words.
#[inline(always)]
pub(super) unsafe fn scan_block<K: Kernel, const W: usize>(
    tables: &StreamTables,
    codes: &[u64],
    limit: usize,
    hits: &mut Vec<u64>,
) {
    let queries = &tables.queries;
    let within = tables.plan.within();
    let num_codes = codes.len() / W;
    let tile_len = TILE_WORDS / W / LANES * LANES;
    for tile in (0..queries.len()).step_by(tile_len) {
        for first in (0..num_codes).step_by(NUM_CODES) {
            let last = (first + NUM_CODES).min(num_codes) - 1;
            // Places beyond the last one repeat it and are ignored.
            let group: [[u64; W]; NUM_CODES] = std::array::from_fn(|i| {
                let index = (first + i).min(last);
                std::array::from_fn(|word| codes[index * W + word])
            });
            for index in (tile..(tile + tile_len).min(queries.len())).step_by(LANES) {
                let eight = queries.data()[index..].as_ptr();
                // SAFETY: `index` is below the length of the planes, which are padded by LANES words each; the rest is
                // guaranteed by the caller.
                if unsafe { K::any_within8(eight, queries.stride(), &group, within) } {
                    for (place, code) in (first..=last).zip(&group) {
                        // SAFETY: as above.
                        let near = unsafe { K::within8(eight, queries.stride(), code, within) };
                        report::<W>(tables, place, code, index, near, hits);
                    }
                }
            }
            if hits.len() > limit {
                return;
            }
        }
    }
}

#[inline(never)]
fn report<const W: usize>(
    tables: &StreamTables,
    place: usize,
    code: &[u64; W],
    index: usize,
    mut near: u8,
    hits: &mut Vec<u64>,
) {
    while near != 0 {
        let row = index + near.trailing_zeros() as usize;
        near &= near - 1;
        // The planes are padded.
        if row < tables.queries.len() {
            let between = distance(&tables.queries.get::<W>(row), code);
            hits.push(pack_hit(place as u32, row as u32, between));
        }
    }
}
