//! What is the fingerprint of a weighted feature set?
//!
//! Source: Charikar, Similarity estimation techniques from rounding algorithms, STOC 2002; the exact rule is in
//! `docs/developers/definitions.md`. Bit i is 1 if the features with that bit set weigh more than those without, so the
//! kernels only count set bits (weighted) and compare twice the count with the total weight.

use crate::features::total_weight;
use crate::hash::GOLDEN;
use crate::isa::{Isa, compiled};

use super::simhash_plain::{Counts, derive_words_body, plain};

/// Number of features per block: their words are computed into a buffer of this length.
const BLOCK_LEN: usize = 256;

/// Writes the fingerprint to `out`, the lowest bits in word 0; `weights` is empty (each 1) or as long as `features`.
/// All bits beyond `bits` are 0, and all if there are no features.
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
    let total = total_weight(features, weights);
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
        #[cfg(target_arch = "x86_64")]
        // SAFETY: an `Isa` of this kind is created only if the processor has it.
        Isa::Avx2(_) => unsafe { super::simhash_avx2::add_bits(words, weights, counts) },
        #[cfg(target_arch = "x86_64")]
        // SAFETY: as above.
        Isa::Avx512(_) => unsafe { super::simhash_avx512::add_bits(words, weights, counts) },
        _ => plain(words, weights, counts),
    }
}

/// Writes the derived words `mix(f + step)` of the features.
fn derive_words(features: &[u64], step: u64, isa: Isa, out: &mut [u64]) {
    compiled!(isa, derive_words_body, (features: &[u64], step: u64, out: &mut [u64]));
}
