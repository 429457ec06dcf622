//! CSV: cutting files at record ends, reading records, reading them again.

use std::path::PathBuf;
use std::sync::Mutex;

use likewise_disk as disk;
use pyo3::prelude::*;

use crate::column::Column;
use crate::door::{Object, held, run, run_short};
use crate::errors::{Failure, On, Result};
use crate::jsonl::{JsonlPiece, open, to_python, with_rows};
use crate::texts::Texts;

/// The columns of a file, and `(bytes, blank lines)` up to the end of its header.
#[pyfunction]
pub fn csv_header(
    py: Python<'_>,
    path: PathBuf,
    delimiter: u8,
    has_quotes: bool,
) -> Result<(Vec<String>, u64, u64)> {
    let dialect = disk::CsvDialect {
        delimiter,
        has_quotes,
    };
    let header = run(py, 0, |_| {
        disk::read_csv_header(&open(&path)?, dialect).on(&path)
    })?;
    Ok((header.names, header.num_bytes, header.num_blank))
}

/// What to read from the records of a file.
#[pyclass(frozen, module = "likewise._native")]
pub struct CsvReader {
    pub rules: disk::CsvRules,
    pub path: PathBuf,
}

#[pymethods]
impl CsvReader {
    #[new]
    #[pyo3(signature = (path, *, delimiter, has_quotes, text_columns, id_column, id_required, field_columns, max_document))]
    fn new(
        path: PathBuf,
        delimiter: u8,
        has_quotes: bool,
        text_columns: Vec<usize>,
        id_column: Option<usize>,
        id_required: bool,
        field_columns: Vec<Option<usize>>,
        max_document: u64,
    ) -> Result<Self> {
        let failure = |error| Failure::disk(error, &path);
        let dialect = disk::CsvDialect {
            delimiter,
            has_quotes,
        };
        let header = disk::read_csv_header(&open(&path)?, dialect).map_err(failure)?;
        let rules = disk::CsvRules {
            dialect,
            num_columns: header.names.len(),
            text_columns,
            id_column,
            id_required,
            field_columns,
            max_document,
        };
        rules.check().map_err(failure)?;
        Ok(CsvReader { rules, path })
    }

    /// The records of a piece with its stray lines, following `num_lines_before` lines of it, such as the header.
    #[pyo3(signature = (offset, length, stray_lines, num_lines_before=0))]
    fn read(
        &self,
        py: Python<'_>,
        offset: u64,
        length: u64,
        stray_lines: Vec<u64>,
        num_lines_before: u64,
    ) -> Result<JsonlPiece> {
        let piece = run(py, (length / 16) as usize, |_| {
            disk::CsvStream::open(
                open(&self.path)?,
                self.rules.clone(),
                offset,
                length,
                stray_lines,
            )
            .and_then(|stream| stream.read(num_lines_before))
            .on(&self.path)
        })?;
        to_python(py, piece, false)
    }
}

/// Cuts a file that may still grow into pieces of whole records.
#[pyclass(frozen, module = "likewise._native")]
pub struct CsvSplitter {
    splitter: Mutex<disk::RecordSplitter>,
    path: PathBuf,
}

#[pymethods]
impl CsvSplitter {
    #[new]
    #[pyo3(signature = (path, *, delimiter, has_quotes, start))]
    fn new(path: PathBuf, delimiter: u8, has_quotes: bool, start: u64) -> Result<Self> {
        let dialect = disk::CsvDialect {
            delimiter,
            has_quotes,
        };
        let splitter = disk::RecordSplitter::new(open(&path)?, dialect, start);
        Ok(CsvSplitter {
            splitter: Mutex::new(splitter),
            path,
        })
    }

    /// The next piece `(offset, length, stray lines)` that ends before byte `limit`; None if there is none.
    fn next_piece(
        &self,
        py: Python<'_>,
        limit: u64,
        piece_bytes: u64,
        is_end: bool,
    ) -> Result<Option<(u64, u64, Vec<u64>)>> {
        let piece = run_short(py, |_| {
            held(&self.splitter, "reader")?
                .next_piece(limit, piece_bytes, is_end)
                .on(&self.path)
        })?;
        Ok(piece.map(|piece| (piece.offset, piece.length, piece.stray_lines)))
    }
}

/// Reads the texts of records again, in the order given, by the rules of a reader of the same file.
#[pyfunction]
#[pyo3(signature = (reader, offsets, lengths, *, threads=1))]
pub fn read_csv_texts(
    py: Python<'_>,
    reader: &CsvReader,
    offsets: &Object<'_>,
    lengths: &Object<'_>,
    threads: usize,
) -> Result<Texts> {
    let path = &reader.path;
    let columns = with_rows(py, path, offsets, lengths, threads, |rows| {
        disk::read_csv_rows(rows, &reader.rules).on(path)
    })?;
    let columns: Vec<Column> = columns.into_iter().map(Column::from_texts).collect();
    Ok(Column::concat(columns.iter())?.into())
}
