//! Times of queries against a stream:
//! `cargo run --release -p likewise-hamming --example bench_stream [queries] [codes] [bits] [within] [threads] [isa]`.
#![allow(clippy::print_stdout, clippy::unwrap_used)]

use std::sync::atomic::AtomicBool;
use std::time::Instant;

use likewise_core::hash::mix64;
use likewise_core::isa::Isa;
use likewise_hamming::Fingerprints;
use likewise_hamming::stream::StreamTables;

static STOP: AtomicBool = AtomicBool::new(false);

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let number =
        |i: usize, default: usize| arguments.get(i).map_or(default, |a| a.parse().unwrap());
    let (num_queries, num_codes) = (number(0, 1_000_000), number(1, 50_000_000));
    let (bits, within, threads) = (number(2, 64) as u32, number(3, 3) as u32, number(4, 1));
    let isa = arguments
        .get(5)
        .map_or(Isa::best(), |name| Isa::from_name(name).unwrap());
    let num_words = bits.div_ceil(64) as usize;
    let queries: Vec<u64> = (0..(num_queries * num_words) as u64).map(mix64).collect();
    // One in 1,000 is a near copy of a query.
    let stream: Vec<u64> = (0..(num_codes * num_words) as u64)
        .map(|i| match i / num_words as u64 % 1000 {
            0 => queries[i as usize % queries.len()] ^ (1 << (i % 61)),
            _ => mix64(i ^ 1 << 60),
        })
        .collect();
    let start = Instant::now();
    let fingerprints = Fingerprints {
        words: &queries,
        bits,
    };
    let tables =
        StreamTables::build(fingerprints, &stream[..4096], within, threads, &STOP).unwrap();
    let build = start.elapsed().as_secs_f64();
    let keys: Vec<(u32, u32)> = tables
        .plan()
        .keys()
        .iter()
        .map(|k| (k.width(), k.radius))
        .collect();
    let start = Instant::now();
    let found = tables
        .search(&stream, 0, usize::MAX, isa, threads, &STOP)
        .unwrap();
    let search = start.elapsed().as_secs_f64();
    println!(
        "{num_queries} queries, {num_codes} codes, {bits} bits within {within}, {isa:?}: keys {keys:?}, {:.1} MB, build {:.3} s, search {:.3} s = {:.1} ns a code a core, {} hits",
        tables.num_bytes() as f64 / 1e6,
        build,
        search,
        search * 1e9 * threads as f64 / num_codes as f64,
        found.hits.len()
    );
}
