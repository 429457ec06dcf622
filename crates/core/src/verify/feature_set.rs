//! What are the distinct features of a document, and their weights?

use crate::features::siblings::{
    self, COMMON, CROWD_RARITY, CROWD_SHARE, Differences, MOST_CROWD, Names, crowd_penalty,
};
use crate::features::{check_lengths, total_weight};
use crate::isa::Isa;
use crate::sort::sort_hashed;

use super::Measure;
use super::bitmap::{self, Bitmap};
use super::bounds::Formula;
use super::intersect;
use super::required::NameRules;
use super::side::Side;

/// The distinct features of a document, sorted, with their weights: about 8 bytes per feature (12 with weights), 1 to 2
/// per copy for the bitmap, and less than a cache line, which rejects most pairs.
#[derive(Debug, Clone)]
pub struct FeatureSet {
    /// The words of the bitmap, then the features, padded to [`Side::LANES`] by repeating the last: one allocation.
    data: Box<[u64]>,
    /// `None` if every weight is 1.
    weights: Option<Box<Weights>>,
    num_bitmap_words: u32,
    num_features: u32,
    /// See [`Bitmap`].
    slack: u64,
    pub(super) total: u64,
    /// What names the document, if the recipe keeps siblings.
    names: Option<Box<Named>>,
}

/// What names a document, and its features that are too rare for the full penalty of a crowd.
#[derive(Debug, Clone)]
struct Named {
    names: Names,
    /// The words and the slack of a [`Bitmap`].
    rare: Box<[u64]>,
    slack: u64,
}

/// Weights that are not all 1.
#[derive(Debug, Clone)]
struct Weights {
    /// Padded like the features.
    padded: Box<[u32]>,
    max: u32,
    norm: u128,
}

impl FeatureSet {
    /// Builds the set of features in any order; `weights` is empty (each 1, repeated ones count once) or as long as
    /// `features` (repeated ones add up, 0 is absent).
    pub fn new(features: &[u64], weights: &[u32]) -> Self {
        FeatureSet::build(features, weights, true)
    }

    /// Builds a set, of many pairs or of few: a bitmap takes longer to make than some pairs to measure.
    pub fn build(features: &[u64], weights: &[u32], has_bitmap: bool) -> Self {
        check_lengths(features, weights);
        assert!(
            u32::try_from(features.len()).is_ok(),
            "2^32 features or more"
        );
        let (mut features, mut weights) = if weights.iter().all(|&weight| weight == 1) {
            sorted_features(features, !weights.is_empty())
        } else {
            sorted_pairs(features, weights)
        };
        let num_features = features.len();
        let total = total_weight(&features, &weights);
        let num_bitmap_words = match has_bitmap {
            true => Bitmap::num_words(&weights, total),
            false => 0,
        };
        let padded_len = num_features.next_multiple_of(Side::LANES);
        let mut data = vec![0u64; num_bitmap_words + padded_len].into_boxed_slice();
        let slack = match has_bitmap {
            true => Bitmap::fill(&mut data[..num_bitmap_words], &features, &weights, total),
            false => 0,
        };
        if let Some(&last) = features.last() {
            features.resize(padded_len, last);
            data[num_bitmap_words..].copy_from_slice(&features);
        }
        let weights = weights.last().copied().map(|last| {
            let max = weights.iter().copied().max().unwrap_or(last);
            let squares = weights
                .iter()
                .map(|&weight| u128::from(u64::from(weight) * u64::from(weight)));
            let norm = squares.sum();
            weights.resize(padded_len, last);
            let padded = weights.into_boxed_slice();
            Box::new(Weights { padded, max, norm })
        });
        FeatureSet {
            data,
            weights,
            num_bitmap_words: num_bitmap_words as u32,
            num_features: num_features as u32,
            slack,
            total,
            names: None,
        }
    }

    #[must_use]
    pub fn with_names(mut self, names: Option<Names>) -> Self {
        self.names = names.map(|names| {
            let (mut rare, mut slack) = (Vec::new(), 0);
            if self.num_bitmap_words > 0 && names.by_rarity() {
                let side = self.side();
                let is_rare = |&i: &usize| side.weight(i) as usize > COMMON;
                let features = (0..side.len()).filter(is_rare);
                let features: Vec<u64> = features.map(|i| side.features()[i]).collect();
                let num_rare = features.len() as u64;
                rare.resize(Bitmap::num_words(&[], num_rare), 0);
                slack = Bitmap::fill(&mut rare, &features, &[], num_rare);
            }
            let rare = rare.into_boxed_slice();
            Box::new(Named { names, rare, slack })
        });
        self
    }

    /// Returns the similarity that two documents need in addition because of names, and in what this one differs.
    pub fn difference(&self, other: &FeatureSet) -> (f64, Differences) {
        let Some((a, b)) = self.names_with(other) else {
            let is_known = self.names.is_some();
            return (0.0, Differences(u8::from(is_known) * Differences::FORM));
        };
        let (penalty, mut differences) = siblings::difference(a, b);
        let of_crowd = self.of_crowd(other);
        differences.0 |= u8::from(of_crowd > 0.0) * Differences::CROWD;
        (penalty + of_crowd, differences)
    }

    /// Returns the names of both documents, if they are known and the sets differ: equal sets are one document.
    #[inline]
    pub(super) fn names_with<'n>(
        &'n self,
        other: &'n FeatureSet,
    ) -> Option<(&'n Names, &'n Names)> {
        let names = Some((&self.names.as_ref()?.names, &other.names.as_ref()?.names));
        let (a, b) = (self.side(), other.side());
        let are_equal = self.total == other.total
            && a.features() == b.features()
            && a.padded_weights() == b.padded_weights();
        names.filter(|_| !are_equal)
    }

    /// Returns the additional similarity that two documents need because of their names; 0 if these are not known.
    #[inline]
    pub fn penalty(&self, other: &FeatureSet) -> f64 {
        self.names_with(other)
            .map_or(0.0, |(a, b)| siblings::penalty(a, b) + self.of_crowd(other))
    }

    /// Returns a lower bound of the penalty for a crowd from the bitmaps of rare features alone.
    #[inline]
    pub(super) fn least_of_crowd(&self, other: &FeatureSet, isa: Isa) -> f64 {
        let most = bitmap::bound(self.rare(), other.rare(), isa);
        match most <= self.num_crowd(other) as u64 {
            true => crowd_penalty(MOST_CROWD),
            false => 0.0,
        }
    }

    #[inline]
    fn rare(&self) -> Bitmap<'_> {
        let named = self.names.as_deref();
        let (words, slack) = named.map_or((&[][..], 0), |named| (&named.rare[..], named.slack));
        Bitmap { words, slack }
    }

    /// Returns the number of shared features that do not count for a crowd: the rarest ones.
    #[inline]
    fn num_crowd(&self, other: &FeatureSet) -> usize {
        self.num_features().min(other.num_features()) / CROWD_SHARE
    }

    /// Returns the penalty if many documents share nearly all of what these two share. Cost: linear.
    pub(super) fn of_crowd(&self, other: &FeatureSet) -> f64 {
        let is_told = self
            .names
            .as_ref()
            .is_some_and(|named| named.names.by_rarity());
        if !is_told {
            return 0.0;
        }
        let num_rarest = self.num_crowd(other);
        // Number of shared features by how far each is below `CROWD_RARITY`.
        let mut counts = [0usize; MOST_CROWD];
        let (a, b) = (self.side(), other.side());
        let (mut i, mut j) = (0, 0);
        while i < a.len() && j < b.len() && counts[0] <= num_rarest {
            let (one, two) = (a.features()[i], b.features()[j]);
            if one == two {
                let rarity = a.weight(i).min(b.weight(j)) as usize;
                if let Some(count) = counts.get_mut(CROWD_RARITY.saturating_sub(rarity)) {
                    *count += 1;
                }
            }
            (i, j) = (i + usize::from(one <= two), j + usize::from(two <= one));
        }
        let mut num_rarer = 0;
        let units = counts.iter().take_while(|&count| {
            num_rarer += count;
            num_rarer <= num_rarest
        });
        crowd_penalty(units.count())
    }

    /// Whether this document may be removed for a similar one: it is not unsure and holds nothing new, by the rules.
    pub(super) fn may_replace(&self, other: &FeatureSet, rules: NameRules) -> bool {
        let Some((a, b)) = self.names_with(other) else {
            return true;
        };
        !(rules.keep_unsure && siblings::difference(a, b).1.is_unsure())
            && (rules.keep_new == 0 || siblings::own_run(a, b) < rules.keep_new)
    }

    pub fn num_features(&self) -> usize {
        self.num_features as usize
    }

    pub fn num_shared(&self, other: &FeatureSet) -> usize {
        intersect::num_shared(self.side(), other.side(), 0, Isa::Plain) as usize
    }

    /// Returns the exact similarity of two sets: one rounded division of integers; for cosine, by the rounded root of
    /// the product of the squared norms, itself rounded once (the norm, if equal). Two empty sets have 1, an empty and
    /// a nonempty one 0.
    pub fn similarity(&self, other: &FeatureSet, measure: Measure) -> f64 {
        let formula = self.formula(other, measure);
        formula.similarity(intersect::plain_sum(
            self.side(),
            other.side(),
            formula.is_product(),
        ))
    }

    /// Returns the measure of this set (A) and another (B) as a function of their shared sum.
    #[inline]
    pub(super) fn formula(&self, other: &FeatureSet, measure: Measure) -> Formula {
        let norms = || (self.norm(), other.norm());
        Formula::new(measure, self.total, other.total, norms)
    }

    pub fn num_bytes(&self) -> usize {
        size_of::<FeatureSet>()
            + size_of_val::<[u64]>(&self.data)
            + self.weights.as_ref().map_or(0, |weights| {
                size_of::<Weights>() + size_of_val::<[u32]>(&weights.padded)
            })
            + self.names.as_ref().map_or(0, |named| {
                named.names.num_bytes() + size_of::<Named>() - size_of::<Names>()
                    + size_of_val::<[u64]>(&named.rare)
            })
    }

    /// Whether every weight is 1.
    pub(super) fn is_plain(&self) -> bool {
        self.weights.is_none()
    }

    /// The maximum weight; 0 for the empty set.
    pub(super) fn max_weight(&self) -> u32 {
        match &self.weights {
            Some(weights) => weights.max,
            None => u32::from(self.num_features > 0),
        }
    }

    #[inline]
    pub(super) fn norm(&self) -> u128 {
        match &self.weights {
            Some(weights) => weights.norm,
            None => u128::from(self.num_features),
        }
    }

    pub(super) fn features(&self) -> &[u64] {
        &self.data[self.num_bitmap_words as usize..][..self.num_features as usize]
    }

    #[inline]
    pub(super) fn side(&self) -> Side<'_> {
        Side::new(
            &self.data[self.num_bitmap_words as usize..],
            self.weights.as_ref().map_or(&[], |weights| &weights.padded),
            self.num_features as usize,
        )
    }

    /// The bitmap, or without one, the features.
    #[inline]
    pub(super) fn read_first(&self) -> &[u64] {
        match self.num_bitmap_words {
            0 => &self.data,
            num => &self.data[..num as usize],
        }
    }

    #[inline]
    pub(super) fn bitmap(&self) -> Bitmap<'_> {
        Bitmap {
            words: &self.data[..self.num_bitmap_words as usize],
            slack: self.slack,
        }
    }
}

/// Sorts features and drops repeats. With `are_weighted`, repeats are added up, which needs weights.
fn sorted_features(features: &[u64], are_weighted: bool) -> (Vec<u64>, Vec<u32>) {
    let mut sorted = features.to_vec();
    sort_hashed(&mut sorted, 0, |feature| feature);
    let has_repeats = sorted.windows(2).any(|pair| pair[0] == pair[1]);
    if has_repeats && are_weighted {
        return sorted_pairs(features, &vec![1; features.len()]);
    }
    if has_repeats {
        sorted.dedup();
    }
    (sorted, Vec::new())
}

/// Sorts features with their weights, adds up the weights of repeats and drops those of 0.
fn sorted_pairs(features: &[u64], weights: &[u32]) -> (Vec<u64>, Vec<u32>) {
    let mut pairs = Vec::with_capacity(features.len());
    let weighed = features.iter().copied().zip(weights.iter().copied());
    pairs.extend(weighed.filter(|&(_, weight)| weight > 0));
    sort_hashed(&mut pairs, 0, |(feature, _)| feature);
    pairs.dedup_by(|next, kept| {
        let is_repeat = next.0 == kept.0;
        if is_repeat {
            kept.1 = kept.1.saturating_add(next.1);
        }
        is_repeat
    });
    let features = pairs.iter().map(|&(feature, _)| feature).collect();
    if pairs.iter().all(|&(_, weight)| weight == 1) {
        return (features, Vec::new());
    }
    (features, pairs.iter().map(|&(_, weight)| weight).collect())
}
