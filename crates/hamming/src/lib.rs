//! Which fingerprints differ in at most `within` bits?
//!
//! Exact for any width up to 256 bits and any radius, but for [`bit_bands`], whose recall is known. A module uses only modules that stand
//! before it in this list:
//!
//! - the ground: `distance` (what a fingerprint is), `kernels` (eight comparisons at a time), `code_planes` (how they lie in memory),
//!   `radius` (which radius a similarity needs);
//! - [`plan`]: which tables find every pair, and what do they cost?
//! - `tables`: which earlier documents of one set lie near each later one? [`HammingTables`];
//! - [`stream`]: which earlier ones, while documents arrive?
//! - [`bit_bands`]: which pairs agree in bands of bits, at a known recall?
//! - [`join`]: which are all pairs of one set or of two, larger than memory if need be?
//! - [`index`]: which fingerprints of a large set, one that grows and shrinks, lie near a query?
//!
//! Fingerprints go in, rows and distances come out: nothing here reads files, environment or clock, or prints.

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

/// Bits of a block, the key of a table.
const BLOCK_BITS: u32 = 16;
/// Values a block can take.
const NUM_BLOCK_VALUES: usize = 1 << BLOCK_BITS;
