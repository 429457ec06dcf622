//! What the tables find is compared with what one comparison after the other finds.

use std::sync::atomic::AtomicBool;

use super::super::plan::{Key, SearchPlan};
use super::super::{Fingerprints, distance};
use super::*;
use crate::hash::mix64;
use crate::isa::Isa;

static STOP: AtomicBool = AtomicBool::new(false);

fn building(isa: Isa, with_rows: bool) -> Building<'static> {
    Building {
        isa,
        threads: 2,
        memory_bytes: 1 << 20,
        with_rows,
        cancel: &STOP,
    }
}

/// `m` blocks of neighbouring bits with the least radii that are complete.
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
        let centre = if kind == "clustered" { i % 41 } else { i };
        let start = words.len();
        for w in 0..num_words as u64 {
            let live = u64::MAX >> (64 - (bits - 64 * w as u32).min(64));
            let random = mix64(mix64(centre * 8 + w) + 1);
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
                        Fingerprints {
                            words: &words,
                            bits,
                        },
                        None,
                        plan.clone(),
                        building(isa, true),
                    )
                    .unwrap();
                    assert_eq!(segment.len(), n);
                    let found = segment
                        .search(
                            Fingerprints {
                                words: queries,
                                bits,
                            },
                            within,
                            isa,
                            2,
                            &STOP,
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
