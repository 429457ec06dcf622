//! How many bits must two filters share?

use std::f64::consts::SQRT_2;

/// A measure on the bits of two filters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BitMeasure {
    /// 1 - number of differing bits / number of bits.
    Hamming,
    /// Shared bits / root of the product of both counts.
    Cosine,
    /// Shared bits / smaller count.
    Overlap,
    /// Twice the shared bits / sum of both counts.
    Dice,
    /// Shared bits / bits of the union.
    Jaccard,
}

named!(BitMeasure {
    Hamming: "hamming",
    Cosine: "cosine",
    Overlap: "overlap",
    Dice: "dice",
    Jaccard: "jaccard",
});

impl BitMeasure {
    /// Returns the similarity of filters of `num_bits` bits with `a` and `b` bits set, of which they share `shared`.
    /// Two empty filters have similarity 1; an empty and a nonempty filter have 0, except for Hamming.
    pub fn value(self, num_bits: u32, a: u32, b: u32, shared: u32) -> f64 {
        let [m, x, y, both] = [num_bits, a, b, shared].map(f64::from);
        match self {
            BitMeasure::Hamming => 1.0 - (x + y - 2.0 * both) / m,
            _ if a == 0 && b == 0 => 1.0,
            _ if a == 0 || b == 0 => 0.0,
            BitMeasure::Cosine => both / (x * y).sqrt(),
            BitMeasure::Overlap => both / x.min(y),
            BitMeasure::Dice => 2.0 * both / (x + y),
            BitMeasure::Jaccard => both / (x + y - both),
        }
    }
}

/// A measure on feature sets that filters can estimate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Measure {
    /// Shared features / features of the union.
    Jaccard,
    /// Twice the shared features / sum of both sizes.
    Dice,
    /// Shared features / root of the product of both sizes, counting each feature once.
    Cosine,
    /// Shared features / smaller size: the greater of both containments.
    Smaller,
}

impl Measure {
    pub fn from_name(name: &str) -> Option<Measure> {
        Some(match name {
            "jaccard" => Measure::Jaccard,
            "dice" => Measure::Dice,
            "cosine" => Measure::Cosine,
            "containment" | "overlap" => Measure::Smaller,
            _ => return None,
        })
    }

    /// Returns how much sets of sizes `x` and `y` must share at a threshold, and its derivatives by both sizes.
    fn shared(self, t: f64, x: f64, y: f64) -> (f64, [f64; 2]) {
        match self {
            Measure::Jaccard => (t / (1.0 + t) * (x + y), [t / (1.0 + t); 2]),
            Measure::Dice => (t / 2.0 * (x + y), [t / 2.0; 2]),
            Measure::Cosine => {
                let root = libm::sqrt(x * y);
                let slope = |size: f64| {
                    if size > 0.0 {
                        t / 2.0 * root / size
                    } else {
                        0.0
                    }
                };
                (t * root, [slope(x), slope(y)])
            }
            Measure::Smaller if x <= y => (t * x, [t, 0.0]),
            Measure::Smaller => (t * y, [0.0, t]),
        }
    }
}

/// The condition that two filters must meet.
#[derive(Debug, Clone, Copy)]
pub enum Demand {
    /// A minimum similarity of the bits themselves.
    Bits(BitMeasure, f64),
    /// The feature sets may reach a threshold, with this number of standard deviations allowed; see [`Demand::sets`].
    Sets {
        measure: Measure,
        threshold: f64,
        /// Allowed distance of the estimate below its expectation, in standard deviations.
        deviations: f64,
    },
}

impl Demand {
    /// Returns the demand that a pair meets with probability `recall` if its sets are exactly at `threshold`, by the
    /// normal approximation. With `load(x) = -ln(1 - x/m)` (Swamidass, Baldi, J. Chem. Inf. Model. 47, 2007), a pair
    /// passes if the load of the union is at most `load(a) + load(b)`, less what sets with these loads must share, plus
    /// deviations.
    pub fn sets(measure: Measure, threshold: f64, recall: f64) -> Self {
        Demand::Sets {
            measure,
            threshold,
            deviations: normal_quantile(recall),
        }
    }

    /// Returns the least number of bits that filters with `a` and `b` bits set must share; more than both have if none.
    pub fn least_shared(self, num_bits: u32, a: u32, b: u32) -> u32 {
        let smaller = a.min(b);
        match self {
            Demand::Bits(measure, threshold) => {
                let reaches = |shared| measure.value(num_bits, a, b, shared) >= threshold;
                // The value increases with the shared bits.
                let (mut low, mut high) = ((a + b).saturating_sub(num_bits), smaller + 1);
                while low < high {
                    let middle = low + (high - low) / 2;
                    match reaches(middle) {
                        true => high = middle,
                        false => low = middle + 1,
                    }
                }
                low
            }
            Demand::Sets {
                measure,
                threshold,
                deviations,
            } => {
                let m = f64::from(num_bits);
                let (x, y) = (load(num_bits, a), load(num_bits, b));
                let (shared, slopes) = measure.shared(threshold, x, y);
                let most = x + y - shared;
                let deviation = deviation(num_bits, [x, y], shared, slopes);
                // Unions have whole numbers of bits, so half a bit is allowed for.
                let united = 0.5 - m * libm::expm1(-(most + deviations * deviation).max(0.0));
                (a + b).saturating_sub(united.min(m) as u32)
            }
        }
    }
}

/// Returns `-ln(1 - set/num_bits)`, the features estimated, times hashes, divided by bits; full is half a bit free.
pub(super) fn load(num_bits: u32, set: u32) -> f64 {
    let left = f64::from(num_bits - set.min(num_bits)).max(0.5);
    -libm::log(left / f64::from(num_bits))
}

/// Returns `e^x - 1 - x`: the variance of an estimated load x, times the number of bits.
fn variance(x: f64) -> f64 {
    libm::expm1(x) - x
}

/// Returns the standard deviation of `load(a) + load(b) - shared(a, b) - load(a | b)` for sets exactly at the demand,
/// by the delta method.
fn deviation(num_bits: u32, loads: [f64; 2], shared: f64, slopes: [f64; 2]) -> f64 {
    let [x, y] = loads;
    let (p, q) = (1.0 - slopes[0], 1.0 - slopes[1]);
    let united = (x + y - shared).max(0.0);
    let sum = p * (p - 2.0) * variance(x)
        + q * (q - 2.0) * variance(y)
        + 2.0 * p * q * variance(shared.min(x).min(y))
        + variance(united);
    libm::sqrt(sum.max(0.0) / f64::from(num_bits))
}

/// Returns the z for which a standard normal number is at most z with this probability.
fn normal_quantile(probability: f64) -> f64 {
    let (mut low, mut high) = (-40.0_f64, 40.0_f64);
    // Bisected until adjacent numbers meet.
    for _ in 0..100 {
        let middle = low / 2.0 + high / 2.0;
        match libm::erfc(-middle / SQRT_2) / 2.0 < probability {
            true => low = middle,
            false => high = middle,
        }
    }
    high
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_those_of_tables() {
        for (probability, z) in [
            (0.5, 0.0),
            (0.95, 1.644_854),
            (0.99, 2.326_348),
            (0.1, -1.281_552),
        ] {
            assert!((normal_quantile(probability) - z).abs() < 1e-5);
        }
    }

    #[test]
    fn bits_reach_their_threshold_exactly_where_told() {
        for measure in BitMeasure::ALL {
            assert_eq!(BitMeasure::from_name(measure.name()), Some(measure));
            for threshold in [0.0, 0.3, 0.5, 0.8, 1.0] {
                for (a, b) in [
                    (0, 0),
                    (0, 5),
                    (1, 1),
                    (7, 20),
                    (20, 7),
                    (33, 33),
                    (64, 60),
                    (64, 64),
                ] {
                    let need = Demand::Bits(measure, threshold).least_shared(64, a, b);
                    // At least this many must be shared, since the union has at most 64 bits.
                    for shared in (a + b).saturating_sub(64)..=a.min(b) {
                        let reaches = measure.value(64, a, b, shared) >= threshold;
                        assert_eq!(
                            reaches,
                            shared >= need,
                            "{measure:?} {threshold} {a} {b} {shared}"
                        );
                    }
                }
            }
        }
    }

    #[test]
    fn sets_need_more_at_higher_thresholds_and_lower_recall() {
        let need = |threshold, recall, a, b| {
            Demand::sets(Measure::Jaccard, threshold, recall).least_shared(2048, a, b)
        };
        assert!(need(0.8, 0.95, 500, 500) > need(0.5, 0.95, 500, 500));
        assert!(need(0.8, 0.95, 500, 500) < need(0.8, 0.5, 500, 500));
        // Very unequal sizes; all bits of a full filter; equal filters at threshold 1.
        assert!(need(0.8, 0.95, 100, 500) > 100);
        assert!(need(0.8, 0.95, 2048, 2048) <= 2048);
        assert!(need(1.0, 0.95, 300, 300) <= 300);
        assert_eq!(need(0.5, 0.95, 0, 0), 0);
    }
}
