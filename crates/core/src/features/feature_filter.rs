//! Is a feature one of some features?

/// Features for each word of the filter: at most a quarter of the bits are set.
const FEATURES_A_WORD: usize = 8;

/// Two bits of a word for each of some features, which recognize most others without a look into a table.
#[derive(Debug, Clone)]
pub struct FeatureFilter {
    /// The length is a power of two.
    words: Vec<u64>,
}

impl FeatureFilter {
    /// Creates a filter for features, of which there are about `num`. Memory: up to 2 bytes a feature.
    pub fn new(features: impl Iterator<Item = u64>, num: usize) -> Self {
        let num_words = (num / FEATURES_A_WORD).next_power_of_two();
        let mut filter = FeatureFilter {
            words: vec![0; num_words],
        };
        for feature in features {
            let (word, bits) = filter.place(feature);
            filter.words[word] |= bits;
        }
        filter
    }

    /// Returns whether a feature may be one of them: true for all of them and a few others.
    #[inline]
    pub fn may_hold(&self, feature: u64) -> bool {
        let (word, bits) = self.place(feature);
        self.words[word] & bits == bits
    }

    pub fn num_bytes(&self) -> usize {
        size_of_val::<[u64]>(&self.words)
    }

    #[inline]
    fn place(&self, feature: u64) -> (usize, u64) {
        let word = (feature >> 6) as usize & (self.words.len() - 1);
        (word, 1 << (feature % 64) | 1 << (feature >> 58))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Random;

    #[test]
    fn all_of_the_features_and_few_others_may_be_held() {
        let mut random = Random::new(3);
        for num in [0, 1, 100, 10_000] {
            let features: Vec<u64> = (0..num).map(|_| random.next()).collect();
            let filter = FeatureFilter::new(features.iter().copied(), num);
            assert!(features.iter().all(|&feature| filter.may_hold(feature)));
            let num_others = (0..10_000)
                .filter(|_| filter.may_hold(random.next()))
                .count();
            assert!(num_others < 10_000 / 12, "{num_others} of 10,000");
        }
    }
}
