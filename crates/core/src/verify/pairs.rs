//! Which candidate pairs reach the threshold, and how similar are they?

use crate::error::Error;
use crate::features::{disagree, siblings};
use crate::isa::Isa;
use crate::prefetch::prefetch_read;

use super::Measure;
use super::bitmap;
use super::bounds::Formula;
use super::feature_set::FeatureSet;
use super::intersect;
use super::required::{NameRules, Required};

/// Number of pairs verified between two checks of the cancel flag.
pub(super) const GRAIN_PAIRS: usize = 4096;

/// Number of pairs by which sets are prefetched; places are prefetched twice as early.
const PREFETCH_PAIRS: usize = 8;

const LINE_WORDS: usize = 8;

/// The set of a position in its own cache line, whose address follows from the position, so that it is prefetched in
/// time.
#[derive(Debug, Default)]
#[repr(align(64))]
struct Place(Option<FeatureSet>);

/// The position of a pair's earlier set if the pair is skipped; no set is stored there.
pub(super) const NOWHERE: u32 = u32::MAX;

/// The feature sets of documents by position. Several threads may verify at once.
#[derive(Debug, Default)]
pub struct FeatureSets {
    /// Grows to the greatest position so far.
    places: Vec<Place>,
    /// Size of the stored sets in bytes, without `places` itself.
    num_set_bytes: usize,
}

impl FeatureSets {
    /// Creates an empty collection with capacity for positions below `capacity`; it grows for greater ones.
    pub fn new(capacity: usize) -> Self {
        FeatureSets {
            places: Vec::with_capacity(capacity),
            num_set_bytes: 0,
        }
    }

    /// Stores a set at a position, replacing any earlier one.
    pub fn insert(&mut self, position: u32, set: FeatureSet) {
        let position = position as usize;
        if position >= self.places.len() {
            self.places.resize_with(position + 1, Place::default);
        }
        self.num_set_bytes += bytes_beyond(&set);
        if let Some(old) = self.places[position].0.replace(set) {
            self.num_set_bytes -= bytes_beyond(&old);
        }
    }

    pub fn contains(&self, position: u32) -> bool {
        self.get(position).is_some()
    }

    pub fn remove(&mut self, position: u32) {
        let place = self.places.get_mut(position as usize);
        if let Some(old) = place.and_then(|place| place.0.take()) {
            self.num_set_bytes -= bytes_beyond(&old);
        }
    }

    #[inline]
    pub fn get(&self, position: u32) -> Option<&FeatureSet> {
        self.places.get(position as usize)?.0.as_ref()
    }

    pub fn num_bytes(&self) -> usize {
        self.num_set_bytes + self.places.len() * size_of::<Place>()
    }

    #[cfg(test)]
    pub(super) fn num_set_bytes(&self) -> usize {
        self.num_set_bytes
    }

    /// Returns the similarity of each pair of positions that reaches the threshold, otherwise NaN; NaN if the earlier
    /// one is [`NOWHERE`].
    pub(super) fn measure(
        &self,
        later: &[u32],
        earlier: &[u32],
        measure: Measure,
        required: Required,
        isa: Isa,
    ) -> Result<Vec<f64>, Error> {
        let last = later.len().saturating_sub(1);
        (0..later.len())
            .map(|i| {
                // Later positions come in runs and stay in the cache; earlier ones are scattered.
                prefetch_read(
                    &self.places,
                    earlier[(i + 2 * PREFETCH_PAIRS).min(last)] as usize,
                );
                self.prefetch_set(earlier[(i + PREFETCH_PAIRS).min(last)]);
                if earlier[i] == NOWHERE {
                    return Ok(f64::NAN);
                }
                let a = self.required("later", later[i])?;
                let b = self.required("earlier", earlier[i])?;
                Ok(verify(a, b, measure, required, isa))
            })
            .collect()
    }

    /// Prefetches the first lines of a bitmap, or of the features; the processor prefetches the rest.
    #[inline(always)]
    fn prefetch_set(&self, position: u32) {
        if let Some(set) = self.get(position) {
            let words = set.read_first();
            for line in (0..words.len()).step_by(LINE_WORDS).take(8) {
                prefetch_read(words, line);
            }
            // A bitmap that does not start at a cache line ends in one more.
            prefetch_read(words, words.len().wrapping_sub(1));
        }
    }

    fn required(&self, name: &'static str, position: u32) -> Result<&FeatureSet, Error> {
        self.get(position)
            .ok_or_else(|| Error::invalid(name, format!("position {position} has no feature set")))
    }
}

impl FeatureSet {
    /// Returns the similarity if it reaches the threshold, otherwise NaN, as [`FeatureSets::verify_pairs`] does.
    #[inline]
    pub fn similarity_from(
        &self,
        other: &FeatureSet,
        measure: Measure,
        required: impl Into<Required>,
        isa: Isa,
    ) -> f64 {
        verify(self, other, measure, required.into(), isa)
    }
}

/// Checks that two lists form pairs, and that the threshold is a number.
pub(super) fn check(later: &[u32], earlier: &[u32], required: Required) -> Result<(), Error> {
    if later.len() != earlier.len() {
        return Err(Error::invalid(
            "earlier",
            format!("{} positions for {} in later", earlier.len(), later.len()),
        ));
    }
    if required.threshold.is_nan() {
        return Err(Error::invalid("threshold", "NaN, not a number from 0 to 1"));
    }
    if required.short_margin.is_nan() || required.short_margin < 0.0 {
        return Err(Error::invalid("short_margin", "not a number from 0"));
    }
    Ok(())
}

/// Returns the size of a set in bytes, without its place.
fn bytes_beyond(set: &FeatureSet) -> usize {
    set.num_bytes() - size_of::<FeatureSet>()
}

/// Returns the similarity of a pair that matches, otherwise NaN.
#[inline]
fn verify(a: &FeatureSet, b: &FeatureSet, measure: Measure, required: Required, isa: Isa) -> f64 {
    let similarity = verify_names(a, b, measure, required, isa);
    // Only pairs that are similar enough are read feature by feature.
    let is_asked = required.identifiers && required.threshold > 0.0 && !similarity.is_nan();
    match is_asked && disagree(a.features(), b.features()) {
        true => f64::NAN,
        false => similarity,
    }
}

/// Returns the similarity if it reaches the threshold, with [`NameRules`] also by names, otherwise NaN.
#[inline]
fn verify_names(
    a: &FeatureSet,
    b: &FeatureSet,
    measure: Measure,
    required: Required,
    isa: Isa,
) -> f64 {
    let fewest = required.of(a.num_features().min(b.num_features()));
    let most = most_similar(a, b, measure, fewest, isa);
    if most < fewest {
        return f64::NAN;
    }
    if required.names == NameRules::default() {
        return verify_sets(a, b, measure, fewest, isa);
    }
    let names = a.names_with(b).filter(|_| required.names.keep_siblings);
    // In a family of siblings, most pairs need more than they can reach.
    let least_of_crowd = names.map_or(0.0, |_| a.least_of_crowd(b, isa));
    if most < (fewest + least_of_crowd).min(1.0) {
        return f64::NAN;
    }
    let penalty = names.map_or(0.0, |(a, b)| siblings::penalty_of_some(a, b));
    let least = (fewest + (penalty + least_of_crowd)).min(1.0);
    if most < least {
        return f64::NAN;
    }
    let similarity = verify_sets(a, b, measure, least, isa);
    if similarity.is_nan() {
        return similarity;
    }
    // All features, and all tokens, are read only if they decide.
    let has = |penalty: f64| similarity >= (fewest + penalty).min(1.0);
    let matches = names.is_none_or(|(names_a, names_b)| {
        let most = siblings::most_penalty(penalty, names_a, names_b);
        has(most + siblings::crowd_penalty(siblings::MOST_CROWD)) || {
            let of_crowd = match least_of_crowd > 0.0 {
                true => least_of_crowd,
                false => a.of_crowd(b),
            };
            has(most + of_crowd)
                || has(penalty + of_crowd) && has(siblings::penalty(names_a, names_b) + of_crowd)
        }
    });
    match matches && a.may_replace(b, required.names) {
        true => similarity,
        false => f64::NAN,
    }
}

/// Returns an upper bound of the similarity by two checks, the more expensive one if it can matter: sizes, bitmaps.
#[inline]
fn most_similar(a: &FeatureSet, b: &FeatureSet, measure: Measure, threshold: f64, isa: Isa) -> f64 {
    let formula = a.formula(b, measure);
    if is_product(a, b, formula) {
        return match a.norm().max(b.norm()) > u128::from(u64::MAX) {
            true => 1.0,
            false => formula.similarity(product_bound(
                a,
                b,
                bitmap::bound(a.bitmap(), b.bitmap(), isa),
            )),
        };
    }
    let max_sum = a.total.min(b.total);
    let by_size = formula.similarity(u128::from(max_sum));
    if formula.fixed().is_some() || by_size < threshold {
        return by_size;
    }
    let bound = bitmap::bound(a.bitmap(), b.bitmap(), isa);
    formula.similarity(u128::from(bound.min(max_sum)))
}

/// Returns the similarity if it reaches the threshold, otherwise NaN.
#[inline]
fn verify_sets(a: &FeatureSet, b: &FeatureSet, measure: Measure, threshold: f64, isa: Isa) -> f64 {
    let formula = a.formula(b, measure);
    let decide = |sum: u128| {
        let similarity = formula.similarity(sum);
        if similarity >= threshold {
            similarity
        } else {
            f64::NAN
        }
    };
    if formula.fixed().is_some() {
        return decide(0);
    }
    let sides = (a.side(), b.side());
    if is_product(a, b, formula) {
        // A sum of products is at most the greater squared norm.
        return decide(match a.norm().max(b.norm()) > u128::from(u64::MAX) {
            true => intersect::plain_sum(sides.0, sides.1, true),
            false => u128::from(intersect::sum(sides.0, sides.1, true, isa)),
        });
    }
    let needed = formula.needed(threshold, a.total.min(b.total));
    let sum = if a.is_plain() && b.is_plain() {
        intersect::num_shared(sides.0, sides.1, needed, isa)
    } else {
        intersect::sum(sides.0, sides.1, false, isa)
    };
    if sum >= needed {
        formula.similarity(u128::from(sum))
    } else {
        f64::NAN
    }
}

fn is_product(a: &FeatureSet, b: &FeatureSet, formula: Formula) -> bool {
    formula.is_product() && !(a.is_plain() && b.is_plain())
}

/// Returns an upper bound of the sum of products, given one of the sum of lesser weights: times the greatest weight,
/// and by `2ab = a^2 + b^2 - (a-b)^2`, where `(a-b)^2 >= |a-b|` in integers.
fn product_bound(a: &FeatureSet, b: &FeatureSet, min_bound: u64) -> u128 {
    let min_bound = min_bound.min(a.total).min(b.total);
    let by_weight = u128::from(min_bound) * u128::from(a.max_weight().max(b.max_weight()));
    let num_apart = u128::from(a.total + b.total - 2 * min_bound);
    by_weight.min((a.norm() + b.norm() - num_apart) / 2)
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicBool;

    use super::*;
    use crate::hash::mix64;
    use crate::parallel::Run;
    use crate::verify::HeldDocuments;

    #[test]
    fn pieces_and_threads_change_no_similarity() {
        let mut sets = FeatureSets::new(0);
        for position in 0..300 {
            // Most features belong to a template.
            let own = (0..5 + mix64(position) % 60).map(|i| 1000 * (position + 1) + i);
            let features: Vec<u64> = (0..40).chain(own).map(mix64).collect();
            sets.insert(position as u32, FeatureSet::new(&features, &[]));
        }
        let verify = |pairs: &[(u32, u32)], threads| {
            let (later, earlier): (Vec<u32>, Vec<u32>) = pairs.iter().copied().unzip();
            let cancel = &AtomicBool::new(false);
            sets.verify_pairs(
                HeldDocuments::default(),
                [&later, &earlier],
                Measure::Jaccard,
                0.55,
                Isa::best(),
                Run { threads, cancel },
            )
            .unwrap()
            .similarities
        };
        let bits = |found: &[f64]| found.iter().map(|s| s.to_bits()).collect::<Vec<_>>();
        // Each against 199 others: many pieces of work.
        let dense: Vec<(u32, u32)> = (0..300)
            .flat_map(|later| (1..200).map(move |step| (later, (later + step * 7) % 300)))
            .collect();
        let found = verify(&dense, 1);
        let mut num_matching = 0;
        for (&(a, b), &similarity) in dense.iter().zip(&found) {
            let (a, b) = (sets.get(a).unwrap(), sets.get(b).unwrap());
            let exact = a.similarity(b, Measure::Jaccard);
            num_matching += usize::from(exact >= 0.55);
            assert!(similarity == exact || similarity.is_nan() && exact < 0.55);
        }
        assert!(num_matching > 1000 && num_matching < dense.len() - 1000);
        assert_eq!(bits(&verify(&dense, 3)), bits(&found));
        // The same pairs, with no two of the same later document in a row.
        let order: Vec<usize> = (0..dense.len()).map(|i| i * 1009 % dense.len()).collect();
        let sparse: Vec<(u32, u32)> = order.iter().map(|&i| dense[i]).collect();
        let expected: Vec<f64> = order.iter().map(|&i| found[i]).collect();
        assert_eq!(bits(&verify(&sparse, 2)), bits(&expected));
    }
}
