//! Tests of tokens by rules other than the default ones.

use std::sync::Arc;

use super::*;
use crate::text::{
    Chunks, Fold, OwnTokens, StopWords, begin_own_tokens, push_own_token, push_text_without_tokens,
    tokens_by,
};

fn rules(tokens: Tokens, shingle: u32, weights: Weights) -> FeatureRules {
    FeatureRules {
        tokens,
        shingle,
        weights,
        seed: 7,
        hash: FeatureHash::Xxh3,
    }
}

fn hashes(tokens: &[Vec<u8>]) -> Vec<u64> {
    tokens
        .iter()
        .map(|token| xxh3_64_with_seed(token, 7))
        .collect()
}

const PAGE: &str = "<p>Don't panic, <b>J\u{f6}rg</b>!</p><script>no</script><p>\u{6211}\u{611b}\u{5317}\u{4eac}\u{5929}\u{5b89}\u{9580}, wait: 12,5 km.\n\
    \u{30ab}\u{30bf} A rather long sentence, of more than sixteen bytes a word: internationalisation. Next";

#[test]
fn features_are_the_hashes_of_the_tokens() {
    let folds = [
        Fold::default(),
        Fold::from_names(Fold::NAMES).unwrap_or_default(),
    ];
    for tokens in Tokens::ALL
        .into_iter()
        .filter(|&tokens| tokens != Tokens::User)
    {
        for (is_html, fold) in [false, true].into_iter().zip(folds) {
            let text_rules = TextRules {
                is_html,
                fold,
                chunks: Chunks::Fixed(16),
                ..TextRules::default()
            };
            let expected = hashes(&tokens_by(Document::Text(PAGE), tokens, &text_rules));
            assert!(!expected.is_empty(), "{tokens:?}");
            for isa in Isa::available() {
                let mut extractor = Extractor::new(rules(tokens, 1, Weights::None), isa)
                    .with_text_rules(text_rules.clone());
                assert_eq!(
                    extractor.occurrences(PAGE),
                    (&expected[..], Shape::Full),
                    "{tokens:?}"
                );
            }
        }
    }
}

#[test]
fn the_general_path_cuts_as_the_fast_one() {
    let mut random = crate::testing::Random::new(23);
    for _ in 0..2000 {
        let text = random.text(60);
        for tokens in [Tokens::Auto, Tokens::Word, Tokens::Char] {
            let general = hashes(&tokens_by(
                Document::Text(&text),
                tokens,
                &TextRules::default(),
            ));
            let mut extractor = Extractor::new(rules(tokens, 1, Weights::None), Isa::best());
            let (fast, shape) = extractor.occurrences(&text);
            if shape == Shape::Full {
                assert_eq!(fast, general, "{text:?}");
            } else {
                assert!(general.is_empty());
            }
        }
    }
}

#[test]
fn bytes_are_windows_and_need_no_text() {
    let mut extractor = Extractor::new(rules(Tokens::Bytes, 3, Weights::None), Isa::best());
    let (found, shape) = extractor.occurrences(Document::Bytes(b"\xff\0\xff\0\xff"));
    assert_eq!((found.len(), shape), (3, Shape::Full));
    assert_eq!(found[0], found[2]);
    assert_ne!(found[0], found[1]);
    assert_eq!(
        extractor.occurrences(Document::Bytes(b"ab")).1,
        Shape::Short
    );
    assert_eq!(
        extractor.occurrences(Document::Bytes(b"")),
        (&[][..], Shape::Empty)
    );
    let of_text = extractor.occurrences("\u{e9}t\u{e9}").0.to_vec();
    assert_eq!(
        extractor
            .occurrences(Document::Bytes("\u{e9}t\u{e9}".as_bytes()))
            .0,
        of_text
    );
}

#[test]
fn what_cannot_be_cut_is_empty() {
    let mut words = Extractor::new(rules(Tokens::Auto, 1, Weights::None), Isa::best());
    assert_eq!(words.occurrences(Document::Bytes(b"cat")).1, Shape::Empty);
    let mut user = Extractor::new(rules(Tokens::User, 1, Weights::None), Isa::best());
    assert_eq!(user.occurrences("cat").1, Shape::Empty);
}

#[test]
fn a_text_without_tokens_of_the_user_goes_by_its_normalized_text() {
    for weights in [Weights::None, Weights::LogCount, Weights::Own] {
        let mut user = Extractor::new(rules(Tokens::User, 2, weights), Isa::best());
        let mut feature = |text: &str| {
            let mut encoded = own(&[]);
            push_text_without_tokens(text, &mut encoded);
            let view = user.features(Document::Tokens(OwnTokens::new(&encoded)));
            (view.features.to_vec(), view.shape)
        };
        let of_text = |text: &str| {
            vec![mix64(
                xxh3_64_with_seed(text.as_bytes(), 7) ^ 0x6E6F_746F_6B65_6E73,
            )]
        };
        assert_eq!(
            feature("  Two\n Words "),
            (of_text("two words"), Shape::Short)
        );
        assert_eq!(feature("?!"), (of_text("?!"), Shape::Short));
        assert_eq!(feature(""), (vec![], Shape::Empty));
        assert_eq!(feature(" \n"), (vec![], Shape::Empty));
    }
}

fn own(tokens: &[(&str, u8)]) -> Vec<u8> {
    let mut encoded = Vec::new();
    begin_own_tokens(0, &mut encoded);
    for (token, weight) in tokens {
        assert!(push_own_token(token.as_bytes(), *weight, &mut encoded));
    }
    encoded
}

fn weigh_own(tokens: &[(&str, u8)], shingle: u32) -> (Vec<u64>, Vec<u32>) {
    let encoded = own(tokens);
    let mut extractor = Extractor::new(rules(Tokens::User, shingle, Weights::Own), Isa::best());
    let view = extractor.features(Document::Tokens(OwnTokens::new(&encoded)));
    (view.features.to_vec(), view.weights.to_vec())
}

#[test]
fn weights_of_equal_features_add_up_and_zeros_go() {
    let hash = |token: &str| xxh3_64_with_seed(token.as_bytes(), 7);
    let (a, b) = (hash("a"), hash("b"));
    assert_eq!(
        weigh_own(&[("a", 4), ("b", 0), ("a", 3)], 1),
        (vec![a], vec![7])
    );
    assert_eq!(
        weigh_own(&[("a", 0), ("b", 0)], 1),
        (vec![a, b], vec![1, 1])
    );
    assert_eq!(weigh_own(&[], 1), (vec![], vec![]));
}

#[test]
fn a_shingle_weighs_as_its_heaviest_token() {
    let (features, weights) = weigh_own(&[("1", 4), ("2", 1), ("3", 2), ("1", 1), ("2", 9)], 2);
    assert_eq!((features.len(), weights), (3, vec![4 + 9, 2, 2]));
    let (short, weights) = weigh_own(&[("1", 4), ("2", 1)], 3);
    assert_eq!((short.len(), weights), (1, vec![4]));
    assert_eq!(short[0], features[0]);
}

#[test]
fn stop_words_are_compared_with_folded_tokens() {
    let text_rules = TextRules {
        stop_words: Some(Arc::new(StopWords::new(vec!["the".into(), "ete".into()]))),
        fold: Fold::from_names(["accents"]).unwrap_or_default(),
        ..TextRules::default()
    };
    let mut extractor = Extractor::new(rules(Tokens::Auto, 1, Weights::None), Isa::best())
        .with_text_rules(text_rules);
    let cat = [xxh3_64_with_seed(b"cat", 7)];
    assert_eq!(extractor.occurrences("The cat, \u{e9}t\u{e9}").0, cat);
    assert_eq!(extractor.occurrences("the The").0.len(), 2);
}
