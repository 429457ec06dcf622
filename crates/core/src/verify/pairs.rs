//! Which candidate pairs reach the threshold, and how alike are they?

use std::sync::atomic::AtomicBool;

use crate::error::Error;
use crate::isa::Isa;
use crate::parallel::map_ranges;

use super::Measure;
use super::bounds::Formula;
use super::feature_set::FeatureSet;
use super::intersect;

/// Pairs verified between two looks at the cancel flag.
const GRAIN_PAIRS: usize = 4096;

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
                range
                    .map(|i| {
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

    fn required(&self, name: &'static str, position: u32) -> Result<&FeatureSet, Error> {
        self.get(position)
            .ok_or_else(|| Error::invalid(name, format!("position {position} has no feature set")))
    }
}

/// The similarity if it reaches the threshold, else NaN.
fn verify(a: &FeatureSet, b: &FeatureSet, measure: Measure, threshold: f64, isa: Isa) -> f64 {
    let formula = Formula::new(a, b, measure);
    let similarity = formula.similarity(intersect::sum(a, b, formula.is_product(), isa));
    if similarity >= threshold {
        similarity
    } else {
        f64::NAN
    }
}
