//! What is a table, how is it built, and how is it laid out in memory or in a file?

pub(super) mod build;
pub(super) mod builder;
pub(super) mod directory;
pub(super) mod kernel;
pub(super) mod packed;
pub(super) mod permutation;
pub(super) mod rows;
pub(super) mod stream;
#[allow(clippy::module_inception, reason = "one table of the tables")]
pub(super) mod table;
pub(super) mod words;
