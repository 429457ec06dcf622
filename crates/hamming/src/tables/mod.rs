//! Which earlier positions lie near each later one?
//!
//! Two plans stand behind [`HammingTables`]: tables on blocks of 16 bits whose neighbors are probed (generalized pigeonhole; Manku et
//! al. 2007, Norouzi et al. 2014), and a blocked scan. Which one runs is a matter of cost, never of the result.

mod block_table;
mod hamming_tables;
mod probe;
mod request;
mod scan;
#[cfg(test)]
mod tests;

pub use hamming_tables::{HammingPairs, HammingTables, Strategy};
