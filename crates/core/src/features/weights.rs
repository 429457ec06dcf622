//! What does a repeated feature weigh, and when are two weighted sets equal?
//!
//! The weight `count` is not limited to 15, unlike all others: stored collections and other SimHash packages use raw
//! counts, which need no table and are exact in 64-bit sums. Where one token repeats a thousand times, `log-count` is
//! the better choice; it is the default of SimHash.

use crate::hash::mix64;
#[cfg(target_arch = "x86_64")]
use crate::isa::Isa;

/// How the number of occurrences of a feature becomes its weight.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Weights {
    /// Every distinct feature weighs 1.
    None,
    /// The number of occurrences.
    Count,
    /// [`log_count_weight`] of it.
    LogCount,
    /// What a table says of the feature: the fewer documents hold it the more.
    Idf,
    /// Both: [`log_count_idf_weight`](super::log_count_idf_weight).
    LogCountIdf,
    /// The greatest weight of the terms in the feature, by a table of terms.
    Lexicon,
    /// The user's own: the weights of tokens that came with them.
    Own,
}

/// No weight but that of [`Weights::Count`] is greater, and sums of [`Weights::Own`].
pub const MAX_WEIGHT: u8 = 15;

impl Weights {
    /// The rule of that name, or `None`.
    pub fn from_name(name: &str) -> Option<Weights> {
        Weights::ALL
            .into_iter()
            .find(|weights| weights.name() == name)
    }

    /// Every rule, in the order in which they are told.
    pub const ALL: [Weights; 7] = [
        Weights::None,
        Weights::Count,
        Weights::LogCount,
        Weights::Idf,
        Weights::LogCountIdf,
        Weights::Lexicon,
        Weights::Own,
    ];

    /// Whether the rule reads a table.
    pub fn needs_table(self) -> bool {
        matches!(self, Weights::Idf | Weights::LogCountIdf | Weights::Lexicon)
    }

    /// Name as users write it.
    pub fn name(self) -> &'static str {
        match self {
            Weights::None => "none",
            Weights::Count => "count",
            Weights::LogCount => "log-count",
            Weights::Idf => "idf",
            Weights::LogCountIdf => "log-count-idf",
            Weights::Lexicon => "lexicon",
            Weights::Own => "own",
        }
    }
}

/// `min(15, round(2 * log2(1 + count)))`, in integers.
pub const fn log_count_weight(count: u32) -> u32 {
    if count >= 180 {
        return 15;
    }
    // round(2 log2 x) >= k exactly when x^4 >= 2^(2k - 1).
    let fourth = (count as u64 + 1).pow(4);
    let weight = fourth.ilog2().div_ceil(2);
    if weight > 15 { 15 } else { weight }
}

/// 128 bits that are equal for equal feature sets, whatever their order. Empty `weights` are 1 each.
///
/// Cost: about 1 ns a feature. Equal digests of different sets: one chance in 2^64 or less among texts that nobody crafted.
pub fn digest(features: &[u64], weights: &[u32]) -> [u64; 2] {
    #[cfg(target_arch = "x86_64")]
    if Isa::avx512().is_some() {
        // SAFETY: just asked for.
        return unsafe { digest_avx512(features, weights) };
    }
    digest_plain(features, weights)
}

/// The same lines, compiled for eight features at a time.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512dq,avx512vl,avx512bw,avx2")]
fn digest_avx512(features: &[u64], weights: &[u32]) -> [u64; 2] {
    digest_plain(features, weights)
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
            assert_eq!(
                digest(&features, &[]),
                digest_plain(&features, &vec![1; len])
            );
        }
    }
}
