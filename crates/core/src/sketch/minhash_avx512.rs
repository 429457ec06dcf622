//! MinHash kernels for AVX-512.

use std::arch::x86_64::*;

use super::minhash_values::{fold, folded_key};
use crate::hash::{EXPANSION_STEP, MIX_MULTIPLIERS};

/// Maximum number of slots whose bitmap fits in one register.
pub(super) const MAX_BITMAP_SLOTS: usize = 512;

/// Number of features whose hits are collected before they are applied.
const BLOCK_LEN: usize = 512;

/// Maximum number of slots whose values, truncated to 8 bits, fit in two registers.
const MAX_TABLE_SLOTS: usize = 128;

/// Number of features that are looked up before the table is read again.
const TABLE_BLOCK_LEN: usize = 128;

/// Returns slot (high half) and value (low half) of eight folded features.
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512dq,avx2")]
#[inline]
fn entries(folded: __m512i, key: __m512i, num_slots: __m512i) -> __m512i {
    let first = _mm512_set1_epi64(0xff51_afd7_ed55_8ccd_u64 as i64);
    let second = _mm512_set1_epi64(0xc4ce_b9fe_1a85_ec53_u64 as i64);
    let x = _mm512_mullo_epi64(_mm512_xor_si512(folded, key), first);
    let x = _mm512_xor_si512(x, _mm512_srli_epi64::<33>(x));
    let x = _mm512_mullo_epi64(x, second);
    // The last step of the mix changes only the low 31 bits, so the slot does not need it.
    let value = _mm512_xor_si512(x, _mm512_srli_epi64::<33>(x));
    let slot = _mm512_mul_epu32(_mm512_srli_epi64::<32>(x), num_slots);
    _mm512_mask_mov_epi32(value, 0xAAAA, slot)
}

/// Appends the folded expansion of weighted features: see `minhash_expansion::expand_all`.
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512dq,avx2")]
pub(super) fn expand_all(features: &[u64], weights: &[u32], block: &mut Vec<u64>) {
    let total: usize = weights.iter().map(|&weight| weight as usize).sum();
    let end = block.len() + total;
    let mut at = block.len();
    // Sixteen copies are written at once, regardless of the weight, so that most weights take the same path.
    block.resize(end + 16, 0);
    let [first, second] = MIX_MULTIPLIERS.map(|multiplier| _mm512_set1_epi64(multiplier as i64));
    let step = |copies: u64| _mm512_set1_epi64(copies.wrapping_mul(EXPANSION_STEP) as i64);
    let lanes = _mm512_setr_epi64(0, 1, 2, 3, 4, 5, 6, 7);
    let steps = _mm512_mullo_epi64(lanes, step(1));
    // The mix ends in a fold, and two folds cancel each other.
    let mixed = |copies: __m512i| {
        let x = _mm512_xor_si512(copies, _mm512_srli_epi64::<33>(copies));
        let x = _mm512_mullo_epi64(x, first);
        let x = _mm512_xor_si512(x, _mm512_srli_epi64::<33>(x));
        _mm512_mullo_epi64(x, second)
    };
    for (&feature, &weight) in features.iter().zip(weights) {
        let mut copies = _mm512_add_epi64(_mm512_set1_epi64(feature as i64), steps);
        let start = at;
        at += weight as usize;
        for from in (start..at).step_by(16) {
            let next = _mm512_add_epi64(copies, step(8));
            let out: &mut [u64; 16] = block[from..].first_chunk_mut().expect("room for 16");
            let (low, high) = out.split_at_mut(8);
            // SAFETY: both halves have the 64 written bytes; no alignment is required.
            unsafe {
                _mm512_storeu_si512(low.as_mut_ptr().cast(), mixed(copies));
                _mm512_storeu_si512(high.as_mut_ptr().cast(), mixed(next));
            }
            copies = _mm512_add_epi64(next, step(8));
        }
        if weight > 0 {
            // The first copy is the feature itself.
            block[start] = fold(feature);
        }
    }
    block.truncate(end);
}

/// See `minhash_bucket::compete`; features come in eights, in a round in which any slot can be taken.
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512dq,avx2,bmi1,bmi2,popcnt")]
pub(super) fn compete(block: &[u64], key: u64, round: u32, slots: &mut [u64]) -> u32 {
    if round == 0 && slots.len() <= MAX_TABLE_SLOTS {
        return compete_by_table(block, key, slots);
    }
    let key = _mm512_set1_epi64(key as i64);
    let num_slots = _mm512_set1_epi64(slots.len() as i64);
    let tag = u64::from(round) << 32;
    let mut num_filled = 0;
    let mut buffer = [0u64; 64];
    for features in block.chunks(buffer.len()) {
        let (vectors, _) = features.as_chunks::<8>();
        for (entry, folded) in buffer.as_chunks_mut::<8>().0.iter_mut().zip(vectors) {
            // SAFETY: both sides are arrays of 64 bytes; no alignment is required.
            unsafe {
                let folded = _mm512_loadu_si512(folded.as_ptr().cast());
                _mm512_storeu_si512(entry.as_mut_ptr().cast(), entries(folded, key, num_slots));
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

/// [`compete`] in round 0 for few slots: most values are above that of their slot, as its high 8 bits show.
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512dq,avx2,bmi1,bmi2,popcnt")]
fn compete_by_table(block: &[u64], key: u64, slots: &mut [u64]) -> u32 {
    let key = _mm512_set1_epi64(key as i64);
    let num_slots = _mm512_set1_epi64(slots.len() as i64);
    let (low_byte, place_bits) = (_mm512_set1_epi64(0xFF), _mm512_set1_epi64(56));
    let mut bounds = [u8::MAX; MAX_TABLE_SLOTS];
    for (bound, &slot) in bounds.iter_mut().zip(&*slots) {
        *bound = (slot >> 24) as u8;
    }
    let num_unfilled =
        |slots: &[u64]| slots.iter().filter(|&&slot| slot == u64::MAX).count() as u32;
    let before = num_unfilled(slots);
    let mut hits = [0u64; TABLE_BLOCK_LEN + 8];
    for features in block.chunks(TABLE_BLOCK_LEN) {
        // SAFETY: each of the two arrays has the 64 loaded bytes; no alignment is required.
        let [low, high] =
            [0, 64].map(|at| unsafe { _mm512_loadu_si512(bounds[at..at + 64].as_ptr().cast()) });
        let mut num_hits = 0;
        for folded in features.as_chunks::<8>().0 {
            // SAFETY: as above.
            let folded = unsafe { _mm512_loadu_si512(folded.as_ptr().cast()) };
            let entry = entries(folded, key, num_slots);
            // Word slot / 8 of the bounds, of which byte slot modulo 8 is the bound.
            let word = _mm512_permutex2var_epi64(low, _mm512_srli_epi64::<35>(entry), high);
            let place = _mm512_and_si512(_mm512_srli_epi64::<29>(entry), place_bits);
            let bound = _mm512_and_si512(_mm512_srlv_epi64(word, place), low_byte);
            let value = _mm512_and_si512(_mm512_srli_epi64::<24>(entry), low_byte);
            let is_hit = _mm512_cmple_epu64_mask(value, bound);
            let hit = _mm512_maskz_compress_epi64(is_hit, entry);
            // SAFETY: at most TABLE_BLOCK_LEN hits precede the 8 words written here.
            unsafe { _mm512_storeu_si512(hits.as_mut_ptr().add(num_hits).cast(), hit) };
            num_hits += is_hit.count_ones() as usize;
        }
        for &entry in &hits[..num_hits] {
            let at = (entry >> 32) as usize;
            let slot = &mut slots[at];
            *slot = (*slot).min(entry & u64::from(u32::MAX));
            bounds[at % MAX_TABLE_SLOTS] = (*slot >> 24) as u8;
        }
    }
    before - num_unfilled(slots)
}

/// Fills the unfilled (`u64::MAX`) slots, at most [`MAX_BITMAP_SLOTS`], round by round; returns how many remain.
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512dq,avx2,bmi1,bmi2,popcnt")]
pub(super) fn compete_for_unfilled(block: &[u64], seed: u64, slots: &mut [u64]) -> u32 {
    let num_slots = _mm512_set1_epi64(slots.len() as i64);
    let mut unfilled = [0u64; MAX_BITMAP_SLOTS / 64];
    for (slot, _) in slots
        .iter()
        .enumerate()
        .filter(|&(_, &value)| value == u64::MAX)
    {
        unfilled[slot / 64] |= 1 << (slot % 64);
    }
    let one = _mm512_set1_epi64(1);
    let mut hits = [0u64; BLOCK_LEN + 8];
    for round in 1..slots.len() as u32 {
        let key = _mm512_set1_epi64(folded_key(round, seed) as i64);
        // SAFETY: the array has the 64 loaded bytes; no alignment is required.
        let bitmap = unsafe { _mm512_loadu_si512(unfilled.as_ptr().cast()) };
        for features in block.chunks(BLOCK_LEN) {
            let mut num_hits = 0;
            for folded in features.as_chunks::<8>().0 {
                // SAFETY: as above.
                let folded = unsafe { _mm512_loadu_si512(folded.as_ptr().cast()) };
                let entry = entries(folded, key, num_slots);
                // Word slot / 64 of the bitmap, rotated right by slot modulo 64.
                let word = _mm512_permutexvar_epi64(_mm512_srli_epi64::<38>(entry), bitmap);
                let word = _mm512_rorv_epi64(word, _mm512_srli_epi64::<32>(entry));
                let is_hit = _mm512_test_epi64_mask(word, one);
                // Compressed in the register: compressing stores are slow on Zen 4.
                let hit = _mm512_maskz_compress_epi64(is_hit, entry);
                // SAFETY: at most BLOCK_LEN hits precede the 8 words written here.
                unsafe { _mm512_storeu_si512(hits.as_mut_ptr().add(num_hits).cast(), hit) };
                num_hits += is_hit.count_ones() as usize;
            }
            for &entry in &hits[..num_hits] {
                let slot = (entry >> 32) as usize;
                slots[slot] = slots[slot].min(entry & u64::from(u32::MAX));
                unfilled[slot / 64 % unfilled.len()] &= !(1 << (slot % 64));
            }
        }
        if unfilled == [0; MAX_BITMAP_SLOTS / 64] {
            return 0;
        }
    }
    unfilled.iter().map(|word| word.count_ones()).sum()
}
