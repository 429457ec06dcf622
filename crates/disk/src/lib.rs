//! What touches files: splitting into lines, parsing rows, copying lines, packing and unpacking.
//!
//! Files are read by position, never mapped, so a file that is cut while it is read gives an error
//! and not a crash. Nothing here knows Python.

pub mod column;
pub mod copy;
pub mod csv;
pub mod error;
pub mod jsonl;
pub mod lines;
pub mod packed;
pub mod parquet;
pub mod position;
pub mod weights;

pub use column::TextColumn;
pub use copy::copy_ranges;
pub use csv::rows::read_csv_rows;
pub use csv::rules::{CsvHeader, CsvRules, read_csv_header};
pub use csv::stream::CsvStream;
pub use error::Error;
pub use jsonl::capture::push_lossy;
pub use jsonl::piece::{BadRow, Piece, read_piece};
pub use jsonl::rows::read_rows;
pub use jsonl::rules::JsonlRules;
pub use lines::split_lines;
pub use packed::pack::pack_ranges;
pub use packed::unpack::{Unpacked, Unpacker};
pub use packed::{Codec, UnpackLimits};
pub use weights::{WeightFile, read_weights, write_weights};
