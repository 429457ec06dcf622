//! How is every pair compared?

use std::ops::Range;

use super::request::{Request, pack_hit};
use crate::distance::distance;
use crate::kernels::{Kernel, LANES};
use likewise_core::states::REMOVED;

/// Number of later codes compared with each vector of earlier ones, so that a vector is loaded once.
const NUM_QUERIES: usize = 4;
/// Words of earlier codes that stay in the L1 cache while the later ones of a piece pass over them.
const TILE_WORDS: usize = 2048;

/// Compares the positions of `piece` with all before them.
///
/// # Safety
/// The processor must have the kernel's instruction set, and the codes must have `W` words.
#[inline(always)]
pub(super) unsafe fn scan_range<K: Kernel, const W: usize>(
    request: &Request<'_>,
    piece: Range<u32>,
    hits: &mut Vec<u64>,
) {
    let codes = request.codes;
    let within = request.within;
    let tile_len = TILE_WORDS / W / LANES * LANES;
    for tile in (0..piece.end as usize).step_by(tile_len) {
        for first in piece.clone().step_by(NUM_QUERIES) {
            let last = (first + NUM_QUERIES as u32 - 1).min(piece.end - 1);
            // Places beyond the last one repeat it and are ignored.
            let queries: [[u64; W]; NUM_QUERIES] =
                std::array::from_fn(|i| codes.get::<W>((first as usize + i).min(last as usize)));
            // Tiles begin and end at multiples of LANES, so no code is compared twice.
            for index in (tile..(tile + tile_len).min(last as usize)).step_by(LANES) {
                let eight = codes.data()[index..].as_ptr();
                // SAFETY: `index` is below the length of the planes, which are padded by LANES words each; the rest is
                // guaranteed by the caller.
                if unsafe { K::any_within8(eight, codes.stride(), &queries, within) } {
                    for (later, query) in (first..=last).zip(&queries) {
                        // SAFETY: as above.
                        let near = unsafe { K::within8(eight, codes.stride(), query, within) };
                        report::<W>(request, later, index as u32, near, piece.start, hits);
                    }
                }
            }
            if request.is_too_dense(&piece, hits.len()) {
                return;
            }
        }
    }
}

/// Keeps the pairs of `later` with those of the eight codes at `index` that are near, earlier and not removed.
#[inline(never)]
fn report<const W: usize>(
    request: &Request<'_>,
    later: u32,
    index: u32,
    mut near: u8,
    piece_start: u32,
    hits: &mut Vec<u64>,
) {
    let codes = request.codes;
    while near != 0 {
        let earlier = index + near.trailing_zeros();
        near &= near - 1;
        let removed = |states: &[u8]| states[earlier as usize] == REMOVED;
        if earlier < later && !request.states.is_some_and(removed) {
            let between = distance(
                &codes.get::<W>(earlier as usize),
                &codes.get::<W>(later as usize),
            );
            hits.push(pack_hit(later - piece_start, earlier, between));
        }
    }
}
