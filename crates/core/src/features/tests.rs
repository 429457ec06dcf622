//! Token hashes, shingles, weights and short texts compared with slow definitions.

use super::*;
use crate::hash::SHINGLE_MULTIPLIER;
use crate::testing::Random;
use crate::text::tokens;

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

#[test]
fn token_hashes_are_xxh3_for_any_number_of_tokens() {
    let mut random = Random::new(5);
    let text: Vec<u8> = (0..1024).map(|_| random.next() as u8).collect();
    for isa in Isa::available() {
        let hasher = TokenHasher::new(3, isa);
        for num_tokens in [0, 7, 255, 256, 257, 600] {
            // All long, or of mixed lengths.
            for least in [9, 1] {
                let starts: Vec<u32> = (0..num_tokens).map(|i| i as u32 * 5 % 900).collect();
                let end = |start: &u32| start + least + (random.next() % 12) as u32;
                let ends: Vec<u32> = starts.iter().map(end).collect();
                let mut hashes = Vec::new();
                hasher.hash(&text, &starts, &ends, &mut hashes);
                let token = |i: usize| &text[starts[i] as usize..ends[i] as usize];
                let expected: Vec<u64> = (0..num_tokens)
                    .map(|i| xxh3_64_with_seed(token(i), 3))
                    .collect();
                assert_eq!(hashes, expected, "{} {num_tokens} {least}", isa.name());
            }
        }
    }
}

fn rules(tokens: Tokens, shingle: u32, weights: Weights, seed: u64) -> FeatureRules {
    FeatureRules {
        tokens,
        shingle,
        weights,
        seed,
        hash: FeatureHash::Xxh3,
    }
}

/// The features of a text by the definitions: each feature and how many times it occurs, in order of first occurrence.
fn slow_features(text: &str, rules: FeatureRules) -> (Vec<u64>, Vec<u32>, Shape) {
    let words: Vec<u64> = tokens(text, rules.tokens)
        .iter()
        .map(|token| xxh3_64_with_seed(token.as_bytes(), rules.seed))
        .collect();
    let polynomial = |hashes: &[u64]| {
        mix64(hashes.iter().fold(0, |sum: u64, &t| {
            sum.wrapping_mul(SHINGLE_MULTIPLIER).wrapping_add(t)
        }))
    };
    let width = rules.shingle as usize;
    let (occurrences, shape) = if words.is_empty() {
        let mut normalized = Vec::new();
        text::normalize(text, &mut normalized);
        if normalized.is_empty() {
            (Vec::new(), Shape::Empty)
        } else {
            (
                vec![mix64(
                    xxh3_64_with_seed(&normalized, rules.seed) ^ 0x6E6F_746F_6B65_6E73,
                )],
                Shape::Short,
            )
        }
    } else if words.len() < width {
        (vec![polynomial(&words)], Shape::Short)
    } else if width == 1 {
        (words, Shape::Full)
    } else {
        (words.windows(width).map(polynomial).collect(), Shape::Full)
    };
    let mut features: Vec<u64> = Vec::new();
    let mut counts: Vec<u32> = Vec::new();
    for feature in occurrences {
        match features.iter().position(|&known| known == feature) {
            Some(i) => counts[i] += 1,
            None => {
                features.push(feature);
                counts.push(1);
            }
        }
    }
    (features, counts, shape)
}

#[test]
fn features_of_mixed_texts_are_those_of_the_definitions_by_every_instruction_set() {
    let mut random = Random::new(5);
    for round in 0..4_000 {
        let text = random.text(if round % 10 == 0 { 400 } else { 40 });
        for tokens in [Tokens::Word, Tokens::Auto, Tokens::Char] {
            let rules = rules(
                tokens,
                [1, 2, 5, 64][random.below(4)],
                Weights::Count,
                SEEDS[random.below(4)],
            );
            let (features, counts, shape) = slow_features(&text, rules);
            for isa in Isa::available() {
                let mut extractor = Extractor::new(rules, isa);
                let view = extractor.features(&text);
                assert_eq!(
                    (view.features, view.weights),
                    (&features[..], &counts[..]),
                    "{} {text:?} {rules:?}",
                    isa.name()
                );
                assert_eq!(view.shape, shape);
            }
        }
    }
}

#[test]
fn every_length_and_alignment_gives_the_same_features() {
    let mut random = Random::new(6);
    for len in 0..=257 {
        let mut text: String = (0..len + 70)
            .map(|_| char::from(b"ab1_.,:' -\nZ"[random.below(12)]))
            .collect();
        if len % 3 == 0 {
            text.insert_str(len / 2, ["é", "“", "漢字漢字", "\u{301}"][random.below(4)]);
        }
        for start in 0..=64.min(text.len()) {
            let Some(part) = text.get(start..(start + len).min(text.len())) else {
                continue;
            };
            for tokens in [Tokens::Word, Tokens::Char] {
                let rules = rules(tokens, 1, Weights::None, 0);
                let expected: Vec<u64> = text::tokens(part, tokens)
                    .iter()
                    .map(|token| xxh3_64_with_seed(token.as_bytes(), 0))
                    .collect();
                for isa in Isa::available() {
                    let mut extractor = Extractor::new(rules, isa);
                    let (occurrences, shape) = extractor.occurrences(part);
                    if !expected.is_empty() {
                        assert_eq!(
                            (occurrences, shape),
                            (&expected[..], Shape::Full),
                            "{} {part:?}",
                            isa.name()
                        );
                    }
                }
            }
        }
    }
}

#[test]
fn short_and_empty_texts() {
    for isa in Isa::available() {
        let mut extractor = Extractor::new(rules(Tokens::Auto, 3, Weights::None, 0), isa);
        assert_eq!(
            extractor.occurrences(" \n\u{200B} "),
            (&[][..], Shape::Empty)
        );
        let cat = mix64(xxh3_64_with_seed(b"cat", 0));
        assert_eq!(extractor.occurrences("Cat!"), (&[cat][..], Shape::Short));
        let punctuation = mix64(xxh3_64_with_seed(b"! ?", 0) ^ 0x6E6F_746F_6B65_6E73);
        assert_eq!(
            extractor.occurrences(" !\t\t？ "),
            (&[punctuation][..], Shape::Short)
        );
        assert_eq!(extractor.occurrences("one two three").1, Shape::Full);
        let (features, _) = extractor.occurrences("__");
        assert_eq!(
            features,
            [mix64(xxh3_64_with_seed(b"__", 0) ^ 0x6E6F_746F_6B65_6E73)]
        );
        assert_eq!(extractor.features("").features, [0u64; 0]);
        let mut single = Extractor::new(rules(Tokens::Auto, 1, Weights::None, 0), isa);
        assert_eq!(
            single.occurrences("cat"),
            (&[xxh3_64_with_seed(b"cat", 0)][..], Shape::Full)
        );
    }
}

#[test]
fn weights_follow_the_counts() {
    let weights: Vec<u32> = (1..=15).map(log_count_weight).collect();
    assert_eq!(weights, [2, 3, 4, 5, 5, 6, 6, 6, 7, 7, 7, 7, 8, 8, 8]);
    for count in 1..100_000u32 {
        let exact = (2.0 * libm::log2(1.0 + f64::from(count))).round().min(15.0);
        assert_eq!(log_count_weight(count), exact as u32, "{count}");
    }
    assert_eq!(log_count_weight(u32::MAX), 15);
    let text = "b a b c b a";
    let hashes = [b"b", b"a", b"c"].map(|token| xxh3_64_with_seed(token, 0));
    let expected: [(Weights, &[u32]); 3] = [
        (Weights::None, &[]),
        (Weights::Count, &[3, 2, 1]),
        (Weights::LogCount, &[4, 3, 2]),
    ];
    for (weights, expected) in expected {
        let mut extractor = Extractor::new(rules(Tokens::Word, 1, weights, 0), Isa::Plain);
        let view = extractor.features(text);
        assert_eq!((view.features, view.weights), (&hashes[..], expected));
    }
}

#[test]
fn a_digest_knows_weights_and_no_order() {
    let features = [5, 7, u64::MAX];
    assert_eq!(digest(&features, &[]), digest(&features, &[1, 1, 1]));
    assert_eq!(
        digest(&features, &[1, 2, 3]),
        digest(&[7, u64::MAX, 5], &[2, 3, 1])
    );
    assert_ne!(digest(&features, &[1, 2, 3]), digest(&features, &[2, 1, 3]));
    assert_eq!(digest(&[5], &[2]), digest(&[5, 5], &[]));
    assert_eq!(digest(&[], &[]), [0, 0]);
    let one = [
        mix64(5 ^ 0x243F_6A88_85A3_08D3),
        mix64(5 + 0x1319_8A2E_0370_7344),
    ];
    assert_eq!(digest(&[5], &[]), one);
}

#[test]
fn extreme_texts_take_time_in_proportion() {
    // Quadratic work on one of these would take hours.
    const NUM_BYTES: usize = 2_000_000;
    let marks = "\u{301}\u{323}".repeat(NUM_BYTES / 4);
    let texts = [
        marks.clone(),
        format!("a{marks}b"),
        "\u{FDFA}".repeat(NUM_BYTES / 10),
        "x".repeat(NUM_BYTES),
        "_".repeat(NUM_BYTES),
        "a.".repeat(NUM_BYTES / 2),
        format!("é{}é", "a".repeat(NUM_BYTES)),
        "aé ".repeat(NUM_BYTES / 4),
        format!("{}é", " é".repeat(NUM_BYTES / 3)),
        " \u{93E}".repeat(NUM_BYTES / 4),
        format!("{}\u{93E}", " \n".repeat(NUM_BYTES / 2)),
        "\0".repeat(NUM_BYTES),
        "\u{1161}".repeat(NUM_BYTES / 3),
        "漢".repeat(NUM_BYTES / 3),
        "\u{94D}\u{93C}".repeat(NUM_BYTES / 6),
    ];
    for text in &texts {
        let rules = rules(Tokens::Auto, 2, Weights::LogCount, 0);
        let results: Vec<_> = Isa::available()
            .into_iter()
            .map(|isa| {
                let mut extractor = Extractor::new(rules, isa);
                let view = extractor.features(text);
                (digest(view.features, view.weights), view.shape)
            })
            .collect();
        assert!(results.iter().all(|result| *result == results[0]));
    }
}
