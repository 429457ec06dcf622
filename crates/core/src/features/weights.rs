//! What does a repeated feature weigh, and when are two weighted sets equal?

use crate::hash::mix64;

/// How the number of occurrences of a feature becomes its weight.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Weights {
    /// Every distinct feature weighs 1.
    None,
    /// The number of occurrences.
    Count,
    /// [`log_count_weight`] of it.
    LogCount,
}

impl Weights {
    /// The rule of that name, or `None`.
    pub fn from_name(name: &str) -> Option<Weights> {
        [Weights::None, Weights::Count, Weights::LogCount]
            .into_iter()
            .find(|weights| weights.name() == name)
    }

    /// Name as users write it.
    pub fn name(self) -> &'static str {
        match self {
            Weights::None => "none",
            Weights::Count => "count",
            Weights::LogCount => "log-count",
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
pub fn digest(features: &[u64], weights: &[u32]) -> [u64; 2] {
    let mut sums = [0u64; 2];
    for (i, &feature) in features.iter().enumerate() {
        let weight = u64::from(weights.get(i).copied().unwrap_or(1));
        let low = mix64(feature ^ 0x243F_6A88_85A3_08D3).wrapping_mul(weight);
        let high = mix64(feature.wrapping_add(0x1319_8A2E_0370_7344)).wrapping_mul(weight);
        sums = [sums[0].wrapping_add(low), sums[1].wrapping_add(high)];
    }
    sums
}
