//! Which fingerprints differ in at most `within` bits?
//!
//! Exact for any width up to 256 bits and any radius. A module uses only modules that precede it in this list:
//!
//! - foundations: `distance` (what a fingerprint is), `kernels` (eight comparisons at a time), `radius` (which radius a
//!   similarity needs);
//! - [`plan`]: which tables find every pair, and what do they cost?
//! - [`join`]: which pairs of one set or of two are near, even if the sets do not fit in memory?
//! - [`index`]: which fingerprints of a large, changing set are near a query?
//!
//! The input is fingerprints, the output is rows and distances: this crate does not read files, the environment or the
//! clock, and does not print.

mod distance;
pub mod index;
pub mod join;
mod kernels;
pub mod plan;
mod radius;

pub use distance::{Fingerprints, distance};
pub use radius::radius_for;
