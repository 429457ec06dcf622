//! Token hashes, shingles, weights and short texts against slow definitions.

use super::token_hash::TokenHasher;
use super::*;
use crate::testing::Random;
use crate::text::{BLOCK, tokens};

const SEEDS: [u64; 4] = [0, 1, 0x9E37_79B9_7F4A_7C15, u64::MAX];

#[test]
fn token_hashes_are_xxh3_for_every_length_seed_and_instruction_set() {
    let mut random = Random::new(4);
    let text: Vec<u8> = (0..1024).map(|_| random.next() as u8).collect();
    for isa in Isa::available() {
        for seed in SEEDS {
            let hasher = TokenHasher::new(seed, isa);
            for len in 1..=300 {
                // Eleven tokens: a whole group of eight and a rest, of mixed lengths and alignments.
                let starts: Vec<u32> = (0..11).map(|i| i * 7).collect();
                let lens = (0..11u32).map(|i| if i % 3 == 1 { 1 + i } else { len });
                let ends: Vec<u32> = starts
                    .iter()
                    .zip(lens)
                    .map(|(start, len)| start + len)
                    .collect();
                let mut hashes = vec![7];
                hasher.hash(&text, &starts, &ends, &mut hashes);
                let mut expected = vec![7];
                let token = |i: usize| &text[starts[i] as usize..ends[i] as usize];
                expected.extend((0..11).map(|i| xxh3_64_with_seed(token(i), seed)));
                assert_eq!(hashes, expected, "{} seed {seed} length {len}", isa.name());
            }
        }
    }
}
