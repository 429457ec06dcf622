//! What are the texts, ids and fields of a CSV file?
//!
//! Where a record begins is known only when the one before has ended, since quoted fields may hold line ends. So a file is cut
//! at ends of records by a scan from its first byte to its last that looks at quotes alone, and the pieces are read by several
//! threads at once. Single records are read again by offset.

pub mod header;
mod record;
pub mod rewrite;
pub mod rows;
pub mod rules;
pub mod split;
pub mod stream;
