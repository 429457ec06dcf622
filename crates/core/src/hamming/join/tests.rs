//! Every pair is compared here, one by one, bit for bit; the joins must list the same, each once.

use std::sync::atomic::AtomicBool;

use super::*;
use crate::hamming::distance::Fingerprints;
use crate::hash::mix64;

static STOP: AtomicBool = AtomicBool::new(false);

fn random(a: u64, b: u64) -> u64 {
    mix64(mix64(a.wrapping_add(0x1234_5678)) ^ b.wrapping_mul(0x9e37_79b9_7f4a_7c15))
}

/// Codes of several kinds of skew, bits beyond the width dirty.
fn codes(kind: &str, n: usize, bits: u32, seed: u64) -> Vec<u64> {
    let num_words = bits.div_ceil(64) as u64;
    let mut words = Vec::new();
    for i in 0..n as u64 {
        let start = words.len();
        words.extend((0..num_words).map(|w| match kind {
            "random" => random(seed + w, i),
            "clustered" => random(seed + w, i % 61),
            "templated" => 0x1234_5678_9abc_0000 | random(seed + w, i) & 0xffff,
            "sparse" => 1 << (random(seed + w, i) % 64) | 1 << (random(seed + 7 + w, i) % 64),
            // Half of the codes share all but a few bits, the others are anything.
            _ if i % 2 == 0 => random(seed + w, i),
            _ => random(seed + w, 0) ^ (random(seed + w, i) & 0x0101_0101_0101_0101),
        }));
        if kind == "clustered" {
            for flip in 0..random(seed + 99, i) % 9 {
                let bit = (random(seed + 100 + flip, i) % u64::from(bits)) as usize;
                words[start + bit / 64] ^= 1 << (bit % 64);
            }
        }
    }
    words
}

fn rows_of(words: &[u64], bits: u32) -> Vec<Vec<u64>> {
    let num_words = bits.div_ceil(64) as usize;
    let live = u64::MAX >> (64 * num_words as u32 - bits);
    let mut rows: Vec<Vec<u64>> = words.chunks(num_words).map(<[u64]>::to_vec).collect();
    for row in &mut rows {
        row[num_words - 1] &= live;
    }
    rows
}

fn bits_apart(a: &[u64], b: &[u64]) -> u32 {
    a.iter().zip(b).map(|(a, b)| (a ^ b).count_ones()).sum()
}

fn brute_self(words: &[u64], bits: u32, within: u32) -> Vec<(u32, u32, u16)> {
    let rows = rows_of(words, bits);
    let mut found = Vec::new();
    for left in 0..rows.len() {
        for right in left + 1..rows.len() {
            let distance = bits_apart(&rows[left], &rows[right]);
            if distance <= within {
                found.push((left as u32, right as u32, distance as u16));
            }
        }
    }
    found
}

fn options(within: u32, isa: Isa, threads: usize) -> JoinOptions<'static> {
    JoinOptions {
        within,
        isa,
        threads,
        cancel: &STOP,
    }
}

/// All pairs in the order in which they came.
fn pairs_of(
    join: impl FnOnce(&mut (dyn FnMut(PairBatch) -> bool + Send)) -> Result<(), Error>,
) -> Vec<(u32, u32, u16)> {
    let mut pairs = Vec::new();
    join(&mut |batch: PairBatch| {
        pairs.extend((0..batch.len()).map(|i| (batch.left[i], batch.right[i], batch.distance[i])));
        true
    })
    .unwrap();
    pairs
}

fn self_pairs(words: &[u64], bits: u32, options: &JoinOptions<'_>) -> Vec<(u32, u32, u16)> {
    let side = JoinSide::of(Fingerprints { words, bits });
    let mut pairs = pairs_of(|consumer| join_self(&side, options, consumer));
    pairs.sort_unstable();
    pairs
}

#[test]
fn one_set_lists_what_brute_force_lists() {
    for bits in [32, 64, 96, 128, 256] {
        for kind in ["random", "clustered", "templated", "sparse", "mixed"] {
            let n = 700;
            let words = codes(kind, n, bits, u64::from(bits));
            let everything = brute_self(&words, bits, bits);
            for within in (0..=16).chain([24, 32, bits]) {
                if bits != 64 && ![0, 1, 3, 4, 8, 16, 32, bits].contains(&within) {
                    continue;
                }
                let expected: Vec<_> = everything
                    .iter()
                    .filter(|p| u32::from(p.2) <= within)
                    .copied()
                    .collect();
                for isa in Isa::available() {
                    let found = self_pairs(&words, bits, &options(within, isa, 2));
                    assert!(
                        found == expected,
                        "{bits} {kind} {within} {isa:?}: {} for {}",
                        found.len(),
                        expected.len()
                    );
                }
            }
        }
    }
}
