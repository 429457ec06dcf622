//! What is known of documents before they are decided?

use std::ops::Range;
use std::sync::Arc;

use likewise_core::error::Error;
use likewise_core::features::siblings::Names;
use likewise_core::features::{Extractor, Shape, digest};
use likewise_core::isa::Isa;
use likewise_core::parallel::Run;
use likewise_core::sketch::{MinHasher, simhash};
use likewise_core::text::{Document, OwnTokens};
use likewise_core::verify::FeatureSet;
use likewise_disk::store::{Content, DocumentRow, NewContent};
use xxhash_rust::xxh3::xxh3_64;

use crate::rules::{Method, Rules};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TextKind {
    /// UTF-8.
    Text,
    /// Tokens that the user cut, encoded.
    Tokens,
}

impl TextKind {
    /// The document of stored bytes; invalid UTF-8 was given as bytes.
    pub fn document(self, bytes: &[u8]) -> Document<'_> {
        match self {
            TextKind::Tokens => Document::Tokens(OwnTokens::new(bytes)),
            TextKind::Text => match std::str::from_utf8(bytes) {
                Ok(text) => Document::Text(text),
                Err(_) => Document::Bytes(bytes),
            },
        }
    }
}

/// Makes what cuts features; each thread has its own.
pub type MakeExtractor = Arc<dyn Fn(Isa) -> Extractor + Send + Sync>;

/// Turns documents into sketches and feature sets.
#[derive(Clone)]
pub struct Sketching {
    pub rules: Rules,
    pub make_extractor: MakeExtractor,
    pub text_kind: TextKind,
    pub isa: Isa,
}

/// Documents sketched, column by column.
#[derive(Debug, Default, Clone)]
pub struct Documents {
    /// Sketches, one behind another.
    pub sketches: Vec<u8>,
    /// [`Shape`] of each.
    pub shapes: Vec<u8>,
    pub num_features: Vec<u32>,
    /// Digests of the feature sets; none where sketches were given.
    pub feature_digests: Vec<u128>,
    /// XXH3-64 of the texts; none where sketches were given.
    pub text_digests: Vec<u64>,
    /// Features of all documents that have them here, ascending in each.
    features: Vec<u64>,
    /// Their weights, 1 or more.
    weights: Vec<u32>,
    /// Where the features of each document end; as long as `shapes`, or empty.
    set_ends: Vec<usize>,
    /// Whether features are held of each document.
    has_set: Vec<bool>,
    /// What names each document; empty unless the rules compare names.
    names: Vec<Names>,
}

impl Documents {
    /// Documents that consist of sketches only.
    pub fn of_sketches(sketches: Vec<u8>, shapes: Vec<u8>, num_features: Vec<u32>) -> Self {
        Documents {
            sketches,
            shapes,
            num_features,
            ..Documents::default()
        }
    }

    pub fn len(&self) -> usize {
        self.shapes.len()
    }

    pub fn is_empty(&self) -> bool {
        self.shapes.is_empty()
    }

    /// Whether the normalized text of a document is empty.
    pub fn is_blank(&self, i: usize) -> bool {
        self.shapes[i] == Shape::Empty as u8
    }

    pub fn sketch(&self, i: usize) -> &[u8] {
        let bytes = self.sketches.len() / self.len();
        &self.sketches[i * bytes..(i + 1) * bytes]
    }

    /// Features and weights of a document, if present.
    pub fn set(&self, i: usize) -> Option<(&[u64], &[u32])> {
        if !self.has_set.get(i).copied().unwrap_or(false) {
            return None;
        }
        let begin = if i == 0 { 0 } else { self.set_ends[i - 1] };
        let range = begin..self.set_ends[i];
        Some((&self.features[range.clone()], &self.weights[range]))
    }

    /// What names a document, if the rules compare names.
    pub fn names(&self, i: usize) -> Option<&Names> {
        self.names.get(i)
    }

    /// Appends a stored document with its features, if any. Either all documents have a text digest, or none.
    pub fn push_stored(&mut self, document: &DocumentRow<'_>) {
        self.sketches.extend_from_slice(document.sketch);
        self.shapes.push(document.shape);
        self.num_features.push(document.num_features);
        self.feature_digests.push(document.digest);
        self.text_digests.extend(document.text_digest);
        if let NewContent::Features(features, weights) = document.content {
            self.features.extend_from_slice(features);
            match weights.is_empty() {
                true => self.weights.resize(self.features.len(), 1),
                false => self.weights.extend_from_slice(weights),
            }
        }
        let has_set = matches!(document.content, NewContent::Features(..));
        self.has_set.push(has_set);
        self.set_ends.push(self.features.len());
    }

    fn append(&mut self, other: Documents) {
        let base = self.features.len();
        self.sketches.extend_from_slice(&other.sketches);
        self.shapes.extend_from_slice(&other.shapes);
        self.num_features.extend_from_slice(&other.num_features);
        self.feature_digests
            .extend_from_slice(&other.feature_digests);
        self.text_digests.extend_from_slice(&other.text_digests);
        self.features.extend_from_slice(&other.features);
        self.weights.extend_from_slice(&other.weights);
        self.set_ends
            .extend(other.set_ends.iter().map(|end| base + end));
        self.has_set.extend_from_slice(&other.has_set);
        self.names.extend(other.names);
    }
}

/// The digest of the features of a stored document: the stored one, else that of its content; 0 if unknown.
pub fn known_digest(stored: Option<u128>, content: &Content) -> u128 {
    match (stored, content) {
        (Some(digest), _) => digest,
        (None, Content::Features(features, weights)) => wide(digest(features, weights)),
        (None, _) => 0,
    }
}

/// Joins the halves of a digest.
pub fn wide(digest: [u64; 2]) -> u128 {
    u128::from(digest[1]) << 64 | u128::from(digest[0])
}

impl Sketching {
    /// Sketches documents in the `ranges` that a thread takes at once, about 3 ns a byte.
    pub fn documents<'d>(
        &self,
        ranges: &[Range<usize>],
        document: impl Fn(usize) -> Document<'d> + Sync,
        run: Run<'_>,
    ) -> Result<Documents, Error> {
        let make = || self.sketcher();
        let parts = run.map(ranges.len(), 1, make, |sketcher, which| {
            let mut part = Documents::default();
            for i in ranges[which.start].clone() {
                sketcher.add(document(i), &mut part);
            }
            part
        })?;
        let mut parts = parts.into_iter();
        let mut all = parts.next().unwrap_or_default();
        for part in parts {
            all.append(part);
        }
        Ok(all)
    }

    pub fn sketcher(&self) -> Sketcher {
        let hasher = match self.rules.method {
            Method::Simhash { .. } => None,
            Method::Minhash {
                num_slots, scheme, ..
            } => Some(MinHasher::new(num_slots, scheme, self.rules.seed, self.isa)),
        };
        Sketcher {
            rules: self.rules,
            isa: self.isa,
            extractor: (self.make_extractor)(self.isa),
            hasher,
            slots: Vec::new(),
            pairs: Vec::new(),
        }
    }

    /// The feature set of a stored text as the rules measure it.
    pub fn set_of_text(&self, extractor: &mut Extractor, bytes: &[u8]) -> FeatureSet {
        let view = extractor.features(self.text_kind.document(bytes));
        let set = measured_set(&self.rules, view.features, view.weights);
        set.with_names(extractor.names())
    }
}

/// The feature set that is measured: in Hamming-only recipes each feature counts once.
pub fn measured_set(rules: &Rules, features: &[u64], weights: &[u32]) -> FeatureSet {
    match rules.is_distance_only() {
        true => FeatureSet::new(features, &[]),
        false => FeatureSet::new(features, weights),
    }
}

/// Sketches documents one by one, with the scratch space of a thread.
pub struct Sketcher {
    rules: Rules,
    isa: Isa,
    extractor: Extractor,
    hasher: Option<MinHasher>,
    slots: Vec<u32>,
    pairs: Vec<(u64, u32)>,
}

impl Sketcher {
    /// Puts a document behind others.
    pub fn add(&mut self, document: Document<'_>, out: &mut Documents) {
        out.text_digests.push(xxh3_64(document.bytes()));
        let view = self.extractor.features(document);
        let (features, weights) = (view.features, view.weights);
        match (self.rules.method, &mut self.hasher) {
            (
                Method::Minhash {
                    num_slots,
                    slot_bytes,
                    ..
                },
                Some(hasher),
            ) => {
                self.slots.resize(num_slots as usize, 0);
                hasher.sketch(features, weights, &mut self.slots);
                for slot in &self.slots {
                    out.sketches
                        .extend_from_slice(&slot.to_le_bytes()[..slot_bytes as usize]);
                }
            }
            (Method::Simhash { bits, .. }, _) => {
                let mut words = [0; 4];
                let words = &mut words[..bits.div_ceil(64) as usize];
                simhash(features, weights, bits, self.isa, words);
                out.sketches
                    .extend(words.iter().flat_map(|word| word.to_le_bytes()));
            }
            (Method::Minhash { .. }, None) => {}
        }
        let num_features = features.len() as u32;
        out.num_features.push(num_features);
        out.shapes.push(view.shape as u8);
        out.feature_digests.push(wide(digest(features, weights)));
        let has_set = self.rules.keeps_set(num_features);
        if has_set {
            self.pairs.clear();
            match weights.is_empty() {
                true => self.pairs.extend(features.iter().map(|&f| (f, 1))),
                false => self
                    .pairs
                    .extend(features.iter().copied().zip(weights.iter().copied())),
            }
            self.pairs.sort_unstable_by_key(|&(feature, _)| feature);
            out.features.extend(self.pairs.iter().map(|&(f, _)| f));
            out.weights.extend(self.pairs.iter().map(|&(_, w)| w));
        }
        out.has_set.push(has_set);
        out.set_ends.push(out.features.len());
        out.names.extend(self.extractor.names());
    }
}
