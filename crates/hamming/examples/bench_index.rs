//! Builds and searches Hamming tables on uniform codes and prints times:
//! `bench_index N WITHIN KEYS [QUERIES [THREADS]]`.

use likewise_core::parallel::Run;
use std::sync::atomic::AtomicBool;
use std::time::Instant;

use likewise_core::hash::mix64;
use likewise_core::isa::Isa;
use likewise_hamming::Fingerprints;
use likewise_hamming::index::{Building, Reach, Segment};
use likewise_hamming::plan::{Key, SearchPlan};

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    let number = |i: usize, default: f64| {
        arguments
            .get(i)
            .and_then(|a| a.parse::<f64>().ok())
            .unwrap_or(default)
    };
    let n = number(1, 1e6) as usize;
    let within = number(2, 3.0) as u32;
    let m = number(3, 4.0) as u32;
    let num_queries = number(4, 1e6) as usize;
    let threads = number(5, 1.0) as usize;
    let with_rows = number(6, 1.0) > 0.0;
    let words: Vec<u64> = (0..n as u64).map(|i| mix64(i + 1)).collect();
    let mut queries: Vec<u64> = (0..num_queries as u64)
        .map(|i| mix64(i + (1 << 40)))
        .collect();
    for (i, query) in queries.iter_mut().enumerate().step_by(10) {
        *query = words[mix64(i as u64) as usize % n] ^ 1 << (i % 64);
    }
    let (radius, more) = ((within + 1) / m, (within + 1) % m);
    let keys = (0..m)
        .filter_map(|i| {
            let radius = (radius + u32::from(i < more)).checked_sub(1)?;
            Some(Key::of_bits(i * 64 / m..(i + 1) * 64 / m, radius))
        })
        .collect();
    let plan = SearchPlan::new(64, within, keys).unwrap();
    let stop = AtomicBool::new(false);
    let isa = Isa::best();
    let start = Instant::now();
    let segment = Segment::build(
        Fingerprints::new(&words, 64),
        None,
        plan,
        Building {
            isa,
            run: Run {
                threads: 2,
                cancel: &stop,
            },
            memory_bytes: 4 << 30,
            with_rows,
        },
    )
    .unwrap();
    let build_s = start.elapsed().as_secs_f64();
    let (table_bytes, row_bytes) = segment.num_bytes();
    println!(
        "n {n} within {within} keys {m}: build {build_s:.2} s; {:.2} + {:.2} bytes a fingerprint",
        table_bytes as f64 / n as f64,
        row_bytes as f64 / n as f64
    );
    for _ in 0..3 {
        let start = Instant::now();
        let found = segment
            .search(
                Fingerprints::new(&queries, 64),
                Reach::new(
                    within,
                    isa,
                    Run {
                        threads,
                        cancel: &stop,
                    },
                ),
            )
            .unwrap();
        let seconds = start.elapsed().as_secs_f64();
        println!(
            "  {:.0} queries/s, {:.3} us; {} matches, {:.1} candidates a query",
            num_queries as f64 / seconds,
            seconds * 1e6 / num_queries as f64,
            found.distances.len(),
            found.num_candidates as f64 / num_queries as f64
        );
    }
    let mut times: Vec<f64> = queries
        .iter()
        .take(20_000)
        .map(|query| {
            let start = Instant::now();
            let one = std::slice::from_ref(query);
            segment
                .search(
                    Fingerprints::new(one, 64),
                    Reach::new(within, isa, Run::alone(&stop)),
                )
                .unwrap();
            start.elapsed().as_secs_f64() * 1e6
        })
        .collect();
    times.sort_by(f64::total_cmp);
    println!(
        "  one at a time: p50 {:.2} us, p99 {:.2} us",
        times[times.len() / 2],
        times[times.len() * 99 / 100]
    );
}
