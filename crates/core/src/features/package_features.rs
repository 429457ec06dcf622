//! How are the features of other packages reproduced?
//!
//! A recipe names a package, which determines hash, tokens and permutations together; other fields must not contradict
//! it. Accidental properties of the packages (wrapping 64-bit arithmetic, dropped words) are reproduced too.

use super::{Extractor, Shape};
use crate::text::{self, Fold, Tokens};

impl Extractor {
    /// Extracts features as the package `simhash` does: its own tokens, each a feature; even an empty text has one.
    pub(super) fn extract_as_simhash_package(&mut self, text: &str) -> Shape {
        let hash = self.rules.hash;
        let occurrences = &mut self.occurrences;
        let num_scalars = text::simhash_package_tokens(text, &mut self.normalized, |token| {
            occurrences.push(hash.of(token, 0));
        });
        match num_scalars {
            0 => {
                self.normalize(text);
                match self.normalized.is_empty() {
                    true => Shape::Empty,
                    false => Shape::Short,
                }
            }
            1..4 => Shape::Short,
            _ => Shape::Full,
        }
    }

    /// Extracts features as users of `datasketch` do: shingles are joined tokens; a text without tokens is one.
    pub(super) fn extract_joined(&mut self, text: &str) -> Shape {
        self.joined.clear();
        let spaced = self.rules.tokens != Tokens::Char;
        if spaced {
            self.cut_words_into_joined(text);
        } else {
            self.normalize(text);
            let text = String::from_utf8_lossy(&self.normalized);
            for c in text.chars() {
                self.joined
                    .push(c.encode_utf8(&mut [0; 4]).as_bytes(), false);
            }
        }
        if self.joined.len() == 0 {
            self.normalize(text);
            if self.normalized.is_empty() {
                return Shape::Empty;
            }
            self.joined.push(&self.normalized, false);
            self.joined.hash(1, self.rules.hash, &mut self.occurrences);
            return Shape::Short;
        }
        let width = self.rules.shingle as usize;
        let taken = width.min(self.joined.len());
        self.joined
            .hash(taken, self.rules.hash, &mut self.occurrences);
        match taken < width {
            true => Shape::Short,
            false => Shape::Full,
        }
    }

    fn cut_words_into_joined(&mut self, text: &str) {
        let Extractor {
            joined,
            normalized,
            spans,
            ..
        } = self;
        let mut take = |text: &[u8], starts: &[u32], ends: &[u32]| {
            for (&start, &end) in starts.iter().zip(ends) {
                joined.push(&text[start as usize..end as usize], true);
            }
        };
        let part_katakana = self.rules.tokens == Tokens::Auto;
        // SAFETY: `new` keeps only an instruction set that the processor has.
        unsafe {
            let isa = self.isa;
            text::cut_words(
                text,
                Fold::default(),
                part_katakana,
                isa,
                normalized,
                spans,
                &mut take,
            )
        };
    }
}
