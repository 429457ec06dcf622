//! What do two sorted feature sets share?

use crate::isa::Isa;

use super::feature_set::FeatureSet;

/// The sum over the shared features of the lesser weight, or of the product of the weights.
pub(super) fn sum(a: &FeatureSet, b: &FeatureSet, is_product: bool, _isa: Isa) -> u128 {
    if a.weights.is_empty() && b.weights.is_empty() {
        return plain_shared(&a.features, &b.features) as u128;
    }
    plain_sum(a, b, is_product)
}

/// Number of shared features: the oracle of the vector kernels.
///
/// Without branches on the data, since the order of features is random.
pub(super) fn plain_shared(a: &[u64], b: &[u64]) -> usize {
    let (mut i, mut j, mut num_shared) = (0, 0, 0);
    while i < a.len() && j < b.len() {
        let (x, y) = (a[i], b[j]);
        num_shared += usize::from(x == y);
        i += usize::from(x <= y);
        j += usize::from(y <= x);
    }
    num_shared
}

/// The weighted sum: the oracle of the vector kernels.
pub(super) fn plain_sum(a: &FeatureSet, b: &FeatureSet, is_product: bool) -> u128 {
    let (mut i, mut j, mut sum) = (0, 0, 0u128);
    let weight = |set: &FeatureSet, i: usize| set.weights.get(i).copied().unwrap_or(1);
    while i < a.features.len() && j < b.features.len() {
        let (x, y) = (a.features[i], b.features[j]);
        if x == y {
            let (v, w) = (weight(a, i), weight(b, j));
            sum += if is_product {
                u128::from(v) * u128::from(w)
            } else {
                u128::from(v.min(w))
            };
        }
        i += usize::from(x <= y);
        j += usize::from(y <= x);
    }
    sum
}
