//! Which Bloom filters share so many bits that their documents may reach a threshold?
//!
//! Every condition on two filters is a minimum number of bits that both must have, given how many each has, so one join
//! serves all measures. [`Demand`] gives this number. [`BloomJoin`] compares filters in order of their numbers of bits,
//! so that filters too small or too large for each other are skipped (Bayardo, Ma, Srikant, Scaling up all pairs
//! similarity search, WWW 2007). A filter only proposes candidates: the module `verify` measures the pairs listed here.
//!
//! The required number of bits follows from a probabilistic model, which gives the stated recall.

mod demand;
mod join;
mod kernels;
mod rows;
#[cfg(test)]
mod tests;

pub use demand::{BitMeasure, Demand, Measure};
pub use join::BloomJoin;

pub const MAX_BITS: u32 = 1 << 16;

pub fn num_set(filter: &[u64]) -> u32 {
    filter.iter().map(|word| word.count_ones()).sum()
}

/// Returns the positions of the set bits, ascending.
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
