//! Which windows of consecutive words may repeat, and by what hash?
//!
//! In each window, the least hash of the shorter windows inside it is selected (winnowing: Schleimer, Wilkerson and
//! Aiken, SIGMOD 2003, section 3). Equal windows select equal hashes, so a window whose least hash occurs once repeats
//! nothing.

use super::parts::{PartCutter, Parts};
use crate::isa::Isa;

/// Multiplier of the rolling hash, odd.
const BASE: u64 = 0x9E37_79B9_7F4A_7C15;
const NONE: u64 = u64::MAX;

/// Hashes the windows of texts, one text at a time, reusing its memory.
#[derive(Debug)]
pub struct WindowHasher {
    cutter: PartCutter,
    parts: Parts,
    inner: Vec<u64>,
    least: Vec<u64>,
    whole: Vec<u64>,
    num_words: usize,
}

impl WindowHasher {
    /// Creates a hasher for windows of `num_words` words, at least 2; the shorter ones inside have half as many.
    pub fn new(isa: Isa, num_words: usize) -> Self {
        assert!(num_words >= 2);
        WindowHasher {
            cutter: PartCutter::new(isa),
            parts: Parts::default(),
            inner: Vec::new(),
            least: Vec::new(),
            whole: Vec::new(),
            num_words,
        }
    }

    /// Maximum number of windows of which one shorter window can be the least.
    pub fn width(&self) -> usize {
        self.num_words - self.num_words / 2 + 1
    }

    /// Reads a text under 4 GB; returns its words, which have `n - num_words + 1` windows, or none.
    pub fn take(&mut self, text: &str) -> u32 {
        let WindowHasher { parts, inner, .. } = self;
        parts.clear();
        self.cutter.cut_words(text, parts);
        self.least.clear();
        let words = &parts.hashes;
        if words.len() >= self.num_words {
            let short = self.num_words / 2;
            inner.clear();
            rolling_hashes(words, short, inner);
            sliding_minima(inner, self.num_words - short + 1, &mut self.least);
        }
        words.len() as u32
    }

    /// Returns the least hash of the shorter windows inside each window of the text read last.
    pub fn least(&self) -> &[u64] {
        &self.least
    }

    /// Returns the least hashes as [`WindowHasher::least`] does, and the hash of each window.
    pub fn least_and_whole(&mut self) -> (&[u64], &[u64]) {
        self.whole.clear();
        if !self.least.is_empty() {
            rolling_hashes(&self.parts.hashes, self.num_words, &mut self.whole);
        }
        (&self.least, &self.whole)
    }
}

/// Appends the hash of every `length` consecutive words: the sum of word(j) B^(length - 1 - j) modulo 2^64, mixed.
pub(crate) fn rolling_hashes(words: &[u64], length: usize, out: &mut Vec<u64>) {
    let step = |sum: u64, &word: &u64| sum.wrapping_mul(BASE).wrapping_add(word);
    let mut sum = words[..length].iter().fold(0, step);
    // The factor of a word that leaves the window.
    let leaving = (0..length).fold(1_u64, |power, _| power.wrapping_mul(BASE));
    out.reserve(words.len() - length + 1);
    out.push(mixed(sum));
    for (old, new) in words.iter().zip(&words[length..]) {
        sum = step(sum, new).wrapping_sub(old.wrapping_mul(leaving));
        out.push(mixed(sum));
    }
}

/// Mixes a sum: equal words in another order differ only in the upper bits.
fn mixed(sum: u64) -> u64 {
    let sum = (sum ^ sum >> 32).wrapping_mul(0xD6E8_FEB8_6659_FD93);
    let sum = (sum ^ sum >> 32).wrapping_mul(0xD6E8_FEB8_6659_FD93);
    sum ^ sum >> 32
}

/// Appends the minimum of every `width` consecutive values, from minima of blocks in both directions (van Herk, 1992).
fn sliding_minima(values: &mut [u64], width: usize, out: &mut Vec<u64>) {
    let num_windows = values.len() - width + 1;
    out.reserve(num_windows);
    let first = out.len();
    // The minimum of the block's values up to the last one of each window. The first window ends with its block.
    let (start, rest) = values.split_at(width);
    out.push(start.iter().copied().fold(NONE, u64::min));
    for block in rest.chunks(width) {
        let mut least = NONE;
        out.extend(block.iter().map(|&value| {
            least = least.min(value);
            least
        }));
    }
    for block in values.chunks_mut(width) {
        let mut least = NONE;
        for value in block.iter_mut().rev() {
            least = least.min(*value);
            *value = least;
        }
    }
    for (window, &from_start) in out[first..].iter_mut().zip(values.iter()) {
        *window = (*window).min(from_start);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn minima_are_those_of_every_window() {
        for len in 1..40_usize {
            for width in 1..=len {
                let values: Vec<u64> = (0..len as u64).map(|i| mixed(i * 7 + 3) % 50).collect();
                let expected: Vec<u64> = values
                    .windows(width)
                    .map(|window| *window.iter().min().unwrap())
                    .collect();
                let mut found = vec![9];
                sliding_minima(&mut values.clone(), width, &mut found);
                assert_eq!(found[1..], expected, "{len} {width}");
            }
        }
    }

    #[test]
    fn equal_windows_have_equal_hashes() {
        let words: Vec<u64> = (0..200).map(|i| mixed(i % 23 + 1)).collect();
        let mut found = Vec::new();
        rolling_hashes(&words, 30, &mut found);
        assert_eq!(found.len(), 171);
        for i in 0..171 {
            for j in 0..171 {
                assert_eq!(found[i] == found[j], i % 23 == j % 23, "{i} {j}");
            }
        }
    }

    #[test]
    fn texts_with_too_few_words_have_none() {
        let mut hasher = WindowHasher::new(Isa::Plain, 4);
        let mut found = Vec::new();
        for text in [
            "one two three four",
            "one two three",
            "",
            "a ONE two, three four b",
        ] {
            let num_words = hasher.take(text);
            let (least, whole) = hasher.least_and_whole();
            assert_eq!(least.len(), whole.len());
            found.push((num_words, least.to_vec(), whole.to_vec()));
        }
        let counts: Vec<u32> = found.iter().map(|of_text| of_text.0).collect();
        assert_eq!(counts, [4, 3, 0, 6]);
        let windows: Vec<usize> = found.iter().map(|of_text| of_text.1.len()).collect();
        assert_eq!(windows, [1, 0, 0, 3]);
        assert_eq!(
            (found[0].1[0], found[0].2[0]),
            (found[3].1[1], found[3].2[1])
        );
    }
}
