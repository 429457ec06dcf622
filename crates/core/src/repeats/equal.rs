//! Are two stretches equal, word for word, and where do they stand in their texts?

use crate::text::PartCutter;

/// A text and where its words stand.
#[derive(Debug, Clone, Copy)]
pub struct PlacedWords<'a> {
    /// The text.
    pub text: &'a str,
    /// Where each word begins.
    pub starts: &'a [u32],
    /// Where each ends.
    pub ends: &'a [u32],
}

/// Bytes of a stretch that goes, and of the one that it repeats.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Repeat {
    /// From the first word on.
    pub start: u32,
    /// Behind the last word, what touches it, and the spaces there; where the next word goes too, up to it.
    pub end: u32,
    /// From the first word on, of the other.
    pub kept_start: u32,
    /// Behind the last word of the other.
    pub kept_end: u32,
}

impl PlacedWords<'_> {
    fn word(&self, i: usize) -> &str {
        &self.text[self.starts[i] as usize..self.ends[i] as usize]
    }

    /// Returns where `num_words` words from word `begin` on, and those of `other` from `other_begin` on, stand, if they are equal.
    ///
    /// `is_followed` says whether the next word goes too. There is no such stretch where a text has too few words.
    pub fn repeat(
        &self,
        begin: usize,
        other: &PlacedWords<'_>,
        other_begin: usize,
        num_words: usize,
        is_followed: bool,
        cutter: &mut PartCutter,
    ) -> Option<Repeat> {
        let (behind, other_behind) = (begin + num_words, other_begin + num_words);
        if num_words == 0 || behind > self.starts.len() || other_behind > other.starts.len() {
            return None;
        }
        let mut pairs = (begin..behind).zip(other_begin..other_behind);
        if !pairs.all(|(i, j)| cutter.are_equal(self.word(i), other.word(j))) {
            return None;
        }
        let end = match self.starts.get(behind) {
            Some(&next) if is_followed => next,
            next => {
                let limit = next.map_or(self.text.len(), |&next| next as usize);
                let from = self.ends[behind - 1] as usize;
                (from + touching(&self.text.as_bytes()[from..limit])) as u32
            }
        };
        Some(Repeat {
            start: self.starts[begin],
            end,
            kept_start: other.starts[other_begin],
            kept_end: other.ends[other_behind - 1],
        })
    }
}

/// Bytes of what is no space, and of the spaces behind it.
fn touching(bytes: &[u8]) -> usize {
    let is_space = |&b: &u8| matches!(b, b' ' | b'\t'..=b'\r');
    let solid = bytes.iter().position(is_space).unwrap_or(bytes.len());
    let spaces = bytes[solid..].iter().take_while(|&b| is_space(b)).count();
    solid + spaces
}
