//! Weights counted over documents.

use std::sync::{Arc, Mutex, OnceLock};

use likewise_core::features::{
    DocumentCounter as CoreCounter, MAX_WEIGHT, Shape, ShardedBuilder, TextSample as CoreSample,
    siblings::NameCounter, term_feature,
};
use likewise_core::parallel::{Run, lock};
use likewise_disk::WeightFile;
use pyo3::prelude::*;

use crate::array::Array;
use crate::column::{Column, GRAIN_BYTES, Kind};
use crate::door::{chosen_isa, run};
use crate::errors::{Failure, Result};
use crate::features::FeatureRules;
use crate::texts::Texts;
use crate::weights::WeightTable;

/// The documents of the lowest hashes, up to a number and to bytes. Add from any thread, in any order.
#[pyclass(frozen, module = "likewise._native")]
pub struct TextSample {
    sample: CoreSample,
    kind: OnceLock<Kind>,
}

#[pymethods]
impl TextSample {
    #[new]
    fn new(max_documents: usize, max_bytes: usize) -> Self {
        TextSample {
            sample: CoreSample::new(max_documents, max_bytes),
            kind: OnceLock::new(),
        }
    }

    /// Adds documents, all of one kind.
    fn add(&self, py: Python<'_>, texts: &Texts) -> Result<()> {
        let column = texts.column.as_ref();
        self.kind.get_or_init(|| column.kind);
        run(py, column.num_bytes, |_| {
            (0..column.len()).for_each(|i| self.sample.add(column.bytes(i)));
            Ok(())
        })
    }

    /// The documents of the sample, in the order of their hashes; they are moved out of it.
    fn take(&self, py: Python<'_>) -> Result<Texts> {
        let kind = self.kind.get().copied().unwrap_or(Kind::Text);
        let column = run(py, usize::MAX, |_| {
            let (mut bytes, mut offsets) = (Vec::new(), vec![0]);
            for document in self.sample.take() {
                bytes.extend_from_slice(&document);
                offsets.push(bytes.len() as i64);
            }
            Column::from_bytes(kind, bytes, offsets)
        })?;
        Ok(column.into())
    }
}

/// Counts how many documents with distinct feature sets contain each feature. Add from any thread, in any order.
#[pyclass(frozen, module = "likewise._native")]
pub struct DocumentCounter {
    counter: Mutex<Option<Arc<CoreCounter>>>,
    /// Counts words and slots, if names of documents are read by them.
    names: Option<NameCounter>,
}

impl DocumentCounter {
    fn counter(&self) -> Result<Arc<CoreCounter>> {
        let counter = lock(&self.counter);
        counter
            .clone()
            .ok_or_else(|| Failure::parameter("counter", "it is finished"))
    }
}

#[pymethods]
impl DocumentCounter {
    #[new]
    #[pyo3(signature = (memory_bytes, *, names=false))]
    fn new(memory_bytes: u64, names: bool) -> Result<Self> {
        let counter = CoreCounter::new(memory_bytes)?;
        Ok(DocumentCounter {
            counter: Mutex::new(Some(Arc::new(counter))),
            names: names.then(NameCounter::default),
        })
    }

    #[pyo3(signature = (texts, rules, *, threads=1))]
    fn add(
        &self,
        py: Python<'_>,
        texts: &Texts,
        rules: &FeatureRules,
        threads: usize,
    ) -> Result<()> {
        let counter = self.counter()?;
        let column = texts.column.as_ref();
        rules.check(column)?;
        let rules = counted_by(rules);
        run(py, column.num_bytes, |cancel| {
            let ranges = column.ranges(GRAIN_BYTES);
            let make_state = || {
                let mut extractor = rules.extractor(chosen_isa());
                extractor.adds_salt = false;
                let extractor = match &self.names {
                    Some(_) => extractor.with_names(None),
                    None => extractor,
                };
                (extractor, ShardedBuilder::default())
            };
            Run { threads, cancel }.map(
                ranges.len(),
                1,
                make_state,
                |(extractor, builder), which| {
                    for i in ranges[which.start].clone() {
                        let view = extractor.features(column.document(i));
                        let Some((digest, is_new)) = counter.is_new(view.features) else {
                            continue;
                        };
                        if is_new {
                            builder.push(view.features);
                        }
                        if let Some(names) = &self.names
                            && names.wants(digest)
                        {
                            names.add(digest, extractor.tokens());
                        }
                    }
                    counter.add(builder);
                },
            )?;
            Ok(())
        })
    }

    /// The table of the counts. Nothing can be added afterwards.
    #[pyo3(signature = (rules, *, threads=1))]
    fn finish(&self, py: Python<'_>, rules: String, threads: usize) -> Result<WeightTable> {
        let counter = lock(&self.counter).take();
        let counter = counter.and_then(Arc::into_inner).ok_or_else(|| {
            Failure::parameter(
                "counter",
                "it is finished, or another thread still adds to it",
            )
        })?;
        run(py, usize::MAX, |cancel| {
            let counted = counter.finish(Run { threads, cancel })?;
            let error = counted.error();
            let names = self.names.as_ref();
            let names = names
                .map(|names| names.finish(threads, cancel))
                .transpose()?;
            let content = WeightFile {
                rules,
                default_weight: MAX_WEIGHT,
                term_lengths: 0,
                num_documents: counted.num_documents,
                num_incidences: counted.num_incidences,
                num_features: counted.num_features,
                entries: counted.entries,
                names,
            };
            WeightTable::new(content, error)
        })
    }
}

fn counted_by(rules: &FeatureRules) -> FeatureRules {
    rules.unweighted(rules.rules.shingle)
}

/// The key of each term in a table, and its number of tokens (0: none): `(features, lengths)`.
#[pyfunction]
pub fn term_features(
    py: Python<'_>,
    terms: &Texts,
    rules: &FeatureRules,
) -> Result<(Array, Array)> {
    let column = terms.column.as_ref();
    rules.check(column)?;
    let rules = rules.unweighted(1);
    let (features, lengths) = run(py, column.num_bytes, |_| {
        let mut extractor = rules.extractor(chosen_isa());
        let (mut features, mut lengths) = (Vec::new(), Vec::new());
        for i in 0..column.len() {
            let (tokens, shape) = extractor.occurrences(column.document(i));
            let tokens = if shape == Shape::Full { tokens } else { &[] };
            features.push(term_feature(tokens));
            lengths.push(tokens.len() as u32);
        }
        Ok((features, lengths))
    })?;
    Ok((features.into(), lengths.into()))
}
