//! The join and its kernels compared with all pairs, and the model compared with simulation.

use std::sync::atomic::AtomicBool;

use super::demand::load;
use super::kernels::{NUM_QUERIES, count_shared};
use super::rows::LANES;
use super::*;
use crate::isa::Isa;
use crate::parallel::Run;
use crate::search::{Call, REMOVED};
use crate::sketch::BloomHasher;
use crate::testing::Random;

static NEVER: AtomicBool = AtomicBool::new(false);

/// Filters of sets that share ranges of one long list of features, some of them empty, full or equal.
fn filters(num_filters: usize, num_bits: u32, random: &mut Random) -> Vec<u64> {
    let hasher = BloomHasher::new(num_bits, 1 + random.below(2) as u32, random.next());
    let universe: Vec<u64> = (0..num_bits).map(|_| random.next()).collect();
    let mut words = Vec::new();
    for i in 0..num_filters {
        let mut filter = vec![0; hasher.num_words()];
        let start = random.below(universe.len() / 2);
        let len = match i % 7 {
            0 => 0,
            1 => universe.len() / 2,
            _ => random.below(universe.len() / 2),
        };
        hasher.add(&universe[start..start + len], &[], &mut filter);
        if i % 23 == 3 {
            filter.fill(u64::MAX);
        }
        words.extend(filter);
    }
    words
}

fn shared(a: &[u64], b: &[u64]) -> u32 {
    a.iter().zip(b).map(|(a, b)| (a & b).count_ones()).sum()
}

#[test]
fn kernels_count_what_the_plain_one_counts() {
    let mut random = Random::new(1);
    for num_words in (1..=40).chain([62, 63, 64, 100]) {
        let dense = random.below(3);
        let mut draw = |len: usize| -> Vec<u64> {
            let next = |random: &mut Random| match dense {
                0 => u64::MAX,
                1 => random.next() | random.next(),
                _ => random.next() & random.next(),
            };
            (0..len).map(|_| next(&mut random)).collect()
        };
        let (queries, group) = (draw(num_words * NUM_QUERIES), draw(num_words * LANES));
        let expected = count_shared(&queries, &group, Isa::Plain);
        for (q, counts) in expected.iter().enumerate() {
            for (lane, &count) in counts.iter().enumerate() {
                let filter: Vec<u64> = group.iter().copied().skip(lane).step_by(LANES).collect();
                let query = &queries[q * num_words..(q + 1) * num_words];
                assert_eq!(count, u64::from(shared(query, &filter)));
            }
        }
        for isa in Isa::available() {
            assert_eq!(
                count_shared(&queries, &group, isa),
                expected,
                "{} {num_words}",
                isa.name()
            );
        }
    }
}

#[test]
fn the_join_lists_every_pair_that_passes() {
    let mut random = Random::new(2);
    for (num_filters, num_bits) in [
        (0, 64),
        (1, 128),
        (150, 64),
        (300, 192),
        (200, 1024),
        (150, 4096),
    ] {
        let words = filters(num_filters, num_bits, &mut random);
        let filter =
            |row: u32| &words[row as usize * num_bits as usize / 64..][..num_bits as usize / 64];
        let mut order: Vec<u32> = (0..num_filters as u32).collect();
        order.sort_by_key(|&row| u64::from(row).wrapping_mul(0x9E37_79B9_7F4A_7C15));
        let mut demands: Vec<Demand> = BitMeasure::ALL
            .into_iter()
            .flat_map(|measure| [0.3, 0.7, 0.95].map(|t| Demand::Bits(measure, t)))
            .collect();
        for measure in [
            Measure::Jaccard,
            Measure::Dice,
            Measure::Cosine,
            Measure::Smaller,
        ] {
            demands.push(Demand::sets(measure, 0.7, 0.9));
        }
        for demand in demands {
            let join = BloomJoin::new(&words, num_bits, &order, demand).unwrap();
            let states: Vec<u8> = (0..num_filters)
                .map(|_| if random.below(4) == 0 { REMOVED } else { 0 })
                .collect();
            let (mut expected, mut all, mut passing) =
                (Vec::new(), [Vec::new(), Vec::new()], Vec::new());
            for later in 0..num_filters as u32 {
                for earlier in 0..later {
                    let (a, b) = (
                        filter(order[later as usize]),
                        filter(order[earlier as usize]),
                    );
                    let both = shared(a, b);
                    let passes = both >= demand.least_shared(num_bits, num_set(a), num_set(b));
                    if let Demand::Bits(measure, threshold) = demand {
                        let value = measure.value(num_bits, num_set(a), num_set(b), both);
                        assert_eq!(passes, value >= threshold);
                    }
                    all[0].push(later);
                    all[1].push(earlier);
                    passing.push(passes);
                    if passes && states[earlier as usize] != REMOVED {
                        expected.push((later, earlier));
                    }
                }
            }
            assert_eq!(
                join.passes(
                    &all[0],
                    &all[1],
                    Run {
                        threads: 2,
                        cancel: &NEVER
                    }
                )
                .unwrap(),
                passing
            );
            for isa in Isa::available() {
                for (threads, max_pairs) in [(1, usize::MAX), (2, 700)] {
                    let mut found = Vec::new();
                    let mut low = 0;
                    while low < num_filters as u32 {
                        let range = low..num_filters as u32;
                        let call = Call {
                            range,
                            states: Some(&states),
                            max_pairs,
                            isa,
                            threads,
                            ..Call::of(0..0, &NEVER)
                        };
                        let part = join.candidates(&call).unwrap();
                        assert!(part.end > low);
                        low = part.end;
                        found.extend(part.later.into_iter().zip(part.earlier));
                    }
                    assert_eq!(found, expected, "{demand:?} {} {num_bits}", isa.name());
                }
            }
        }
    }
}

#[test]
fn sets_at_the_threshold_pass_with_the_recall() {
    let mut random = Random::new(3);
    const TRIALS: u32 = 400;
    // Sizes that do and do not suit the filter, and also 3 hashes.
    for (union, num_bits, num_hashes) in [
        (40, 2048, 1),
        (600, 1024, 1),
        (1500, 2048, 1),
        (400, 1024, 3),
    ] {
        for (measure, threshold) in [
            (Measure::Jaccard, 0.5),
            (Measure::Jaccard, 0.8),
            (Measure::Dice, 0.8),
            (Measure::Cosine, 0.8),
            (Measure::Smaller, 0.75),
        ] {
            for recall in [0.8, 0.95] {
                let demand = Demand::sets(measure, threshold, recall);
                // The second set is the union except for some of the first: as many are shared as the threshold
                // requires.
                let share = |both: usize| {
                    let a = both + (union - both) / 2;
                    let (both, a, b) = (both as f64, a as f64, (union + both - a) as f64);
                    match measure {
                        Measure::Jaccard => both / union as f64,
                        Measure::Dice => 2.0 * both / (a + b),
                        Measure::Cosine => both / (a * b).sqrt(),
                        Measure::Smaller => both / a.min(b),
                    }
                };
                let both = (0..=union).find(|&both| share(both) >= threshold).unwrap();
                let a = both + (union - both) / 2;
                let num_passed = (0..TRIALS)
                    .filter(|_| {
                        let hasher = BloomHasher::new(num_bits, num_hashes, random.next());
                        let features: Vec<u64> = (0..union).map(|_| random.next()).collect();
                        let mut filters =
                            [vec![0; hasher.num_words()], vec![0; hasher.num_words()]];
                        hasher.add(&features[..a], &[], &mut filters[0]);
                        hasher.add(&features[..both], &[], &mut filters[1]);
                        hasher.add(&features[a..], &[], &mut filters[1]);
                        let need = demand.least_shared(
                            num_bits,
                            num_set(&filters[0]),
                            num_set(&filters[1]),
                        );
                        shared(&filters[0], &filters[1]) >= need
                    })
                    .count() as f64;
                let expected = recall * f64::from(TRIALS);
                let deviation = (expected * (1.0 - recall)).sqrt();
                assert!(
                    num_passed > expected - 3.5 * deviation,
                    "{measure:?} {threshold} {recall} {union}: {num_passed} of {TRIALS}"
                );
            }
        }
    }
}

#[test]
fn a_load_is_the_number_of_features_over_bits() {
    let mut random = Random::new(4);
    for num_features in [50, 500, 2000] {
        let hasher = BloomHasher::new(2048, 1, random.next());
        let mut filter = vec![0; 32];
        let features: Vec<u64> = (0..num_features).map(|_| random.next()).collect();
        hasher.add(&features, &[], &mut filter);
        let estimate = 2048.0 * load(2048, num_set(&filter));
        let error = (2048.0
            * (libm::expm1(num_features as f64 / 2048.0) - num_features as f64 / 2048.0))
            .sqrt();
        assert!(
            (estimate - num_features as f64).abs() < 4.0 * error + 1.0,
            "{estimate} for {num_features}"
        );
    }
}

#[test]
fn positions_are_those_of_the_bits() {
    assert_eq!(positions(&[0, 0]).count(), 0);
    let bits = [0, 5, 63, 64, 127, 190];
    let mut filter = [0_u64; 3];
    bits.iter()
        .for_each(|&bit| filter[bit as usize / 64] |= 1 << (bit % 64));
    assert_eq!(positions(&filter).collect::<Vec<_>>(), bits);
    assert_eq!(
        positions(&[u64::MAX]).collect::<Vec<_>>(),
        (0..64).collect::<Vec<_>>()
    );
}
