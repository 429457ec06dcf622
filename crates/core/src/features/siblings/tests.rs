use std::sync::atomic::AtomicBool;

use super::profile::{begin_alike, flags_of};
use super::{DIGIT, NUMBER, NameCounter, NameTable, Names, penalty};
use crate::features::{Extractor, FeatureHash, FeatureRules, Weights, digest};
use crate::isa::Isa;
use crate::text::Tokens;

const RULES: FeatureRules = FeatureRules {
    tokens: Tokens::Auto,
    shingle: 2,
    weights: Weights::None,
    seed: 0,
    hash: FeatureHash::Xxh3,
};

fn extractor() -> Extractor {
    Extractor::new(RULES, Isa::best()).with_names(None)
}

fn names(text: &str) -> Names {
    let mut extractor = extractor();
    extractor.features(text);
    extractor.names().unwrap()
}

fn table_of(texts: &[String], threads: usize) -> NameTable {
    let counter = NameCounter::default();
    let mut extractor = extractor();
    for text in texts {
        let digest = digest(extractor.features(text.as_str()).features, &[]);
        assert!(counter.wants(digest));
        counter.add(digest, extractor.tokens());
    }
    let entries = counter.finish(threads, &AtomicBool::new(false)).unwrap();
    NameTable::new(entries).unwrap()
}

#[test]
fn a_swapped_subject_counts_and_a_changed_word_or_number_does_not() {
    let form = |subject: &str| format!("Deletes the {subject} with this id and returns nothing");
    let (rare, lowest) = ((15 + 2 * 15) as f64 / 150.0, 0.0);
    let of = |a: &str, b: &str| penalty(&names(&form(a)), &names(&form(b)));
    // Nothing but the subject is swapped.
    assert_eq!(of("bucket", "function"), rare + 0.3);
    // A misspelled or inflected word, another number.
    assert_eq!(of("bucket", "bucktet"), lowest);
    assert_eq!(of("bucket", "buckets"), lowest);
    assert_eq!(of("bucket2", "bucket3"), lowest);
    assert_eq!(of("bucket2", "function2"), rare + 0.3);
    // Long names share most of their letters, and differ in a part.
    assert_eq!(of("read_only_bucket", "read_olny_buckets"), lowest);
    assert_eq!(of("preferred_width", "preferred_height"), rare + 0.3);
    // Short parts too, the first and the last, in names of equally many.
    assert_eq!(of("vector.rotate_x", "vector.rotate_z"), rare + 0.3);
    assert_eq!(of("bucket.name", "cloud.bucket.name"), lowest);
    // A word that only one has, in titles and in longer texts.
    assert_eq!(of("bucket", "bucket of logs"), rare);
    let longer = |text: &str| names(&format!("{} and returns no more than that", form(text)));
    assert_eq!(
        penalty(&longer("bucket"), &longer("bucket of logs")),
        lowest
    );
    // A word that only one has and repeats, unless the other one has it further back.
    let maps = "library of maps 1 2 3 4 5 6 7 8 9 10";
    let part = |text: &str| penalty(&names(maps), &names(&format!("{text} {maps}")));
    assert_eq!(part("documentation this is the documentation"), 0.15);
    let one = names("documentation of maps documentation 1 2 3 4 5 6 7 8 9");
    let far = format!("of maps {} documentation", "1 2 3 ".repeat(10));
    assert_eq!(penalty(&one, &names(&far)), lowest);
    // A word that is swapped throughout, but no other form of it, and no number.
    let fill = "1 2 3 4 5 6 7 8 9 10 11 12";
    let thrice = |word: &str| {
        names(&format!(
            "{fill} {word} of the {word} by {word} {fill} {fill}"
        ))
    };
    let of_word = |a: &str, b: &str| penalty(&thrice(a), &thrice(b));
    assert_eq!(of_word("left", "right"), 0.3);
    assert_eq!(of_word("color", "colors"), lowest);
    assert_eq!(of_word("item2", "item3"), lowest);
    // Nearly equal texts that end differently, and not in a number.
    let ending = |end: &str| {
        names(&format!(
            "{} {end}",
            (0..20).map(|i| format!("w{i} ")).collect::<String>()
        ))
    };
    let of_end = |a: &str, b: &str| penalty(&ending(a), &ending(b));
    assert_eq!(of_end("headers", "manual"), 0.12);
    assert_eq!(of_end("headers", ""), 0.12);
    assert_eq!(of_end("headers", "headers and two more"), lowest);
    assert_eq!(of_end("2", "3"), lowest);
    // Parts of one product, whose titles differ too.
    let part_of = |title: &str, end: &str| {
        let fill: String = (0..20).map(|i| format!("w{i} ")).collect();
        names(&format!("maps {title} {fill} {end}"))
    };
    let parts = |title: &str, end: &str| penalty(&part_of("", "library"), &part_of(title, end));
    assert_eq!(parts("manual", "text"), 0.3);
    assert_eq!(parts("manual", "library"), lowest);
    assert_eq!(parts("manual", "2"), lowest);
    assert_eq!(parts("", "text"), 0.12);
    // A word that is further back in the other text.
    assert_eq!(
        penalty(
            &names(&format!("alpha beta gamma {maps}")),
            &names(&format!("delta beta gamma and alpha {maps}"))
        ),
        lowest
    );
}

#[test]
fn slots_are_places_that_a_collection_fills_in_many_ways() {
    let filler =
        "one two three four five six seven eight nine ten eleven twelve thirteen".repeat(2);
    let form = |i: usize| format!("{filler} the package gives item{i} for all users");
    let texts: Vec<String> = (0..5).map(form).collect();
    let penalties = |table: NameTable| {
        let table = std::sync::Arc::new(table);
        let named = |text: &str| {
            let mut extractor = Extractor::new(RULES, Isa::best()).with_names(Some(table.clone()));
            extractor.features(text);
            extractor.names().unwrap()
        };
        let (a, b) = (named(&form(0)), named(&form(1)));
        [penalty(&a, &b), penalty(&a, &a)]
    };
    // One to three words with the item in them: six frames, all filled otherwise.
    assert_eq!(penalties(table_of(&texts, 1)), [6.0 / 20.0, 0.0]);
    // A document counts once, however often it fills a slot with the same word.
    let twice = [form(0).repeat(2), form(1), form(2)];
    assert_eq!(penalties(table_of(&twice, 1)), [6.0 / 20.0, 0.0]);
    let table = table_of(&texts, 1);
    let other = table_of(&texts.iter().rev().cloned().collect::<Vec<_>>(), 3);
    assert_eq!(other.entries(), table.entries());
}

#[test]
fn a_token_is_read_alike_whatever_follows_it() {
    let tokens = [
        "",
        "a",
        "ab",
        "abc",
        "abd",
        "abcdefgh",
        "abcdefgh7",
        "abcdefghijklmnop4q",
        "7",
        "12",
        "12.5",
        "1a",
        "\u{e9}1",
        "\u{e9}t\u{e9}",
        "\u{4e00}",
        "\u{4e00}\u{4e8c}\u{4e09}\u{56db}",
        "ab\u{e9}",
        "ab\u{e8}",
        "abc\u{e9}",
        "\u{20000}\u{20001}a",
        "\u{20000}\u{20001}b",
    ];
    let first = |token: &str| token.chars().take(3).collect::<String>();
    for token in tokens {
        let flags = flags_of(token.as_bytes(), token.len());
        let has_digit = token.contains(|c: char| c.is_ascii_digit());
        let is_number =
            has_digit && !token.contains(|c: char| c.is_ascii_alphabetic() || !c.is_ascii());
        assert_eq!(flags & DIGIT != 0, has_digit, "{token}");
        assert_eq!(flags & NUMBER != 0, is_number, "{token}");
        for other in tokens {
            let followed = format!("{other}1 \u{e9}7 and more");
            let of_other = flags_of(followed.as_bytes(), other.len());
            assert_eq!(
                begin_alike(flags, of_other),
                first(token) == first(other),
                "{token} {other}"
            );
            if token == other {
                assert_eq!(flags, of_other, "{token}");
            }
        }
    }
}
