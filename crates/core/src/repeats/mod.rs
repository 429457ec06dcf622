//! Which stretches of words occur earlier?
//!
//! A window of N words is repeated if the first equal one is in an earlier document, or in the same document without
//! overlapping it. Windows are identified by 64-bit hashes; before a stretch is removed, its words are compared (see
//! [`PlacedWords`]). Winnowing only saves work: a window whose least inner hash occurs once repeats nothing (Schleimer,
//! Wilkerson and Aiken, SIGMOD 2003, section 3).
//!
//! Whether a word is removed does not depend on what else is removed: it is removed if a window that contains it equals
//! an earlier window that does not overlap it. Removing the first match and searching the rest, as suffix arrays
//! suggest, would make the answer depend on the order of removal. Hashes only propose; everything removed was compared
//! word by word.

mod marks;
mod seen;
mod stretches;
#[cfg(test)]
mod tests;

use crate::text::PartCutter;

pub use seen::{SeenTwice, WindowReader};
pub use stretches::{FewStretches, Stretches, repeated_stretches};

/// A hash and a place, or two places: the stored form of a window.
pub type Pair = [u64; 2];

/// A text and the positions of its words.
#[derive(Debug, Clone, Copy)]
pub struct PlacedWords<'a> {
    pub text: &'a str,
    pub starts: &'a [u32],
    pub ends: &'a [u32],
}

impl PlacedWords<'_> {
    pub(super) fn word(&self, i: usize) -> &str {
        &self.text[self.starts[i] as usize..self.ends[i] as usize]
    }

    /// Returns the text between word `i` and the next one, and whether there is no next one.
    pub(super) fn gap_behind(&self, i: usize) -> (&str, bool) {
        let next = self.starts.get(i + 1).map(|&next| next as usize);
        let gap = &self.text[self.ends[i] as usize..next.unwrap_or(self.text.len())];
        (gap, next.is_none())
    }
}

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

const NONE: u64 = u64::MAX;
/// Pairs between two checks of how full the table is.
const PAIRS_AT_ONCE: usize = 1 << 16;

/// The first place of each hash. Memory: 32 to 64 bytes per hash, however often it occurs, or per expected pair.
#[derive(Debug)]
pub struct FirstPlaces {
    slots: Vec<Pair>,
    num_hashes: usize,
    /// Number of upper bits that are equal in all hashes.
    skip_bits: u32,
}

impl FirstPlaces {
    /// Creates a table for hashes whose `skip_bits` upper bits are equal.
    pub fn new(skip_bits: u32) -> Self {
        FirstPlaces {
            slots: Vec::new(),
            num_hashes: 0,
            skip_bits,
        }
    }

    /// Clears the table and allocates space for about `num_expected` hashes; it grows as needed.
    pub fn clear(&mut self, num_expected: usize) {
        let num_slots = (2 * num_expected).next_power_of_two().max(2);
        self.slots.clear();
        self.slots.resize(num_slots, [0, NONE]);
        self.num_hashes = 0;
    }

    /// Records pairs (hash, place), in any order. Places must be below 2^64 - 1. Cost: one table access per pair.
    pub fn note(&mut self, pairs: &[Pair]) {
        for some in pairs.chunks(PAIRS_AT_ONCE) {
            self.reserve(some.len());
            let shift = self.shift();
            for &[hash, place] in some {
                let slot = find(&self.slots, hash, self.skip_bits, shift);
                let [_, first] = self.slots[slot];
                self.num_hashes += usize::from(first == NONE);
                self.slots[slot] = [hash, place.min(first)];
            }
        }
    }

    /// Calls `take` with the place, and the first place of its hash, for each recorded pair with an earlier place.
    pub fn for_each_later(&self, pairs: &[Pair], mut take: impl FnMut(u64, u64)) {
        let shift = self.shift();
        for &[hash, place] in pairs {
            let [_, first] = self.slots[find(&self.slots, hash, self.skip_bits, shift)];
            if first != place {
                take(place, first);
            }
        }
    }

    fn shift(&self) -> u32 {
        u64::BITS - self.slots.len().trailing_zeros()
    }

    /// Makes space for `num_more` hashes, with at most half of the slots used.
    fn reserve(&mut self, num_more: usize) {
        let num_slots = (2 * (self.num_hashes + num_more)).next_power_of_two();
        if num_slots <= self.slots.len() {
            return;
        }
        let old = std::mem::replace(&mut self.slots, vec![[0, NONE]; num_slots.max(2)]);
        let shift = self.shift();
        for pair in old.into_iter().filter(|pair| pair[1] != NONE) {
            let slot = find(&self.slots, pair[0], self.skip_bits, shift);
            self.slots[slot] = pair;
        }
    }
}

/// Returns the slot of a hash, or the free one that it would take.
#[inline]
fn find(slots: &[Pair], hash: u64, skip_bits: u32, shift: u32) -> usize {
    let mut slot = (hash << skip_bits >> shift) as usize;
    while slots[slot][0] != hash && slots[slot][1] != NONE {
        slot = (slot + 1) & (slots.len() - 1);
    }
    slot
}
