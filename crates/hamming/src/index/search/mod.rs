//! What do tables, and what waits to become one, hold near a query?

pub(super) mod batch;
pub(super) mod hits;
pub(super) mod large_bucket;
pub(super) mod matches;
pub(super) mod pass;
pub(super) mod regions;
pub(super) mod resolve;
pub(super) mod scanned;
