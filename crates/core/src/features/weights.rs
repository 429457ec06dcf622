//! How are repeated features weighted, and when are two weighted sets equal?
//!
//! Unlike all other weights, `count` is not limited to 15: stored collections and other SimHash packages use raw
//! counts, which need no table and are exact in 64-bit sums. If one token repeats a thousand times, `log-count` is the
//! better choice; it is the default of SimHash.

use crate::hash::mix64;
use crate::isa::{Isa, compiled};

/// How the number of occurrences of a feature determines its weight.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Weights {
    /// Every distinct feature weighs 1.
    None,
    Count,
    /// The [`log_count_weight`] of the number of occurrences.
    LogCount,
    /// By a table: the fewer documents contain the feature, the more it weighs.
    Idf,
    /// Both combined: [`log_count_idf_weight`](super::log_count_idf_weight).
    LogCountIdf,
    /// The maximum weight of the terms in the feature, by a table of terms.
    Lexicon,
    /// The user's weights, given with the tokens.
    Own,
}

/// Maximum weight, except for [`Weights::Count`] and sums of [`Weights::Own`].
pub const MAX_WEIGHT: u8 = 15;

named!(Weights {
    None: "none",
    Count: "count",
    LogCount: "log-count",
    Idf: "idf",
    LogCountIdf: "log-count-idf",
    Lexicon: "lexicon",
    Own: "own",
});

impl Weights {
    /// Whether the rule reads a table.
    pub fn needs_table(self) -> bool {
        matches!(self, Weights::Idf | Weights::LogCountIdf | Weights::Lexicon)
    }
}

/// Returns `min(15, round(2 * log2(1 + count)))`, in integer arithmetic.
pub const fn log_count_weight(count: u32) -> u32 {
    if count >= 180 {
        return 15;
    }
    // round(2 log2 x) >= k exactly when x^4 >= 2^(2k - 1).
    let fourth = (count as u64 + 1).pow(4);
    let weight = fourth.ilog2().div_ceil(2);
    if weight > 15 { 15 } else { weight }
}

/// Returns the sum of the weights, or the number of features if `weights` is empty. Panics if the lengths differ otherwise.
pub(crate) fn total_weight(features: &[u64], weights: &[u32]) -> u64 {
    check_lengths(features, weights);
    match weights.is_empty() {
        true => features.len() as u64,
        false => weights.iter().map(|&weight| u64::from(weight)).sum(),
    }
}

/// Panics unless each feature has a weight, or none has.
pub(crate) fn check_lengths(features: &[u64], weights: &[u32]) {
    let (num_features, num_weights) = (features.len(), weights.len());
    assert!(
        num_weights == 0 || num_weights == num_features,
        "{num_weights} weights for {num_features} features"
    );
}

/// Returns 128 bits that are equal for equal feature sets, in any order; if `weights` is empty, each is 1.
pub fn digest(features: &[u64], weights: &[u32]) -> [u64; 2] {
    compiled!(Isa::best(), digest_plain, (features: &[u64], weights: &[u32]) -> [u64; 2])
}

#[inline(always)]
fn digest_plain(features: &[u64], weights: &[u32]) -> [u64; 2] {
    let (mut low, mut high) = (0u64, 0u64);
    if weights.is_empty() {
        for &feature in features {
            low = low.wrapping_add(mix64(feature ^ LOW_KEY));
            high = high.wrapping_add(mix64(feature.wrapping_add(HIGH_KEY)));
        }
    } else {
        for (&feature, &weight) in features.iter().zip(weights) {
            let weight = u64::from(weight);
            low = low.wrapping_add(mix64(feature ^ LOW_KEY).wrapping_mul(weight));
            high = high.wrapping_add(mix64(feature.wrapping_add(HIGH_KEY)).wrapping_mul(weight));
        }
    }
    [low, high]
}

// Digits of pi.
const LOW_KEY: u64 = 0x243F_6A88_85A3_08D3;
const HIGH_KEY: u64 = 0x1319_8A2E_0370_7344;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Random;

    #[test]
    fn the_vector_digest_is_the_plain_one() {
        let mut random = Random::new(10);
        for len in 0..=257 {
            let features: Vec<u64> = (0..len).map(|_| random.next()).collect();
            let weights: Vec<u32> = (0..len).map(|_| random.next() as u32).collect();
            assert_eq!(
                digest(&features, &weights),
                digest_plain(&features, &weights)
            );
            for isa in Isa::available() {
                let (features, weights) = (&features[..], &weights[..]);
                let found =
                    compiled!(isa, digest_plain, (features: &[u64], weights: &[u32]) -> [u64; 2]);
                assert_eq!(found, digest_plain(features, weights));
            }
            assert_eq!(
                digest(&features, &[]),
                digest_plain(&features, &vec![1; len])
            );
        }
    }
}
