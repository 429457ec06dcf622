//! MinHash kernels for AVX-512.

use std::arch::x86_64::*;

use super::minhash_values::{fold, folded_key};
use crate::hash::{EXPANSION_STEP, MIX_MULTIPLIERS};

/// Maximum number of slots whose bitmap fits in one register.
pub(super) const MAX_BITMAP_SLOTS: usize = 512;

/// Number of features whose hits are collected before they are applied.
const BLOCK_LEN: usize = 512;

/// Maximum number of slots whose values, truncated to 16 bits, fit in four registers.
const MAX_TABLE_SLOTS: usize = 128;

/// Number of features that are looked up before the table is read again.
const TABLE_BLOCK_LEN: usize = 64;

/// See `minhash_classical::least_hash`.
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512dq,avx2,bmi1,bmi2,popcnt")]
pub(super) fn least_hash(block: &[u64], key: u64) -> u64 {
    super::minhash_values::least_hash_body(block, key)
}

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
    // Eight copies are written at once, regardless of the weight.
    block.resize(end + 8, 0);
    let [first, second] = MIX_MULTIPLIERS.map(|multiplier| _mm512_set1_epi64(multiplier as i64));
    let step = |copies: u64| _mm512_set1_epi64(copies.wrapping_mul(EXPANSION_STEP) as i64);
    let lanes = _mm512_setr_epi64(0, 1, 2, 3, 4, 5, 6, 7);
    let steps = _mm512_mullo_epi64(lanes, step(1));
    for (&feature, &weight) in features.iter().zip(weights) {
        let mut copies = _mm512_add_epi64(_mm512_set1_epi64(feature as i64), steps);
        let mut left = weight as usize;
        let start = at;
        while left > 0 {
            // The mix ends in a fold, and two folds cancel each other.
            let x = _mm512_xor_si512(copies, _mm512_srli_epi64::<33>(copies));
            let x = _mm512_mullo_epi64(x, first);
            let x = _mm512_xor_si512(x, _mm512_srli_epi64::<33>(x));
            let x = _mm512_mullo_epi64(x, second);
            let out: &mut [u64; 8] = block[at..].first_chunk_mut().expect("room for eight");
            // SAFETY: the array has the 64 written bytes; no alignment is required.
            unsafe { _mm512_storeu_si512(out.as_mut_ptr().cast(), x) };
            at += left.min(8);
            left = left.saturating_sub(8);
            copies = _mm512_add_epi64(copies, step(8));
        }
        if weight > 0 {
            // The first copy is the feature itself.
            block[start] = fold(feature);
        }
    }
    block.truncate(end);
}

/// Lets features (a multiple of 8) compete in a round in which any slot can be taken, such as round 0.
///
/// Returns how many slots got their first value. See `minhash_bucket::compete`.
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

/// Does what [`compete`] does, in round 0 for few slots: in a long list, most features are above the value of their
/// slot, which the high 16 bits show without reading the slot.
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512dq,avx2,bmi1,bmi2,popcnt")]
fn compete_by_table(block: &[u64], key: u64, slots: &mut [u64]) -> u32 {
    let key = _mm512_set1_epi64(key as i64);
    let num_slots = _mm512_set1_epi64(slots.len() as i64);
    let (half, low_bits) = (_mm512_set1_epi64(64), _mm512_set1_epi64(0xFFFF));
    let mut bounds = [u16::MAX; MAX_TABLE_SLOTS];
    for (bound, &slot) in bounds.iter_mut().zip(&*slots) {
        *bound = (slot >> 16) as u16;
    }
    let mut hits = [0u64; TABLE_BLOCK_LEN + 8];
    let mut num_filled = 0;
    for features in block.chunks(TABLE_BLOCK_LEN) {
        // SAFETY: each of the four arrays has the 64 loaded bytes; no alignment is required.
        let table = [0, 32, 64, 96]
            .map(|at| unsafe { _mm512_loadu_si512(bounds[at..at + 32].as_ptr().cast()) });
        let mut num_hits = 0;
        for folded in features.as_chunks::<8>().0 {
            // SAFETY: as above.
            let folded = unsafe { _mm512_loadu_si512(folded.as_ptr().cast()) };
            let entry = entries(folded, key, num_slots);
            let slot = _mm512_srli_epi64::<32>(entry);
            let low = _mm512_permutex2var_epi16(table[0], slot, table[1]);
            let high = _mm512_permutex2var_epi16(table[2], slot, table[3]);
            let bound = _mm512_mask_mov_epi64(low, _mm512_test_epi64_mask(slot, half), high);
            let bound = _mm512_and_si512(bound, low_bits);
            let value = _mm512_and_si512(_mm512_srli_epi64::<16>(entry), low_bits);
            let is_hit = _mm512_cmple_epu64_mask(value, bound);
            let hit = _mm512_maskz_compress_epi64(is_hit, entry);
            // SAFETY: at most TABLE_BLOCK_LEN hits precede the 8 words written here.
            unsafe { _mm512_storeu_si512(hits.as_mut_ptr().add(num_hits).cast(), hit) };
            num_hits += is_hit.count_ones() as usize;
        }
        for &entry in &hits[..num_hits] {
            let at = (entry >> 32) as usize;
            let slot = &mut slots[at];
            num_filled += u32::from(*slot == u64::MAX);
            *slot = (*slot).min(entry & u64::from(u32::MAX));
            bounds[at % MAX_TABLE_SLOTS] = (*slot >> 16) as u16;
        }
    }
    num_filled
}

/// Fills the slots in rounds `1..slots.len()`, of which there are at most [`MAX_BITMAP_SLOTS`].
///
/// Slots that are `u64::MAX` are unfilled. Returns how many remain unfilled.
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
