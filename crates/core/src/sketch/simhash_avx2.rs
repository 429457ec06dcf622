//! SimHash kernels for AVX2: 64 byte counters in two registers. A word is spread so that every byte holds its own bit,
//! and a comparison turns the bit into 0 or -1, which is subtracted.

use std::arch::x86_64::*;

use super::simhash_plain::{Counts, plain};

/// Number of additions after which a byte counter may wrap.
const MAX_PENDING: u64 = 255;

/// Number of words added without checking their weights one by one.
const GROUP_LEN: usize = 8;

/// See `simhash::add_block`.
#[target_feature(enable = "avx2,bmi1,bmi2,popcnt")]
pub(super) fn add_bits(words: &[u64], weights: &[u32], counts: &mut Counts) {
    let zero = _mm256_setzero_si256();
    if weights.is_empty() {
        for chunk in words.chunks(MAX_PENDING as usize) {
            let mut bytes = [zero; 2];
            for &word in chunk {
                let set = spread(word);
                bytes[0] = _mm256_sub_epi8(bytes[0], set[0]);
                bytes[1] = _mm256_sub_epi8(bytes[1], set[1]);
            }
            add_bytes(bytes, counts);
        }
        return;
    }
    let mut bytes = [zero; 2];
    let mut pending = 0u64;
    for (words, weights) in words.chunks(GROUP_LEN).zip(weights.chunks(GROUP_LEN)) {
        let group: u64 = weights.iter().map(|&weight| u64::from(weight)).sum();
        if group > MAX_PENDING {
            // Rare: weights that do not fit in bytes are counted one by one.
            plain(words, weights, counts);
            continue;
        }
        if pending + group > MAX_PENDING {
            add_bytes(bytes, counts);
            bytes = [zero; 2];
            pending = 0;
        }
        pending += group;
        for (&word, &weight) in words.iter().zip(weights) {
            let set = spread(word);
            let weight = _mm256_set1_epi8(weight as i8);
            bytes[0] = _mm256_add_epi8(bytes[0], _mm256_and_si256(set[0], weight));
            bytes[1] = _mm256_add_epi8(bytes[1], _mm256_and_si256(set[1], weight));
        }
    }
    add_bytes(bytes, counts);
}

/// Returns 64 bytes; byte i is -1 if bit i of the word is 1, otherwise 0.
#[target_feature(enable = "avx2")]
#[inline]
fn spread(word: u64) -> [__m256i; 2] {
    // Byte i of the register takes byte i / 8 of the word; a shuffle works within 16 bytes, each of which holds the
    // whole word.
    let low = _mm256_setr_epi8(
        0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1, 2, 2, 2, 2, 2, 2, 2, 2, 3, 3, 3, 3, 3, 3,
        3, 3,
    );
    let high = _mm256_add_epi8(low, _mm256_set1_epi8(4));
    let bit = _mm256_set1_epi64x(0x8040_2010_0804_0201_u64 as i64);
    let word = _mm256_set1_epi64x(word as i64);
    // Not `map`: a closure in it would not be compiled for this instruction set.
    let mut set = [low, high];
    for bytes in &mut set {
        let bits = _mm256_and_si256(_mm256_shuffle_epi8(word, *bytes), bit);
        *bytes = _mm256_cmpeq_epi8(bits, bit);
    }
    set
}

/// Adds 64 byte counters.
#[target_feature(enable = "avx2")]
#[inline]
fn add_bytes(bytes: [__m256i; 2], counts: &mut Counts) {
    let mut narrow = [[0u8; 32]; 2];
    for (narrow, bytes) in narrow.iter_mut().zip(bytes) {
        // SAFETY: `narrow` has the 32 stored bytes; no alignment is required.
        unsafe { _mm256_storeu_si256(narrow.as_mut_ptr().cast(), bytes) };
    }
    for (count, &narrow) in counts.iter_mut().zip(narrow.as_flattened()) {
        *count += u64::from(narrow);
    }
}
