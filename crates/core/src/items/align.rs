//! Which words of an item stand in a window, in order?

use super::table::{ItemTable, NGRAM};

/// Beyond so many cells, words count as aligned where an n-gram covers them.
const MOST_CELLS: usize = 1 << 22;

/// A window of a document.
#[derive(Debug, Clone, Copy)]
pub(super) struct Span {
    /// Places of the first and last n-gram.
    pub first: usize,
    pub last: usize,
    pub first_gram: u32,
    pub last_gram: u32,
    /// Words before this belong to an earlier window.
    pub least_start: usize,
}

/// What was aligned.
#[derive(Debug, Clone, Copy)]
pub(super) struct Aligned {
    /// Words of the document.
    pub first_word: usize,
    pub last_word: usize,
    /// Most consecutive words that are equal.
    pub run: u32,
}

/// Holds the scratch space.
#[derive(Debug, Default)]
pub(super) struct Aligner {
    window: Vec<u32>,
    lengths: Vec<u16>,
    words: Vec<usize>,
}

impl Aligner {
    /// The words of the text that were aligned last, rising.
    pub fn words(&self) -> &[usize] {
        &self.words
    }

    /// Aligns a text with a window and as many words around it as the text has before its first and behind its last n-gram, and a
    /// quarter more: a longest common subsequence.
    pub fn align(
        &mut self,
        table: &ItemTable,
        text: usize,
        document: &[u64],
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
        if (words.len() + 1) * (high - low + 1) > MOST_CELLS {
            return self.cover(table, text, span, present);
        }
        self.window.clear();
        self.window
            .extend(document[low..high].iter().map(|&hash| table.word(hash)));
        self.measure(words);
        self.trace(words, low)
    }

    /// Makes `lengths` those of the longest common subsequences of what begins at each pair of words.
    fn measure(&mut self, words: &[u32]) {
        let width = self.window.len() + 1;
        self.lengths.clear();
        self.lengths.resize((words.len() + 1) * width, 0);
        for (i, &word) in words.iter().enumerate().rev() {
            let (upper, lower) = self.lengths.split_at_mut((i + 1) * width);
            let row = &mut upper[i * width..];
            for j in (0..self.window.len()).rev() {
                row[j] = match self.window[j] == word {
                    true => lower[j + 1] + 1,
                    false => lower[j].max(row[j + 1]),
                };
            }
        }
    }

    fn trace(&mut self, words: &[u32], low: usize) -> Aligned {
        let width = self.window.len() + 1;
        let (mut i, mut j, mut run, mut first_word) = (0, 0, 0, None);
        let mut found = Aligned {
            first_word: low,
            last_word: low,
            run: 0,
        };
        self.words.clear();
        while i < words.len() && j < self.window.len() {
            if words[i] == self.window[j] {
                self.words.push(i);
                first_word = first_word.or(Some(low + j));
                found.last_word = low + j;
                run += 1;
                found.run = found.run.max(run);
                (i, j) = (i + 1, j + 1);
                continue;
            }
            run = 0;
            match self.lengths[(i + 1) * width + j] >= self.lengths[i * width + j + 1] {
                true => i += 1,
                false => j += 1,
            }
        }
        found.first_word = first_word.unwrap_or(low);
        found
    }

    fn cover(&mut self, table: &ItemTable, text: usize, span: Span, present: &[u8]) -> Aligned {
        let own = table.own(text);
        let mut behind = 0;
        self.words.clear();
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
