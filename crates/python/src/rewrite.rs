//! Texts with stretches removed, alone or in the rows of a file.

use std::path::PathBuf;
use std::sync::atomic::AtomicBool;

use likewise_core::parallel::Cancel;
use likewise_disk::{self as disk, TextColumn};
use pyo3::prelude::*;

use crate::array::{Array, take};
use crate::column::Column;
use crate::csv::CsvReader;
use crate::door::{Object, run};
use crate::errors::{Failure, On, Result};
use crate::jsonl::{JsonlRules, with_rows};
use crate::texts::Texts;

/// Number of texts cut between two checks for an interrupt.
const LOOK_TEXTS: usize = 256;

/// The removed stretches, from Python.
#[derive(FromPyObject)]
pub struct Cut<'py> {
    counts: Object<'py>,
    starts: Object<'py>,
    ends: Object<'py>,
    keeps_words_apart: bool,
}

impl Cut<'_> {
    fn with<T>(&self, work: impl FnOnce(disk::Stretches<'_>) -> Result<T>) -> Result<T> {
        let (counts, starts, ends) = (&self.counts, &self.starts, &self.ends);
        take!(counts: u32, starts: u32, ends: u32);
        work(disk::Stretches {
            counts,
            starts,
            ends,
            keeps_words_apart: self.keeps_words_apart,
        })
    }
}

/// Texts with stretches removed, whether only whitespace is left of each, and the number of bytes removed.
#[pyfunction]
pub fn cut_texts(py: Python<'_>, texts: &Texts, cut: Cut<'_>) -> Result<(Texts, Array, u64)> {
    let column = texts.column.as_ref();
    let work = |cancel: &AtomicBool, gone: disk::Stretches<'_>| {
        let walks = gone.of_texts(column.len());
        let walks = walks.map_err(|error| Failure::parameter("counts", error.to_string()))?;
        let (mut left, mut is_blank, mut num_removed) = (TextColumn::default(), Vec::new(), 0);
        let mut text = Vec::new();
        for (i, mut walk) in walks.into_iter().enumerate() {
            if i % LOOK_TEXTS == 0 {
                cancel.check()?;
            }
            text.clear();
            walk.plain(column.get(i).as_bytes(), &mut text);
            let Ok(part) = std::str::from_utf8(&text) else {
                return Err(Failure::row(
                    i,
                    "a stretch begins or ends inside a character",
                ));
            };
            left.push(part);
            is_blank.push(u8::from(walk.is_blank));
            num_removed += walk.num_removed;
        }
        Ok((left, is_blank, num_removed))
    };
    let (left, is_blank, num_removed) =
        cut.with(|gone| run(py, column.num_bytes, |cancel| work(cancel, gone)))?;
    Ok((
        Column::from_texts(left).into(),
        is_blank.into(),
        num_removed,
    ))
}

/// Rewrites rows of JSON Lines with stretches of their texts removed: the lines, consecutively, where each ends, and
/// the number of text bytes removed.
#[pyfunction]
#[pyo3(signature = (path, offsets, lengths, rules, cut, *, threads=1))]
pub fn rewrite_jsonl_rows(
    py: Python<'_>,
    path: PathBuf,
    offsets: &Object<'_>,
    lengths: &Object<'_>,
    rules: &JsonlRules,
    cut: Cut<'_>,
    threads: usize,
) -> Result<(Array, Array, u64)> {
    let rewritten = cut.with(|gone| {
        with_rows(py, &path, offsets, lengths, threads, |rows| {
            disk::rewrite_rows(rows, &rules.rules, gone).on(&path)
        })
    });
    rewritten.map(shown)
}

/// The same for CSV records, by the rules of a reader of the file.
#[pyfunction]
#[pyo3(signature = (reader, offsets, lengths, cut, *, threads=1))]
pub fn rewrite_csv_rows(
    py: Python<'_>,
    reader: &CsvReader,
    offsets: &Object<'_>,
    lengths: &Object<'_>,
    cut: Cut<'_>,
    threads: usize,
) -> Result<(Array, Array, u64)> {
    let CsvReader { path, rules } = reader;
    let rewritten = cut.with(|gone| {
        with_rows(py, path, offsets, lengths, threads, |rows| {
            disk::rewrite_csv_rows(rows, rules, gone).on(path)
        })
    });
    rewritten.map(shown)
}

fn shown(made: disk::Rewritten) -> (Array, Array, u64) {
    (made.lines.into(), made.ends.into(), made.num_removed_bytes)
}
