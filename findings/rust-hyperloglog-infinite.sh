#!/usr/bin/env bash
# Claim: The HyperLogLog of the Rust crate probabilistic-collections counts 20,000 texts as infinitely many if it is made for an error of 1%, and 500 if it is made for 10%.
# Package: probabilistic-collections 0.7.0, hyperloglogplus 0.4.1 (Rust)
# Expected: As documented, small counts are by linear counting and large ones by the harmonic mean of the registers, with about the error that the constructor is given.
# Happens: The raw estimate is the inverse of the right one, so it is always small, and every count is by linear counting: m ln(m / empty registers), which is infinite when no register is empty. There are also few registers: their number is 2 to the natural logarithm of (1.04 / error)^2, rounded up, so 1% gets 1,024 where it needs 16,384. The example in the documentation counts three items.
# Seen: infinite from 113 items on for an error of 10%, 639 for 5%, 1,335 for 2%, 8,609 for 1%; below that, 100 sets made for 1%: root mean square of the errors 2.3% with 1,000 texts, 5.2% with 4,000; 20,000 as u64: 18446744073709551615; hyperloglogplus: errors below 2% (2026-11-30)
# Matters: The share of duplicates is a difference of rows and distinct rows, and becomes minus infinity, or 0 where integers saturate: a collection of copies seems to have none. Tests with few documents do not show it. Take hyperloglogplus.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
cargo init -q --vcs none --name finding .
cargo add -q probabilistic-collections@=0.7.0 hyperloglogplus@=0.4.1 2> log.txt
cat > src/main.rs <<'RUST'
use hyperloglogplus::{HyperLogLog as _, HyperLogLogPlus};
use probabilistic_collections::hyperloglog::HyperLogLog;
use probabilistic_collections::SipHasherBuilder;
use std::collections::hash_map::DefaultHasher;
use std::hash::BuildHasherDefault;

/// Return the count of texts, each of which is inserted twice; sets have other hash functions.
fn count(error: f64, set: u64, texts: u64) -> f64 {
    let mut sketch = HyperLogLog::<String>::with_hasher(error, SipHasherBuilder::from_seed(set, 1));
    for number in 0..2 * texts {
        sketch.insert(&format!("text {}", number % texts));
    }
    sketch.len()
}

fn other(texts: u64) -> f64 {
    let mut sketch: HyperLogLogPlus<String, BuildHasherDefault<DefaultHasher>> =
        HyperLogLogPlus::new(14, BuildHasherDefault::default()).unwrap();
    for number in 0..2 * texts {
        sketch.insert(&format!("text {}", number % texts));
    }
    sketch.count()
}

fn main() {
    for error in [0.1, 0.05, 0.02, 0.01] {
        print!("made for an error of {}%:", error * 100.0);
        for texts in [50, 500, 2_000, 5_000, 20_000] {
            print!(" {texts} counted as {:.0},", count(error, 1, texts));
        }
        let mut sketch = HyperLogLog::<u64>::with_hasher(error, SipHasherBuilder::from_seed(1, 1));
        let mut items = 0;
        while sketch.len().is_finite() {
            sketch.insert(&items);
            items += 1;
        }
        println!(" infinite with {items}");
    }
    for (error, texts) in [(0.01, 1_000), (0.01, 4_000), (0.1, 100)] {
        let errors: Vec<f64> = (0..100).map(|set| count(error, set, texts) / texts as f64 - 1.0).collect();
        let square = errors.iter().map(|error| error * error).sum::<f64>() / 100.0;
        let infinite = errors.iter().filter(|error| error.is_infinite()).count();
        println!("100 sets of {texts}, made for {error}: root mean square {:.3}, infinite {infinite}", square.sqrt());
    }
    let distinct = count(0.01, 1, 20_000);
    println!("20,000 texts as u64: {}", distinct as u64);
    println!("copies among 40,000 rows of them: {}, in integers {}", 40_000.0 - distinct, 40_000_u64.saturating_sub(distinct as u64));
    for texts in [500, 20_000, 200_000] {
        let error = (other(texts) / texts as f64 - 1.0).abs();
        println!("hyperloglogplus, {texts} texts: error below 2%: {}", error < 0.02);
    }
}
RUST
cargo run -q --release | tee seen.txt
diff - seen.txt <<'SEEN'
made for an error of 10%: 50 counted as 44, 500 counted as inf, 2000 counted as inf, 5000 counted as inf, 20000 counted as inf, infinite with 113
made for an error of 5%: 50 counted as 51, 500 counted as 444, 2000 counted as inf, 5000 counted as inf, 20000 counted as inf, infinite with 639
made for an error of 2%: 50 counted as 52, 500 counted as 502, 2000 counted as inf, 5000 counted as inf, 20000 counted as inf, infinite with 1335
made for an error of 1%: 50 counted as 50, 500 counted as 510, 2000 counted as 1974, 5000 counted as 5105, 20000 counted as inf, infinite with 8609
100 sets of 1000, made for 0.01: root mean square 0.023, infinite 0
100 sets of 4000, made for 0.01: root mean square 0.052, infinite 0
100 sets of 100, made for 0.1: root mean square inf, infinite 30
20,000 texts as u64: 18446744073709551615
copies among 40,000 rows of them: -inf, in integers 0
hyperloglogplus, 500 texts: error below 2%: true
hyperloglogplus, 20000 texts: error below 2%: true
hyperloglogplus, 200000 texts: error below 2%: true
SEEN
