//! Work whose instructions are counted: `count_work KERNEL ISA ROUNDS [FILE]`. Prints the number of items per round and
//! their unit.
//!
//! Used by `bench/aarch64.py`, which runs it in an emulator. `FILE` is the text for the kernels `words` and `shingles`.
#![allow(clippy::print_stdout, clippy::unwrap_used)]

use likewise_core::parallel::Run;
use std::hint::black_box;
use std::sync::atomic::AtomicBool;

use likewise_core::bloom::{BitMeasure, BloomJoin, Demand};
use likewise_core::features::{Extractor, FeatureHash, FeatureRules, Weights};
use likewise_core::hash::mix64;
use likewise_core::isa::Isa;
use likewise_core::search::Call;
use likewise_core::sketch::{MinHasher, Scheme, simhash};
use likewise_core::text::Tokens;
use likewise_core::verify::{FeatureSet, FeatureSets, HeldDocuments, Measure};
use likewise_hamming::Fingerprints;
use likewise_hamming::index::{Building, Reach, Segment};
use likewise_hamming::join::{JoinOptions, JoinSide, join};
use likewise_hamming::plan::{Key, SearchPlan};

static STOP: AtomicBool = AtomicBool::new(false);
const NUM_FEATURES: usize = 400;
const NUM_SLOTS: usize = 128;

/// The work of a round, its number of items, and their unit.
type Work = (Box<dyn FnMut()>, usize, &'static str);

fn numbers(len: usize, seed: u64) -> Vec<u64> {
    (0..len as u64).map(|i| mix64(i ^ seed << 32)).collect()
}

fn simhash_work(isa: Isa, is_weighted: bool) -> Work {
    let features = numbers(NUM_FEATURES, 1);
    let weights: Vec<u32> = match is_weighted {
        true => features
            .iter()
            .map(|feature| 2 + (feature % 5) as u32)
            .collect(),
        false => Vec::new(),
    };
    let mut out = [0];
    let round = move || simhash(black_box(&features), &weights, 64, isa, &mut out);
    (Box::new(round), NUM_FEATURES, "feature")
}

fn minhash_work(isa: Isa, num_features: usize) -> Work {
    let features = numbers(num_features, 2);
    let mut hasher = MinHasher::new(NUM_SLOTS as u32, Scheme::Bucket, 0, isa);
    let mut out = vec![0; NUM_SLOTS];
    let round = move || hasher.sketch(black_box(&features), &[], &mut out);
    (Box::new(round), num_features, "feature")
}

/// Pairs of sets that share most of their features, or few of them.
fn verify_work(isa: Isa, is_weighted: bool, num_shared: usize) -> Work {
    let num_sets = 24;
    let mut sets = FeatureSets::new(num_sets);
    for position in 0..num_sets {
        let mut features = numbers(num_shared, 3);
        features.extend(numbers(NUM_FEATURES - num_shared, 100 + position as u64));
        let weights: Vec<u32> = match is_weighted {
            true => features
                .iter()
                .map(|feature| 2 + (feature % 5) as u32)
                .collect(),
            false => Vec::new(),
        };
        sets.insert(position as u32, FeatureSet::new(&features, &weights));
    }
    let (mut later, mut earlier) = (Vec::new(), Vec::new());
    for a in 0..num_sets as u32 {
        later.extend((0..a).map(|_| a));
        earlier.extend(0..a);
    }
    let num_features = 2 * NUM_FEATURES * later.len();
    let round = move || {
        let found = sets.verify_pairs(
            HeldDocuments::default(),
            [&later, &earlier],
            Measure::Jaccard,
            0.0,
            isa,
            Run::alone(&STOP),
        );
        black_box(found.unwrap());
    };
    (Box::new(round), num_features, "feature of either set")
}

fn bloom_work(isa: Isa) -> Work {
    let num_filters = 96;
    let filters = numbers(num_filters * 32, 5);
    let order: Vec<u32> = (0..num_filters as u32).collect();
    let demand = Demand::Bits(BitMeasure::from_name("jaccard").unwrap(), 0.5);
    let join = BloomJoin::new(&filters, 2048, &order, demand).unwrap();
    let round = move || {
        let call = Call {
            range: 0..num_filters as u32,
            states: None,
            max_pairs: usize::MAX,
            min_equal: 0,
            isa,
            threads: 1,
            cancel: &STOP,
        };
        black_box(join.candidates(&call).unwrap());
    };
    (
        Box::new(round),
        num_filters * num_filters,
        "pair of filters of 2,048 bits",
    )
}

/// All-pairs comparisons: of one query, or of many in tiles.
fn scan_work(isa: Isa, num_queries: usize) -> Work {
    let num_codes = 8192;
    let plan = SearchPlan::new(64, 3, Vec::new()).unwrap();
    let queries = numbers(num_queries, 10);
    let round = search_work(isa, numbers(num_codes, 11), queries, plan);
    (
        round,
        num_codes * num_queries,
        "pair of fingerprints of 64 bits",
    )
}

/// A join of queries with other fingerprints.
fn join_work(isa: Isa) -> Work {
    let queries = numbers(20_000, 6);
    let codes = numbers(4096, 7);
    let num_codes = codes.len();
    let round = move || {
        let options = JoinOptions {
            within: 3,
            isa,
            run: Run::alone(&STOP),
        };
        let (left, right) = (
            JoinSide::of(fingerprints(&queries)),
            JoinSide::of(fingerprints(&codes)),
        );
        join(&left, Some(&right), &options, &mut |_| true).unwrap();
    };
    (Box::new(round), num_codes, "fingerprint against 20,000")
}

fn fingerprints(words: &[u64]) -> Fingerprints<'_> {
    Fingerprints { words, bits: 64 }
}

/// Queries of an index: four blocks of 16 bits, one of which matches.
fn index_work(isa: Isa) -> Work {
    let keys = (0..4)
        .map(|i| Key::of_bits(16 * i..16 * (i + 1), 0))
        .collect();
    let plan = SearchPlan::new(64, 3, keys).unwrap();
    let queries = numbers(2048, 9);
    let num_queries = queries.len();
    (
        search_work(isa, numbers(200_000, 8), queries, plan),
        num_queries,
        "query of 200,000 fingerprints",
    )
}

fn search_work(isa: Isa, codes: Vec<u64>, queries: Vec<u64>, plan: SearchPlan) -> Box<dyn FnMut()> {
    let building = Building {
        isa,
        run: Run::alone(&STOP),
        memory_bytes: 1 << 30,
        with_rows: true,
    };
    let segment = Segment::build(fingerprints(&codes), None, plan, building).unwrap();
    Box::new(move || {
        let reach = Reach::new(3, isa, Run::alone(&STOP));
        black_box(segment.search(fingerprints(&queries), reach).unwrap());
    })
}

fn text_work(isa: Isa, tokens: Tokens, shingle: u32) -> Work {
    let path = std::env::args().nth(4).unwrap();
    let text = std::fs::read_to_string(path).unwrap();
    let rules = FeatureRules {
        tokens,
        shingle,
        weights: Weights::None,
        seed: 0,
        hash: FeatureHash::Xxh3,
    };
    let mut extractor = Extractor::new(rules, isa);
    let num_bytes = text.len();
    let round = move || {
        black_box(extractor.occurrences(text.as_str()).0.len());
    };
    (Box::new(round), num_bytes, "byte of text")
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let isa = Isa::from_name(&arguments[1]).unwrap();
    let (mut round, num_items, item) = match arguments[0].as_str() {
        "words" => text_work(isa, Tokens::Auto, 1),
        "shingles" => text_work(isa, Tokens::Auto, 5),
        "simhash" => simhash_work(isa, false),
        "simhash-weighted" => simhash_work(isa, true),
        "minhash-64" => minhash_work(isa, 64),
        "minhash-400" => minhash_work(isa, 400),
        "minhash-4000" => minhash_work(isa, 4000),
        "intersection" => verify_work(isa, false, 360),
        "intersection-few" => verify_work(isa, false, 40),
        "intersection-weighted" => verify_work(isa, true, 360),
        "bloom" => bloom_work(isa),
        "hamming-one" => scan_work(isa, 1),
        "hamming-scan" => scan_work(isa, 16),
        "hamming-join" => join_work(isa),
        "hamming-index" => index_work(isa),
        other => panic!("no kernel {other}"),
    };
    for _ in 0..arguments[2].parse::<usize>().unwrap() {
        round();
    }
    println!("{num_items} {item}");
}
