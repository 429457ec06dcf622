//! Which of some documents may a set match, judging by their rarest features?
//!
//! This is for audits, which judge runs of the join in this module, so they share no bound with it.

use std::collections::HashMap;
use std::hash::BuildHasherDefault;

use super::gather::MixHasher;
use super::references::{Matcher, References, size_of};
use crate::verify::Measure;

/// Bounds are slightly lowered, so that rounding loses no pair.
const ALMOST: f64 = 1.0 - 1e-9;

/// Rarest features of some documents, with the documents that have each. A document omits its most common ones, as long
/// as they have less mass than any match must share, so a match has one of the others.
#[derive(Debug)]
pub struct Rarest {
    lists: References,
    /// Total weight of each document, and of the features that it omits.
    sizes: Vec<(f64, f64)>,
    measure: Measure,
    threshold: f64,
}

impl Rarest {
    /// Returns the rarest features of documents, given by distinct features and weights (empty where all are 1).
    pub fn new(sets: &[(Vec<u64>, Vec<u32>)], measure: Measure, threshold: f64) -> Self {
        let mut counts: HashMap<u64, u32, BuildHasherDefault<MixHasher>> = HashMap::default();
        for &feature in sets.iter().flat_map(|(features, _)| features) {
            *counts.entry(feature).or_default() += 1;
        }
        let mut sizes = Vec::with_capacity(sets.len());
        let rarest: Vec<_> = sets
            .iter()
            .map(|(features, weights)| {
                let weight = |i: usize| weights.get(i).copied().unwrap_or(1);
                let mass = |i| {
                    let weight = f64::from(weight(i));
                    match measure {
                        Measure::Cosine => weight * weight,
                        _ => weight,
                    }
                };
                let mut order: Vec<usize> = (0..features.len()).collect();
                order.sort_by_cached_key(|&i| (u32::MAX - counts[&features[i]], features[i]));
                let most = omitted(measure, threshold)
                    * ALMOST
                    * order.iter().map(|&i| mass(i)).sum::<f64>();
                let (mut sum, mut rest) = (0.0, 0.0);
                let num_omitted = order
                    .iter()
                    .take_while(|&&i| {
                        sum += mass(i);
                        rest += if sum < most {
                            f64::from(weight(i))
                        } else {
                            0.0
                        };
                        sum < most
                    })
                    .count();
                sizes.push((size_of(features, weights) as f64, rest));
                let kept = &order[num_omitted..];
                (
                    kept.iter().map(|&i| features[i]).collect(),
                    kept.iter().map(|&i| weight(i)).collect(),
                )
            })
            .collect();
        Rarest {
            lists: References::new(&rarest),
            sizes,
            measure,
            threshold,
        }
    }

    /// Scratch space of one thread.
    pub fn matcher(&self) -> Matcher<'_> {
        Matcher::new(&self.lists)
    }

    /// Appends the documents that a set may match, without those that it cannot; returns the number of list entries.
    pub fn may_match(
        &self,
        matcher: &mut Matcher<'_>,
        features: &[u64],
        weights: &[u32],
        found: &mut Vec<u32>,
    ) -> usize {
        let size = size_of(features, weights) as f64;
        matcher.share(features, weights, |document, shared| {
            let (own, rest) = self.sizes[document as usize];
            let shared = shared as f64;
            if shared + rest.min(size - shared) >= ALMOST * self.least_shared(own, size) {
                found.push(document);
            }
        })
    }

    /// Returns the weight that two sets of these sizes must share.
    fn least_shared(&self, a: f64, b: f64) -> f64 {
        match self.measure {
            Measure::Jaccard => self.threshold / (1.0 + self.threshold) * (a + b),
            Measure::Dice => self.threshold / 2.0 * (a + b),
            Measure::Containment | Measure::Overlap => self.threshold * a.min(b),
            // Sums of products are not bounded by sums of weights.
            _ => 0.0,
        }
    }
}

/// Returns the share of its mass that a set shares with any match.
fn omitted(measure: Measure, threshold: f64) -> f64 {
    match measure {
        Measure::Jaccard => threshold,
        Measure::Dice => threshold / (2.0 - threshold),
        // The omitted part of a unit vector has at most the root of the omitted squares as its norm.
        Measure::Cosine => threshold * threshold,
        // A small document is enough.
        _ => 0.0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Random;

    type Set = (Vec<u64>, Vec<u32>);

    fn weight_in(set: &Set, feature: u64) -> f64 {
        let place = set.0.iter().position(|&own| own == feature);
        place.map_or(0.0, |i| f64::from(set.1.get(i).copied().unwrap_or(1)))
    }

    fn similarity(a: &Set, b: &Set, measure: Measure) -> f64 {
        let sum = |set: &Set| set.0.iter().map(|&f| weight_in(set, f)).sum::<f64>();
        let norm = |set: &Set| {
            set.0
                .iter()
                .map(|&f| weight_in(set, f) * weight_in(set, f))
                .sum::<f64>()
                .sqrt()
        };
        let over_shared = |of: fn(f64, f64) -> f64| {
            let shared = a.0.iter().map(|&f| (weight_in(a, f), weight_in(b, f)));
            shared.map(|(x, y)| of(x, y)).sum::<f64>()
        };
        let (shared, a_size, b_size) = (over_shared(f64::min), sum(a), sum(b));
        match measure {
            Measure::Jaccard => shared / (a_size + b_size - shared),
            Measure::Dice => 2.0 * shared / (a_size + b_size),
            Measure::Cosine => over_shared(|x, y| x * y) / (norm(a) * norm(b)),
            Measure::Containment => shared / a_size,
            Measure::Overlap => shared / a_size.min(b_size),
        }
    }

    #[test]
    fn no_match_is_missing_and_each_is_found_once() {
        let mut random = Random::new(11);
        for is_weighted in [false, true] {
            // Copies of a few templates with edits, whose similarities are spread from 0 to 1.
            let mut set = || {
                let (template, edits) = (random.below(5) as u64, random.below(100));
                let mut feature = |i: u64| match random.below(100) < edits {
                    true => random.next() >> 1,
                    false => template << 32 | i,
                };
                let features: Vec<u64> = (0..40).map(&mut feature).collect();
                let weights = match is_weighted {
                    true => features
                        .iter()
                        .map(|_| 1 + random.below(9) as u32)
                        .collect(),
                    false => Vec::new(),
                };
                (features, weights)
            };
            let documents: Vec<Set> = (0..60).map(|_| set()).collect();
            let queries: Vec<Set> = (0..60).map(|_| set()).collect();
            for measure in Measure::ALL {
                for threshold in [0.1, 0.5, 0.9, 1.0] {
                    let rarest = Rarest::new(&documents, measure, threshold);
                    let mut matcher = rarest.matcher();
                    let (mut num_found, mut num_true) = (0, 0);
                    for query in &queries {
                        let mut found = Vec::new();
                        rarest.may_match(&mut matcher, &query.0, &query.1, &mut found);
                        found.sort_unstable();
                        assert!(found.windows(2).all(|pair| pair[0] < pair[1]));
                        let alike = |&i: &u32| {
                            similarity(query, &documents[i as usize], measure) >= threshold
                        };
                        let true_ones: Vec<u32> = (0..60).filter(alike).collect();
                        assert!(true_ones.iter().all(|i| found.binary_search(i).is_ok()));
                        num_found += found.len();
                        num_true += true_ones.len();
                    }
                    let is_bounded = measure != Measure::Cosine && threshold >= 0.5;
                    assert!(
                        !is_bounded || num_found < 60 * 20,
                        "{measure:?} {threshold} {num_found}"
                    );
                    assert!(num_true > 0 || threshold > 0.5);
                }
            }
        }
    }

    #[test]
    fn all_features_of_a_document_may_be_common() {
        let documents = vec![((0..14).collect(), vec![]); 6];
        for measure in Measure::ALL {
            let rarest = Rarest::new(&documents, measure, 1.0);
            let mut found = Vec::new();
            let query: Vec<u64> = (0..14).collect();
            let num_entries = rarest.may_match(&mut rarest.matcher(), &query, &[], &mut found);
            assert_eq!(found.len(), 6);
            assert!(num_entries >= 6);
        }
    }
}
