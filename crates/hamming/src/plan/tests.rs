//! Plans compared with every pattern of errors.

use super::blocks::Division;
use super::completeness::is_complete;
use super::families::{chosen_blocks, ring};
use super::{Key, SearchPlan};
use likewise_core::testing::Random;

/// Returns by brute force whether some pattern of at most `within` errors of a small width escapes all keys.
fn escapes_by_enumeration(bits: u32, within: u32, keys: &[Key]) -> bool {
    (0_u64..1 << bits)
        .filter(|pattern| pattern.count_ones() <= within)
        .any(|pattern| !keys.iter().any(|key| key.finds(&[pattern, 0, 0, 0])))
}

/// Returns a pattern of exactly `weight` errors.
fn random_errors(random: &mut Random, bits: u32, weight: u32) -> [u64; 4] {
    let mut mask = [0_u64; 4];
    let mut placed = 0;
    while placed < weight {
        let bit = random.below(bits as usize);
        if mask[bit / 64] >> (bit % 64) & 1 == 0 {
            mask[bit / 64] |= 1 << (bit % 64);
            placed += 1;
        }
    }
    mask
}

fn blocks(sizes: &[u32], radii: &[u32]) -> Vec<Key> {
    let mut first = 0;
    sizes
        .iter()
        .zip(radii)
        .map(|(&size, &radius)| {
            first += size;
            Key::of_bits(first - size..first, radius)
        })
        .collect()
}

/// Keys for every choice of `chosen` of equal blocks, with radius 0.
fn choose_blocks(bits: u32, num_blocks: u32, chosen: u32) -> Vec<Key> {
    (0_u32..1 << num_blocks)
        .filter(|set| set.count_ones() == chosen)
        .map(|set| {
            Key::of_bits(
                (0..bits).filter(|&bit| set >> (bit * num_blocks / bits) & 1 == 1),
                0,
            )
        })
        .collect()
}

#[test]
fn random_sets_are_judged_as_enumeration_judges_them() {
    let mut random = Random::new(4);
    let (mut complete, mut incomplete) = (0, 0);
    for round in 0..600 {
        let bits = 10 + random.below(4) as u32;
        let within = 1 + random.below(5) as u32;
        let keys: Vec<Key> = (0..1 + random.below(7))
            .map(|_| {
                // Sparse, dense and overlapping sets alike.
                let mask = match round % 3 {
                    0 => random.next() & random.next(),
                    1 => random.next(),
                    _ => {
                        let first = random.below(bits as usize);
                        ((1 << (1 + random.below(6))) - 1) << first
                    }
                } & ((1 << bits) - 1);
                let mask = [if mask == 0 { 1 } else { mask }, 0, 0, 0];
                let key = Key { mask, radius: 0 };
                Key {
                    radius: random.below(3).min(key.width() as usize) as u32,
                    ..key
                }
            })
            .collect();
        let expected = escapes_by_enumeration(bits, within, &keys);
        let found = is_complete(within, &keys);
        assert_eq!(found, !expected, "{bits} {within} {keys:?}");
        complete += u32::from(found);
        incomplete += u32::from(!found);
    }
    assert!(
        complete > 100 && incomplete > 100,
        "{complete} {incomplete}"
    );
}

#[test]
fn many_small_overlapping_keys_are_judged_as_enumeration_judges_them() {
    // Hitting all of a dozen triples or quadruples takes several errors, so the search backtracks often.
    let mut random = Random::new(5);
    let (mut complete, mut incomplete) = (0, 0);
    for _ in 0..600 {
        let bits = 12;
        let keys: Vec<Key> = (0..8 + random.below(10))
            .map(|_| {
                let width = 3 + random.below(3) as u32;
                let mask = random_errors(&mut random, bits, width);
                let radius = u32::from(random.below(4) == 0);
                Key { mask, radius }
            })
            .collect();
        let within = 3 + random.below(3) as u32;
        let found = is_complete(within, &keys);
        assert_eq!(
            found,
            !escapes_by_enumeration(bits, within, &keys),
            "{within} {keys:?}"
        );
        complete += u32::from(found);
        incomplete += u32::from(!found);
    }
    assert!(complete > 50 && incomplete > 50, "{complete} {incomplete}");
}

#[test]
fn whole_and_broken_families_are_judged_as_enumeration_judges_them() {
    let mut random = Random::new(11);
    let (mut complete, mut incomplete) = (0, 0);
    for round in 0..900 {
        let bits = 10 + random.below(4) as u32;
        let num_blocks = 3 + random.below(3) as u32;
        let chosen = 1 + random.below(num_blocks as usize - 1) as u32;
        let radius = random.below(3) as u32;
        let division = Division::Contiguous;
        let designed = 1 + random.below(4) as u32;
        let mut keys = match round % 2 {
            0 => ring(&division, bits, num_blocks, chosen, designed).keys,
            _ => chosen_blocks(&division, bits, num_blocks, chosen, radius).keys,
        };
        // Half of them are broken: a key is missing, duplicated, or has another radius or position.
        if random.below(2) == 0 {
            let place = random.below(keys.len());
            match random.below(4) {
                0 => drop(keys.remove(place)),
                1 => keys[place] = keys[0],
                2 => keys[place].radius = random.below(2) as u32,
                _ => keys[place].mask[0] ^= 1 << random.below(bits as usize),
            }
        }
        for within in 1..=5 {
            let found = is_complete(within, &keys);
            assert_eq!(
                found,
                !escapes_by_enumeration(bits, within, &keys),
                "{bits} {within} {keys:?}"
            );
            complete += u32::from(found);
            incomplete += u32::from(!found);
        }
    }
    assert!(
        complete > 1000 && incomplete > 1000,
        "{complete} {incomplete}"
    );
}

#[test]
fn every_family_is_complete_as_far_as_it_reaches() {
    let division = Division::Contiguous;
    for within in 1..=24 {
        for keys in [
            chosen_blocks(&division, 128, within + 1, 1, 0).keys,
            chosen_blocks(&division, 128, within + 2, 2, 0).keys,
            ring(&division, 128, 9, 4, within).keys,
        ] {
            assert!(is_complete(within, &keys), "{within}");
        }
        let most = chosen_blocks(&division, 128, within + 2, 2, 0).keys;
        assert!(!is_complete(within + 1, &most));
    }
}

#[test]
fn disjoint_keys_follow_the_pigeonhole_sum() {
    for within in 0..=12 {
        for radii in [
            [0, 0, 0, 0],
            [1, 0, 0, 0],
            [2, 1, 0, 1],
            [1, 1, 1, 1],
            [2, 2, 2, 1],
        ] {
            let keys = blocks(&[16, 16, 16, 16], &radii);
            let sum: u32 = radii.iter().map(|radius| radius + 1).sum();
            assert_eq!(is_complete(within, &keys), sum > within);
        }
    }
}

#[test]
fn tables_of_chosen_blocks_bear_the_other_blocks() {
    for (num_blocks, chosen) in [(4, 1), (5, 2), (6, 3), (7, 3), (8, 2), (9, 4)] {
        let keys = choose_blocks(64, num_blocks, chosen);
        let most = num_blocks - chosen;
        assert!(is_complete(most, &keys));
        assert!(!is_complete(most + 1, &keys));
        let mut fewer = keys;
        fewer.pop();
        assert!(!is_complete(most, &fewer));
    }
}

#[test]
fn sampled_errors_of_wide_codes_are_found() {
    let mut random = Random::new(9);
    let plans = [
        (64, 3, blocks(&[22, 21, 21], &[1, 0, 0])),
        (64, 3, choose_blocks(64, 6, 3)),
        (128, 10, blocks(&[32, 32, 32, 32], &[2, 2, 2, 1])),
        (256, 7, choose_blocks(256, 9, 2)),
        (256, 12, blocks(&[64; 4], &[3, 3, 2, 2])),
    ];
    for (bits, within, keys) in plans {
        let plan = SearchPlan::new(bits, within, keys).unwrap();
        for smaller in 0..=within {
            let radii = plan.radii_at(smaller);
            for _ in 0..500 {
                let weight = random.below(smaller as usize + 1) as u32;
                let errors = random_errors(&mut random, bits, weight);
                assert!(plan.keys().iter().zip(&radii).any(|(key, radius)| {
                    radius.is_some_and(|radius| Key { radius, ..*key }.finds(&errors))
                }));
            }
        }
    }
}

#[test]
fn radii_shrink_with_the_radius_asked() {
    let plan = SearchPlan::new(64, 10, blocks(&[16; 4], &[2, 2, 2, 1])).unwrap();
    for (within, sum) in [(0, 1), (1, 2), (3, 4), (4, 5), (7, 8), (10, 11)] {
        let radii = plan.radii_at(within);
        let found: u32 = radii.iter().flatten().map(|radius| radius + 1).sum();
        assert_eq!(found, sum, "{within}: {radii:?}");
    }
    let halves = SearchPlan::new(64, 3, blocks(&[32, 32], &[1, 1])).unwrap();
    assert_eq!(halves.radii_at(1), [Some(0), Some(0)]);
    assert_eq!(halves.radii_at(3), [Some(1), Some(1)]);
    assert_eq!(SearchPlan::new(64, 3, vec![]).unwrap().radii_at(2), []);
}

#[test]
fn keys_that_make_no_sense_are_refused() {
    let key = Key::of_bits(0..16, 3);
    assert!(SearchPlan::new(64, 3, vec![key]).is_ok());
    assert!(!SearchPlan::new(64, 4, vec![key]).unwrap().is_complete());
    assert!(SearchPlan::new(12, 3, vec![key]).is_err());
    assert!(SearchPlan::new(64, 3, vec![Key::of_bits([], 0)]).is_err());
    assert!(SearchPlan::new(64, 3, vec![Key::of_bits(0..3, 4)]).is_err());
    assert!(SearchPlan::new(300, 3, vec![key]).is_err());
    assert!(SearchPlan::new(64, 65, vec![key]).is_err());
}
