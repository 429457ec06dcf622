//! Which numbers, model numbers, sizes and colors of a text identify what it names, and do those of two texts disagree?
//!
//! Identifiers are features like others, with a mark in their low bits. So a rule on pairs needs nothing but feature
//! sets, which batch runs, indexes and Spark all have.

use crate::hash::{mix64, xxh3_64_with_seed};
use crate::isa::Isa;
use crate::text::{Identifier, Identifiers, Kind, Preparer, TextRules};

/// Bits 8 to 23 of marked features; other features never have them.
const MARK: u64 = 0x1D7A << 8;
const MARK_BITS: u64 = 0xFFFF << 8;
/// Bits that tell a token; those below are the mark and the kind.
const TOKEN_SHIFT: u32 = 24;
/// Features that an identifier has besides the marked one, and those that a model number has.
const TOKEN_COPIES: u64 = 1;
const MODEL_COPIES: u64 = 24;
/// "identity" in ASCII.
const IDENTITY: u64 = 0x6964_656E_7469_7479;
const COPY: u64 = 0x9E37_79B9_7F4A_7C15;

/// Appends the features of identifiers, reusing its memory.
#[derive(Debug, Default)]
pub(super) struct IdentifierFeatures {
    rules: TextRules,
    preparer: Preparer,
    normalized: Vec<u8>,
    tokens: Identifiers,
}

impl IdentifierFeatures {
    /// Reads identifiers by these rules; punctuation stays, since it separates numbers.
    pub(super) fn new(rules: &TextRules) -> Self {
        IdentifierFeatures {
            rules: TextRules {
                fold: rules.fold.without_punctuation(),
                ..rules.clone()
            },
            ..IdentifierFeatures::default()
        }
    }

    /// Clears the marks of the features, then appends those of the identifiers of the text.
    pub(super) fn append(&mut self, text: &str, seed: u64, isa: Isa, features: &mut Vec<u64>) {
        for feature in features.iter_mut() {
            *feature = unmarked(*feature);
        }
        // SAFETY: the caller has an instruction set of this processor.
        unsafe {
            self.preparer
                .prepare(text, &self.rules, isa, &mut self.normalized);
        }
        self.tokens
            .read(&String::from_utf8_lossy(&self.normalized), |token| {
                push(token, seed, features);
            });
    }

    pub(super) fn release(&mut self) {
        self.preparer.release();
        self.normalized = Vec::new();
        self.tokens = Identifiers::default();
    }
}

fn push(token: Identifier<'_>, seed: u64, features: &mut Vec<u64>) {
    let hash = xxh3_64_with_seed(token.text, seed);
    let hash = mix64((hash ^ IDENTITY).wrapping_add(u64::from(token.occurrence)));
    let num_copies = match token.kind {
        Kind::Model => MODEL_COPIES,
        kind => {
            features.push(hash & !((1 << TOKEN_SHIFT) - 1) | MARK | kind as u64);
            if kind == Kind::Word { 0 } else { TOKEN_COPIES }
        }
    };
    let copies = (1..=num_copies)
        .map(|i| mix64(hash ^ token.kind as u64).wrapping_add(i.wrapping_mul(COPY)));
    features.extend(copies.map(|copy| unmarked(mix64(copy))));
}

fn is_marked(feature: u64) -> bool {
    feature & MARK_BITS == MARK
}

/// Returns a feature without the mark, which it has by chance.
fn unmarked(feature: u64) -> u64 {
    feature ^ u64::from(is_marked(feature)) << 8
}

/// Whether each of two documents has an identifier of one kind that the other lacks, by their sorted features.
pub(crate) fn disagree(a: &[u64], b: &[u64]) -> bool {
    lacking(a, b) & lacking(b, a) != 0
}

/// Returns the kinds of the identifiers in `these` that are not among `those`, as bits.
fn lacking(these: &[u64], those: &[u64]) -> u8 {
    let mut kinds = 0;
    let mut rest = those;
    for &feature in these.iter().filter(|&&feature| is_marked(feature)) {
        let kind = feature as u8;
        if !(Kind::Letters as u8..=Kind::Color as u8).contains(&kind) {
            continue;
        }
        let first = rest.partition_point(|&other| other >> TOKEN_SHIFT < feature >> TOKEN_SHIFT);
        rest = &rest[first..];
        // Both hashes of a token that is a word in one text and identifies in the other have these bits.
        let same = rest
            .iter()
            .take_while(|&&other| other >> TOKEN_SHIFT == feature >> TOKEN_SHIFT);
        if !same.into_iter().any(|&other| is_marked(other)) {
            kinds |= 1 << kind;
        }
    }
    kinds
}

#[cfg(test)]
mod tests {
    use super::*;

    fn features(text: &str) -> Vec<u64> {
        let mut found = Vec::new();
        IdentifierFeatures::new(&TextRules::default()).append(text, 0, Isa::best(), &mut found);
        found.sort_unstable();
        found.dedup();
        found
    }

    fn differ(a: &str, b: &str) -> bool {
        disagree(&features(a), &features(b))
    }

    #[test]
    fn numbers_sizes_and_model_numbers_identify() {
        for (a, b) in [
            ("HP 304 XL ink", "HP 305 XL ink"),
            ("HP 304XL", "HP 305 XL"),
            ("shirt size M", "shirt (L)"),
            ("WD40EFRX", "wd40efzx"),
            ("Mark II", "Mark III"),
            ("version 7.4", "version 7.7"),
            ("M460s size M", "M460s size XL"),
            ("64 GB", "128 GB"),
            ("gray chair", "black chair"),
        ] {
            assert!(differ(a, b) && differ(b, a), "{a} | {b}");
        }
        for (a, b) in [
            ("HP 304 XL ink", "ink 304XL by HP"),
            ("KX-TG9344T", "kxtg 9344t"),
            ("22-inch", "22 in"),
            ("10,000 sheets", "10000 sheets"),
            ("version 6.0", "version 6"),
            ("500GB drive", "drive, 500 gb, 7200 rpm"),
            ("red pen", "pen 3"),
            ("gray pen", "pen, grey, 3"),
            // A long number is an article number, and says nothing about a short one.
            ("speaker 5", "speaker 21725"),
        ] {
            assert!(!differ(a, b) && !differ(b, a), "{a} | {b}");
        }
    }

    #[test]
    fn other_features_have_no_mark() {
        let mut found = vec![MARK | 7 << 40, 5];
        IdentifierFeatures::new(&TextRules::default()).append("x", 0, Isa::best(), &mut found);
        assert_eq!(found[..2], [(0x1D7B << 8) | 7 << 40, 5]);
        assert!(
            found[2..]
                .iter()
                .filter(|&&feature| is_marked(feature))
                .count()
                == 1
        );
    }
}
