//! How are the features of consecutive documents held for a counter?
//!
//! Features are grouped by shard, since the counter processes one shard after another. The shard of each feature, in
//! the order of the documents, restores their order.

use std::ops::Range;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU8, Ordering};

use super::feature_shard::{NUM_SHARDS, shard_of};

/// Distinct features of consecutive documents, and in the end their weights.
#[derive(Debug)]
pub struct ShardedDocuments {
    /// Features of new documents by shard, then those of repeated documents by shard. Features of one shard are in the
    /// order of the documents.
    features: Vec<u64>,
    /// Start of each of these groups, and the end.
    starts: Vec<u32>,
    /// As many as features; threads store those of different shards at the same time.
    weights: OnceLock<Vec<AtomicU8>>,
    /// Shard of each feature, in the order of the documents.
    shards: Vec<u8>,
    /// End of the features of each document in that order.
    ends: Vec<u32>,
    is_new: Vec<bool>,
}

/// Collects documents, reusing its memory; each thread has its own.
#[derive(Debug, Default)]
pub struct ShardedBuilder {
    features: Vec<u64>,
    ends: Vec<u32>,
    is_new: Vec<bool>,
}

impl ShardedBuilder {
    /// Adds the distinct features of a document; `is_new` is the result of
    /// [`DocumentCounter::is_new`](super::DocumentCounter::is_new).
    ///
    /// # Panics
    /// Panics if the documents have 2^32 features or more in total.
    pub fn push(&mut self, features: &[u64], is_new: bool) {
        self.features.extend_from_slice(features);
        let end = u32::try_from(self.features.len());
        self.ends.push(end.expect("fewer than 2^32 features"));
        self.is_new.push(is_new);
    }

    /// Returns the added documents, and starts over.
    pub fn take(&mut self) -> ShardedDocuments {
        let mut starts = vec![0u32; 2 * NUM_SHARDS + 1];
        let groups = || {
            let ends = self.ends.iter().zip(&self.is_new);
            ends.scan(0, |start, (&end, &is_new)| {
                let range = *start as usize..end as usize;
                *start = end;
                Some((range, if is_new { 0 } else { NUM_SHARDS }))
            })
        };
        let mut shards = Vec::with_capacity(self.features.len());
        for (range, first) in groups() {
            for &feature in &self.features[range] {
                let shard = shard_of(feature);
                shards.push(shard as u8);
                starts[first + shard + 1] += 1;
            }
        }
        for i in 0..2 * NUM_SHARDS {
            starts[i + 1] += starts[i];
        }
        let mut features = vec![0; self.features.len()];
        let mut places = starts.clone();
        for (range, first) in groups() {
            for &feature in &self.features[range] {
                let place = &mut places[first + shard_of(feature)];
                features[*place as usize] = feature;
                *place += 1;
            }
        }
        self.features.clear();
        ShardedDocuments {
            weights: OnceLock::new(),
            features,
            starts,
            shards,
            ends: self.ends.drain(..).collect(),
            is_new: self.is_new.drain(..).collect(),
        }
    }
}

impl ShardedDocuments {
    /// Returns the memory that they take with weights.
    pub fn num_bytes(&self) -> usize {
        10 * self.features.len() + 4 * self.starts.len() + 5 * self.ends.len()
    }

    /// Returns the number of documents.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Whether there are no documents.
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// Whether the weights are stored.
    pub fn is_weighed(&self) -> bool {
        self.weights.get().is_some()
    }

    /// Calls `work` with the number, features and weights of each document, in order.
    ///
    /// # Panics
    /// Panics if the weights are not stored.
    pub fn for_each(&self, mut work: impl FnMut(usize, &[u64], &[u32])) {
        let weights = self.weights.get().expect("documents are weighed");
        let (new, repeated) = self.starts[..2 * NUM_SHARDS].split_at(NUM_SHARDS);
        let mut places = [new, repeated].map(<[u32]>::to_vec);
        let (mut of_document, mut their_weights) = (Vec::new(), Vec::new());
        let mut start = 0;
        for (i, (&end, &is_new)) in self.ends.iter().zip(&self.is_new).enumerate() {
            let places = &mut places[usize::from(!is_new)];
            of_document.clear();
            their_weights.clear();
            for &shard in &self.shards[start as usize..end as usize] {
                let place = &mut places[usize::from(shard)];
                of_document.push(self.features[*place as usize]);
                their_weights.push(u32::from(weights[*place as usize].load(Ordering::Relaxed)));
                *place += 1;
            }
            work(i, &of_document, &their_weights);
            start = end;
        }
    }

    /// Returns the features of new documents in a shard.
    pub(super) fn new_features(&self, shard: usize) -> &[u64] {
        &self.features[self.group(shard)]
    }

    /// Returns the number of features of new documents.
    pub(super) fn num_new(&self) -> usize {
        self.starts[NUM_SHARDS] as usize
    }

    /// Stores the weights of all features in a shard: `store` gets features, and where to store the weight of each.
    pub(super) fn weigh(&self, shard: usize, store: impl Fn(&[u64], &[AtomicU8])) {
        let zeros = || self.features.iter().map(|_| AtomicU8::new(0)).collect();
        let weights = self.weights.get_or_init(zeros);
        for group in [shard, NUM_SHARDS + shard] {
            let range = self.group(group);
            store(&self.features[range.clone()], &weights[range]);
        }
    }

    fn group(&self, group: usize) -> Range<usize> {
        self.starts[group] as usize..self.starts[group + 1] as usize
    }
}
