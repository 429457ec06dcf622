//! What are the texts, ids and fields of a CSV file?
//!
//! Quoted fields may hold line ends, so the start of a record is known only after the previous record has ended. A
//! sequential scan that looks only at quotes and line ends therefore cuts the file between records, and several threads
//! parse the pieces at once. Single records are read again by offset.

pub mod header;
mod record;
pub mod rows;
pub mod rules;
pub mod split;
pub mod stream;
