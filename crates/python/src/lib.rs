//! The seam: arguments in, interpreter lock released, core called, arrays out.
use pyo3::prelude::*;

/// Native half of Likewise.
#[pymodule(gil_used = true)]
mod _native {}
