//! Which features of a document come first, and what is left from each on?

use super::limit::{Demand, Limit};
use super::rarity::{Rarity, Wanted};
use crate::features::MAX_WEIGHT;
use crate::features::siblings::COMMON;

/// Place of a feature in the order of all features: how rare it is by its weight, if that tells, how many documents hold
/// it, about, then the feature itself.
pub(super) type Rank = (u32, u64);

/// Bits of the number of documents in a place.
const COUNT_BITS: u32 = 28;
/// Features ahead for which memory is asked.
const LOOKAHEAD: usize = 16;

/// A feature with its rank and weight, in one number in the order of ranks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Ranked(u128);

impl Ranked {
    #[inline(always)]
    fn new(place: u32, feature: u64, weight: u32) -> Self {
        Ranked(u128::from(place) << 96 | u128::from(feature) << 32 | u128::from(weight))
    }

    #[inline(always)]
    fn parts(self) -> (Rank, u32) {
        (
            ((self.0 >> 96) as u32, (self.0 >> 32) as u64),
            self.0 as u32,
        )
    }
}

/// What is kept of the features of several documents.
#[derive(Debug, Default)]
pub struct Batch {
    pub(super) sets: Vec<SetFacts>,
    /// The entries of all documents, one after another, each document's by rank.
    pub(super) features: Vec<u64>,
    pub(super) rests: Vec<f32>,
    /// Empty where every weight is 1.
    pub(super) weights: Vec<u32>,
}

impl Batch {
    pub fn num_entries(&self) -> usize {
        self.features.len()
    }
}

/// Facts about one document, besides its entries.
#[derive(Debug, Clone, Copy)]
pub(super) struct SetFacts {
    pub(super) num_entries: u32,
    /// How many of them are in the prefix; they come first.
    pub(super) num_prefix: u32,
    /// Of the document, entries or not.
    pub(super) num_features: u32,
    pub(super) size: f32,
    /// Size of the features after the prefix.
    pub(super) after: f32,
    pub(super) last: Rank,
}

/// Chooses prefixes; holds the scratch space, so keep one for each thread.
#[derive(Debug)]
pub struct Chooser {
    demand: Demand,
    limit: Limit,
    ranked: Vec<Ranked>,
}

impl Chooser {
    pub fn new(demand: Demand) -> Self {
        Chooser {
            demand,
            limit: demand.limit(),
            ranked: Vec::new(),
        }
    }

    /// Asks for all features of the prefix of a document: others must keep theirs that are the same.
    pub fn mark(&mut self, features: &[u64], weights: &[u32], rarity: &Rarity, wanted: &Wanted) {
        let total = self.rank(features, weights, rarity, false);
        let mut rest = total.shared;
        for ((_, feature), weight) in self.ranked.iter().map(|ranked| ranked.parts()) {
            if rest < total.least[self.limit_of(weight)] {
                break;
            }
            wanted.insert(feature);
            rest -= self.limit.mass(weight);
        }
    }

    /// Adds the entries of a document to a batch: its prefix, and what is `wanted` behind, without features of its own.
    pub fn choose(
        &mut self,
        features: &[u64],
        weights: &[u32],
        rarity: &Rarity,
        wanted: Option<&Wanted>,
        batch: &mut Batch,
    ) {
        let total = self.rank(features, weights, rarity, wanted.is_some());
        let first = batch.features.len();
        let mut rest = total.shared;
        let mut facts = SetFacts {
            num_entries: 0,
            num_prefix: 0,
            num_features: features.len() as u32,
            size: self.limit.size(total.mass) as f32,
            after: self.limit.size(rest) as f32,
            last: (1, u64::MAX),
        };
        for (rank, weight) in self.ranked.iter().map(|ranked| ranked.parts()) {
            let is_prefix = rest >= total.least[self.limit_of(weight)];
            if !is_prefix && wanted.is_none() {
                break;
            }
            if is_prefix || wanted.is_some_and(|wanted| wanted.contains(rank.1)) {
                batch.features.push(rank.1);
                batch.rests.push(self.limit.size(rest) as f32);
                if !weights.is_empty() {
                    batch.weights.resize(batch.features.len() - 1, 1);
                    batch.weights.push(weight);
                }
            }
            rest -= self.limit.mass(weight);
            if is_prefix {
                facts.num_prefix += 1;
                facts.after = self.limit.size(rest.max(0.0)) as f32;
                facts.last = rank;
            }
        }
        facts.num_entries = (batch.features.len() - first) as u32;
        batch.sets.push(facts);
        if !batch.weights.is_empty() {
            batch.weights.resize(batch.features.len(), 1);
        }
    }

    /// Documents that share only common features need more, so fewer of these are in the prefix.
    fn limit_of(&self, weight: u32) -> usize {
        usize::from(self.demand.by_rarity && weight as usize <= COMMON)
    }

    /// Puts the features that other documents may hold too in `ranked`, in order: as far as the prefix goes, or all.
    fn rank(
        &mut self,
        features: &[u64],
        weights: &[u32],
        rarity: &Rarity,
        needs_all: bool,
    ) -> Total {
        self.ranked.clear();
        let mut of_weights = [0.0; MAX_WEIGHT as usize + 1];
        let (mut mass, mut shared) = (0.0, 0.0);
        for (i, &feature) in features.iter().enumerate() {
            if let Some(&ahead) = features.get(i + LOOKAHEAD) {
                rarity.prefetch(ahead);
            }
            let weight = weights.get(i).copied().unwrap_or(1);
            let own = self.limit.mass(weight);
            mass += own;
            let num_documents = rarity.num_documents(feature);
            if num_documents > 1 {
                shared += own;
                let place = match self.demand.by_rarity {
                    true => {
                        let count = num_documents.min((1 << COUNT_BITS) - 1);
                        of_weights[weight.min(u32::from(MAX_WEIGHT)) as usize] += own;
                        u32::from(MAX_WEIGHT).saturating_sub(weight) << COUNT_BITS | count
                    }
                    false => num_documents,
                };
                self.ranked.push(Ranked::new(place, feature, weight));
            }
        }
        let limits = self.demand.limits(features.len(), 0.0);
        let least = limits.map(|limit| limit.least_rest(mass));
        if self.demand.by_rarity && !needs_all {
            // The rarest come first; the prefix ends among those of this weight, or before.
            let (mut rest, mut last) = (shared, of_weights.len() as u32 - 1);
            while last > 0 && rest >= least[self.limit_of(last)] {
                rest -= of_weights[last as usize];
                last -= 1;
            }
            self.ranked.retain(|ranked| ranked.parts().1 > last);
        }
        if weights.is_empty() && !self.limit.is_one_sided() {
            // So many more features have at least `least` standing from them on.
            let num_prefix = (shared - least[0] + 1.0).max(0.0) as usize;
            if num_prefix < self.ranked.len() {
                self.ranked.select_nth_unstable(num_prefix);
                self.ranked.truncate(num_prefix + 1);
            }
        }
        if shared >= least[0] || self.limit.is_one_sided() {
            self.ranked.sort_unstable();
        }
        Total {
            mass,
            shared,
            least,
        }
    }
}

/// Masses of one document.
struct Total {
    mass: f64,
    /// Of the features that other documents may hold too.
    shared: f64,
    /// Least rest of a feature in the prefix, and of a common one.
    least: [f64; 2],
}
