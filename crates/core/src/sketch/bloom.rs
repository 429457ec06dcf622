//! What is the Bloom filter of a weighted feature set?
//!
//! Bloom, Space/time trade-offs in hash coding with allowable errors, CACM 13, 1970; as the sketch of a document: Jain,
//! Dahlin, Tewari, Using Bloom filters to refine web search results, WebDB 2005. The filter of a union of sets is the
//! bitwise or of their filters.

use crate::hash::{GOLDEN, expand, mix64};

/// Sets bits of filters of one shape.
#[derive(Debug, Clone)]
pub struct BloomHasher {
    num_bits: u32,
    keys: Vec<u64>,
}

impl BloomHasher {
    /// Creates a hasher for filters of `num_bits` bits, a multiple of 64, of which a feature sets up to `num_hashes`.
    pub fn new(num_bits: u32, num_hashes: u32, seed: u64) -> Self {
        assert!(
            num_bits > 0 && num_bits.is_multiple_of(64) && num_hashes > 0,
            "{num_bits} bits, {num_hashes} hashes"
        );
        let key = |i| mix64((u64::from(i) + 1).wrapping_mul(GOLDEN) ^ seed);
        BloomHasher {
            num_bits,
            keys: (0..num_hashes).map(key).collect(),
        }
    }

    pub fn num_words(&self) -> usize {
        self.num_bits as usize / 64
    }

    /// Sets bit `floor(mix(f ^ k(i)) * num_bits / 2^64)` for each member f of the expansion and hash i.
    pub fn add(&self, features: &[u64], weights: &[u32], filter: &mut [u64]) {
        assert_eq!(filter.len(), self.num_words(), "words of the filter");
        for (i, &feature) in features.iter().enumerate() {
            for copy in 1..=weights.get(i).copied().unwrap_or(1) {
                let member = expand(feature, copy);
                for key in &self.keys {
                    let x = mix64(member ^ key);
                    let bit = ((u128::from(x) * u128::from(self.num_bits)) >> 64) as usize;
                    filter[bit / 64] |= 1 << (bit % 64);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_filter_is_the_union_of_its_features() {
        for (num_bits, num_hashes) in [(64, 1), (192, 3), (2048, 2)] {
            let hasher = BloomHasher::new(num_bits, num_hashes, 7);
            let features: Vec<u64> = (0..100).map(|i| mix64(i + 1)).collect();
            let filter_of = |features: &[u64], weights: &[u32]| {
                let mut filter = vec![0; hasher.num_words()];
                hasher.add(features, weights, &mut filter);
                filter
            };
            let mut union = vec![0; hasher.num_words()];
            for &feature in &features {
                let one = filter_of(&[feature], &[]);
                let num_set: u32 = one.iter().map(|word| word.count_ones()).sum();
                assert!((1..=num_hashes).contains(&num_set));
                union
                    .iter_mut()
                    .zip(&one)
                    .for_each(|(all, bits)| *all |= bits);
            }
            assert_eq!(filter_of(&features, &[]), union);
            let copies: Vec<u64> = (1..=5).map(|copy| expand(9, copy)).collect();
            assert_eq!(filter_of(&[9], &[5]), filter_of(&copies, &[]));
        }
    }
}
