//! Which words of an item occur in a window, in order?
//!
//! A bit-parallel longest common subsequence (Hyyrö: Bit-parallel LCS-length computation revisited, AWOCA 2004): for
//! each word of the window, from the last one on, a bit for each word of the item, clear where the length grows. The
//! bits of all words of the window determine every step of the traceback.

use super::table::{ItemTable, NGRAM};

/// Maximum number of cells; beyond it, words count as aligned if an n-gram covers them.
const MOST_CELLS: usize = 1 << 26;
const NONE: u32 = u32::MAX;

/// A window of a document.
#[derive(Debug, Clone, Copy)]
pub(super) struct Span {
    /// Places of the first and last n-gram.
    pub first: usize,
    pub last: usize,
    pub first_gram: u32,
    pub last_gram: u32,
    /// Words before this one belong to an earlier window.
    pub least_start: usize,
}

#[derive(Debug, Clone, Copy)]
pub(super) struct Aligned {
    /// First and last aligned word of the document.
    pub first_word: usize,
    pub last_word: usize,
    /// Maximum number of consecutive equal words.
    pub run: u32,
}

/// Aligns texts with windows, reusing its memory.
#[derive(Debug)]
pub(super) struct Aligner {
    /// Index in `masks` of each word of the vocabulary, for the current text.
    slots: Vec<u32>,
    /// For each distinct word of the text, a bit for each of its places, the last place lowest.
    masks: Vec<u64>,
    /// The bits of each word of the window, from the last one on.
    rows: Vec<u64>,
    /// The aligned words of the text, and those of the document that they are aligned with.
    words: Vec<usize>,
    places: Vec<usize>,
}

impl Aligner {
    /// Allocates 4 bytes per word of the vocabulary.
    pub fn new(table: &ItemTable) -> Self {
        Aligner {
            slots: vec![NONE; table.num_words()],
            masks: Vec::new(),
            rows: Vec::new(),
            words: Vec::new(),
            places: Vec::new(),
        }
    }

    /// The words of the text that were last aligned, ascending.
    pub fn words(&self) -> &[usize] {
        &self.words
    }

    /// The words of the document that they were aligned with; none if the text was too long to be aligned.
    pub fn places(&self) -> &[usize] {
        &self.places
    }

    /// Aligns a text with a window, extended by the words that the text has around its n-grams, and a quarter more.
    pub fn align(
        &mut self,
        table: &ItemTable,
        text: usize,
        document: &[u32],
        span: Span,
        present: &[u8],
    ) -> Aligned {
        let (words, places) = (table.words(text), table.places(text));
        let before = places
            .iter()
            .position(|&gram| gram == span.first_gram)
            .unwrap_or(0);
        let behind = places
            .iter()
            .rposition(|&gram| gram == span.last_gram)
            .map_or(0, |place| words.len() - place - NGRAM);
        let more = |missing: usize| match missing {
            0 => 0,
            missing => missing + missing / 4 + 2,
        };
        let low = span
            .first
            .saturating_sub(more(before))
            .max(span.least_start.min(span.first));
        let high = (span.last + NGRAM + more(behind)).min(document.len());
        if words.len() * (high - low) > MOST_CELLS {
            return self.cover(table, text, span, present);
        }
        let window = &document[low..high];
        self.measure(words, window);
        self.trace(words, window, low)
    }

    fn measure(&mut self, words: &[u32], window: &[u32]) {
        let width = words.len().div_ceil(64);
        self.masks.clear();
        for (i, &word) in words.iter().rev().enumerate() {
            let slot = &mut self.slots[word as usize];
            if *slot == NONE {
                *slot = (self.masks.len() / width) as u32;
                self.masks.resize(self.masks.len() + width, 0);
            }
            self.masks[*slot as usize * width + i / 64] |= 1 << (i % 64);
        }
        self.rows.clear();
        self.rows.reserve(window.len() * width);
        for (j, &word) in window.iter().rev().enumerate() {
            let slot = self.slots.get(word as usize).copied().unwrap_or(NONE);
            let mut carry = false;
            for block in 0..width {
                let bits = match j {
                    0 => u64::MAX,
                    _ => self.rows[(j - 1) * width + block],
                };
                let mask = match slot {
                    NONE => 0,
                    _ => self.masks[slot as usize * width + block],
                };
                let both = bits & mask;
                let (sum, over) = bits.overflowing_add(both);
                let (sum, again) = sum.overflowing_add(u64::from(carry));
                carry = over || again;
                self.rows.push(sum | (bits & !mask));
            }
        }
        for &word in words {
            self.slots[word as usize] = NONE;
        }
    }

    /// Traces the alignment from first to last; skips a word of the text if that costs nothing, else one of the window.
    fn trace(&mut self, words: &[u32], window: &[u32], low: usize) -> Aligned {
        let width = words.len().div_ceil(64);
        let (mut i, mut j, mut run, mut first_word) = (0, 0, 0, None);
        let mut found = Aligned {
            first_word: low,
            last_word: low,
            run: 0,
        };
        self.words.clear();
        self.places.clear();
        while i < words.len() && j < window.len() {
            if words[i] == window[j] {
                self.words.push(i);
                self.places.push(low + j);
                first_word = first_word.or(Some(low + j));
                found.last_word = low + j;
                run += 1;
                found.run = found.run.max(run);
                (i, j) = (i + 1, j + 1);
                continue;
            }
            run = 0;
            let bit = words.len() - 1 - i;
            let row = (window.len() - 1 - j) * width;
            match self.rows[row + bit / 64] >> (bit % 64) & 1 {
                0 => j += 1,
                _ => i += 1,
            }
        }
        found.first_word = first_word.unwrap_or(low);
        found
    }

    fn cover(&mut self, table: &ItemTable, text: usize, span: Span, present: &[u8]) -> Aligned {
        let own = table.own(text);
        let mut behind = 0;
        self.words.clear();
        self.places.clear();
        for (place, gram) in table.places(text).iter().enumerate() {
            let number = own.partition_point(|other| other < gram);
            if present[number / 8] >> (number % 8) & 1 != 0 {
                self.words.extend(behind.max(place)..place + NGRAM);
                behind = place + NGRAM;
            }
        }
        let (mut run, mut longest) = (0, 0);
        for (i, &word) in self.words.iter().enumerate() {
            let follows = i > 0 && self.words[i - 1] + 1 == word;
            run = if follows { run + 1 } else { 1 };
            longest = longest.max(run);
        }
        Aligned {
            first_word: span.first,
            last_word: span.last + NGRAM - 1,
            run: longest,
        }
    }
}
