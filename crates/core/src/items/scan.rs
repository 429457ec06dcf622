//! Where may a document contain the text of an item?

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use super::align::{Aligner, Span};
use super::table::{ItemTable, NGRAM};
use crate::hash::xxh3_64_with_seed;
use crate::isa::Isa;
use crate::text::{PartCutter, Parts, rolling_hashes};

/// A window is a candidate if it has at least this part of the text's n-grams: one in five.
const LEAST_PART: usize = 5;
const LEAST_NGRAMS: usize = 2;
/// A candidate is rejected if fewer than one in this many words are aligned.
const LEAST_WORDS: usize = 2;
/// Number of words of a window per word of the text: list numbers and words between lines may be in it.
const WINDOW: usize = 2;
/// Words are counted in one of this many documents, chosen by their text.
const SAMPLED: u64 = 16;

/// Candidates, in order of documents, then texts, then places.
#[derive(Debug, Default, Clone, PartialEq)]
pub struct Matches {
    /// Number of the document, as given by the caller.
    pub documents: Vec<u32>,
    pub texts: Vec<u32>,
    /// First aligned word, as a byte offset in the document.
    pub starts: Vec<u32>,
    /// End of the last aligned word.
    pub ends: Vec<u32>,
    /// Maximum number of consecutive equal words.
    pub runs: Vec<u32>,
    /// Whether another number is in the place of one of the text.
    pub other_numbers: Vec<u8>,
    /// For each match, a bit for each distinct n-gram of the text, in whole bytes: set if it is in the window.
    pub present: Vec<u8>,
    /// For each match, a bit for each word of the text: set if it is aligned.
    pub aligned: Vec<u8>,
}

impl Matches {
    pub fn append(&mut self, mut other: Matches) {
        self.documents.append(&mut other.documents);
        self.texts.append(&mut other.texts);
        self.starts.append(&mut other.starts);
        self.ends.append(&mut other.ends);
        self.runs.append(&mut other.runs);
        self.other_numbers.append(&mut other.other_numbers);
        self.present.append(&mut other.present);
        self.aligned.append(&mut other.aligned);
    }
}

/// Returns the minimum number of n-grams of a candidate, for a text with `num_own`.
fn least_ngrams(num_own: usize) -> usize {
    num_own.div_ceil(LEAST_PART).max(LEAST_NGRAMS.min(num_own))
}

/// An n-gram of a text in a document.
#[derive(Debug, Clone, Copy)]
struct Hit {
    /// Index of the word in the document.
    place: usize,
    gram: u32,
}

/// Scans documents, reusing its memory; keep one per thread.
#[derive(Debug)]
pub struct ItemScanner<'a> {
    table: &'a ItemTable,
    counts: &'a ItemCounts,
    cutter: PartCutter,
    parts: Parts,
    sums: Vec<u64>,
    hits: Vec<Hit>,
    grams: Vec<u32>,
    /// For each text, the number of places of n-grams that may lead to it; zero between documents.
    num_seeds: Vec<u32>,
    /// The text and place of each of these.
    seeds: Vec<(u32, usize)>,
    /// Hits of one text: the place, and the index of its own n-gram.
    found: Vec<(usize, u32)>,
    num_seen: Vec<u32>,
    sizes: Vec<u32>,
    /// Numbers of the words of the document, if it may contain an item.
    words: Vec<u32>,
    aligner: Aligner,
}

impl<'a> ItemScanner<'a> {
    pub fn new(table: &'a ItemTable, counts: &'a ItemCounts, isa: Isa) -> Self {
        ItemScanner {
            table,
            counts,
            cutter: PartCutter::new(isa),
            parts: Parts::default(),
            sums: Vec::new(),
            hits: Vec::new(),
            grams: Vec::new(),
            num_seeds: vec![0; table.num_texts()],
            seeds: Vec::new(),
            found: Vec::new(),
            num_seen: Vec::new(),
            sizes: Vec::new(),
            words: Vec::new(),
            aligner: Aligner::new(table),
        }
    }

    /// Counts a document under 4 GB, and appends where it may contain the text of an item.
    pub fn scan(&mut self, document: u32, content: &str, out: &mut Matches) {
        self.parts.clear();
        self.cutter.cut_words(content, &mut self.parts);
        if xxh3_64_with_seed(content.as_bytes(), 0).is_multiple_of(SAMPLED) {
            self.sample();
        }
        self.hits.clear();
        if self.parts.hashes.len() >= NGRAM {
            self.sums.clear();
            rolling_hashes(&self.parts.hashes, NGRAM, &mut self.sums);
            for (place, &sum) in self.sums.iter().enumerate() {
                if let Some(gram) = self.table.gram(sum) {
                    self.hits.push(Hit { place, gram });
                }
            }
        }
        self.grams.clear();
        self.grams.extend(self.hits.iter().map(|hit| hit.gram));
        self.grams.sort_unstable();
        self.grams.dedup();
        self.counts.add(&self.grams);
        self.find_seeds();
        if !self.seeds.is_empty() {
            self.words.clear();
            let hashes = self.parts.hashes.iter();
            self.words.extend(hashes.map(|&hash| self.table.word(hash)));
        }
        let mut first = 0;
        while let Some(&(text, _)) = self.seeds.get(first) {
            let behind = first + self.seeds[first..].partition_point(|seed| seed.0 == text);
            self.gather(text as usize, first, behind);
            self.windows(document, content, text, out);
            first = behind;
        }
    }

    /// Sets `seeds` to those of the texts that may have enough n-grams; most share only a phrase and are excluded.
    fn find_seeds(&mut self) {
        self.seeds.clear();
        for hit in &self.hits {
            for &text in self.table.seeds(hit.gram) {
                self.num_seeds[text as usize] += 1;
            }
        }
        for hit in &self.hits {
            for &text in self.table.seeds(hit.gram) {
                let most = self.num_seeds[text as usize] + self.table.num_common(text as usize);
                if most as usize >= least_ngrams(self.table.sizes(text as usize).0) {
                    self.seeds.push((text, hit.place));
                }
            }
        }
        for hit in &self.hits {
            for &text in self.table.seeds(hit.gram) {
                self.num_seeds[text as usize] = 0;
            }
        }
        self.seeds.sort_unstable();
    }

    fn sample(&mut self) {
        let mut words: Vec<u32> = self
            .parts
            .hashes
            .iter()
            .map(|&hash| self.table.word(hash))
            .filter(|&word| word != u32::MAX)
            .collect();
        words.sort_unstable();
        words.dedup();
        self.counts.add_sampled(&words);
    }

    /// Sets `found` to the hits of a text within a window of a seed.
    fn gather(&mut self, text: usize, first: usize, behind: usize) {
        self.found.clear();
        let own = self.table.own(text);
        let reach = WINDOW * self.table.words(text).len();
        let mut done = 0;
        let mut seed = first;
        while seed < behind {
            let low = self.seeds[seed].1.saturating_sub(reach).max(done);
            let mut high = self.seeds[seed].1 + reach + 1;
            while seed < behind && self.seeds[seed].1 < high + reach {
                high = self.seeds[seed].1 + reach + 1;
                seed += 1;
            }
            done = high;
            let from = self.hits.partition_point(|hit| hit.place < low);
            for hit in self.hits[from..].iter().take_while(|hit| hit.place < high) {
                if let Ok(number) = own.binary_search(&hit.gram) {
                    self.found.push((hit.place, number as u32));
                }
            }
        }
    }

    /// Visits windows from left to right, takes the fullest candidate, and continues after its last aligned word.
    fn windows(&mut self, document: u32, content: &str, text: u32, out: &mut Matches) {
        let (num_own, num_words) = self.table.sizes(text as usize);
        let least = least_ngrams(num_own);
        if self.found.len() < least {
            return;
        }
        let width = WINDOW * num_words;
        self.count_windows(num_own, width);
        let (mut first, mut behind_last) = (0, 0);
        while first < self.found.len() {
            if (self.sizes[first] as usize) < least {
                first += 1;
                continue;
            }
            let end = self.found[first].0 + width;
            let mut best = first;
            for i in first + 1..self.found.len() {
                if self.found[i].0 >= end {
                    break;
                }
                if self.sizes[i] > self.sizes[best] {
                    best = i;
                }
            }
            let end = self.found[best].0 + width;
            let num_inside = self.found[best..].partition_point(|hit| hit.0 < end);
            let inside = best..best + num_inside;
            behind_last = self.take(document, content, text, inside, behind_last, out) + 1;
            let next = best + self.found[best..].partition_point(|hit| hit.0 < behind_last);
            first = next.max(best + 1);
        }
    }

    /// Sets `sizes` to the number of distinct n-grams of the window that begins with each hit.
    fn count_windows(&mut self, num_own: usize, width: usize) {
        self.num_seen.clear();
        self.num_seen.resize(num_own, 0);
        self.sizes.clear();
        let (mut behind, mut distinct) = (0, 0);
        for i in 0..self.found.len() {
            while behind < self.found.len() && self.found[behind].0 < self.found[i].0 + width {
                let seen = &mut self.num_seen[self.found[behind].1 as usize];
                distinct += u32::from(*seen == 0);
                *seen += 1;
                behind += 1;
            }
            self.sizes.push(distinct);
            let seen = &mut self.num_seen[self.found[i].1 as usize];
            *seen -= 1;
            distinct -= u32::from(*seen == 0);
        }
    }

    /// Aligns a window and adds a match; returns the last aligned word of the document.
    fn take(
        &mut self,
        document: u32,
        content: &str,
        text: u32,
        inside: std::ops::Range<usize>,
        behind_last: usize,
        out: &mut Matches,
    ) -> usize {
        let table = self.table;
        let own = table.own(text as usize);
        let found = &self.found[inside];
        let present = out.present.len();
        out.present.resize(present + own.len().div_ceil(8), 0);
        for &(_, number) in found {
            out.present[present + number as usize / 8] |= 1 << (number % 8);
        }
        let span = Span {
            first: found[0].0,
            last: found[found.len() - 1].0,
            first_gram: own[found[0].1 as usize],
            last_gram: own[found[found.len() - 1].1 as usize],
            least_start: behind_last,
        };
        let aligned = self.aligner.align(
            table,
            text as usize,
            &self.words,
            span,
            &out.present[present..],
        );
        let num_words = table.words(text as usize).len();
        if LEAST_WORDS * self.aligner.words().len() < num_words {
            out.present.truncate(present);
            return aligned.last_word;
        }
        out.documents.push(document);
        out.texts.push(text);
        out.starts.push(self.parts.starts[aligned.first_word]);
        out.ends.push(self.parts.ends[aligned.last_word]);
        out.runs.push(aligned.run);
        let is_other = self.has_other_numbers(content, text as usize);
        out.other_numbers.push(u8::from(is_other));
        let at = out.aligned.len();
        out.aligned.resize(at + num_words.div_ceil(8), 0);
        for &word in self.aligner.words() {
            out.aligned[at + word / 8] |= 1 << (word % 8);
        }
        aligned.last_word
    }

    /// Whether text and document both have, between or beyond aligned words, a number that the other lacks there.
    fn has_other_numbers(&mut self, content: &str, text: usize) -> bool {
        let own = self.table.words(text);
        let (words, places) = (self.aligner.words(), self.aligner.places());
        let (Some(&first), Some(&last)) = (places.first(), places.last()) else {
            return false;
        };
        let behind = (last + own.len() - words[words.len() - 1]).min(self.words.len());
        let (mut word, mut place) = (0, first.saturating_sub(words[0]));
        let aligned = words.iter().copied().zip(places.iter().copied());
        for (next_word, next_place) in aligned.chain([(own.len(), behind)]) {
            let numbers = own[word..next_word]
                .iter()
                .map(|&word| self.table.numbers[word as usize])
                .filter(|&number| number != 0)
                .collect::<Vec<u64>>();
            if !numbers.is_empty() {
                let theirs = (place..next_place)
                    .filter_map(|place| {
                        let (start, end) = (self.parts.starts[place], self.parts.ends[place]);
                        self.cutter.number(&content[start as usize..end as usize])
                    })
                    .collect::<Vec<u64>>();
                let lacks =
                    |some: &[u64], others: &[u64]| some.iter().any(|one| !others.contains(one));
                if lacks(&numbers, &theirs) && lacks(&theirs, &numbers) {
                    return true;
                }
            }
            (word, place) = (next_word + 1, next_place + 1);
        }
        false
    }
}

/// Counts of documents. Threads may share it; the result does not depend on their order.
#[derive(Debug)]
pub struct ItemCounts {
    grams: Box<[AtomicU32]>,
    words: Box<[AtomicU32]>,
    num_documents: AtomicU64,
    num_sampled: AtomicU64,
}

impl ItemCounts {
    /// Creates zero counts: 4 bytes per distinct n-gram and word.
    pub fn new(table: &ItemTable) -> Self {
        let zeros = |len: usize| (0..len).map(|_| AtomicU32::new(0)).collect();
        ItemCounts {
            grams: zeros(table.num_grams()),
            words: zeros(table.num_words()),
            num_documents: AtomicU64::new(0),
            num_sampled: AtomicU64::new(0),
        }
    }

    /// Continues from the result of [`ItemCounts::taken`] for a table of the same items.
    pub fn from_taken(grams: &[u32], words: &[u32], num_documents: u64, num_sampled: u64) -> Self {
        let held = |counts: &[u32]| counts.iter().map(|&count| AtomicU32::new(count)).collect();
        ItemCounts {
            grams: held(grams),
            words: held(words),
            num_documents: AtomicU64::new(num_documents),
            num_sampled: AtomicU64::new(num_sampled),
        }
    }

    /// Returns the numbers of documents by n-gram, of sampled documents by word, of documents, and of sampled ones.
    pub fn taken(&self) -> (Vec<u32>, Vec<u32>, u64, u64) {
        let held = |counts: &[AtomicU32]| {
            counts
                .iter()
                .map(|count| count.load(Ordering::Relaxed))
                .collect()
        };
        (
            held(&self.grams),
            held(&self.words),
            self.num_documents.load(Ordering::Relaxed),
            self.num_sampled.load(Ordering::Relaxed),
        )
    }

    /// Counts a document, given its distinct n-grams.
    pub(super) fn add(&self, grams: &[u32]) {
        self.num_documents.fetch_add(1, Ordering::Relaxed);
        for &gram in grams {
            self.grams[gram as usize].fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Counts a sampled document, given its distinct words.
    pub(super) fn add_sampled(&self, words: &[u32]) {
        self.num_sampled.fetch_add(1, Ordering::Relaxed);
        for &word in words {
            self.words[word as usize].fetch_add(1, Ordering::Relaxed);
        }
    }
}
