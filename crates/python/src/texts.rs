//! `Texts`: a batch of texts, as passed to the bound functions.

use std::borrow::Cow;
use std::sync::Arc;

use likewise_core::error::invalid_if;
use likewise_core::hash::xxh3_64_with_seed;
use likewise_core::text::{
    OwnTokens, begin_own_tokens, end_own_tokens, push_own_token, push_text_without_tokens,
};
use likewise_disk::TextColumn;
use pyo3::exceptions::{PyIndexError, PyUnicodeEncodeError};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyList, PyString, PyTuple};

use crate::array::{Array, Input, take};
use crate::arrow::{read_column, write_column};
use crate::column::{Column, Kind, checked_rows};
use crate::door::{Object, Str, check_same_length, run};
use crate::errors::{Failure, Result};

/// An immutable batch of texts. It shares the buffers of Arrow input.
#[pyclass(frozen, module = "likewise._native")]
pub struct Texts {
    pub column: Arc<Column>,
}

/// Bytes taken from a list before other Python threads get a turn.
const TURN_BYTES: usize = 8 << 20;

impl From<Column> for Texts {
    fn from(column: Column) -> Self {
        Texts {
            column: Arc::new(column),
        }
    }
}

#[pymethods]
impl Texts {
    /// Copies texts from a list (or another iterable) of str.
    #[staticmethod]
    fn from_list(texts: &Object<'_>) -> Result<Self> {
        let py = texts.py();
        if texts.is_instance_of::<PyString>() || texts.is_instance_of::<PyBytes>() {
            return Err(Failure::input(format!(
                "expected a list of str, found one {}; put it into a list",
                texts.get_type().name()?
            )));
        }
        let mut collected = TextColumn::default();
        let mut num_bytes_at_turn = 0;
        let mut take = |row: usize, item: Object<'_>| -> Result<()> {
            let Ok(text) = item.cast::<PyString>() else {
                return Err(Failure::row(
                    row,
                    format!("expected a str, found {}", item.get_type().name()?),
                ));
            };
            push_str(text, &mut collected)?;
            if collected.bytes.len() - num_bytes_at_turn > TURN_BYTES {
                num_bytes_at_turn = collected.bytes.len();
                py.check_signals()?;
                py.detach(std::thread::yield_now);
            }
            Ok(())
        };
        if let Ok(list) = texts.cast::<PyList>() {
            // By index: another thread may shorten the list in between.
            let mut row = 0;
            while row < list.len() {
                take(row, list.get_item(row)?)?;
                row += 1;
            }
        } else {
            for (row, item) in texts.try_iter()?.enumerate() {
                take(row, item?)?;
            }
        }
        Ok(Column::from_texts(collected).into())
    }

    /// Takes a column of strings by the Arrow PyCapsule protocol, without a copy.
    #[staticmethod]
    fn from_arrow(data: &Object<'_>) -> Result<Self> {
        Ok(read_column(data, Kind::Text)?.into())
    }

    /// Takes a column of encoded tokens, as returned by `__arrow_c_array__`, without a copy.
    #[staticmethod]
    fn from_encoded(data: &Object<'_>) -> Result<Self> {
        Ok(read_column(data, Kind::Tokens)?.into())
    }

    /// Concatenates batches without a copy.
    #[staticmethod]
    fn concat(parts: Vec<Bound<'_, Texts>>) -> Result<Self> {
        let columns = parts.iter().map(|part| part.get().column.as_ref());
        Ok(Column::concat(columns)?.into())
    }

    /// Copies documents from a list of bytes.
    #[staticmethod]
    fn from_bytes(documents: &Bound<'_, PyList>) -> Result<Self> {
        let (mut bytes, mut offsets) = (Vec::new(), vec![0]);
        for (row, item) in documents.iter().enumerate() {
            let Ok(document) = item.cast::<PyBytes>() else {
                return Err(Failure::row(
                    row,
                    format!("expected bytes, found {}", item.get_type().name()?),
                ));
            };
            bytes.extend_from_slice(document.as_bytes());
            offsets.push(bytes.len() as i64);
        }
        Ok(Column::from_bytes(Kind::Bytes, bytes, offsets)?.into())
    }

    /// Encodes lists of the user's tokens with their weights: list i is `tokens[offsets[i]:offsets[i + 1]]`, cut from a
    /// text of `lengths[i]` scalars. Without tokens, the document goes by its text in `texts`, if they are given.
    #[staticmethod]
    #[pyo3(signature = (offsets, tokens, weights, lengths, texts=None))]
    fn from_tokens(
        py: Python<'_>,
        offsets: &Object<'_>,
        tokens: &Texts,
        weights: &Object<'_>,
        lengths: &Object<'_>,
        texts: Option<&Texts>,
    ) -> Result<Self> {
        take!(offsets: i64, weights: u8, lengths: u32);
        let column = tokens.column.as_ref();
        check_same_length("weights", weights.len(), "tokens", column.len())?;
        check_same_length("lengths", lengths.len() + 1, "offsets", offsets.len())?;
        let texts = texts.map(|texts| texts.column.as_ref());
        if let Some(texts) = texts {
            check_same_length("texts", texts.len(), "lengths", lengths.len())?;
        }
        let fits = offsets.first() == Some(&0)
            && offsets.last() == Some(&(column.len() as i64))
            && offsets.is_sorted();
        invalid_if(
            !fits,
            "offsets",
            || "not n + 1 rising values that end with the tokens",
        )?;
        let encoded = run(py, column.num_bytes + 16 * column.len(), |_| {
            let (mut bytes, mut ends) = (Vec::new(), vec![0]);
            for (row, list) in offsets.windows(2).enumerate() {
                let start = bytes.len();
                begin_own_tokens(lengths[row], &mut bytes);
                let list = list[0] as usize..list[1] as usize;
                for (i, &weight) in list.clone().zip(&weights[list.clone()]) {
                    if !push_own_token(column.bytes(i), weight, &mut bytes) {
                        return Err(Failure::row(row, "a token has 4 GB or more"));
                    }
                }
                if let (false, Some(texts)) = (end_own_tokens(start, &mut bytes), texts) {
                    push_text_without_tokens(texts.get(row), &mut bytes);
                }
                ends.push(bytes.len() as i64);
            }
            Column::from_bytes(Kind::Tokens, bytes, ends)
        })?;
        Ok(encoded.into())
    }

    /// The kind of the documents: text, bytes or tokens.
    #[getter]
    fn kind(&self) -> &'static str {
        match self.column.kind {
            Kind::Text => "text",
            Kind::Bytes => "bytes",
            Kind::Tokens => "tokens",
        }
    }

    fn __len__(&self) -> usize {
        self.column.len()
    }

    fn __repr__(&self) -> String {
        format!(
            "<likewise Texts: {} texts, {} bytes>",
            self.column.len(),
            self.column.num_bytes
        )
    }

    /// Total bytes of all texts, as UTF-8.
    #[getter]
    fn num_bytes(&self) -> usize {
        self.column.num_bytes
    }

    fn __getitem__<'py>(&self, py: Python<'py>, i: isize) -> Result<Object<'py>> {
        let len = self.column.len();
        let row = match i < 0 {
            true => i + len as isize,
            false => i,
        };
        if row < 0 || row as usize >= len {
            return Err(PyIndexError::new_err(format!("text {i} of {len}")).into());
        }
        Ok(self.shown(py, row as usize))
    }

    /// All documents as a list: texts as str, tokens as str separated by spaces, bytes as bytes.
    fn to_list<'py>(&self, py: Python<'py>) -> Result<Bound<'py, PyList>> {
        let list = PyList::new(py, (0..self.column.len()).map(|i| self.shown(py, i)))?;
        Ok(list)
    }

    /// The texts at some rows, in that order; shares their memory.
    fn take(&self, rows: &Object<'_>) -> Result<Self> {
        let len = self.column.len();
        let rows = match Input::<u32>::take("rows", rows) {
            Ok(rows) => checked_rows(rows.values().iter().map(|&row| i64::from(row)), len)?,
            Err(_) => checked_rows(
                Input::<i64>::take("rows", rows)?.values().iter().copied(),
                len,
            )?,
        };
        Ok(self.column.pick(rows).into())
    }

    /// Unicode scalars of each text, or of the text that tokens were cut from; bytes for documents that are bytes.
    fn lengths(&self, py: Python<'_>) -> Result<Array> {
        let column = &self.column;
        run(py, column.num_bytes, |_| {
            let lengths = (0..column.len()).map(|i| column.document(i).length());
            Ok(lengths.collect::<Vec<u32>>().into())
        })
    }

    /// XXH3-64 of each text's UTF-8.
    #[pyo3(signature = (seed=0))]
    fn hashes(&self, py: Python<'_>, seed: u64) -> Result<Array> {
        let column = &self.column;
        run(py, column.num_bytes, |_| {
            let hashes = (0..column.len()).map(|i| xxh3_64_with_seed(column.bytes(i), seed));
            Ok(hashes.collect::<Vec<u64>>().into())
        })
    }

    /// The Arrow PyCapsule protocol: `large_utf8` for texts, otherwise `large_binary`, whatever is requested.
    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_array__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Object<'py>>,
    ) -> Result<Bound<'py, PyTuple>> {
        drop(requested_schema); // advice only
        write_column(py, &self.column)
    }
}

impl Texts {
    fn shown<'py>(&self, py: Python<'py>, i: usize) -> Object<'py> {
        match self.column.kind {
            Kind::Text => PyString::new(py, self.column.get(i)).into_any(),
            Kind::Tokens => {
                PyString::new(py, &OwnTokens::new(self.column.bytes(i)).shown()).into_any()
            }
            Kind::Bytes => PyBytes::new(py, self.column.bytes(i)).into_any(),
        }
    }
}

/// Adds one str. Only ASCII is read in place: asking for UTF-8 in place would leave a copy inside every other str for
/// as long as it lives.
fn push_str(text: &Str<'_>, out: &mut TextColumn) -> Result<()> {
    let py = text.py();
    if text.call_method0(intern!(py, "isascii"))?.is_truthy()? {
        out.push(text.to_str()?);
        return Ok(());
    }
    match text.encode_utf8() {
        Ok(bytes) => out.push(utf8(bytes.as_bytes())?),
        Err(error) if error.is_instance_of::<PyUnicodeEncodeError>(py) => {
            out.push(&without_surrogates(text)?)
        }
        Err(error) => return Err(error.into()),
    }
    Ok(())
}

fn utf8(bytes: &[u8]) -> Result<&str> {
    std::str::from_utf8(bytes).map_err(|error| Failure::Internal(error.to_string()))
}

/// The text of a str with lone surrogates, each replaced by U+FFFD.
fn without_surrogates(text: &Str<'_>) -> Result<String> {
    let py = text.py();
    let encoded = text.call_method1(intern!(py, "encode"), ("utf-8", "surrogatepass"))?;
    let encoded = encoded.cast::<PyBytes>().map_err(PyErr::from)?;
    let mut out = String::with_capacity(encoded.as_bytes().len());
    likewise_disk::push_lossy(encoded.as_bytes(), &mut out);
    Ok(out)
}

/// The text of any str, for functions that take one document.
pub fn text_of<'a>(text: &'a Str<'_>) -> Result<Cow<'a, str>> {
    let py = text.py();
    if text.call_method0(intern!(py, "isascii"))?.is_truthy()? {
        return Ok(Cow::Borrowed(text.to_str()?));
    }
    let mut column = TextColumn::default();
    push_str(text, &mut column)?;
    Ok(Cow::Owned(column.bytes))
}
