//! How are the features of consecutive documents grouped for a counter, which processes one shard after another?

use super::feature_shard::{NUM_SHARDS, shard_of};

/// Collects the distinct features of documents, reusing its memory; each thread has its own.
#[derive(Debug, Default)]
pub struct ShardedBuilder {
    collected: Vec<u64>,
    /// The same by shard, once they are grouped.
    features: Vec<u64>,
    /// Start of each shard, and the end.
    starts: Vec<usize>,
}

impl ShardedBuilder {
    pub fn push(&mut self, features: &[u64]) {
        self.collected.extend_from_slice(features);
    }

    /// Groups the features that were added, and starts over.
    pub(super) fn group(&mut self) {
        self.starts.clear();
        self.starts.resize(NUM_SHARDS + 1, 0);
        for &feature in &self.collected {
            self.starts[shard_of(feature) + 1] += 1;
        }
        for shard in 0..NUM_SHARDS {
            self.starts[shard + 1] += self.starts[shard];
        }
        let mut places = self.starts.clone();
        self.features.resize(self.collected.len(), 0);
        for &feature in &self.collected {
            let place = &mut places[shard_of(feature)];
            self.features[*place] = feature;
            *place += 1;
        }
        self.collected.clear();
    }

    pub(super) fn of_shard(&self, shard: usize) -> &[u64] {
        &self.features[self.starts[shard]..self.starts[shard + 1]]
    }
}
