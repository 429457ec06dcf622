//! What is the weight of a feature in a table?

use xxhash_rust::xxh3::Xxh3;

use super::weights::MAX_WEIGHT;
use crate::error::{Error, invalid_if};
use crate::hash::{GOLDEN, mix64};
use crate::isa::Isa;
use crate::prefetch::prefetch_read;

/// Weights of features, 0 to 15; unlisted features weigh [`WeightTable::default_weight`].
#[derive(Debug, Clone)]
pub struct WeightTable {
    default_weight: u8,
    entries: Entries,
    /// None of them for the cells of a sketch.
    buckets: Buckets,
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

/// A cache line with up to 16 places. A place holds the [`tag`](Buckets::place) of a feature and its weight; 0 is free.
#[derive(Debug, Clone, Copy, Default)]
#[repr(C, align(64))]
struct Bucket([u32; Bucket::PLACES]);

impl Bucket {
    const PLACES: usize = 16;
    /// Mean number of features per bucket: of a thousand features, one finds its bucket full.
    const MEAN_FEATURES: usize = 8;
    /// The lowest bit of each tag, so that none looks like a free place.
    const IS_USED: u32 = 16;
    const WEIGHT: u32 = 15;
}

/// The listed features as they are looked up: by the number of their bucket, and 27 bits that tell features of one
/// bucket apart. One of 17 million features that are not listed looks like one that is.
#[derive(Debug, Clone)]
struct Buckets {
    buckets: Box<[Bucket]>,
    /// Features whose bucket was full, ascending.
    others: Vec<(u64, u8)>,
}

/// Number of features that are hashed at a time.
const HASHED_AT_ONCE: usize = 4096;

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
        let buckets = match &entries {
            Entries::Listed { features, weights } => {
                invalid_if(
                    features.len() != weights.len() || !features.is_sorted_by(|a, b| a < b),
                    "features",
                    || "they must be ascending, with one weight each",
                )?;
                Buckets::new(features, weights)
            }
            Entries::Cells { plan, weights } => {
                let fits = (1..=16).contains(&plan.depth)
                    && plan.width >= 1
                    && u64::from(plan.depth).checked_mul(plan.width) == Some(weights.len() as u64);
                invalid_if(!fits, "weights", || "their number is not that of the cells")?;
                Buckets::new(&[], &[])
            }
        };
        Ok(WeightTable {
            default_weight,
            entries,
            buckets,
        })
    }

    /// The weight of an unlisted feature.
    pub fn default_weight(&self) -> u8 {
        self.default_weight
    }

    /// Number of listed features; `None` for the cells of a sketch.
    pub fn num_features(&self) -> Option<usize> {
        match &self.entries {
            Entries::Listed { features, .. } => Some(features.len()),
            Entries::Cells { .. } => None,
        }
    }

    #[inline(always)]
    pub fn listed(&self, feature: u64) -> Option<u8> {
        match &self.entries {
            Entries::Listed { .. } => self.buckets.find(feature),
            Entries::Cells { plan, weights } => Some(plan.weight(weights, feature)),
        }
    }

    /// Replaces `weights` by those of the features. Cost: one cache miss per feature, many of them overlapping.
    pub fn weigh(&self, features: &[u64], isa: Isa, weights: &mut Vec<u32>) {
        match (&self.entries, isa) {
            #[cfg(target_arch = "x86_64")]
            (Entries::Listed { .. }, Isa::Avx512(_)) => {
                // SAFETY: an `Isa` of this kind is created only if the processor has it.
                unsafe {
                    self.buckets
                        .weigh_avx512(features, self.default_weight, weights);
                }
            }
            _ => look_up(
                features,
                |feature| self.prefetch(feature),
                |feature| self.listed(feature).unwrap_or(self.default_weight),
                weights,
            ),
        }
    }

    pub fn entries(&self) -> &Entries {
        &self.entries
    }

    pub fn num_bytes(&self) -> usize {
        let in_entries = match &self.entries {
            Entries::Listed { features, weights } => 8 * features.len() + weights.len(),
            Entries::Cells { weights, .. } => weights.len(),
        };
        in_entries
            + size_of_val::<[Bucket]>(&self.buckets.buckets)
            + size_of_val::<[_]>(&self.buckets.others)
    }

    #[inline(always)]
    fn prefetch(&self, feature: u64) {
        match &self.entries {
            Entries::Listed { .. } => self.buckets.prefetch(feature),
            Entries::Cells { plan, weights } => {
                for row in 0..plan.depth {
                    prefetch_read(weights, plan.cell(feature, row));
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
            others: Vec::new(),
        };
        for (i, (&feature, &weight)) in features.iter().zip(weights).enumerate() {
            if let Some(&ahead) = features.get(i + FEATURES_AHEAD) {
                table.prefetch(ahead);
            }
            let (at, tag) = table.place(feature);
            let places = &mut table.buckets[at].0;
            let is_it = |place: &&mut u32| **place == 0 || **place & !Bucket::WEIGHT == tag;
            match places.iter_mut().find(is_it) {
                Some(place) if *place == 0 => *place = tag | u32::from(weight),
                // Of features that look alike, the first one counts.
                Some(_) => {}
                None => table.others.push((feature, weight)),
            }
        }
        table
    }

    /// Returns the weight of a listed feature.
    #[inline(always)]
    fn find(&self, feature: u64) -> Option<u8> {
        let (at, tag) = self.place(feature);
        let found = self.buckets[at].0.iter().fold(0, |found, &place| {
            let is_it = place & !Bucket::WEIGHT == tag;
            found | place & 0u32.wrapping_sub(u32::from(is_it))
        });
        match found {
            0 => self.find_other(at, feature),
            _ => Some((found & Bucket::WEIGHT) as u8),
        }
    }

    /// [`Buckets::find`] of a feature that is not in its bucket.
    #[inline(always)]
    fn find_other(&self, at: usize, feature: u64) -> Option<u8> {
        if self.buckets[at].0[Bucket::PLACES - 1] == 0 {
            return None;
        }
        let other = self.others.binary_search_by_key(&feature, |other| other.0);
        other.ok().map(|other| self.others[other].1)
    }

    /// Same as [`WeightTable::weigh`].
    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512dq,avx2,bmi1,bmi2,popcnt")]
    fn weigh_avx512(&self, features: &[u64], default_weight: u8, weights: &mut Vec<u32>) {
        look_up(
            features,
            |feature| self.prefetch(feature),
            |feature| self.weight_avx512(feature, default_weight),
            weights,
        );
    }

    /// Same as [`Buckets::find`], with the weight of other features.
    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512dq,avx2,bmi1,bmi2,popcnt")]
    #[inline]
    fn weight_avx512(&self, feature: u64, default_weight: u8) -> u8 {
        use std::arch::x86_64::*;

        let (at, tag) = self.place(feature);
        let bucket = &self.buckets[at];
        // SAFETY: a bucket has 64 bytes at an address that is a multiple of 64.
        let line = unsafe { _mm512_load_si512(std::ptr::from_ref(bucket).cast()) };
        let weights = _mm512_set1_epi32(Bucket::WEIGHT as i32);
        let tags = _mm512_andnot_si512(weights, line);
        let mask = _mm512_cmpeq_epi32_mask(tags, _mm512_set1_epi32(tag as i32));
        if mask == 0 && bucket.0[Bucket::PLACES - 1] != 0 {
            return self.find_other(at, feature).unwrap_or(default_weight);
        }
        // Whether a feature is listed cannot be predicted, so there is no branch on it.
        let weight = (bucket.0[mask.trailing_zeros() as usize & 15] & Bucket::WEIGHT) as u8;
        std::hint::select_unpredictable(mask != 0, weight, default_weight)
    }

    #[inline(always)]
    fn prefetch(&self, feature: u64) {
        prefetch_read(&self.buckets, self.place(feature).0);
    }

    /// Returns the bucket and the tag of a feature.
    #[inline(always)]
    fn place(&self, feature: u64) -> (usize, u32) {
        let mixed = u128::from(feature.wrapping_mul(GOLDEN));
        let product = mixed * self.buckets.len() as u128;
        let tag = (product as u64 >> 37) as u32;
        ((product >> 64) as usize, tag << 5 | Bucket::IS_USED)
    }
}

/// Fills `weights` with the weight of each feature: what `find` returns, whose memory `prefetch` requests some features
/// ahead.
#[inline(always)]
fn look_up(
    features: &[u64],
    prefetch: impl Fn(u64),
    find: impl Fn(u64) -> u8,
    weights: &mut Vec<u32>,
) {
    weights.resize(features.len(), 0);
    for &feature in &features[..FEATURES_AHEAD.min(features.len())] {
        prefetch(feature);
    }
    // A loop, since iterators that take closures are not compiled for the instruction set of their caller.
    for (i, (&feature, weight)) in features.iter().zip(weights).enumerate() {
        if let Some(&ahead) = features.get(i + FEATURES_AHEAD) {
            prefetch(ahead);
        }
        *weight = u32::from(find(feature));
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
        let mut features: Vec<u64> = (0..5000).map(|_| random.next()).chain([0]).collect();
        // More of them share the first bucket than it has places.
        features.extend((0..40u64).map(|i| (i << 50).wrapping_mul(inverse(GOLDEN))));
        features.sort_unstable();
        features.dedup();
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

    #[test]
    fn features_that_agree_in_bucket_and_tag_have_one_weight() {
        let feature = |mixed: u64| mixed.wrapping_mul(inverse(GOLDEN));
        // One bucket: its tags are the first 27 of 64 bits.
        let mut listed = [1 << 40, (1 << 40) + 5].map(feature);
        listed.sort_unstable();
        let entries = Entries::Listed {
            features: listed.into(),
            weights: vec![6, 9],
        };
        let table = WeightTable::new(15, entries).unwrap();
        let asked = [
            1 << 40,
            (1 << 40) + 5,
            (1 << 40) + 9,
            (1 << 40) + (1 << 37),
            1 << 41,
        ];
        for isa in Isa::available() {
            let mut found = Vec::new();
            table.weigh(&asked.map(feature), isa, &mut found);
            assert_eq!(found, [6, 6, 6, 15, 15], "{}", isa.name());
        }
    }

    /// Returns the number whose product with an odd one is 1, modulo 2^64.
    fn inverse(odd: u64) -> u64 {
        (0..6).fold(odd, |x, _| {
            x.wrapping_mul(2u64.wrapping_sub(odd.wrapping_mul(x)))
        })
    }
}
