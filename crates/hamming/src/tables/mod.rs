//! Which earlier positions are near each later one?
//!
//! [`HammingTables`] uses one of two plans: tables on blocks of 16 bits whose neighbors are probed (generalized
//! pigeonhole principle; Manku et al. 2007, Norouzi et al. 2014), and a blocked scan. The choice depends on cost and
//! never affects the result.

mod block_table;
mod hamming_tables;
mod probe;
mod request;
mod scan;
#[cfg(test)]
mod tests;

pub use hamming_tables::{HammingPairs, HammingTables, Strategy};
