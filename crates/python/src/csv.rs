//! CSV: reading records, reading them again.

use std::path::PathBuf;
use std::sync::Mutex;

use likewise_disk as disk;
use pyo3::prelude::*;

use crate::array::Input;
use crate::column::Column;
use crate::door::run;
use crate::errors::Failure;
use crate::jsonl::{JsonlPiece, open, to_python};
use crate::texts::Texts;

/// The columns of a file, and `(bytes, blank lines)` up to the end of its header.
#[pyfunction]
pub fn csv_header(
    py: Python<'_>,
    path: PathBuf,
    delimiter: u8,
) -> Result<(Vec<String>, u64, u64), Failure> {
    let header = run(py, 0, |_| {
        disk::read_csv_header(&open(&path)?, delimiter).map_err(|error| Failure::disk(error, &path))
    })?;
    Ok((header.names, header.num_bytes, header.num_blank))
}

/// Reads the records of a file, piece by piece.
#[pyclass(frozen, module = "likewise._native")]
pub struct CsvReader {
    stream: Mutex<disk::CsvStream>,
    rules: disk::CsvRules,
    path: PathBuf,
}

#[pymethods]
impl CsvReader {
    #[new]
    #[pyo3(signature = (path, *, delimiter, text_columns, id_column, id_required, field_columns, max_document))]
    fn new(
        path: PathBuf,
        delimiter: u8,
        text_columns: Vec<usize>,
        id_column: Option<usize>,
        id_required: bool,
        field_columns: Vec<Option<usize>>,
        max_document: u64,
    ) -> Result<Self, Failure> {
        let failure = |error| Failure::disk(error, &path);
        let header = disk::read_csv_header(&open(&path)?, delimiter).map_err(failure)?;
        let rules = disk::CsvRules {
            delimiter,
            num_columns: header.names.len(),
            text_columns,
            id_column,
            id_required,
            field_columns,
            max_document,
        };
        let stream =
            disk::CsvStream::open(open(&path)?, &header, rules.clone()).map_err(failure)?;
        Ok(CsvReader {
            stream: Mutex::new(stream),
            rules,
            path,
        })
    }

    /// The next records, about `piece_bytes` of the file; None at the end.
    fn next_piece(
        &self,
        py: Python<'_>,
        piece_bytes: u64,
    ) -> Result<Option<(JsonlPiece, u64)>, Failure> {
        let piece = run(py, (piece_bytes / 16) as usize, |_| {
            let mut stream = self
                .stream
                .lock()
                .map_err(|_| Failure::Internal("a reader failed before".to_owned()))?;
            let piece = stream
                .next_piece(piece_bytes)
                .map_err(|error| Failure::disk(error, &self.path))?;
            Ok(piece.map(|piece| (piece, stream.position())))
        })?;
        piece
            .map(|(piece, position)| Ok((to_python(py, piece)?, position)))
            .transpose()
    }
}

/// Reads the texts of records again, in the order asked, by the rules of a reader of the same file.
#[pyfunction]
#[pyo3(signature = (reader, offsets, lengths, *, threads=1))]
pub fn read_csv_texts(
    py: Python<'_>,
    reader: &CsvReader,
    offsets: &Bound<'_, PyAny>,
    lengths: &Bound<'_, PyAny>,
    threads: usize,
) -> Result<Texts, Failure> {
    let offsets = Input::<u64>::take("offsets", offsets)?;
    let lengths = Input::<u32>::take("lengths", lengths)?;
    let num_bytes = lengths.values().iter().map(|&length| length as usize).sum();
    let columns = run(py, num_bytes, |cancel| {
        disk::read_csv_rows(
            &open(&reader.path)?,
            offsets.values(),
            lengths.values(),
            &reader.rules,
            threads,
            cancel,
        )
        .map_err(|error| Failure::disk(error, &reader.path))
    })?;
    let columns: Vec<Column> = columns.into_iter().map(Column::from_texts).collect();
    Ok(Column::concat(columns.iter())?.into())
}
