//! Documents with their verdicts, on their way from one index to another, as Arrow data too.

use likewise_core::parallel::lock;
use std::sync::{Arc, Mutex};

use arrow_array::builder::{FixedSizeBinaryBuilder, ListBuilder, PrimitiveBuilder};
use arrow_array::cast::AsArray;
use arrow_array::types::{ArrowPrimitiveType, Float64Type, Int8Type, Int32Type, Int64Type};
use arrow_array::{
    Array, ArrayAccessor, ArrayRef, BinaryArray, BooleanArray, Float64Array, Int8Array, Int32Array,
    Int64Array, RecordBatch, StringArray, StructArray,
};
use arrow_schema::Field;
use likewise_disk::store::{Content, Evidence};
use likewise_index::Rules;
use likewise_index::cluster::{MovedDocument, Record, RowNumbers as Numbers, Verdict};
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

/// A part of the documents of an index, with their verdicts.
#[pyclass(frozen, module = "likewise._native")]
pub struct MovedDocuments {
    pub rules: Rules,
    pub all: Vec<MovedDocument>,
}

fn damaged(error: arrow_schema::ArrowError) -> Failure {
    Failure::Internal(error.to_string())
}

fn ints(values: impl Iterator<Item = Option<i64>>) -> ArrayRef {
    Arc::new(values.collect::<Int64Array>())
}

fn lists<T: ArrowPrimitiveType>(
    lists: impl Iterator<Item = Option<impl Iterator<Item = T::Native>>>,
) -> ArrayRef {
    let element = Field::new("element", T::DATA_TYPE, false);
    let mut builder = ListBuilder::new(PrimitiveBuilder::<T>::new()).with_field(Arc::new(element));
    for list in lists {
        builder.append_option(list.map(|list| list.map(Some)));
    }
    Arc::new(builder.finish())
}

fn fixed<T: AsRef<[u8]>>(width: usize, values: impl Iterator<Item = T>) -> Result<ArrayRef> {
    let mut builder = FixedSizeBinaryBuilder::new(width as i32);
    for value in values {
        builder.append_value(value).map_err(damaged)?;
    }
    Ok(Arc::new(builder.finish()))
}

/// Name, values, and whether a value may be null.
type NamedColumn = (&'static str, ArrayRef, bool);

fn contents_to_arrow(all: &[MovedDocument]) -> [NamedColumn; 3] {
    let sets = || {
        all.iter().map(|document| match &document.content {
            Content::Features(features, weights) => Some((features, weights)),
            _ => None,
        })
    };
    let texts = all.iter().map(|document| match &document.content {
        Content::Text(text) => Some(text),
        _ => None,
    });
    let features = sets().map(|set| Some(set?.0.iter().map(|feature| feature.cast_signed())));
    let weights = sets().map(|set| {
        let weights = set?.1.iter();
        let are_own = weights.clone().any(|&weight| weight != 1);
        are_own.then(|| weights.map(|weight| weight.cast_signed()))
    });
    [
        ("features", lists::<Int64Type>(features), true),
        ("weights", lists::<Int32Type>(weights), true),
        ("text", Arc::new(BinaryArray::from_iter(texts)), true),
    ]
}

/// The documents as a table; that of none has its columns.
fn to_arrow(rules: &Rules, all: &[MovedDocument]) -> Result<RecordBatch> {
    let records = || all.iter().map(|document| &document.record);
    let evidence = || records().map(|record| record.verdict.map(|verdict| verdict.evidence));
    let number = |value: fn(&Record) -> i64| ints(records().map(move |record| Some(value(record))));
    let rows = all.iter().map(|document| Some(i64::from(document.row) + 1));
    let kept_rows = evidence().map(|evidence| Some(i64::from(evidence?.kept_row) + 1));
    let similarities = evidence().map(|evidence| Some(evidence?.similarity));
    let distances = evidence().map(|evidence| Some(i32::from(evidence?.distance?)));
    let ids = StringArray::from_iter_values(records().map(|record| &record.id));
    let shapes = records().map(|record| (record.shape & !COLLAPSED).cast_signed());
    let collapsed = records().map(|record| Some(record.shape & COLLAPSED != 0));
    let text_digests = records().map(|record| Some(record.text_digest?.cast_signed()));
    let levels = records().map(|record| {
        let levels = record.levels.iter();
        Some(levels.map(|&(band, level)| i32::from(band) * LEVELS + i32::from(level)))
    });
    let digests = records().map(|record| record.digest.to_le_bytes());
    let sketches = records().map(|record| &record.sketch);
    let columns: [NamedColumn; 13] = [
        ("doc_id", Arc::new(ids), false),
        ("seq", ints(rows), false),
        (
            "arrival_s",
            number(|record| record.second.cast_signed()),
            false,
        ),
        ("kept_seq", ints(kept_rows), true),
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
            number(|record| i64::from(record.num_features)),
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
        ("sketch", fixed(rules.sketch_bytes(), sketches)?, false),
        ("text_digest", ints(text_digests), true),
        ("feature_digest", fixed(size_of::<u128>(), digests)?, false),
        ("levels", lists::<Int32Type>(levels), false),
    ];
    let columns = columns.into_iter().chain(contents_to_arrow(all));
    RecordBatch::try_from_iter_with_nullable(columns).map_err(damaged)
}

/// An error about a column of a row.
fn wrong(row: usize, what: &str) -> Failure {
    Failure::row(row, format!("{what} is not valid"))
}

fn exactly<T>(row: usize, what: &str, value: impl TryInto<T>) -> Result<T> {
    value.try_into().map_err(|_| wrong(row, what))
}

fn row_of(row: usize, what: &str, seq: i64) -> Result<u32> {
    let found = exactly(row, what, seq - 1)?;
    Some(found)
        .filter(|&of| of < u32::MAX)
        .ok_or_else(|| wrong(row, what))
}

fn value_of<A: ArrayAccessor>(array: A, row: usize) -> Option<A::Item> {
    (!array.is_null(row)).then(|| array.value(row))
}

fn verdict_of(
    rules: &Rules,
    row: usize,
    kept_seq: i64,
    similarity: Option<f64>,
    distance: Option<i32>,
) -> Result<Verdict> {
    if distance.is_some() != rules.zero_distance().is_some() {
        return Err(wrong(row, "distance"));
    }
    let distance = distance
        .map(|distance| exactly(row, "distance", distance))
        .transpose()?;
    let similarity = similarity.filter(|similarity| (0.0..=1.0).contains(similarity));
    Ok(Verdict {
        evidence: Evidence {
            similarity: similarity.ok_or_else(|| wrong(row, "similarity"))?,
            kept_row: row_of(row, "kept_seq", kept_seq)?,
            distance,
        },
        tag: Default::default(),
    })
}

fn shape_of(row: usize, shape: i8, is_collapsed: bool, is_kept: bool) -> Result<u8> {
    let shape: u8 = exactly(row, "shape", shape)?;
    match (shape, is_collapsed) {
        (3.., _) => Err(wrong(row, "shape")),
        (_, true) if is_kept => Err(wrong(row, "is_collapsed of a kept document")),
        (_, true) => Ok(shape | COLLAPSED),
        (_, false) => Ok(shape),
    }
}

fn levels_of(rules: &Rules, row: usize, levels: &[i32]) -> Result<Vec<(u16, u8)>> {
    let levels = levels.iter().map(|&level| (level / LEVELS, level % LEVELS));
    let is_valid = |(band, level)| band >= 0 && (band as u32) < rules.num_bands() && level != 0;
    match levels.clone().all(is_valid) && levels.clone().is_sorted_by(|a, b| a.0 < b.0) {
        true => Ok(levels
            .map(|(band, level)| (band as u16, level as u8))
            .collect()),
        false => Err(wrong(row, "levels")),
    }
}

fn content_of(
    row: usize,
    features: Option<ArrayRef>,
    weights: Option<ArrayRef>,
    text: Option<&[u8]>,
) -> Result<Content> {
    let features = match (features, text) {
        (None, None) => return Ok(Content::Absent),
        (None, Some(text)) => return Ok(Content::Text(text.to_vec())),
        (Some(features), None) => features,
        (Some(_), Some(_)) => return Err(wrong(row, "a text with features")),
    };
    let features = features.as_primitive::<Int64Type>().values();
    let features: Vec<u64> = features
        .iter()
        .map(|feature| feature.cast_unsigned())
        .collect();
    let weights = weights.map_or(Vec::new(), |weights| {
        let weights = weights.as_primitive::<Int32Type>().values();
        weights
            .iter()
            .map(|weight| weight.cast_unsigned())
            .collect()
    });
    let are_weights = weights.is_empty() || weights.len() == features.len();
    match are_weights && !weights.contains(&0) && features.is_sorted_by(|a, b| a < b) {
        true => Ok(Content::Features(features, weights)),
        false => Err(wrong(row, "features or weights")),
    }
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
    let list = |name: &str| column(name).as_list::<i32>();
    let (levels, features, weights) = (list("levels"), list("features"), list("weights"));
    let texts = column("text").as_binary::<i32>();
    let document = |i: usize| {
        let row = row_of(i, "seq", seqs.value(i))?;
        let verdict = |kept_seq| {
            let (similarity, distance) = (value_of(similarities, i), value_of(distances, i));
            verdict_of(rules, i, kept_seq, similarity, distance)
        };
        let verdict = value_of(kept_seqs, i).map(verdict).transpose()?;
        let shape = shape_of(i, shapes.value(i), collapsed.value(i), verdict.is_none())?;
        let levels = levels_of(
            rules,
            i,
            levels.value(i).as_primitive::<Int32Type>().values(),
        )?;
        let (features, weights) = (value_of(features, i), value_of(weights, i));
        let content = content_of(i, features, weights, value_of(texts, i))?;
        let second: u32 = exactly(i, "arrival_s", arrivals.value(i))?;
        let record = Record {
            id: ids.value(i).to_owned(),
            sketch: sketches.value(i).to_vec(),
            shape,
            digest: u128::from_le_bytes(exactly(i, "digest", digests.value(i))?),
            num_features: exactly(i, "num_features", num_features.value(i))?,
            text_digest: value_of(text_digests, i).map(i64::cast_unsigned),
            verdict,
            levels,
            second: u64::from(second),
        };
        Ok(MovedDocument {
            row,
            record,
            content,
        })
    };
    (0..batch.num_rows()).map(document).collect()
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
