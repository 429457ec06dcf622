//! The join against all pairs measured one by one.

use std::ops::Range;
use std::sync::atomic::AtomicBool;

use super::*;
use crate::hash::mix64;
use crate::search::{Call, KEPT, REMOVED};
use crate::testing::Random;

const MEASURES: [SetMeasure; 4] = [
    SetMeasure::Jaccard,
    SetMeasure::Dice,
    SetMeasure::Cosine,
    SetMeasure::Smaller,
];

#[derive(Debug, Clone)]
struct Set {
    features: Vec<u64>,
    weights: Vec<u32>,
}

/// Sets over few features, the lower numbers common, many near one another, of 1 to 60 features.
fn sets(random: &mut Random, num_sets: usize, max_weight: usize) -> Vec<Set> {
    let mut made: Vec<Set> = Vec::new();
    for _ in 0..num_sets {
        let mut members = std::collections::BTreeMap::new();
        if !made.is_empty() && random.below(3) > 0 {
            let base = &made[random.below(made.len())];
            let num_taken = 1 + random.below(base.features.len());
            for i in 0..num_taken {
                members.insert(base.features[i], base.weights[i]);
            }
        }
        for _ in 0..random.below(12) + usize::from(members.is_empty()) {
            let range = 1 + random.below(400);
            let weight = 1 + random.below(max_weight) as u32;
            members.insert(mix64(random.below(range) as u64 + 1), weight);
        }
        made.push(Set {
            features: members.keys().copied().collect(),
            weights: members.values().copied().collect(),
        });
    }
    made
}

fn similarity(a: &Set, b: &Set, measure: SetMeasure) -> f64 {
    let weight = |set: &Set, feature: u64| {
        let found = set.features.iter().position(|&other| other == feature);
        found.map_or(0.0, |i| f64::from(set.weights[i]))
    };
    let (mut lesser, mut product) = (0.0, 0.0);
    for &feature in &a.features {
        let (x, y) = (weight(a, feature), weight(b, feature));
        lesser += x.min(y);
        product += x * y;
    }
    let total = |set: &Set| set.weights.iter().map(|&w| f64::from(w)).sum::<f64>();
    let norm = |set: &Set| {
        let squares = set.weights.iter().map(|&w| f64::from(w) * f64::from(w));
        squares.sum::<f64>()
    };
    match measure {
        SetMeasure::Jaccard => lesser / (total(a) + total(b) - lesser),
        SetMeasure::Dice => 2.0 * lesser / (total(a) + total(b)),
        SetMeasure::Cosine => product / (norm(a) * norm(b)).sqrt(),
        SetMeasure::Smaller => lesser / total(a).min(total(b)),
    }
}

fn join(sets: &[Set], demand: Demand, is_plain: bool, step: usize) -> PrefixJoin {
    let weights_of = |set: &Set| match is_plain {
        true => Vec::new(),
        false => set.weights.clone(),
    };
    let rarity = Rarity::new(40_000);
    sets.iter().for_each(|set| rarity.add(&set.features));
    let mut chooser = Chooser::new(demand);
    let wanted = (demand.measure == SetMeasure::Smaller).then(|| Wanted::new(&rarity));
    if let Some(wanted) = &wanted {
        for set in sets {
            chooser.mark(&set.features, &weights_of(set), &rarity, wanted);
        }
    }
    let mut prefixes = Prefixes::new(demand, sets.len());
    // In another order than that of the positions.
    let mut positions: Vec<u32> = (0..sets.len() as u32).collect();
    positions.sort_by_key(|&position| mix64(u64::from(position)));
    for (number, some) in positions.chunks(step).enumerate() {
        let mut batches = [Batch::default(), Batch::default()];
        for (i, &position) in some.iter().enumerate() {
            let set = &sets[position as usize];
            let weights = weights_of(set);
            chooser.choose(
                &set.features,
                &weights,
                &rarity,
                wanted.as_ref(),
                &mut batches[usize::from(i > some.len() / 3)],
            );
        }
        match number % 2 {
            0 => prefixes.add(Parted::new(some, &batches).unwrap()),
            _ => prefixes.add_few(some, Vec::from(batches)),
        }
        .unwrap();
    }
    prefixes
        .into_join(1 + step / 2 % 3, &AtomicBool::new(false))
        .unwrap()
}

/// The memory of a join is planned by this bound.
#[test]
fn with_heavy_features_first_a_prefix_has_no_larger_share_of_them_than_of_the_mass() {
    let mut random = Random::new(11);
    let sets = sets(&mut random, 400, 15);
    let rarity = Rarity::new(40_000);
    sets.iter().for_each(|set| rarity.add(&set.features));
    for threshold in [0.3, 0.44, 0.8] {
        let mut chooser = Chooser::new(Demand {
            by_rarity: true,
            ..Demand::new(SetMeasure::Jaccard, threshold)
        });
        let mut batch = Batch::default();
        for set in &sets {
            chooser.choose(&set.features, &set.weights, &rarity, None, &mut batch);
        }
        assert!(batch.num_entries() > sets.len());
        for facts in &batch.sets {
            let most = (1.0 - threshold) * f64::from(facts.num_features) + 1.0;
            assert!(f64::from(facts.num_entries) <= most, "{facts:?}");
        }
    }
}

static NEVER: AtomicBool = AtomicBool::new(false);

fn call(range: Range<u32>, states: Option<&[u8]>, max_pairs: usize, threads: usize) -> Call<'_> {
    Call {
        states,
        max_pairs,
        threads,
        ..Call::of(range, &NEVER)
    }
}

fn all_candidates(
    join: &mut PrefixJoin,
    step: usize,
    states: Option<&[u8]>,
    threads: usize,
) -> Vec<(u32, u32)> {
    let mut found = Vec::new();
    let len = join.len();
    for low in (0..len).step_by(step) {
        let range = low as u32..(low + step).min(len) as u32;
        let call = call(range, states, usize::MAX, threads);
        let pairs = join.candidates(&call).unwrap();
        assert!(pairs.later.iter().zip(&pairs.earlier).is_sorted());
        found.extend(pairs.later.into_iter().zip(pairs.earlier));
    }
    found
}

#[test]
fn every_pair_at_the_threshold_is_listed() {
    let mut random = Random::new(21);
    let (mut num_matching, mut num_listed, mut num_pairs) = (0, 0, 0);
    for round in 0..12 {
        let is_plain = round % 3 == 0;
        let sets = sets(&mut random, 150, [1, 3, 15][round % 3]);
        for measure in MEASURES {
            for threshold in [0.05, 0.3, 0.5, 0.6, 0.75, 0.8, 0.9, 1.0] {
                let demand = Demand::new(measure, threshold);
                let mut join = join(&sets, demand, is_plain, 1 + random.below(60));
                let step = 1 + random.below(80);
                let found = all_candidates(&mut join, step, None, 1 + round % 2);
                for later in 0..sets.len() {
                    for earlier in 0..later {
                        num_pairs += 1;
                        if similarity(&sets[later], &sets[earlier], measure) >= threshold {
                            num_matching += 1;
                            let pair = (later as u32, earlier as u32);
                            assert!(
                                found.binary_search(&pair).is_ok(),
                                "{measure:?} {threshold} {pair:?}"
                            );
                        }
                    }
                }
                num_listed += found.len();
            }
        }
    }
    assert!(num_matching > 10_000);
    // Otherwise listing everything would do.
    assert!(num_listed < 3 * num_matching && num_listed * 2 < num_pairs);
}

#[test]
fn short_documents_and_pairs_that_share_only_common_features_need_more() {
    let mut random = Random::new(31);
    let (mut num_matching, mut num_of_crowd, mut num_listed, mut num_otherwise) = (0, 0, 0, 0);
    for round in 0..8 {
        let mut sets = templated(&mut random, 200, 1);
        for set in &mut sets {
            let weigh = |feature: &u64| match (1..31).any(|i| mix64(i) == *feature) {
                // The shared ones are common, but for a few in some rounds.
                true => 1 + (feature % 8 + 3 * (round % 2)) as u32,
                false => 9 + (feature % 7) as u32,
            };
            set.weights = set.features.iter().map(weigh).collect();
        }
        let measure = MEASURES[round as usize % 4];
        for threshold in [0.2, 0.4, 0.6, 0.95] {
            let plain = Demand::new(measure, threshold);
            let demand = Demand {
                short_margin: (round % 3) as f64 / 4.0,
                by_rarity: true,
                ..plain
            };
            let listed = |demand| all_candidates(&mut join(&sets, demand, false, 40), 70, None, 2);
            let found = listed(demand);
            num_listed += found.len();
            num_otherwise += listed(plain).len();
            for later in 0..sets.len() {
                for earlier in 0..later {
                    let (a, b) = (&sets[later], &sets[earlier]);
                    let shared = |i: &usize| b.features.contains(&a.features[*i]);
                    let rarest = (0..a.features.len())
                        .filter(shared)
                        .map(|i| a.weights[i])
                        .max();
                    let fewest = a.features.len().min(b.features.len()) as f64;
                    let needed = threshold + demand.short_margin / fewest.sqrt();
                    let needed = match rarest.is_some_and(|rarest| rarest > 8) {
                        true => needed.min(1.0),
                        false => (needed + 0.09_f64).min(1.0),
                    };
                    if similarity(a, b, measure) >= needed {
                        num_matching += 1;
                        num_of_crowd += usize::from(rarest.is_none_or(|rarest| rarest <= 8));
                        let pair = (later as u32, earlier as u32);
                        assert!(
                            found.binary_search(&pair).is_ok(),
                            "{measure:?} {threshold} {pair:?}"
                        );
                    }
                }
            }
        }
    }
    assert!(num_of_crowd > 1000 && num_matching > 2 * num_of_crowd);
    assert!(
        num_listed + 5000 < num_otherwise,
        "{num_listed} of {num_otherwise}"
    );
}

/// Sets that share 30 features, all or most of them, and have up to 60 more, some of them those of another set.
fn templated(random: &mut Random, num_sets: usize, max_weight: usize) -> Vec<Set> {
    let mut made: Vec<Set> = Vec::new();
    for number in 0..num_sets {
        let mut members = std::collections::BTreeMap::new();
        for i in 0..30 {
            if random.below(20) > 0 {
                members.insert(mix64(i + 1), 1 + (i as usize % max_weight) as u32);
            }
        }
        for i in 0..random.below(60) as u64 {
            members.insert(
                mix64((number as u64 + 1) << 32 | i),
                1 + random.below(max_weight) as u32,
            );
        }
        if number > 0 && random.below(4) == 0 {
            let base = &made[random.below(number)];
            for (&feature, &weight) in base.features.iter().zip(&base.weights) {
                if random.below(10) > 0 {
                    members.insert(feature, weight);
                }
            }
        }
        made.push(Set {
            features: members.keys().copied().collect(),
            weights: members.values().copied().collect(),
        });
    }
    made
}

#[test]
fn stretches_that_are_passed_over_hold_no_pair() {
    let mut random = Random::new(22);
    for (max_weight, is_plain) in [(1, true), (4, false)] {
        let sets = templated(&mut random, 220, max_weight);
        for measure in MEASURES {
            let pairs: Vec<(u32, u32, f64)> = (0..sets.len())
                .flat_map(|later| (0..later).map(move |earlier| (later, earlier)))
                .map(|(later, earlier)| {
                    let value = similarity(&sets[later], &sets[earlier], measure);
                    (later as u32, earlier as u32, value)
                })
                .collect();
            for threshold in [0.4, 0.55, 0.7, 0.85] {
                let demand = Demand::new(measure, threshold);
                let found = all_candidates(&mut join(&sets, demand, is_plain, 50), 90, None, 2);
                for &(later, earlier, value) in &pairs {
                    if value >= threshold {
                        assert!(
                            found.binary_search(&(later, earlier)).is_ok(),
                            "{measure:?} {threshold} {later} {earlier}"
                        );
                    }
                }
            }
        }
    }
}

#[test]
fn neither_threads_nor_ranges_change_what_is_listed() {
    let mut random = Random::new(5);
    let sets = sets(&mut random, 300, 4);
    for measure in MEASURES {
        let demand = Demand::new(measure, 0.6);
        let expected = all_candidates(&mut join(&sets, demand, false, 7), 300, None, 1);
        for (step, threads) in [(1, 1), (13, 2), (64, 3), (299, 5)] {
            let mut join = join(&sets, demand, false, step);
            assert_eq!(all_candidates(&mut join, step, None, threads), expected);
        }
    }
}

#[test]
fn a_search_that_stops_at_many_pairs_goes_on_where_it_stopped() {
    let mut random = Random::new(6);
    let sets = sets(&mut random, 300, 4);
    for measure in MEASURES {
        let demand = Demand::new(measure, 0.5);
        let expected = all_candidates(&mut join(&sets, demand, false, 7), 300, None, 1);
        for (max_pairs, threads) in [(0, 1), (1, 2), (40, 3), (usize::MAX, 1)] {
            let mut join = join(&sets, demand, false, 50);
            let (mut found, mut low) = (Vec::new(), 0);
            while low < 300 {
                let part = join
                    .candidates(&call(low..300, None, max_pairs, threads))
                    .unwrap();
                assert!(part.end > low);
                assert!(part.later.len() <= max_pairs || part.end == low + 1);
                // It stops no earlier than it must.
                let next = expected.iter().filter(|pair| pair.0 == part.end).count();
                assert!(part.end == 300 || part.later.len() + next > max_pairs);
                found.extend(part.later.into_iter().zip(part.earlier));
                low = part.end;
            }
            assert_eq!(found, expected);
        }
    }
}

#[test]
fn removed_documents_are_listed_no_more() {
    let mut random = Random::new(8);
    let sets = sets(&mut random, 200, 2);
    let states: Vec<u8> = (0..sets.len())
        .map(|i| if i % 3 == 1 { REMOVED } else { KEPT })
        .collect();
    for measure in MEASURES {
        let demand = Demand::new(measure, 0.5);
        let mut expected = all_candidates(&mut join(&sets, demand, false, 9), 200, None, 1);
        expected.retain(|&(_, earlier)| states[earlier as usize] != REMOVED);
        for step in [1, 17, 200] {
            let mut join = join(&sets, demand, false, step);
            assert_eq!(all_candidates(&mut join, step, Some(&states), 2), expected);
        }
    }
}

#[test]
fn few_positions_are_found_again_where_most_pairs_stay() {
    // Each document matches all earlier ones, and a call returns 1,000 pairs.
    let mut random = Random::new(3);
    let sets = vec![sets(&mut random, 1, 1).remove(0); 700];
    for threads in [1, 2, 8] {
        let mut join = join(&sets, Demand::new(SetMeasure::Jaccard, 0.8), true, 7);
        let (mut end, mut num_pairs) = (0, 0);
        while end < 700 {
            let found = join
                .candidates(&call(end..700, None, 1000, threads))
                .unwrap();
            num_pairs += found.later.len();
            end = found.end;
        }
        assert_eq!(num_pairs, 700 * 699 / 2);
        // As many positions as threads is the least that a call finds.
        assert!(join.num_found < 700 * (threads + 3), "{}", join.num_found);
    }
}

#[test]
fn small_batches_share_parts() {
    let demand = Demand::new(SetMeasure::Jaccard, 0.5);
    let mut prefixes = Prefixes::new(demand, 200_000);
    let (mut chooser, rarity) = (Chooser::new(demand), Rarity::new(0));
    for position in 0..200_000 {
        let mut batch = Batch::default();
        chooser.choose(&[1, 2], &[], &rarity, None, &mut batch);
        prefixes.add_few(&[position], vec![batch]).unwrap();
    }
    assert!(prefixes.num_parts() <= 10, "{}", prefixes.num_parts());
    assert!(
        prefixes
            .add_few(&[200_000], vec![Batch::default()])
            .is_err()
    );
    assert!(prefixes.add_few(&[1, 2], vec![Batch::default()]).is_err());
    assert!(prefixes.into_join(2, &AtomicBool::new(true)).is_err());
}

#[test]
fn counts_are_never_too_low_and_ones_are_exact() {
    let rarity = Rarity::new(1 << 16);
    let num_times = |i: u64| if i < 30 { 200 + 40 * i } else { 1 + i % 3 };
    let stop = AtomicBool::new(false);
    let count = |(): &mut (), range: std::ops::Range<usize>| {
        for i in range.map(|i| i as u64) {
            for _ in 0..num_times(i) {
                rarity.add(&[mix64(i + 1)]);
            }
        }
    };
    let run = crate::parallel::Run {
        threads: 3,
        cancel: &stop,
    };
    run.map(3000, 10, || (), count).unwrap();
    let mut num_exact = 0;
    for i in 0..3000 {
        let found = u64::from(rarity.num_documents(mix64(i + 1)));
        assert!(found >= num_times(i));
        num_exact += u64::from(found == num_times(i));
    }
    assert!(num_exact > 2400);
    assert_eq!(Rarity::new(0).num_documents(5), 0);
}

#[test]
fn ranges_out_of_turn_and_wrong_positions_are_refused() {
    let mut random = Random::new(3);
    let sets = sets(&mut random, 20, 1);
    let demand = Demand::new(SetMeasure::Jaccard, 0.5);
    let mut join = join(&sets, demand, true, 5);
    let mut ask = |range, states: Option<&[u8]>| {
        let call = call(range, states, usize::MAX, 1);
        join.candidates(&call).map(|_| ())
    };
    assert!(ask(5..9, None).is_err());
    assert!(ask(0..21, None).is_err());
    assert!(ask(0..20, Some(&[KEPT; 19])).is_err());
    assert!(ask(0..20, Some(&[KEPT; 20])).is_ok());
    assert!(ask(0..20, None).is_err());
    let mut prefixes = Prefixes::new(demand, 2);
    assert!(Parted::new(&[0], &[Batch::default()]).is_err());
    let mut batch = Batch::default();
    Chooser::new(demand).choose(&[1], &[], &Rarity::new(0), None, &mut batch);
    let batches = [batch];
    assert!(prefixes.add(Parted::new(&[2], &batches).unwrap()).is_err());
    assert!(prefixes.add(Parted::new(&[1], &batches).unwrap()).is_ok());
}
