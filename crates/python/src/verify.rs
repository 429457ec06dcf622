//! Exact measures on feature sets, and aligned differences.

use std::borrow::Cow;
use std::ops::Range;
use std::sync::{PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use likewise_core::error::invalid_if;
use likewise_core::features::Extractor;
use likewise_core::features::siblings::Differences;
use likewise_core::parallel::Run;
use likewise_core::verify::{self, FeatureSet, HeldDocuments, Measure, NameRules, Required};
use pyo3::prelude::*;

use crate::array::{Array, Input, take};
use crate::door::{
    LONG_BYTES, Object, Str, check_below, check_pairs, check_same_length, chosen_isa, parse, run,
    run_short,
};
use crate::errors::Result;
use crate::features::FeatureRules;
use crate::texts::{Texts, text_of};

/// Feature sets by position. Locks are taken only with the interpreter lock released, so that two threads cannot wait
/// for each other.
#[pyclass(frozen, module = "likewise._native")]
pub struct FeatureSets {
    sets: RwLock<verify::FeatureSets>,
    capacity: usize,
    rules: Py<FeatureRules>,
}

impl FeatureSets {
    fn read(&self) -> RwLockReadGuard<'_, verify::FeatureSets> {
        self.sets.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, verify::FeatureSets> {
        self.sets.write().unwrap_or_else(PoisonError::into_inner)
    }

    fn take_positions(&self, name: &str, positions: &Object<'_>) -> Result<Input<u32>> {
        let positions = Input::<u32>::take(name, positions)?;
        check_below(name, positions.values(), self.capacity)?;
        Ok(positions)
    }
}

#[pymethods]
impl FeatureSets {
    #[new]
    fn new(py: Python<'_>, capacity: usize, rules: Py<FeatureRules>) -> Result<Self> {
        invalid_if(capacity > u32::MAX as usize, "capacity", || {
            format!("{capacity} is outside 0..{}", u32::MAX)
        })?;
        Ok(FeatureSets {
            sets: RwLock::new(run_short(py, |_| Ok(verify::FeatureSets::new(capacity)))?),
            capacity,
            rules,
        })
    }

    /// Makes the feature sets of texts and stores them at these positions, replacing existing ones; for few pairs, without
    /// bitmaps.
    #[pyo3(signature = (positions, texts, *, bitmaps=true, threads=1))]
    fn add(
        &self,
        py: Python<'_>,
        positions: &Object<'_>,
        texts: &Texts,
        bitmaps: bool,
        threads: usize,
    ) -> Result<()> {
        let positions = self.take_positions("positions", positions)?;
        let positions = positions.values();
        let column = texts.column.as_ref();
        check_same_length("positions", positions.len(), "texts", column.len())?;
        let rules = self.rules.get();
        rules.check(column)?;
        run(py, column.num_bytes, |cancel| {
            let make_state = || rules.naming_extractor(chosen_isa());
            let add = |extractor: &mut Extractor, made: &mut Vec<FeatureSet>, i| {
                let view = extractor.features(column.document(i));
                let set = FeatureSet::build(view.features, view.weights, bitmaps);
                made.push(set.with_names(extractor.names()));
            };
            let parts = column.in_parts(Run { threads, cancel }, make_state, add)?;
            let mut sets = self.write();
            for (&position, set) in positions.iter().zip(parts.into_iter().flatten()) {
                sets.insert(position, set);
            }
            Ok(())
        })
    }

    /// The positions that have no set, sorted and distinct.
    fn missing(&self, py: Python<'_>, positions: &Object<'_>) -> Result<Array> {
        let positions = self.take_positions("positions", positions)?;
        let positions = positions.values();
        run(py, 16 * positions.len(), |_| {
            let sets = self.read();
            let mut missing: Vec<u32> = positions
                .iter()
                .copied()
                .filter(|&p| !sets.contains(p))
                .collect();
            drop(sets);
            missing.sort_unstable();
            missing.dedup();
            Ok(missing.into())
        })
    }

    /// Drops the sets at these positions, ignoring positions without one.
    fn discard(&self, py: Python<'_>, positions: &Object<'_>) -> Result<()> {
        let positions = self.take_positions("positions", positions)?;
        let positions = positions.values();
        run_short(py, |_| {
            let mut sets = self.write();
            positions.iter().for_each(|&position| sets.remove(position));
            Ok(())
        })
    }

    /// Bytes held.
    #[getter]
    fn num_bytes(&self, py: Python<'_>) -> Result<usize> {
        run_short(py, |_| Ok(self.read().num_bytes()))
    }

    /// The exact similarity of each pair that reaches the threshold, NaN for the others, and the number of pairs measured.
    /// The set of document d is at position `places[d]`, or d. Pairs whose earlier document is removed by its state are
    /// skipped: NaN.
    #[pyo3(signature = (later, earlier, places=None, states=None, *, measure, threshold, short_margin=0.0, names=None, threads=1))]
    fn verify(
        &self,
        py: Python<'_>,
        later: &Object<'_>,
        earlier: &Object<'_>,
        places: Option<&Object<'_>>,
        states: Option<&Object<'_>>,
        measure: &str,
        threshold: f64,
        short_margin: f64,
        names: Option<(bool, bool, u32)>,
        threads: usize,
    ) -> Result<(Array, usize)> {
        let measure = parse_measure(measure)?;
        let required = Required {
            threshold,
            short_margin,
            names: name_rules(names),
            identifiers: self.rules.get().text_rules.has_identifiers,
        };
        take!(later: u32, earlier: u32);
        let places = Input::<u32>::take_option("places", places)?;
        let states = Input::<u8>::take_option("states", states)?;
        if places.is_none() {
            invalid_if(states.is_some(), "states", || "given without places")?;
            check_below("later", later, self.capacity)?;
            check_below("earlier", earlier, self.capacity)?;
        }
        check_same_length("earlier", earlier.len(), "later", later.len())?;
        let held = HeldDocuments {
            places: places.as_ref().map(Input::values),
            states: states.as_ref().map_or(&[], Input::values),
        };
        // A pair reads two sets of some hundred features.
        let found = run(py, 1024 * later.len(), |cancel| {
            let (sets, pairs, run) = (self.read(), [later, earlier], Run { threads, cancel });
            Ok(sets.verify_pairs(held, pairs, measure, required, chosen_isa(), run)?)
        })?;
        Ok((found.similarities.into(), found.num_measured))
    }

    /// For each pair of documents, the additional similarity that it needs because their names differ, and in what the
    /// later one differs, as bits: `(float64, uint8)`; 0 without names. With `penalties_only`, the bits are 0.
    #[pyo3(signature = (later, earlier, places, *, penalties_only=false, threads=1))]
    fn differences(
        &self,
        py: Python<'_>,
        later: &Object<'_>,
        earlier: &Object<'_>,
        places: &Object<'_>,
        penalties_only: bool,
        threads: usize,
    ) -> Result<(Array, Array)> {
        take!(later: u32, earlier: u32, places: u32);
        check_pairs(("later", later), ("earlier", earlier), places.len())?;
        let found = run(py, 1024 * later.len(), |cancel| {
            let sets = self.read();
            let set = |document: u32| sets.get(places[document as usize]);
            let difference = |i: usize| match (set(later[i]), set(earlier[i])) {
                (Some(a), Some(b)) if penalties_only => (a.penalty(b), Differences::default()),
                (Some(a), Some(b)) => a.difference(b),
                _ => (0.0, Differences::default()),
            };
            let work = |_: &mut (), range: Range<usize>| range.map(difference).collect::<Vec<_>>();
            Ok(Run { threads, cancel }
                .map(later.len(), 256, || (), work)?
                .concat())
        })?;
        let (penalties, bits): (Vec<f64>, Vec<u8>) = found
            .into_iter()
            .map(|(penalty, found)| (penalty, found.0))
            .unzip();
        Ok((penalties.into(), bits.into()))
    }
}

/// What pairs need by the names of their documents: whether siblings and unsure pairs are kept, and the length of a new
/// passage.
pub fn name_rules(given: Option<(bool, bool, u32)>) -> NameRules {
    let (keep_siblings, keep_unsure, keep_new) = given.unwrap_or_default();
    NameRules {
        keep_siblings,
        keep_unsure,
        keep_new,
    }
}

pub fn parse_measure(name: &str) -> Result<Measure> {
    let names = Measure::ALL.map(Measure::name);
    parse("measure", name, Measure::from_name(name), &names)
}

/// The documents below `num_documents` in either list, sorted and distinct.
#[pyfunction]
pub fn distinct_documents(
    py: Python<'_>,
    a: &Object<'_>,
    b: &Object<'_>,
    num_documents: usize,
) -> Result<Array> {
    take!(a: u32, b: u32);
    let lists = [a, b];
    run_short(py, |_| {
        Ok(verify::distinct_documents(&lists, num_documents).into())
    })
}

/// Sequences with more units in total may take long to align, since the time grows with the product of their lengths.
const LONG_UNITS: usize = 4096;

/// Size of an alignment of `num_units` units as a call: like one on large data if it may take long.
fn alignment_size(num_units: usize) -> usize {
    if num_units > LONG_UNITS {
        LONG_BYTES
    } else {
        0
    }
}

/// Edit distance and longest common subsequence of two texts: `(unit, units of a, units of b, distance, common,
/// is_exact)`.
#[pyfunction]
pub fn align_texts(
    py: Python<'_>,
    a: &Str<'_>,
    b: &Str<'_>,
) -> Result<(&'static str, usize, usize, usize, usize, bool)> {
    let (a, b) = (text_of(a)?, text_of(b)?);
    run(py, alignment_size(a.len() + b.len()), |cancel| {
        let found = verify::align_texts(&a, &b, cancel)?;
        let verify::Alignment {
            distance,
            common,
            is_exact,
        } = found.alignment;
        let (num_a, num_b) = found.lengths;
        Ok((found.unit.name(), num_a, num_b, distance, common, is_exact))
    })
}

/// Edit distance and longest common subsequence of two sequences of numbers: `(distance, common, is_exact)`.
#[pyfunction]
pub fn align_sequences(
    py: Python<'_>,
    a: &Object<'_>,
    b: &Object<'_>,
) -> Result<(usize, usize, bool)> {
    take!(a: u32, b: u32);
    run(py, alignment_size(a.len() + b.len()), |cancel| {
        let found = verify::align_sequences(a, b, cancel)?;
        Ok((found.distance, found.common, found.is_exact))
    })
}

/// Where two lists of tokens differ, in order: `(a0, a1, b0, b1)` says that `a[a0:a1]` corresponds to `b[b0:b1]`.
#[pyfunction]
pub fn aligned_diff(
    py: Python<'_>,
    a: Vec<Str<'_>>,
    b: Vec<Str<'_>>,
) -> Result<Vec<(u32, u32, u32, u32)>> {
    let a: Vec<Cow<'_, str>> = a.iter().map(text_of).collect::<Result<_, _>>()?;
    let b: Vec<Cow<'_, str>> = b.iter().map(text_of).collect::<Result<_, _>>()?;
    run(py, 16 * (a.len() + b.len()), |_| {
        let a: Vec<&str> = a.iter().map(AsRef::as_ref).collect();
        let b: Vec<&str> = b.iter().map(AsRef::as_ref).collect();
        let hunks = verify::aligned_diff(&a, &b);
        Ok(hunks
            .into_iter()
            .map(|hunk| (hunk.a.start, hunk.a.end, hunk.b.start, hunk.b.end))
            .collect())
    })
}
