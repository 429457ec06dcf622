//! Which few features represent a whole set?
//!
//! Two samples after Broder, On the resemblance and containment of documents, 1997: one of constant size (Min-s) and
//! one that grows with the set (Mod-m). Both keep small hashes, so that the samples of two sets select the same
//! features from what the sets share. The third of the family, Min-Wise, is a classical [`MinHasher`](super::MinHasher)
//! signature.

use crate::hash::{GOLDEN, expand, mix64};

/// Which hashes of a set are kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sample {
    /// This many least hashes (bottom-s).
    MinS(u32),
    /// All hashes below 2^64 / m (FracMinHash of scale 1/m): each with probability 1/m.
    ModM(u64),
}

impl Sample {
    /// Appends the sample of a feature set to `out`, ascending: hashes `mix64(f ^ mix64(GOLDEN ^ seed))` of the
    /// expansion; returns whether it is the whole set, as it is if Mod-m would keep nothing.
    pub fn collect(self, features: &[u64], weights: &[u32], seed: u64, out: &mut Vec<u64>) -> bool {
        let key = mix64(GOLDEN ^ seed);
        let first = out.len();
        let mut num_members = 0u64;
        let limit = match self {
            Sample::MinS(_) => u64::MAX,
            Sample::ModM(m) => u64::MAX / m.max(1),
        };
        for (i, &feature) in features.iter().enumerate() {
            let weight = weights.get(i).copied().unwrap_or(1);
            num_members += u64::from(weight);
            let hashes = (1..=weight).map(|copy| mix64(expand(feature, copy) ^ key));
            out.extend(hashes.filter(|&hash| hash <= limit));
            if let Sample::MinS(size) = self {
                cut(out, first, size as usize, 4 * size as usize + 1024);
            }
        }
        match self {
            Sample::MinS(size) => cut(out, first, size as usize, size as usize),
            Sample::ModM(m) if m > 1 && out.len() == first && num_members > 0 => {
                return Sample::ModM(1).collect(features, weights, seed, out);
            }
            Sample::ModM(_) => {}
        }
        out[first..].sort_unstable();
        (out.len() - first) as u64 == num_members
    }
}

/// Keeps the `size` least hashes from `first` on, if there are more than `most`.
fn cut(out: &mut Vec<u64>, first: usize, size: usize, most: usize) {
    if out.len() - first > most {
        if size > 0 {
            out[first..].select_nth_unstable(size - 1);
        }
        out.truncate(first + size);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(features: &[u64], weights: &[u32]) -> Vec<u64> {
        let mut hashes = Vec::new();
        for (i, &feature) in features.iter().enumerate() {
            for copy in 1..=weights.get(i).copied().unwrap_or(1) {
                hashes.push(mix64(expand(feature, copy) ^ mix64(GOLDEN ^ 7)));
            }
        }
        hashes.sort_unstable();
        hashes
    }

    #[test]
    fn samples_are_the_least_hashes() {
        for num_features in [0, 1, 5, 100, 5000] {
            let features: Vec<u64> = (0..num_features).map(|i| mix64(i + 1)).collect();
            let heavy: Vec<u32> = (0..num_features as u32).map(|i| 1 + i % 4).collect();
            for weights in [&[][..], &heavy] {
                let hashes = all(&features, weights);
                for size in [1, 4, 100, 100_000] {
                    let mut out = vec![9];
                    let is_whole = Sample::MinS(size).collect(&features, weights, 7, &mut out);
                    assert_eq!(out[1..], hashes[..hashes.len().min(size as usize)]);
                    assert_eq!(is_whole, hashes.len() <= size as usize);
                }
                for m in [1, 2, 10, 1_000_000_000] {
                    let mut out = vec![9];
                    let is_whole = Sample::ModM(m).collect(&features, weights, 7, &mut out);
                    let mut expected = hashes.clone();
                    expected.retain(|&hash| hash <= u64::MAX / m);
                    if expected.is_empty() {
                        expected = hashes.clone();
                    }
                    assert_eq!(out[1..], expected);
                    assert_eq!(is_whole, expected.len() == hashes.len());
                }
            }
        }
    }
}
