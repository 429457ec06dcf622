//! Which pairs of documents share a band of MinHash slots?
//!
//! Used for Jaccard similarity and measures derived from it. A bucket level holds its first [`BUCKET_SIZE`] members in
//! order of priority; later documents continue on a level keyed by more slots. So the compared pairs depend only on
//! signatures and order, stay bounded on collections of templates, and are the same in an index that adds documents one
//! by one.

mod buckets;
mod candidates;
mod entries;
mod grouping;
mod plan;
mod sampled;
#[cfg(test)]
mod tests;

pub use buckets::{BandBuckets, BucketView, check_bands};
pub use entries::{BandEntries, BandFiller, BandKey, Chunk, Crowd};
pub use plan::{BandPlan, min_equal_slots, plan_bands, s_curve};
pub use sampled::SampledBands;

/// Maximum number of members of a bucket level.
pub const BUCKET_SIZE: usize = 64;
/// Number of levels of a band: keys of `rows`, `2 * rows` and `4 * rows` bits or slots.
pub const NUM_LEVELS: u32 = 3;
