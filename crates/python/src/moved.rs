//! Documents with their verdicts, on their way from one index to another, as Arrow data too.

use likewise_core::parallel::lock;
use std::sync::{Arc, Mutex};

use arrow_array::builder::{
    BinaryBuilder, FixedSizeBinaryBuilder, Int32Builder, Int64Builder, ListBuilder,
};
use arrow_array::cast::AsArray;
use arrow_array::types::{Float64Type, Int8Type, Int32Type, Int64Type};
use arrow_array::{
    Array, ArrayRef, BooleanArray, Float64Array, Int8Array, Int32Array, Int64Array, RecordBatch,
    StringArray, StructArray,
};
use arrow_schema::{DataType, Field};
use likewise_disk::store::{Content, Evidence};
use likewise_index::cluster::{MovedDocument, Record, RowNumbers as Numbers, Verdict};
use likewise_index::{Method, Rules};
use pyo3::prelude::*;
use pyo3::types::PyTuple;

use crate::arrow::{read_array, write_array};
use crate::door::{LONG_BYTES, Object, run};
use crate::errors::{Failure, Result};
use crate::index_given::RecipeParts;

/// Bit of a shape: the document collapsed into an equal one.
const COLLAPSED: u8 = 4;
/// Levels of a band in a list: band times this, plus the level.
const LEVELS: i32 = 4;
/// Number of bytes of a digest.
const DIGEST_BYTES: i32 = 16;

/// A part of the documents of an index, with their verdicts.
#[pyclass(frozen, module = "likewise._native")]
pub struct MovedDocuments {
    pub rules: Rules,
    pub all: Vec<MovedDocument>,
}

fn damaged(error: arrow_schema::ArrowError) -> Failure {
    Failure::Internal(error.to_string())
}

/// The documents as a table; that of none has its columns.
fn to_arrow(rules: &Rules, all: &[MovedDocument]) -> Result<RecordBatch> {
    let element = |item: DataType| Arc::new(Field::new("element", item, false));
    let records = || all.iter().map(|document| &document.record);
    let evidence = || records().map(|record| record.verdict.map(|verdict| verdict.evidence));
    let mut sketches = FixedSizeBinaryBuilder::new(rules.sketch_bytes() as i32);
    let mut digests = FixedSizeBinaryBuilder::new(DIGEST_BYTES);
    let mut levels = ListBuilder::new(Int32Builder::new()).with_field(element(DataType::Int32));
    let mut features = ListBuilder::new(Int64Builder::new()).with_field(element(DataType::Int64));
    let mut weights = ListBuilder::new(Int32Builder::new()).with_field(element(DataType::Int32));
    let mut texts = BinaryBuilder::new();
    for MovedDocument {
        record, content, ..
    } in all
    {
        sketches.append_value(&record.sketch).map_err(damaged)?;
        digests
            .append_value(record.digest.to_le_bytes())
            .map_err(damaged)?;
        for &(band, level) in &record.levels {
            levels
                .values()
                .append_value(i32::from(band) * LEVELS + i32::from(level));
        }
        levels.append(true);
        let set = match content {
            Content::Features(features, weights) => Some((features, weights)),
            _ => None,
        };
        let own_weights = set.filter(|(_, weights)| weights.iter().any(|&weight| weight != 1));
        for &feature in set.map_or(&[][..], |(features, _)| features) {
            features.values().append_value(feature.cast_signed());
        }
        for &weight in own_weights.map_or(&[][..], |(_, weights)| weights) {
            weights.values().append_value(weight.cast_signed());
        }
        features.append(set.is_some());
        weights.append(own_weights.is_some());
        match content {
            Content::Text(text) => texts.append_value(text),
            _ => texts.append_null(),
        }
    }
    let numbers = |number: fn(&MovedDocument) -> i64| -> ArrayRef {
        Arc::new(all.iter().map(number).map(Some).collect::<Int64Array>())
    };
    let kept_rows = evidence().map(|evidence| Some(i64::from(evidence?.kept_row) + 1));
    let similarities = evidence().map(|evidence| Some(evidence?.similarity));
    let distances = evidence().map(|evidence| Some(i32::from(evidence?.distance?)));
    let ids = StringArray::from_iter_values(records().map(|record| &record.id));
    let shapes = records().map(|record| (record.shape & !COLLAPSED).cast_signed());
    let collapsed = records().map(|record| Some(record.shape & COLLAPSED != 0));
    let text_digests = records().map(|record| Some(record.text_digest?.cast_signed()));
    let columns: [(&str, ArrayRef, bool); 16] = [
        ("doc_id", Arc::new(ids), false),
        (
            "seq",
            numbers(|document| i64::from(document.row) + 1),
            false,
        ),
        (
            "arrival_s",
            numbers(|document| document.record.second.cast_signed()),
            false,
        ),
        (
            "kept_seq",
            Arc::new(kept_rows.collect::<Int64Array>()),
            true,
        ),
        (
            "similarity",
            Arc::new(similarities.collect::<Float64Array>()),
            true,
        ),
        (
            "distance",
            Arc::new(distances.collect::<Int32Array>()),
            true,
        ),
        (
            "num_features",
            numbers(|document| i64::from(document.record.num_features)),
            false,
        ),
        (
            "shape",
            Arc::new(Int8Array::from_iter_values(shapes)),
            false,
        ),
        (
            "is_collapsed",
            Arc::new(BooleanArray::from_iter(collapsed)),
            false,
        ),
        ("sketch", Arc::new(sketches.finish()), false),
        (
            "text_digest",
            Arc::new(text_digests.collect::<Int64Array>()),
            true,
        ),
        ("feature_digest", Arc::new(digests.finish()), false),
        ("levels", Arc::new(levels.finish()), false),
        ("features", Arc::new(features.finish()), true),
        ("weights", Arc::new(weights.finish()), true),
        ("text", Arc::new(texts.finish()), true),
    ];
    RecordBatch::try_from_iter_with_nullable(columns).map_err(damaged)
}

/// Reads documents from columns; the data are not trusted.
fn from_arrow(rules: &Rules, table: &StructArray) -> Result<Vec<MovedDocument>> {
    let schema = to_arrow(rules, &[])?.schema();
    let batch = RecordBatch::try_new(schema, table.columns().to_vec())
        .map_err(|error| Failure::input(error.to_string()))?;
    let column = |name: &str| {
        batch
            .column_by_name(name)
            .unwrap_or_else(|| batch.column(0))
    };
    let ids = column("doc_id").as_string::<i32>();
    let int = |name: &str| column(name).as_primitive::<Int64Type>();
    let (seqs, arrivals, kept_seqs) = (int("seq"), int("arrival_s"), int("kept_seq"));
    let similarities = column("similarity").as_primitive::<Float64Type>();
    let distances = column("distance").as_primitive::<Int32Type>();
    let (num_features, text_digests) = (int("num_features"), int("text_digest"));
    let shapes = column("shape").as_primitive::<Int8Type>();
    let collapsed = column("is_collapsed").as_boolean();
    let sketches = column("sketch").as_fixed_size_binary();
    let digests = column("feature_digest").as_fixed_size_binary();
    let levels = column("levels").as_list::<i32>();
    let features = column("features").as_list::<i32>();
    let weights = column("weights").as_list::<i32>();
    let texts = column("text").as_binary::<i32>();
    let bands = match rules.method {
        Method::Minhash { bands, .. } => bands,
        Method::Simhash { .. } => 0,
    };
    (0..batch.num_rows())
        .map(|i| {
            let wrong = |what: &str| Failure::row(i, format!("{what} is not valid"));
            let row_of = |seq: i64, what: &str| {
                let row = u32::try_from(seq - 1).ok().filter(|&row| row < u32::MAX);
                row.ok_or_else(|| wrong(what))
            };
            let row = row_of(seqs.value(i), "seq")?;
            let verdict = match kept_seqs.is_null(i) {
                true => None,
                false => {
                    let distance = match (distances.is_null(i), rules.zero_distance()) {
                        (false, Some(_)) => {
                            let distance = u16::try_from(distances.value(i));
                            Some(distance.map_err(|_| wrong("distance"))?)
                        }
                        (true, None) => None,
                        _ => return Err(wrong("distance")),
                    };
                    let similarity = similarities.value(i);
                    if similarities.is_null(i) || !(0.0..=1.0).contains(&similarity) {
                        return Err(wrong("similarity"));
                    }
                    let kept_row = row_of(kept_seqs.value(i), "kept_seq")?;
                    let evidence = Evidence {
                        kept_row,
                        similarity,
                        distance,
                    };
                    Some(Verdict {
                        evidence,
                        tag: Default::default(),
                    })
                }
            };
            let shape = u8::try_from(shapes.value(i))
                .ok()
                .filter(|&shape| shape <= 2);
            let shape = shape.ok_or_else(|| wrong("shape"))?;
            if verdict.is_none() && collapsed.value(i) {
                return Err(wrong("is_collapsed of a kept document"));
            }
            let mut own_levels: Vec<(u16, u8)> = Vec::new();
            for &level in levels.value(i).as_primitive::<Int32Type>().values() {
                let (band, level) = (level / LEVELS, level % LEVELS);
                let is_next = own_levels
                    .last()
                    .is_none_or(|last| i32::from(last.0) < band);
                if band < 0 || band as u32 >= bands || level == 0 || !is_next {
                    return Err(wrong("levels"));
                }
                own_levels.push((band as u16, level as u8));
            }
            let content = match (features.is_null(i), texts.is_null(i)) {
                (true, true) => Content::Absent,
                (true, false) => Content::Text(texts.value(i).to_vec()),
                (false, true) => {
                    let set = features.value(i);
                    let set = set.as_primitive::<Int64Type>().values();
                    let set: Vec<u64> = set.iter().map(|feature| feature.cast_unsigned()).collect();
                    let own_weights: Vec<u32> = match weights.is_null(i) {
                        true => Vec::new(),
                        false => {
                            let found = weights.value(i);
                            let found = found.as_primitive::<Int32Type>().values();
                            found.iter().map(|weight| weight.cast_unsigned()).collect()
                        }
                    };
                    let are_weights = own_weights.is_empty() || own_weights.len() == set.len();
                    if !are_weights || own_weights.contains(&0) || !set.is_sorted_by(|a, b| a < b) {
                        return Err(wrong("features or weights"));
                    }
                    Content::Features(set, own_weights)
                }
                (false, false) => return Err(wrong("a text with features")),
            };
            let seconds = u32::try_from(arrivals.value(i)).map_err(|_| wrong("arrival_s"))?;
            let digest = <[u8; 16]>::try_from(digests.value(i)).map_err(|_| wrong("digest"))?;
            let features = u32::try_from(num_features.value(i));
            Ok(MovedDocument {
                row,
                record: Record {
                    id: ids.value(i).to_owned(),
                    sketch: sketches.value(i).to_vec(),
                    shape: shape | if collapsed.value(i) { COLLAPSED } else { 0 },
                    num_features: features.map_err(|_| wrong("num_features"))?,
                    text_digest: (!text_digests.is_null(i))
                        .then(|| text_digests.value(i).cast_unsigned()),
                    digest: u128::from_le_bytes(digest),
                    verdict,
                    levels: own_levels,
                    second: u64::from(seconds),
                },
                content,
            })
        })
        .collect()
}

#[pymethods]
impl MovedDocuments {
    /// Reads documents from Arrow data with the columns of this class.
    #[staticmethod]
    fn from_arrow(py: Python<'_>, data: &Object<'_>, recipe: RecipeParts) -> Result<Self> {
        let rules = recipe.rules()?;
        let table = StructArray::from(read_array(data)?);
        let schema = to_arrow(&rules, &[])?.schema();
        let names = schema.fields().iter().map(|field| field.name());
        if !names.eq(table.fields().iter().map(|field| field.name())) {
            return Err(Failure::input(
                "the columns are not those of an exported index",
            ));
        }
        let all = run(py, LONG_BYTES, |_| from_arrow(&rules, &table))?;
        Ok(MovedDocuments { rules, all })
    }

    /// No documents of a recipe; its Arrow schema is that of all.
    #[staticmethod]
    fn none(recipe: RecipeParts) -> Result<Self> {
        let rules = recipe.rules()?;
        Ok(MovedDocuments {
            rules,
            all: Vec::new(),
        })
    }

    fn __len__(&self) -> usize {
        self.all.len()
    }

    /// The documents as a record batch, by the Arrow PyCapsule protocol.
    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_array__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<&Object<'py>>,
    ) -> Result<Bound<'py, PyTuple>> {
        let _ = requested_schema;
        let table = run(py, 0, |_| to_arrow(&self.rules, &self.all))?;
        write_array(py, &StructArray::from(table).to_data())
    }

    /// Continues a checksum over documents, which does not depend on how they are divided.
    fn checksum(&self, py: Python<'_>, before: u64) -> Result<u64> {
        run(py, 0, |_| {
            let mut packed = Vec::new();
            let all = self.all.iter();
            Ok(all.fold(before, |sum, document| {
                document.checksum(&self.rules, sum, &mut packed)
            }))
        })
    }

    /// The documents from a row on.
    fn rest_from(&self, row: u32) -> Self {
        let begin = self.all.partition_point(|document| document.row < row);
        MovedDocuments {
            rules: self.rules,
            all: self.all[begin..].to_vec(),
        }
    }

    /// The highest row that a document names as its kept one, or None.
    fn last_kept_row(&self) -> Option<u32> {
        let kept = self
            .all
            .iter()
            .filter_map(|document| document.record.verdict);
        kept.map(|verdict| verdict.evidence.kept_row).max()
    }
}

/// The rows of an index that move, and the number of each among them.
#[pyclass(frozen, module = "likewise._native")]
pub struct RowNumbers {
    numbers: Mutex<Numbers>,
}

impl From<Numbers> for RowNumbers {
    fn from(numbers: Numbers) -> Self {
        RowNumbers {
            numbers: Mutex::new(numbers),
        }
    }
}

impl RowNumbers {
    pub fn held(&self) -> std::sync::MutexGuard<'_, Numbers> {
        lock(&self.numbers)
    }
}

#[pymethods]
impl RowNumbers {
    /// The first `num` rows.
    #[new]
    fn new(num: u32) -> Self {
        Numbers::dense(num).into()
    }

    fn __len__(&self) -> usize {
        self.held().len()
    }

    /// Adds the rows of documents that arrived in `oldest_s` or later, and those that they name as their kept ones.
    fn add(&self, documents: &MovedDocuments, oldest_s: u64) {
        let mut numbers = self.held();
        for document in &documents.all {
            if document.record.second >= oldest_s {
                numbers.insert(document.row);
                if let Some(verdict) = document.record.verdict {
                    numbers.insert(verdict.evidence.kept_row);
                }
            }
        }
    }

    /// Numbers the rows, after the last `add`.
    fn count(&self) {
        self.held().count();
    }

    /// The documents that move, by their numbers.
    fn renumbered(&self, py: Python<'_>, documents: &MovedDocuments) -> Result<MovedDocuments> {
        run(py, 0, |_| {
            let numbers = self.held();
            let all = documents.all.iter().cloned();
            Ok(MovedDocuments {
                rules: documents.rules,
                all: all
                    .filter_map(|document| numbers.renumbered(document))
                    .collect(),
            })
        })
    }
}
