//! Which Bloom filters share so many bits that their documents may reach a threshold?
//!
//! Whatever is asked of two filters, it is a least number of bits that both must have, given how many each has: so one join serves all
//! measures. [`Demand`] says how many; [`BloomJoin`] compares filters in order of their numbers of bits, so that those too small or
//! too large for each other are not looked at (Bayardo, Ma, Srikant, Scaling up all pairs similarity search, WWW 2007). A filter
//! nominates and never proves: the module `verify` measures what is listed here.
//!
//! How many bits a pair must share follows from a model of chance, which gives the stated recall.

mod demand;
mod join;
mod kernels;
mod levels;
mod rows;
#[cfg(test)]
mod tests;

pub use demand::{BitMeasure, Demand, Measure};
pub use join::{BloomJoin, BloomPairs};

/// Most bits of a filter.
pub const MAX_BITS: u32 = 1 << 16;

/// Number of bits that are set.
pub fn num_set(filter: &[u64]) -> u32 {
    filter.iter().map(|word| word.count_ones()).sum()
}

/// The positions of the bits that are set, rising.
pub fn positions(filter: &[u64]) -> impl Iterator<Item = u64> {
    filter
        .iter()
        .zip((0..).step_by(64))
        .flat_map(|(&word, first)| {
            let next = |left: &u64| Some(left & (left - 1)).filter(|&left| left != 0);
            let lefts = std::iter::successors(Some(word).filter(|&word| word != 0), next);
            lefts.map(move |left| first + u64::from(left.trailing_zeros()))
        })
}
