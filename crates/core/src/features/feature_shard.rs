//! How many documents contain each feature with a given highest byte?

use std::mem::take;

use super::feature_table::FeatureTable;
use super::weight_table::CellPlan;

pub(super) const SHARD_BITS: u32 = 8;
pub(super) const NUM_SHARDS: usize = 1 << SHARD_BITS;
/// Number of waiting features that are counted together.
const MIN_WAITING: usize = 4096;

/// Returns the shard of a hash: its highest bits, so that consecutive shards hold ascending features.
#[inline(always)]
pub(super) fn shard_of(hash: u64) -> usize {
    (hash >> (64 - SHARD_BITS)) as usize
}

/// Counts of features and features that wait to be counted, or the cells of a sketch.
#[derive(Debug, Default)]
pub(super) struct Shard {
    pub(super) counts: FeatureTable,
    waiting: Vec<u64>,
    /// Counts of the sketch, once there are too many features.
    pub(super) cells: Vec<u32>,
}

impl Shard {
    /// Whether there are too many features to be listed.
    pub(super) fn is_over(&self) -> bool {
        !self.cells.is_empty()
    }

    /// Adds waiting features; returns whether there are enough to count, since together they find the table in a cache.
    pub(super) fn wait(&mut self, features: &[u64]) -> bool {
        self.waiting.extend_from_slice(features);
        self.waiting.len() >= MIN_WAITING
    }

    /// Counts the waiting features; returns how many features are new.
    pub(super) fn count_waiting(&mut self) -> u64 {
        let num_new = self.counts.add(&self.waiting);
        self.waiting.clear();
        num_new
    }

    /// Switches to counting in the cells of a sketch. `plan` is that of all shards, `which` the number of this shard.
    pub(super) fn go_over(&mut self, plan: CellPlan, which: usize) {
        let Shard {
            counts, waiting, ..
        } = take(self);
        self.cells = vec![0; plan.num_cells() as usize / NUM_SHARDS];
        for (feature, count) in counts.iter() {
            self.count_in_cells(plan, which, feature, count);
        }
        self.count_cells(plan, which, &waiting);
    }

    pub(super) fn count_cells(&mut self, plan: CellPlan, which: usize, features: &[u64]) {
        for &feature in features {
            self.count_in_cells(plan, which, feature, 1);
        }
    }

    fn count_in_cells(&mut self, plan: CellPlan, which: usize, feature: u64, count: u32) {
        let width = plan.width / NUM_SHARDS as u64;
        for row in 0..plan.depth {
            let column = plan.column(feature, row) - which as u64 * width;
            let cell = &mut self.cells[(u64::from(row) * width + column) as usize];
            *cell = cell.saturating_add(count);
        }
    }
}

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
