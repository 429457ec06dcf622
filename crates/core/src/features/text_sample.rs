//! Which documents of a large collection are counted?
//!
//! Those whose bytes have the lowest hashes: a function of the documents alone, not of their order, the division of the
//! input, or threads.

use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use super::value_salt;
use crate::hash::{mix64, xxh3_64_with_seed};
use crate::isa::Isa;
use crate::parallel::lock;
use crate::text::{self, Document, Preparer, TextRules};

const SEED: u64 = 0x7361_6D70_6C65_6466;

/// Collects the documents of the lowest hashes, each once, up to a number and a sum of bytes, but at least the first.
#[derive(Debug)]
pub struct TextSample {
    max_documents: usize,
    max_bytes: usize,
    /// Documents of higher hashes do not belong to the sample.
    bound: AtomicU64,
    held: Mutex<Held>,
}

#[derive(Debug, Default)]
struct Held {
    documents: Vec<(u64, Box<[u8]>)>,
    num_bytes: usize,
}

impl TextSample {
    pub fn new(max_documents: usize, max_bytes: usize) -> Self {
        TextSample {
            max_documents,
            max_bytes,
            bound: AtomicU64::new(u64::MAX),
            held: Mutex::default(),
        }
    }

    /// Adds a document, which is copied if it may belong to the sample.
    pub fn add(&self, document: &[u8]) {
        let hash = xxh3_64_with_seed(document, SEED);
        if hash > self.bound.load(Ordering::Relaxed) {
            return;
        }
        let mut held = lock(&self.held);
        held.num_bytes += document.len();
        held.documents.push((hash, document.into()));
        // A quarter more, so that few documents are sorted.
        if held.documents.len() / 5 * 4 > self.max_documents
            || held.num_bytes / 5 * 4 > self.max_bytes
        {
            self.cut(&mut held);
        }
    }

    /// Returns the sample, in the order of the hashes, and starts over with what may belong to it.
    pub fn take(&self) -> Vec<Box<[u8]>> {
        let mut held = lock(&self.held);
        self.cut(&mut held);
        let documents = std::mem::take(&mut *held).documents;
        documents
            .into_iter()
            .map(|(_, document)| document)
            .collect()
    }

    /// Drops what does not belong to the sample: from the first document on that would be too many.
    fn cut(&self, held: &mut Held) {
        held.documents.sort_unstable();
        held.documents.dedup();
        let (mut num, mut num_bytes) = (0, 0);
        for (hash, document) in &held.documents {
            let sum = num_bytes + document.len();
            if num == self.max_documents || (num > 0 && sum > self.max_bytes) {
                self.bound.store(*hash, Ordering::Relaxed);
                break;
            }
            (num, num_bytes) = (num + 1, sum);
        }
        held.documents.truncate(num);
        held.num_bytes = num_bytes;
    }
}

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

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(documents: &[Vec<u8>], max_documents: usize, max_bytes: usize) -> Vec<Box<[u8]>> {
        let sample = TextSample::new(max_documents, max_bytes);
        documents.iter().for_each(|document| sample.add(document));
        sample.take()
    }

    #[test]
    fn the_lowest_hashes_are_taken_in_any_order() {
        let mut documents: Vec<Vec<u8>> = (0..3000u32)
            .map(|i| i.to_le_bytes().repeat(1 + i as usize % 7))
            .collect();
        let mut wanted = documents.clone();
        wanted.sort_by_key(|document| xxh3_64_with_seed(document, SEED));
        documents.extend_from_within(500..1500);
        for (max_documents, max_bytes) in [
            (0, 99),
            (1, 0),
            (100, 1 << 20),
            (5000, 3000),
            (5000, 1 << 20),
        ] {
            let mut sum = 0;
            let fits = |(i, document): &(usize, &Vec<u8>)| {
                sum += document.len();
                *i < max_documents && (*i == 0 || sum <= max_bytes)
            };
            let wanted: Vec<Box<[u8]>> = wanted
                .iter()
                .enumerate()
                .take_while(fits)
                .map(|(_, document)| document.as_slice().into())
                .collect();
            assert_eq!(sample(&documents, max_documents, max_bytes), wanted);
            documents.reverse();
            assert_eq!(sample(&documents, max_documents, max_bytes), wanted);
        }
    }
}
