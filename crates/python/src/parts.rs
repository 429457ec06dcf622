//! Parts of texts and their positions.

use std::sync::atomic::Ordering;

use likewise_core::isa::Isa;
use likewise_core::text::{PartCutter, PartUnit, Parts};
use likewise_disk::TextColumn;
use pyo3::prelude::*;

use crate::array::Array;
use crate::column::Column;
use crate::door::{parse_isa, run};
use crate::errors::{Failure, Result};
use crate::texts::Texts;

/// Number of texts cut between two checks for an interrupt.
const LOOK_TEXTS: usize = 256;

/// Lines, paragraphs or sentences of texts: the parts as texts, the number in each text, and their starts and ends.
#[pyfunction]
pub fn cut_parts(
    py: Python<'_>,
    texts: &Texts,
    unit: &str,
) -> Result<(Texts, Array, Array, Array)> {
    let unit = PartUnit::from_name(unit).ok_or_else(|| {
        Failure::parameter(
            "unit",
            format!("{unit:?} is not one of line, paragraph, sentence"),
        )
    })?;
    let column = texts.column.as_ref();
    let (parts, found) = cut(py, column, Isa::best(), |cutter, text, found| {
        cutter.cut(text, unit, found);
    })
    .map(|found| {
        let mut parts = TextColumn::default();
        let mut at = 0;
        for (i, &count) in found.counts.iter().enumerate() {
            let text = column.get(i);
            for _ in 0..count {
                parts.push(&text[found.starts[at] as usize..found.ends[at] as usize]);
                at += 1;
            }
        }
        (parts, found)
    })?;
    Ok((
        Column::from_texts(parts).into(),
        found.counts.into(),
        found.starts.into(),
        found.ends.into(),
    ))
}

/// Words of texts: the number in each text, their starts and ends, and the hash of each.
#[pyfunction]
#[pyo3(signature = (texts, *, isa=None))]
pub fn cut_words(
    py: Python<'_>,
    texts: &Texts,
    isa: Option<&str>,
) -> Result<(Array, Array, Array, Array)> {
    let isa = parse_isa(isa)?;
    let found = cut(py, texts.column.as_ref(), isa, PartCutter::cut_words)?;
    Ok((
        found.counts.into(),
        found.starts.into(),
        found.ends.into(),
        found.hashes.into(),
    ))
}

fn cut(
    py: Python<'_>,
    column: &Column,
    isa: Isa,
    mut cut_one: impl FnMut(&mut PartCutter, &str, &mut Parts) + Send,
) -> Result<Parts> {
    run(py, column.num_bytes, |cancel| {
        let mut cutter = PartCutter::new(isa);
        let mut found = Parts::default();
        for i in 0..column.len() {
            if i % LOOK_TEXTS == 0 && cancel.load(Ordering::Relaxed) {
                return Err(Failure::Canceled);
            }
            cut_one(&mut cutter, column.get(i), &mut found);
        }
        Ok(found)
    })
}
