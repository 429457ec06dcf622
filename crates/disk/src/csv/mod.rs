//! What are the texts, ids and fields of a CSV file?
//!
//! Records are read one after another: where one begins is known only when the one before has ended, since quoted fields may
//! hold line ends. Single records are read again by offset.

mod record;
pub mod rows;
pub mod rules;
pub mod stream;
