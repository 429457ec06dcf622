//! Are two stretches equal word for word, and where are they in their texts?

use super::marks;
use super::placed::PlacedWords;
use crate::text::PartCutter;

/// A stretch of words that should equal a stretch of another text.
#[derive(Debug, Clone, Copy)]
pub struct WordStretch {
    /// Its first word.
    pub begin: usize,
    /// The first word of the stretch that it should equal.
    pub other_begin: usize,
    pub num_words: usize,
    /// Whether the word after it begins another stretch.
    pub is_followed: bool,
    /// Removed words in a row from its first on, of other stretches too; 0 if the word before is removed.
    pub num_going: usize,
}

/// Byte ranges of a removed stretch and of the stretch that it repeats.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Repeat {
    /// Start: the first word, including preceding marks that are closed within the removed words.
    pub start: u32,
    /// End: after the last word, its marks and the following whitespace; if another stretch follows, up to that.
    pub end: u32,
    /// Start of the other stretch: its first word.
    pub kept_start: u32,
    /// End of the other stretch: after its last word.
    pub kept_end: u32,
}

impl PlacedWords<'_> {
    /// Returns the ranges of a stretch and of the one it should equal in `other`, if they exist and are equal.
    pub fn repeat(
        &self,
        stretch: WordStretch,
        other: &PlacedWords<'_>,
        cutter: &mut PartCutter,
    ) -> Option<Repeat> {
        let WordStretch {
            begin,
            other_begin,
            num_words,
            is_followed,
            num_going,
        } = stretch;
        let (behind, other_behind) = (begin + num_words, other_begin + num_words);
        if num_words == 0 || behind > self.starts.len() || other_behind > other.starts.len() {
            return None;
        }
        let mut pairs = (begin..behind).zip(other_begin..other_behind);
        if !pairs.all(|(i, j)| cutter.are_equal(self.word(i), other.word(j))) {
            return None;
        }
        let start = match num_going {
            0 => self.starts[begin],
            _ => self.start_of(begin, num_going.max(num_words)) as u32,
        };
        let end = match self.starts.get(behind) {
            Some(&next) if is_followed => next,
            _ => {
                let (gap, is_last) = self.gap_behind(behind - 1);
                self.ends[behind - 1] + marks::behind(gap, is_last) as u32
            }
        };
        Some(Repeat {
            start,
            end,
            kept_start: other.starts[other_begin],
            kept_end: other.ends[other_behind - 1],
        })
    }
}
