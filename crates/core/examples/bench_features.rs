//! Throughput from text to features: `cargo run --release --example bench_features -- FILE...`
//!
//! Each file is cut into documents of about 2.4 kB at line ends. Prints MB/s of one core for every instruction set and
//! path: the best of several passes.

use std::time::Instant;

use likewise_core::features::{Extractor, FeatureHash, FeatureRules, Weights, digest};
use likewise_core::isa::Isa;
use likewise_core::text::{self, Tokens};

const DOCUMENT_BYTES: usize = 2400;
const NUM_PASSES: usize = 7;
/// Documents timed together: well below a time slice of the system.
const GROUP: usize = 50;

fn main() {
    for path in std::env::args().skip(1) {
        let bytes = std::fs::read(&path).unwrap_or_else(|e| panic!("{path}: {e}"));
        let text = String::from_utf8_lossy(&bytes).into_owned();
        let documents = cut(&text);
        println!(
            "{path}: {} documents, {} bytes",
            documents.len(),
            text.len()
        );
        let mut buffer = Vec::new();
        report("normalize", &documents, |document| {
            text::normalize(document, &mut buffer);
            buffer.len()
        });
        for isa in Isa::available() {
            measure(isa, &documents);
        }
    }
}

fn measure(isa: Isa, documents: &[&str]) {
    let cases = [
        (Tokens::Auto, 1, Weights::None),
        (Tokens::Auto, 1, Weights::LogCount),
        (Tokens::Word, 1, Weights::None),
        (Tokens::Word, 5, Weights::None),
        (Tokens::Char, 5, Weights::None),
    ];
    for (tokens, shingle, weights) in cases {
        let rules = FeatureRules {
            tokens,
            shingle,
            weights,
            seed: 0,
            hash: FeatureHash::Xxh3,
        };
        let mut extractor = Extractor::new(rules, isa);
        let name = format!(
            "{:7}{:5}{shingle:2} {:10}",
            isa.name(),
            tokens.name(),
            weights.name()
        );
        report(&format!("{name} occurrences"), documents, |document| {
            extractor.occurrences(document).0.len()
        });
        report(&format!("{name} features"), documents, |document| {
            extractor.features(document).features.len()
        });
        report(&format!("{name} + digest"), documents, |document| {
            let view = extractor.features(document);
            digest(view.features, view.weights)[0] as usize
        });
    }
}

/// Reports the sum of the best times of small groups of documents, so that other load on the machine hardly matters.
fn report(name: &str, documents: &[&str], mut work: impl FnMut(&str) -> usize) {
    let num_bytes: usize = documents.iter().map(|document| document.len()).sum();
    let mut sum = 0usize;
    let mut total_s = 0.0;
    for group in documents.chunks(GROUP) {
        let mut best_s = f64::INFINITY;
        for _ in 0..NUM_PASSES {
            let start = Instant::now();
            let of_group = group
                .iter()
                .fold(0, |sum: usize, document| sum.wrapping_add(work(document)));
            best_s = best_s.min(start.elapsed().as_secs_f64());
            sum = sum.wrapping_add(of_group);
        }
        total_s += best_s;
    }
    println!(
        "{name:42} {:7.0} MB/s  ({sum})",
        num_bytes as f64 / total_s / 1e6
    );
}

fn cut(text: &str) -> Vec<&str> {
    let mut documents = Vec::new();
    let mut start = 0;
    for (at, _) in text.match_indices('\n') {
        if at - start >= DOCUMENT_BYTES {
            documents.push(&text[start..at]);
            start = at;
        }
    }
    documents.push(&text[start..]);
    documents
}
