//! What has been decided about a document?
//!
//! One byte a position. The modules that pair documents read it to leave out pairs that cannot matter, `groups` writes it.

/// Not decided yet.
pub const UNDECIDED: u8 = 0;
/// Stays.
pub const KEPT: u8 = 1;
/// Goes: a kept document of higher priority matches it.
pub const REMOVED: u8 = 2;
