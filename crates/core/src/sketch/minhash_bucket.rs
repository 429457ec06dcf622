//! How are the slots of a signature filled in rounds?
//!
//! Source: Dahlgaard, Knudsen, Thorup: Fast Similarity Sketching, FOCS 2017. After round 0 most slots are filled, and
//! only the few features that hit an unfilled slot matter.

use crate::isa::Isa;

use super::minhash_expansion::Expansion;
use super::minhash_values::{compete_plain, finish_high, fold, folded_key};

/// Fills every slot (all must be `u64::MAX`) with its 32-bit value in the low half. The expansion must not be empty.
pub(super) fn fill(expansion: &mut Expansion<'_>, seed: u64, isa: Isa, slots: &mut [u64]) {
    let num_slots = slots.len() as u32;
    let mut num_unfilled = num_slots;
    for round in 0..num_slots {
        let key = folded_key(round, seed);
        expansion.for_each_block(|block| {
            num_unfilled -= compete(block, key, round, isa, slots);
        });
        if num_unfilled == 0 {
            return;
        }
        if let Some(block) = expansion.whole()
            && let Some(left) = compete_for_unfilled(block, seed, isa, slots)
        {
            num_unfilled = left;
            break;
        }
    }
    if num_unfilled == 0 {
        return;
    }
    for slot in 0..num_slots {
        if slots[slot as usize] == u64::MAX {
            let key = folded_key(num_slots + slot, seed);
            let mut least = u32::MAX;
            expansion.for_each_block(|block| {
                for &folded in block {
                    least = least.min(fold(finish_high(folded ^ key)) as u32);
                }
            });
            slots[slot as usize] = u64::from(least);
        }
    }
}

/// Lets features compete for slots, `round * 2^32 + value`, so that the least wins; returns how many got a first value.
fn compete(block: &[u64], key: u64, round: u32, isa: Isa, slots: &mut [u64]) -> u32 {
    match isa {
        #[cfg(target_arch = "x86_64")]
        // SAFETY: an `Isa` of this kind is created only if the processor has it.
        Isa::Avx2(_) => unsafe { super::minhash_avx2::compete(block, key, round, slots) },
        #[cfg(target_arch = "x86_64")]
        // SAFETY: as above.
        Isa::Avx512(_) => unsafe { super::minhash_avx512::compete(block, key, round, slots) },
        _ => compete_plain(block, key, round, slots),
    }
}

/// Runs the rounds from 1 on, if a kernel can look up unfilled slots in a register; returns how many remain.
fn compete_for_unfilled(block: &[u64], seed: u64, isa: Isa, slots: &mut [u64]) -> Option<u32> {
    match isa {
        #[cfg(target_arch = "x86_64")]
        Isa::Avx2(_) if slots.len() <= super::minhash_avx2::MAX_BITMAP_SLOTS => {
            // SAFETY: an `Isa` of this kind is created only if the processor has it.
            Some(unsafe { super::minhash_avx2::compete_for_unfilled(block, seed, slots) })
        }
        #[cfg(target_arch = "x86_64")]
        Isa::Avx512(_) if slots.len() <= super::minhash_avx512::MAX_BITMAP_SLOTS => {
            // SAFETY: as above.
            Some(unsafe { super::minhash_avx512::compete_for_unfilled(block, seed, slots) })
        }
        _ => None,
    }
}
