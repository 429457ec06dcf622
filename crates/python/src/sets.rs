//! The exact join of feature sets by their rarest features.

use std::sync::{Mutex, MutexGuard, PoisonError};

use likewise_core::features::siblings::Form;
use likewise_core::isa::Isa;
use likewise_core::parallel::map_ranges;
use likewise_core::sets::{
    self, Batch, Chooser, Forms, Limit, Parted, Prefixes, SetMeasure, Wanted,
};
use pyo3::prelude::*;

use crate::array::{Array, Input};
use crate::door::{LONG_BYTES, check_below, check_range, check_same_length, run, run_short};
use crate::errors::Failure;
use crate::features::{FeatureRules, GRAIN_BYTES};
use crate::texts::Texts;

/// How many documents hold each feature, about; counted by several threads at once.
#[pyclass(frozen, module = "likewise._native")]
pub struct Rarity {
    pub counts: sets::Rarity,
}

#[pymethods]
impl Rarity {
    /// No counts yet, sized for so many bytes of text.
    #[new]
    fn new(py: Python<'_>, num_text_bytes: u64) -> Result<Self, Failure> {
        Ok(Rarity {
            counts: run_short(py, |_| Ok(sets::Rarity::new(num_text_bytes)))?,
        })
    }

    /// Bytes held.
    #[getter]
    fn num_bytes(&self) -> usize {
        self.counts.num_bytes()
    }
}

/// First the prefixes of documents as they come, then the join.
enum Stage {
    Gathering(Prefixes),
    Joining(Box<sets::PrefixJoin>),
    /// A panic or a canceled call left nothing to go on with.
    Broken,
}

/// Candidate pairs by the rarest features of documents, in order of priority. The lock is taken only with the interpreter lock
/// released, so that two threads cannot wait for each other.
#[pyclass(frozen, module = "likewise._native")]
pub struct PrefixJoin {
    stage: Mutex<Stage>,
    limit: Limit,
    measure: SetMeasure,
    threshold: f64,
    /// The forms of positions, if siblings are kept.
    forms: Mutex<Vec<(u32, Form)>>,
    wanted: Option<Wanted>,
    rules: Py<FeatureRules>,
    rarity: Py<Rarity>,
    num_positions: usize,
}

impl PrefixJoin {
    fn with_stage<T>(
        &self,
        work: impl FnOnce(&mut Stage) -> Result<T, Failure>,
    ) -> Result<T, Failure> {
        let mut stage = self.stage.lock().unwrap_or_else(PoisonError::into_inner);
        work(&mut stage)
    }

    fn locked_forms(&self) -> MutexGuard<'_, Vec<(u32, Form)>> {
        self.forms.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn with_prefixes(
        &self,
        work: impl FnOnce(&mut Prefixes) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        self.with_stage(|stage| match stage {
            Stage::Gathering(prefixes) => work(prefixes),
            _ => Err(wrong_stage()),
        })
    }
}

fn wrong_stage() -> Failure {
    Failure::parameter(
        "stage",
        "texts are added before `finish`, candidates asked for after it".to_owned(),
    )
}

#[pymethods]
impl PrefixJoin {
    #[new]
    #[pyo3(signature = (num_positions, rules, rarity, *, measure, threshold))]
    fn new(
        num_positions: usize,
        rules: Py<FeatureRules>,
        rarity: Py<Rarity>,
        measure: &str,
        threshold: f64,
    ) -> Result<Self, Failure> {
        let Some(set_measure) = SetMeasure::from_name(measure) else {
            return Err(Failure::parameter(
                "measure",
                format!("{measure:?} is not one of jaccard, dice, cosine, containment, overlap"),
            ));
        };
        if !(threshold > 0.0 && threshold <= 1.0) {
            return Err(Failure::parameter(
                "threshold",
                format!("{threshold} is not above 0 and up to 1"),
            ));
        }
        if num_positions > u32::MAX as usize {
            return Err(Failure::parameter(
                "num_positions",
                format!("{num_positions} is outside 0..{}", u32::MAX),
            ));
        }
        let limit = Limit::new(set_measure, threshold);
        let wanted = match set_measure {
            SetMeasure::Smaller => Some(Wanted::new(&rarity.get().counts)),
            _ => None,
        };
        Ok(PrefixJoin {
            stage: Mutex::new(Stage::Gathering(Prefixes::new(limit, num_positions))),
            limit,
            measure: set_measure,
            threshold,
            forms: Mutex::default(),
            wanted,
            rules,
            rarity,
            num_positions,
        })
    }

    /// Whether all texts must be given to `mark` before they are given to `add`.
    #[getter]
    fn needs_marks(&self) -> bool {
        self.wanted.is_some()
    }

    /// Notes which features are in the prefix of any of the texts.
    #[pyo3(signature = (texts, *, threads=1))]
    fn mark(&self, py: Python<'_>, texts: &Texts, threads: usize) -> Result<(), Failure> {
        let Some(wanted) = &self.wanted else {
            return Ok(());
        };
        let column = texts.column.as_ref();
        let (rules, rarity) = (self.rules.get(), &self.rarity.get().counts);
        rules.check(column)?;
        run(py, column.num_bytes, |cancel| {
            let ranges = column.ranges(GRAIN_BYTES);
            let make_state = || (rules.extractor(Isa::best()), Chooser::new(self.limit));
            map_ranges(
                ranges.len(),
                1,
                threads,
                cancel,
                make_state,
                |(extractor, chooser), which| {
                    for i in ranges[which.start].clone() {
                        let view = extractor.features(column.document(i));
                        chooser.mark(view.features, view.weights, rarity, wanted);
                    }
                },
            )?;
            Ok(())
        })
    }

    /// Takes the texts of these positions, each once.
    #[pyo3(signature = (positions, texts, *, threads=1))]
    fn add(
        &self,
        py: Python<'_>,
        positions: &Bound<'_, PyAny>,
        texts: &Texts,
        threads: usize,
    ) -> Result<(), Failure> {
        let positions = Input::<u32>::take("positions", positions)?;
        let positions = positions.values();
        check_below("positions", positions, self.num_positions)?;
        let column = texts.column.as_ref();
        check_same_length("positions", positions.len(), "texts", column.len())?;
        let (rules, rarity) = (self.rules.get(), &self.rarity.get().counts);
        rules.check(column)?;
        run(py, column.num_bytes, |cancel| {
            let ranges = column.ranges(GRAIN_BYTES);
            let make_state = || {
                (
                    rules.naming_extractor(Isa::best()),
                    Chooser::new(self.limit),
                )
            };
            let parts = map_ranges(
                ranges.len(),
                1,
                threads,
                cancel,
                make_state,
                |(extractor, chooser), which| {
                    let (mut batch, mut forms) = (Batch::default(), Vec::new());
                    for i in ranges[which.start].clone() {
                        let view = extractor.features(column.document(i));
                        chooser.choose(
                            view.features,
                            view.weights,
                            rarity,
                            self.wanted.as_ref(),
                            &mut batch,
                        );
                        let form = extractor.names().and_then(|names| names.form());
                        forms.extend(form.map(|form| (positions[i], form)));
                    }
                    (batch, forms)
                },
            )?;
            let (parts, forms): (Vec<Batch>, Vec<_>) = parts.into_iter().unzip();
            self.locked_forms().extend(forms.into_iter().flatten());
            let num_entries: usize = parts.iter().map(Batch::num_entries).sum();
            if num_entries < Parted::LEAST_ENTRIES {
                return self.with_prefixes(|prefixes| Ok(prefixes.add_few(positions, parts)?));
            }
            let part = Parted::new(positions, &parts)?;
            self.with_prefixes(|prefixes| Ok(prefixes.add(part)?))
        })
    }

    /// Makes the join; nothing can be added afterwards.
    #[pyo3(signature = (*, threads=1))]
    fn finish(&self, py: Python<'_>, threads: usize) -> Result<(), Failure> {
        run(py, LONG_BYTES, |cancel| {
            self.with_stage(|stage| {
                *stage = match std::mem::replace(stage, Stage::Broken) {
                    Stage::Gathering(prefixes) => {
                        let forms = std::mem::take(&mut *self.locked_forms());
                        let forms =
                            Forms::new(forms, self.measure, self.threshold, self.num_positions);
                        let join = prefixes.into_join(threads, cancel)?;
                        Stage::Joining(Box::new(join.with_forms(forms)))
                    }
                    Stage::Broken => return Err(wrong_stage()),
                    joining => joining,
                };
                Ok(())
            })
        })
    }

    /// Bytes held by the join; 0 before `finish`.
    #[getter]
    fn num_bytes(&self, py: Python<'_>) -> Result<usize, Failure> {
        run_short(py, |_| {
            self.with_stage(|stage| match stage {
                Stage::Joining(join) => Ok(join.num_bytes()),
                _ => Ok(0),
            })
        })
    }

    /// Pairs whose later position lies in `lo..hi` that may reach the threshold, up to `max_pairs`, and the end of the later
    /// positions that were looked at: `(later, earlier, end)`. `lo` is the last `end`.
    #[pyo3(signature = (lo, hi, states, max_pairs, *, threads=1))]
    fn candidates_up_to(
        &self,
        py: Python<'_>,
        lo: u32,
        hi: u32,
        states: Option<&Bound<'_, PyAny>>,
        max_pairs: usize,
        threads: usize,
    ) -> Result<(Array, Array, u32), Failure> {
        let range = check_range(lo, hi, self.num_positions)?;
        let states = Input::<u8>::take_option("states", states)?;
        let states = states.as_ref().map(Input::values);
        if let Some(states) = states {
            check_same_length("states", states.len(), "positions", self.num_positions)?;
        }
        // About a thousand entries a document.
        let found = run(py, (hi - lo) as usize * 8192, |cancel| {
            self.with_stage(|stage| {
                let Stage::Joining(join) = stage else {
                    return Err(wrong_stage());
                };
                Ok(join.candidates_up_to(max_pairs, range, states, threads, cancel)?)
            })
        })?;
        Ok((found.later.into(), found.earlier.into(), found.end))
    }

    /// Lists positions up to `end` as earlier ones, without their own pairs.
    fn pass_over(&self, py: Python<'_>, end: u32) -> Result<(), Failure> {
        run(py, LONG_BYTES, |_| {
            self.with_stage(|stage| match stage {
                Stage::Joining(join) => Ok(join.pass_over(end)?),
                _ => Err(wrong_stage()),
            })
        })
    }
}
