//! The best references of queries.

use likewise_core::error::invalid_if;
use likewise_core::features::FeatureView;
use likewise_core::parallel::Run;
use likewise_core::sets::{Answer, Judge, Matcher, Rarest, References, size_of};
use likewise_core::verify::Required;
use pyo3::prelude::*;

use crate::array::Array;
use crate::door::run;
use crate::errors::Result;
use crate::features::FeatureRules;
use crate::texts::Texts;
use crate::verify::parse_measure;

/// Feature sets of references, which queries are compared with.
#[pyclass(frozen, module = "likewise._native")]
pub struct ReferenceSets {
    references: References,
    rules: Py<FeatureRules>,
}

fn with_sets<T: Send>(
    py: Python<'_>,
    texts: &Texts,
    rules: &FeatureRules,
    threads: usize,
    make: impl FnOnce(&[(Vec<u64>, Vec<u32>)]) -> T + Send,
) -> Result<T> {
    let column = texts.column.as_ref();
    invalid_if(column.len() >= u32::MAX as usize, "references", || {
        format!("{} are too many", column.len())
    })?;
    run(py, column.num_bytes, |cancel| {
        let add = |(): &mut (), sets: &mut Vec<_>, _, view: FeatureView<'_>| {
            sets.push((view.features.to_vec(), view.weights.to_vec()));
        };
        let sets = rules.in_parts(column, Run { threads, cancel }, || (), add)?;
        Ok(make(&sets.concat()))
    })
}

/// For several queries: ends of their answers, the answers, sizes.
type Found = (Vec<u64>, Vec<Answer>, Vec<u64>);

#[pymethods]
impl ReferenceSets {
    #[new]
    #[pyo3(signature = (texts, rules, *, threads=1))]
    fn new(py: Python<'_>, texts: &Texts, rules: Py<FeatureRules>, threads: usize) -> Result<Self> {
        let references = with_sets(py, texts, rules.get(), threads, References::new)?;
        Ok(ReferenceSets { references, rules })
    }

    /// Total weight of the features of each reference.
    #[getter]
    fn sizes(&self) -> Array {
        self.references.sizes().to_vec().into()
    }

    /// The best references of each text: `(offsets, references, shared, scores, sizes)`; those of text i are at
    /// `offsets[i]..offsets[i + 1]`, the best first.
    #[pyo3(signature = (texts, *, top, min_score, threads=1))]
    fn best(
        &self,
        py: Python<'_>,
        texts: &Texts,
        top: usize,
        min_score: f64,
        threads: usize,
    ) -> Result<(Array, Array, Array, Array, Array)> {
        let column = texts.column.as_ref();
        let parts: Vec<Found> = run(py, column.num_bytes, |cancel| {
            let make_state = || Matcher::new(&self.references);
            let add = |matcher: &mut Matcher<'_>, found: &mut Found, _, view: FeatureView<'_>| {
                let (ends, answers, sizes) = found;
                matcher.answer(view.features, view.weights, top, min_score, answers);
                ends.push(answers.len() as u64);
                sizes.push(size_of(view.features, view.weights));
            };
            let rules = self.rules.get();
            rules.in_parts(column, Run { threads, cancel }, make_state, add)
        })?;
        let mut offsets = vec![0];
        let (mut answers, mut sizes) = (Vec::new(), Vec::new());
        for (ends, found, own_sizes) in parts {
            let start = answers.len() as u64;
            offsets.extend(ends.iter().map(|end| start + end));
            answers.extend(found);
            sizes.extend(own_sizes);
        }
        let references: Vec<u32> = answers.iter().map(|answer| answer.reference).collect();
        let shared: Vec<u64> = answers.iter().map(|answer| answer.shared).collect();
        let scores: Vec<f64> = answers.iter().map(|answer| answer.score).collect();
        let (references, shared, scores) = (references.into(), shared.into(), scores.into());
        Ok((offsets.into(), references, shared, scores, sizes.into()))
    }
}

/// Rarest features of some documents: which of them may a text match?
#[pyclass(frozen, module = "likewise._native")]
pub struct RarestFeatures {
    rarest: Rarest,
    rules: Py<FeatureRules>,
}

#[pymethods]
impl RarestFeatures {
    #[new]
    #[pyo3(signature = (texts, rules, *, measure, threshold, short_margin=0.0, threads=1))]
    fn new(
        py: Python<'_>,
        texts: &Texts,
        rules: Py<FeatureRules>,
        measure: &str,
        threshold: f64,
        short_margin: f64,
        threads: usize,
    ) -> Result<Self> {
        let measure = parse_measure(measure)?;
        let required = Required {
            short_margin,
            ..threshold.into()
        };
        let rarest = with_sets(py, texts, rules.get(), threads, |sets| {
            Rarest::new(sets, measure, required)
        })?;
        Ok(RarestFeatures { rarest, rules })
    }

    /// Pairs of a text and a document that it may match: `(texts, documents, number of list entries)`.
    #[pyo3(signature = (texts, *, threads=1))]
    fn may_match(
        &self,
        py: Python<'_>,
        texts: &Texts,
        threads: usize,
    ) -> Result<(Array, Array, usize)> {
        let column = texts.column.as_ref();
        run(py, column.num_bytes, |cancel| {
            let make_state = || self.rarest.judge();
            let add = |judge: &mut Judge<'_>, pairs: &mut Pairs, i, view: FeatureView<'_>| {
                pairs.add(&self.rarest, judge, i, view.features, view.weights);
            };
            let rules = self.rules.get();
            rules.in_parts(column, Run { threads, cancel }, make_state, add)
        })
        .map(Pairs::into_arrays)
    }
}

#[derive(Default)]
struct Pairs {
    texts: Vec<u32>,
    documents: Vec<u32>,
    num_entries: usize,
}

impl Pairs {
    /// Adds the documents that a text may match.
    fn add(
        &mut self,
        rarest: &Rarest,
        judge: &mut Judge<'_>,
        text: usize,
        features: &[u64],
        weights: &[u32],
    ) {
        self.num_entries += rarest.may_match(judge, features, weights, &mut self.documents);
        self.texts.resize(self.documents.len(), text as u32);
    }

    fn into_arrays(parts: Vec<Pairs>) -> (Array, Array, usize) {
        let mut all = Pairs::default();
        for part in parts {
            all.texts.extend(part.texts);
            all.documents.extend(part.documents);
            all.num_entries += part.num_entries;
        }
        (all.texts.into(), all.documents.into(), all.num_entries)
    }
}
