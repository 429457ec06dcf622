//! Which fingerprints differ in at most `within` bits?
//!
//! Exact for any width up to 256 bits and any radius, except for [`bit_bands`], whose recall is known. A module uses
//! only modules that precede it in this list:
//!
//! - foundations: `distance` (what a fingerprint is), `kernels` (eight comparisons at a time), `code_planes` (memory
//!   layout), `radius` (which radius a similarity needs);
//! - [`plan`]: which tables find every pair, and what do they cost?
//! - `tables`: which earlier documents of one set are near each later one? [`HammingTables`];
//! - [`stream`]: which queries are near the codes of a stream that is read once?
//! - [`bit_bands`]: which pairs agree in bands of bits, at a known recall?
//! - [`join`]: which pairs of one set or of two are near, even if the sets do not fit in memory?
//! - [`index`]: which fingerprints of a large, changing set are near a query?
//!
//! The input is fingerprints, the output is rows and distances: this crate does not read files, the environment or the
//! clock, and does not print.

pub mod bit_bands;
mod code_planes;
mod distance;
pub mod index;
pub mod join;
mod kernels;
pub mod plan;
mod radius;
pub mod stream;
mod tables;

pub use distance::{Fingerprints, distance};
pub use radius::radius_for;
pub use tables::{HammingPairs, HammingTables, Strategy};

/// Number of bits of a block, the key of a table.
const BLOCK_BITS: u32 = 16;
/// Number of values of a block.
const NUM_BLOCK_VALUES: usize = 1 << BLOCK_BITS;
