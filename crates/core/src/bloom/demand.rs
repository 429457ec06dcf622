//! How many bits must two filters share?

use std::f64::consts::SQRT_2;

/// A measure on the bits of two filters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BitMeasure {
    /// 1 - differing bits / bits.
    Hamming,
    /// Shared over the root of the product of both.
    Cosine,
    /// Shared over the smaller.
    Overlap,
    /// Twice the shared over the sum of both.
    Dice,
    /// Shared over united.
    Jaccard,
}

impl BitMeasure {
    /// Every measure.
    pub const ALL: [BitMeasure; 5] = [
        BitMeasure::Hamming,
        BitMeasure::Cosine,
        BitMeasure::Overlap,
        BitMeasure::Dice,
        BitMeasure::Jaccard,
    ];

    /// Name as users write it.
    pub fn name(self) -> &'static str {
        match self {
            BitMeasure::Hamming => "hamming",
            BitMeasure::Cosine => "cosine",
            BitMeasure::Overlap => "overlap",
            BitMeasure::Dice => "dice",
            BitMeasure::Jaccard => "jaccard",
        }
    }

    /// The measure of that name, or `None`.
    pub fn from_name(name: &str) -> Option<BitMeasure> {
        BitMeasure::ALL
            .into_iter()
            .find(|measure| measure.name() == name)
    }

    /// The similarity of filters of `num_bits` bits of which `a` and `b` are set, `shared` in both. Two filters without bits have
    /// similarity 1, one without and another 0 (but for Hamming).
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

/// A measure on feature sets, as filters can tell it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Measure {
    /// Shared over united.
    Jaccard,
    /// Twice the shared over the sum of both.
    Dice,
    /// Shared over the root of the product of both (each feature once).
    Cosine,
    /// Shared over the smaller: the containment of the one in the other, at best.
    Smaller,
}

impl Measure {
    /// The measure that serves the one of this name, or `None`.
    pub fn from_name(name: &str) -> Option<Measure> {
        Some(match name {
            "jaccard" => Measure::Jaccard,
            "dice" => Measure::Dice,
            "cosine" => Measure::Cosine,
            "containment" | "overlap" => Measure::Smaller,
            _ => return None,
        })
    }

    /// What two sets of sizes `x` and `y` must share at a threshold, and how that grows with either size.
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

/// What is asked of two filters.
#[derive(Debug, Clone, Copy)]
pub enum Demand {
    /// A similarity of the bits themselves.
    Bits(BitMeasure, f64),
    /// That the feature sets may reach a threshold: a pair exactly at it passes with the probability that belongs to `deviations`,
    /// the standard deviations that are allowed for. See [`Demand::sets`].
    Sets {
        /// Of the feature sets.
        measure: Measure,
        /// Of the measure.
        threshold: f64,
        /// How far below its expectation the estimate may fall.
        deviations: f64,
    },
}

impl Demand {
    /// The demand that a pair whose feature sets are exactly at `threshold` meets with probability `recall`, by the normal approximation.
    ///
    /// With `load(x) = -ln(1 - x/m)` the number of features estimated from x set bits of m, in units of m/num_hashes (Swamidass, Baldi,
    /// J. Chem. Inf. Model. 47, 2007), a pair passes if the load of the united filter is at most `load(a) + load(b) - shared`, where `shared` is
    /// what sets of these loads must share, and allowed deviations.
    pub fn sets(measure: Measure, threshold: f64, recall: f64) -> Self {
        Demand::Sets {
            measure,
            threshold,
            deviations: normal_quantile(recall),
        }
    }

    /// The least number of shared bits that filters with `a` and `b` of `num_bits` bits set must have; more than both have where
    /// none is enough.
    pub fn least_shared(self, num_bits: u32, a: u32, b: u32) -> u32 {
        let smaller = a.min(b);
        match self {
            Demand::Bits(measure, threshold) => {
                let reaches = |shared| measure.value(num_bits, a, b, shared) >= threshold;
                // The value rises with what is shared.
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
                // United filters have whole numbers of bits: half of one is allowed for.
                let united = 0.5 - m * libm::expm1(-(most + deviations * deviation).max(0.0));
                (a + b).saturating_sub(united.min(m) as u32)
            }
        }
    }
}

/// Features estimated from `set` bits, times hashes, over bits: `-ln(1 - set/num_bits)`. A full filter counts as one with half a bit left.
pub(super) fn load(num_bits: u32, set: u32) -> f64 {
    let left = f64::from(num_bits - set.min(num_bits)).max(0.5);
    -libm::log(left / f64::from(num_bits))
}

/// `e^x - 1 - x`: the variance of an estimated load x, times the number of bits.
fn variance(x: f64) -> f64 {
    libm::expm1(x) - x
}

/// Standard deviation of `load(a) + load(b) - shared(a, b) - load(a | b)` for sets that share what they must.
///
/// By the delta method from the numbers of empty bits: the covariance of the loads of two sets is that function of the load of what both hold.
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

/// The z for which a standard normal number is at most z with this probability.
fn normal_quantile(probability: f64) -> f64 {
    let (mut low, mut high) = (-40.0_f64, 40.0_f64);
    // Halved until neighbors meet.
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
                    // What a union of 64 bits leaves no room for cannot be shared.
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
        // Far too unequal sizes; the whole of a full filter; equal filters at threshold 1.
        assert!(need(0.8, 0.95, 100, 500) > 100);
        assert!(need(0.8, 0.95, 2048, 2048) <= 2048);
        assert!(need(1.0, 0.95, 300, 300) <= 300);
        assert_eq!(need(0.5, 0.95, 0, 0), 0);
    }
}
