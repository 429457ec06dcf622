//! Writes the Unicode tables of `likewise-core`: one binary file, and Rust source that names its parts.
//!
//! Usage: `cargo run --release -- ../../crates/core/src/text/tables`. The output is checked in, so this runs only
//! when the Unicode version changes; then `TEXT_VERSION` changes with it. Every table comes from the data of
//! one ICU4X release. The assumptions that the text code makes about the data are asserted here.

mod confusables;
mod lowercase;
mod output;
mod punctuation;

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use icu_casemap::CaseMapper;
use icu_normalizer::properties::{
    CanonicalCombiningClassMap, CanonicalComposition, CanonicalDecomposition, Decomposed,
};
use icu_normalizer::{ComposingNormalizer, DecomposingNormalizer};
use icu_properties::props::{
    Alphabetic, ChangesWhenNfkcCasefolded, DefaultIgnorableCodePoint, GeneralCategory, WhiteSpace,
    WordBreak,
};
use icu_properties::{CodePointMapData, CodePointSetData};
use output::Output;

const NUM_CODE_POINTS: u32 = 0x11_0000;
const UNICODE_VERSION: &str = "17.0.0";
/// Widens the line between two Arabic letters, and is not part of the text.
const TATWEEL: char = '\u{640}';

/// Word_Break values in numerical order, which the word machine of likewise-core relies on.
const WORD_BREAKS: [(&str, WordBreak); 19] = [
    ("OTHER", WordBreak::Other),
    ("CR", WordBreak::CR),
    ("LF", WordBreak::LF),
    ("NEWLINE", WordBreak::Newline),
    ("SPACE", WordBreak::WSegSpace),
    ("EXTEND", WordBreak::Extend),
    ("FORMAT", WordBreak::Format),
    ("ZWJ", WordBreak::ZWJ),
    ("LETTER", WordBreak::ALetter),
    ("HEBREW", WordBreak::HebrewLetter),
    ("NUMERIC", WordBreak::Numeric),
    ("KATAKANA", WordBreak::Katakana),
    ("CONNECTOR", WordBreak::ExtendNumLet),
    ("REGIONAL", WordBreak::RegionalIndicator),
    ("SINGLE_QUOTE", WordBreak::SingleQuote),
    ("DOUBLE_QUOTE", WordBreak::DoubleQuote),
    ("MID_NUM_LET", WordBreak::MidNumLet),
    ("MID_LETTER", WordBreak::MidLetter),
    ("MID_NUM", WordBreak::MidNum),
];

fn main() {
    let folder = std::env::args()
        .nth(1)
        .expect("usage: unicode-tables FOLDER");
    let folder = Path::new(&folder);
    let unicode = Unicode::new();
    unicode.check_version();
    let mut out = Output::new();
    unicode.properties(&mut out);
    unicode.mappings(&mut out);
    unicode.compositions(&mut out);
    lowercase::tables(&mut out);
    punctuation::table(&mut out);
    confusables::tables(&mut out, normalized);
    out.write(folder);
}

/// Every scalar; surrogates are not scalars and get the entry of an unassigned code point.
fn scalars() -> impl Iterator<Item = char> {
    (0..NUM_CODE_POINTS).filter_map(char::from_u32)
}

struct Unicode {
    /// Primary composites: (first, second) -> composite. Hangul syllables are computed instead.
    compositions: BTreeMap<(char, char), char>,
    /// The second scalars in `compositions`.
    seconds: BTreeSet<char>,
    /// mapping (NFKC_Casefold, but U+0640 is dropped) of the scalars that do not map to themselves.
    mappings: BTreeMap<char, String>,
}

impl Unicode {
    fn new() -> Self {
        let (decomposition, composition) =
            (CanonicalDecomposition::new(), CanonicalComposition::new());
        let mut compositions = BTreeMap::new();
        for c in scalars().filter(|c| !('\u{AC00}'..='\u{D7A3}').contains(c)) {
            if let Decomposed::Expansion(first, second) = decomposition.decompose(c)
                && composition.compose(first, second) == Some(c)
            {
                compositions.insert((first, second), c);
            }
        }
        let changes = CodePointSetData::new::<ChangesWhenNfkcCasefolded>();
        let mut mappings = BTreeMap::new();
        for c in scalars() {
            let mapped = normalized(&c.to_string());
            let is_changed = changes.contains(c) || c == TATWEEL;
            assert_eq!(mapped != c.to_string(), is_changed, "U+{:04X}", c as u32);
            if is_changed {
                mappings.insert(c, mapped);
            }
        }
        let seconds = compositions.keys().map(|&(_, second)| second).collect();
        Unicode {
            compositions,
            seconds,
            mappings,
        }
    }

    /// Checks that three scalars added in 17.0 are assigned, and one added in 18.0 is not.
    fn check_version(&self) {
        let category = CodePointMapData::<GeneralCategory>::new();
        for c in ['\u{20C1}', '\u{11DB0}', '\u{1FAC8}'] {
            assert_ne!(
                category.get(c),
                GeneralCategory::Unassigned,
                "older than {UNICODE_VERSION}"
            );
        }
        assert_eq!(
            category.get('\u{20C2}'),
            GeneralCategory::Unassigned,
            "newer than {UNICODE_VERSION}"
        );
    }

    /// Whether the scalar, or the first of its decomposition, may compose with one before it (NFC_Quick_Check=Maybe).
    fn composes_backward(&self, c: char) -> bool {
        let hangul =
            ('\u{1161}'..='\u{1175}').contains(&c) || ('\u{11A8}'..='\u{11C2}').contains(&c);
        hangul || self.seconds.contains(&c) || self.seconds.contains(&first_of_nfd(c))
    }

    fn is_stable(&self, c: char) -> bool {
        let nfc = ComposingNormalizer::new_nfc();
        CanonicalCombiningClassMap::new().get_u8(c) == 0
            && !self.mappings.contains_key(&c)
            && !self.composes_backward(c)
            && nfc.is_normalized(c.encode_utf8(&mut [0; 4]))
    }

    /// One byte per code point: Word_Break, alphanumeric, whitespace, stable.
    fn properties(&self, out: &mut Output) {
        let word_break = CodePointMapData::<WordBreak>::new();
        let category = CodePointMapData::<GeneralCategory>::new();
        let alphabetic = CodePointSetData::new::<Alphabetic>();
        let white_space = CodePointSetData::new::<WhiteSpace>();
        let classes = CanonicalCombiningClassMap::new();
        let mut bytes = vec![0u8; NUM_CODE_POINTS as usize];
        for c in scalars() {
            let value = word_break.get(c);
            let number = WORD_BREAKS
                .iter()
                .position(|&(_, v)| v == value)
                .expect("a known Word_Break") as u8;
            let is_number = matches!(
                category.get(c),
                GeneralCategory::DecimalNumber
                    | GeneralCategory::LetterNumber
                    | GeneralCategory::OtherNumber
            );
            let is_alphanumeric = alphabetic.contains(c) || is_number;
            let is_white = white_space.contains(c);
            let is_stable = self.is_stable(c);
            if is_stable {
                // A run to normalize ends before a stable scalar: no mapping may compose across that boundary.
                let first = first_of_nfd(c);
                assert!(
                    classes.get_u8(first) == 0 && !self.composes_backward(first),
                    "U+{:04X}",
                    c as u32
                );
            }
            if is_white {
                assert!(
                    is_stable || self.mappings[&c] == " ",
                    "whitespace maps to whitespace"
                );
                assert!(!is_alphanumeric, "a run of whitespace is no token");
                assert!(!is_stable || number <= 4, "whitespace parts words");
            }
            if value == WordBreak::ZWJ {
                assert_eq!(
                    self.mappings[&c], "",
                    "no ZWJ in normalized text, so WB3c never applies"
                );
            }
            let flags =
                u8::from(is_alphanumeric) << 5 | u8::from(is_white) << 6 | u8::from(is_stable) << 7;
            bytes[c as usize] = number | flags;
        }
        out.comment(&[
            "What each code point is: Word_Break (bits 0 to 4), alphanumeric (5), White_Space (6), stable (7).",
            "Stable: maps to itself under NFKC_Casefold, Canonical_Combining_Class=0, NFC_Quick_Check=Yes.",
        ]);
        out.line("pub mod properties {");
        for (number, (name, _)) in WORD_BREAKS.iter().enumerate() {
            out.line(&format!("    pub const {name}: u8 = {number};"));
        }
        out.line("}");
        out.two_stage("PROPERTY", &bytes, 7);
    }

    /// Whether a mapping can be copied without examining its scalars: all stable, no whitespace, none attaching.
    fn is_simple(&self, mapped: &str) -> bool {
        let word_break = CodePointMapData::<WordBreak>::new();
        let white_space = CodePointSetData::new::<WhiteSpace>();
        mapped.chars().all(|c| {
            let attaches = [WordBreak::Extend, WordBreak::Format, WordBreak::ZWJ];
            self.is_stable(c) && !white_space.contains(c) && !attaches.contains(&word_break.get(c))
        })
    }

    /// The NFKC_Casefold mappings of scalars that do not map to themselves, in NFC and UTF-8.
    fn mappings(&self, out: &mut Output) {
        let distinct: BTreeSet<&str> = self.mappings.values().map(String::as_str).collect();
        let (simple, other): (Vec<&str>, Vec<&str>) = distinct
            .into_iter()
            .filter(|mapped| !mapped.is_empty())
            .partition(|mapped| self.is_simple(mapped));
        let mut pool = String::new();
        let mut starts: Vec<u16> = vec![0, 0];
        let mut numbers: BTreeMap<&str, u16> = BTreeMap::from([("", 1)]);
        for &mapped in simple.iter().chain(&other) {
            pool.push_str(mapped);
            numbers.insert(mapped, starts.len() as u16);
            starts.push(u16::try_from(pool.len()).expect("pool below 64 KiB"));
        }
        // The start of mapping n is the end of mapping n - 1; the last end closes the list.
        let mut values = vec![0u16; NUM_CODE_POINTS as usize];
        for (&c, mapped) in &self.mappings {
            values[c as usize] = numbers[mapped.as_str()];
        }
        out.comment(&[
            "What NFKC_Casefold, without U+0640, turns a code point into. Number 0: itself; 1: nothing; n: bytes",
            "STARTS[n - 1]..STARTS[n] of POOL, in NFC. Below MAPPING_NOT_SIMPLE all scalars of a mapping are stable, none is",
            "whitespace and none attaches to the text before it (WB4).",
        ]);
        out.line(&format!(
            "pub const MAPPING_NOT_SIMPLE: usize = {};",
            2 + simple.len()
        ));
        out.two_stage("MAPPING", &values, 6);
        out.array("MAPPING_STARTS", &starts);
        out.array("MAPPING_POOL", pool.as_bytes());
    }

    /// Combining classes and canonical compositions.
    fn compositions(&self, out: &mut Output) {
        let class = CanonicalCombiningClassMap::new();
        let mut used: Vec<u8> = scalars().map(|c| class.get_u8(c)).collect();
        used.sort_unstable();
        used.dedup();
        assert!(used.len() < 128);
        let mut bytes = vec![0u8; NUM_CODE_POINTS as usize];
        for c in scalars() {
            let rank = used
                .binary_search(&class.get_u8(c))
                .expect("collected above") as u8;
            bytes[c as usize] = rank | u8::from(self.composes_backward(c)) << 7;
        }
        out.comment(&[
            "ORDER: rank of Canonical_Combining_Class among the classes in use (bits 0 to 6; 0 is class 0), and whether the scalar",
            "may compose with one before it (bit 7). COMPOSITIONS: [first, second, composite], ascending; Hangul is computed.",
            "COMPOSITES: indexes into COMPOSITIONS by ascending composite.",
        ]);
        out.two_stage("ORDER", &bytes, 7);
        let rows: Vec<[u32; 3]> = self
            .compositions
            .iter()
            .map(|(&(first, second), &composite)| [first as u32, second as u32, composite as u32])
            .collect();
        out.array("COMPOSITIONS", &rows);
        let mut composites: Vec<(u32, u16)> =
            rows.iter().zip(0..).map(|(row, i)| (row[2], i)).collect();
        composites.sort_unstable();
        let indexes: Vec<u16> = composites.iter().map(|&(_, i)| i).collect();
        out.array("COMPOSITES", &indexes);
    }
}

fn first_of_nfd(c: char) -> char {
    let text = c.to_string();
    let first = DecomposingNormalizer::new_nfd()
        .normalize(&text)
        .chars()
        .next();
    first.expect("a decomposition is not empty")
}

/// toNFKC_Casefold without [`TATWEEL`]: folding, compatibility composition and the removal of default-ignorable code
/// points, until nothing changes.
fn normalized(text: &str) -> String {
    let (mapper, nfkc, nfd) = (
        CaseMapper::new(),
        ComposingNormalizer::new_nfkc(),
        DecomposingNormalizer::new_nfd(),
    );
    let ignorable = CodePointSetData::new::<DefaultIgnorableCodePoint>();
    let is_dropped = |c: char| c == TATWEEL || ignorable.contains(c);
    let mut text = text.to_string();
    loop {
        let folded = mapper.fold_string(&nfd.normalize(&text)).into_owned();
        let kept: String = folded.chars().filter(|&c| !is_dropped(c)).collect();
        let next = nfkc.normalize(&kept).into_owned();
        if next == text {
            return text;
        }
        text = next;
    }
}
