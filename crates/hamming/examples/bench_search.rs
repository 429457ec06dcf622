//! Times of the candidate searches on synthetic data:
//! `cargo run --release -p likewise-hamming --example bench_search [threads] [isa]`.
#![allow(clippy::print_stdout, clippy::unwrap_used)]

use std::sync::atomic::AtomicBool;
use std::time::Instant;

use likewise_core::bands::{BandBuckets, min_equal_slots};
use likewise_core::groups::Leaders;
use likewise_core::hash::mix64;
use likewise_core::isa::Isa;
use likewise_core::sketch::Signatures;
use likewise_hamming::{Fingerprints, HammingTables, Strategy};

/// Positions requested per call, as in the batch pipeline.
const STEP: usize = 4096;

static STOP: AtomicBool = AtomicBool::new(false);

fn ranges(n: usize) -> impl Iterator<Item = std::ops::Range<u32>> {
    (0..n)
        .step_by(STEP)
        .map(move |start| start as u32..(start + STEP).min(n) as u32)
}

/// Codes that are uniform in the bits `live` of each word; one in a hundred is a near copy of another.
fn codes(n: usize, num_words: usize, live: u64) -> Vec<u64> {
    let mut words: Vec<u64> = (0..(n * num_words) as u64)
        .map(|i| mix64(i) & live)
        .collect();
    for copy in (0..n).step_by(100).skip(1) {
        let original = mix64(copy as u64) as usize % copy;
        for w in 0..num_words {
            words[copy * num_words + w] = words[original * num_words + w];
        }
        words[copy * num_words] ^= 1 << (copy / 100 % 64);
    }
    words
}

fn bench_hamming(n: usize, bits: u32, within: u32, strategy: Strategy, threads: usize, isa: Isa) {
    let words = codes(n, bits.div_ceil(64) as usize, u64::MAX);
    bench_codes("uniform", &words, bits, within, strategy, threads, isa);
}

fn bench_codes(
    name: &str,
    words: &[u64],
    bits: u32,
    within: u32,
    strategy: Strategy,
    threads: usize,
    isa: Isa,
) {
    let n = words.len() / bits.div_ceil(64) as usize;
    let order: Vec<u32> = (0..n as u32).collect();
    let fingerprints = Fingerprints { words, bits };
    let start = Instant::now();
    let tables =
        HammingTables::build_for(strategy, fingerprints, &order, within, threads, &STOP).unwrap();
    let build = start.elapsed().as_secs_f64();
    let num_pairs: usize = ranges(n)
        .map(|range| {
            let pairs = tables.candidates(range, None, isa, threads, &STOP).unwrap();
            pairs.later.len()
        })
        .sum();
    let total = start.elapsed().as_secs_f64();
    println!(
        "{name} n={n} bits={bits} k={within} {:?}: build {:.1} ms, search {:.1} ms = {:.3} us a code, {:.2} ns a pair of codes, {num_pairs} found",
        tables.strategy(),
        build * 1e3,
        (total - build) * 1e3,
        (total - build) * 1e6 / n as f64,
        (total - build) * 1e9 / (n as f64 * n as f64 / 2.0),
    );
}

/// Half of the documents belong to `num_templates` templates, with `changed` percent of their slots changed.
fn bench_bands(
    n: usize,
    num_templates: u64,
    changed: u64,
    decided: bool,
    threads: usize,
    isa: Isa,
) {
    let (num_slots, slot_bytes, bands, rows) = (128, 2, 18, 7);
    let mut bytes = Vec::with_capacity(n * num_slots * slot_bytes);
    for row in 0..n as u64 {
        for slot in 0..num_slots as u64 {
            let own = mix64(row << 8 | slot);
            let templated = num_templates > 0 && row % 2 == 0 && own % 100 >= changed;
            let value = if templated {
                mix64((row / 2 % num_templates) << 8 | slot | 1 << 60)
            } else {
                own >> 8
            };
            bytes.extend_from_slice(&(value as u16).to_le_bytes());
        }
    }
    let signatures = Signatures {
        bytes: &bytes,
        num_slots,
        slot_bytes,
    };
    let order: Vec<u32> = (0..n as u32).collect();
    let start = Instant::now();
    let buckets = BandBuckets::build(signatures, &order, bands, rows, 3, threads, &STOP).unwrap();
    let build = start.elapsed().as_secs_f64();
    let min_equal = min_equal_slots(num_slots as u32, 0.8);
    let mut leaders = Leaders::new(n);
    let (mut considered, mut kept) = (0, 0);
    for range in ranges(n) {
        let states = decided.then_some(&leaders.states[..]);
        let pairs = buckets
            .candidates(
                signatures,
                &order,
                range.clone(),
                states,
                min_equal,
                isa,
                threads,
                &STOP,
            )
            .unwrap();
        considered += pairs.num_considered;
        kept += pairs.later.len();
        if decided {
            let similarity = vec![0.9; pairs.later.len()];
            leaders
                .decide(range, &pairs.later, &pairs.earlier, &similarity, &[])
                .unwrap();
        }
    }
    let search = start.elapsed().as_secs_f64() - build;
    println!(
        "bands n={n} templates={num_templates} changed={changed}% decided={decided}: build {:.1} ms, search {:.1} ms, {:.1} MB, capped {}, \
         considered {considered} = {:.2} ns each, listed {kept}",
        build * 1e3,
        search * 1e3,
        buckets.num_bytes() as f64 / 1e6,
        buckets.num_capped(),
        search * 1e9 / considered.max(1) as f64,
    );
}

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    let threads = arguments.get(1).map_or(1, |text| text.parse().unwrap());
    let isa = arguments
        .get(2)
        .map_or(Isa::best(), |name| Isa::from_name(name).unwrap());
    let wanted = |part: &str| arguments.get(3).is_none_or(|name| name == part);
    println!("threads {threads}, {}", isa.name());
    if wanted("join") {
        bench_hamming(100_000, 64, 3, Strategy::Cheapest, threads, isa);
        bench_hamming(1_000_000, 64, 3, Strategy::Cheapest, threads, isa);
    }
    if wanted("wide") {
        bench_hamming(100_000, 64, 6, Strategy::Cheapest, threads, isa);
        bench_hamming(100_000, 64, 10, Strategy::Cheapest, threads, isa);
        bench_hamming(100_000, 128, 12, Strategy::Cheapest, threads, isa);
    }
    if wanted("scan") {
        bench_hamming(50_000, 64, 3, Strategy::Scan, threads, isa);
        bench_hamming(30_000, 128, 24, Strategy::Scan, threads, isa);
        bench_hamming(20_000, 256, 24, Strategy::Scan, threads, isa);
    }
    if wanted("skewed") {
        // Two of four blocks hold one value; then three of four, with the maximum number of codes.
        let half = codes(1_000_000, 1, 0xffff_ffff);
        bench_codes("two blocks", &half, 64, 3, Strategy::Cheapest, threads, isa);
        let quarter: Vec<u64> = (0..1 << 16).collect();
        bench_codes(
            "one block",
            &quarter,
            64,
            3,
            Strategy::Cheapest,
            threads,
            isa,
        );
    }
    if wanted("bands") {
        for decided in [true, false] {
            bench_bands(100_000, 0, 0, decided, threads, isa);
            bench_bands(100_000, 5, 1, decided, threads, isa);
            bench_bands(100_000, 5, 10, decided, threads, isa);
        }
        bench_bands(100_000, 10_000, 5, true, threads, isa);
    }
}
