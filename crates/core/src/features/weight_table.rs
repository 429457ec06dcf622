//! What is the weight of a feature in a table?

use xxhash_rust::xxh3::Xxh3;

use super::feature_filter::FeatureFilter;
use super::weights::MAX_WEIGHT;
use crate::error::{Error, invalid_if};
use crate::hash::{GOLDEN, mix64};
use crate::isa::Isa;
use crate::prefetch::prefetch_read;

/// Weights of features, 0 to 15; unlisted features weigh [`WeightTable::default_weight`].
#[derive(Debug, Clone)]
pub struct WeightTable {
    default_weight: u8,
    content: Content,
}

/// The contents of a table, as written to a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Entries {
    /// Features, ascending, and their weights.
    Listed {
        features: Vec<u64>,
        weights: Vec<u8>,
    },
    /// Weights of the cells of a counting sketch; see [`CellPlan`].
    Cells {
        /// Maps features to cells.
        plan: CellPlan,
        /// `plan.num_cells()` weights.
        weights: Vec<u8>,
    },
}

/// Maps a feature to the cells in which a sketch counts it: one cell in each of `depth` rows of `width` cells.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CellPlan {
    /// Number of rows, 1 to 16.
    pub depth: u32,
    /// Number of cells per row, at least 1.
    pub width: u64,
}

impl CellPlan {
    pub fn num_cells(&self) -> u64 {
        u64::from(self.depth) * self.width
    }

    /// Returns the cell of a feature in a row, as an index among all cells.
    #[inline(always)]
    pub fn cell(&self, feature: u64, row: u32) -> usize {
        (u64::from(row) * self.width + self.column(feature, row)) as usize
    }

    /// Returns the index of that cell in its row. It ascends with the highest byte of the feature.
    #[inline(always)]
    pub fn column(&self, feature: u64, row: u32) -> u64 {
        let mixed = mix64(feature ^ (u64::from(row) + 1).wrapping_mul(GOLDEN));
        high_product(feature & 0xFF << 56 | mixed >> 8, self.width)
    }

    #[inline(always)]
    pub fn weight(&self, cells: &[u8], feature: u64) -> u8 {
        // A cell may count too much, but never too little: the rarest reading is the best.
        let read = (0..self.depth).map(|row| cells[self.cell(feature, row)]);
        read.max().unwrap_or(0)
    }
}

#[derive(Debug, Clone)]
enum Content {
    Listed(Buckets),
    Cells(CellPlan, Box<[u8]>),
}

/// A cache line with seven features and their weights plus one; 0 is a free place.
#[derive(Debug, Clone, Copy, Default)]
#[repr(C, align(64))]
struct Bucket {
    features: [u64; Bucket::PLACES],
    stored: [u8; 8],
}

impl Bucket {
    const PLACES: usize = 7;
    /// Mean number of features per bucket: three in ten places remain free, so that few searches continue.
    const MEAN_FEATURES: usize = 5;
}

#[derive(Debug, Clone)]
struct Buckets {
    buckets: Box<[Bucket]>,
    /// Spares most features that are not listed, a third of them all, the access to a bucket.
    filter: FeatureFilter,
    num_features: usize,
}

/// Number of features that are hashed at a time.
const HASHED_AT_ONCE: usize = 4096;

/// Number of features that are looked up together.
const LOOKED_UP_AT_ONCE: usize = 1024;

/// Number of features between the prefetch of a cache line and its lookup.
const FEATURES_AHEAD: usize = 32;

impl WeightTable {
    /// Builds a table, of ascending features and weights up to 15.
    pub fn new(default_weight: u8, entries: Entries) -> Result<Self, Error> {
        let weights = match &entries {
            Entries::Listed { weights, .. } | Entries::Cells { weights, .. } => weights,
        };
        if weights
            .iter()
            .chain([&default_weight])
            .any(|&weight| weight > MAX_WEIGHT)
        {
            return Err(Error::invalid("weights", "a weight is above 15"));
        }
        let content = match entries {
            Entries::Listed { features, weights } => {
                invalid_if(
                    features.len() != weights.len() || !features.is_sorted_by(|a, b| a < b),
                    "features",
                    || "they must be ascending, with one weight each",
                )?;
                Content::Listed(Buckets::new(&features, &weights))
            }
            Entries::Cells { plan, weights } => {
                let fits = (1..=16).contains(&plan.depth)
                    && plan.width >= 1
                    && u64::from(plan.depth).checked_mul(plan.width) == Some(weights.len() as u64);
                invalid_if(!fits, "weights", || "their number is not that of the cells")?;
                Content::Cells(plan, weights.into())
            }
        };
        Ok(WeightTable {
            default_weight,
            content,
        })
    }

    /// The weight of an unlisted feature.
    pub fn default_weight(&self) -> u8 {
        self.default_weight
    }

    /// Number of listed features; `None` for the cells of a sketch.
    pub fn num_features(&self) -> Option<usize> {
        match &self.content {
            Content::Listed(buckets) => Some(buckets.num_features),
            Content::Cells(..) => None,
        }
    }

    #[inline(always)]
    pub fn listed(&self, feature: u64) -> Option<u8> {
        match &self.content {
            Content::Listed(buckets) => buckets.find(feature),
            Content::Cells(plan, cells) => Some(plan.weight(cells, feature)),
        }
    }

    /// Replaces `weights` by those of the features. Cost: one cache miss per feature, many of them overlapping.
    pub fn weigh(&self, features: &[u64], isa: Isa, weights: &mut Vec<u32>) {
        weights.clear();
        match (&self.content, isa) {
            #[cfg(target_arch = "x86_64")]
            (Content::Listed(buckets), Isa::Avx512(_)) => {
                // SAFETY: an `Isa` of this kind is created only if the processor has it.
                unsafe { buckets.weigh_avx512(features, self.default_weight, weights) }
            }
            _ => look_up(
                features,
                |feature| self.may_be_listed(feature),
                |feature| self.prefetch(feature),
                |feature| self.listed(feature),
                self.default_weight,
                weights,
            ),
        }
    }

    pub fn entries(&self) -> Entries {
        match &self.content {
            Content::Listed(buckets) => {
                let mut listed: Vec<(u64, u8)> = buckets.listed().collect();
                listed.sort_unstable();
                let (features, weights) = listed.into_iter().unzip();
                Entries::Listed { features, weights }
            }
            Content::Cells(plan, cells) => Entries::Cells {
                plan: *plan,
                weights: cells.to_vec(),
            },
        }
    }

    pub fn num_bytes(&self) -> usize {
        match &self.content {
            Content::Listed(buckets) => {
                size_of_val::<[Bucket]>(&buckets.buckets) + buckets.filter.num_bytes()
            }
            Content::Cells(_, cells) => cells.len(),
        }
    }

    #[inline(always)]
    fn may_be_listed(&self, feature: u64) -> bool {
        match &self.content {
            Content::Listed(buckets) => buckets.filter.may_hold(feature),
            Content::Cells(..) => true,
        }
    }

    #[inline(always)]
    fn prefetch(&self, feature: u64) {
        match &self.content {
            Content::Listed(buckets) => prefetch_read(&buckets.buckets, buckets.first(feature)),
            Content::Cells(plan, cells) => {
                for row in 0..plan.depth {
                    prefetch_read(cells, plan.cell(feature, row));
                }
            }
        }
    }
}

/// Returns 128 bits that identify a table and `rules`, which determine its features. Cost: one pass over the entries.
pub fn table_id(rules: &[u8], default_weight: u8, entries: &Entries) -> u128 {
    let mut hasher = Xxh3::new();
    hasher.update(&(rules.len() as u64).to_le_bytes());
    hasher.update(rules);
    hasher.update(&[default_weight]);
    match entries {
        Entries::Listed { features, weights } => {
            hasher.update(&[0]);
            let mut bytes = Vec::with_capacity(8 * HASHED_AT_ONCE);
            for features in features.chunks(HASHED_AT_ONCE) {
                bytes.clear();
                bytes.extend(features.iter().flat_map(|feature| feature.to_le_bytes()));
                hasher.update(&bytes);
            }
            hasher.update(weights);
        }
        Entries::Cells { plan, weights } => {
            hasher.update(&[1]);
            hasher.update(&plan.depth.to_le_bytes());
            hasher.update(&plan.width.to_le_bytes());
            hasher.update(weights);
        }
    }
    hasher.digest128()
}

impl Buckets {
    fn new(features: &[u64], weights: &[u8]) -> Self {
        let num_buckets = features.len() / Bucket::MEAN_FEATURES + 1;
        let mut table = Buckets {
            buckets: vec![Bucket::default(); num_buckets].into_boxed_slice(),
            filter: FeatureFilter::new(features.iter().copied(), features.len()),
            num_features: features.len(),
        };
        for (i, (&feature, &weight)) in features.iter().zip(weights).enumerate() {
            if let Some(&ahead) = features.get(i + FEATURES_AHEAD) {
                prefetch_read(&table.buckets, table.first(ahead));
            }
            table.insert(feature, weight);
        }
        table
    }

    fn insert(&mut self, feature: u64, weight: u8) {
        let mut at = self.first(feature);
        loop {
            let bucket = &mut self.buckets[at];
            if let Some(place) = bucket.stored[..Bucket::PLACES].iter().position(|&s| s == 0) {
                bucket.features[place] = feature;
                bucket.stored[place] = weight + 1;
                return;
            }
            at = self.next(at);
        }
    }

    #[inline(always)]
    fn find(&self, feature: u64) -> Option<u8> {
        let mut at = self.first(feature);
        loop {
            let bucket = &self.buckets[at];
            let mut stored = 0;
            for place in 0..Bucket::PLACES {
                // Features are distinct, and a free place contributes nothing.
                let is_it = bucket.features[place] == feature;
                stored |= bucket.stored[place] & 0u8.wrapping_sub(u8::from(is_it));
            }
            if stored != 0 {
                return Some(stored - 1);
            }
            if bucket.stored[Bucket::PLACES - 1] == 0 {
                return None;
            }
            at = self.next(at);
        }
    }

    /// Same as [`WeightTable::weigh`].
    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512dq,avx2,bmi1,bmi2,popcnt")]
    fn weigh_avx512(&self, features: &[u64], default_weight: u8, weights: &mut Vec<u32>) {
        look_up(
            features,
            |feature| self.filter.may_hold(feature),
            |feature| prefetch_read(&self.buckets, self.first(feature)),
            |feature| self.find_avx512(feature),
            default_weight,
            weights,
        );
    }

    /// Same as [`Buckets::find`].
    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512dq,avx2,bmi1,bmi2,popcnt")]
    #[inline]
    fn find_avx512(&self, feature: u64) -> Option<u8> {
        use std::arch::x86_64::*;

        let wanted = _mm512_set1_epi64(feature as i64);
        let mut at = self.first(feature);
        loop {
            let bucket = &self.buckets[at];
            // SAFETY: a bucket has 64 bytes at an address that is a multiple of 64.
            let line = unsafe { _mm512_load_si512(std::ptr::from_ref(bucket).cast()) };
            // The last word holds the weights, and no place has the last one. A used place precedes free ones, whose
            // feature is 0.
            let mask = _mm512_cmpeq_epi64_mask(line, wanted) | 0x80;
            let stored = bucket.stored[mask.trailing_zeros() as usize & 7];
            if stored != 0 || bucket.stored[Bucket::PLACES - 1] == 0 {
                return stored.checked_sub(1);
            }
            at = self.next(at);
        }
    }

    fn listed(&self) -> impl Iterator<Item = (u64, u8)> + '_ {
        self.buckets.iter().flat_map(|bucket| {
            let places = bucket.features.iter().zip(&bucket.stored);
            places
                .filter(|(_, stored)| **stored != 0)
                .map(|(&feature, &stored)| (feature, stored - 1))
        })
    }

    #[inline(always)]
    fn first(&self, feature: u64) -> usize {
        high_product(feature.wrapping_mul(GOLDEN), self.buckets.len() as u64) as usize
    }

    fn next(&self, at: usize) -> usize {
        if at + 1 == self.buckets.len() {
            0
        } else {
            at + 1
        }
    }
}

/// Appends the weight of each feature: what `find` returns, whose memory `prefetch` requests some features ahead.
#[inline(always)]
fn look_up(
    features: &[u64],
    may_be_listed: impl Fn(u64) -> bool,
    prefetch: impl Fn(u64),
    find: impl Fn(u64) -> Option<u8>,
    default_weight: u8,
    weights: &mut Vec<u32>,
) {
    let mut listed = [0; LOOKED_UP_AT_ONCE];
    for features in features.chunks(LOOKED_UP_AT_ONCE) {
        let first = weights.len();
        weights.resize(first + features.len(), u32::from(default_weight));
        let weights = &mut weights[first..];
        // Whether one may be listed cannot be predicted, so there is no branch on it.
        let mut num = 0;
        for (i, &feature) in features.iter().enumerate() {
            listed[num] = i;
            num += usize::from(may_be_listed(feature));
        }
        let listed = &listed[..num];
        let early = &listed[..FEATURES_AHEAD.min(num)];
        early.iter().for_each(|&i| prefetch(features[i]));
        for (k, &i) in listed.iter().enumerate() {
            if let Some(&ahead) = listed.get(k + FEATURES_AHEAD) {
                prefetch(features[ahead]);
            }
            if let Some(weight) = find(features[i]) {
                weights[i] = u32::from(weight);
            }
        }
    }
}

/// Returns the high half of the product, which maps a hash to `0..end`.
#[inline(always)]
pub(super) fn high_product(hash: u64, end: u64) -> u64 {
    ((u128::from(hash) * u128::from(end)) >> 64) as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Random;

    #[test]
    fn every_instruction_set_finds_the_same_weights() {
        let mut random = Random::new(2);
        // Feature 0 looks like a free place.
        let mut features: Vec<u64> = (0..5000).map(|_| random.next()).chain([0]).collect();
        features.sort_unstable();
        let weights: Vec<u8> = (0..features.len()).map(|i| (i % 16) as u8).collect();
        let others: Vec<u64> = (0..5000).map(|_| random.next()).collect();
        for num_listed in [0, 1, 7, 8, features.len()] {
            let listed = Entries::Listed {
                features: features[..num_listed].to_vec(),
                weights: weights[..num_listed].to_vec(),
            };
            let table = WeightTable::new(15, listed).unwrap();
            let asked: Vec<u64> = features.iter().chain(&others).copied().collect();
            for isa in Isa::available() {
                let mut found = Vec::new();
                table.weigh(&asked, isa, &mut found);
                for (i, &weight) in found.iter().enumerate() {
                    let wanted = if i < num_listed { weights[i] } else { 15 };
                    assert_eq!(weight, u32::from(wanted), "{} {i}", isa.name());
                }
            }
        }
    }
}
