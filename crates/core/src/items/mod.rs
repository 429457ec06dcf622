//! Which evaluation items stand in a document, and how surely?
//!
//! Texts of items are short and stand anywhere in a document. Runs of five words find the places; there the words of both are
//! aligned. How much the parts of an item count follows from how often they come elsewhere: what an item shares with other items
//! or with many documents says little, so verdicts fall when all documents were counted.

mod align;
mod counts;
mod judge;
mod scan;
mod table;
#[cfg(test)]
mod tests;

pub use counts::ItemCounts;
pub use judge::{Agreement, judge};
pub use scan::{ItemScanner, Matches};
pub use table::{ItemTable, NGRAM};
