//! Any text: every kind of token, all instruction sets alike, normalizing twice as once; as an item it stands in itself.
#![no_main]

use libfuzzer_sys::fuzz_target;
use likewise_core::features::{Extractor, FeatureHash, FeatureRules, Weights};
use likewise_core::isa::Isa;
use likewise_core::items::{ItemCounts, ItemScanner, ItemTable, Matches, judge};
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
    check_item(&text);
});

/// Searches a text as an item in itself, and its halves in it.
fn check_item(text: &str) {
    let half = text.floor_char_boundary(text.len() / 2);
    let table = ItemTable::new([text, &text[..half], &text[half..]], 1);
    let counts = ItemCounts::new(&table);
    let found: Vec<Matches> = Isa::available()
        .into_iter()
        .map(|isa| {
            let mut found = Matches::default();
            ItemScanner::new(&table, &counts, isa).scan(0, text, &mut found);
            found
        })
        .collect();
    assert!(found.windows(2).all(|two| two[0] == two[1]));
    let own = found[0].texts.iter().position(|&one| one == 0);
    assert_eq!(own.is_some(), !table.is_short(0));
    if let Some(own) = own {
        assert_eq!(found[0].runs[own] as usize, table.sizes(0).1);
    }
    for agreement in judge(&table, &counts, &found[0]) {
        assert!(agreement.share > 0.0 && agreement.share <= 1.0 + 1e-9);
        assert!(agreement.similarity > 0.0 && agreement.similarity <= 1.0 + 1e-9);
    }
}
