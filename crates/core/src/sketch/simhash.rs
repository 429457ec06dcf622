//! Which fingerprint has a weighted feature set?
//!
//! Source: Charikar, Similarity estimation techniques from rounding algorithms, STOC 2002; the exact
//! rule is in `docs/reference/definitions.md`. Bit i is 1 if the features with that bit set weigh
//! more than those without, so the kernels only count set bits (weighted) and compare twice the count
//! with the total weight.

use crate::hash::{GOLDEN, mix64};
use crate::isa::Isa;

/// Weighted counts of set bits, one for each bit of a 64-bit word.
pub(super) type Counts = [u64; 64];

/// Features of one block: their words are computed into a buffer of this length.
const BLOCK_LEN: usize = 256;

/// Writes the fingerprint of the features into `out`, word 0 the lowest bits.
///
/// `weights` is empty (each feature weighs 1) or as long as `features`. Bits of the last word beyond
/// `bits` are 0, and so is every bit without features. The order of the features does not matter.
///
/// Cost: about 1 ns a feature and word with a vector kernel.
///
/// # Panics
/// When `bits` is no multiple of 32 from 32 to 256, `out` is not `bits.div_ceil(64)` long, or
/// `weights` has another length than `features`.
pub fn simhash(features: &[u64], weights: &[u32], bits: u32, isa: Isa, out: &mut [u64]) {
    assert!(
        (32..=256).contains(&bits) && bits.is_multiple_of(32),
        "bits = {bits}, not a multiple of 32 from 32 to 256"
    );
    assert_eq!(
        out.len(),
        bits.div_ceil(64) as usize,
        "words of the fingerprint"
    );
    assert!(
        weights.is_empty() || weights.len() == features.len(),
        "{} weights for {} features",
        weights.len(),
        features.len()
    );
    let total = if weights.is_empty() {
        features.len() as u64
    } else {
        weights.iter().map(|&weight| u64::from(weight)).sum()
    };
    let mut counts = [[0u64; 64]; 4];
    let counts = &mut counts[..out.len()];
    count_bits(features, weights, isa, counts);
    for (word, counts) in out.iter_mut().zip(counts.iter()) {
        *word = 0;
        for (bit, &count) in counts.iter().enumerate() {
            *word |= u64::from(2 * count > total) << bit;
        }
    }
    if bits % 64 == 32 {
        out[out.len() - 1] &= u64::from(u32::MAX);
    }
}

/// Adds the weighted counts of set bits of every word of the features.
fn count_bits(features: &[u64], weights: &[u32], isa: Isa, counts: &mut [Counts]) {
    let mut words = [0u64; BLOCK_LEN];
    for (index, counts) in counts.iter_mut().enumerate() {
        if index == 0 {
            add_block(features, weights, isa, counts);
            continue;
        }
        let step = (index as u64).wrapping_mul(GOLDEN);
        for start in (0..features.len()).step_by(BLOCK_LEN) {
            let end = (start + BLOCK_LEN).min(features.len());
            let words = &mut words[..end - start];
            derive_words(&features[start..end], step, isa, words);
            let weights = if weights.is_empty() {
                weights
            } else {
                &weights[start..end]
            };
            add_block(words, weights, isa, counts);
        }
    }
}

/// Adds the weighted counts of set bits of `words` to `counts`.
fn add_block(words: &[u64], weights: &[u32], isa: Isa, counts: &mut Counts) {
    match isa {
        Isa::Plain => plain(words, weights, counts),
        #[cfg(target_arch = "x86_64")]
        // SAFETY: an `Isa` of this kind is made only where the processor has it.
        Isa::Avx2(_) => unsafe { super::simhash_avx2::add_bits(words, weights, counts) },
        #[cfg(target_arch = "x86_64")]
        // SAFETY: as above.
        Isa::Avx512(_) => unsafe { super::simhash_avx512::add_bits(words, weights, counts) },
        #[cfg(not(target_arch = "x86_64"))]
        _ => plain(words, weights, counts),
    }
}

/// Writes the derived words `mix(f + step)` of the features.
fn derive_words(features: &[u64], step: u64, isa: Isa, out: &mut [u64]) {
    match isa {
        Isa::Plain => derive_words_body(features, step, out),
        #[cfg(target_arch = "x86_64")]
        // SAFETY: an `Isa` of this kind is made only where the processor has it.
        Isa::Avx2(_) => unsafe { super::simhash_avx2::derive_words(features, step, out) },
        #[cfg(target_arch = "x86_64")]
        // SAFETY: as above.
        Isa::Avx512(_) => unsafe { super::simhash_avx512::derive_words(features, step, out) },
        #[cfg(not(target_arch = "x86_64"))]
        _ => derive_words_body(features, step, out),
    }
}

/// Body of [`derive_words`]; each instruction set compiles its own copy.
#[inline(always)]
pub(super) fn derive_words_body(features: &[u64], step: u64, out: &mut [u64]) {
    for (word, &feature) in out.iter_mut().zip(features) {
        *word = mix64(feature.wrapping_add(step));
    }
}

/// Least bits of the eight bytes of a word.
const BYTES: u64 = 0x0101_0101_0101_0101;
/// What a counter of one byte holds.
const MAX_BYTE: u64 = 255;

/// The oracle of the vector kernels. Counter `i` has a byte for each of the bits `i`, `i + 8`, `i + 16`, ... of the words.
pub(super) fn plain(words: &[u64], weights: &[u32], counts: &mut Counts) {
    let mut bytes = [0u64; 8];
    if weights.is_empty() {
        for chunk in words.chunks(MAX_BYTE as usize) {
            for &word in chunk {
                for (bit, counter) in bytes.iter_mut().enumerate() {
                    *counter += word >> bit & BYTES;
                }
            }
            flush_bytes(&mut bytes, counts);
        }
        return;
    }
    let mut pending = 0;
    for (&word, &weight) in words.iter().zip(weights) {
        let weight = u64::from(weight);
        if weight > MAX_BYTE {
            for (bit, count) in counts.iter_mut().enumerate() {
                *count += (word >> bit & 1) * weight;
            }
            continue;
        }
        if pending + weight > MAX_BYTE {
            flush_bytes(&mut bytes, counts);
            pending = 0;
        }
        pending += weight;
        for (bit, counter) in bytes.iter_mut().enumerate() {
            *counter += (word >> bit & BYTES) * weight;
        }
    }
    flush_bytes(&mut bytes, counts);
}

/// Adds the byte counters to `counts` and clears them.
fn flush_bytes(bytes: &mut [u64; 8], counts: &mut Counts) {
    for (bit, counter) in bytes.iter_mut().enumerate() {
        for (byte, count) in counter.to_le_bytes().into_iter().enumerate() {
            counts[8 * byte + bit] += u64::from(count);
        }
        *counter = 0;
    }
}
