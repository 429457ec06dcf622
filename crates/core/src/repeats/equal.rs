//! Are two stretches equal, word for word, and where do they stand in their texts?

use super::marks;
use super::placed::PlacedWords;
use crate::text::PartCutter;

/// A stretch of words that should equal one of another text.
#[derive(Debug, Clone, Copy)]
pub struct WordStretch {
    /// Its first word.
    pub begin: usize,
    /// The first word of what it should equal.
    pub other_begin: usize,
    /// How many words it has.
    pub num_words: usize,
    /// Whether the word behind it begins another one.
    pub is_followed: bool,
    /// How many words from its first on go, those of other stretches too; 0 where the word before the first goes.
    pub num_going: usize,
}

/// Bytes of a stretch that goes, and of the one that it repeats.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Repeat {
    /// From the first word on, with the marks before it that are closed within what goes.
    pub start: u32,
    /// Behind the last word, the marks that belong to it and the whitespace there; where another stretch follows, up to it.
    pub end: u32,
    /// From the first word on, of the other.
    pub kept_start: u32,
    /// Behind the last word of the other.
    pub kept_end: u32,
}

impl PlacedWords<'_> {
    /// Returns where a stretch and what it should equal in `other` stand, if they are equal.
    ///
    /// There is no such stretch where a text has too few words.
    ///
    /// # Cost
    /// Linear in the words of the stretch and, where a mark touches its first word, in what stands between the words that go.
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
