//! How many documents contain each feature with a given highest byte?

use std::mem::take;

use super::feature_table::FeatureTable;
use super::weight_table::CellPlan;

const SHARD_BITS: u32 = 8;
pub(super) const NUM_SHARDS: usize = 1 << SHARD_BITS;
/// Number of features below which they are sorted by comparisons.
const LEAST_BY_DIGITS: usize = 512;
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

/// Sorts the features of one shard: by the two bytes below the highest one, then by the rest.
pub(super) fn sort_features(features: &mut Vec<u64>) {
    if features.len() < LEAST_BY_DIGITS {
        return features.sort_unstable();
    }
    let mut sorted = vec![0; features.len()];
    for shift in [64 - 3 * SHARD_BITS, 64 - 2 * SHARD_BITS] {
        let digit = |feature: u64| (feature >> shift) as usize & (NUM_SHARDS - 1);
        let mut places = [0usize; NUM_SHARDS + 1];
        features
            .iter()
            .for_each(|&feature| places[digit(feature) + 1] += 1);
        for i in 0..NUM_SHARDS {
            places[i + 1] += places[i];
        }
        for &feature in &*features {
            let place = &mut places[digit(feature)];
            sorted[*place] = feature;
            *place += 1;
        }
        std::mem::swap(features, &mut sorted);
    }
    let prefix = |feature: u64| feature >> (64 - 3 * SHARD_BITS);
    features
        .chunk_by_mut(|&a, &b| prefix(a) == prefix(b))
        .for_each(<[u64]>::sort_unstable);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Random;

    #[test]
    fn features_are_sorted_however_they_are_spread() {
        let mut random = Random::new(4);
        for len in [0, 1, LEAST_BY_DIGITS - 1, LEAST_BY_DIGITS, 5000] {
            for mask in [u64::MAX >> SHARD_BITS, 0xFFFF, 0xFF << 48, 0xFF << 40 | 7] {
                let mut features: Vec<u64> =
                    (0..len).map(|_| 5 << 56 | random.next() & mask).collect();
                let mut wanted = features.clone();
                wanted.sort_unstable();
                sort_features(&mut features);
                assert_eq!(features, wanted, "{len} {mask:x}");
            }
        }
    }
}
