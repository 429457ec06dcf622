//! Which number belongs to a feature?

use super::weight_table::high_product;
use crate::hash::GOLDEN;

/// A table of features by open addressing, with a number each.
///
/// It grows by half when three quarters of the places are used, so at least half of them are used afterward.
#[derive(Debug, Default)]
pub(super) struct FeatureTable<T> {
    /// 0 is a free place.
    features: Vec<u64>,
    values: Vec<T>,
    num_used: usize,
    /// The number of feature 0.
    of_zero: Option<T>,
}

const MIN_PLACES: usize = 64;

impl<T: Copy + Default> FeatureTable<T> {
    /// Returns the number of a feature.
    #[inline]
    pub(super) fn get(&self, feature: u64) -> Option<T> {
        if feature == 0 {
            return self.of_zero;
        }
        if self.features.is_empty() {
            return None;
        }
        let place = place(&self.features, feature);
        (self.features[place] == feature).then(|| self.values[place])
    }

    /// Returns all features and their numbers, in no order.
    pub(super) fn iter(&self) -> impl Iterator<Item = (u64, T)> + '_ {
        let places = self.features.iter().zip(&self.values);
        let used = places.filter(|&(&feature, _)| feature != 0);
        let used = used.map(|(&feature, &value)| (feature, value));
        used.chain(self.of_zero.map(|value| (0, value)))
    }

    /// Replaces all numbers.
    pub(super) fn map<U: Copy + Default>(self, of: impl Fn(T) -> U) -> FeatureTable<U> {
        FeatureTable {
            features: self.features,
            values: self.values.into_iter().map(&of).collect(),
            num_used: self.num_used,
            of_zero: self.of_zero.map(&of),
        }
    }

    #[cold]
    fn grow(&mut self) {
        let num_places = MIN_PLACES.max(self.features.len() / 2 * 3);
        let mut features = vec![0; num_places];
        let mut values = vec![T::default(); num_places];
        for (&feature, &value) in self.features.iter().zip(&self.values) {
            if feature != 0 {
                let place = place(&features, feature);
                features[place] = feature;
                values[place] = value;
            }
        }
        self.features = features;
        self.values = values;
    }
}

impl FeatureTable<u32> {
    /// Counts each feature once more; returns how many are new.
    pub(super) fn add(&mut self, features: &[u64]) -> u64 {
        let mut num_new = 0;
        for &feature in features {
            if feature == 0 {
                num_new += u64::from(self.of_zero.is_none());
                self.of_zero = Some(self.of_zero.unwrap_or(0).saturating_add(1));
                continue;
            }
            if self.num_used * 4 >= self.features.len() * 3 {
                self.grow();
            }
            let place = place(&self.features, feature);
            if self.features[place] == 0 {
                self.features[place] = feature;
                self.num_used += 1;
                num_new += 1;
            }
            self.values[place] = self.values[place].saturating_add(1);
        }
        num_new
    }
}

/// Returns the place of a feature, or the free place where it belongs. At least one place must be free.
#[inline(always)]
fn place(features: &[u64], feature: u64) -> usize {
    let mut at = high_product(feature.wrapping_mul(GOLDEN), features.len() as u64) as usize;
    while features[at] != feature && features[at] != 0 {
        at += 1;
        if at == features.len() {
            at = 0;
        }
    }
    at
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use super::*;
    use crate::testing::Random;

    #[test]
    fn counts_are_those_of_a_map() {
        let mut random = Random::new(9);
        let mut wanted: HashMap<u64, u32> = HashMap::new();
        let mut table = FeatureTable::<u32>::default();
        assert_eq!(table.get(0), None);
        assert_eq!(table.get(1), None);
        for bits in [3, 10, 20, 64] {
            let features: Vec<u64> = (0..3000)
                .map(|_| random.next() & (u64::MAX >> (64 - bits)))
                .collect();
            let num_before = wanted.len();
            for &feature in &features {
                *wanted.entry(feature).or_default() += 1;
            }
            assert_eq!(table.add(&features), (wanted.len() - num_before) as u64);
        }
        let found: HashMap<u64, u32> = table.iter().collect();
        assert_eq!(found, wanted);
        let doubled = table.map(|count| 2 * count);
        for (&feature, &count) in &wanted {
            assert_eq!(doubled.get(feature), Some(2 * count));
        }
        assert_eq!(doubled.get(u64::MAX - 1), None);
    }
}
