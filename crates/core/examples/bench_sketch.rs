//! Prints nanoseconds per feature of the sketch kernels, and pairs per second of verification.
//!
//! `cargo run --release -p likewise-core --example bench_sketch [PART...]`, where a part is simhash, minhash,
//! num_equal, verify, build or verify-cold. Only ratios matter: the best of several runs is shown, and other load on
//! the machine disturbs it.

use std::hint::black_box;
use std::sync::atomic::AtomicBool;
use std::time::Instant;

use likewise_core::hash::{GOLDEN, mix64};
use likewise_core::isa::Isa;
use likewise_core::parallel::Run;
use likewise_core::sketch::{MinHasher, Scheme, Signatures, simhash};
use likewise_core::verify::{FeatureSet, FeatureSets, HeldDocuments, Measure};

/// Returns the seconds of the fastest of several runs.
fn best_seconds(mut work: impl FnMut()) -> f64 {
    let mut best = f64::MAX;
    for _ in 0..7 {
        let start = Instant::now();
        work();
        best = best.min(start.elapsed().as_secs_f64());
    }
    best
}

fn random_features(num_features: usize, seed: u64) -> Vec<u64> {
    (0..num_features as u64)
        .map(|i| mix64((i + 1).wrapping_mul(GOLDEN) ^ mix64(seed)))
        .collect()
}

fn bench_simhash(isa: Isa) {
    let features = random_features(400, 1);
    let weights: Vec<u32> = features
        .iter()
        .map(|f| 2 + (f % 7) as u32 * (f % 3 == 0) as u32)
        .collect();
    print!("{:7} simhash ns/feature:", isa.name());
    for bits in [64, 128, 256] {
        for weights in [&[][..], &weights] {
            let mut out = vec![0; bits as usize / 64];
            let seconds = best_seconds(|| {
                for _ in 0..200 {
                    simhash(black_box(&features), weights, bits, isa, &mut out);
                    black_box(&out);
                }
            });
            let kind = if weights.is_empty() { "" } else { " weighted" };
            print!(
                "  {bits}{kind} {:.2}",
                seconds * 1e9 / 200.0 / features.len() as f64
            );
        }
    }
    println!();
}

fn bench_minhash(isa: Isa) {
    for (scheme, sizes) in [
        (
            Scheme::Bucket,
            &[1, 8, 40, 64, 150, 256, 400, 1000, 10_000][..],
        ),
        (Scheme::Classical, &[400]),
    ] {
        print!(
            "{:7} {:9} 128 slots, ns/feature:",
            isa.name(),
            scheme.name()
        );
        for &num_features in sizes {
            let documents: Vec<Vec<u64>> = (0..20)
                .map(|i| random_features(num_features, i as u64))
                .collect();
            let mut hasher = MinHasher::new(128, scheme, 0, isa);
            let mut out = vec![0; 128];
            let rounds = (20_000 / num_features / 20).max(1);
            let seconds = best_seconds(|| {
                for _ in 0..rounds {
                    for document in &documents {
                        hasher.sketch(black_box(document), &[], &mut out);
                        black_box(&out);
                    }
                }
            });
            print!(
                "  n={num_features} {:.2}",
                seconds * 1e9 / (rounds * 20 * num_features) as f64
            );
        }
        println!();
    }
}

fn bench_num_equal(isa: Isa) {
    print!("{:7} num_equal of 128 slots, ns:", isa.name());
    for slot_bytes in [1, 2, 4] {
        let bytes: Vec<u8> = (0..128 * slot_bytes * 64)
            .map(|i| (i * i / 7) as u8)
            .collect();
        let signatures = Signatures {
            bytes: &bytes,
            num_slots: 128,
            slot_bytes,
        };
        let seconds = best_seconds(|| {
            for a in 0..64 {
                for b in 0..64 {
                    black_box(black_box(&signatures).num_equal(a, b, isa));
                }
            }
        });
        print!("  {slot_bytes} bytes {:.2}", seconds * 1e9 / 4096.0);
    }
    println!();
}

fn bench_verify(isa: Isa) {
    let weigh = |feature: u64| 2 + (feature % 7) as u32 * u32::from(feature.is_multiple_of(3));
    for is_weighted in [false, true] {
        let num_sets = 300usize;
        let mut sets = FeatureSets::new(num_sets);
        let shared = random_features(300, 99);
        for position in 0..num_sets {
            // Even positions share 9 of 10 features with each other, odd ones 2 of 3.
            let num_shared = if position % 2 == 0 { 285 } else { 200 };
            let mut features = shared[..num_shared].to_vec();
            features.extend(random_features(300 - num_shared, 1000 + position as u64));
            let weights: Vec<u32> = features.iter().map(|&f| weigh(f)).collect();
            let weights = if is_weighted { &weights[..] } else { &[] };
            sets.insert(position as u32, FeatureSet::new(&features, weights));
        }
        for (kind, parity) in [("matching", 0), ("rejected", 1)] {
            let (mut later, mut earlier) = (Vec::new(), Vec::new());
            for a in (parity..num_sets as u32).step_by(2) {
                for b in (parity..a).step_by(2) {
                    later.push(a);
                    earlier.push(b);
                }
            }
            for measure in [Measure::Jaccard, Measure::Cosine] {
                let threshold = if measure == Measure::Jaccard {
                    0.8
                } else {
                    0.9
                };
                let cancel = AtomicBool::new(false);
                let seconds = best_seconds(|| {
                    let found = sets.verify_pairs(
                        HeldDocuments::default(),
                        [&later, &earlier],
                        measure,
                        threshold,
                        isa,
                        Run::alone(&cancel),
                    );
                    black_box(found.is_ok());
                });
                let weighted = if is_weighted { "weighted " } else { "" };
                println!(
                    "{:7} verify {weighted}{} {kind}, million pairs/s: {:.2}",
                    isa.name(),
                    measure.name(),
                    later.len() as f64 / seconds / 1e6
                );
            }
        }
    }
}

/// Pairs of 50,000 sets, 150 MB: few of them fit in the cache.
fn bench_verify_cold() {
    let num_sets = 50_000u64;
    let mut sets = FeatureSets::new(num_sets as usize);
    for position in 0..num_sets {
        let features = random_features(300, position + 7);
        sets.insert(position as u32, FeatureSet::new(&features, &[]));
    }
    println!(
        "{} bytes a set of 300 features",
        sets.num_bytes() / num_sets as usize
    );
    let mut later: Vec<u32> = (0..300_000).map(|i| (mix64(i) % num_sets) as u32).collect();
    later.sort_unstable();
    let earlier: Vec<u32> = (0..300_000)
        .map(|i| (mix64(!i) % num_sets) as u32)
        .collect();
    for isa in Isa::available() {
        let cancel = AtomicBool::new(false);
        let seconds = best_seconds(|| {
            let found = sets.verify_pairs(
                HeldDocuments::default(),
                [&later, &earlier],
                Measure::Jaccard,
                0.8,
                isa,
                Run::alone(&cancel),
            );
            black_box(found.is_ok());
        });
        println!(
            "{:7} verify jaccard rejected, far apart in memory, million pairs/s: {:.2}",
            isa.name(),
            later.len() as f64 / seconds / 1e6
        );
    }
}

fn bench_build() {
    let features = random_features(400, 5);
    let weights: Vec<u32> = features.iter().map(|f| 2 + (f % 5) as u32).collect();
    for (kind, weights) in [("plain", &[][..]), ("weighted", &weights)] {
        let seconds = best_seconds(|| {
            for _ in 0..100 {
                black_box(FeatureSet::new(black_box(&features), weights));
            }
        });
        println!(
            "FeatureSet::new of 400 features, {kind}: {:.2} us",
            seconds * 1e4
        );
    }
}

fn main() {
    let wanted: Vec<String> = std::env::args().skip(1).collect();
    let is_wanted = |part: &str| wanted.is_empty() || wanted.iter().any(|name| name == part);
    type Part = (&'static str, fn(Isa));
    let parts: [Part; 4] = [
        ("simhash", bench_simhash),
        ("minhash", bench_minhash),
        ("num_equal", bench_num_equal),
        ("verify", bench_verify),
    ];
    for (name, bench) in parts {
        if is_wanted(name) {
            Isa::available().into_iter().for_each(bench);
        }
    }
    if is_wanted("build") {
        bench_build();
    }
    if is_wanted("verify-cold") {
        bench_verify_cold();
    }
}
