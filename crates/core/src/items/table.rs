//! Which items contain each n-gram?

use std::collections::HashMap;
use std::hash::BuildHasherDefault;

use crate::isa::Isa;
use crate::sets::MixHasher;
use crate::text::{PartCutter, Parts, rolling_hashes};

/// Number of words per n-gram. One changed word in ten leaves three of five n-grams.
pub const NGRAM: usize = 5;
/// An n-gram in more texts than this does not start a search: it is a phrase of a template.
const MOST_TEXTS: usize = 64;
/// Number of filter bits per n-gram.
const FILTER_BITS: usize = 8;
const LEAST_FILTER_BITS: usize = 1 << 16;

pub(super) type Numbers = HashMap<u64, u32, BuildHasherDefault<MixHasher>>;

/// The distinct texts of items, indexed by their n-grams: about 60 bytes per word.
#[derive(Debug)]
pub struct ItemTable {
    /// The number of each given text's distinct text; texts are numbered by first occurrence.
    distinct: Vec<u32>,
    /// Whether each distinct text is too short; such texts are in no list of `holders`.
    is_short: Vec<bool>,
    /// Words of text `t` are `words[word_starts[t]..word_starts[t + 1]]`.
    pub(super) words: Vec<u32>,
    pub(super) word_starts: Vec<usize>,
    /// For each distinct word, the hash of the number that it contains; 0 if it has no digit.
    pub(super) numbers: Vec<u64>,
    /// Number of texts that contain each distinct word.
    pub(super) word_texts: Vec<u32>,
    vocabulary: Numbers,
    /// The n-gram that begins with each word of a text, except for the last four.
    pub(super) places: Vec<u32>,
    pub(super) place_starts: Vec<usize>,
    /// Distinct n-grams of each text, ascending.
    pub(super) own: Vec<u32>,
    pub(super) own_starts: Vec<usize>,
    /// For each text, the number of n-grams that start no search.
    num_common: Vec<u32>,
    grams: Numbers,
    /// Texts that contain each n-gram, ascending.
    holders: Vec<u32>,
    holder_starts: Vec<usize>,
    filter: Vec<u64>,
    filter_shift: u32,
}

impl ItemTable {
    /// Builds the table; a text with fewer than `min_ngrams` n-grams, or only ones of over 64 texts, is never found.
    pub fn new<'a>(texts: impl IntoIterator<Item = &'a str>, min_ngrams: usize) -> Self {
        let mut cutter = PartCutter::new(Isa::best());
        let mut parts = Parts::default();
        let mut by_words: HashMap<Vec<u32>, u32> = HashMap::new();
        let mut table = ItemTable {
            distinct: Vec::new(),
            is_short: Vec::new(),
            words: Vec::new(),
            word_starts: vec![0],
            numbers: Vec::new(),
            word_texts: Vec::new(),
            vocabulary: Numbers::default(),
            places: Vec::new(),
            place_starts: vec![0],
            own: Vec::new(),
            own_starts: vec![0],
            num_common: Vec::new(),
            grams: Numbers::default(),
            holders: Vec::new(),
            holder_starts: Vec::new(),
            filter: Vec::new(),
            filter_shift: 0,
        };
        for text in texts {
            parts.clear();
            cutter.cut_words(text, &mut parts);
            let mut words = Vec::with_capacity(parts.hashes.len());
            for (i, &hash) in parts.hashes.iter().enumerate() {
                let next = table.numbers.len() as u32;
                let word = *table.vocabulary.entry(hash).or_insert(next);
                if word == next {
                    let place = parts.starts[i] as usize..parts.ends[i] as usize;
                    let number = cutter.number(&text[place]);
                    table.numbers.push(number.unwrap_or(0));
                }
                words.push(word);
            }
            let next = table.is_short.len() as u32;
            let number = *by_words.entry(words.clone()).or_insert(next);
            table.distinct.push(number);
            if number == next {
                table.push(&words, &parts.hashes, min_ngrams);
            }
        }
        table.list_holders();
        table.count_words();
        table.fill_filter();
        table
    }

    fn push(&mut self, words: &[u32], hashes: &[u64], min_ngrams: usize) {
        let first = self.own.len();
        if hashes.len() >= NGRAM {
            let mut sums = Vec::new();
            rolling_hashes(hashes, NGRAM, &mut sums);
            for sum in sums {
                let next = self.grams.len() as u32;
                let gram = *self.grams.entry(sum).or_insert(next);
                self.places.push(gram);
                self.own.push(gram);
            }
        }
        self.own[first..].sort_unstable();
        let mut kept = first;
        for i in first..self.own.len() {
            if i == first || self.own[i] != self.own[kept - 1] {
                self.own[kept] = self.own[i];
                kept += 1;
            }
        }
        self.own.truncate(kept);
        self.is_short.push(kept - first < min_ngrams.max(1));
        self.words.extend_from_slice(words);
        self.word_starts.push(self.words.len());
        self.place_starts.push(self.places.len());
        self.own_starts.push(kept);
    }

    fn list_holders(&mut self) {
        let mut counts = vec![0_usize; self.grams.len() + 1];
        let listed: Vec<usize> = (0..self.num_texts())
            .filter(|&t| !self.is_short[t])
            .collect();
        for &text in &listed {
            for &gram in self.own(text) {
                counts[gram as usize + 1] += 1;
            }
        }
        for i in 1..counts.len() {
            counts[i] += counts[i - 1];
        }
        self.holder_starts = counts;
        let mut next = self.holder_starts.clone();
        let mut holders = vec![0; self.holder_starts.last().copied().unwrap_or(0)];
        for &text in &listed {
            for &gram in self.own(text) {
                holders[next[gram as usize]] = text as u32;
                next[gram as usize] += 1;
            }
        }
        self.holders = holders;
        self.num_common = vec![0; self.num_texts()];
        for text in listed {
            let own = self.own(text);
            let common = own.iter().filter(|&&gram| self.seeds(gram).is_empty());
            let (num_common, num_own) = (common.count(), own.len());
            self.num_common[text] = num_common as u32;
            self.is_short[text] = num_common == num_own;
        }
    }

    fn count_words(&mut self) {
        self.word_texts = vec![0; self.numbers.len()];
        let mut last = vec![u32::MAX; self.numbers.len()];
        for text in 0..self.num_texts() {
            for &word in &self.words[self.word_starts[text]..self.word_starts[text + 1]] {
                if last[word as usize] != text as u32 {
                    last[word as usize] = text as u32;
                    self.word_texts[word as usize] += 1;
                }
            }
        }
    }

    fn fill_filter(&mut self) {
        let bits = (self.grams.len() * FILTER_BITS)
            .max(LEAST_FILTER_BITS)
            .next_power_of_two();
        self.filter = vec![0; bits / 64];
        self.filter_shift = 64 - bits.trailing_zeros();
        for &sum in self.grams.keys() {
            let bit = sum >> self.filter_shift;
            self.filter[(bit / 64) as usize] |= 1 << (bit % 64);
        }
    }

    #[inline(always)]
    pub(super) fn gram(&self, sum: u64) -> Option<u32> {
        let bit = sum >> self.filter_shift;
        if self.filter[(bit / 64) as usize] >> (bit % 64) & 1 == 0 {
            return None;
        }
        self.grams.get(&sum).copied()
    }

    /// Returns the number of the word with this hash, or `u32::MAX` if no item contains it.
    pub(super) fn word(&self, hash: u64) -> u32 {
        self.vocabulary.get(&hash).copied().unwrap_or(u32::MAX)
    }

    /// Returns the texts to which an n-gram may lead.
    pub(super) fn seeds(&self, gram: u32) -> &[u32] {
        let held = self.holders(gram);
        if held.len() > MOST_TEXTS { &[] } else { held }
    }

    /// Returns the texts that contain an n-gram and are not too short.
    pub(super) fn holders(&self, gram: u32) -> &[u32] {
        let gram = gram as usize;
        &self.holders[self.holder_starts[gram]..self.holder_starts[gram + 1]]
    }

    /// Returns the number of n-grams of a text that start no search.
    pub(super) fn num_common(&self, text: usize) -> u32 {
        self.num_common[text]
    }

    pub(super) fn words(&self, text: usize) -> &[u32] {
        &self.words[self.word_starts[text]..self.word_starts[text + 1]]
    }

    pub(super) fn places(&self, text: usize) -> &[u32] {
        &self.places[self.place_starts[text]..self.place_starts[text + 1]]
    }

    /// Returns the distinct n-grams of a text, ascending.
    pub(super) fn own(&self, text: usize) -> &[u32] {
        &self.own[self.own_starts[text]..self.own_starts[text + 1]]
    }

    pub fn num_texts(&self) -> usize {
        self.is_short.len()
    }

    pub fn num_grams(&self) -> usize {
        self.grams.len()
    }

    pub fn num_words(&self) -> usize {
        self.numbers.len()
    }

    /// The number of each given text's distinct text.
    pub fn distinct(&self) -> &[u32] {
        &self.distinct
    }

    /// Whether a distinct text is too short to be found.
    pub fn is_short(&self, text: usize) -> bool {
        self.is_short[text]
    }

    /// Returns the numbers of distinct n-grams and of words of a distinct text.
    pub fn sizes(&self, text: usize) -> (usize, usize) {
        (self.own(text).len(), self.words(text).len())
    }
}
