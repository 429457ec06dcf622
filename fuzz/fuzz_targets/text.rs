//! Any text: every kind of token, all instruction sets alike, normalizing twice as once.
#![no_main]

use libfuzzer_sys::fuzz_target;
use likewise_core::features::{Extractor, FeatureHash, FeatureRules, Weights};
use likewise_core::isa::Isa;
use likewise_core::sketch::{MinHasher, Scheme, simhash};
use likewise_core::text::{Tokens, normalize};

const KINDS: [Tokens; 6] = [
    Tokens::Auto,
    Tokens::Word,
    Tokens::Char,
    Tokens::Sentence,
    Tokens::Line,
    Tokens::Paragraph,
];

fuzz_target!(|data: &[u8]| {
    let Some((&choice, bytes)) = data.split_first() else {
        return;
    };
    let text = String::from_utf8_lossy(bytes);
    let (mut once, mut twice) = (Vec::new(), Vec::new());
    normalize(&text, &mut once);
    normalize(std::str::from_utf8(&once).expect("UTF-8"), &mut twice);
    assert_eq!(once, twice);
    let rules = FeatureRules {
        tokens: KINDS[usize::from(choice) % KINDS.len()],
        shingle: 1 + u32::from(choice >> 4),
        weights: if choice & 8 == 0 {
            Weights::None
        } else {
            Weights::LogCount
        },
        seed: 1,
        hash: FeatureHash::Xxh3,
    };
    let sketched = Isa::available().into_iter().map(|isa| {
        let mut extractor = Extractor::new(rules, isa);
        let view = extractor.features(&*text);
        let mut bits = [0; 4];
        simhash(view.features, view.weights, 256, isa, &mut bits);
        let mut slots = [0; 64];
        MinHasher::new(64, Scheme::Bucket, 1, isa).sketch(view.features, view.weights, &mut slots);
        (view.features.to_vec(), view.weights.to_vec(), bits, slots)
    });
    let all: Vec<_> = sketched.collect();
    assert!(all.windows(2).all(|two| two[0] == two[1]));
});
