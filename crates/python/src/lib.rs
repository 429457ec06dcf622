//! The seam: arguments in, interpreter lock released, core called, arrays out.

mod array;
mod arrow;
mod column;
mod door;
mod errors;
mod jsonl;
mod texts;

use pyo3::prelude::*;

/// Native half of Likewise.
#[pymodule(gil_used = true)]
mod _native {
    #[pymodule_export]
    use super::array::Array;
    #[pymodule_export]
    use super::jsonl::{
        JsonlPiece, JsonlRules, copy_lines, jsonl_pieces, read_jsonl_piece, read_jsonl_texts,
    };
    #[pymodule_export]
    use super::texts::Texts;
}
