//! What has been decided about a document?
//!
//! One byte per position. The modules that pair documents read it to skip irrelevant pairs; `groups` writes it.

pub const UNDECIDED: u8 = 0;
pub const KEPT: u8 = 1;
/// Removed: a kept document of higher priority matches it.
pub const REMOVED: u8 = 2;
