//! Weight tables: reading, writing, lookup.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use likewise_core::features::siblings::NameTable;
use likewise_core::features::{
    Counted, Entries, FeatureWeights, MAX_WEIGHT, UNLISTED_WEIGHT, WeightTable as CoreTable,
};
use likewise_disk::{WeightFile, read_weights, weights_of_bytes, weights_to_bytes, write_weights};
use pyo3::prelude::*;

use crate::array::{Array, take};
use crate::door::{Object, check_same_length, chosen_isa, run, run_short};
use crate::errors::{Failure, On, Result};

/// Integer weights of features, with the rules that make the features.
#[pyclass(frozen, module = "likewise._native")]
pub struct WeightTable {
    table: Arc<CoreTable>,
    /// The words and slots that names of documents are read by.
    names: Option<Arc<NameTable>>,
    /// The file content without the entries, which are in the table.
    about: WeightFile,
    id: u128,
    excess: u64,
    excess_probability: f64,
}

impl WeightTable {
    pub fn new(mut content: WeightFile, error: (u64, f64)) -> Result<Self> {
        let id = content.id();
        let nothing = Entries::Listed {
            features: Vec::new(),
            weights: Vec::new(),
        };
        let entries = std::mem::replace(&mut content.entries, nothing);
        let names = content.names.take().map(NameTable::new).transpose()?;
        Ok(WeightTable {
            table: Arc::new(CoreTable::new(content.default_weight, entries)?),
            names: names.map(Arc::new),
            about: content,
            id,
            excess: error.0,
            excess_probability: error.1,
        })
    }

    fn of_file(content: WeightFile) -> Result<Self> {
        let counted = Counted {
            num_documents: content.num_documents,
            num_incidences: content.num_incidences,
            num_features: content.num_features,
            entries: content.entries,
        };
        let error = counted.error();
        let content = WeightFile {
            entries: counted.entries,
            ..content
        };
        WeightTable::new(content, error)
    }

    fn content(&self) -> WeightFile {
        WeightFile {
            entries: self.table.entries().clone(),
            names: self.names.as_ref().map(|names| names.entries().clone()),
            ..self.about.clone()
        }
    }

    pub fn name_table(&self) -> Option<Arc<NameTable>> {
        self.names.clone()
    }

    pub fn feature_weights(&self) -> FeatureWeights {
        let lengths = (1..=64).filter(|length| self.about.term_lengths >> (length - 1) & 1 == 1);
        FeatureWeights {
            table: Arc::clone(&self.table),
            term_lengths: lengths.collect(),
        }
    }
}

#[pymethods]
impl WeightTable {
    /// Reads a file written by `write`.
    #[staticmethod]
    fn read(py: Python<'_>, path: PathBuf) -> Result<Self> {
        let num_bytes = std::fs::metadata(&path).map_or(0, |metadata| metadata.len() as usize);
        run(py, num_bytes, |_| {
            let content = read_weights(&path).on(&path)?;
            WeightTable::of_file(content)
        })
    }

    /// Reads the result of `to_bytes`.
    #[staticmethod]
    fn from_bytes(py: Python<'_>, content: &[u8]) -> Result<Self> {
        run(py, content.len(), |_| {
            let content = weights_of_bytes(content)
                .map_err(|error| Failure::disk(error, Path::new("bytes")))?;
            WeightTable::of_file(content)
        })
    }

    /// The bytes that `write` writes.
    fn to_bytes(&self, py: Python<'_>) -> Result<Vec<u8>> {
        run(py, self.table.num_bytes(), |_| {
            weights_to_bytes(&self.content())
                .map_err(|error| Failure::disk(error, Path::new("bytes")))
        })
    }

    /// A table of terms: `features` and `lengths` are those returned by `term_features`.
    #[staticmethod]
    fn from_terms(
        py: Python<'_>,
        features: &Object<'_>,
        lengths: &Object<'_>,
        weights: &Object<'_>,
        rules: String,
    ) -> Result<Self> {
        take!(features: u64, lengths: u32, weights: u32);
        check_same_length("lengths", lengths.len(), "features", features.len())?;
        check_same_length("weights", weights.len(), "features", features.len())?;
        if lengths.iter().any(|length| !(1..=64).contains(length)) {
            return Err(Failure::parameter("lengths", "a length is outside 1..64"));
        }
        if weights.iter().any(|&weight| weight > u32::from(MAX_WEIGHT)) {
            return Err(Failure::parameter("weights", "a weight is outside 0..15"));
        }
        run_short(py, |_| {
            let mut terms: Vec<(u64, u8)> = features
                .iter()
                .zip(weights)
                .map(|(&feature, &weight)| (feature, weight as u8))
                .collect();
            terms.sort_unstable();
            let (features, weights) = terms.into_iter().unzip();
            let content = WeightFile {
                rules,
                default_weight: UNLISTED_WEIGHT,
                term_lengths: lengths
                    .iter()
                    .fold(0, |all, length| all | 1 << (length - 1)),
                num_documents: 0,
                num_incidences: 0,
                num_features: None,
                entries: Entries::Listed { features, weights },
                names: None,
            };
            WeightTable::new(content, (0, 0.0))
        })
    }

    /// Writes the table to a file, which is complete under its name or absent.
    fn write(&self, py: Python<'_>, path: PathBuf) -> Result<()> {
        run(py, self.table.num_bytes(), |_| {
            write_weights(Path::new(&path), &self.content()).on(&path)
        })
    }

    /// Weights of features: uint32.
    fn weigh(&self, py: Python<'_>, features: &Object<'_>) -> Result<Array> {
        take!(features: u64);
        run(py, 8 * features.len(), |_| {
            let mut weights = Vec::with_capacity(features.len());
            self.table.weigh(features, chosen_isa(), &mut weights);
            Ok(weights.into())
        })
    }

    /// The rules that make the features, as given.
    #[getter]
    fn rules(&self) -> &str {
        &self.about.rules
    }

    /// 32 hexadecimal digits that identify weights and rules.
    #[getter]
    fn weights_id(&self) -> String {
        format!("{:032x}", self.id)
    }

    #[getter]
    fn num_documents(&self) -> u64 {
        self.about.num_documents
    }

    #[getter]
    fn num_features(&self) -> Option<u64> {
        self.about.num_features
    }

    /// Number of listed features; None for the cells of a sketch.
    #[getter]
    fn num_listed(&self) -> Option<usize> {
        self.table.num_features()
    }

    #[getter]
    fn longest_term(&self) -> u32 {
        64 - self.about.term_lengths.leading_zeros()
    }

    /// Maximum amount by which a count may be too high.
    #[getter]
    fn excess(&self) -> u64 {
        self.excess
    }

    #[getter]
    fn excess_probability(&self) -> f64 {
        self.excess_probability
    }

    #[getter]
    fn num_bytes(&self) -> usize {
        self.table.num_bytes() + self.names.as_ref().map_or(0, |names| names.num_bytes())
    }
}
