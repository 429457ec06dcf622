use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::AtomicBool;

use super::*;
use crate::{Fingerprints, distance};
use likewise_core::bands::{BUCKET_SIZE, NUM_LEVELS};
use likewise_core::error::Error;
use likewise_core::isa::Isa;
use likewise_core::testing::Random;

static STOP: AtomicBool = AtomicBool::new(false);

/// Fingerprints around a few centers, with up to `max_errors` errors.
fn codes(num: usize, bits: u32, num_centers: usize, max_errors: usize, seed: u64) -> Vec<u64> {
    let mut random = Random::new(seed);
    let num_words = bits.div_ceil(64) as usize;
    let live = u64::MAX >> ((64 - bits % 64) % 64);
    let mut words = Vec::new();
    for row in 0..num {
        let original = (row >= num_centers).then(|| random.below(num_centers));
        for word in 0..num_words {
            let fresh = random.next()
                & if word + 1 == num_words {
                    live
                } else {
                    u64::MAX
                };
            words.push(original.map_or(fresh, |row| words[row * num_words + word]));
        }
        if original.is_some() {
            for _ in 0..random.below(max_errors + 1) {
                let bit = random.below(bits as usize);
                words[row * num_words + bit / 64] ^= 1 << (bit % 64);
            }
        }
    }
    words
}

fn row(words: &[u64], bits: u32, row: u32) -> &[u64] {
    let num_words = bits.div_ceil(64) as usize;
    &words[row as usize * num_words..][..num_words]
}

fn masked(code: &[u64], mask: &[u64; 4]) -> Vec<u64> {
    code.iter()
        .zip(mask)
        .map(|(word, mask)| word & mask)
        .collect()
}

#[test]
fn bands_of_a_partition_are_disjoint_and_levels_nest() {
    for (bits, rows) in [(64, 12), (128, 16), (256, 24), (96, 20), (32, 1)] {
        let a_partition = bands_a_partition(bits, rows) as usize;
        let bands = BitBands::new(bits, rows, 3 * a_partition as u32 + 1, 7);
        for partition in 0..3 {
            let mut seen = [0_u64; 4];
            for band in 0..a_partition {
                let mask = bands.mask(partition * a_partition + band, 0);
                let width: u32 = mask.iter().map(|word| word.count_ones()).sum();
                assert_eq!(width, rows);
                for word in 0..4 {
                    assert_eq!(seen[word] & mask[word], 0);
                    seen[word] |= mask[word];
                    let next = bands.mask(partition * a_partition + band, 1)[word];
                    assert_eq!(next & mask[word], mask[word]);
                }
            }
        }
        let whole: u32 = bands.mask(0, 20).iter().map(|word| word.count_ones()).sum();
        assert_eq!(whole, bits);
        assert_ne!(bands.mask(0, 0), BitBands::new(bits, rows, 1, 8).mask(0, 0));
    }
}

#[test]
fn recall_is_that_of_counting_every_pattern() {
    // 12 positions, 3 bands of 4: all C(12, d) patterns.
    for d in 0..=12_u32 {
        let (mut found, mut all) = ([0.0; 4], 0.0);
        for pattern in (0_u32..1 << 12).filter(|pattern| pattern.count_ones() == d) {
            all += 1.0;
            for (num_bands, found) in found.iter_mut().enumerate() {
                let clean = (0..num_bands).any(|band| pattern >> (4 * band) & 15 == 0);
                *found += f64::from(u8::from(clean));
            }
        }
        for (num_bands, found) in found.into_iter().enumerate() {
            let model = bit_band_recall(12, d, num_bands as u32, 4);
            assert!((model - found / all).abs() < 1e-12, "{d} {num_bands}");
        }
        // Partitions are independent.
        let once = 1.0 - found[3] / all;
        let model = bit_band_recall(12, d, 7, 4);
        assert!((model - (1.0 - once * once * (1.0 - found[1] / all))).abs() < 1e-12);
    }
}

#[test]
fn measured_recall_is_that_of_the_model() {
    for (bits, within, bands, rows) in [(64, 12, 20, 12), (128, 32, 40, 12), (256, 50, 30, 16)] {
        let model = bit_band_recall(bits, within, bands, rows);
        let mut random = Random::new(u64::from(bits));
        let (mut num_found, num_tried) = (0, 4000);
        for seed in 0..num_tried {
            let mut differing = [0_u64; 4];
            let mut num_errors = 0;
            while num_errors < within {
                let bit = random.below(bits as usize);
                num_errors += u32::from(differing[bit / 64] >> (bit % 64) & 1 == 0);
                differing[bit / 64] |= 1 << (bit % 64);
            }
            let sampled = BitBands::new(bits, rows, bands, seed);
            let agrees = |band| (0..4).all(|w| differing[w] & sampled.mask(band, 0)[w] == 0);
            num_found += u32::from((0..sampled.len()).any(agrees));
        }
        let measured = f64::from(num_found) / num_tried as f64;
        let deviation = (model * (1.0 - model) / num_tried as f64).sqrt();
        assert!(
            (measured - model).abs() < 4.0 * deviation,
            "{measured} for {model}"
        );
        assert!(model > 0.1 && model < 0.99);
    }
}

#[test]
fn plans_reach_the_recall_with_no_band_too_many() {
    for (bits, within) in [(64, 3), (64, 12), (128, 24), (128, 32), (256, 64), (64, 40)] {
        for recall in [0.5, 0.95, 0.999] {
            let plan = plan_bit_bands(bits, within, recall).unwrap();
            assert!(plan.recall >= recall);
            assert!(bit_band_recall(bits, within, plan.bands - 1, plan.rows) < recall);
        }
    }
    let refused = |bits, within, recall| match plan_bit_bands(bits, within, recall) {
        Err(Error::InvalidParameter { name, .. }) => name,
        other => panic!("{other:?}"),
    };
    assert_eq!(refused(64, 64, 0.5), "recall");
    assert_eq!(refused(64, 65, 0.5), "within");
    assert_eq!(refused(64, 3, 1.0), "recall");
    assert_eq!(plan_bit_bands(64, 0, 0.9).unwrap().bands, 1);
}

#[test]
fn all_pairs_are_those_that_agree_in_a_band() {
    for (bits, within) in [(32, 6), (64, 12), (128, 30), (256, 60)] {
        let words = codes(600, bits, 40, 20, 3);
        let order: Vec<u32> = (0..600).filter(|row| row % 7 != 0).collect();
        let fingerprints = Fingerprints {
            words: &words,
            bits,
        };
        for isa in Isa::available() {
            for threads in [1, 3] {
                let found =
                    bit_band_pairs(fingerprints, &order, within, 0.7, 5, isa, threads, &STOP)
                        .unwrap();
                let plan = found.plan;
                let bands = BitBands::new(bits, plan.rows, plan.bands, 5);
                let mut expected = Vec::new();
                for (i, &a) in order.iter().enumerate() {
                    for &b in &order[i + 1..] {
                        let (left, right) = (row(&words, bits, a), row(&words, bits, b));
                        let between = distance(left, right);
                        let agrees = |band| {
                            let mask = bands.mask(band, 0);
                            masked(left, &mask) == masked(right, &mask)
                        };
                        if between <= within && (0..bands.len()).any(agrees) {
                            expected.push((a, b, between));
                        }
                    }
                }
                let listed: Vec<_> = (0..found.left.len())
                    .map(|i| (found.left[i], found.right[i], found.distance[i]))
                    .collect();
                assert!(expected.len() > 100);
                assert!(listed == expected, "{bits} {isa:?}");
            }
        }
    }
}

/// Levels by dictionaries, filled one position at a time: what each position looks at, and how many times it was
/// capped.
fn looked_at(
    words: &[u64],
    bits: u32,
    order: &[u32],
    bands: &BitBands,
) -> (BTreeSet<(u32, u32)>, Vec<u64>) {
    let mut buckets: BTreeMap<(usize, u32, Vec<u64>), Vec<u32>> = BTreeMap::new();
    let mut seen = BTreeSet::new();
    let mut capped = vec![0; order.len()];
    for (position, &of) in order.iter().enumerate() {
        for band in 0..bands.len() {
            let mut is_member = false;
            for level in 0..NUM_LEVELS {
                let value = masked(row(words, bits, of), &bands.mask(band, level));
                let bucket = buckets.entry((band, level, value)).or_default();
                seen.extend(bucket.iter().map(|&earlier| (position as u32, earlier)));
                if bucket.len() < BUCKET_SIZE {
                    bucket.push(position as u32);
                    is_member = true;
                    break;
                }
            }
            capped[position] += u64::from(!is_member);
        }
    }
    (seen, capped)
}

#[test]
fn levels_look_at_what_dictionaries_do() {
    for (bits, within, num_centers, rows, num_bands) in [
        (64, 14, 3, 4, 5),
        (64, 20, 60, 8, 9),
        (128, 40, 1, 12, 6),
        (32, 10, 2, 3, 4),
    ] {
        let num = 900_u32;
        let words = codes(num as usize, bits, num_centers, 8, 9);
        let order: Vec<u32> = (0..num).rev().collect();
        let fingerprints = Fingerprints {
            words: &words,
            bits,
        };
        let buckets =
            BitBandBuckets::build(fingerprints, &order, within, num_bands, rows, 11).unwrap();
        let (seen, capped) = looked_at(
            &words,
            bits,
            &order,
            &BitBands::new(bits, rows, num_bands, 11),
        );
        for isa in Isa::available() {
            for cuts in [&[0, num][..], &[0, 10, 400, num]] {
                let mut listed = Vec::new();
                for range in cuts.windows(2).map(|cut| cut[0]..cut[1]) {
                    let (pairs, num_capped) = buckets
                        .pairs(range.clone(), usize::MAX, isa, 2, &STOP)
                        .unwrap()
                        .unwrap();
                    let expected: u64 = capped[range.start as usize..range.end as usize]
                        .iter()
                        .sum();
                    assert_eq!(num_capped, expected);
                    listed.extend(
                        (0..pairs.later.len())
                            .map(|i| (pairs.later[i], pairs.earlier[i], pairs.distance[i])),
                    );
                }
                let expected: Vec<_> = seen
                    .iter()
                    .map(|&(later, earlier)| {
                        let code = |position: u32| row(&words, bits, order[position as usize]);
                        (later, earlier, distance(code(later), code(earlier)))
                    })
                    .filter(|&(_, _, between)| between <= within)
                    .collect();
                assert!(
                    listed == expected,
                    "{bits} {isa:?}: {} for {}",
                    listed.len(),
                    expected.len()
                );
            }
        }
        assert_eq!(buckets.pairs(0..num, 10, Isa::best(), 2, &STOP), Ok(None));
    }
}
