//! String columns to and from Python by the Arrow PyCapsule protocol.
//!
//! Input is not trusted: types, nulls, offsets and UTF-8 are all checked before use.

use std::ffi::{CStr, c_int};
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::ffi::{FFI_ArrowArray, FFI_ArrowSchema, from_ffi, to_ffi};
use arrow_array::ffi_stream::FFI_ArrowArrayStream;
use arrow_array::types::{
    ArrowDictionaryKeyType, Int8Type, Int16Type, Int32Type, Int64Type, UInt8Type, UInt16Type,
    UInt32Type, UInt64Type,
};
use arrow_array::{Array as _, DictionaryArray, LargeStringArray, StringArray, StringViewArray};
use arrow_buffer::ArrowNativeType;
use arrow_data::ArrayData;
use arrow_schema::DataType;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyTuple};

use crate::column::{Chunk, Column, Kind, to_binary_array};
use crate::door::{Object, caught, run};
use crate::errors::{Failure, Result};

const SCHEMA: &CStr = c"arrow_schema";
const ARRAY: &CStr = c"arrow_array";
const STREAM: &CStr = c"arrow_array_stream";

/// A stream by the C interface of Arrow.
struct Stream(FFI_ArrowArrayStream);

impl Stream {
    /// Moves the stream out of its capsule.
    fn take(capsule: &Bound<'_, PyCapsule>) -> Result<Self> {
        let pointer = capsule.pointer_checked(Some(STREAM))?;
        // SAFETY: a capsule of this name holds a valid stream, which is moved out and marked as released.
        let stream = unsafe { FFI_ArrowArrayStream::from_raw(pointer.as_ptr().cast()) };
        match stream.release() {
            Some(_) => Ok(Stream(stream)),
            None => Err(Failure::input(
                "the Arrow stream was already consumed; pass a new one",
            )),
        }
    }

    fn check(&mut self, code: c_int) -> Result<()> {
        if code == 0 {
            return Ok(());
        }
        let text = match self.0.get_last_error() {
            // SAFETY: called on a live stream right after its failure, as the interface requires.
            Some(last_error) => unsafe { last_error(&mut self.0) },
            None => std::ptr::null(),
        };
        let reason = match text.is_null() {
            true => format!("code {code}"),
            // SAFETY: the interface gives a C string that lives until the next call on the stream.
            false => unsafe { CStr::from_ptr(text) }
                .to_string_lossy()
                .into_owned(),
        };
        Err(Failure::input(format!("the Arrow stream failed: {reason}")))
    }

    fn schema(&mut self) -> Result<FFI_ArrowSchema> {
        let mut schema = FFI_ArrowSchema::empty();
        let get_schema = (self.0)
            .get_schema()
            .ok_or_else(|| Failure::input("the Arrow stream has no schema"))?;
        // SAFETY: the stream is live and `schema` may be written.
        let code = unsafe { get_schema(&mut self.0, &mut schema) };
        self.check(code)?;
        Ok(schema)
    }

    fn next(&mut self) -> Result<Option<FFI_ArrowArray>> {
        let mut array = FFI_ArrowArray::empty();
        let get_next = (self.0)
            .get_next()
            .ok_or_else(|| Failure::input("the Arrow stream has no data"))?;
        // SAFETY: the stream is live and `array` may be written.
        let code = unsafe { get_next(&mut self.0, &mut array) };
        self.check(code)?;
        Ok((!array.is_released()).then_some(array))
    }
}

/// Reads a column of strings, or for other kinds `large_binary` of [`write_column`], by the Arrow C interface.
pub fn read_column(data: &Object<'_>, kind: Kind) -> Result<Column> {
    let py = data.py();
    let mut parts = Vec::new();
    if data.hasattr(intern!(py, "__arrow_c_stream__"))? {
        let capsule = data.call_method0(intern!(py, "__arrow_c_stream__"))?;
        let mut stream = Stream::take(&as_capsule(&capsule)?)?;
        let schema = stream.schema()?;
        check_type(&schema, kind)?;
        while let Some(array) = stream.next()? {
            parts.push(import(array, &schema)?);
            py.check_signals()?;
        }
    } else if data.hasattr(intern!(py, "__arrow_c_array__"))? {
        let (schema, array) = take_array(data)?;
        check_type(&schema, kind)?;
        parts.push(import(array, &schema)?);
    } else {
        return Err(Failure::input(format!(
            "expected a list of str or an Arrow column (with __arrow_c_stream__ or __arrow_c_array__), found {}",
            data.get_type().name()?
        )));
    }
    let num_bytes = parts.iter().map(ArrayData::get_array_memory_size).sum();
    run(py, num_bytes, |_| {
        let mut chunks = Vec::with_capacity(parts.len());
        let mut first_row = 0;
        for data in parts {
            let num_rows = data.len();
            chunks.push(Arc::new(to_chunk(data, first_row)?));
            first_row += num_rows;
        }
        Ok(Column::of_kind(kind, chunks))
    })
}

/// Moves schema and array out of the capsules of an object with `__arrow_c_array__`.
fn take_array(data: &Object<'_>) -> Result<(FFI_ArrowSchema, FFI_ArrowArray)> {
    let pair = data.call_method0(intern!(data.py(), "__arrow_c_array__"))?;
    let (schema, array): (Object<'_>, Object<'_>) = pair.extract()?;
    let schema = as_capsule(&schema)?.pointer_checked(Some(SCHEMA))?;
    let array = as_capsule(&array)?.pointer_checked(Some(ARRAY))?;
    // SAFETY: capsules of these names hold a valid schema and array; both are moved out and marked as released.
    let (schema, array) = unsafe {
        (
            FFI_ArrowSchema::from_raw(schema.as_ptr().cast()),
            FFI_ArrowArray::from_raw(array.as_ptr().cast()),
        )
    };
    match array.is_released() {
        true => Err(Failure::input(
            "the Arrow array was already consumed; pass a new one",
        )),
        false => Ok((schema, array)),
    }
}

/// Reads an array of any type, and checks its contents.
pub fn read_array(data: &Object<'_>) -> Result<ArrayData> {
    let (schema, array) = take_array(data)?;
    let found = import(array, &schema)?;
    found.validate_full().map_err(arrow_failure)?;
    Ok(found)
}

fn as_capsule<'py>(object: &Object<'py>) -> Result<Bound<'py, PyCapsule>> {
    match object.cast::<PyCapsule>() {
        Ok(capsule) => Ok(capsule.clone()),
        Err(_) => Err(Failure::input(
            "the Arrow object did not return a PyCapsule",
        )),
    }
}

fn import(array: FFI_ArrowArray, schema: &FFI_ArrowSchema) -> Result<ArrayData> {
    caught(|| {
        // SAFETY: array and schema come from one producer by the C data interface; `to_chunk` validates the contents.
        unsafe { from_ffi(array, schema) }.map_err(arrow_failure)
    })
}

fn arrow_failure(error: arrow_schema::ArrowError) -> Failure {
    Failure::input(format!("the Arrow data is damaged: {error}"))
}

/// Rejects anything but a column of strings early.
fn check_type(schema: &FFI_ArrowSchema, kind: Kind) -> Result<()> {
    let data_type = DataType::try_from(schema).map_err(arrow_failure)?;
    match &data_type {
        DataType::LargeBinary if kind != Kind::Text => Ok(()),
        _ if kind != Kind::Text => Err(Failure::input(format!(
            "expected a column of large_binary, found {data_type}"
        ))),
        DataType::Struct(fields) => {
            let names: Vec<&str> = fields.iter().map(|field| field.name().as_str()).collect();
            Err(Failure::input(format!(
                "expected a column of strings, found a struct or table of the columns {}; pass one of them",
                names.join(", ")
            )))
        }
        other if is_text(other) => Ok(()),
        other => Err(Failure::input(format!(
            "expected a column of strings, found {other}"
        ))),
    }
}

fn is_text(data_type: &DataType) -> bool {
    match data_type {
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View | DataType::Null => true,
        DataType::Dictionary(_, values) => is_text(values),
        _ => false,
    }
}

/// Validates the data and keeps it alive. `first_row` is its row in the column, for messages.
fn to_chunk(data: ArrayData, first_row: usize) -> Result<Chunk> {
    if data.is_empty() {
        // An empty slice may have no buffers.
        return Ok(Chunk::Picked {
            rows: Vec::new(),
            base: Arc::new(Column::new(Vec::new())),
        });
    }
    data.validate_full().map_err(arrow_failure)?;
    if let DataType::Dictionary(key, _) = data.data_type() {
        return match key.as_ref() {
            DataType::Int8 => dictionary::<Int8Type>(data, first_row),
            DataType::Int16 => dictionary::<Int16Type>(data, first_row),
            DataType::Int32 => dictionary::<Int32Type>(data, first_row),
            DataType::Int64 => dictionary::<Int64Type>(data, first_row),
            DataType::UInt8 => dictionary::<UInt8Type>(data, first_row),
            DataType::UInt16 => dictionary::<UInt16Type>(data, first_row),
            DataType::UInt32 => dictionary::<UInt32Type>(data, first_row),
            DataType::UInt64 => dictionary::<UInt64Type>(data, first_row),
            other => Err(Failure::input(format!(
                "a dictionary has keys of type {other}"
            ))),
        };
    }
    let array = arrow_array::make_array(data);
    refuse_nulls(&array, first_row)?;
    Ok(match array.data_type() {
        DataType::Utf8 => Chunk::Utf8(StringArray::clone(array.as_string())),
        DataType::LargeUtf8 => Chunk::LargeUtf8(LargeStringArray::clone(array.as_string())),
        DataType::Utf8View => Chunk::View(StringViewArray::clone(array.as_string_view())),
        DataType::LargeBinary => Chunk::Binary(array.as_binary::<i64>().clone()),
        other => {
            return Err(Failure::input(format!(
                "expected a column of strings, found {other}"
            )));
        }
    })
}

fn null_failure(row: usize) -> Failure {
    Failure::row(row, "the text is null; leave such rows out or fill them")
}

fn refuse_nulls(array: &dyn arrow_array::Array, first_row: usize) -> Result<()> {
    match array.logical_nulls().filter(|nulls| nulls.null_count() > 0) {
        None => Ok(()),
        Some(nulls) => {
            let row = nulls
                .iter()
                .position(|is_valid| !is_valid)
                .unwrap_or_default();
            Err(null_failure(first_row + row))
        }
    }
}

fn dictionary<K: ArrowDictionaryKeyType>(data: ArrayData, first_row: usize) -> Result<Chunk> {
    let array = DictionaryArray::<K>::from(data);
    refuse_nulls(&array, first_row)?;
    let rows: Vec<u32> = array
        .keys()
        .values()
        .iter()
        .map(|key| key.as_usize() as u32)
        .collect();
    let values = array.values();
    // A value that no row uses may be null: its slot then reads as an empty text.
    let without_nulls = values
        .to_data()
        .into_builder()
        .nulls(None)
        .build()
        .map_err(arrow_failure)?;
    Ok(Chunk::Picked {
        rows,
        base: Arc::new(Column::new(vec![Arc::new(to_chunk(without_nulls, 0)?)])),
    })
}

/// Returns the schema and array capsules of a column: `large_utf8` for texts, `large_binary` for other kinds.
pub fn write_column<'py>(py: Python<'py>, column: &Column) -> Result<Bound<'py, PyTuple>> {
    let data = run(py, column.num_bytes, |_| {
        Ok(match column.kind {
            Kind::Text => column.to_large_array().to_data(),
            _ => to_binary_array(column)?.to_data(),
        })
    })?;
    write_array(py, &data)
}

pub fn write_array<'py>(py: Python<'py>, data: &ArrayData) -> Result<Bound<'py, PyTuple>> {
    let (array, schema) = to_ffi(data).map_err(|error| Failure::Internal(error.to_string()))?;
    // Whatever the consumer does not move out is released with the capsule.
    let schema = PyCapsule::new_with_value(py, schema, SCHEMA)?;
    let array = PyCapsule::new_with_value(py, array, ARRAY)?;
    Ok(PyTuple::new(py, [schema, array])?)
}
