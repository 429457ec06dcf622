use super::*;
use crate::distance;
use crate::plan::Key;
use likewise_core::testing::Random;

static STOP: AtomicBool = AtomicBool::new(false);

/// Codes that are uniform, in clusters, or equal in most bits.
fn codes(kind: &str, num: usize, bits: u32, random: &mut Random) -> Vec<u64> {
    let num_words = bits.div_ceil(64) as usize;
    let live = |word: usize| match bits as usize - 64 * word {
        0..64 => u64::MAX >> (64 - bits % 64),
        _ => u64::MAX,
    };
    let mut words: Vec<u64> = Vec::new();
    for row in 0..num {
        let original = (kind != "uniform" && row > 10).then(|| random.below(10));
        for word in 0..num_words {
            let fresh = match kind {
                "alike" => random.next() & 0x0000_1000_00F0_0F00,
                _ => random.next(),
            };
            let value = original.map_or(fresh, |row| words[row * num_words + word]);
            words.push(value & live(word));
        }
        if original.is_some() {
            for _ in 0..random.below(20) {
                let bit = random.below(bits as usize);
                words[row * num_words + bit / 64] ^= 1 << (bit % 64);
            }
        }
    }
    words
}

fn brute_force(
    queries: &[u64],
    stream: &[u64],
    bits: u32,
    within: u32,
    first: u64,
) -> Vec<StreamHit> {
    let num_words = bits.div_ceil(64) as usize;
    let mut hits = Vec::new();
    for (row, code) in stream.chunks(num_words).enumerate() {
        for (query, other) in queries.chunks(num_words).enumerate() {
            let distance = distance(code, other);
            if distance <= within {
                hits.push(StreamHit {
                    row: first + row as u64,
                    query: query as u32,
                    distance,
                });
            }
        }
    }
    hits
}

#[test]
fn every_plan_finds_what_brute_force_finds() {
    let mut random = Random::new(1);
    for bits in [32, 64, 96, 128, 256] {
        for kind in ["uniform", "clusters", "alike"] {
            let all = codes(kind, 400, bits, &mut random);
            let (queries, stream) = all.split_at(100 * bits.div_ceil(64) as usize);
            for within in [0, 1, 3, 6, 10, 24] {
                let expected = brute_force(queries, stream, bits, within, 7);
                let fingerprints = Fingerprints {
                    words: queries,
                    bits,
                };
                let mut plans = choose::plans_tried(bits, within);
                plans.retain(|keys| keys.iter().map(Key::num_probes).sum::<f64>() < 1000.0);
                plans.push(Vec::new());
                for keys in plans {
                    let plan = SearchPlan::new(bits, within, keys).unwrap();
                    let tables =
                        StreamTables::build_for(fingerprints, plan.clone(), 2, &STOP).unwrap();
                    for isa in Isa::available() {
                        let found = tables.search(stream, 7, usize::MAX, isa, 2, &STOP).unwrap();
                        assert_eq!(found.num_rows, 300);
                        assert!(
                            found.hits == expected,
                            "{bits} {kind} {within} {isa:?} {plan:?}: {} for {}",
                            found.hits.len(),
                            expected.len()
                        );
                    }
                }
                let tables = StreamTables::build(fingerprints, stream, within, 1, &STOP).unwrap();
                let found = tables
                    .search(stream, 7, usize::MAX, Isa::best(), 1, &STOP)
                    .unwrap();
                assert!(found.hits == expected, "{bits} {kind} {within}");
            }
        }
    }
}

#[test]
fn a_limit_stops_after_whole_codes_and_the_rest_follows() {
    let mut random = Random::new(3);
    let stream = codes("clusters", 2 * GRAIN + 5000, 64, &mut random);
    let queries = &stream[..300];
    let fingerprints = Fingerprints {
        words: queries,
        bits: 64,
    };
    for (within, num_codes, max_hits) in [(2, stream.len(), 5000), (2, 200, 0), (60, 500, 500)] {
        let stream = &stream[..num_codes];
        let tables = StreamTables::build(fingerprints, stream, within, 2, &STOP).unwrap();
        let all = tables
            .search(stream, 0, usize::MAX, Isa::best(), 2, &STOP)
            .unwrap();
        assert!(all.hits.len() > 100 && all.num_rows == num_codes);
        let (mut hits, mut row, mut num_calls) = (Vec::new(), 0, 0);
        while row < num_codes {
            let part = tables
                .search(&stream[row..], row as u64, max_hits, Isa::best(), 2, &STOP)
                .unwrap();
            assert!(part.num_rows > 0);
            row += part.num_rows;
            num_calls += 1;
            hits.extend(part.hits);
        }
        assert!(hits == all.hits && num_calls > 1, "{within} {max_hits}");
    }
}

#[test]
fn what_does_not_fit_is_refused() {
    let queries = [1, 2, 3];
    let refused = |result: Result<StreamTables, Error>| match result {
        Err(Error::InvalidParameter { name, .. }) => name,
        other => panic!("{other:?}"),
    };
    let build = |words: &[u64], bits, within| {
        StreamTables::build(Fingerprints { words, bits }, &[], within, 1, &STOP)
    };
    assert_eq!(refused(build(&queries, 128, 3)), "fingerprints");
    assert_eq!(refused(build(&queries, 64, 65)), "within");
    assert_eq!(refused(build(&[1 << 40], 32, 3)), "queries");
    assert_eq!(refused(build(&queries, 63, 3)), "bits");
    let plan = SearchPlan::new(128, 3, Vec::new()).unwrap();
    let fingerprints = Fingerprints {
        words: &queries,
        bits: 64,
    };
    assert_eq!(
        refused(StreamTables::build_for(fingerprints, plan, 1, &STOP)),
        "plan"
    );
    let tables = build(&[5], 32, 1).unwrap();
    assert!(
        tables
            .search(&[1 << 33], 0, 9, Isa::Plain, 1, &STOP)
            .is_err()
    );
    let empty = build(&[], 64, 3).unwrap();
    let found = empty.search(&queries, 0, 9, Isa::Plain, 1, &STOP).unwrap();
    assert_eq!((found.num_rows, found.hits.len()), (3, 0));
}

#[test]
fn plain_extraction_takes_the_bits_of_the_mask_in_order() {
    let mut random = Random::new(9);
    for _ in 0..1000 {
        let (word, mask) = (random.next(), random.next() & random.next());
        let mut expected = 0;
        let ones = (0..64).filter(|bit| mask >> bit & 1 == 1);
        for (place, bit) in ones.enumerate() {
            expected |= (word >> bit & 1) << place;
        }
        assert_eq!(kernels::extract_plain(word, mask), expected);
    }
    assert_eq!(kernels::extract_plain(u64::MAX, u64::MAX), u64::MAX);
}
