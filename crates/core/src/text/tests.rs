//! The text rules compared with the Unicode crates, for every scalar and for mixed strings.

// The standard library is one of the oracles here.
#![allow(clippy::disallowed_methods)]

use caseless::Caseless as _;
use unicode_normalization::UnicodeNormalization as _;
use unicode_segmentation::UnicodeSegmentation as _;

use super::tables::properties::KATAKANA;
use super::tables::{self, ALPHANUMERIC, WHITE_SPACE, WORD_BREAK};
use super::*;
use crate::testing::Random;

/// `Default_Ignorable_Code_Point` of Unicode 17.0.
fn is_ignorable(c: char) -> bool {
    matches!(u32::from(c), 0xAD | 0x34F | 0x61C | 0x115F..=0x1160 | 0x17B4..=0x17B5 | 0x180B..=0x180F | 0x200B..=0x200F
        | 0x202A..=0x202E | 0x2060..=0x206F | 0x3164 | 0xFE00..=0xFE0F | 0xFEFF | 0xFFA0 | 0xFFF0..=0xFFF8
        | 0x1BCA0..=0x1BCA3 | 0x1D173..=0x1D17A | 0xE0000..=0xE0FFF)
}

/// `NFKC_Casefold` by its definition, from two crates, but without the Arabic tatweel.
fn casefold_oracle(c: char) -> String {
    let mut text = c.to_string();
    loop {
        let folded: String = text.nfd().default_case_fold().collect();
        let next: String = folded
            .chars()
            .filter(|&c| !is_ignorable(c) && c != '\u{640}')
            .nfkc()
            .collect();
        if next == text {
            return text;
        }
        text = next;
    }
}

fn normalize_oracle(text: &str) -> String {
    let folded: String = text.chars().map(casefold_oracle).collect();
    let composed: String = folded.nfc().collect();
    composed
        .split(char::is_whitespace)
        .filter(|part| !part.is_empty())
        .collect::<Vec<_>>()
        .join(" ")
}

fn normalized(text: &str) -> String {
    let mut out = vec![b'x'];
    normalize(text, &mut out);
    String::from_utf8(out).expect("UTF-8")
}

fn words_oracle(text: &str) -> Vec<String> {
    let text = normalize_oracle(text);
    let is_word = |word: &&str| word.chars().any(char::is_alphanumeric);
    text.split_word_bounds()
        .filter(is_word)
        .map(str::to_owned)
        .collect()
}

/// Whether a case folding is new in 17.0; those of caseless are of Unicode 16.
fn folds_since_17(c: char) -> bool {
    matches!(u32::from(c), 0xA7CE | 0xA7D2 | 0xA7D4 | 0x16EA0..=0x16EB8)
}

/// Returns the words of a text without normalization.
fn raw_words(text: &str, isa: Isa, spans: &mut Spans) -> Vec<String> {
    let mut bytes = text.as_bytes().to_vec();
    let len = pad(&mut bytes);
    let mut found = Vec::new();
    let mut take = |starts: &[u32], ends: &[u32]| {
        found.extend(
            starts
                .iter()
                .zip(ends)
                .map(|(&start, &end)| text[start as usize..end as usize].to_owned()),
        );
    };
    // SAFETY: the processor has the instruction set.
    unsafe { words::cut(&bytes, len, false, isa, spans, &mut take) };
    found
}

fn random_text(random: &mut Random) -> String {
    random
        .text(24)
        .chars()
        .filter(|&c| !folds_since_17(c))
        .collect()
}

/// Whether the compiler's tables of standard properties can be used by the tests.
fn compiler_knows_unicode_17() -> bool {
    char::UNICODE_VERSION == (17, 0, 0)
}

#[test]
fn every_scalar_maps_as_nfkc_casefold() {
    let mut differing = Vec::new();
    for c in '\0'..=char::MAX {
        let mapped = match tables::mapping_number(u32::from(c)) {
            0 => c.to_string(),
            number => String::from_utf8(tables::mapping(number).to_vec()).expect("UTF-8"),
        };
        if !folds_since_17(c) && mapped != casefold_oracle(c) {
            differing.push(format!(
                "U+{:04X} {mapped:?} {:?}",
                u32::from(c),
                casefold_oracle(c)
            ));
        }
    }
    assert!(differing.is_empty(), "{differing:#?}");
}

#[test]
fn every_scalar_has_the_properties_of_the_compiler() {
    assert!(
        compiler_knows_unicode_17(),
        "compare with the version the tables are of"
    );
    for c in '\0'..=char::MAX {
        let property = tables::property(u32::from(c));
        assert_eq!(
            property & WHITE_SPACE != 0,
            c.is_whitespace(),
            "U+{:04X}",
            u32::from(c)
        );
        assert_eq!(
            property & ALPHANUMERIC != 0,
            c.is_alphanumeric(),
            "U+{:04X}",
            u32::from(c)
        );
    }
}

#[test]
fn every_scalar_breaks_words_as_the_crate_says() {
    // Each scalar between others that the rules distinguish.
    let contexts = [
        "a",
        "1",
        "_",
        " ",
        "\u{5D0}",
        "\u{30AB}",
        "'",
        "\"",
        ".",
        "\u{301}",
        "\r",
        "\n",
        "\u{1F1E6}",
    ];
    let mut spans = Spans::new();
    for c in ('\0'..=char::MAX).filter(|&c| c != '\u{200D}') {
        for (i, before) in contexts.iter().enumerate() {
            let after = contexts[(i * 5 + u32::from(c) as usize) % contexts.len()];
            let text = format!("{before}{c}{after}a");
            let mut expected: Vec<&str> = text.split_word_bounds().collect();
            expected.retain(|word| word.chars().any(char::is_alphanumeric));
            let found = raw_words(&text, Isa::Plain, &mut spans);
            assert_eq!(found, expected, "{text:?} U+{:04X}", u32::from(c));
        }
    }
}

#[test]
fn mixed_strings_normalize_as_the_crates_do() {
    let mut random = Random::new(1);
    for _ in 0..30_000 {
        let text = random_text(&mut random);
        let expected = normalize_oracle(&text);
        assert_eq!(normalized(&text), expected, "{text:?}");
        assert_eq!(normalized(&expected), expected, "twice is once: {text:?}");
    }
}

#[test]
fn mixed_strings_are_cut_as_the_crate_does() {
    let mut random = Random::new(2);
    for _ in 0..30_000 {
        let text = random_text(&mut random);
        assert_eq!(tokens(&text, Tokens::Word), words_oracle(&text), "{text:?}");
        let scalars: Vec<String> = normalize_oracle(&text).chars().map(String::from).collect();
        assert_eq!(tokens(&text, Tokens::Char), scalars);
    }
}

#[test]
fn auto_parts_katakana_and_nothing_else() {
    let cut = |text| tokens(text, Tokens::Auto).join("|");
    assert_eq!(
        cut("カタカナ ﾊﾝｶｸ と漢字"),
        "カ|タ|カ|ナ|ハ|ン|カ|ク|と|漢|字"
    );
    assert_eq!(cut("ガﾞ"), "ガ\u{3099}");
    assert_eq!(cut("カ\u{309A}タ x1_ア"), "カ\u{309A}|タ|x1_ア");
    assert_eq!(tokens("カタカナ", Tokens::Word), ["カタカナ"]);
    let mut random = Random::new(3);
    for _ in 0..3_000 {
        let text = normalized(&random_text(&mut random));
        let is_katakana = |c: &char| tables::property(u32::from(*c)) & WORD_BREAK == KATAKANA;
        let text: String = text.chars().filter(|c| !is_katakana(c)).collect();
        assert_eq!(
            tokens(&text, Tokens::Auto),
            tokens(&text, Tokens::Word),
            "{text:?}"
        );
    }
}

#[test]
fn script_pairs_characters_that_touch() {
    let cut = |text| tokens(text, Tokens::Script).join("|");
    assert_eq!(
        cut("The 合同 法律文本, カタ 3天x法"),
        "the|合同|法律|律文|文本|カタ|3|天|x|法"
    );
    assert_eq!(cut("法"), "法");
    assert_eq!(cut("法。律"), "法|律");
    assert_eq!(cut("カ\u{309A}タ"), "カ\u{309A}タ");
    let mut random = Random::new(5);
    for _ in 0..1_000 {
        let text = normalized(&random_text(&mut random));
        let singles = tokens(&text, Tokens::Auto).concat();
        let pairs = tokens(&text, Tokens::Script);
        assert!(
            pairs.iter().all(|pair| singles.contains(pair.as_str())),
            "{text:?}"
        );
    }
}

#[test]
fn known_words() {
    let cut = |text| tokens(text, Tokens::Word).join("|");
    assert_eq!(
        cut("Don’t can't 3.14 1,000.5 a.b a.1 x_y _ __ e.g. U.S."),
        "don’t|can't|3.14|1,000.5|a.b|a|1|x_y|e.g|u.s"
    );
    assert_eq!(cut("猫 狗 猫, สวัสดี"), "猫|狗|猫|ส|วั|ส|ดี");
    assert_eq!(
        cut("צה\"ל ג' ﬁne Straße ＡＢＣ"),
        "צה\"ל|ג'|fine|strasse|abc"
    );
    assert_eq!(
        cut(" \u{93E}\n\u{93E} x\n\n\u{93E}"),
        "\u{93E}| \u{93E}|x| \u{93E}"
    );
    assert_eq!(cut("!?… \u{1F600}"), "");
    assert_eq!(cut("a\0b\u{200D}c"), "a|bc");
}

#[test]
fn known_texts() {
    assert_eq!(normalized(" \t A \u{A0}\u{2003} B\r\n"), "a b");
    assert_eq!(normalized("\u{200B}\u{AD}\u{FEFF}"), "");
    assert_eq!(normalized("e\u{323}\u{301}"), "\u{1EB9}\u{301}");
    assert_eq!(normalized("e\u{301}\u{323}"), "\u{1EB9}\u{301}");
    assert_eq!(
        normalized("\u{1112}\u{1161}\u{11AB}\u{D558}\u{11AB}"),
        "\u{D55C}\u{D55C}"
    );
    assert_eq!(normalized("a \u{B4}\u{301}"), "a \u{301}\u{301}");
    assert_eq!(normalized("\u{B4}"), "\u{301}");
    assert_eq!(normalized("\0"), "\0");
}

#[test]
fn ascii_classes_are_those_of_the_tables() {
    use super::tables::properties::{
        CONNECTOR, LETTER, MID_LETTER, MID_NUM, MID_NUM_LET, NUMERIC, SINGLE_QUOTE,
    };
    for c in 0..128 {
        let property = tables::property(c);
        let word_break = property & WORD_BREAK;
        let expected = match word_break {
            LETTER => kernel::LETTER,
            NUMERIC => kernel::DIGIT,
            CONNECTOR => kernel::CONNECTOR,
            MID_NUM_LET | SINGLE_QUOTE => kernel::MID_LETTER | kernel::MID_NUMBER,
            MID_LETTER => kernel::MID_LETTER,
            MID_NUM => kernel::MID_NUMBER,
            _ => 0,
        };
        assert_eq!(kernel::ASCII_CLASSES[c as usize], expected, "{c}");
        assert_eq!(
            property & ALPHANUMERIC != 0,
            matches!(word_break, LETTER | NUMERIC),
            "{c}"
        );
    }
    for c in 0x4E00..=0x9FFF {
        // Ideographs have a separate path: one word each, copied unchanged.
        assert_eq!(
            tables::property(c),
            ALPHANUMERIC | tables::STABLE,
            "U+{c:04X}"
        );
    }
}

#[test]
fn every_instruction_set_normalizes_alike() {
    let mut random = Random::new(8);
    for round in 0..20_000 {
        let text = random.text(if round % 10 == 0 { 300 } else { 30 });
        let by = |isa: Isa| {
            let mut out = Vec::new();
            // SAFETY: only available instruction sets are used.
            unsafe { normalize_into(&text, isa, &mut out) };
            out
        };
        let expected = by(Isa::Plain);
        for isa in Isa::available() {
            assert_eq!(by(isa), expected, "{} {text:?}", isa.name());
        }
    }
}

#[test]
fn words_are_cut_alike_without_normalization() {
    let mut random = Random::new(9);
    let mut spans = Spans::new();
    for _ in 0..10_000 {
        let mut text: String = random.text(200).replace('\u{200D}', "");
        // The text to cut has single spaces, at least before marks.
        while text.contains("  ") {
            text = text.replace("  ", " ");
        }
        let mut expected: Vec<&str> = text.split_word_bounds().collect();
        expected.retain(|word| word.chars().any(char::is_alphanumeric));
        for isa in Isa::available() {
            assert_eq!(
                raw_words(&text, isa, &mut spans),
                expected,
                "{} {text:?}",
                isa.name()
            );
        }
    }
}
