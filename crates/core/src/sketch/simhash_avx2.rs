//! SimHash kernels for AVX2.

use super::simhash::{Counts, derive_words_body, plain};

/// See `simhash::add_block`.
#[target_feature(enable = "avx2,bmi1,bmi2,popcnt")]
pub(super) fn add_bits(words: &[u64], weights: &[u32], counts: &mut Counts) {
    plain(words, weights, counts);
}

/// See `simhash::derive_words`.
#[target_feature(enable = "avx2,bmi1,bmi2,popcnt")]
pub(super) fn derive_words(features: &[u64], step: u64, out: &mut [u64]) {
    derive_words_body(features, step, out);
}
