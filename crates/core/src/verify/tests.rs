//! Verification compared with measures computed naively over maps.

use std::collections::BTreeMap;
use std::sync::atomic::AtomicBool;

use crate::error::Error;
use crate::hash::{GOLDEN, mix64};
use crate::isa::Isa;
use crate::parallel::Run;

use super::{FeatureSet, FeatureSets, HeldDocuments, Measure};

const MEASURES: [Measure; 5] = Measure::ALL;

/// A document: features and weights (if empty, all are 1).
type Document = (Vec<u64>, Vec<u32>);

/// Repeatable random numbers.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(GOLDEN);
        mix64(self.0)
    }

    fn below(&mut self, limit: u64) -> u64 {
        self.next() % limit
    }
}

/// The measure by the definitions.
fn naive_similarity(a: &Document, b: &Document, measure: Measure) -> f64 {
    let map = |(features, weights): &Document| -> BTreeMap<u64, u128> {
        let weight = |i: usize| weights.get(i).map_or(1, |&weight| u128::from(weight));
        features
            .iter()
            .enumerate()
            .map(|(i, &f)| (f, weight(i)))
            .collect()
    };
    let (a, b) = (map(a), map(b));
    if a.is_empty() || b.is_empty() {
        return if a.is_empty() && b.is_empty() {
            1.0
        } else {
            0.0
        };
    }
    let (mut min, mut max, mut dot) = (0u128, 0u128, 0u128);
    let features: std::collections::BTreeSet<u64> = a.keys().chain(b.keys()).copied().collect();
    for feature in features {
        let v = a.get(&feature).copied().unwrap_or(0);
        let w = b.get(&feature).copied().unwrap_or(0);
        min += v.min(w);
        max += v.max(w);
        dot += v * w;
    }
    let total: u128 = a.values().sum();
    let norm = |set: &BTreeMap<u64, u128>| set.values().map(|weight| weight * weight).sum::<u128>();
    match measure {
        Measure::Jaccard => min as f64 / max as f64,
        Measure::Containment => min as f64 / total as f64,
        Measure::Dice => (2 * min) as f64 / (total + b.values().sum::<u128>()) as f64,
        Measure::Overlap => min as f64 / total.min(b.values().sum()) as f64,
        Measure::Cosine => match norm(&a).checked_mul(norm(&b)) {
            Some(product) => dot as f64 / (product as f64).sqrt(),
            None => dot as f64 / (norm(&a) as f64 * norm(&b) as f64).sqrt(),
        },
    }
}

/// Checks the measures of all pairs of documents at several thresholds, including their own similarities.
fn assert_verified(documents: &[Document], thresholds: &[f64]) {
    let cancel = AtomicBool::new(false);
    let mut sets = FeatureSets::new(documents.len());
    for (position, (features, weights)) in documents.iter().enumerate() {
        sets.insert(position as u32, FeatureSet::new(features, weights));
    }
    let len = documents.len() as u32;
    let (later, earlier): (Vec<u32>, Vec<u32>) =
        (0..len).flat_map(|a| (0..len).map(move |b| (a, b))).unzip();
    for measure in MEASURES {
        let expected: Vec<f64> = later
            .iter()
            .zip(&earlier)
            .map(|(&a, &b)| {
                naive_similarity(&documents[a as usize], &documents[b as usize], measure)
            })
            .collect();
        for (i, similarity) in expected.iter().enumerate() {
            let (a, b) = (sets.get(later[i]).unwrap(), sets.get(earlier[i]).unwrap());
            assert_eq!(a.similarity(b, measure), *similarity, "{measure:?}");
        }
        let mut edges: Vec<f64> = expected
            .iter()
            .step_by(expected.len() / 5 + 1)
            .copied()
            .collect();
        edges.extend(
            edges
                .clone()
                .iter()
                .flat_map(|edge| [edge.next_up(), edge.next_down()]),
        );
        edges.extend(thresholds);
        for threshold in edges {
            for isa in Isa::available() {
                let found = sets
                    .verify_pairs(
                        HeldDocuments::default(),
                        [&later, &earlier],
                        measure,
                        threshold,
                        isa,
                        Run {
                            threads: 2,
                            cancel: &cancel,
                        },
                    )
                    .unwrap()
                    .similarities;
                for (i, (found, &exact)) in found.iter().zip(&expected).enumerate() {
                    let expected = if exact >= threshold { exact } else { f64::NAN };
                    assert!(
                        found.to_bits() == expected.to_bits()
                            || found.is_nan() && expected.is_nan(),
                        "{measure:?} of {} and {} at {threshold}, {}: {found} for {exact}",
                        later[i],
                        earlier[i],
                        isa.name()
                    );
                }
            }
        }
    }
}

/// Returns a set of `len` features, of which about `shared_percent` percent come from a pool that others use too.
fn document(random: &mut Random, len: u64, shared_percent: u64, max_weight: u64) -> Document {
    let mut features: Vec<u64> = (0..len)
        .map(|i| {
            if random.below(100) < shared_percent {
                mix64(i)
            } else {
                random.next()
            }
        })
        .collect();
    features.sort_unstable_by_key(|&feature| mix64(feature));
    features.dedup();
    let weights = match max_weight {
        0 => Vec::new(),
        _ => features
            .iter()
            .map(|f| 1 + (mix64(f + len) % max_weight) as u32)
            .collect(),
    };
    (features, weights)
}

#[test]
fn sets_of_every_kind_are_measured_as_defined() {
    let mut random = Random(1);
    for max_weight in [0, 1, 2, 15, 1_000_000] {
        let mut documents = vec![(Vec::new(), Vec::new()), (Vec::new(), Vec::new())];
        for (len, shared_percent) in [
            (1, 100),
            (1, 0),
            (7, 90),
            (8, 90),
            (9, 90),
            (16, 80),
            (17, 80),
            (40, 95),
            (64, 60),
            (65, 95),
            (300, 99),
            (300, 95),
            (310, 70),
            (1000, 95),
            (3000, 100),
        ] {
            documents.push(document(&mut random, len, shared_percent, max_weight));
        }
        documents.push(documents.last().unwrap().clone());
        // Weighted sets next to plain ones.
        documents.push(document(&mut random, 300, 95, 0));
        assert_verified(&documents, &[-1.0, 0.0, 0.5, 0.8, 1.0, 1.5, f64::INFINITY]);
    }
}

#[test]
fn sets_of_every_small_size_are_measured_as_defined() {
    let mut random = Random(2);
    for max_weight in [0, 3] {
        let documents: Vec<Document> = (0..36)
            .map(|len| document(&mut random, len, 80, max_weight))
            .collect();
        assert_verified(&documents, &[0.3, 0.7]);
    }
}

#[test]
fn extreme_features_and_weights_are_measured_as_defined() {
    let all: Vec<u64> = (0..20).map(|i| u64::MAX - i).chain(0..20).collect();
    let documents: Vec<Document> = vec![
        (all.clone(), vec![]),
        (all.clone(), vec![u32::MAX; 40]),
        (all[..17].to_vec(), vec![u32::MAX; 17]),
        (all[3..].to_vec(), (0..37).map(|i| 1 << (i % 32)).collect()),
        (vec![u64::MAX], vec![]),
        (vec![0], vec![]),
        (vec![0, u64::MAX], vec![1, u32::MAX]),
    ];
    let cancel = AtomicBool::new(false);
    let mut sets = FeatureSets::new(0);
    for (position, (features, weights)) in documents.iter().enumerate() {
        sets.insert(position as u32, FeatureSet::new(features, weights));
    }
    for (a, first) in documents.iter().enumerate() {
        for (b, second) in documents.iter().enumerate() {
            for measure in MEASURES {
                let expected = naive_similarity(first, second, measure);
                for isa in Isa::available() {
                    let (later, earlier) = ([a as u32], [b as u32]);
                    let held = HeldDocuments::default();
                    let run = Run::alone(&cancel);
                    let found = sets.verify_pairs(held, [&later, &earlier], measure, 0.0, isa, run);
                    // Norms beyond 2^53 are not exact in f64, so the naive root may differ in its last bit.
                    let error = (found.unwrap().similarities[0] - expected).abs();
                    assert!(error <= 2.0 * f64::EPSILON, "{measure:?} of {a} and {b}");
                    if a == b {
                        assert_eq!(
                            sets.get(a as u32)
                                .unwrap()
                                .similarity(sets.get(b as u32).unwrap(), measure),
                            1.0
                        );
                    }
                }
            }
        }
    }
}

#[test]
fn rational_edges_match() {
    // Pairs that share `shared` of a union of `union`, so that J is the threshold exactly.
    let cancel = AtomicBool::new(false);
    let cases = [
        (4u64, 5u64, 0.8f64),
        (80, 100, 0.8),
        (240, 300, 0.8),
        (1, 3, 1.0 / 3.0),
        (7, 10, 0.7),
        (63, 90, 0.7),
        (9, 10, 0.9),
        (95, 100, 0.95),
    ];
    for (shared, union, threshold) in cases {
        let first: Vec<u64> = (0..union).map(mix64).collect();
        let second: Vec<u64> = (0..shared).map(mix64).collect();
        let less: Vec<u64> = (0..shared - 1).map(mix64).collect();
        let mut sets = FeatureSets::new(3);
        for (position, features) in [first, second, less].iter().enumerate() {
            sets.insert(position as u32, FeatureSet::new(features, &[]));
        }
        for isa in Isa::available() {
            for measure in [Measure::Jaccard, Measure::Containment] {
                let found = sets
                    .verify_pairs(
                        HeldDocuments::default(),
                        [&[0, 0], &[1, 2]],
                        measure,
                        threshold,
                        isa,
                        Run::alone(&cancel),
                    )
                    .unwrap()
                    .similarities;
                assert_eq!(
                    found[0],
                    threshold,
                    "{shared} of {union}, {measure:?}, {}",
                    isa.name()
                );
                assert!(
                    found[1].is_nan(),
                    "{shared} of {union}, {measure:?}, {}",
                    isa.name()
                );
            }
        }
    }
}

#[test]
fn repeats_and_zero_weights_are_no_features() {
    let plain = FeatureSet::new(&[5, 3, 5, 5], &[]);
    assert_eq!(plain.num_features(), 2);
    assert_eq!(
        plain.similarity(&FeatureSet::new(&[3, 5], &[]), Measure::Jaccard),
        1.0
    );
    let weighted = FeatureSet::new(&[5, 3, 5, 9], &[1, 1, 1, 0]);
    assert_eq!(weighted.num_features(), 2);
    assert_eq!(
        weighted.similarity(&FeatureSet::new(&[3, 5], &[1, 2]), Measure::Cosine),
        1.0
    );
    let repeated = FeatureSet::new(&[5, 3, 5], &[1, 1, 1]);
    assert_eq!(repeated.similarity(&weighted, Measure::Jaccard), 1.0);
    assert_eq!(FeatureSet::new(&[1, 2], &[0, 0]).num_features(), 0);
    assert_eq!(plain.num_shared(&FeatureSet::new(&[5, 6, 7], &[])), 1);
}

#[test]
fn the_bitmap_bound_holds_and_is_the_same_everywhere() {
    let mut random = Random(3);
    let mut sum_of_excess = 0;
    for round in 0..400u64 {
        let max_weight = [0, 3, 40][(round % 3) as usize];
        let lens = [300 + random.below(300), 1 + random.below(2000)];
        let [a, b] = lens.map(|len| {
            let (features, weights) = document(&mut random, len, 30 + round % 70, max_weight);
            FeatureSet::new(&features, &weights)
        });
        let exact = super::intersect::plain_sum(a.side(), b.side(), false) as u64;
        let bound = super::bitmap::bound(a.bitmap(), b.bitmap(), Isa::Plain);
        assert!(bound >= exact, "{bound} < {exact}");
        if max_weight == 0 {
            sum_of_excess += bound - exact;
        }
        for isa in Isa::available() {
            assert_eq!(super::bitmap::bound(a.bitmap(), b.bitmap(), isa), bound);
            assert_eq!(super::bitmap::bound(b.bitmap(), a.bitmap(), isa), bound);
        }
    }
    // A bound that never rejects would pass the first assertion.
    assert!(
        sum_of_excess / 134 < 60,
        "{} too many on average",
        sum_of_excess / 134
    );
}

#[test]
fn positions_come_and_go() {
    let mut sets = FeatureSets::new(2);
    let empty_bytes = sets.num_bytes();
    sets.insert(7, FeatureSet::new(&[1, 2, 3], &[]));
    sets.insert(7, FeatureSet::new(&[1, 2, 3, 4], &[]));
    assert!(sets.contains(7) && !sets.contains(6) && !sets.contains(1000));
    assert_eq!(sets.get(7).unwrap().num_features(), 4);
    assert!(sets.num_bytes() > empty_bytes);
    sets.insert(1, FeatureSet::new(&[1], &[]));
    let cancel = AtomicBool::new(false);
    let verify = |sets: &FeatureSets, later: &[u32], earlier: &[u32], threshold| {
        sets.verify_pairs(
            HeldDocuments::default(),
            [later, earlier],
            Measure::Jaccard,
            threshold,
            Isa::Plain,
            Run::alone(&cancel),
        )
        .map(|found| found.similarities)
    };
    assert_eq!(verify(&sets, &[7], &[1], 0.1), Ok(vec![0.25]));
    let is_refused = |result| matches!(result, Err(Error::InvalidParameter { .. }));
    assert!(is_refused(verify(&sets, &[7], &[2], 0.1)));
    assert!(is_refused(verify(&sets, &[7000], &[1], 0.1)));
    assert!(is_refused(verify(&sets, &[7], &[], 0.1)));
    assert!(is_refused(verify(&sets, &[7], &[1], f64::NAN)));
    sets.remove(7);
    sets.remove(1);
    sets.remove(5000);
    assert!(!sets.contains(7));
    assert_eq!(sets.num_set_bytes(), 0);
    for measure in MEASURES {
        assert_eq!(Measure::from_name(measure.name()), Some(measure));
    }
    assert_eq!(Measure::from_name("other"), None);
}
