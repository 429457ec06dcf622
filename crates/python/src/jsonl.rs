//! JSON Lines: reading pieces, reading rows again, copying lines.

use std::fs::File;
use std::path::{Path, PathBuf};

use likewise_core::error::invalid_if;
use likewise_core::hash::xxh3_64_with_seed;
use likewise_core::parallel::Run;
use likewise_disk::{self as disk, TextColumn};
use pyo3::prelude::*;

use crate::array::{Array, take};
use crate::column::Column;
use crate::door::{LONG_BYTES, Object, run, run_short};
use crate::errors::{Failure, On, Result};
use crate::texts::Texts;

/// What to take from each row of a JSON Lines file.
#[pyclass(frozen, module = "likewise._native")]
pub struct JsonlRules {
    pub rules: disk::JsonlRules,
}

#[pymethods]
impl JsonlRules {
    #[new]
    #[pyo3(signature = (
        text_fields, id_field=None, id_required=false, fields=Vec::new(), max_document=64 << 20, *, takes_tokens=false,
        are_weighted=false, weight_scale=None, text_without_tokens=Vec::new(), roles=Vec::new(), are_roles_counted=false
    ))]
    fn new(
        text_fields: Vec<String>,
        id_field: Option<String>,
        id_required: bool,
        fields: Vec<String>,
        max_document: u64,
        takes_tokens: bool,
        are_weighted: bool,
        weight_scale: Option<f64>,
        text_without_tokens: Vec<String>,
        roles: Vec<String>,
        are_roles_counted: bool,
    ) -> Result<Self> {
        let of_text = |text_fields| disk::JsonlRules {
            text_fields,
            id_field: None,
            id_required: false,
            fields: Vec::new(),
            tokens: None,
            text_without_tokens: None,
            roles: disk::RoleRules {
                names: roles.clone(),
                are_counted: are_roles_counted,
            },
            max_document,
        };
        let rules = disk::JsonlRules {
            id_field,
            id_required,
            fields,
            text_without_tokens: (!text_without_tokens.is_empty())
                .then(|| Box::new(of_text(text_without_tokens))),
            tokens: takes_tokens.then_some(disk::TokenRules {
                are_weighted,
                scale: weight_scale,
            }),
            ..of_text(text_fields)
        };
        rules
            .check()
            .map_err(|error| Failure::disk(error, Path::new("")))?;
        Ok(JsonlRules { rules })
    }
}

/// The rows of a piece of a file of lines or records, with bad ones separate.
#[pyclass(frozen, get_all, module = "likewise._native")]
pub struct JsonlPiece {
    texts: Py<Texts>,
    ids: Py<Texts>,
    has_id: Py<Array>,
    offsets: Py<Array>,
    lengths: Py<Array>,
    line_numbers: Py<Array>,
    num_lines: u64,
    num_blank: u64,
    fields: Vec<Py<Texts>>,
    errors: Vec<(u32, u64, u64, String, u64)>,
}

pub fn open(path: &Path) -> Result<File> {
    File::open(path).on(path)
}

/// Reads rows of a file with the interpreter lock released.
pub fn with_rows<T: Send>(
    py: Python<'_>,
    path: &Path,
    offsets: &Object<'_>,
    lengths: &Object<'_>,
    threads: usize,
    read: impl FnOnce(disk::Rows<'_>) -> Result<T> + Send,
) -> Result<T> {
    take!(offsets: u64, lengths: u32);
    let num_bytes = lengths.iter().map(|&length| length as usize).sum();
    run(py, num_bytes, |cancel| {
        read(disk::Rows {
            file: &open(path)?,
            offsets,
            lengths,
            run: Run { threads, cancel },
        })
    })
}

/// Cuts a file into `(offset, length)` of about `piece_bytes`, each ending after a line end.
#[pyfunction]
pub fn jsonl_pieces(py: Python<'_>, path: PathBuf, piece_bytes: u64) -> Result<Vec<(u64, u64)>> {
    run_short(py, |_| {
        disk::split_lines(&open(&path)?, piece_bytes).on(&path)
    })
}

#[pyfunction]
pub fn read_jsonl_piece(
    py: Python<'_>,
    path: PathBuf,
    offset: u64,
    length: u64,
    rules: &JsonlRules,
) -> Result<JsonlPiece> {
    // Long enough for Ctrl-C only if a piece is far larger than usual.
    let piece = run(py, (length / 16) as usize, |_| {
        disk::read_piece(&open(&path)?, offset, length, &rules.rules).on(&path)
    })?;
    to_python(py, piece, rules.rules.tokens.is_some())
}

pub fn to_python(py: Python<'_>, piece: disk::Piece, takes_tokens: bool) -> Result<JsonlPiece> {
    let texts = |column: TextColumn| Py::new(py, Texts::from(Column::from_texts(column)));
    let documents = match takes_tokens {
        true => Column::from_tokens(piece.tokens)?,
        false => Column::from_texts(piece.texts),
    };
    Ok(JsonlPiece {
        texts: Py::new(py, Texts::from(documents))?,
        ids: texts(piece.ids)?,
        has_id: Py::new(py, Array::from(piece.has_id))?,
        offsets: Py::new(py, Array::from(piece.offsets))?,
        lengths: Py::new(py, Array::from(piece.lengths))?,
        line_numbers: Py::new(py, Array::from(piece.line_numbers))?,
        num_lines: piece.num_lines,
        num_blank: piece.num_blank,
        fields: piece
            .fields
            .into_iter()
            .map(texts)
            .collect::<PyResult<_>>()?,
        errors: piece
            .bad
            .into_iter()
            .map(|bad| {
                (
                    bad.line_number,
                    bad.offset,
                    bad.length,
                    bad.reason,
                    bad.num_lines,
                )
            })
            .collect(),
    })
}

/// Reads the texts of rows again, in the order given.
#[pyfunction]
#[pyo3(signature = (path, offsets, lengths, rules, *, threads=1))]
pub fn read_jsonl_texts(
    py: Python<'_>,
    path: PathBuf,
    offsets: &Object<'_>,
    lengths: &Object<'_>,
    rules: &JsonlRules,
    threads: usize,
) -> Result<Texts> {
    let rules = &rules.rules;
    let columns: Vec<Column> = with_rows(py, &path, offsets, lengths, threads, |rows| {
        if rules.tokens.is_some() {
            let columns = disk::read_token_rows(rows, rules).on(&path)?;
            return columns.into_iter().map(Column::from_tokens).collect();
        }
        let columns = disk::read_rows(rows, rules).on(&path)?;
        Ok(columns.into_iter().map(Column::from_texts).collect())
    })?;
    Ok(Column::concat(columns.iter())?.into())
}

/// Writes byte ranges of `source` consecutively into `target`, a new or truncated file; returns the bytes written.
#[pyfunction]
#[pyo3(signature = (source, target, offsets, lengths, *, threads=1))]
pub fn copy_lines(
    py: Python<'_>,
    source: PathBuf,
    target: PathBuf,
    offsets: &Object<'_>,
    lengths: &Object<'_>,
    threads: usize,
) -> Result<u64> {
    write_lines(py, &source, &target, offsets, lengths, None, threads)
}

/// Writes byte ranges of `source` into `target`, packed if there is a codec.
pub fn write_lines(
    py: Python<'_>,
    source: &Path,
    target: &Path,
    offsets: &Object<'_>,
    lengths: &Object<'_>,
    codec: Option<disk::Codec>,
    threads: usize,
) -> Result<u64> {
    take!(offsets: u64, lengths: u64);
    invalid_if(offsets.len() != lengths.len(), "lengths", || {
        format!("{} lengths for {} offsets", lengths.len(), offsets.len())
    })?;
    run(py, LONG_BYTES, |cancel| {
        let (from, to) = (open(source)?, File::create(target).on(target)?);
        let ranges = offsets.iter().copied().zip(lengths.iter().copied());
        let run = Run { threads, cancel };
        let written = match codec {
            None => disk::copy_ranges(&from, &to, ranges, run),
            Some(codec) => disk::pack_ranges(&from, &to, ranges, codec, run),
        };
        written.map_err(|error| match error {
            disk::Error::Io {
                action: "write", ..
            } => Failure::disk(error, target),
            error => Failure::disk(error, source),
        })
    })
}

/// XXH3-64 of bytes, with seed 0.
#[pyfunction]
pub fn checksum(py: Python<'_>, data: &Object<'_>) -> Result<u64> {
    take!(data: u8);
    run_short(py, |_| Ok(xxh3_64_with_seed(data, 0)))
}

/// XXH3-64 of `length` bytes of a file from `offset`, with seed 0.
#[pyfunction]
pub fn range_checksum(py: Python<'_>, path: PathBuf, offset: u64, length: u64) -> Result<u64> {
    run(py, length as usize, |cancel| {
        disk::range_checksum(&open(&path)?, offset, length, cancel).on(&path)
    })
}
