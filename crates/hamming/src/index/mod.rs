//! Which of a billion fingerprints are within `within` bits of a given one, exactly?
//!
//! The plans of [`super::plan`], laid out to cost the fewest bytes and cache misses. There is one table for each key of
//! the plan: the distinct codes sorted with the key's bits on top, a directory over the first bits, and for each code
//! only the remaining bits, packed. The first table also stores the rows of each code; a code found in another table is
//! reconstructed from directory and remaining bits and looked up there. A probe that flips a bit within a line of the
//! directory, or a bit of the key after the prefix, costs no further miss.
//!
//! Two such tables take 10 bytes per fingerprint of 64 bits.

#[cfg(test)]
mod concurrency_tests;
mod search;
mod set;
mod table;
#[cfg(test)]
mod tests;

pub use crate::plan::shape::Shape;
pub use search::matches::{Matches, Reach};
pub use set::choice::{plan_for, plan_for_sample, sample_step};
pub use set::hamming_set::{HammingSet, SetFacts};
pub use set::segment::Segment;
pub use set::state::{SegmentParts, SetParts, TableParts};
pub use table::build::Building;
pub use table::builder::{Group, Places, RowsOf, Slice, TableBuilder, TablePiece, waves};
pub use table::directory::Directory;
pub use table::rows::Rows;
pub use table::stream::{StreamedTable, TableSection, TableStream};
pub use table::words::{CheckBlock, Guard};
pub use table::words::{SharedBytes, Words, WordsMut};
