//! Which number belongs to a feature?

use super::weight_table::high_product;
use crate::hash::GOLDEN;
use crate::prefetch::prefetch_read;

/// Maps features to counts, and later to weights, by open addressing; it grows by half when three quarters full.
#[derive(Debug, Default)]
pub(crate) struct FeatureTable {
    /// 0 is a free place.
    features: Vec<u64>,
    values: Vec<u32>,
    num_used: usize,
    /// The number of feature 0.
    of_zero: Option<u32>,
}

const MIN_PLACES: usize = 64;

/// Number of features between the prefetch of a place and its use.
const FEATURES_AHEAD: usize = 16;

impl FeatureTable {
    pub(crate) fn len(&self) -> usize {
        self.num_used + usize::from(self.of_zero.is_some())
    }

    #[inline]
    pub(super) fn get(&self, feature: u64) -> Option<u32> {
        if feature == 0 {
            return self.of_zero;
        }
        if self.features.is_empty() {
            return None;
        }
        let place = place(&self.features, feature);
        (self.features[place] == feature).then(|| self.values[place])
    }

    /// Calls `visit` with the number of each feature, in order.
    pub(crate) fn get_all(&self, features: &[u64], mut visit: impl FnMut(Option<u32>)) {
        for (i, &feature) in features.iter().enumerate() {
            self.prefetch(features, i + FEATURES_AHEAD);
            visit(self.get(feature));
        }
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (u64, u32)> + '_ {
        let places = self.features.iter().zip(&self.values);
        let used = places.filter(|&(&feature, _)| feature != 0);
        let used = used.map(|(&feature, &value)| (feature, value));
        used.chain(self.of_zero.map(|value| (0, value)))
    }

    pub(crate) fn map(&mut self, mut of: impl FnMut(u32) -> u32) {
        let used = self.features.iter().zip(&mut self.values);
        for (_, value) in used.filter(|&(&feature, _)| feature != 0) {
            *value = of(*value);
        }
        self.of_zero = self.of_zero.map(&mut of);
    }

    /// Counts each feature once more; returns how many are new.
    pub(crate) fn add(&mut self, features: &[u64]) -> u64 {
        let num_before = self.len();
        for (i, &feature) in features.iter().enumerate() {
            if feature == 0 {
                self.of_zero = Some(self.of_zero.unwrap_or(0).saturating_add(1));
                continue;
            }
            if self.num_used * 4 >= self.features.len() * 3 {
                self.grow();
            }
            self.prefetch(features, i + FEATURES_AHEAD);
            let place = place(&self.features, feature);
            if self.features[place] == 0 {
                self.features[place] = feature;
                self.num_used += 1;
            }
            self.values[place] = self.values[place].saturating_add(1);
        }
        (self.len() - num_before) as u64
    }

    #[cold]
    fn grow(&mut self) {
        let num_places = MIN_PLACES.max(self.features.len() / 2 * 3);
        let mut features = vec![0; num_places];
        let mut values = vec![0; num_places];
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

    #[inline(always)]
    fn prefetch(&self, features: &[u64], i: usize) {
        if let Some(&feature) = features.get(i) {
            let at = first_place(&self.features, feature);
            prefetch_read(&self.features, at);
            prefetch_read(&self.values, at);
        }
    }
}

/// Returns the place where the search for a feature begins.
#[inline(always)]
fn first_place(features: &[u64], feature: u64) -> usize {
    high_product(feature.wrapping_mul(GOLDEN), features.len() as u64) as usize
}

/// Returns the place of a feature, or the free place where it belongs. At least one place must be free.
#[inline(always)]
fn place(features: &[u64], feature: u64) -> usize {
    let mut at = first_place(features, feature);
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
        let mut table = FeatureTable::default();
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
        table.map(|count| 2 * count);
        let asked: Vec<u64> = wanted.keys().copied().chain([u64::MAX - 1]).collect();
        let mut found = Vec::new();
        table.get_all(&asked, |value| found.push(value));
        for (feature, value) in asked.iter().zip(found) {
            assert_eq!(value, wanted.get(feature).map(|count| 2 * count));
        }
    }
}
