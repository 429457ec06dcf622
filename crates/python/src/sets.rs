//! The exact join of feature sets by their rarest features.

use std::sync::Mutex;

use likewise_core::error::invalid_if;
use likewise_core::features::siblings::Form;
use likewise_core::features::{Extractor, FeatureView, Shape, TextDigester};
use likewise_core::parallel::{Run, lock};
use likewise_core::search::{Call, Pairs};
use likewise_core::sets::{
    self, Batch, Chooser, Demand, Forms, Parted, Prefixes, SetMeasure, Wanted, size_of,
};
use likewise_core::sketch::Sample;
use pyo3::prelude::*;

use crate::array::{Array, take};
use crate::column::Kind;
use crate::door::{
    LONG_BYTES, Object, SET_MEASURES, check_below, check_same_length, chosen_isa, parse, run,
    run_short,
};
use crate::errors::{Failure, Result};
use crate::features::{FeatureRules, TextRules};
use crate::searcher::{Search, Searcher};
use crate::sketch::{self, Part, SketchBatch};
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
    fn new(py: Python<'_>, num_text_bytes: u64) -> Result<Self> {
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

/// Candidate pairs by the rarest features of documents, in order of priority. The lock is taken only with the interpreter lock
/// released, so that two threads cannot wait for each other.
#[pyclass(frozen, module = "likewise._native")]
pub struct PrefixJoin {
    /// None once the search was made.
    prefixes: Mutex<Option<Prefixes>>,
    demand: Demand,
    /// Of positions.
    forms: Mutex<Vec<(u32, Form)>>,
    wanted: Option<Wanted>,
    rules: Py<FeatureRules>,
    rarity: Py<Rarity>,
    num_positions: usize,
    siblings: bool,
}

impl PrefixJoin {
    fn with_prefixes(&self, work: impl FnOnce(&mut Prefixes) -> Result<()>) -> Result<()> {
        work(lock(&self.prefixes).as_mut().ok_or_else(finished)?)
    }
}

fn finished() -> Failure {
    Failure::parameter("stage", "texts are added before `finish`".to_owned())
}

#[pymethods]
impl PrefixJoin {
    #[new]
    #[pyo3(signature = (num_positions, rules, rarity, *, measure, threshold, short_margin=0.0, siblings=false))]
    fn new(
        num_positions: usize,
        rules: Py<FeatureRules>,
        rarity: Py<Rarity>,
        measure: &str,
        threshold: f64,
        short_margin: f64,
        siblings: bool,
    ) -> Result<Self> {
        let found = SetMeasure::from_name(measure);
        let set_measure = parse("measure", measure, found, &SET_MEASURES)?;
        invalid_if(!(threshold > 0.0 && threshold <= 1.0), "threshold", || {
            format!("{threshold} is not above 0 and up to 1")
        })?;
        invalid_if(num_positions > u32::MAX as usize, "num_positions", || {
            format!("{num_positions} is outside 0..{}", u32::MAX)
        })?;
        let demand = Demand {
            measure: set_measure,
            threshold,
            short_margin,
            by_rarity: siblings && rules.get().are_by_rarity(),
        };
        let wanted = match set_measure {
            SetMeasure::Smaller => Some(Wanted::new(&rarity.get().counts)),
            _ => None,
        };
        Ok(PrefixJoin {
            prefixes: Mutex::new(Some(Prefixes::new(demand, num_positions))),
            demand,
            forms: Mutex::default(),
            wanted,
            rules,
            rarity,
            num_positions,
            siblings,
        })
    }

    /// Whether all texts must be given to `mark` before they are given to `add`.
    #[getter]
    fn needs_marks(&self) -> bool {
        self.wanted.is_some()
    }

    /// Notes which features are in the prefix of any of the texts.
    #[pyo3(signature = (texts, *, threads=1))]
    fn mark(&self, py: Python<'_>, texts: &Texts, threads: usize) -> Result<()> {
        let Some(wanted) = &self.wanted else {
            return Ok(());
        };
        let column = texts.column.as_ref();
        let (rules, rarity) = (self.rules.get(), &self.rarity.get().counts);
        run(py, column.num_bytes, |cancel| {
            let mark = |chooser: &mut Chooser, (): &mut (), _, view: FeatureView<'_>| {
                chooser.mark(view.features, view.weights, rarity, wanted);
            };
            let make_state = || Chooser::new(self.demand);
            rules.in_parts(column, Run { threads, cancel }, make_state, mark)?;
            Ok(())
        })
    }

    /// Takes the texts of these positions, each once.
    #[pyo3(signature = (positions, texts, *, threads=1))]
    fn add(
        &self,
        py: Python<'_>,
        positions: &Object<'_>,
        texts: &Texts,
        threads: usize,
    ) -> Result<()> {
        take!(positions: u32);
        check_below("positions", positions, self.num_positions)?;
        let column = texts.column.as_ref();
        check_same_length("positions", positions.len(), "texts", column.len())?;
        let (rules, rarity) = (self.rules.get(), &self.rarity.get().counts);
        rules.check(column)?;
        run(py, column.num_bytes, |cancel| {
            let make_state = || {
                let extractor = match self.siblings {
                    true => rules.naming_extractor(chosen_isa()),
                    false => rules.extractor(chosen_isa()),
                };
                (extractor, Chooser::new(self.demand))
            };
            let add = |(extractor, chooser): &mut (Extractor, Chooser),
                       part: &mut (Batch, Vec<(u32, Form)>),
                       i| {
                let view = extractor.features(column.document(i));
                let wanted = self.wanted.as_ref();
                chooser.choose(view.features, view.weights, rarity, wanted, &mut part.0);
                let form = extractor.form();
                part.1.extend(form.map(|form| (positions[i], form)));
            };
            let parts = column.in_parts(Run { threads, cancel }, make_state, add)?;
            let (parts, forms): (Vec<Batch>, Vec<_>) = parts.into_iter().unzip();
            lock(&self.forms).extend(forms.into_iter().flatten());
            let num_entries: usize = parts.iter().map(Batch::num_entries).sum();
            if num_entries < Parted::LEAST_ENTRIES {
                return self.with_prefixes(|prefixes| Ok(prefixes.add_few(positions, parts)?));
            }
            let part = Parted::new(positions, &parts)?;
            self.with_prefixes(|prefixes| Ok(prefixes.add(part)?))
        })
    }

    /// The search; nothing can be added afterwards.
    #[pyo3(signature = (*, threads=1))]
    fn finish(&self, py: Python<'_>, threads: usize) -> Result<Searcher> {
        let join = run(py, LONG_BYTES, |cancel| {
            let prefixes = lock(&self.prefixes).take().ok_or_else(finished)?;
            let forms = std::mem::take(&mut *lock(&self.forms));
            let forms = Forms::new(forms, self.num_positions);
            Ok(prefixes.into_join(threads, cancel)?.with_forms(forms))
        })?;
        Ok(Searcher::new(PrefixSearch {
            num_positions: self.num_positions,
            num_bytes: join.num_bytes(),
            join: Mutex::new(join),
        }))
    }
}

/// The lock is taken only with the interpreter lock released, as that of the prefixes.
struct PrefixSearch {
    join: Mutex<sets::PrefixJoin>,
    num_positions: usize,
    num_bytes: usize,
}

impl Search for PrefixSearch {
    fn num_positions(&self) -> usize {
        self.num_positions
    }

    fn num_bytes_read(&self, num_later: usize) -> usize {
        // About a thousand entries a document.
        num_later * 8192
    }

    fn candidates(&self, call: &Call<'_>) -> Result<Pairs> {
        let mut join = lock(&self.join);
        Ok(join.candidates(call)?)
    }

    fn pass_over(&self, end: u32) -> Result<()> {
        let mut join = lock(&self.join);
        Ok(join.pass_over(end)?)
    }

    fn num_bytes(&self) -> usize {
        self.num_bytes
    }
}

/// Counts the documents of each feature of a batch of texts; the batch has no sketches, only the data that goes with
/// them.
#[pyfunction]
#[pyo3(signature = (texts, rules, rarity, *, threads=1))]
pub fn count_sets(
    py: Python<'_>,
    texts: &Texts,
    rules: &FeatureRules,
    rarity: &Rarity,
    threads: usize,
) -> Result<SketchBatch> {
    let batch = sketch::Batch {
        column: &texts.column,
        rules,
        sets: true,
        occurrences: false,
        threads,
    };
    let rarity = &rarity.counts;
    run(py, texts.column.num_bytes, |cancel| {
        batch.sketch(cancel, || {
            |features: &[u64], _: &[u32], _: &mut Vec<u8>| rarity.add(features)
        })
    })?
    .into_batch(py)
}

/// Digests of the texts as normalized by the rules, in place of those of feature sets; the batch has no sketches.
#[pyfunction]
#[pyo3(signature = (texts, rules, *, threads=1))]
pub fn digest_texts(
    py: Python<'_>,
    texts: &Texts,
    rules: &TextRules,
    threads: usize,
) -> Result<SketchBatch> {
    let column = texts.column.as_ref();
    if column.kind != Kind::Text {
        return Err(Failure::input("method exact compares texts"));
    }
    run(py, column.num_bytes, |cancel| {
        let make_state = || TextDigester::new(rules.rules.clone(), chosen_isa());
        let parts = column.in_parts(
            Run { threads, cancel },
            make_state,
            |digester, part: &mut Part<u8>, i| {
                let digest = digester.digest(column.get(i));
                let shape = match digest {
                    Some(_) => Shape::Full,
                    None => Shape::Empty,
                };
                part.digests.extend(digest.unwrap_or_default());
                part.num_features.push(u32::from(digest.is_some()));
                part.shapes.push(shape as u8);
            },
        )?;
        let mut all = Part::default();
        for part in parts {
            all.append(part);
        }
        Ok(all)
    })?
    .into_batch(py)
}

/// Of some texts: ends of their hashes, the hashes, totals, and whether the sample is the whole set.
type Sampled = (Vec<i64>, Vec<u64>, Vec<u64>, Vec<u8>);

/// Samples of feature sets: `(offsets, hashes, totals, whole)`; text i keeps `hashes[offsets[i]:offsets[i + 1]]`,
/// ascending.
#[pyfunction]
#[pyo3(signature = (texts, rules, *, kind, size, threads=1))]
pub fn sample_sets(
    py: Python<'_>,
    texts: &Texts,
    rules: &FeatureRules,
    kind: &str,
    size: u64,
    threads: usize,
) -> Result<(Array, Array, Array, Array)> {
    let sample = match (kind, u32::try_from(size)) {
        ("min-s", Ok(size)) if size > 0 => Sample::MinS(size),
        ("mod-m", _) if size > 0 => Sample::ModM(size),
        _ => {
            return Err(Failure::parameter(
                "kind",
                format!("{kind:?} of size {size} is none of min-s, mod-m of size 1 or more"),
            ));
        }
    };
    let column = texts.column.as_ref();
    let (offsets, hashes, totals, whole) = run(py, column.num_bytes, |cancel| {
        let add = |(): &mut (), part: &mut Sampled, _, view: FeatureView<'_>| {
            let (ends, hashes, totals, whole) = part;
            let (features, weights) = (view.features, view.weights);
            let is_whole = sample.collect(features, weights, rules.rules.seed, hashes);
            whole.push(u8::from(is_whole));
            ends.push(hashes.len() as i64);
            totals.push(size_of(features, weights));
        };
        let parts = rules.in_parts(column, Run { threads, cancel }, || (), add)?;
        let (mut offsets, mut hashes) = (vec![0], Vec::new());
        let (mut totals, mut whole) = (Vec::new(), Vec::new());
        for part in parts {
            let start = hashes.len() as i64;
            offsets.extend(part.0.iter().map(|end| start + end));
            hashes.extend(part.1);
            totals.extend(part.2);
            whole.extend(part.3);
        }
        Ok((offsets, hashes, totals, whole))
    })?;
    Ok((offsets.into(), hashes.into(), totals.into(), whole.into()))
}
