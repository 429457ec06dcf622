//! What are the tokens of a text?
//!
//! A text is normalized (NFKC case folding, whitespace), then cut. All tables are of one Unicode version. All
//! operations take time linear in the text, whatever it contains.

#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512;
mod chinese;
mod chunks;
mod compose;
mod cutter;
mod fold;
mod identifiers;
mod kernel;
#[cfg(test)]
mod kernel_tests;
mod kinds;
mod markup;
#[cfg(target_arch = "aarch64")]
mod neon;
mod normalize;
mod numerals;
mod own_tokens;
mod parts;
mod simhash_package;
mod simplified;
mod tables;
#[cfg(test)]
mod tests;
mod units;
mod utf8;
mod windows;
mod without;
mod words;

use crate::isa::Isa;
pub use chinese::Dictionary;
pub use chunks::{CONTENT_BYTES, Chunks};
pub use cutter::StopWords;
pub use cutter::TextRules;
pub(crate) use cutter::{Cutter, Preparer};
pub use fold::Fold;
pub(crate) use identifiers::{Identifier, Identifiers, Kind};
pub(crate) use kernel::BLOCK;
pub use kinds::Document;
pub use kinds::Tokens;
pub(crate) use normalize::Spaces;
pub use own_tokens::{
    OwnTokens, begin_own_tokens, end_own_tokens, push_own_token, push_text_without_tokens,
};
pub use parts::{PartCutter, PartUnit, Parts};
pub(crate) use simhash_package::simhash_package_tokens;
pub use windows::WindowHasher;
pub(crate) use windows::rolling_hashes;
pub use without::Without;
pub(crate) use words::Spans;

/// Version of the text rules and of their Unicode tables.
pub const TEXT_VERSION: &str = "1/unicode-17.0.0";

/// Writes the normalized text to `out`, in UTF-8; `out` is cleared first. Applies NFKC case folding and NFC, turns runs
/// of whitespace into one space and drops them at both ends. Normalizing again changes nothing. Cost: linear; the
/// result may be up to 11 times as long as the text.
pub fn normalize(text: &str, out: &mut Vec<u8>) {
    // SAFETY: the processor has the instruction set returned by `best`.
    unsafe { normalize::normalize(text, Spaces::Collapse, Isa::best(), out) };
}

/// Returns the normalized text by any rules: without markup and folded, if the rules require it.
pub fn prepared(text: &str, rules: &TextRules) -> String {
    let mut out = Vec::new();
    // SAFETY: portable.
    unsafe { Preparer::default().prepare(text, rules, Isa::Plain, &mut out) };
    String::from_utf8_lossy(&out).into_owned()
}

/// Returns the tokens of a text as strings, in order, by the default rules: for display and comparison, where speed
/// does not matter.
pub fn tokens(text: &str, tokens: Tokens) -> Vec<String> {
    tokens_by(Document::Text(text), tokens, &TextRules::default())
        .iter()
        .map(|token| String::from_utf8_lossy(token).into_owned())
        .collect()
}

/// Returns the tokens of a document in order, including stop words, as bytes: for texts, UTF-8.
pub fn tokens_by(document: Document<'_>, tokens: Tokens, rules: &TextRules) -> Vec<Vec<u8>> {
    let document = match rules.has_value {
        true => document.split_value().1,
        false => document,
    };
    match (tokens, document) {
        (Tokens::User, Document::Tokens(own)) => {
            own.iter().map(|(token, _)| token.to_vec()).collect()
        }
        (Tokens::Bytes, document) => document.bytes().iter().map(|&byte| vec![byte]).collect(),
        (Tokens::Chunks, document) => {
            let mut found = Vec::new();
            rules
                .chunks
                .cut(document.bytes(), |chunk| found.push(chunk.to_vec()));
            found
        }
        (tokens, Document::Text(text)) => {
            let mut cutter = Cutter::default();
            // SAFETY: portable.
            unsafe { cutter.cut(text, tokens, rules, Isa::Plain, &mut Spans::new()) };
            let places = cutter.starts.iter().zip(&cutter.ends);
            places
                .map(|(&start, &end)| cutter.text[start as usize..end as usize].to_vec())
                .collect()
        }
        _ => Vec::new(),
    }
}

/// Receives batches of words: the text, followed by a block of zeros, and the starts and ends of the words in it.
pub(crate) type TakeWords<'a> = &'a mut dyn FnMut(&[u8], &[u32], &[u32]);

/// Cuts a text: normalizes it into `scratch` as far as words depend on it, folds it by at most `signs`, and passes the
/// byte ranges of its words to `take`, in order. Safety: the processor must have `isa`.
pub(crate) unsafe fn cut_words(
    text: &str,
    fold: Fold,
    part_katakana: bool,
    isa: Isa,
    scratch: &mut Vec<u8>,
    spans: &mut Spans,
    take: TakeWords<'_>,
) {
    // SAFETY: guaranteed by the caller.
    unsafe { normalize::normalize(text, Spaces::Words, isa, scratch) };
    let mut folded = Vec::new();
    if !fold.is_empty() && fold.apply(scratch, &mut folded) {
        let folded = String::from_utf8_lossy(&folded);
        // SAFETY: guaranteed by the caller.
        unsafe { normalize::normalize(&folded, Spaces::Words, isa, scratch) };
    }
    let len = pad(scratch);
    // SAFETY: guaranteed by the caller.
    unsafe {
        words::cut(
            scratch,
            len,
            part_katakana,
            isa,
            spans,
            &mut |starts, ends| take(scratch, starts, ends),
        );
    }
}

/// Appends a block of zeros to a text, for kernels that read whole blocks; returns the length of the text.
pub(crate) fn pad(text: &mut Vec<u8>) -> usize {
    let len = text.len();
    text.resize(len + BLOCK, 0);
    len
}

/// Whether a scalar has Unicode's whitespace property.
pub(crate) fn is_white_space(c: char) -> bool {
    tables::property(u32::from(c)) & tables::WHITE_SPACE != 0
}

/// Whether two adjacent words would be joined if one of them ends with this scalar: not in scripts without spaces.
pub(crate) fn joins_words(c: char) -> bool {
    let class = tables::property(u32::from(c)) & tables::WORD_BREAK;
    !matches!(
        class,
        tables::properties::OTHER | tables::properties::KATAKANA
    )
}

/// Whether a word that ends with `last`, preceded by `earlier`, may continue with `next` if they are adjacent (rules
/// WB4 to WB13 of UAX #29).
pub(crate) fn may_be_one_word(earlier: Option<char>, last: char, next: char) -> bool {
    use tables::properties as p;
    let class = |c: char| tables::property(u32::from(c)) & tables::WORD_BREAK;
    let is_inside = |c: char| {
        matches!(
            class(c),
            p::EXTEND | p::FORMAT | p::ZWJ | p::LETTER | p::HEBREW | p::NUMERIC | p::CONNECTOR
        )
    };
    let is_between = |c: char| {
        matches!(
            class(c),
            p::SINGLE_QUOTE | p::MID_NUM_LET | p::MID_LETTER | p::MID_NUM
        )
    };
    match is_inside(last) {
        true => is_inside(next) || is_between(next),
        false => is_between(last) && earlier.is_some_and(is_inside) && is_inside(next),
    }
}

/// Same as [`normalize`], with a given instruction set. Safety: the processor must have `isa`.
pub(crate) unsafe fn normalize_into(text: &str, isa: Isa, out: &mut Vec<u8>) {
    // SAFETY: guaranteed by the caller.
    unsafe { normalize::normalize(text, Spaces::Collapse, isa, out) };
}
