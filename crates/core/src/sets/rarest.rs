//! Which of some documents may a set match, judging by their rarest features?
//!
//! This is for audits, which judge runs of the join in this module, so they share no bound with it.

use super::references::{Matcher, References, size_of};
use crate::features::FeatureTable;
use crate::verify::{Measure, Required};

/// Bounds are slightly lowered, so that rounding loses no pair.
const ALMOST: f64 = 1.0 - 1e-9;
/// Features of sorted sets that are compared in the time of reading an entry of a list.
const FEATURES_AN_ENTRY: usize = 8;

/// Rarest features of some documents, with the documents that have each. A document omits its most common ones, as long
/// as they have less mass than any match must share, so a match has one of the others.
#[derive(Debug)]
pub struct Rarest {
    lists: References,
    documents: Vec<Sampled>,
    measure: Measure,
    required: Required,
}

#[derive(Debug)]
struct Sampled {
    num_features: usize,
    /// Total weight of all features, and of those omitted.
    size: f64,
    rest: f64,
    /// Features that are omitted, with their weights, ascending.
    omitted: Vec<(u64, u32)>,
}

/// Scratch space of one thread.
#[derive(Debug)]
pub struct Judge<'a> {
    matcher: Matcher<'a>,
    /// The features of a set with their weights, ascending; empty until needed.
    sorted: Vec<(u64, u32)>,
}

impl Rarest {
    /// Returns the rarest features of documents, given by distinct features and weights (empty where all are 1).
    pub fn new(sets: &[(Vec<u64>, Vec<u32>)], measure: Measure, required: Required) -> Self {
        let mut counts = FeatureTable::default();
        for (features, _) in sets {
            counts.add(features);
        }
        let mut documents = Vec::with_capacity(sets.len());
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
                let mut order = Vec::with_capacity(features.len());
                counts.get_all(features, |count| {
                    let i = order.len();
                    order.push((u32::MAX - count.unwrap_or(0), features[i], i));
                });
                order.sort_unstable();
                let order: Vec<usize> = order.into_iter().map(|(_, _, i)| i).collect();
                let most = omitted(measure, required.of(features.len()))
                    * ALMOST
                    * order.iter().map(|&i| mass(i)).sum::<f64>();
                let mut sum = 0.0;
                let is_omitted = |&&i: &&usize| {
                    sum += mass(i);
                    sum < most
                };
                let num_omitted = order.iter().take_while(is_omitted).count();
                let (common, kept) = order.split_at(num_omitted);
                let mut omitted: Vec<_> =
                    common.iter().map(|&i| (features[i], weight(i))).collect();
                omitted.sort_unstable();
                documents.push(Sampled {
                    num_features: features.len(),
                    size: size_of(features, weights) as f64,
                    rest: common.iter().map(|&i| f64::from(weight(i))).sum(),
                    omitted,
                });
                (
                    kept.iter().map(|&i| features[i]).collect(),
                    kept.iter().map(|&i| weight(i)).collect(),
                )
            })
            .collect();
        Rarest {
            lists: References::new(&rarest),
            documents,
            measure,
            required,
        }
    }

    pub fn judge(&self) -> Judge<'_> {
        Judge {
            matcher: Matcher::new(&self.lists),
            sorted: Vec::new(),
        }
    }

    /// Appends the documents that a set may match, without those that it cannot; returns the number of entries read.
    pub fn may_match(
        &self,
        judge: &mut Judge<'_>,
        features: &[u64],
        weights: &[u32],
        found: &mut Vec<u32>,
    ) -> usize {
        let size = size_of(features, weights) as f64;
        let (sorted, mut num_read) = (&mut judge.sorted, 0);
        sorted.clear();
        let num_listed = judge.matcher.share(features, weights, |number, shared| {
            let document = &self.documents[number as usize];
            let required = self.required.of(document.num_features.min(features.len()));
            let least = ALMOST * self.least_shared(required, document.size, size);
            let shared = shared as f64;
            if shared + document.rest.min(size - shared) < least {
                return;
            }
            if shared < least {
                if sorted.is_empty() {
                    let weight = |i: usize| weights.get(i).copied().unwrap_or(1);
                    sorted.extend(
                        features
                            .iter()
                            .enumerate()
                            .map(|(i, &feature)| (feature, weight(i))),
                    );
                    sorted.sort_unstable();
                }
                if !reaches(&document.omitted, sorted, least - shared, &mut num_read) {
                    return;
                }
            }
            found.push(number);
        });
        num_listed + num_read / FEATURES_AN_ENTRY
    }

    /// Returns the weight that two sets of these sizes must share.
    fn least_shared(&self, required: f64, a: f64, b: f64) -> f64 {
        match self.measure {
            Measure::Jaccard => required / (1.0 + required) * (a + b),
            Measure::Dice => required / 2.0 * (a + b),
            Measure::Containment | Measure::Overlap => required * a.min(b),
            // Sums of products are not bounded by sums of weights.
            _ => 0.0,
        }
    }
}

/// Returns whether two sorted sets share this weight, and adds up the features read.
fn reaches(a: &[(u64, u32)], b: &[(u64, u32)], least: f64, num_read: &mut usize) -> bool {
    let (mut i, mut j, mut sum) = (0, 0, 0);
    while let (Some(&(x, of_a)), Some(&(y, of_b))) = (a.get(i), b.get(j))
        && (sum as f64) < least
    {
        sum += u64::from(of_a.min(of_b)) * u64::from(x == y);
        i += usize::from(x <= y);
        j += usize::from(y <= x);
    }
    *num_read += i + j;
    sum as f64 >= least
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
                for (threshold, short_margin) in [
                    (0.1, 0.0),
                    (0.5, 0.0),
                    (0.4, 0.6),
                    (0.9, 0.0),
                    (0.9, 1.0),
                    (1.0, 0.0),
                ] {
                    let required = Required {
                        short_margin,
                        ..threshold.into()
                    };
                    let rarest = Rarest::new(&documents, measure, required);
                    let mut judge = rarest.judge();
                    let (mut num_found, mut num_true) = (0, 0);
                    for query in &queries {
                        let mut found = Vec::new();
                        rarest.may_match(&mut judge, &query.0, &query.1, &mut found);
                        found.sort_unstable();
                        assert!(found.windows(2).all(|pair| pair[0] < pair[1]));
                        let alike = |&i: &u32| {
                            let document = &documents[i as usize];
                            let fewest = query.0.len().min(document.0.len());
                            similarity(query, document, measure) >= required.of(fewest)
                        };
                        let true_ones: Vec<u32> = (0..60).filter(alike).collect();
                        assert!(true_ones.iter().all(|i| found.binary_search(i).is_ok()));
                        num_found += found.len();
                        num_true += true_ones.len();
                    }
                    // Sums of products have no bound, and either document may be the contained one.
                    let is_exact = !matches!(measure, Measure::Cosine | Measure::Containment);
                    assert!(
                        !is_exact || num_found == num_true,
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
            let rarest = Rarest::new(&documents, measure, 1.0.into());
            let mut found = Vec::new();
            let query: Vec<u64> = (0..14).collect();
            let num_entries = rarest.may_match(&mut rarest.judge(), &query, &[], &mut found);
            assert_eq!(found.len(), 6);
            assert!(num_entries >= 6);
        }
    }
}
