//! How are tables, and fingerprints not yet in a table, searched?

pub(super) mod batch;
pub(super) mod matches;
pub(super) mod pass;
pub(super) mod resolve;
pub(super) mod scanned;
