//! Which pairs of documents share a band of MinHash slots?
//!
//! Useful for Jaccard similarity and what follows from it. A bucket level holds its first [`BUCKET_SIZE`] members in order of priority;
//! later ones go on to a level keyed by more slots. So the pairs that are compared depend on signatures and order alone, stay
//! bounded on piles of templates, and an index that takes documents one by one finds the same ones.

mod buckets;
mod candidates;
mod crowd;
mod entries;
mod grouping;
mod keys;
mod plan;
mod position_set;
mod shapes;
#[cfg(test)]
mod tests;

pub use buckets::{BandBuckets, BucketView};
pub use candidates::Pairs;
pub use crowd::Crowd;
pub use entries::{BandEntries, BandFiller, Chunk};
pub use keys::BandKey;
pub use plan::{BandPlan, min_equal_slots, plan_bands, s_curve};
pub use shapes::check_bands;

/// Members that a bucket level holds.
pub const BUCKET_SIZE: usize = 64;
/// Levels of a band: keys of `rows`, `2 * rows` and `4 * rows` bits or slots.
pub const NUM_LEVELS: u32 = 3;
