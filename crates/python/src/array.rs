//! Arrays passed between Python and Rust without a copy.

use std::ffi::{CStr, c_int, c_void};
use std::ptr;

use pyo3::buffer::{Element, PyBuffer};
use pyo3::exceptions::PyBufferError;
use pyo3::ffi;
use pyo3::prelude::*;

use crate::door::{Object, check_same_length};
use crate::errors::{Failure, Result};

/// A read-only array made by the native module. `numpy.asarray` gives a view of it.
#[pyclass(frozen, module = "likewise._native")]
pub struct Array {
    values: Values,
    // The buffer protocol points at these, so they live in the object.
    shape: [ffi::Py_ssize_t; 1],
    strides: [ffi::Py_ssize_t; 1],
}

enum Values {
    U8(Vec<u8>),
    U16(Vec<u16>),
    U32(Vec<u32>),
    U64(Vec<u64>),
    I64(Vec<i64>),
    F64(Vec<f64>),
}

impl Values {
    /// Address, length, bytes per value, and format in the notation of the struct module.
    fn parts(&self) -> (*const c_void, usize, usize, &'static CStr) {
        match self {
            Values::U8(v) => (v.as_ptr().cast(), v.len(), 1, c"B"),
            Values::U16(v) => (v.as_ptr().cast(), v.len(), 2, c"H"),
            Values::U32(v) => (v.as_ptr().cast(), v.len(), 4, c"I"),
            Values::U64(v) => (v.as_ptr().cast(), v.len(), 8, c"Q"),
            Values::I64(v) => (v.as_ptr().cast(), v.len(), 8, c"q"),
            Values::F64(v) => (v.as_ptr().cast(), v.len(), 8, c"d"),
        }
    }
}

macro_rules! from_vec {
    ($($variant:ident $value:ty),*) => {$(
        impl From<Vec<$value>> for Array {
            fn from(values: Vec<$value>) -> Self {
                Array::new(Values::$variant(values))
            }
        }
    )*};
}
from_vec!(U8 u8, U16 u16, U32 u32, U64 u64, I64 i64, F64 f64);

impl Array {
    fn new(values: Values) -> Self {
        let (_, len, item_bytes, _) = values.parts();
        Array {
            values,
            shape: [len as ffi::Py_ssize_t],
            strides: [item_bytes as ffi::Py_ssize_t],
        }
    }
}

#[pymethods]
impl Array {
    fn __len__(&self) -> usize {
        self.values.parts().1
    }

    fn __repr__(&self) -> String {
        let (_, len, _, format) = self.values.parts();
        format!(
            "<likewise Array of {len} values, format {}>",
            format.to_string_lossy()
        )
    }

    /// Safety: called by Python with a view to fill.
    unsafe fn __getbuffer__(
        slf: Bound<'_, Self>,
        view: *mut ffi::Py_buffer,
        flags: c_int,
    ) -> PyResult<()> {
        if view.is_null() {
            return Err(PyBufferError::new_err("no view to fill"));
        }
        if flags & ffi::PyBUF_WRITABLE == ffi::PyBUF_WRITABLE {
            return Err(PyBufferError::new_err("this array is read-only"));
        }
        let asked = |flag: c_int| flags & flag == flag;
        let this = slf.get();
        let (address, len, item_bytes, format) = this.values.parts();
        // SAFETY: `view` is valid for writes, as the protocol promises. All pointers lead into the object, which is
        // frozen, never moves and is kept alive by `obj` until the view is released; nobody writes through them,
        // since the view is read-only.
        unsafe {
            (*view).buf = address.cast_mut();
            (*view).len = (len * item_bytes) as ffi::Py_ssize_t;
            (*view).readonly = 1;
            (*view).itemsize = item_bytes as ffi::Py_ssize_t;
            (*view).format = match asked(ffi::PyBUF_FORMAT) {
                true => format.as_ptr().cast_mut(),
                false => ptr::null_mut(),
            };
            (*view).ndim = 1;
            (*view).shape = match asked(ffi::PyBUF_ND) {
                true => this.shape.as_ptr().cast_mut(),
                false => ptr::null_mut(),
            };
            (*view).strides = match asked(ffi::PyBUF_STRIDES) {
                true => this.strides.as_ptr().cast_mut(),
                false => ptr::null_mut(),
            };
            (*view).suboffsets = ptr::null_mut();
            (*view).internal = ptr::null_mut();
            (*view).obj = slf.into_ptr();
        }
        Ok(())
    }
}

/// A type of array values, with its NumPy name.
pub trait Item: Element + Send + Sync {
    const NAME: &'static str;
}

macro_rules! items {
    ($($value:ty: $name:literal),*) => {$(
        impl Item for $value {
            const NAME: &'static str = $name;
        }
    )*};
}
items!(u8: "uint8", u32: "uint32", u64: "uint64", i64: "int64", f64: "float64");

/// The values of an array from Python; a writable one is copied, since another thread may write to it.
pub enum Input<T: Item> {
    Copied(Vec<T>),
    Shared(PyBuffer<T>),
}

impl<T: Item> Input<T> {
    /// Takes parameter `name`. Raises `InvalidParameter` unless it is a one-dimensional contiguous buffer of this type.
    pub fn take(name: &str, object: &Object<'_>) -> Result<Self> {
        let wrong = |found: &str| {
            Failure::parameter(
                name,
                format!(
                    "expected a contiguous 1-D array of {}, found {found}",
                    T::NAME
                ),
            )
        };
        let Ok(buffer) = PyBuffer::<T>::get(object) else {
            return Err(wrong(&describe(object)));
        };
        // The check of the element type above sees only its letter.
        if matches!(buffer.format().to_bytes().first(), Some(b'>' | b'!')) {
            return Err(wrong(&describe(object)));
        }
        if buffer.dimensions() != 1 {
            return Err(wrong(&format!("{} dimensions", buffer.dimensions())));
        }
        let Some(cells) = buffer.as_slice(object.py()) else {
            return Err(wrong("a strided one; pass numpy.ascontiguousarray of it"));
        };
        if buffer.readonly() {
            return Ok(Input::Shared(buffer));
        }
        Ok(Input::Copied(cells.iter().map(|cell| cell.get()).collect()))
    }

    /// Like [`take`](Self::take), with `None` for Python's `None`.
    pub fn take_option(name: &str, object: Option<&Object<'_>>) -> Result<Option<Self>> {
        object.map(|object| Self::take(name, object)).transpose()
    }

    /// Takes an array that is not given, or empty, or has `len` values like parameter `of`.
    pub fn take_like(
        name: &str,
        object: Option<&Object<'_>>,
        (of, len): (&str, usize),
    ) -> Result<Self> {
        let taken = Self::take_option(name, object)?;
        let taken = taken.unwrap_or(Input::Copied(Vec::new()));
        match taken.values().len() {
            0 => Ok(taken),
            given => check_same_length(name, given, of, len).map(|()| taken),
        }
    }

    pub fn values(&self) -> &[T] {
        match self {
            Input::Copied(values) => values,
            Input::Shared(buffer) if buffer.item_count() == 0 => &[],
            // SAFETY: `take` found the buffer contiguous, aligned and of type T, and `buffer` keeps it alive. It is
            // read-only: its owner does not write while it is exported.
            Input::Shared(buffer) => unsafe {
                std::slice::from_raw_parts(buffer.buf_ptr().cast::<T>(), buffer.item_count())
            },
        }
    }
}

/// `take!(rows: u32, marks: u8)` makes slices of the parameters with these names.
macro_rules! take {
    ($($name:ident: $item:ty),+) => {
        $(
            let held = $crate::array::Input::<$item>::take(stringify!($name), $name)?;
            let $name = held.values();
        )+
    };
}
pub(crate) use take;

/// Describes an object for error messages: the dtype of an array, or the type.
fn describe(object: &Object<'_>) -> String {
    match (object.getattr("dtype"), object.getattr("ndim")) {
        (Ok(dtype), Ok(num_dimensions)) => format!("dtype {dtype}, {num_dimensions}-D"),
        _ => match object.get_type().name() {
            Ok(name) => name.to_string(),
            Err(_) => "something else".to_owned(),
        },
    }
}
