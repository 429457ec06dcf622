//! MinHash kernels for NEON.
//!
//! Multiplying by halves pays if most features are then rejected by a lookup in registers. There is no kernel for the
//! first round of a short list, in which most features change a slot, for the least hash of the classical scheme, or
//! for the expansion of weighted features.

use std::arch::aarch64::*;

use super::minhash_values::{compete_plain, folded_key};
use crate::halves::Four;
use crate::hash::MIX_MULTIPLIERS;

/// Maximum number of slots whose bitmap fits in a table of four registers.
pub(super) const MAX_BITMAP_SLOTS: usize = 512;

/// Maximum number of slots whose values, truncated to 8 bits, fit in two tables of four registers.
pub(super) const MAX_TABLE_SLOTS: usize = 128;

/// Returns slots (high halves) and values (low halves) of four folded features.
#[target_feature(enable = "neon")]
#[inline]
fn entries(folded: &[u64; 4], key: u64, num_slots: u32) -> Four {
    let x = Four::load(folded).exclusive_or(key);
    let x = x.multiply(MIX_MULTIPLIERS[0]).fold();
    // The last step of the mix changes only the low 31 bits, so the slot does not need it.
    let x = x.multiply(MIX_MULTIPLIERS[1]).fold();
    let first = vmull_n_u32(vget_low_u32(x.high), num_slots);
    let second = vmull_high_n_u32(x.high, num_slots);
    Four {
        low: x.low,
        high: vuzp2q_u32(vreinterpretq_u32_u64(first), vreinterpretq_u32_u64(second)),
    }
}

/// [`compete`] in round 0 for at most [`MAX_TABLE_SLOTS`] slots: most values are above that of their slot, as its high
/// 8 bits show.
#[target_feature(enable = "neon")]
pub(super) fn compete_by_table(block: &[u64], key: u64, slots: &mut [u64]) -> u32 {
    // While most features change a slot, the table is useless.
    let Some((first, block)) = block.split_at_checked(4 * slots.len()) else {
        return compete_plain(block, key, 0, slots);
    };
    let num_slots = slots.len() as u32;
    let mut num_filled = compete_plain(first, key, 0, slots);
    let mut bounds = [u8::MAX; MAX_TABLE_SLOTS];
    for (bound, &slot) in bounds.iter_mut().zip(&*slots) {
        *bound = (slot >> 24) as u8;
    }
    let (steps, rest) = block.as_chunks::<16>();
    for features in steps {
        // SAFETY: twice 64 bytes are read.
        let (low, high) = unsafe {
            (
                vld1q_u8_x4(bounds.as_ptr()),
                vld1q_u8_x4(bounds.as_ptr().add(64)),
            )
        };
        let mut buffer = [[0; 4]; 4];
        let mut fours = [Four::zero(); 4];
        for (four, folded) in fours.iter_mut().zip(features.as_chunks::<4>().0) {
            *four = entries(folded, key, num_slots);
        }
        let slot = vuzp1q_u8(
            low_quarters(fours[0].high, fours[1].high),
            low_quarters(fours[2].high, fours[3].high),
        );
        let value = vuzp2q_u8(
            high_quarters(fours[0].low, fours[1].low),
            high_quarters(fours[2].low, fours[3].low),
        );
        // A lookup beyond a table gives 0, or the previous contents.
        let bound = vqtbl4q_u8(low, slot);
        let bound = vqtbx4q_u8(bound, high, vsubq_u8(slot, vdupq_n_u8(64)));
        let is_hit = vreinterpretq_u16_u8(vcleq_u8(value, bound));
        // Four bits per feature.
        let mut hits = vget_lane_u64::<0>(vreinterpret_u64_u8(vshrn_n_u16::<4>(is_hit)));
        if hits == 0 {
            continue;
        }
        for (four, out) in fours.iter().zip(&mut buffer) {
            four.store(out);
        }
        while hits != 0 {
            let lane = hits.trailing_zeros() / 4;
            hits &= !(0xF << (4 * lane));
            let entry = buffer.as_flattened()[lane as usize % 16];
            let at = (entry >> 32) as usize;
            let slot = &mut slots[at];
            num_filled += u32::from(*slot == u64::MAX);
            *slot = (*slot).min(entry & u64::from(u32::MAX));
            bounds[at % MAX_TABLE_SLOTS] = (*slot >> 24) as u8;
        }
    }
    num_filled + compete_plain(rest, key, 0, slots)
}

/// Returns the low 16 bits of eight numbers.
#[target_feature(enable = "neon")]
#[inline]
fn low_quarters(first: uint32x4_t, second: uint32x4_t) -> uint8x16_t {
    let (first, second) = (vreinterpretq_u16_u32(first), vreinterpretq_u16_u32(second));
    vreinterpretq_u8_u16(vuzp1q_u16(first, second))
}

/// Returns the high 16 bits of eight numbers.
#[target_feature(enable = "neon")]
#[inline]
fn high_quarters(first: uint32x4_t, second: uint32x4_t) -> uint8x16_t {
    let (first, second) = (vreinterpretq_u16_u32(first), vreinterpretq_u16_u32(second));
    vreinterpretq_u8_u16(vuzp2q_u16(first, second))
}

/// Fills the unfilled (`u64::MAX`) slots, at most [`MAX_BITMAP_SLOTS`], round by round; returns how many remain.
#[target_feature(enable = "neon")]
pub(super) fn compete_for_unfilled(block: &[u64], seed: u64, slots: &mut [u64]) -> u32 {
    let num_slots = slots.len() as u32;
    let mut unfilled = [0u8; MAX_BITMAP_SLOTS / 8];
    for (slot, _) in slots
        .iter()
        .enumerate()
        .filter(|&(_, &value)| value == u64::MAX)
    {
        unfilled[slot / 8] |= 1 << (slot % 8);
    }
    for round in 1..num_slots {
        let key = folded_key(round, seed);
        // SAFETY: 64 bytes are read.
        let bitmap = unsafe { vld1q_u8_x4(unfilled.as_ptr()) };
        for features in block.as_chunks::<8>().0 {
            let (fours, _) = features.as_chunks::<4>();
            let first = entries(&fours[0], key, num_slots);
            let second = entries(&fours[1], key, num_slots);
            let slot = vreinterpretq_u16_u8(low_quarters(first.high, second.high));
            let byte = vqtbl4_u8(bitmap, vshrn_n_u16::<3>(slot));
            let place = vand_u8(vmovn_u16(slot), vdup_n_u8(7));
            let bit = vshl_u8(vdup_n_u8(1), vreinterpret_s8_u8(place));
            let mut hits = vget_lane_u64::<0>(vreinterpret_u64_u8(vtst_u8(byte, bit)));
            if hits == 0 {
                continue;
            }
            let mut buffer = [[0; 4]; 2];
            first.store(&mut buffer[0]);
            second.store(&mut buffer[1]);
            while hits != 0 {
                let lane = hits.trailing_zeros() / 8;
                hits &= !(0xFF << (8 * lane));
                let entry = buffer.as_flattened()[lane as usize % 8];
                let slot = (entry >> 32) as usize;
                slots[slot] = slots[slot].min(entry & u64::from(u32::MAX));
                unfilled[slot / 8 % unfilled.len()] &= !(1 << (slot % 8));
            }
        }
        if unfilled == [0; MAX_BITMAP_SLOTS / 8] {
            return 0;
        }
    }
    unfilled.iter().map(|byte| byte.count_ones()).sum()
}
