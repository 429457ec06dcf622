//! Which of a billion fingerprints lie within `within` bits of this one, exactly?
//!
//! The space of plans of [`super::plan`], laid out to cost the fewest bytes and cache misses. For each key of the plan one table: the
//! distinct codes sorted with the key's bits on top, a directory over the first bits, and of each code only the bits that remain, packed.
//! The first table also knows the rows of each code; a code found in another table is rebuilt from directory and remaining bits and looked
//! up there. A probe that flips a bit within a line of the directory, or a bit of the key behind the prefix, costs no further miss.

mod batch;
mod build;
mod builder;
mod choice;
#[cfg(test)]
mod concurrency_tests;
mod directory;
mod flips;
mod guard;
mod hits;
mod kernel;
mod matches;
mod nearest;
mod packed;
mod parts;
mod permutation;
mod piece;
mod planes;
mod refine;
mod regions;
mod removed;
mod resolve;
mod rows;
mod search;
mod segment;
mod segment_search;
mod set;
mod set_build;
mod set_search;
mod set_state;
mod sort;
mod table;
mod table_stream;
#[cfg(test)]
mod tests;
mod words;

pub use build::Codes;
pub use builder::{Places, TableBuilder, TablePiece};
pub use choice::{plan_for, plan_for_sample, sample_step};
pub use guard::{CheckBlock, Guard};
pub use matches::Matches;
pub use parts::{RowParts, SegmentParts, SetParts, TableParts};
pub use segment::{Building, Segment};
pub use set::{HammingSet, SetFacts};
pub use table_stream::{StreamedTable, TableSection, TableStream};
pub use words::{SharedBytes, Words, WordsMut};
