//! Texts with stretches removed, alone or in the rows of a file.

use likewise_core::parallel::{Cancel, Run};
use std::path::{Path, PathBuf};

use likewise_disk::{self as disk, TextColumn};
use pyo3::prelude::*;

use crate::array::{Array, Input, take};
use crate::column::Column;
use crate::csv::CsvReader;
use crate::door::{Object, run};
use crate::errors::{Failure, On, Result};
use crate::jsonl::{JsonlRules, open};
use crate::texts::Texts;

/// Number of texts cut between two checks for an interrupt.
const LOOK_TEXTS: usize = 256;

/// The removed stretches, from Python.
struct Gone {
    counts: Input<u32>,
    starts: Input<u32>,
    ends: Input<u32>,
    keeps_words_apart: bool,
}

impl Gone {
    fn take(
        counts: &Object<'_>,
        starts: &Object<'_>,
        ends: &Object<'_>,
        keeps_words_apart: bool,
    ) -> Result<Self> {
        Ok(Gone {
            counts: Input::take("counts", counts)?,
            starts: Input::take("starts", starts)?,
            ends: Input::take("ends", ends)?,
            keeps_words_apart,
        })
    }

    fn stretches(&self) -> disk::Stretches<'_> {
        disk::Stretches {
            counts: self.counts.values(),
            starts: self.starts.values(),
            ends: self.ends.values(),
            keeps_words_apart: self.keeps_words_apart,
        }
    }
}

/// Texts with stretches removed, whether only whitespace is left of each, and the number of bytes removed.
#[pyfunction]
#[pyo3(signature = (texts, counts, starts, ends, *, keeps_words_apart=false))]
pub fn cut_texts(
    py: Python<'_>,
    texts: &Texts,
    counts: &Object<'_>,
    starts: &Object<'_>,
    ends: &Object<'_>,
    keeps_words_apart: bool,
) -> Result<(Texts, Array, u64)> {
    let gone = Gone::take(counts, starts, ends, keeps_words_apart)?;
    let column = texts.column.as_ref();
    let (left, is_blank, num_removed) = run(py, column.num_bytes, |cancel| {
        let walks = gone.stretches().of_texts(column.len());
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
    })?;
    Ok((
        Column::from_texts(left).into(),
        is_blank.into(),
        num_removed,
    ))
}

/// Rewrites rows of JSON Lines with stretches of their texts removed: the lines, consecutively, where each ends, and
/// the number of text bytes removed.
#[pyfunction]
#[pyo3(signature = (path, offsets, lengths, rules, counts, starts, ends, *, keeps_words_apart=false, threads=1))]
pub fn rewrite_jsonl_rows(
    py: Python<'_>,
    path: PathBuf,
    offsets: &Object<'_>,
    lengths: &Object<'_>,
    rules: &JsonlRules,
    counts: &Object<'_>,
    starts: &Object<'_>,
    ends: &Object<'_>,
    keeps_words_apart: bool,
    threads: usize,
) -> Result<(Array, Array, u64)> {
    let gone = Gone::take(counts, starts, ends, keeps_words_apart)?;
    rewritten(py, &path, offsets, lengths, threads, |rows| {
        disk::rewrite_rows(rows, &rules.rules, gone.stretches())
    })
}

/// The same for CSV records, by the rules of a reader of the file.
#[pyfunction]
#[pyo3(signature = (reader, offsets, lengths, counts, starts, ends, *, keeps_words_apart=false, threads=1))]
pub fn rewrite_csv_rows(
    py: Python<'_>,
    reader: &CsvReader,
    offsets: &Object<'_>,
    lengths: &Object<'_>,
    counts: &Object<'_>,
    starts: &Object<'_>,
    ends: &Object<'_>,
    keeps_words_apart: bool,
    threads: usize,
) -> Result<(Array, Array, u64)> {
    let gone = Gone::take(counts, starts, ends, keeps_words_apart)?;
    rewritten(py, &reader.path, offsets, lengths, threads, |rows| {
        disk::rewrite_csv_rows(rows, &reader.rules, gone.stretches())
    })
}

fn rewritten(
    py: Python<'_>,
    path: &Path,
    offsets: &Object<'_>,
    lengths: &Object<'_>,
    threads: usize,
    rewrite: impl FnOnce(disk::Rows<'_>) -> disk::Result<disk::Rewritten> + Send,
) -> Result<(Array, Array, u64)> {
    take!(offsets: u64, lengths: u32);
    let num_bytes = lengths.iter().map(|&length| length as usize).sum();
    let made = run(py, num_bytes, |cancel| {
        rewrite(disk::Rows {
            file: &open(path)?,
            offsets,
            lengths,
            run: Run { threads, cancel },
        })
        .on(path)
    })?;
    Ok((made.lines.into(), made.ends.into(), made.num_removed_bytes))
}
