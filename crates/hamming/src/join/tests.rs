//! The joins must list the same pairs as brute force, each once.

use std::sync::atomic::AtomicBool;

use super::*;
use crate::distance::Fingerprints;
use likewise_core::hash::mix64;

static STOP: AtomicBool = AtomicBool::new(false);

fn random(a: u64, b: u64) -> u64 {
    mix64(mix64(a.wrapping_add(0x1234_5678)) ^ b.wrapping_mul(0x9e37_79b9_7f4a_7c15))
}

/// Codes with several kinds of skew, and arbitrary bits beyond the width.
fn codes(kind: &str, n: usize, bits: u32, seed: u64) -> Vec<u64> {
    let num_words = bits.div_ceil(64) as u64;
    let mut words = Vec::new();
    for i in 0..n as u64 {
        let start = words.len();
        words.extend((0..num_words).map(|w| match kind {
            "random" => random(seed + w, i),
            "clustered" => random(seed + w, i % 61),
            "templated" => 0x1234_5678_9abc_0000 | random(seed + w, i) & 0xffff,
            "sparse" => 1 << (random(seed + w, i) % 64) | 1 << (random(seed + 7 + w, i) % 64),
            // Half of the codes share all but a few bits; the others are random.
            _ if i % 2 == 0 => random(seed + w, i),
            _ => random(seed + w, 0) ^ (random(seed + w, i) & 0x0101_0101_0101_0101),
        }));
        if kind == "clustered" {
            for flip in 0..random(seed + 99, i) % 9 {
                let bit = (random(seed + 100 + flip, i) % u64::from(bits)) as usize;
                words[start + bit / 64] ^= 1 << (bit % 64);
            }
        }
    }
    words
}

fn rows_of(words: &[u64], bits: u32) -> Vec<Vec<u64>> {
    let num_words = bits.div_ceil(64) as usize;
    let live = u64::MAX >> (64 * num_words as u32 - bits);
    let mut rows: Vec<Vec<u64>> = words.chunks(num_words).map(<[u64]>::to_vec).collect();
    for row in &mut rows {
        row[num_words - 1] &= live;
    }
    rows
}

fn bits_apart(a: &[u64], b: &[u64]) -> u32 {
    a.iter().zip(b).map(|(a, b)| (a ^ b).count_ones()).sum()
}

fn brute_self(words: &[u64], bits: u32, within: u32) -> Vec<(u32, u32, u16)> {
    let rows = rows_of(words, bits);
    let mut found = Vec::new();
    for left in 0..rows.len() {
        for right in left + 1..rows.len() {
            let distance = bits_apart(&rows[left], &rows[right]);
            if distance <= within {
                found.push((left as u32, right as u32, distance as u16));
            }
        }
    }
    found
}

fn options(within: u32, isa: Isa, threads: usize) -> JoinOptions<'static> {
    JoinOptions {
        within,
        isa,
        run: Run {
            threads,
            cancel: &STOP,
        },
    }
}

/// Returns all pairs in the order in which they arrived.
fn pairs_of(
    join: impl FnOnce(&mut (dyn FnMut(PairBatch) -> bool + Send)) -> Result<(), Error>,
) -> Vec<(u32, u32, u16)> {
    let mut pairs = Vec::new();
    join(&mut |batch: PairBatch| {
        pairs.extend((0..batch.len()).map(|i| (batch.left[i], batch.right[i], batch.distance[i])));
        true
    })
    .unwrap();
    pairs
}

/// Limits for which few codes take every search path.
fn tight() -> Limits {
    Limits {
        few_codes: 100,
        many_codes: 60,
        large_pairs: 64,
        many_equal: f64::INFINITY,
        scan_factor: 8.0,
    }
}

fn all_limits() -> Vec<Limits> {
    let collapsed = Limits {
        many_equal: 0.0,
        ..tight()
    };
    let on_one_thread = Limits {
        few_codes: usize::MAX,
        ..tight()
    };
    vec![Limits::default(), tight(), collapsed, on_one_thread]
}

fn side(words: &[u64], bits: u32) -> JoinSide<'_> {
    JoinSide::of(Fingerprints { words, bits })
}

/// Returns all pairs in the order in which they arrived.
fn joined(
    left: &JoinSide<'_>,
    right: Option<&JoinSide<'_>>,
    limits: Limits,
    options: &JoinOptions<'_>,
) -> Vec<(u32, u32, u16)> {
    let task = whole_task(left.fingerprints.bits, options.within);
    pairs_of(|consumer| {
        with_join(
            left,
            right,
            (true, limits),
            options,
            consumer,
            |join, source| join.join(source, task),
        )
    })
}

fn sorted(mut pairs: Vec<(u32, u32, u16)>) -> Vec<(u32, u32, u16)> {
    pairs.sort_unstable();
    pairs
}

const KINDS: [&str; 5] = ["random", "clustered", "templated", "sparse", "mixed"];

#[test]
fn one_set_lists_what_brute_force_lists() {
    for bits in [32, 64, 96, 128, 256] {
        for kind in KINDS {
            let words = codes(kind, 300, bits, u64::from(bits));
            let everything = brute_self(&words, bits, bits);
            for within in (0..=16).chain([24, 32, bits]) {
                if bits != 64 && ![0, 1, 3, 4, 8, 16, 32, bits].contains(&within) {
                    continue;
                }
                let near = |pair: &&(u32, u32, u16)| u32::from(pair.2) <= within;
                let expected: Vec<_> = everything.iter().filter(near).copied().collect();
                for isa in Isa::available() {
                    if isa != Isa::best() && ![0, 3, 7, 16].contains(&within) {
                        continue;
                    }
                    // Wide radii are compared pair by pair; splitting by keys would take forever.
                    let ways = if within > bits / 8 { 1 } else { 4 };
                    for limits in all_limits().into_iter().take(ways) {
                        let options = options(within, isa, 2);
                        let found = sorted(joined(&side(&words, bits), None, limits, &options));
                        assert!(
                            found == expected,
                            "{bits} {kind} {within} {isa:?} {limits:?}: {} for {}",
                            found.len(),
                            expected.len()
                        );
                    }
                }
            }
        }
    }
}

#[test]
fn two_sets_list_what_brute_force_lists() {
    for bits in [32, 64, 128, 192] {
        for kind in KINDS {
            let left = codes(kind, 230, bits, 1);
            let right = [codes(kind, 150, bits, 1), codes(kind, 110, bits, 2)].concat();
            let (left_rows, right_rows) = (rows_of(&left, bits), rows_of(&right, bits));
            for within in [0, 1, 3, 6, 9, 32] {
                let mut expected = Vec::new();
                for (a, left) in left_rows.iter().enumerate() {
                    for (b, right) in right_rows.iter().enumerate() {
                        let distance = bits_apart(left, right);
                        if distance <= within {
                            expected.push((a as u32, b as u32, distance as u16));
                        }
                    }
                }
                for limits in all_limits() {
                    let options = options(within, Isa::best(), 2);
                    let (left, right) = (side(&left, bits), side(&right, bits));
                    let found = sorted(joined(&left, Some(&right), limits, &options));
                    assert!(found == expected, "{bits} {kind} {within} {limits:?}");
                }
            }
        }
    }
}

#[test]
fn thousands_of_codes_come_in_the_same_order_for_any_threads() {
    for (kind, within) in [("clustered", 3), ("mixed", 5), ("random", 12)] {
        let words = codes(kind, 12_000, 64, 5);
        let expected = brute_self(&words, 64, within);
        let found = [1, 2, 5].map(|threads| {
            joined(
                &side(&words, 64),
                None,
                Limits::default(),
                &options(within, Isa::best(), threads),
            )
        });
        assert!(found[0] == found[1] && found[0] == found[2], "{kind}");
        assert!(sorted(found[0].clone()) == expected, "{kind} {within}");
    }
}

#[test]
fn empty_texts_pair_with_empty_ones_only() {
    let words = vec![0, 1, 0, 0, 3, 0];
    let is_empty = [1, 0, 0, 1, 0, 1];
    let rows = [10, 11, 12, 13, 14, 15];
    let one = JoinSide {
        rows: Some(&rows),
        is_empty: Some(&is_empty),
        ..side(&words, 64)
    };
    for limits in all_limits() {
        let options = options(1, Isa::best(), 2);
        let found = sorted(joined(&one, None, limits, &options));
        let expected = [
            (10, 13, 0),
            (10, 15, 0),
            (11, 12, 1),
            (11, 14, 1),
            (13, 15, 0),
        ];
        assert_eq!(found, expected);
        let other = side(&words, 64);
        let found = sorted(joined(&one, Some(&other), limits, &options));
        assert!(found.iter().all(|pair| [11, 12, 14].contains(&pair.0)));
        assert_eq!(found.len(), 6 + 5 + 2);
    }
}

#[test]
fn many_copies_are_listed_batch_by_batch_and_can_be_stopped() {
    let words = vec![7_u64; 1000];
    let mut num_batches = 0;
    let mut num_pairs = 0;
    join(
        &side(&words, 64),
        None,
        &options(3, Isa::best(), 2),
        &mut |batch| {
            assert!(batch.len() <= 65_536);
            num_batches += 1;
            num_pairs += batch.len();
            true
        },
    )
    .unwrap();
    assert_eq!((num_batches, num_pairs), (8, 1000 * 999 / 2));
    let mut num_batches = 0;
    let stopped = join(
        &side(&words, 64),
        None,
        &options(3, Isa::best(), 2),
        &mut |_| {
            num_batches += 1;
            num_batches < 3
        },
    );
    assert_eq!((stopped, num_batches), (Err(Error::Canceled), 3));
}

#[test]
fn parts_joined_one_by_one_list_every_pair_once() {
    for (kind, bits, within, num_bits) in [
        ("clustered", 64, 3, 2),
        ("clustered", 64, 9, 3),
        ("sparse", 64, 4, 12),
        ("mixed", 128, 12, 3),
    ] {
        let num_words = bits as usize / 64;
        let words = codes(kind, 600, bits, 8);
        let options = options(within, Isa::best(), 2);
        let fingerprints = Fingerprints::new(&words, bits);
        let plan = plan_parts(fingerprints, 100_000, None, &options).unwrap();
        assert!(!plan.keys().is_empty());
        let mut found = Vec::new();
        for (index, key) in plan.keys().iter().enumerate() {
            let num_bits = num_bits.min(key.width());
            let part_of = PartOf::new(key, num_bits);
            let mut parts = vec![(Vec::new(), Vec::new()); 1 << num_bits];
            for (row, code) in words.chunks(num_words).enumerate() {
                let part = match *code {
                    [word] => part_of.part(&[word]),
                    [low, high] => part_of.part(&[low, high]),
                    _ => unreachable!(),
                };
                parts[part].0.extend(code);
                parts[part].1.push(row as u32);
            }
            let side_of = |part: usize| JoinSide {
                rows: Some(&parts[part].1),
                ..side(&parts[part].0, bits)
            };
            for left in 0..parts.len() {
                for right in left..parts.len() {
                    let num_errors = (left ^ right).count_ones();
                    if num_errors > key.radius {
                        continue;
                    }
                    let pair = PartPair {
                        plan: &plan,
                        key: index,
                        num_bits,
                        num_errors,
                    };
                    let other = side_of(right);
                    let other = (left != right).then_some(&other);
                    found.extend(pairs_of(|consumer| {
                        join_parts(&side_of(left), other, &pair, &options, consumer)
                    }));
                }
            }
        }
        for pair in &mut found {
            *pair = (pair.0.min(pair.1), pair.0.max(pair.1), pair.2);
        }
        assert!(
            sorted(found) == brute_self(&words, bits, within),
            "{kind} {within}"
        );
    }
}

#[test]
fn misfits_are_refused() {
    let words = [0_u64; 6];
    let refused = |result: Result<(), Error>| match result {
        Err(Error::InvalidParameter { name, .. }) => name,
        other => panic!("not refused: {other:?}"),
    };
    let ask = |side: &JoinSide<'_>, within| {
        refused(join(
            side,
            None,
            &options(within, Isa::Plain, 1),
            &mut |_| true,
        ))
    };
    assert_eq!(ask(&side(&words, 48), 3), "bits");
    assert_eq!(ask(&side(&words, 256), 3), "fingerprints");
    assert_eq!(ask(&side(&words, 64), 65), "within");
    let rows = JoinSide {
        rows: Some(&[1]),
        ..side(&words, 64)
    };
    assert_eq!(ask(&rows, 3), "rows");
    let two = join(
        &side(&words, 64),
        Some(&side(&words, 128)),
        &options(3, Isa::Plain, 1),
        &mut |_| true,
    );
    assert_eq!(refused(two), "right");
}
