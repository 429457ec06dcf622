//! The results of table searches are compared with brute force.

use likewise_core::parallel::Run;
use std::sync::atomic::AtomicBool;

use super::search::batch::Pieces;
use super::search::pass::{Hits, Request};
use super::*;
use crate::plan::{Key, SearchPlan};
use crate::{Fingerprints, distance};
use likewise_core::error::Error;
use likewise_core::hash::mix64;
use likewise_core::isa::Isa;

static STOP: AtomicBool = AtomicBool::new(false);

fn building(isa: Isa, with_rows: bool) -> Building<'static> {
    Building {
        isa,
        run: Run {
            threads: 2,
            cancel: &STOP,
        },
        memory_bytes: 1 << 20,
        with_rows,
    }
}

/// `m` blocks of neighboring bits with the least radii that are complete.
fn blocks(bits: u32, within: u32, m: u32) -> SearchPlan {
    let (radius, more) = ((within + 1) / m, (within + 1) % m);
    let keys = (0..m)
        .filter_map(|i| {
            let positions = i * bits / m..(i + 1) * bits / m;
            let radius = (radius + u32::from(i < more)).checked_sub(1)?;
            Some(Key::of_bits(positions, radius))
        })
        .collect();
    SearchPlan::new(bits, within, keys).unwrap()
}

fn codes(kind: &str, n: usize, bits: u32) -> Vec<u64> {
    let num_words = bits.div_ceil(64) as usize;
    let mut words = Vec::new();
    for i in 0..n as u64 {
        let center = if kind == "clustered" { i % 41 } else { i };
        let start = words.len();
        for w in 0..num_words as u64 {
            let live = u64::MAX >> (64 - (bits - 64 * w as u32).min(64));
            let random = mix64(mix64(center * 8 + w) + 1);
            words.push(
                live & if kind == "templated" {
                    random & 0xff_0f0f | 0x7700_0000
                } else {
                    random
                },
            );
        }
        if kind == "clustered" {
            for flip in 0..mix64(i) % 7 {
                let bit = mix64(i * 9 + flip) % u64::from(bits);
                words[start + bit as usize / 64] ^= 1 << (bit % 64);
            }
        }
    }
    words
}

#[test]
fn finds_what_brute_force_finds() {
    let n = 3000;
    for (bits, m) in [
        (64_u32, 4),
        (64, 3),
        (64, 2),
        (64, 1),
        (32, 2),
        (96, 3),
        (128, 4),
        (256, 9),
    ] {
        let num_words = bits.div_ceil(64) as usize;
        for kind in ["random", "clustered", "templated"] {
            let words = codes(kind, n, bits);
            for within in [0, 1, 3, 5] {
                if m == 1 && within > 3 {
                    continue;
                }
                let plan = blocks(bits, within, m);
                let queries = &words[..200 * num_words];
                let mut expected = Matches {
                    offsets: vec![0],
                    ..Matches::default()
                };
                for query in queries.chunks(num_words) {
                    for (row, code) in (0..).zip(words.chunks(num_words)) {
                        let between = distance(query, code);
                        if between <= within {
                            expected.rows.push(row);
                            expected.distances.push(between as u16);
                        }
                    }
                    expected.offsets.push(expected.rows.len() as i64);
                }
                for isa in Isa::available() {
                    let segment = Segment::build(
                        Fingerprints::new(&words, bits),
                        None,
                        plan.clone(),
                        building(isa, true),
                    )
                    .unwrap();
                    assert_eq!(segment.len(), n);
                    let found = segment
                        .search(
                            Fingerprints::new(queries, bits),
                            Reach::new(
                                within,
                                isa,
                                Run {
                                    threads: 2,
                                    cancel: &STOP,
                                },
                            ),
                        )
                        .unwrap();
                    assert!(
                        found.rows == expected.rows
                            && found.distances == expected.distances
                            && found.offsets == expected.offsets,
                        "{bits} {m} {kind} {within} {isa:?}: {} for {}",
                        found.rows.len(),
                        expected.rows.len()
                    );
                }
            }
        }
    }
}

/// A segment of `codes(kind, ...)`, and as many queries, every other one with a bit changed.
fn segment_and_queries(
    kind: &str,
    n: usize,
    bits: u32,
    plan: SearchPlan,
    building: Building<'_>,
) -> (Segment, Vec<u64>) {
    let words = codes(kind, n, bits);
    let num_words = bits.div_ceil(64) as usize;
    let mut queries = words.clone();
    for (i, query) in queries.chunks_mut(num_words).step_by(2).enumerate() {
        let bit = mix64(i as u64) % u64::from(bits);
        query[bit as usize / 64] ^= 1 << (bit % 64);
    }
    // Neighbors in the data should not be neighbors among the queries.
    let mut shuffled: Vec<&[u64]> = queries.chunks(num_words).collect();
    shuffled.sort_by_key(|query| mix64(query[0]));
    let queries = shuffled.concat();
    let fingerprints = Fingerprints::new(&words, bits);
    (
        Segment::build(fingerprints, None, plan, building).unwrap(),
        queries,
    )
}

#[test]
fn sorted_batches_find_what_unsorted_ones_do() {
    for (bits, m) in [
        (64_u32, 4),
        (64, 3),
        (64, 2),
        (32, 2),
        (96, 5),
        (128, 4),
        (256, 9),
    ] {
        for kind in ["random", "clustered", "templated"] {
            for (within, with_rows) in [(0_u32, true), (3, true), (3, false), (10, true)] {
                // Keys of as many blocks as keep the radii small.
                let plan = blocks(bits, within, m.max(within.div_ceil(2)));
                let (segment, queries) =
                    segment_and_queries(kind, 500, bits, plan, building(Isa::best(), with_rows));
                let found = |are_sorted, len, isa, threads: usize| {
                    let queries = Fingerprints::new(&queries, bits);
                    let pieces = Pieces { len, are_sorted };
                    segment
                        .search_in(
                            pieces,
                            queries,
                            Reach::new(
                                within,
                                isa,
                                Run {
                                    threads,
                                    cancel: &STOP,
                                },
                            ),
                        )
                        .unwrap()
                };
                let expected = found(false, 128, Isa::Plain, 1);
                assert!(expected.distances.len() >= 250, "{bits} {kind} {within}");
                for isa in Isa::available() {
                    for (len, threads) in [(500, 1), (230, 2)] {
                        assert!(
                            found(true, len, isa, threads) == expected,
                            "{bits} {kind} {within} {with_rows} {isa:?} {len}"
                        );
                    }
                }
            }
        }
    }
}

#[test]
fn a_crowded_batch_is_searched_in_small_pieces() {
    let plan = blocks(64, 8, 4);
    let (segment, queries) =
        segment_and_queries("clustered", 3000, 64, plan, building(Isa::best(), true));
    let request = Request {
        tables: &segment.tables,
        radii: &segment.radii[8],
        within: 8,
        most_hits: 1000,
        queries: &queries,
    };
    let part = |cancel: &AtomicBool| {
        segment.search_sorted_part(&request, 0..3000, Isa::best(), cancel, &mut Hits::default())
    };
    assert_eq!(part(&STOP).len(), 2);
    let parts = part(&AtomicBool::new(true));
    assert!(matches!(parts.as_slice(), [Err(Error::Canceled)]));
}

#[test]
fn sorting_is_for_large_batches_on_large_tables() {
    let is_sorted = |num_queries, threads, bytes| {
        let pieces = Pieces::choose(num_queries, threads, bytes);
        assert!(pieces.len > 0 && pieces.len <= 1 << 20);
        pieces.are_sorted
    };
    assert!(!is_sorted(1 << 20, 1, 1 << 19));
    assert!(!is_sorted(100, 1, 1 << 30));
    assert!(!is_sorted(0, 2, 1 << 30));
    assert!(is_sorted(1 << 20, 2, 1 << 30));
    assert_eq!(Pieces::choose(3 << 20, 2, 1 << 30).len, (3 << 20) / 4);
    // Enough queries to be close together: 256 bytes of the table each.
    assert_eq!(Pieces::choose(1 << 20, 1, 1 << 26).len, 1 << 18);
}

#[test]
fn the_most_candidates_of_a_query_are_counted() {
    // One table of 8-bit keys: each key has as many codes as its value, and each query meets those of its own key.
    let words: Vec<u64> = (0..256_u64)
        .flat_map(|key| (0..=key).map(move |i| key << 56 | mix64(key * 256 + i) >> 8))
        .collect();
    let plan = SearchPlan::new(64, 0, vec![Key::of_bits(56..64, 0)]).unwrap();
    let fingerprints = Fingerprints::new(&words, 64);
    let set = HammingSet::build(fingerprints, None, plan, building(Isa::best(), true)).unwrap();
    assert_eq!(set.facts().most_candidates, 0);
    for (key, most) in [(7_u64, 8), (200, 201), (7, 201)] {
        let words = [key << 56];
        let query = Fingerprints::new(&words, 64);
        set.search(query, Reach::new(0, Isa::best(), Run::alone(&STOP)))
            .unwrap();
        assert_eq!(set.facts().most_candidates, most);
    }
    set.search(
        fingerprints,
        Reach::new(
            0,
            Isa::best(),
            Run {
                threads: 2,
                cancel: &STOP,
            },
        ),
    )
    .unwrap();
    assert_eq!(set.facts().most_candidates, 256);
}
