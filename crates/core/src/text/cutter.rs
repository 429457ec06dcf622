//! What are the tokens of a text by rules other than the default ones?
//!
//! Slower than [`super::words`], but supports all rules: markup, folding, a dictionary, whole lines and sentences.

use std::sync::Arc;

use super::chinese::{CHINESE_LIBRARY, Dictionary};
use super::chunks::{CHUNK_LIBRARY, Chunks};
use super::fold::Fold;
use super::markup::{MARKUP_LIBRARY, strip_html};
use super::normalize::{self, Spaces};
use super::simplified::SIMPLIFIED_LIBRARY;
use super::tables::properties::{KATAKANA, OTHER};
use super::{Spans, Tokens, pad, tables, units, words};
use crate::isa::Isa;

/// Text rules in addition to the default ones.
#[derive(Debug, Clone, Default)]
pub struct TextRules {
    /// Whether texts are HTML, of which only the visible text counts.
    pub is_html: bool,
    pub fold: Fold,
    /// The words of tokens `chinese`; `None` for the standard dictionary.
    pub dictionary: Option<Arc<Dictionary>>,
    /// Words that are ignored.
    pub stop_words: Option<Arc<StopWords>>,
    /// How bytes are cut.
    pub chunks: Chunks,
    /// Whether numbers, model numbers, sizes and colors identify what a text names: they are features of their own.
    pub has_identifiers: bool,
    /// Whether the first line of a text is the value within which it is compared, and the text begins after it.
    pub has_value: bool,
}

impl TextRules {
    /// Whether the normalized text is that of the default rules.
    pub(crate) fn keep_text(&self) -> bool {
        !self.is_html && self.fold.is_empty()
    }

    /// Whether words can be cut without the whole text being folded first.
    pub(crate) fn keep_words(&self) -> bool {
        !self.is_html && self.fold.at_most_signs()
    }

    /// Returns the libraries that affect the tokens, with their versions: other versions produce other features.
    pub fn libraries(&self, tokens: Tokens) -> Vec<&'static str> {
        let by_content = matches!(self.chunks, Chunks::Content(_));
        [
            (self.is_html, MARKUP_LIBRARY),
            (self.fold.simplifies(), SIMPLIFIED_LIBRARY),
            (tokens == Tokens::Chinese, CHINESE_LIBRARY),
            (tokens == Tokens::Chunks && by_content, CHUNK_LIBRARY),
        ]
        .into_iter()
        .filter(|(acts, _)| *acts)
        .map(|(_, library)| library)
        .collect()
    }
}

/// Normalizes texts by any rules, reusing its memory.
#[derive(Debug, Default)]
pub(crate) struct Preparer {
    visible: String,
    folded: Vec<u8>,
}

impl Preparer {
    /// Writes the normalized, folded text without markup to `out`. Safety: the processor must have `isa`.
    pub(crate) unsafe fn prepare(
        &mut self,
        text: &str,
        rules: &TextRules,
        isa: Isa,
        out: &mut Vec<u8>,
    ) {
        let Preparer { visible, folded } = self;
        let text = visible_text(text, rules, visible);
        // SAFETY: guaranteed by the caller.
        unsafe { normalize_folded(text, rules.fold, isa, folded, out) };
    }

    pub(crate) fn release(&mut self) {
        *self = Preparer::default();
    }
}

fn visible_text<'a>(text: &'a str, rules: &TextRules, scratch: &'a mut String) -> &'a str {
    if !rules.is_html {
        return text;
    }
    strip_html(text, scratch);
    scratch
}

/// Safety: the processor must have `isa`.
unsafe fn normalize_folded(
    text: &str,
    fold: Fold,
    isa: Isa,
    scratch: &mut Vec<u8>,
    out: &mut Vec<u8>,
) {
    // SAFETY: guaranteed by the caller.
    unsafe { normalize::normalize(text, Spaces::Collapse, isa, out) };
    if fold.is_empty() || !fold.apply(out, scratch) {
        return;
    }
    let folded = String::from_utf8_lossy(scratch);
    // SAFETY: guaranteed by the caller.
    unsafe { normalize::normalize(&folded, Spaces::Collapse, isa, out) };
}

/// Cuts texts by any rules, reusing its memory.
#[derive(Debug, Default)]
pub(crate) struct Cutter {
    preparer: Preparer,
    /// One normalized line, sentence or paragraph, or the text between Chinese words, with padding.
    piece: Vec<u8>,
    /// The text in which the tokens are located, followed by a block of zeros.
    pub(crate) text: Vec<u8>,
    pub(crate) starts: Vec<u32>,
    pub(crate) ends: Vec<u32>,
}

impl Cutter {
    /// Finds the tokens of a text: `text[starts[i]..ends[i]]`, in order. There are none for kinds that do not apply to
    /// texts. Safety: the processor must have `isa`.
    pub(crate) unsafe fn cut(
        &mut self,
        text: &str,
        tokens: Tokens,
        rules: &TextRules,
        isa: Isa,
        spans: &mut Spans,
    ) {
        self.text.clear();
        self.starts.clear();
        self.ends.clear();
        match tokens {
            Tokens::Sentence | Tokens::Line | Tokens::Paragraph => {
                // SAFETY: guaranteed by the caller.
                unsafe { self.cut_units(text, tokens, rules, isa) };
                pad(&mut self.text);
            }
            Tokens::Bytes | Tokens::Chunks | Tokens::User => {}
            _ => {
                // SAFETY: guaranteed by the caller.
                unsafe { self.preparer.prepare(text, rules, isa, &mut self.text) };
                let len = pad(&mut self.text);
                match tokens {
                    Tokens::Char => self.cut_scalars(len),
                    // SAFETY: guaranteed by the caller.
                    Tokens::Chinese => unsafe { self.cut_chinese(len, rules, isa, spans) },
                    // SAFETY: guaranteed by the caller.
                    Tokens::Script => unsafe {
                        self.cut_words(len, true, isa, spans);
                        self.pair_characters();
                    },
                    // SAFETY: guaranteed by the caller.
                    _ => unsafe { self.cut_words(len, tokens == Tokens::Auto, isa, spans) },
                }
            }
        }
    }

    pub(crate) fn release(&mut self) {
        *self = Cutter::default();
    }

    fn push(&mut self, start: usize, end: usize) {
        self.starts.push(start as u32);
        self.ends.push(end as u32);
    }

    /// Safety: the processor must have `isa`.
    unsafe fn cut_units(&mut self, text: &str, tokens: Tokens, rules: &TextRules, isa: Isa) {
        let Cutter {
            preparer: Preparer { visible, folded },
            piece,
            text: all,
            starts,
            ends,
        } = self;
        let text = visible_text(text, rules, visible);
        let take = |unit: &str| {
            // SAFETY: guaranteed by the caller.
            unsafe { normalize_folded(unit, rules.fold, isa, folded, piece) };
            if !piece.is_empty() {
                starts.push(all.len() as u32);
                all.extend_from_slice(piece);
                ends.push(all.len() as u32);
            }
        };
        match tokens {
            Tokens::Sentence => units::sentences(text, take),
            Tokens::Paragraph => units::paragraphs(text, take),
            _ => units::lines(text, take),
        }
    }

    fn cut_scalars(&mut self, len: usize) {
        let is_start = |byte: u8| byte & 0xC0 != 0x80;
        let starts = (0..len)
            .filter(|&i| is_start(self.text[i]))
            .map(|i| i as u32);
        self.starts.extend(starts);
        self.ends.extend(self.starts.iter().skip(1));
        self.ends.extend((len > 0).then_some(len as u32));
    }

    /// Safety: the processor must have `isa`.
    unsafe fn cut_words(&mut self, len: usize, part_katakana: bool, isa: Isa, spans: &mut Spans) {
        let Cutter {
            text, starts, ends, ..
        } = self;
        let mut take = |from: &[u32], to: &[u32]| {
            starts.extend_from_slice(from);
            ends.extend_from_slice(to);
        };
        // SAFETY: guaranteed by the caller.
        unsafe { words::cut(text, len, part_katakana, isa, spans, &mut take) };
    }

    /// Combines neighboring characters of scripts without spaces into overlapping pairs; a single one is kept.
    fn pair_characters(&mut self) {
        let Cutter {
            text, starts, ends, ..
        } = self;
        let is_character = |start: u32| {
            let (c, _) = super::utf8::decode(text, start as usize);
            matches!(tables::property(c) & tables::WORD_BREAK, OTHER | KATAKANA)
        };
        let (mut num_kept, mut was_paired) = (0, false);
        for i in 0..starts.len() {
            let (start, mut end) = (starts[i], ends[i]);
            let is_paired = i + 1 < starts.len()
                && starts[i + 1] == end
                && is_character(start)
                && is_character(end);
            if is_paired {
                end = ends[i + 1];
            }
            // The last of a run is in the previous pair.
            if is_paired || !was_paired {
                (starts[num_kept], ends[num_kept]) = (start, end);
                num_kept += 1;
            }
            was_paired = is_paired;
        }
        starts.truncate(num_kept);
        ends.truncate(num_kept);
    }

    /// Safety: the processor must have `isa`.
    unsafe fn cut_chinese(&mut self, len: usize, rules: &TextRules, isa: Isa, spans: &mut Spans) {
        let standard;
        let dictionary = match &rules.dictionary {
            Some(dictionary) => dictionary,
            None => {
                standard = Dictionary::standard();
                &standard
            }
        };
        let text = std::mem::take(&mut self.text);
        let prepared = String::from_utf8_lossy(&text[..len]);
        let mut state = (self, spans);
        dictionary.cut(
            &prepared,
            &mut state,
            |(cutter, _), start, end| cutter.push(start, end),
            |(cutter, spans), start, end| {
                let between = &text[start..end];
                if !has_alphanumeric(between) {
                    return;
                }
                let Cutter {
                    piece,
                    starts,
                    ends,
                    ..
                } = &mut **cutter;
                piece.clear();
                piece.extend_from_slice(between);
                let len = pad(piece);
                let mut take = |from: &[u32], to: &[u32]| {
                    starts.extend(from.iter().map(|&at| start as u32 + at));
                    ends.extend(to.iter().map(|&at| start as u32 + at));
                };
                // SAFETY: guaranteed by the caller.
                unsafe { words::cut(piece, len, true, isa, spans, &mut take) };
            },
        );
        let (cutter, _) = state;
        cutter.text = text;
    }
}

/// Whether there may be a word: a letter, a digit, or anything other than punctuation.
fn has_alphanumeric(text: &[u8]) -> bool {
    let mut at = 0;
    while at < text.len() {
        let (c, num_bytes) = super::utf8::decode(text, at);
        if tables::property(c) & tables::ALPHANUMERIC != 0 {
            return true;
        }
        at += num_bytes;
    }
    false
}

#[derive(Debug, Clone, Default)]
pub struct StopWords {
    words: Vec<String>,
}

impl StopWords {
    /// Creates the list from words that are normalized and folded like the texts.
    pub fn new(words: Vec<String>) -> Self {
        StopWords { words }
    }

    pub fn words(&self) -> &[String] {
        &self.words
    }
}
