//! Where are the lines, paragraphs, sentences and words of an unnormalized text?
//!
//! Tokens are positions in the normalized text. Code that removes parts of a text needs positions in the text itself,
//! so here the text is cut first, and each part is normalized separately.

use super::normalize::{self, Spaces};
use super::{Spans, pad, units, words};
use crate::hash::xxh3_64_with_seed;
use crate::isa::Isa;
use crate::token_hash::TokenHasher;

/// The units into which texts are cut in place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PartUnit {
    /// A line with its line end. Blank lines are not parts.
    Line,
    /// Consecutive nonblank lines, with the blank lines after them.
    Paragraph,
    /// A sentence by UAX #29, with the spaces after it. Blank sentences are not parts.
    Sentence,
}

named!(PartUnit {
    Line: "line",
    Paragraph: "paragraph",
    Sentence: "sentence",
});

/// Byte ranges of the parts of texts, text by text.
#[derive(Debug, Default)]
pub struct Parts {
    pub counts: Vec<u32>,
    pub starts: Vec<u32>,
    pub ends: Vec<u32>,
    /// For words, the XXH3-64 hash of each normalized word.
    pub hashes: Vec<u64>,
}

impl Parts {
    /// Clears the parts but keeps their memory.
    pub fn clear(&mut self) {
        self.counts.clear();
        self.starts.clear();
        self.ends.clear();
        self.hashes.clear();
    }

    pub fn append(&mut self, mut other: Parts) {
        self.counts.append(&mut other.counts);
        self.starts.append(&mut other.starts);
        self.ends.append(&mut other.ends);
        self.hashes.append(&mut other.hashes);
    }
}

/// Cuts texts in place, reusing its memory.
#[derive(Debug)]
pub struct PartCutter {
    isa: Isa,
    hasher: TokenHasher,
    spans: Spans,
    padded: Vec<u8>,
    normal: Vec<u8>,
    other_normal: Vec<u8>,
}

impl PartCutter {
    /// Creates a cutter for an instruction set, which does not affect the result.
    pub fn new(isa: Isa) -> Self {
        PartCutter {
            isa,
            hasher: TokenHasher::new(0, isa),
            spans: Spans::new(),
            padded: Vec::new(),
            normal: Vec::new(),
            other_normal: Vec::new(),
        }
    }

    /// Appends the parts of a text under 4 GB.
    pub fn cut(&mut self, text: &str, unit: PartUnit, out: &mut Parts) {
        let before = out.starts.len();
        let place = |part: &str| part.as_ptr() as usize - text.as_ptr() as usize;
        let mut push = |part: &str| {
            if !units::is_blank(part) {
                out.starts.push(place(part) as u32);
                out.ends.push((place(part) + part.len()) as u32);
            }
        };
        match unit {
            PartUnit::Line => units::lines(text, &mut push),
            PartUnit::Paragraph => units::paragraphs(text, &mut push),
            PartUnit::Sentence => units::sentences(text, &mut push),
        }
        out.counts.push((out.starts.len() - before) as u32);
        let (starts, ends) = (&out.starts[before..], &mut out.ends[before..]);
        match unit {
            PartUnit::Line => {
                for end in ends {
                    *end += line_end(&text[*end as usize..]);
                }
            }
            PartUnit::Paragraph => {
                for (i, end) in ends.iter_mut().enumerate() {
                    *end = starts.get(i + 1).map_or(text.len() as u32, |&next| next);
                }
            }
            PartUnit::Sentence => {}
        }
    }

    /// Appends the positions of the words of a text under 4 GB, by the rule of tokens `auto`, without their hashes.
    pub fn place_words(&mut self, text: &str, out: &mut Parts) {
        self.padded.clear();
        self.padded.extend_from_slice(text.as_bytes());
        self.place_padded(out);
    }

    /// Same as [`PartCutter::place_words`], with the hash of each word, normalized separately.
    pub fn cut_words(&mut self, text: &str, out: &mut Parts) {
        let before = out.starts.len();
        self.padded.clear();
        self.padded.extend_from_slice(text.as_bytes());
        // The case of a letter affects no boundary.
        self.padded.make_ascii_lowercase();
        self.place_padded(out);
        let (starts, ends) = (&out.starts[before..], &out.ends[before..]);
        let first = out.hashes.len();
        self.hasher
            .hash(&self.padded, starts, ends, &mut out.hashes);
        if text.is_ascii() {
            return;
        }
        // ASCII words are normalized by their lower case; other words are normalized one by one.
        let places = starts.iter().zip(ends);
        for (hash, (&from, &to)) in out.hashes[first..].iter_mut().zip(places) {
            let word = from as usize..to as usize;
            if !self.padded[word.clone()].is_ascii() {
                normal_word(&text[word], self.isa, &mut self.normal);
                *hash = xxh3_64_with_seed(&self.normal, 0);
            }
        }
    }

    /// Appends the positions of the words of the text in `padded`, to which the padding is added.
    fn place_padded(&mut self, out: &mut Parts) {
        let before = out.starts.len();
        let len = pad(&mut self.padded);
        // SAFETY: an `Isa` is created only if the processor has it.
        unsafe {
            words::cut(
                &self.padded,
                len,
                true,
                self.isa,
                &mut self.spans,
                &mut |from, to| {
                    out.starts.extend_from_slice(from);
                    out.ends.extend_from_slice(to);
                },
            );
        }
        out.counts.push((out.starts.len() - before) as u32);
    }

    /// The hash of a word, normalized separately and without commas, if it contains an ASCII digit; never 0.
    pub fn number(&mut self, word: &str) -> Option<u64> {
        if word.is_ascii() && !word.bytes().any(|byte| byte.is_ascii_digit()) {
            return None;
        }
        normal_word(word, self.isa, &mut self.normal);
        if !self.normal.iter().any(u8::is_ascii_digit) {
            return None;
        }
        self.normal.retain(|&byte| byte != b',');
        Some(xxh3_64_with_seed(&self.normal, 0).max(1))
    }

    /// Whether two words are equal after each is normalized.
    pub fn are_equal(&mut self, word: &str, other: &str) -> bool {
        if word.len() == other.len() && word.eq_ignore_ascii_case(other) {
            return true;
        }
        if word.is_ascii() && other.is_ascii() {
            return false;
        }
        normal_word(word, self.isa, &mut self.normal);
        normal_word(other, self.isa, &mut self.other_normal);
        self.normal == self.other_normal
    }
}

/// Returns the number of bytes of a line end at the start of a text.
fn line_end(text: &str) -> u32 {
    if text.starts_with("\r\n") {
        return 2;
    }
    text.chars().next().map_or(0, |c| c.len_utf8() as u32)
}

/// Sets `out` to the normalized form of a word.
fn normal_word(word: &str, isa: Isa, out: &mut Vec<u8>) {
    out.clear();
    // SAFETY: an `Isa` is created only if the processor has it.
    unsafe { normalize::normalize(word, Spaces::Collapse, isa, out) };
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parts(text: &str, unit: PartUnit) -> Vec<&str> {
        let mut found = Parts::default();
        PartCutter::new(Isa::Plain).cut(text, unit, &mut found);
        assert_eq!(found.counts, [found.starts.len() as u32]);
        let places = found.starts.iter().zip(&found.ends);
        places
            .map(|(&from, &to)| &text[from as usize..to as usize])
            .collect()
    }

    #[test]
    fn parts_take_their_ends_with_them() {
        let text = "a b\r\n \n\u{a0}\nc\u{2028}d";
        assert_eq!(parts(text, PartUnit::Line), ["a b\r\n", "c\u{2028}", "d"]);
        assert_eq!(
            parts("\n\na\nb\n\n \nc\n\n", PartUnit::Paragraph),
            ["a\nb\n\n \n", "c\n\n"]
        );
        assert_eq!(
            parts("One. Two!\n\nThree", PartUnit::Sentence),
            ["One. ", "Two!\n", "Three"]
        );
        assert_eq!(parts("", PartUnit::Line), [""; 0]);
    }

    #[test]
    fn words_stand_where_they_are_in_the_text() {
        let text = "Don't  STOP, \u{fb01}ne \u{732b}\u{732b}! ".repeat(40);
        for isa in Isa::available() {
            let mut found = Parts::default();
            PartCutter::new(isa).cut_words(&text, &mut found);
            let words: Vec<&str> = found
                .starts
                .iter()
                .zip(&found.ends)
                .map(|(&from, &to)| &text[from as usize..to as usize])
                .collect();
            assert_eq!(
                words[..5],
                ["Don't", "STOP", "\u{fb01}ne", "\u{732b}", "\u{732b}"]
            );
            assert_eq!(found.counts, [200]);
            let hash = |word: &str| xxh3_64_with_seed(word.as_bytes(), 0);
            assert_eq!(
                found.hashes[..4],
                [hash("don't"), hash("stop"), hash("fine"), hash("\u{732b}")]
            );
        }
    }

    #[test]
    fn words_are_equal_as_their_hashes_are() {
        let words = [
            "Fine",
            "fine",
            "FINE",
            "\u{fb01}ne",
            "fin",
            "\u{df}",
            "SS",
            "ss",
            "\u{e9}",
            "e\u{301}",
            "E\u{301}",
            "\u{c9}",
            "\u{212a}",
            "k",
            "\u{732b}",
        ];
        for isa in Isa::available() {
            let mut cutter = PartCutter::new(isa);
            let mut found = Parts::default();
            for word in words {
                cutter.cut_words(word, &mut found);
            }
            assert_eq!(found.counts, [1; 15]);
            for (word, hash) in words.iter().zip(&found.hashes) {
                for (other, other_hash) in words.iter().zip(&found.hashes) {
                    let is_equal = cutter.are_equal(word, other);
                    assert_eq!(is_equal, hash == other_hash, "{word} {other}");
                }
            }
        }
    }
}
