//! Which candidate pairs reach the threshold, and how alike are they?

use std::sync::atomic::AtomicBool;

use crate::error::Error;
use crate::isa::Isa;
use crate::parallel::map_ranges;

use super::Measure;
use super::bitmap;
use super::bounds::Formula;
use super::feature_set::FeatureSet;
use super::intersect;

/// Pairs verified between two looks at the cancel flag.
const GRAIN_PAIRS: usize = 4096;

/// Pairs ahead of the measured one whose bitmaps are asked for; heads come twice as early.
const PREFETCH_PAIRS: usize = 8;

/// The feature sets of documents by position. Several threads may verify at once.
#[derive(Debug, Default)]
pub struct FeatureSets {
    sets: Vec<Option<Box<FeatureSet>>>,
    /// Bytes of the sets held, without `sets` itself.
    num_set_bytes: usize,
}

impl FeatureSets {
    /// Makes an empty collection for positions below `capacity`; it grows where a greater one comes.
    pub fn new(capacity: usize) -> Self {
        let mut sets = Vec::new();
        sets.resize_with(capacity, || None);
        FeatureSets {
            sets,
            num_set_bytes: 0,
        }
    }

    /// Puts a set at a position; one that was there is dropped.
    pub fn insert(&mut self, position: u32, set: FeatureSet) {
        let position = position as usize;
        if position >= self.sets.len() {
            self.sets.resize_with(position + 1, || None);
        }
        self.num_set_bytes += set.num_bytes();
        if let Some(old) = self.sets[position].replace(Box::new(set)) {
            self.num_set_bytes -= old.num_bytes();
        }
    }

    /// Whether the position has a set.
    pub fn contains(&self, position: u32) -> bool {
        self.get(position).is_some()
    }

    /// Drops the set of a position, if there is one.
    pub fn remove(&mut self, position: u32) {
        if let Some(old) = self.sets.get_mut(position as usize).and_then(Option::take) {
            self.num_set_bytes -= old.num_bytes();
        }
    }

    /// The set of a position, if there is one.
    pub fn get(&self, position: u32) -> Option<&FeatureSet> {
        self.sets.get(position as usize)?.as_deref()
    }

    /// Bytes of memory held, without what the allocator adds.
    pub fn num_bytes(&self) -> usize {
        self.num_set_bytes + self.sets.capacity() * size_of::<Option<Box<FeatureSet>>>()
    }

    #[cfg(test)]
    pub(super) fn num_set_bytes(&self) -> usize {
        self.num_set_bytes
    }

    /// The exact similarity of every pair that reaches the threshold, NaN for the others.
    ///
    /// Pair i is A = `later[i]` against B = `earlier[i]`. A pair reaches the threshold if its similarity
    /// as [`FeatureSet::similarity`] computes it is `>= threshold`. Does not depend on `isa` or
    /// `threads`.
    ///
    /// # Errors
    /// [`Error::InvalidParameter`] where the lists differ in length, a position has no set, or the
    /// threshold is NaN; [`Error::Cancelled`].
    #[allow(clippy::too_many_arguments)]
    pub fn verify_pairs(
        &self,
        later: &[u32],
        earlier: &[u32],
        measure: Measure,
        threshold: f64,
        isa: Isa,
        threads: usize,
        cancel: &AtomicBool,
    ) -> Result<Vec<f64>, Error> {
        if later.len() != earlier.len() {
            return Err(Error::invalid(
                "earlier",
                format!("{} positions for {} in later", earlier.len(), later.len()),
            ));
        }
        if threshold.is_nan() {
            return Err(Error::invalid("threshold", "NaN, not a number from 0 to 1"));
        }
        let parts = map_ranges(
            later.len(),
            GRAIN_PAIRS,
            threads,
            cancel,
            || (),
            |(), range| {
                let last = range.end - 1;
                range
                    .map(|i| {
                        // The later ones come in runs and stay in the cache; the earlier ones are anywhere.
                        self.prefetch_head(earlier[(i + 2 * PREFETCH_PAIRS).min(last)]);
                        self.prefetch_bitmap(earlier[(i + PREFETCH_PAIRS).min(last)]);
                        let a = self.required("later", later[i])?;
                        let b = self.required("earlier", earlier[i])?;
                        Ok(verify(a, b, measure, threshold, isa))
                    })
                    .collect::<Result<Vec<f64>, Error>>()
            },
        )?;
        let mut similarities = Vec::with_capacity(later.len());
        for part in parts {
            similarities.append(&mut part?);
        }
        Ok(similarities)
    }

    /// Asks for the head of a set, which holds the pointer to its data.
    #[inline(always)]
    fn prefetch_head(&self, position: u32) {
        if let Some(set) = self.get(position) {
            prefetch(std::ptr::from_ref(set).cast());
            prefetch(std::ptr::from_ref(set).cast::<u8>().wrapping_add(64));
        }
    }

    /// Asks for the first lines of a bitmap; the processor fetches on from there.
    #[inline(always)]
    fn prefetch_bitmap(&self, position: u32) {
        if let Some(set) = self.get(position) {
            for line in set.bitmap().words.chunks(8).take(8) {
                prefetch(line.as_ptr().cast());
            }
        }
    }

    fn required(&self, name: &'static str, position: u32) -> Result<&FeatureSet, Error> {
        self.get(position)
            .ok_or_else(|| Error::invalid(name, format!("position {position} has no feature set")))
    }
}

impl FeatureSet {
    /// The exact similarity of this set (A) and another (B) if it reaches the threshold, else NaN: what [`FeatureSets::verify_pairs`] says of the pair.
    #[inline]
    pub fn similarity_from(
        &self,
        other: &FeatureSet,
        measure: Measure,
        threshold: f64,
        isa: Isa,
    ) -> f64 {
        verify(self, other, measure, threshold, isa)
    }
}

/// Asks for a cache line that will be read soon.
#[inline(always)]
fn prefetch(address: *const u8) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: prefetching reads nothing, whatever the address.
    unsafe {
        std::arch::x86_64::_mm_prefetch::<{ std::arch::x86_64::_MM_HINT_T0 }>(address.cast());
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = address;
}

/// The similarity if it reaches the threshold, else NaN.
///
/// Three looks, each dearer than the one before: sizes, bitmaps, features.
#[inline]
fn verify(a: &FeatureSet, b: &FeatureSet, measure: Measure, threshold: f64, isa: Isa) -> f64 {
    let formula = Formula::new(a, b, measure);
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
    if formula.is_product() && !(a.is_plain() && b.is_plain()) {
        // A sum of products is at most the greater squared norm.
        if a.norm.max(b.norm) > u128::from(u64::MAX) {
            return decide(intersect::plain_sum(a.side(), b.side(), true));
        }
        let bound = product_bound(a, b, bitmap::bound(a.bitmap(), b.bitmap(), isa));
        if formula.similarity(bound) < threshold {
            return f64::NAN;
        }
        return decide(u128::from(intersect::sum(a.side(), b.side(), true, isa)));
    }
    let max_sum = a.total.min(b.total);
    let needed = formula.needed(threshold, max_sum);
    if needed > max_sum || bitmap::bound(a.bitmap(), b.bitmap(), isa) < needed {
        return f64::NAN;
    }
    let sum = if a.is_plain() && b.is_plain() {
        intersect::num_shared(a.side(), b.side(), needed, isa)
    } else {
        intersect::sum(a.side(), b.side(), false, isa)
    };
    if sum >= needed {
        formula.similarity(u128::from(sum))
    } else {
        f64::NAN
    }
}

/// An upper bound of the sum of products from one of the sum of lesser weights.
///
/// A product is the lesser weight times the greater one, which gives the first bound. For the second,
/// `2ab = a^2 + b^2 - (a-b)^2`, and `(a-b)^2 >= |a-b|` in integers, whose sum is both totals less twice
/// the sum of the lesser weights.
fn product_bound(a: &FeatureSet, b: &FeatureSet, min_bound: u64) -> u128 {
    let min_bound = min_bound.min(a.total).min(b.total);
    let by_weight = u128::from(min_bound) * u128::from(a.max_weight().max(b.max_weight()));
    let num_apart = u128::from(a.total + b.total - 2 * min_bound);
    by_weight.min((a.norm + b.norm - num_apart) / 2)
}
