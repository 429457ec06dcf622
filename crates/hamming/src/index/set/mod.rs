//! What is a set of fingerprints that come and go while others are looked for?

pub(super) mod choice;
pub(super) mod hamming_set;
pub(super) mod parts;
pub(super) mod search;
pub(super) mod segment;
pub(super) mod state;
