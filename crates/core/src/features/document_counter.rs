//! How many documents contain each feature?
//!
//! The count takes one pass, on any number of threads, with documents in any order: all additions commute, so the
//! counts depend only on the documents. The highest bits of a feature select its shard, which has a table of counts and a
//! list of features waiting to be counted, so that each table stays in a cache while it is used.
//!
//! Whether counts are exact or come from the count-min sketch depends only on the number of distinct features, which
//! the order of documents does not change.

use std::collections::HashSet;
use std::mem::take;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

use super::feature_shard::{NUM_SHARDS, SHARD_BITS, Shard, ShardedBuilder, shard_of};
use super::rarity::Rarity;
use super::weight_table::{CellPlan, Entries};
use super::weights::{MAX_WEIGHT, digest};
use crate::error::{Error, invalid_if};
use crate::parallel::{Run, lock};
use crate::sort::sort_hashed;

/// Memory per counted feature: 12 bytes in a table of which at least half is used.
const BYTES_A_FEATURE: u64 = 24;
const CELL_BYTES: u64 = 4;
const DEPTH: u32 = 4;
/// Minimum memory for counting.
const MIN_MEMORY_BYTES: u64 = 16 << 20;

/// Counts how many documents with distinct feature sets contain each feature: exactly up to `memory_bytes / 48`
/// features, then by a count-min sketch in half of the memory (Cormode, Muthukrishnan, J. Algorithms 55, 2005), with
/// plain updates, which do not depend on the order.
#[derive(Debug)]
pub struct DocumentCounter {
    shards: Box<[Mutex<Shard>]>,
    documents: Box<[Mutex<HashSet<[u64; 2]>>]>,
    max_features: u64,
    /// The sketch of all shards; each shard has the columns of its highest byte.
    plan: CellPlan,
    num_documents: AtomicU64,
    num_incidences: AtomicU64,
    num_features: AtomicU64,
    is_over: AtomicBool,
    /// The shard where the next thread starts to hand over, so that threads do not follow each other.
    turn: AtomicUsize,
}

/// The weights computed by a [`DocumentCounter`].
#[derive(Debug)]
pub struct Counted {
    /// Number of documents with distinct, nonempty feature sets.
    pub num_documents: u64,
    /// Total number of their features.
    pub num_incidences: u64,
    /// Number of distinct features; `None` if they were too many to distinguish.
    pub num_features: Option<u64>,
    /// Weights of features that weigh less than 15, or of cells.
    pub entries: Entries,
}

impl Counted {
    /// Returns by how much a count may be too high (`e * num_incidences / width`), and the probability of more
    /// (`e^-depth`).
    pub fn error(&self) -> (u64, f64) {
        match &self.entries {
            Entries::Listed { .. } => (0, 0.0),
            Entries::Cells { plan, .. } => {
                let excess = std::f64::consts::E * self.num_incidences as f64 / plan.width as f64;
                (libm::ceil(excess) as u64, libm::exp(-f64::from(plan.depth)))
            }
        }
    }
}

impl DocumentCounter {
    /// Creates an empty counter. Returns [`Error::InvalidParameter`] if `memory_bytes` is under 16 MiB.
    pub fn new(memory_bytes: u64) -> Result<Self, Error> {
        invalid_if(memory_bytes < MIN_MEMORY_BYTES, "memory", || {
            format!("{memory_bytes} bytes given; counting needs {MIN_MEMORY_BYTES} or more")
        })?;
        let half = memory_bytes / 2;
        let max_features = half / BYTES_A_FEATURE;
        let width = half / (CELL_BYTES * u64::from(DEPTH) * NUM_SHARDS as u64);
        Ok(DocumentCounter {
            shards: (0..NUM_SHARDS).map(|_| Mutex::default()).collect(),
            documents: (0..NUM_SHARDS).map(|_| Mutex::default()).collect(),
            max_features,
            plan: CellPlan {
                depth: DEPTH,
                width: width * NUM_SHARDS as u64,
            },
            num_documents: AtomicU64::new(0),
            num_incidences: AtomicU64::new(0),
            num_features: AtomicU64::new(0),
            is_over: AtomicBool::new(false),
            turn: AtomicUsize::new(0),
        })
    }

    /// Returns the digest of the features of a document, if it has some, and whether they are to be counted: no earlier
    /// document has the same set.
    pub fn is_new(&self, features: &[u64]) -> Option<([u64; 2], bool)> {
        if features.is_empty() {
            return None;
        }
        let digest = digest(features, &[]);
        if !lock(&self.documents[shard_of(digest[0])]).insert(digest) {
            return Some((digest, false));
        }
        self.num_documents.fetch_add(1, Ordering::Relaxed);
        self.num_incidences
            .fetch_add(features.len() as u64, Ordering::Relaxed);
        Some((digest, true))
    }

    /// Counts the features of documents that were new, and empties `documents`. Cost: about 10 ns per feature.
    pub fn add(&self, documents: &mut ShardedBuilder) {
        documents.group();
        let first = self.turn.fetch_add(NUM_SHARDS / 2 + 1, Ordering::Relaxed);
        for i in 0..NUM_SHARDS {
            let i = (first + i) % NUM_SHARDS;
            let features = documents.of_shard(i);
            if features.is_empty() {
                continue;
            }
            let mut shard = lock(&self.shards[i]);
            if shard.is_over() {
                shard.count_cells(self.plan, i, features);
            } else if shard.wait(features) {
                let num_new = shard.count_waiting();
                self.add_new(i, &mut shard, num_new);
            }
        }
    }

    /// Adds to the number of features, and switches to the sketch if there are too many.
    fn add_new(&self, which: usize, shard: &mut Shard, num_new: u64) {
        let num_features = self.num_features.fetch_add(num_new, Ordering::Relaxed) + num_new;
        // The number of features only grows, so the final state does not depend on the order of documents.
        if num_features > self.max_features {
            self.is_over.store(true, Ordering::Relaxed);
        }
        if self.is_over.load(Ordering::Relaxed) {
            shard.go_over(self.plan, which);
        }
    }

    pub fn finish(self, run: Run<'_>) -> Result<Counted, Error> {
        let each = |work: &(dyn Fn(usize, &mut Shard) + Sync)| {
            run.ranges(NUM_SHARDS, 1, |which| {
                which.for_each(|i| work(i, &mut lock(&self.shards[i])));
            })
        };
        each(&|which, shard| {
            if !shard.is_over() {
                let num_new = shard.count_waiting();
                self.add_new(which, shard, num_new);
            }
        })?;
        let num_documents = self.num_documents.load(Ordering::Relaxed);
        let rarity = Rarity::new(num_documents);
        let is_over = self.is_over.load(Ordering::Relaxed);
        let entries = match is_over {
            true => {
                each(&|which, shard| {
                    if !shard.is_over() {
                        shard.go_over(self.plan, which);
                    }
                })?;
                Entries::Cells {
                    plan: self.plan,
                    weights: self.cell_weights(&rarity),
                }
            }
            false => self.listed_weights(&rarity, run)?,
        };
        Ok(Counted {
            num_documents,
            num_incidences: self.num_incidences.load(Ordering::Relaxed),
            num_features: (!is_over).then(|| self.num_features.load(Ordering::Relaxed)),
            entries,
        })
    }

    fn listed_weights(&self, rarity: &Rarity, run: Run<'_>) -> Result<Entries, Error> {
        let parts = run.each(NUM_SHARDS, |i| {
            let mut table = take(&mut lock(&self.shards[i]).counts);
            table.map(|count| u32::from(rarity.weight(u64::from(count))));
            let listed = table
                .iter()
                .filter(|&(_, weight)| weight < u32::from(MAX_WEIGHT));
            let mut features: Vec<u64> = listed.map(|(feature, _)| feature).collect();
            sort_hashed(&mut features, SHARD_BITS, |feature| feature);
            let mut weights = Vec::with_capacity(features.len());
            table.get_all(&features, |weight| weights.push(weight_of(weight)));
            (features, weights)
        })?;
        let (mut features, mut weights) = (Vec::new(), Vec::new());
        for (some, theirs) in parts {
            features.extend(some);
            weights.extend(theirs);
        }
        Ok(Entries::Listed { features, weights })
    }

    fn cell_weights(&self, rarity: &Rarity) -> Vec<u8> {
        let plan = self.plan;
        let mut weights = vec![0; plan.num_cells() as usize];
        let width = (plan.width / NUM_SHARDS as u64) as usize;
        for (i, shard) in self.shards.iter().enumerate() {
            let shard = take(&mut *lock(shard));
            for (row, cells) in shard.cells.chunks(width).enumerate() {
                let from = (row * NUM_SHARDS + i) * width;
                for (weight, &count) in weights[from..from + width].iter_mut().zip(cells) {
                    *weight = rarity.weight(u64::from(count));
                }
            }
        }
        weights
    }
}

/// Returns the weight of a feature, which is `None` if it was not counted.
fn weight_of(listed: Option<u32>) -> u8 {
    listed.map_or(MAX_WEIGHT, |weight| weight as u8)
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use super::*;
    use crate::features::weight_table::WeightTable;
    use crate::isa::Isa;
    use crate::testing::Random;

    const MEMORY: u64 = 64 << 20;

    /// Documents with skewed features: some features are in most documents, most in one.
    fn documents(num_documents: usize) -> Vec<Vec<u64>> {
        let mut random = Random::new(5);
        let mut document = || {
            let mut features: Vec<u64> = (0..40)
                .map(|i| crate::hash::mix64(random.next() % (1 << (i / 2))))
                .collect();
            features.sort_unstable();
            features.dedup();
            features
        };
        (0..num_documents).map(|_| document()).collect()
    }

    fn counted(documents: &[Vec<u64>], memory_bytes: u64, batch: usize) -> Counted {
        let counter = DocumentCounter::new(memory_bytes).unwrap();
        let mut builder = ShardedBuilder::default();
        for documents in documents.chunks(batch) {
            for document in documents {
                if counter.is_new(document).is_some_and(|(_, is_new)| is_new) {
                    builder.push(document);
                }
            }
            counter.add(&mut builder);
        }
        counter
            .finish(Run {
                threads: 2,
                cancel: &AtomicBool::new(false),
            })
            .unwrap()
    }

    #[test]
    fn counts_are_those_of_distinct_documents() {
        let mut documents = documents(3000);
        let mut counts: HashMap<u64, u64> = HashMap::new();
        let distinct: HashSet<&Vec<u64>> = documents.iter().collect();
        for &feature in distinct.iter().flat_map(|document| document.iter()) {
            *counts.entry(feature).or_default() += 1;
        }
        let num_distinct = distinct.len() as u64;
        let rarity = Rarity::new(num_distinct);
        // Copies, features in another order, and empty documents do not count.
        let mut copies = documents[..500].to_vec();
        copies.iter_mut().for_each(|copy| copy.reverse());
        documents.extend(copies);
        documents.push(Vec::new());
        for batch in [1, 100, 10_000] {
            let found = counted(&documents, MEMORY, batch);
            assert_eq!(found.num_documents, num_distinct);
            assert_eq!(found.num_features, Some(counts.len() as u64));
            assert_eq!(found.error(), (0, 0.0));
            let table = WeightTable::new(MAX_WEIGHT, found.entries).unwrap();
            assert!(table.num_features().unwrap() < counts.len());
            let features: Vec<u64> = counts.keys().copied().chain([1, 2, 3]).collect();
            let mut weights = Vec::new();
            for isa in Isa::available() {
                table.weigh(&features, isa, &mut weights);
                for (feature, &weight) in features.iter().zip(&weights) {
                    let df = counts.get(feature).copied().unwrap_or(0);
                    assert_eq!(weight, u32::from(rarity.weight(df)));
                }
            }
        }
    }

    #[test]
    fn a_sketch_counts_too_much_at_times_and_never_too_little() {
        let mut random = Random::new(6);
        let mut documents = documents(2000);
        // More features than 16 MiB can count exactly.
        for document in &mut documents {
            document.extend((0..200).map(|_| random.next()));
            document.sort_unstable();
        }
        let exact = counted(&documents, 1 << 30, 100);
        let sketch = counted(&documents, MIN_MEMORY_BYTES, 100);
        assert_eq!(sketch.num_features, None);
        assert_eq!(sketch.num_documents, exact.num_documents);
        assert_eq!(
            sketch.entries,
            counted(&documents, MIN_MEMORY_BYTES, 7).entries
        );
        let (excess, probability) = sketch.error();
        assert!(excess > 0 && probability > 0.0);
        let rarity = Rarity::new(exact.num_documents);
        let sketch = WeightTable::new(MAX_WEIGHT, sketch.entries).unwrap();
        let mut counts: HashMap<u64, u64> = HashMap::new();
        for &feature in documents.iter().flatten() {
            *counts.entry(feature).or_default() += 1;
        }
        let (features, counts): (Vec<u64>, Vec<u64>) = counts.into_iter().unzip();
        let mut weights = Vec::new();
        sketch.weigh(&features, Isa::best(), &mut weights);
        let mut num_too_light = 0;
        for (&weight, &df) in weights.iter().zip(&counts) {
            assert!(weight <= u32::from(rarity.weight(df)));
            num_too_light += usize::from(weight < u32::from(rarity.weight(df + excess)));
        }
        assert!((num_too_light as f64) < probability * features.len() as f64);
    }

    #[test]
    fn too_little_memory_is_refused() {
        assert!(DocumentCounter::new(1 << 20).is_err());
    }
}
