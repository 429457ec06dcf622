//! Are two texts equal after normalization?

use super::value_salt;
use crate::hash::{mix64, xxh3_64_with_seed};
use crate::isa::Isa;
use crate::text::{self, Document, Preparer, TextRules};

/// Hashes normalized texts, reusing its memory; keep one per thread.
#[derive(Debug)]
pub struct TextDigester {
    rules: TextRules,
    isa: Isa,
    preparer: Preparer,
    normalized: Vec<u8>,
}

impl TextDigester {
    /// Creates a digester for texts normalized by these rules.
    pub fn new(rules: TextRules, isa: Isa) -> Self {
        TextDigester {
            rules,
            isa,
            preparer: Preparer::default(),
            normalized: Vec::new(),
        }
    }

    /// Returns 128 bits that are equal for equal normalized texts with equal values, or `None` for an empty one.
    pub fn digest(&mut self, text: &str) -> Option<[u64; 2]> {
        if let (true, (value, Document::Text(text))) =
            (self.rules.has_value, Document::Text(text).split_value())
        {
            let salt = value_salt(value);
            let digest = self.digest_text(text).unwrap_or_default();
            return Some(digest.map(|half| mix64(half ^ salt)));
        }
        self.digest_text(text)
    }

    fn digest_text(&mut self, text: &str) -> Option<[u64; 2]> {
        // SAFETY: an `Isa` is created only if the processor has it.
        unsafe {
            match self.rules.keep_text() {
                true => text::normalize_into(text, self.isa, &mut self.normalized),
                false => self
                    .preparer
                    .prepare(text, &self.rules, self.isa, &mut self.normalized),
            }
        }
        if self.normalized.is_empty() {
            return None;
        }
        Some([0, 1].map(|seed| xxh3_64_with_seed(&self.normalized, seed)))
    }
}
