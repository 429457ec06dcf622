//! The rule of `docs/developers/definitions.md`, one document at a time with hash maps; the sorted build must find the
//! same pairs.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::atomic::AtomicBool;

use super::*;
use crate::error::Error;
use crate::hash::{mix64, xxh3_64_with_seed};
use crate::isa::Isa;
use crate::parallel::Run;
use crate::search::{Call, KEPT, Pairs, REMOVED, UNDECIDED};
use crate::sketch::Signatures;

static STOP: AtomicBool = AtomicBool::new(false);

/// Returns signatures of `n` documents with slots of a given width. `kind` selects how similar they are.
fn signatures(kind: &str, n: usize, num_slots: usize, slot_bytes: usize) -> Vec<u8> {
    let mut bytes = Vec::new();
    for row in 0..n as u64 {
        for slot in 0..num_slots as u64 {
            let own = mix64(row * 1000 + slot);
            // Template documents differ from their template in a percentage of the slots.
            let of_template = |templates: u64, changed: u64| {
                if own % 100 < changed {
                    own >> 8
                } else {
                    mix64((row % templates) * 77 + slot)
                }
            };
            let value = match kind {
                "random" => own,
                "narrow" => own % 3,
                "clusters" => of_template(n as u64 / 4, 15),
                "templates" => of_template(5, 10),
                "half" if row % 2 == 0 => own,
                "half" => of_template(5, 3),
                _ => slot,
            };
            bytes.extend_from_slice(&value.to_le_bytes()[..slot_bytes]);
        }
    }
    bytes
}

/// The buckets of one band and level, by key.
type Online = HashMap<(u32, u32, u64), Vec<u32>>;

/// Returns the (later, earlier) pairs and the capped count for documents that arrive one by one.
fn online(
    signatures: &Signatures<'_>,
    order: &[u32],
    bands: u32,
    rows: u32,
) -> (BTreeSet<(u32, u32)>, u64) {
    let mut buckets = Online::new();
    let (mut pairs, mut num_capped) = (BTreeSet::new(), 0);
    for (position, &row) in order.iter().enumerate() {
        let bytes = signatures.row(row as usize);
        for band in 0..bands {
            let mut placed = false;
            for level in 0..3_u32 {
                let length = signatures.num_slots.min(rows as usize * 2_usize.pow(level));
                let mut key_bytes = Vec::new();
                for i in 0..length {
                    let slot = (band as usize * rows as usize + i) % signatures.num_slots;
                    for byte in 0..signatures.slot_bytes {
                        key_bytes.push(bytes[slot * signatures.slot_bytes + byte]);
                    }
                }
                let key = xxh3_64_with_seed(&key_bytes, u64::from(band * 256 + level));
                let members = buckets.entry((band, level, key)).or_default();
                pairs.extend(members.iter().map(|&member| (position as u32, member)));
                if members.len() < 64 {
                    members.push(position as u32);
                    placed = true;
                    break;
                }
            }
            num_capped += u64::from(!placed);
        }
    }
    (pairs, num_capped)
}

fn listed(pairs: &Pairs) -> Vec<(u32, u32)> {
    pairs
        .later
        .iter()
        .copied()
        .zip(pairs.earlier.iter().copied())
        .collect()
}

fn num_equal(signatures: &Signatures<'_>, a: u32, b: u32) -> u32 {
    let width = signatures.slot_bytes;
    let row = |i: u32| signatures.row(i as usize).chunks_exact(width);
    row(a).zip(row(b)).filter(|(x, y)| x == y).count() as u32
}

fn shuffled(n: usize) -> Vec<u32> {
    let mut order: Vec<u32> = (0..n as u32).collect();
    order.sort_by_key(|&i| mix64(u64::from(i) ^ 0xabc));
    order
}

#[test]
fn same_pairs_as_documents_arriving_one_by_one() {
    // (slots, bytes per slot, bands, rows), including keys that wrap around the end and keys of all slots at every
    // level.
    let shapes = [
        (16, 1, 5, 3),
        (16, 2, 16, 1),
        (12, 4, 3, 4),
        (8, 2, 1, 8),
        (20, 2, 2, 7),
    ];
    for (num_slots, slot_bytes, bands, rows) in shapes {
        for kind in ["random", "narrow", "clusters", "templates", "half", "equal"] {
            let n = 1500;
            let bytes = signatures(kind, n, num_slots, slot_bytes);
            let signatures = Signatures {
                bytes: &bytes,
                num_slots,
                slot_bytes,
            };
            let order = shuffled(n);
            let (expected, num_capped) = online(&signatures, &order, bands, rows);
            let buckets = BandBuckets::build(
                signatures,
                &order,
                bands,
                rows,
                3,
                Run {
                    threads: 2,
                    cancel: &STOP,
                },
            )
            .unwrap();
            let what = format!("{num_slots} {slot_bytes} {bands} {rows} {kind}");
            assert_eq!(buckets.num_capped, num_capped, "{what}");
            let pairs = buckets
                .view()
                .candidates(
                    signatures,
                    &order,
                    &Call {
                        threads: 2,
                        ..Call::of(0..n as u32, &STOP)
                    },
                )
                .unwrap();
            assert!(
                listed(&pairs) == expected.iter().copied().collect::<Vec<_>>(),
                "{what}"
            );
            assert_eq!(pairs.num_considered, expected.len() as u64, "{what}");
        }
    }
}

/// Returns the positions that are not among the first 64 of some first-level bucket, by brute force.
fn late_comers(signatures: &Signatures<'_>, order: &[u32], bands: u32, rows: u32) -> Vec<u32> {
    let width = rows as usize * signatures.slot_bytes;
    let mut found = BTreeSet::new();
    for band in 0..bands as usize {
        let mut num_members: HashMap<&[u8], usize> = HashMap::new();
        for (position, &row) in order.iter().enumerate() {
            let key = &signatures.row(row as usize)[band * width..(band + 1) * width];
            let num = num_members.entry(key).or_default();
            *num += 1;
            if *num > 64 {
                found.insert(position as u32);
            }
        }
    }
    found.into_iter().collect()
}

#[test]
fn the_crowd_is_who_met_a_full_first_level_and_holds_both_of_every_pair_that_one_level_misses() {
    for kind in ["random", "narrow", "clusters", "templates", "half", "equal"] {
        let (n, bands, rows) = (1500, 5, 3);
        let bytes = signatures(kind, n, 16, 1);
        let signatures = Signatures {
            bytes: &bytes,
            num_slots: 16,
            slot_bytes: 1,
        };
        let order = shuffled(n);
        let crowd = late_comers(&signatures, &order, bands, rows);
        let mut found = Vec::new();
        for num_levels in [1, 2, 3] {
            let buckets = BandBuckets::build(
                signatures,
                &order,
                bands,
                rows,
                num_levels,
                Run {
                    threads: 2,
                    cancel: &STOP,
                },
            )
            .unwrap();
            assert_eq!(buckets.crowded(), crowd, "{kind} {num_levels}");
            let pairs = buckets.view().candidates(
                signatures,
                &order,
                &Call {
                    threads: 2,
                    ..Call::of(0..n as u32, &STOP)
                },
            );
            found.push(listed(&pairs.unwrap()));
        }
        let one_level: BTreeSet<_> = found[0].iter().copied().collect();
        let is_crowded = |position: u32| crowd.binary_search(&position).is_ok();
        for later in 0..n as u32 {
            for earlier in 0..later {
                let (a, b) = (order[later as usize], order[earlier as usize]);
                let shares = (0..bands as usize).any(|band| {
                    let key = band * rows as usize..(band + 1) * rows as usize;
                    signatures.row(a as usize)[key.clone()] == signatures.row(b as usize)[key]
                });
                let is_missed = shares && !one_level.contains(&(later, earlier));
                assert!(
                    !is_missed || is_crowded(later) && is_crowded(earlier),
                    "{kind}"
                );
            }
        }
    }
}

#[test]
fn equal_documents_fill_all_levels() {
    let n = 200;
    let bytes = signatures("equal", n, 8, 2);
    let signatures = Signatures {
        bytes: &bytes,
        num_slots: 8,
        slot_bytes: 2,
    };
    let order: Vec<u32> = (0..n as u32).collect();
    let buckets = BandBuckets::build(signatures, &order, 2, 4, 3, Run::alone(&STOP)).unwrap();
    // Three levels hold 192; the 8 later ones are capped in both bands.
    assert_eq!(buckets.num_capped, 16);
    let pairs = buckets
        .view()
        .candidates(
            signatures,
            &order,
            &Call {
                isa: Isa::Plain,
                ..Call::of(0..n as u32, &STOP)
            },
        )
        .unwrap();
    let mut num_earlier = BTreeMap::new();
    for later in &pairs.later {
        *num_earlier.entry(*later).or_insert(0) += 1;
    }
    assert_eq!(num_earlier[&63], 63);
    assert_eq!(num_earlier[&64], 64);
    assert_eq!(num_earlier[&130], 130);
    assert_eq!(num_earlier[&199], 192);
    assert_eq!(buckets.len(), n);
    assert!(buckets.num_bytes() > 0);
}

#[test]
fn ranges_threads_and_instruction_sets_change_nothing() {
    let (n, num_slots, slot_bytes, bands, rows) = (5000, 16, 2, 5, 3);
    let bytes = signatures("half", n, num_slots, slot_bytes);
    let signatures = Signatures {
        bytes: &bytes,
        num_slots,
        slot_bytes,
    };
    let order = shuffled(n);
    let states: Vec<u8> = (0..n).map(|p| [UNDECIDED, KEPT, REMOVED][p % 3]).collect();
    let min_equal = 16;
    let (all, _) = online(&signatures, &order, bands, rows);
    let expected: Vec<(u32, u32)> = all
        .iter()
        .copied()
        .filter(|&(_, earlier)| states[earlier as usize] != REMOVED)
        .filter(|&(later, earlier)| {
            num_equal(&signatures, order[later as usize], order[earlier as usize]) >= min_equal
        })
        .collect();
    assert!(expected.len() > 10_000 && expected.len() < all.len() / 2);
    for isa in Isa::available() {
        for threads in [1, 2, 7] {
            let buckets = BandBuckets::build(
                signatures,
                &order,
                bands,
                rows,
                3,
                Run {
                    threads,
                    cancel: &STOP,
                },
            )
            .unwrap();
            for step in [1, 64, 4096] {
                if step == 1 && threads > 1 {
                    continue;
                }
                let (mut found, mut num_considered) = (Vec::new(), 0);
                for start in (0..n as u32).step_by(step) {
                    let range = start..(start + step as u32).min(n as u32);
                    let pairs = buckets
                        .view()
                        .candidates(
                            signatures,
                            &order,
                            &Call {
                                states: Some(&states),
                                min_equal,
                                isa,
                                threads,
                                ..Call::of(range, &STOP)
                            },
                        )
                        .unwrap();
                    found.extend(listed(&pairs));
                    num_considered += pairs.num_considered;
                }
                assert!(found == expected, "{isa:?} {threads} {step}");
                assert_eq!(num_considered, all.len() as u64);
            }
        }
    }
}

#[test]
fn a_bound_cuts_between_positions_and_changes_nothing() {
    let (n, num_slots, slot_bytes) = (3000, 16, 2);
    let bytes = signatures("half", n, num_slots, slot_bytes);
    let signatures = Signatures {
        bytes: &bytes,
        num_slots,
        slot_bytes,
    };
    let order = shuffled(n);
    let buckets = BandBuckets::build(
        signatures,
        &order,
        5,
        3,
        3,
        Run {
            threads: 2,
            cancel: &STOP,
        },
    )
    .unwrap();
    let end = n as u32;
    let all = buckets
        .view()
        .candidates(
            signatures,
            &order,
            &Call {
                threads: 2,
                ..Call::of(0..end, &STOP)
            },
        )
        .unwrap();
    assert_eq!(all.end, end);
    let most_of_one = all.later.chunk_by(|a, b| a == b).map(<[u32]>::len).max();
    assert!(all.later.len() > 100_000);
    for threads in [1, 3] {
        for max_pairs in [0, 1, 1000, 20_000] {
            let (mut found, mut num_considered, mut low, mut num_calls) = (Vec::new(), 0, 0, 0);
            while low < end {
                let pairs = buckets
                    .view()
                    .candidates(
                        signatures,
                        &order,
                        &Call {
                            max_pairs,
                            threads,
                            ..Call::of(low..end, &STOP)
                        },
                    )
                    .unwrap();
                assert!(pairs.end > low);
                let most = 2 * max_pairs + threads * most_of_one.unwrap();
                assert!(
                    pairs.later.len() <= most,
                    "{} over {most}",
                    pairs.later.len()
                );
                found.extend(listed(&pairs));
                num_considered += pairs.num_considered;
                (low, num_calls) = (pairs.end, num_calls + 1);
            }
            assert!(found == listed(&all), "{threads} {max_pairs}");
            assert_eq!(num_considered, all.num_considered);
            assert!(num_calls >= all.later.len() / (2 * max_pairs + 700));
        }
    }
}

fn refused<T: std::fmt::Debug>(result: Result<T, Error>) -> &'static str {
    match result {
        Err(Error::InvalidParameter { name, .. }) => name,
        other => panic!("not refused: {other:?}"),
    }
}

#[test]
fn misfits_are_refused() {
    let bytes = [0_u8; 24];
    let rows_of = |num_slots, slot_bytes| Signatures {
        bytes: &bytes,
        num_slots,
        slot_bytes,
    };
    let build = |signatures, order: &[u32], bands, rows| {
        BandBuckets::build(signatures, order, bands, rows, 3, Run::alone(&STOP))
    };
    assert_eq!(refused(build(rows_of(4, 3), &[0], 1, 1)), "signatures");
    assert_eq!(refused(build(rows_of(0, 2), &[0], 1, 1)), "signatures");
    assert_eq!(refused(build(rows_of(5, 2), &[0], 1, 1)), "signatures");
    assert_eq!(refused(build(rows_of(4, 2), &[3], 1, 1)), "order");
    assert_eq!(refused(build(rows_of(4, 2), &[0], 2, 3)), "bands");
    assert_eq!(refused(build(rows_of(4, 2), &[0], 0, 3)), "bands");
    let order = [0, 1, 2];
    let buckets = build(rows_of(4, 2), &order, 2, 2).unwrap();
    let ask = |order: &[u32], range, states: Option<&[u8]>| {
        buckets.view().candidates(
            rows_of(4, 2),
            order,
            &Call {
                states,
                isa: Isa::Plain,
                ..Call::of(range, &STOP)
            },
        )
    };
    assert_eq!(refused(ask(&order, 0..4, None)), "range");
    assert_eq!(refused(ask(&order[..2], 0..2, None)), "order");
    assert_eq!(refused(ask(&order, 0..3, Some(&[0]))), "states");
    let other = Signatures {
        bytes: &bytes[..16],
        num_slots: 4,
        slot_bytes: 2,
    };
    let result = buckets.view().candidates(
        other,
        &order,
        &Call {
            isa: Isa::Plain,
            ..Call::of(0..3, &STOP)
        },
    );
    assert_eq!(refused(result), "signatures");
    assert_eq!(ask(&order, 0..3, None).unwrap().later, [1, 2, 2]);
    assert!(build(rows_of(4, 2), &[], 2, 2).unwrap().is_empty());
}

#[test]
fn parts_of_the_keys_change_no_bucket() {
    for kind in ["clusters", "templates", "half", "equal"] {
        let bytes = signatures(kind, 900, 12, 1);
        let signatures = Signatures {
            bytes: &bytes,
            num_slots: 12,
            slot_bytes: 1,
        };
        let order: Vec<u32> = (0..900).rev().collect();
        // Returns what each position looks at, as sets of members, and the number of capped positions.
        let looks = |num_parts: usize| {
            let crowd = Crowd::new(order.len());
            let mut filler = BandFiller::new(signatures, &order, 2, 3, num_parts, &crowd);
            let mut found = BTreeSet::new();
            let (mut num_flushes, mut num_capped) = (0, 0);
            let mut take = |entries: &mut BandEntries| {
                entries.rebase(0, 0);
                for (&looker, &slice) in entries.lookers.iter().zip(&entries.slices) {
                    let (start, length) = ((slice >> 8) as usize, slice as usize & 255);
                    let members: Vec<u32> = if length <= BUCKET_SIZE {
                        entries.members[start..start + length].to_vec()
                    } else {
                        entries.chunks[start..start + length - BUCKET_SIZE]
                            .iter()
                            .flat_map(|&[word, bits]| {
                                (0..64)
                                    .filter(move |i| bits >> i & 1 == 1)
                                    .map(move |i| word as u32 * 64 + i)
                            })
                            .collect()
                    };
                    found.insert((looker, members));
                }
                num_capped += entries.num_capped;
                num_flushes += 1;
                entries.clear();
                Ok::<(), ()>(())
            };
            for band in 0..4 {
                filler
                    .fill(band, &mut BandEntries::default(), &mut take)
                    .unwrap();
            }
            (found, num_capped, num_flushes)
        };
        let whole = looks(1);
        let parts = looks(5);
        assert_eq!((&whole.0, whole.1), (&parts.0, parts.1), "{kind}");
        assert!(!whole.0.is_empty() && parts.2 > whole.2, "{kind}");
    }
}
