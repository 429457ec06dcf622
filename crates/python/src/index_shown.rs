//! Answers of an index, converted for Python.

use likewise_disk::store::{Evidence, Store};
use likewise_index::{Facts, Neighbor, Verdicts};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString};

use crate::array::Array;
use crate::door::{Dict, Str};
use crate::errors::Result;

/// Kept id (None for a new document), similarity, distance.
pub type ShownVerdict = (Option<String>, f64, Option<u16>);

/// Id, similarity, distance, whether it matches.
pub type ShownNeighbor = (String, f64, Option<u16>, bool);

/// The only verdict.
pub fn shown_verdict(mut verdicts: Verdicts) -> ShownVerdict {
    match verdicts.evidence.first() {
        Some(Some(evidence)) => (
            verdicts.kept_ids.pop(),
            evidence.similarity,
            evidence.distance,
        ),
        _ => (None, f64::NAN, None),
    }
}

pub fn shown_verdicts<'py>(
    py: Python<'py>,
    verdicts: Verdicts,
    has_distance: bool,
) -> Result<Dict<'py>> {
    let evidence = &verdicts.evidence;
    let is_new: Vec<u8> = evidence.iter().map(|e| u8::from(e.is_none())).collect();
    let of = |value: fn(&Evidence) -> f64| -> Vec<f64> {
        evidence
            .iter()
            .map(|e| e.as_ref().map_or(f64::NAN, value))
            .collect()
    };
    let mut kept = verdicts.kept_ids.iter();
    let kept_ids: Vec<Option<Str<'py>>> = evidence
        .iter()
        .map(|e| e.and_then(|_| kept.next()).map(|id| PyString::new(py, id)))
        .collect();
    let distances = has_distance.then(|| -> Vec<i64> {
        let distance = |e: &Option<Evidence>| e.and_then(|e| e.distance).map_or(-1, i64::from);
        evidence.iter().map(distance).collect()
    });
    let columns = PyDict::new(py);
    columns.set_item("is_new", Py::new(py, Array::from(is_new))?)?;
    columns.set_item("kept_ids", kept_ids)?;
    columns.set_item(
        "similarity",
        Py::new(py, Array::from(of(|e| e.similarity)))?,
    )?;
    let distances = distances
        .map(|all| Py::new(py, Array::from(all)))
        .transpose()?;
    columns.set_item("distance", distances)?;
    let rows: Vec<i64> = verdicts
        .rows
        .iter()
        .map(|&row| i64::from(row) + 1)
        .collect();
    let is_checked = rows.is_empty() && !evidence.is_empty();
    let seq = (!is_checked)
        .then(|| Py::new(py, Array::from(rows)))
        .transpose()?;
    columns.set_item("seq", seq)?;
    let added: Vec<u8> = verdicts
        .added
        .iter()
        .map(|&added| u8::from(added))
        .collect();
    columns.set_item("added", Py::new(py, Array::from(added))?)?;
    Ok(columns)
}

/// Neighbors of each document.
pub fn shown_neighbors(all: Vec<Vec<Neighbor>>) -> Vec<Vec<ShownNeighbor>> {
    let shown = |found: Neighbor| {
        let evidence = found.evidence;
        (
            found.id,
            evidence.similarity,
            evidence.distance,
            found.matches,
        )
    };
    let of_one = |found: Vec<Neighbor>| found.into_iter().map(shown).collect();
    all.into_iter().map(of_one).collect()
}

pub fn shown_facts(py: Python<'_>, facts: Facts) -> Result<Dict<'_>> {
    let shown = PyDict::new(py);
    shown.set_item("num_documents", facts.num_documents)?;
    shown.set_item("num_rows", facts.num_rows)?;
    shown.set_item("segment_rows", facts.segment_rows)?;
    shown.set_item("segment_bytes", facts.segment_bytes)?;
    shown.set_item("num_in_memory", facts.num_in_memory)?;
    shown.set_item("num_late", facts.num_late)?;
    shown.set_item("expired_below", facts.expired_below)?;
    shown.set_item("num_events", facts.last_event)?;
    shown.set_item("num_built", facts.num_built)?;
    shown.set_item("num_rebuilt", facts.num_rebuilt)?;
    shown.set_item("is_building", facts.is_building)?;
    shown.set_item("build_error", facts.build_error)?;
    shown.set_item("loss", facts.loss)?;
    shown.set_item("copy_warning", facts.copy_warning)?;
    shown.set_item("clock_warning", facts.clock_warning)?;
    shown.set_item("database_bytes", facts.sizes.database_bytes)?;
    shown.set_item("free_bytes", facts.sizes.free_bytes)?;
    shown.set_item("log_bytes", facts.sizes.log_bytes)?;
    shown.set_item("num_chunks", facts.sizes.num_chunks)?;
    shown.set_item("num_content_blocks", facts.sizes.num_content_blocks)?;
    shown.set_item("sqlite_version", Store::sqlite_version())?;
    Ok(shown)
}
