//! MinHash kernels for AVX2.

use std::arch::x86_64::*;

use super::minhash_values::folded_key;

/// Maximum number of slots whose bitmap fits in one register.
pub(super) const MAX_BITMAP_SLOTS: usize = 256;

/// Number of features whose hits are collected before they are applied.
const BLOCK_LEN: usize = 512;

/// Returns the low 64 bits of the products with a constant.
#[target_feature(enable = "avx2")]
#[inline]
fn multiply(x: __m256i, constant: u64) -> __m256i {
    let low = _mm256_set1_epi64x((constant & 0xffff_ffff) as i64);
    let high = _mm256_set1_epi64x((constant >> 32) as i64);
    let cross = _mm256_add_epi64(
        _mm256_mul_epu32(_mm256_srli_epi64::<32>(x), low),
        _mm256_mul_epu32(x, high),
    );
    _mm256_add_epi64(_mm256_mul_epu32(x, low), _mm256_slli_epi64::<32>(cross))
}

/// Returns slot (high half) and value (low half) of four folded features.
#[target_feature(enable = "avx2")]
#[inline]
fn entries(folded: __m256i, key: __m256i, num_slots: __m256i) -> __m256i {
    let x = multiply(_mm256_xor_si256(folded, key), 0xff51_afd7_ed55_8ccd);
    let x = _mm256_xor_si256(x, _mm256_srli_epi64::<33>(x));
    let x = multiply(x, 0xc4ce_b9fe_1a85_ec53);
    // The last step of the mix changes only the low 31 bits, so the slot does not need it.
    let value = _mm256_xor_si256(x, _mm256_srli_epi64::<33>(x));
    let slot = _mm256_mul_epu32(_mm256_srli_epi64::<32>(x), num_slots);
    _mm256_blend_epi32::<0b1010_1010>(value, slot)
}

/// See `minhash_bucket::compete`; features come in fours, in a round in which any slot can be taken.
#[target_feature(enable = "avx2,bmi1,bmi2,popcnt")]
pub(super) fn compete(block: &[u64], key: u64, round: u32, slots: &mut [u64]) -> u32 {
    let key = _mm256_set1_epi64x(key as i64);
    let num_slots = _mm256_set1_epi64x(slots.len() as i64);
    let tag = u64::from(round) << 32;
    let mut num_filled = 0;
    let mut buffer = [0u64; 64];
    for features in block.chunks(buffer.len()) {
        let (vectors, _) = features.as_chunks::<4>();
        for (entry, folded) in buffer.as_chunks_mut::<4>().0.iter_mut().zip(vectors) {
            // SAFETY: both sides are arrays of 32 bytes; no alignment is required.
            unsafe {
                let folded = _mm256_loadu_si256(folded.as_ptr().cast());
                _mm256_storeu_si256(entry.as_mut_ptr().cast(), entries(folded, key, num_slots));
            }
        }
        for &entry in &buffer[..features.len()] {
            let slot = &mut slots[(entry >> 32) as usize];
            num_filled += u32::from(*slot == u64::MAX);
            *slot = (*slot).min(entry & u64::from(u32::MAX) | tag);
        }
    }
    num_filled
}

/// Permutations of 32-bit lanes that move the 64-bit lanes selected by a 4-bit mask to the front.
static COMPRESS: [[u32; 8]; 16] = compress_orders();

const fn compress_orders() -> [[u32; 8]; 16] {
    let mut orders = [[0; 8]; 16];
    let mut mask = 0;
    while mask < 16 {
        let (mut lane, mut to) = (0, 0);
        while lane < 4 {
            if mask >> lane & 1 == 1 {
                orders[mask][to] = 2 * lane;
                orders[mask][to + 1] = 2 * lane + 1;
                to += 2;
            }
            lane += 1;
        }
        mask += 1;
    }
    orders
}

/// Fills the unfilled (`u64::MAX`) slots, at most [`MAX_BITMAP_SLOTS`], round by round; returns how many remain.
#[target_feature(enable = "avx2,bmi1,bmi2,popcnt")]
pub(super) fn compete_for_unfilled(block: &[u64], seed: u64, slots: &mut [u64]) -> u32 {
    let num_slots = _mm256_set1_epi64x(slots.len() as i64);
    let mut unfilled = [0u32; MAX_BITMAP_SLOTS / 32];
    for (slot, _) in slots
        .iter()
        .enumerate()
        .filter(|&(_, &value)| value == u64::MAX)
    {
        unfilled[slot / 32] |= 1 << (slot % 32);
    }
    let bit_mask = _mm256_set1_epi32(31);
    let mut hits = [0u64; BLOCK_LEN + 4];
    for round in 1..slots.len() as u32 {
        let key = _mm256_set1_epi64x(folded_key(round, seed) as i64);
        // SAFETY: the array has the 32 loaded bytes; no alignment is required.
        let bitmap = unsafe { _mm256_loadu_si256(unfilled.as_ptr().cast()) };
        for features in block.chunks(BLOCK_LEN) {
            let mut num_hits = 0;
            for folded in features.as_chunks::<4>().0 {
                // SAFETY: as above.
                let folded = unsafe { _mm256_loadu_si256(folded.as_ptr().cast()) };
                let entry = entries(folded, key, num_slots);
                // Only the high half of a lane, the slot, counts: word slot / 32 of the bitmap, shifted so that bit
                // slot modulo 32 becomes the sign of the lane.
                let word = _mm256_permutevar8x32_epi32(bitmap, _mm256_srli_epi32::<5>(entry));
                let shift = _mm256_andnot_si256(entry, bit_mask);
                let sign = _mm256_sllv_epi32(word, shift);
                let is_hit = _mm256_movemask_pd(_mm256_castsi256_pd(sign)) as usize;
                // SAFETY: a mask has 4 bits, and at most BLOCK_LEN hits precede the 4 written here.
                unsafe {
                    let order = _mm256_loadu_si256(COMPRESS[is_hit & 15].as_ptr().cast());
                    let hit = _mm256_permutevar8x32_epi32(entry, order);
                    _mm256_storeu_si256(hits.as_mut_ptr().add(num_hits).cast(), hit);
                }
                num_hits += is_hit.count_ones() as usize;
            }
            for &entry in &hits[..num_hits] {
                let slot = (entry >> 32) as usize;
                slots[slot] = slots[slot].min(entry & u64::from(u32::MAX));
                unfilled[slot / 32 % unfilled.len()] &= !(1 << (slot % 32));
            }
        }
        if unfilled == [0; MAX_BITMAP_SLOTS / 32] {
            return 0;
        }
    }
    unfilled.iter().map(|word| word.count_ones()).sum()
}
