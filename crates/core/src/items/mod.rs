//! Which evaluation items does a document contain, and how certain is that?
//!
//! Texts of items are short and may be anywhere in a document. Runs of five words locate candidates, where the words of
//! both are aligned. The weight of the parts of an item depends on how often they occur elsewhere: what an item shares
//! with other items or many documents is weak evidence. Verdicts therefore follow after all documents have been
//! counted.

mod align;
mod judge;
mod scan;
mod table;
#[cfg(test)]
mod tests;

pub use judge::{Agreement, judge};
pub use scan::ItemCounts;
pub use scan::{ItemScanner, Matches};
pub use table::{ItemTable, NGRAM};
