//! What are the features of tokens that the user cut and weighed?

use super::distinct::Distinct;
use super::shingle::shingle;

/// Distinct features in order of first occurrence, and their weights.
///
/// `hashes` are those of the tokens in order, `weights` as many. A shingle weighs as the heaviest of its tokens, the
/// weights of equal shingles add up, and features of weight 0 are left out, unless all are: then each weighs 1. Fewer
/// tokens than `width` are one feature.
///
/// # Panics
/// When the lengths differ or `width` is 0.
pub fn features_of_tokens(hashes: &[u64], weights: &[u32], width: usize) -> (Vec<u64>, Vec<u32>) {
    assert_eq!(hashes.len(), weights.len(), "weights of tokens");
    let mut occurrences = hashes.to_vec();
    let taken = width.min(hashes.len());
    if taken > 1 || hashes.len() < width && !hashes.is_empty() {
        shingle(&mut occurrences, taken);
    }
    let mut distinct = Distinct::default();
    distinct.collect(&occurrences);
    let mut sums = vec![0u32; distinct.features.len()];
    let heaviest = weights
        .windows(taken.max(1))
        .map(|weights| weights.iter().copied().max().unwrap_or(0));
    for (occurrence, weight) in occurrences.iter().zip(heaviest) {
        if let Some(place) = distinct.place(*occurrence) {
            sums[place] = sums[place].saturating_add(weight);
        }
    }
    if sums.iter().all(|&sum| sum == 0) {
        sums.fill(1);
    }
    distinct.retain(|i| sums[i] > 0);
    sums.retain(|&sum| sum > 0);
    (distinct.features, sums)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn weights_of_equal_features_add_up_and_zeros_go() {
        let of = |hashes: &[u64], weights: &[u32]| features_of_tokens(hashes, weights, 1);
        assert_eq!(of(&[5, 9, 5], &[4, 0, 3]), (vec![5], vec![7]));
        assert_eq!(of(&[5, 9], &[0, 0]), (vec![5, 9], vec![1, 1]));
        assert_eq!(of(&[], &[]), (vec![], vec![]));
    }

    #[test]
    fn a_shingle_weighs_as_its_heaviest_token() {
        let (features, weights) = features_of_tokens(&[1, 2, 3, 1, 2], &[4, 1, 2, 1, 9], 2);
        assert_eq!((features.len(), weights), (3, vec![4 + 9, 2, 2]));
        let (short, weights) = features_of_tokens(&[1, 2], &[4, 1], 3);
        assert_eq!((short.len(), weights), (1, vec![4]));
        assert_eq!(short[0], features[0]);
        assert_ne!(features_of_tokens(&[1], &[1], 2).0, [1]);
    }
}
