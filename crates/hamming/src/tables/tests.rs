//! The tables must list the same pairs as brute force by the definition of the distance.

use std::sync::atomic::AtomicBool;

use super::*;
use crate::{Fingerprints, distance};
use likewise_core::error::Error;
use likewise_core::hash::mix64;
use likewise_core::isa::Isa;
use likewise_core::states::{KEPT, REMOVED, UNDECIDED};

static STOP: AtomicBool = AtomicBool::new(false);

/// Codes with several kinds of skew; `kind` selects one.
fn codes(kind: &str, n: usize, bits: u32, seed: u64) -> Vec<u64> {
    let num_words = bits.div_ceil(64) as usize;
    let random = |i: usize, salt: u64| {
        mix64(mix64(seed ^ salt) ^ (i as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15))
    };
    let mut words = Vec::new();
    for i in 0..n {
        // Bits beyond the width are deliberately arbitrary.
        let base: Vec<u64> = (0..num_words)
            .map(|w| match kind {
                "random" => random(i, w as u64),
                // A few centers, then up to six flipped bits.
                "clustered" => random(i % 37, w as u64),
                // All but the last 16 bits of each word agree.
                "templated" => 0x1234_5678_9abc_0000 | random(i, w as u64) & 0xffff,
                // Up to two bits of each word are set: blocks with few values.
                "sparse" => 1 << (random(i, w as u64) % 64) | 1 << (random(i, 7 + w as u64) % 64),
                _ => 42,
            })
            .collect();
        let start = words.len();
        words.extend(base);
        if kind == "clustered" {
            for flip in 0..random(i, 99) % 7 {
                let bit = (random(i, 100 + flip) % u64::from(bits)) as usize;
                words[start + bit / 64] ^= 1 << (bit % 64);
            }
        }
    }
    words
}

fn bit(words: &[u64], row: usize, bits: u32, i: u32) -> bool {
    words[row * bits.div_ceil(64) as usize + i as usize / 64] >> (i % 64) & 1 == 1
}

/// Returns (later, earlier, distance) of all pairs, with distances counted bit by bit.
fn all_pairs(words: &[u64], bits: u32, order: &[u32], within: u32) -> Vec<(u32, u32, u32)> {
    let rows: Vec<Vec<bool>> = order
        .iter()
        .map(|&row| {
            (0..bits)
                .map(|i| bit(words, row as usize, bits, i))
                .collect()
        })
        .collect();
    let mut found = Vec::new();
    for later in 0..rows.len() {
        for earlier in 0..later {
            let distance = (0..bits as usize)
                .filter(|&i| rows[later][i] != rows[earlier][i])
                .count() as u32;
            if distance <= within {
                found.push((later as u32, earlier as u32, distance));
            }
        }
    }
    found
}

fn triples(pairs: &HammingPairs) -> Vec<(u32, u32, u32)> {
    (0..pairs.later.len())
        .map(|i| (pairs.later[i], pairs.earlier[i], pairs.distance[i]))
        .collect()
}

fn shuffled(n: usize, seed: u64) -> Vec<u32> {
    let mut order: Vec<u32> = (0..n as u32).collect();
    order.sort_by_key(|&i| mix64(u64::from(i) ^ seed));
    order
}

#[test]
fn both_strategies_list_what_brute_force_lists() {
    for bits in [32, 64, 96, 128, 160, 256] {
        for kind in ["random", "clustered", "templated", "sparse", "equal"] {
            let n = 200;
            let words = codes(kind, n, bits, u64::from(bits));
            let fingerprints = Fingerprints {
                words: &words,
                bits,
            };
            let order = shuffled(n, 5);
            let everything = all_pairs(&words, bits, &order, bits);
            for within in (0..=16).chain([24, bits]) {
                // Every radius at the usual width, a few at the others.
                if bits != 64 && ![0, 1, 3, 5, 8, 12, 16, 24, bits].contains(&within) {
                    continue;
                }
                let expected: Vec<_> = everything
                    .iter()
                    .copied()
                    .filter(|&(_, _, distance)| distance <= within)
                    .collect();
                for strategy in [Strategy::Blocks, Strategy::Scan] {
                    // Neighbors within a wide radius are almost all 65,536 values; a few widths are enough.
                    if strategy == Strategy::Blocks && within * 16 > 4 * bits && within != 16 {
                        continue;
                    }
                    let tables =
                        HammingTables::build_for(strategy, fingerprints, &order, within, 2, &STOP)
                            .unwrap();
                    assert_eq!(tables.strategy(), strategy);
                    for isa in Isa::available() {
                        let pairs = tables.candidates(0..n as u32, None, isa, 2, &STOP).unwrap();
                        assert!(
                            triples(&pairs) == expected,
                            "{bits} {kind} {within} {strategy:?} {isa:?}: {} for {}",
                            pairs.later.len(),
                            expected.len()
                        );
                    }
                }
            }
        }
    }
}

#[test]
fn cheapest_strategy_on_thousands_of_codes_is_exact() {
    for (bits, kind, within) in [
        (64, "clustered", 3),
        (64, "random", 10),
        (128, "clustered", 12),
        (64, "templated", 3),
    ] {
        let n = 5000;
        let words = codes(kind, n, bits, 3);
        let order: Vec<u32> = (0..n as u32).collect();
        let fingerprints = Fingerprints {
            words: &words,
            bits,
        };
        let tables = HammingTables::build(fingerprints, &order, within, 2, &STOP).unwrap();
        let pairs = tables
            .candidates(0..n as u32, None, Isa::best(), 2, &STOP)
            .unwrap();
        let num_words = bits.div_ceil(64) as usize;
        let mut expected = Vec::new();
        for later in 0..n {
            for earlier in 0..later {
                let between = distance(
                    &words[later * num_words..][..num_words],
                    &words[earlier * num_words..][..num_words],
                );
                if between <= within {
                    expected.push((later as u32, earlier as u32, between));
                }
            }
        }
        assert!(triples(&pairs) == expected, "{bits} {kind} {within}");
    }
}

#[test]
fn ranges_and_threads_change_nothing_and_removed_ones_are_left_out() {
    let (n, bits, within) = (3000_u32, 64, 4);
    let words = codes("clustered", n as usize, bits, 11);
    let fingerprints = Fingerprints {
        words: &words,
        bits,
    };
    let order = shuffled(n as usize, 8);
    let states: Vec<u8> = (0..n)
        .map(|p| [UNDECIDED, KEPT, REMOVED][p as usize % 3])
        .collect();
    let expected: Vec<_> = all_pairs(&words, bits, &order, within)
        .into_iter()
        .filter(|pair| states[pair.1 as usize] != REMOVED)
        .collect();
    assert!(expected.len() > 1000);
    for strategy in [Strategy::Blocks, Strategy::Scan] {
        for threads in [1, 2, 7] {
            let tables =
                HammingTables::build_for(strategy, fingerprints, &order, within, threads, &STOP)
                    .unwrap();
            for step in [1, 64, 4096] {
                if step == 1 && threads > 1 {
                    continue;
                }
                let mut found = Vec::new();
                for start in (0..n).step_by(step) {
                    let range = start..(start + step as u32).min(n);
                    let pairs = tables
                        .candidates(range, Some(&states), Isa::best(), threads, &STOP)
                        .unwrap();
                    found.extend(triples(&pairs));
                }
                assert!(found == expected, "{strategy:?} {threads} {step}");
            }
        }
    }
}

#[test]
fn a_bound_cuts_between_positions_and_changes_nothing() {
    let n = 2000;
    // Two in three are in one cluster: nearly a million pairs, all in one bucket of every block.
    let words: Vec<u64> = (0..n)
        .map(|i| {
            if i % 3 == 0 {
                mix64(i)
            } else {
                0xabc ^ 1 << (i % 40)
            }
        })
        .collect();
    let fingerprints = Fingerprints {
        words: &words,
        bits: 64,
    };
    let order = shuffled(n as usize, 2);
    let end = n as u32;
    for strategy in [Strategy::Blocks, Strategy::Scan] {
        let tables = HammingTables::build_for(strategy, fingerprints, &order, 3, 2, &STOP).unwrap();
        let all = tables
            .candidates(0..end, None, Isa::best(), 2, &STOP)
            .unwrap();
        assert_eq!(all.end, end);
        assert!(all.later.len() > 800_000);
        for threads in [1, 3] {
            for max_pairs in [0, 1500, 100_000] {
                let (mut found, mut low) = (Vec::new(), 0);
                while low < end {
                    let pairs = tables
                        .candidates_up_to(max_pairs, low..end, None, Isa::best(), threads, &STOP)
                        .unwrap();
                    assert!(pairs.end > low);
                    let most = 2 * max_pairs + threads * n as usize;
                    assert!(
                        pairs.later.len() <= most,
                        "{} over {most}",
                        pairs.later.len()
                    );
                    found.extend(triples(&pairs));
                    low = pairs.end;
                }
                assert!(found == triples(&all), "{strategy:?} {threads} {max_pairs}");
            }
        }
    }
}

#[test]
fn a_part_of_the_rows_in_any_order() {
    let words = codes("clustered", 200, 96, 4);
    let order: Vec<u32> = shuffled(200, 9).into_iter().take(120).collect();
    let fingerprints = Fingerprints {
        words: &words,
        bits: 96,
    };
    for strategy in [Strategy::Blocks, Strategy::Scan] {
        let tables = HammingTables::build_for(strategy, fingerprints, &order, 6, 1, &STOP).unwrap();
        let pairs = tables
            .candidates(0..120, None, Isa::best(), 1, &STOP)
            .unwrap();
        assert_eq!(triples(&pairs), all_pairs(&words, 96, &order, 6));
    }
    let none = HammingTables::build(fingerprints, &[], 6, 1, &STOP).unwrap();
    assert!(none.is_empty());
    let pairs = none.candidates(0..0, None, Isa::best(), 1, &STOP).unwrap();
    assert!(pairs.later.is_empty());
}

fn refused<T: std::fmt::Debug>(result: Result<T, Error>) -> (&'static str, String) {
    match result {
        Err(Error::InvalidParameter { name, message }) => (name, message),
        other => panic!("not refused: {other:?}"),
    }
}

#[test]
fn misfits_are_refused() {
    let words = vec![0_u64; 6];
    let build = |bits, order: &[u32], within| {
        HammingTables::build(
            Fingerprints {
                words: &words,
                bits,
            },
            order,
            within,
            1,
            &STOP,
        )
    };
    assert_eq!(refused(build(48, &[0], 3)).0, "bits");
    assert_eq!(refused(build(288, &[0], 3)).0, "bits");
    assert_eq!(refused(build(256, &[0], 3)).0, "fingerprints");
    assert_eq!(refused(build(64, &[6], 3)).0, "order");
    assert_eq!(refused(build(64, &[0], 65)).0, "within");
    let tables = build(64, &[0, 1, 2], 3).unwrap();
    let ask = |range, states: Option<&[u8]>| tables.candidates(range, states, Isa::Plain, 1, &STOP);
    assert_eq!(refused(ask(0..4, None)).0, "range");
    assert_eq!(refused(ask(0..3, Some(&[0, 0]))).0, "states");
    assert!(ask(0..2, Some(&[0, 0])).is_ok());
}

#[test]
fn no_radius_is_too_wide_for_many_codes() {
    let n = 1_000_100_usize;
    let words = codes("clustered", n, 64, 5);
    let order: Vec<u32> = (0..n as u32).collect();
    let fingerprints = Fingerprints {
        words: &words,
        bits: 64,
    };
    let tables = HammingTables::build(fingerprints, &order, 30, 2, &STOP).unwrap();
    assert_eq!(tables.strategy(), Strategy::Scan);
    assert!(tables.predicted_seconds() > 10.0);
    let last = n as u32 - 3..n as u32;
    let pairs = tables
        .candidates(last.clone(), None, Isa::best(), 2, &STOP)
        .unwrap();
    let expected: Vec<_> = last
        .flat_map(|later| (0..later).map(move |earlier| (later, earlier)))
        .map(|(later, earlier)| {
            let between = (words[later as usize] ^ words[earlier as usize]).count_ones();
            (later, earlier, between)
        })
        .filter(|&(_, _, between)| between <= 30)
        .collect();
    assert!(triples(&pairs) == expected && !expected.is_empty());
}
