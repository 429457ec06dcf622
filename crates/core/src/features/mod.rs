//! What are the weighted features of a text?
//!
//! text -> tokens -> token hashes -> shingles -> distinct features and their weights.

mod distinct;
mod document_counter;
mod feature_filter;
mod feature_hash;
mod feature_shard;
mod feature_table;
mod identifiers;
mod package_features;
mod rarity;
#[cfg(test)]
mod rule_tests;
mod shingle;
pub mod siblings;
#[cfg(test)]
mod tests;
mod text_sample;
mod weigher;
mod weight_table;
mod weights;

use std::sync::Arc;

use crate::hash::{mix64, xxh3_64_with_seed};
use crate::isa::Isa;
use crate::text::{self, Cutter, Document, Preparer, Spans, TextRules, Tokens};
use crate::token_hash::TokenHasher;
use distinct::Distinct;
use feature_hash::JoinedTokens;
use identifiers::IdentifierFeatures;
pub(crate) use identifiers::disagree;
use shingle::shingle;
use siblings::{Form, NameReader, NameTable, Names};
use weigher::Weigher;

pub use document_counter::{Counted, DocumentCounter};
pub use feature_filter::FeatureFilter;
pub use feature_hash::{FeatureHash, multiplicative_hash};
pub use feature_shard::ShardedBuilder;
pub(crate) use feature_table::FeatureTable;
pub use rarity::{Rarity, log_count_idf_weight};
pub use text_sample::{TextDigester, TextSample};
pub use weigher::{FeatureWeights, UNLISTED_WEIGHT, term_feature};
pub use weight_table::{CellPlan, Entries, WeightTable, table_id};
pub use weights::{MAX_WEIGHT, Weights, digest, log_count_weight};
pub(crate) use weights::{check_lengths, total_weight};

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct FeatureRules {
    pub tokens: Tokens,
    /// Number of tokens per shingle, 1 to 64.
    pub shingle: u32,
    pub weights: Weights,
    /// Seed of the token hash, if it takes one.
    pub seed: u64,
    /// Hash of a token. [`FeatureHash::Simhash1e0ng`] has its own tokens and shingles.
    pub hash: FeatureHash,
}

/// Whether a text was long enough for its shingles.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Shape {
    /// At least one shingle.
    Full = 0,
    /// Fewer tokens than one shingle: one feature represents the whole text.
    Short = 1,
    /// The normalized text is empty: no feature.
    Empty = 2,
}

/// Features of one text, borrowed from its [`Extractor`].
#[derive(Debug, Clone, Copy)]
pub struct FeatureView<'a> {
    /// Distinct features, in order of first occurrence.
    pub features: &'a [u64],
    /// Their weights; empty if all are 1.
    pub weights: &'a [u32],
    /// Whether the text was long enough.
    pub shape: Shape,
    /// Distinguishes the features from those of documents with other values, if texts have a value: [`add_salt`].
    pub salt: Option<u64>,
}

/// Converts texts to features, reusing its memory; each thread needs its own.
#[derive(Debug)]
pub struct Extractor {
    rules: FeatureRules,
    isa: Isa,
    text_rules: TextRules,
    hasher: TokenHasher,
    spans: Spans,
    /// For rules other than the default ones.
    cutter: Cutter,
    preparer: Preparer,
    stop_filter: Option<StopFilter>,
    identifiers: Option<IdentifierFeatures>,
    /// Normalized text, followed by padding.
    normalized: Vec<u8>,
    /// Token hashes, then features.
    occurrences: Vec<u64>,
    /// Tokens, if shingles of them are joined and hashed.
    joined: JoinedTokens,
    distinct: Distinct,
    weigher: Weigher,
    /// Whether weights only determine which features exist.
    pub counts_once: bool,
    /// The salt of the last document.
    salt: Option<u64>,
    /// Whether [`Extractor::features`] have the salt; rarity is counted regardless of the values of documents.
    pub adds_salt: bool,
    /// What reads the names of documents, if they are needed.
    names: Option<NameReader>,
    name_table: Option<Arc<NameTable>>,
}

impl Extractor {
    /// Creates an extractor for these rules. A shingle of 0 counts as 1.
    pub fn new(rules: FeatureRules, isa: Isa) -> Self {
        Extractor {
            isa,
            hasher: TokenHasher::new(rules.seed, isa),
            spans: Spans::new(),
            text_rules: TextRules::default(),
            cutter: Cutter::default(),
            preparer: Preparer::default(),
            stop_filter: None,
            identifiers: None,
            rules: FeatureRules {
                shingle: rules.shingle.max(1),
                ..rules
            },
            normalized: Vec::new(),
            occurrences: Vec::new(),
            joined: JoinedTokens::default(),
            distinct: Distinct::default(),
            weigher: Weigher::default(),
            counts_once: false,
            salt: None,
            adds_salt: true,
            names: None,
            name_table: None,
        }
    }

    /// Sets the table from which weights are read.
    #[must_use]
    pub fn with_table(mut self, table: Option<FeatureWeights>) -> Self {
        self.weigher.table = table;
        self
    }

    /// Reads also what names a document, by a table of names if there is one.
    #[must_use]
    pub fn with_names(mut self, table: Option<Arc<NameTable>>) -> Self {
        self.names = Some(NameReader::default());
        self.name_table = table;
        self
    }

    /// Returns the names of the last document, if they are read.
    pub fn names(&mut self) -> Option<Names> {
        let table = self.name_table.as_deref();
        let by_rarity = self.rules.weights == Weights::Idf;
        self.names
            .as_mut()
            .map(|names| names.names(table, by_rarity, self.isa))
    }

    /// Returns the form that the last document was made from, if its names are read and it has slots.
    pub fn form(&mut self) -> Option<Form> {
        let table = self.name_table.as_deref();
        self.names.as_mut()?.form(table, self.isa)
    }

    /// Returns the hashes of the tokens of the last document, in order, if its names are read.
    pub fn tokens(&self) -> &[u64] {
        self.names.as_ref().map_or(&[], NameReader::tokens)
    }

    /// Sets text rules other than the default ones.
    #[must_use]
    pub fn with_text_rules(mut self, rules: TextRules) -> Self {
        let words = rules.stop_words.as_deref();
        self.stop_filter =
            words.map(|words| StopFilter::new(words.words(), self.rules.hash, self.rules.seed));
        self.identifiers = rules
            .has_identifiers
            .then(|| IdentifierFeatures::new(&rules));
        self.text_rules = rules;
        self
    }

    /// Returns the feature of every shingle, in order, including repetitions. Cost: linear in the text.
    pub fn occurrences<'a>(&mut self, document: impl Into<Document<'a>>) -> (&[u64], Shape) {
        let shape = self.extract(document.into());
        if let Some(salt) = self.salt {
            add_salt(salt, &mut self.occurrences);
        }
        (&self.occurrences, shape)
    }

    /// Returns the distinct features, in order of first occurrence, and their weights. Cost: linear in the text. A
    /// document that does not suit the kind of tokens (bytes for words, a text for the user's tokens) counts as empty.
    pub fn features<'a>(&mut self, document: impl Into<Document<'a>>) -> FeatureView<'_> {
        let shape = self.extract(document.into());
        self.distinct.collect(&self.occurrences);
        let rule = self.rules.weights;
        self.weigher
            .weigh(rule, &self.occurrences, &mut self.distinct, self.isa);
        if let (Some(salt), true) = (self.salt, self.adds_salt) {
            add_salt(salt, &mut self.distinct.features);
        }
        FeatureView {
            features: &self.distinct.features,
            weights: match self.counts_once {
                true => &[],
                false => self.weigher.weights(rule, &self.distinct),
            },
            shape,
            salt: self.salt,
        }
    }

    fn extract(&mut self, document: Document<'_>) -> Shape {
        if !self.text_rules.has_value {
            return self.extract_text(document);
        }
        let (value, text) = document.split_value();
        self.salt = Some(value_salt(value));
        match self.extract_text(text) {
            // Without a feature, empty texts with different values would be equal.
            Shape::Empty => {
                self.occurrences.push(NO_TOKENS);
                Shape::Short
            }
            shape => shape,
        }
    }

    fn extract_text(&mut self, document: Document<'_>) -> Shape {
        self.release_scratch(document.bytes().len());
        self.occurrences.clear();
        if let Some(names) = &mut self.names {
            names.clear();
        }
        if let Document::Text(text) = document {
            match self.rules.hash {
                FeatureHash::Simhash1e0ng => return self.extract_as_simhash_package(text),
                FeatureHash::Datasketch => return self.extract_joined(text),
                _ => {}
            }
        }
        match (document, self.rules.tokens) {
            (Document::Text(text), Tokens::Char) if self.text_rules.keep_text() => {
                self.hash_scalars(text);
            }
            (Document::Text(text), Tokens::Word | Tokens::Auto) if self.text_rules.keep_words() => {
                self.hash_words(text);
            }
            _ => self.hash_by_rules(document),
        }
        if let Some(names) = &mut self.names {
            names.read(&self.occurrences);
        }
        if let Some(filter) = &self.stop_filter {
            filter.apply(&mut self.occurrences);
        }
        let num_tokens = self.occurrences.len();
        let width = self.rules.shingle as usize;
        let rule = self.rules.weights;
        self.weigher
            .weigh_shingles(rule, &self.occurrences, width.min(num_tokens));
        if num_tokens == 0 {
            self.normalize_document(document);
            if self.normalized.is_empty() {
                return Shape::Empty;
            }
            let (hash, seed) = (self.rules.hash, self.rules.seed);
            self.occurrences.push(match hash {
                FeatureHash::Datasketch => hash.of(&self.normalized, seed),
                _ => mix64(xxh3_64_with_seed(&self.normalized, seed) ^ NO_TOKENS),
            });
            return Shape::Short;
        }
        let shape = match num_tokens < width {
            true => Shape::Short,
            false => Shape::Full,
        };
        if width > 1 {
            shingle(&mut self.occurrences, width.min(num_tokens), self.isa);
        }
        if let (Some(identifiers), Document::Text(text)) = (&mut self.identifiers, document) {
            identifiers.append(text, self.rules.seed, self.isa, &mut self.occurrences);
        }
        shape
    }

    /// Frees the memory that a huge text required, so that one text does not count against the memory of a whole run.
    fn release_scratch(&mut self, text_bytes: usize) {
        if self.normalized.capacity() > MAX_IDLE_SCRATCH && text_bytes < MAX_IDLE_SCRATCH / 2 {
            self.normalized = Vec::new();
            self.joined = JoinedTokens::default();
            self.occurrences = Vec::new();
            self.distinct = Distinct::default();
            self.weigher.release();
            self.cutter.release();
            self.preparer.release();
            if let Some(identifiers) = &mut self.identifiers {
                identifiers.release();
            }
        }
    }

    /// Writes the normalized text of a document without tokens; nothing if it has no text.
    fn normalize_document(&mut self, document: Document<'_>) {
        let text = match (document, self.rules.tokens) {
            (Document::Tokens(tokens), Tokens::User) => tokens.text(),
            (Document::Text(text), tokens) if tokens != Tokens::User => text,
            _ => "",
        };
        let Extractor {
            preparer,
            text_rules,
            isa,
            normalized,
            ..
        } = self;
        // SAFETY: `new` keeps only an instruction set that the processor has.
        unsafe { preparer.prepare(text, text_rules, *isa, normalized) };
    }

    /// Hashes the tokens of a document by rules without a specialized path.
    fn hash_by_rules(&mut self, document: Document<'_>) {
        let Extractor {
            hasher,
            occurrences,
            cutter,
            spans,
            weigher,
            names,
            ..
        } = self;
        let (hash, seed) = (self.rules.hash, self.rules.seed);
        match (self.rules.tokens, document) {
            (Tokens::User, Document::Tokens(tokens)) => {
                weigher.of_tokens.clear();
                for (token, weight) in tokens.iter() {
                    occurrences.push(hash.of(token, seed));
                    weigher.of_tokens.push(weight);
                    if let Some(names) = names {
                        names.see([(token, token.len())].into_iter());
                    }
                }
            }
            (Tokens::Bytes, Document::Text(_) | Document::Bytes(_)) => {
                hasher.hash_bytes(document.bytes(), occurrences);
            }
            (Tokens::Chunks, Document::Text(_) | Document::Bytes(_)) => {
                let take = |chunk: &[u8]| occurrences.push(hash.of(chunk, seed));
                self.text_rules.chunks.cut(document.bytes(), take);
            }
            (tokens, Document::Text(text)) => {
                // SAFETY: `new` keeps only an instruction set that the processor has.
                unsafe { cutter.cut(text, tokens, &self.text_rules, self.isa, spans) };
                see_tokens(names, &cutter.text, &cutter.starts, &cutter.ends);
                hash_tokens(
                    hasher,
                    hash,
                    seed,
                    &cutter.text,
                    &cutter.starts,
                    &cutter.ends,
                    occurrences,
                );
            }
            _ => {}
        }
    }

    fn normalize(&mut self, text: &str) {
        // SAFETY: `new` keeps only an instruction set that the processor has.
        unsafe { text::normalize_into(text, self.isa, &mut self.normalized) };
    }

    fn hash_words(&mut self, text: &str) {
        let part_katakana = self.rules.tokens == Tokens::Auto;
        let (hash, seed) = (self.rules.hash, self.rules.seed);
        let (fold, isa) = (self.text_rules.fold, self.isa);
        let Extractor {
            hasher,
            occurrences,
            normalized,
            spans,
            names,
            ..
        } = self;
        let mut take = |text: &[u8], starts: &[u32], ends: &[u32]| {
            see_tokens(names, text, starts, ends);
            hash_tokens(hasher, hash, seed, text, starts, ends, occurrences)
        };
        // SAFETY: `new` keeps only an instruction set that the processor has.
        unsafe { text::cut_words(text, fold, part_katakana, isa, normalized, spans, &mut take) };
    }

    fn hash_scalars(&mut self, text: &str) {
        self.normalize(text);
        if self.rules.hash != FeatureHash::Xxh3 {
            let (hash, seed) = (self.rules.hash, self.rules.seed);
            let text = String::from_utf8_lossy(&self.normalized);
            let scalars = text.chars();
            self.occurrences
                .extend(scalars.map(|c| hash.of(c.encode_utf8(&mut [0; 4]).as_bytes(), seed)));
            return;
        }
        let len = text::pad(&mut self.normalized);
        self.hasher
            .hash_scalars(&self.normalized, len, &mut self.occurrences);
    }
}

/// Reads the tokens `text[starts[i]..ends[i]]` as names, if they are needed.
#[inline]
fn see_tokens(names: &mut Option<NameReader>, text: &[u8], starts: &[u32], ends: &[u32]) {
    let Some(names) = names else { return };
    let spans = starts.iter().zip(ends);
    names.see(spans.map(|(&start, &end)| (&text[start as usize..], (end - start) as usize)));
}

/// Appends the hashes of the tokens `text[starts[i]..ends[i]]`; the text must be padded.
#[inline]
fn hash_tokens(
    hasher: &TokenHasher,
    hash: FeatureHash,
    seed: u64,
    text: &[u8],
    starts: &[u32],
    ends: &[u32],
    hashes: &mut Vec<u64>,
) {
    if hash == FeatureHash::Xxh3 {
        hasher.hash(text, starts, ends, hashes);
        return;
    }
    let places = starts.iter().zip(ends);
    let tokens = places.map(|(&start, &end)| &text[start as usize..end as usize]);
    hashes.extend(tokens.map(|token| hash.of(token, seed)));
}

/// Converts features to those of documents with one value, which share none with documents of another value.
pub fn add_salt(salt: u64, features: &mut [u64]) {
    for feature in features {
        *feature = mix64(*feature ^ salt);
    }
}

fn value_salt(value: &str) -> u64 {
    xxh3_64_with_seed(value.as_bytes(), VALUE)
}

/// "only_in_" in ASCII.
const VALUE: u64 = 0x6F6E_6C79_5F69_6E5F;

/// Maximum number of bytes of normalized text for which scratch space is kept between texts.
const MAX_IDLE_SCRATCH: usize = 8 << 20;

/// "notokens" in ASCII: distinguishes texts without tokens from tokens with the same bytes.
const NO_TOKENS: u64 = 0x6E6F_746F_6B65_6E73;

#[derive(Debug)]
pub(super) struct StopFilter {
    hashes: Distinct,
}

impl StopFilter {
    /// Creates the filter of normalized words, for a token hash and its seed.
    pub(super) fn new(words: &[String], hash: FeatureHash, seed: u64) -> Self {
        let hashes = words.iter().map(|word| hash.of(word.as_bytes(), seed));
        let hashes: Vec<u64> = hashes.collect();
        let mut found = Distinct::default();
        found.collect(&hashes);
        StopFilter { hashes: found }
    }

    /// Removes the tokens that are stop words, unless all are.
    pub(super) fn apply(&self, tokens: &mut Vec<u64>) {
        let is_stop = |token: &u64| self.hashes.place(*token).is_some();
        if !tokens.iter().all(is_stop) {
            tokens.retain(|token| !is_stop(token));
        }
    }
}

#[cfg(test)]
mod stop_filter_tests {
    use super::*;

    #[test]
    fn stop_words_go_unless_nothing_else_is_there() {
        let filter = StopFilter::new(&["the".into(), "of".into()], FeatureHash::Md5, 5);
        let hash = |word: &str| FeatureHash::Md5.of(word.as_bytes(), 5);
        let mut tokens = vec![hash("the"), hash("cat"), hash("of"), hash("the")];
        filter.apply(&mut tokens);
        assert_eq!(tokens, [hash("cat")]);
        let mut only = vec![hash("of"), hash("the")];
        filter.apply(&mut only);
        assert_eq!(only, [hash("of"), hash("the")]);
    }
}
