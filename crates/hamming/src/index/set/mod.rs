//! How is a set of fingerprints searched while it changes?

pub(super) mod choice;
pub(super) mod hamming_set;
pub(super) mod search;
pub(super) mod segment;
pub(super) mod state;
