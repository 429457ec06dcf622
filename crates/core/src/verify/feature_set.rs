//! Which distinct features has a document, and how heavy are they?

use crate::isa::Isa;

use super::Measure;
use super::bitmap::Bitmap;
use super::bounds::Formula;
use super::intersect;

/// The distinct features of a document, sorted, with their weights.
///
/// About 8 bytes a feature, 4 more where weights differ from 1, and 1 to 2 bytes a copy for the bitmap.
#[derive(Debug, Clone)]
pub struct FeatureSet {
    pub(super) features: Box<[u64]>,
    /// Empty where every weight is 1.
    pub(super) weights: Box<[u32]>,
    /// Sum of the weights.
    pub(super) total: u64,
    /// Sum of the squared weights.
    pub(super) norm: u128,
    pub(super) max_weight: u32,
    pub(super) bitmap: Bitmap,
}

impl FeatureSet {
    /// Makes the set of the features, in any order.
    ///
    /// `weights` is empty (each feature weighs 1) or as long as `features`. Repeated features count
    /// once without weights; with weights, their weights add up (at most to `u32::MAX`). A feature of
    /// weight 0 is absent.
    ///
    /// # Panics
    /// When `weights` has another length than `features`.
    pub fn new(features: &[u64], weights: &[u32]) -> Self {
        assert!(
            weights.is_empty() || weights.len() == features.len(),
            "{} weights for {} features",
            weights.len(),
            features.len()
        );
        let (features, weights) = if weights.iter().all(|&weight| weight == 1) {
            sorted_features(features, !weights.is_empty())
        } else {
            sorted_pairs(features, weights)
        };
        let (total, norm, max_weight) = if weights.is_empty() {
            let len = features.len() as u64;
            (len, u128::from(len), u32::from(len > 0))
        } else {
            (
                weights.iter().map(|&weight| u64::from(weight)).sum(),
                weights
                    .iter()
                    .map(|&weight| u128::from(weight) * u128::from(weight))
                    .sum(),
                weights.iter().copied().max().unwrap_or(0),
            )
        };
        let bitmap = Bitmap::new(&features, &weights, total);
        FeatureSet {
            features,
            weights,
            total,
            norm,
            max_weight,
            bitmap,
        }
    }

    /// Number of distinct features.
    pub fn num_features(&self) -> usize {
        self.features.len()
    }

    /// Number of distinct features that both sets hold.
    pub fn num_shared(&self, other: &FeatureSet) -> usize {
        intersect::plain_shared(&self.features, &other.features)
    }

    /// The exact similarity of this set (A) and another (B).
    ///
    /// Sums are exact integers. Jaccard and containment are one rounded division. Cosine is one
    /// division by the rounded square root of the product of the squared norms, itself rounded once
    /// to `f64`; where the norms are equal the root is the norm, so that equal sets have similarity 1
    /// at any weight. Two empty sets have similarity 1, an empty and another 0.
    pub fn similarity(&self, other: &FeatureSet, measure: Measure) -> f64 {
        let formula = Formula::new(self, other, measure);
        formula.similarity(intersect::sum(
            self,
            other,
            formula.is_product(),
            Isa::Plain,
        ))
    }

    /// Bytes of memory held, the value itself included.
    pub fn num_bytes(&self) -> usize {
        size_of::<FeatureSet>()
            + size_of_val::<[u64]>(&self.features)
            + size_of_val::<[u32]>(&self.weights)
            + self.bitmap.num_bytes()
    }
}

/// Sorts features and drops repeats. `are_weighted`: repeats add up, which needs weights.
fn sorted_features(features: &[u64], are_weighted: bool) -> (Box<[u64]>, Box<[u32]>) {
    let mut sorted = features.to_vec();
    sorted.sort_unstable();
    let has_repeats = sorted.windows(2).any(|pair| pair[0] == pair[1]);
    if has_repeats && are_weighted {
        return sorted_pairs(features, &vec![1; features.len()]);
    }
    if has_repeats {
        sorted.dedup();
    }
    (sorted.into_boxed_slice(), Box::default())
}

/// Sorts features together with their weights, adds up the weights of repeats and drops those of 0.
fn sorted_pairs(features: &[u64], weights: &[u32]) -> (Box<[u64]>, Box<[u32]>) {
    let mut pairs: Vec<(u64, u32)> = features
        .iter()
        .copied()
        .zip(weights.iter().copied())
        .filter(|&(_, weight)| weight > 0)
        .collect();
    pairs.sort_unstable_by_key(|&(feature, _)| feature);
    pairs.dedup_by(|next, kept| {
        let is_repeat = next.0 == kept.0;
        if is_repeat {
            kept.1 = kept.1.saturating_add(next.1);
        }
        is_repeat
    });
    let features = pairs.iter().map(|&(feature, _)| feature).collect();
    if pairs.iter().all(|&(_, weight)| weight == 1) {
        return (features, Box::default());
    }
    (features, pairs.iter().map(|&(_, weight)| weight).collect())
}
