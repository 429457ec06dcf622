//! Which fingerprints differ in at most `within` bits?
//!
//! Exact for any width and any radius. Two plans stand behind [`HammingTables`]: tables on blocks of 16 bits whose neighbours are
//! probed (generalised pigeonhole; Manku et al. 2007, Norouzi et al. 2014), and a blocked scan. Which one runs is a matter of
//! cost, never of the result. [`join`] lists all pairs of one set or of two, larger than memory if need be.

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
