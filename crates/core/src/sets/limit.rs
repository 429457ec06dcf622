//! How much must two sets share to reach a threshold?

use crate::features::siblings::{MOST_CROWD, crowd_penalty};

/// A measure as the join sees it: by the *mass* of a feature (its weight, or the square) and the *size* of a set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SetMeasure {
    /// Shared over united.
    Jaccard,
    /// Twice the shared over the sum of both.
    Dice,
    /// Sum of products over the product of the norms.
    Cosine,
    /// Shared over the smaller set: a bound of the containment of either in the other, and the overlap coefficient itself.
    Smaller,
}

impl SetMeasure {
    pub fn from_name(name: &str) -> Option<SetMeasure> {
        Some(match name {
            "jaccard" => SetMeasure::Jaccard,
            "dice" => SetMeasure::Dice,
            "cosine" => SetMeasure::Cosine,
            "containment" | "overlap" => SetMeasure::Smaller,
            _ => return None,
        })
    }
}

/// The share of every bound that rounding may have changed: bounds only choose what is measured exactly afterwards.
const SLACK: f64 = 1e-6;

#[derive(Debug, Clone, Copy)]
pub struct Limit {
    pub(super) measure: SetMeasure,
    /// Multiplies the sum of the sizes (Jaccard, Dice), their product (cosine) or the smaller one.
    factor: f64,
    /// At a feature with less than this share of its set's size left the prefix ends.
    share: f64,
}

/// What documents need of each other.
#[derive(Debug, Clone, Copy)]
pub struct Demand {
    pub measure: SetMeasure,
    pub threshold: f64,
    /// Added for a smaller document of one feature; of n features, divided by the root of n.
    pub short_margin: f64,
    /// Whether weights tell which features are common; documents that share no others need more.
    pub by_rarity: bool,
}

/// What a document and another need at least, and what they need if they share only common features.
pub(super) type Limits = [Limit; 2];

impl Demand {
    /// A threshold for all documents.
    pub fn new(measure: SetMeasure, threshold: f64) -> Self {
        Demand {
            measure,
            threshold,
            short_margin: 0.0,
            by_rarity: false,
        }
    }

    /// Returns the limit of all pairs.
    pub fn limit(self) -> Limit {
        Limit::new(self.measure, self.threshold)
    }

    /// Returns the limits of a document of so many features, whose pairs need so much more. The smaller document may have
    /// fewer features, so that a pair needs even more.
    pub(super) fn limits(self, num_features: usize, penalty: f64) -> Limits {
        let margin = self.short_margin / (num_features.max(1) as f64).sqrt();
        let of_crowd = if self.by_rarity { MOST_CROWD } else { 0 };
        [0, of_crowd].map(|units| {
            let needed = self.threshold + margin + penalty + crowd_penalty(units);
            Limit::new(self.measure, needed.min(1.0))
        })
    }
}

impl Limit {
    pub fn new(measure: SetMeasure, threshold: f64) -> Self {
        let t = threshold * (1.0 - SLACK);
        let (factor, share) = match measure {
            SetMeasure::Jaccard => (t / (1.0 + t), t),
            // At equal shares the other set is at best as small as what is shared.
            SetMeasure::Dice => (t / 2.0, t / (2.0 - t)),
            SetMeasure::Cosine => (t, t),
            // A prefix a little longer than needed, so that more than one feature of it must be shared: elsewhere
            // the size of the other set asks for that.
            SetMeasure::Smaller => (t, 0.9 * t),
        };
        Limit {
            measure,
            factor,
            share,
        }
    }

    #[inline]
    pub(super) fn mass(self, weight: u32) -> f64 {
        let weight = f64::from(weight);
        match self.measure {
            SetMeasure::Cosine => weight * weight,
            _ => weight,
        }
    }

    /// The size of features of this mass together.
    #[inline]
    pub(super) fn size(self, mass: f64) -> f64 {
        match self.measure {
            SetMeasure::Cosine => mass.sqrt(),
            _ => mass,
        }
    }

    /// The mass that must still stand at a feature, itself included, for it to be in the prefix of a set of this mass.
    pub(super) fn least_rest(self, mass: f64) -> f64 {
        match self.measure {
            SetMeasure::Cosine => self.share * self.share * mass,
            _ => self.share * mass,
        }
    }

    /// What two sets of these sizes must share.
    #[inline(always)]
    pub(super) fn needed(self, a: f64, b: f64) -> f64 {
        match self.measure {
            SetMeasure::Jaccard | SetMeasure::Dice => self.factor * (a + b),
            SetMeasure::Cosine => self.factor * a * b,
            SetMeasure::Smaller => self.factor * a.min(b),
        }
    }

    /// What features of these sizes may share at most.
    #[inline(always)]
    pub(super) fn most(self, a: f64, b: f64) -> f64 {
        match self.measure {
            SetMeasure::Cosine => a * b,
            _ => a.min(b),
        }
    }

    /// What a feature of these weights adds to what is shared.
    #[inline(always)]
    pub(super) fn shared(self, a: u32, b: u32) -> f64 {
        match self.measure {
            SetMeasure::Cosine => f64::from(a) * f64::from(b),
            _ => f64::from(a.min(b)),
        }
    }

    /// Whether any feature of the larger set may be the rarest shared one, so that its prefix is all of it.
    pub(super) fn is_one_sided(self) -> bool {
        self.measure == SetMeasure::Smaller
    }
}
