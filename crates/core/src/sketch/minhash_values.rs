//! What is the value of a feature under a key?

use crate::hash::{GOLDEN, mix64};

/// The first step of `mix64`; linear over XOR, so features and keys are folded once, not once per round.
#[inline(always)]
pub(super) const fn fold(x: u64) -> u64 {
    x ^ (x >> 33)
}

/// Computes the rest of `mix64` after [`fold`], without its last step, which leaves the high 33 bits unchanged.
#[inline(always)]
pub(super) const fn finish_high(folded: u64) -> u64 {
    let mut x = folded.wrapping_mul(0xff51_afd7_ed55_8ccd);
    x ^= x >> 33;
    x.wrapping_mul(0xc4ce_b9fe_1a85_ec53)
}

/// Returns the folded key of a round (bucket filling) or of a slot (classical).
#[inline(always)]
pub(super) const fn folded_key(round: u32, seed: u64) -> u64 {
    fold(mix64((round as u64 + 1).wrapping_mul(GOLDEN) ^ seed))
}

/// The body of [`least_hash`], compiled for each instruction set; eight minima avoid a chain of dependencies.
#[inline(always)]
pub(super) fn least_hash_body(block: &[u64], key: u64) -> u64 {
    let mut least = [u64::MAX; 8];
    for eight in block.as_chunks::<8>().0 {
        for (least, &folded) in least.iter_mut().zip(eight) {
            *least = (*least).min(fold(finish_high(folded ^ key)));
        }
    }
    least.into_iter().min().unwrap_or(u64::MAX)
}

/// The oracle of the vector kernels of `minhash_bucket::compete`.
pub(super) fn compete_plain(block: &[u64], key: u64, round: u32, slots: &mut [u64]) -> u32 {
    let num_slots = slots.len() as u64;
    let mut num_filled = 0;
    for &folded in block {
        let x = finish_high(folded ^ key);
        let slot = &mut slots[(((x >> 32) * num_slots) >> 32) as usize];
        num_filled += u32::from(*slot == u64::MAX);
        *slot = (*slot).min(u64::from(round) << 32 | fold(x) & u64::from(u32::MAX));
    }
    num_filled
}
