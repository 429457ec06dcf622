//! Which measures are there, and which sum must two sets share to reach a threshold?
//!
//! Every measure here is a non-decreasing function of one integer, the sum over shared features of the lesser weight
//! (jaccard, containment, dice, overlap) or of the product of the weights (cosine). Rounding to `f64` is monotone too:
//! conversion, division and square root are each correctly rounded. So applying the same formula to an upper bound of
//! the integer gives an upper bound of the computed similarity, and no margin is needed.

/// An exact similarity of two feature sets A and B, from 0 to 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Measure {
    /// Sum of the lesser weights / sum of the greater weights.
    Jaccard,
    /// Sum of the lesser weights / sum of A's weights: the share of A that B contains.
    Containment,
    /// Cosine of the angle between the weight vectors.
    Cosine,
    /// Twice the sum of the lesser weights / sum of all weights of both.
    Dice,
    /// Sum of the lesser weights / smaller sum of weights.
    Overlap,
}

impl Measure {
    pub const ALL: [Measure; 5] = [
        Measure::Jaccard,
        Measure::Containment,
        Measure::Cosine,
        Measure::Dice,
        Measure::Overlap,
    ];

    pub fn name(self) -> &'static str {
        match self {
            Measure::Jaccard => "jaccard",
            Measure::Containment => "containment",
            Measure::Cosine => "cosine",
            Measure::Dice => "dice",
            Measure::Overlap => "overlap",
        }
    }

    pub fn from_name(name: &str) -> Option<Measure> {
        Measure::ALL
            .into_iter()
            .find(|measure| measure.name() == name)
    }
}

/// The measure of one pair as a function of the shared sum.
#[derive(Debug, Clone, Copy)]
pub(super) struct Formula {
    measure: Measure,
    /// Similarity if either set is empty, regardless of the sum.
    fixed: Option<f64>,
    /// Jaccard, dice: the total weight of both; containment: that of A; overlap: the lesser of both.
    whole: u64,
    /// Cosine: the root of the product of the squared norms.
    root: f64,
}

impl Formula {
    /// Creates the formula for A against B, given the sums of their weights and a way to get their squared norms.
    #[inline]
    pub(super) fn new(
        measure: Measure,
        a: u64,
        b: u64,
        norms: impl FnOnce() -> (u128, u128),
    ) -> Self {
        let fixed = match (a == 0, b == 0) {
            (true, true) => Some(1.0),
            (false, false) => None,
            _ => Some(0.0),
        };
        Formula {
            measure,
            fixed,
            whole: match measure {
                Measure::Jaccard | Measure::Dice => a + b,
                Measure::Overlap => a.min(b),
                _ => a,
            },
            root: match measure {
                Measure::Cosine => {
                    let (a, b) = norms();
                    root_of_product(a, b)
                }
                _ => 0.0,
            },
        }
    }

    /// Whether the sum is of products of weights, rather than of lesser weights.
    #[inline]
    pub(super) fn is_product(&self) -> bool {
        self.measure == Measure::Cosine
    }

    /// Returns the similarity that does not depend on the sum: if either set is empty.
    #[inline]
    pub(super) fn fixed(&self) -> Option<f64> {
        self.fixed
    }

    /// Returns the least sum whose similarity reaches the threshold, or `max_sum + 1`. The estimate may be off by
    /// rounding; the formula itself decides.
    #[inline]
    pub(super) fn needed(&self, threshold: f64, max_sum: u64) -> u64 {
        // Unreachable thresholds, and those that every sum reaches, would invalidate the estimate.
        if self.similarity(u128::from(max_sum)) < threshold {
            return max_sum + 1;
        }
        if threshold <= 0.0 {
            return 0;
        }
        let estimate = match self.measure {
            Measure::Jaccard => threshold / (1.0 + threshold) * self.whole as f64,
            Measure::Dice => threshold / 2.0 * self.whole as f64,
            Measure::Containment | Measure::Overlap => threshold * self.whole as f64,
            Measure::Cosine => threshold * self.root,
        };
        // The cast maps negative numbers to 0 and large ones to the maximum integer.
        let mut needed = (estimate.ceil() as u64).min(max_sum + 1);
        while needed > 0 && self.similarity(u128::from(needed - 1)) >= threshold {
            needed -= 1;
        }
        while needed <= max_sum && self.similarity(u128::from(needed)) < threshold {
            needed += 1;
        }
        needed
    }

    /// Returns the similarity for a shared sum. Non-decreasing in `sum`, up to the maximum possible sum.
    #[inline]
    pub(super) fn similarity(&self, sum: u128) -> f64 {
        if let Some(fixed) = self.fixed {
            return fixed;
        }
        match self.measure {
            Measure::Jaccard => sum as u64 as f64 / (self.whole - sum as u64) as f64,
            // Twice the sum is at most the whole, a 64-bit integer.
            Measure::Dice => (2 * sum as u64) as f64 / self.whole as f64,
            Measure::Containment | Measure::Overlap => sum as u64 as f64 / self.whole as f64,
            Measure::Cosine => sum as f64 / self.root,
        }
    }
}

/// Returns the square root of a * b, from the product rounded once.
#[inline]
fn root_of_product(a: u128, b: u128) -> f64 {
    if a == b {
        return a as f64;
    }
    match (u64::try_from(a), u64::try_from(b)) {
        (Ok(a), Ok(b)) => ((u128::from(a) * u128::from(b)) as f64).sqrt(),
        // Squared norms beyond 2^64 require weights that no document reaches.
        _ => (a as f64 * b as f64).sqrt(),
    }
}
