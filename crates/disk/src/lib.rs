//! Everything that touches files: line splitting, row parsing, line copying, compression, and searches of flat
//! fingerprint files.
//!
//! Files of users are read by position and never mapped, so a file that is truncated while it is read gives an error,
//! not a crash. Only files that this package writes itself, and never changes once they have their final name, are
//! mapped. Nothing here depends on Python.
//!
//! Functions that return a `Result` fail with the errors of what they call: `Error::Io` from the system,
//! `Error::Changed` if a file of users is no longer what was read, `Error::Damaged` if a file of this package is
//! invalid, `Error::Canceled` once `cancel` is set. Their documentation names only other causes.

pub mod bands;
pub mod column;
pub mod copy;
pub mod csv;
pub mod environment;
pub mod error;
pub mod fingerprints;
pub mod hamming_file;
pub mod hamming_join;
pub mod jsonl;
pub mod lines;
pub mod packed;
pub mod parquet;
pub mod position;
pub mod priority;
pub mod rewrite;
mod sections;
pub mod segments;
pub mod store;
pub mod weights;
mod whole;
pub mod windows;

pub use column::{TextColumn, TokenColumn};
pub use copy::{copy_ranges, range_checksum};
pub use csv::header::{CsvHeader, read_csv_header};
pub use csv::rows::{read_csv_rows, rewrite_csv_rows};
pub use csv::rules::{CsvDialect, CsvRules};
pub use csv::split::{RecordPiece, RecordSplitter};
pub use csv::stream::CsvStream;
pub use environment::Environment;
pub use error::{Error, Result};
pub use fingerprints::FlatFingerprints;
pub use jsonl::capture::push_lossy;
pub use jsonl::piece::{BadRow, Piece, read_piece};
pub use jsonl::rows::{read_rows, read_token_rows, rewrite_rows};
pub use jsonl::rules::{JsonlRules, RoleRules, TokenRules};
pub use lines::split_lines;
pub use packed::pack_ranges;
pub use packed::unpack::{Unpacked, Unpacker};
pub use packed::{Codec, UnpackLimits};
pub use position::Rows;
pub use rewrite::{Rewritten, Stretches};
pub use weights::{WeightFile, read_weights, weights_of_bytes, weights_to_bytes, write_weights};
