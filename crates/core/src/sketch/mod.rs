//! What small summary of a feature set shows how alike two documents are?
//!
//! [`simhash`](fn@simhash) answers by angle: fingerprints whose Hamming distance grows with the
//! angle between the weighted feature vectors. [`MinHasher`] answers by
//! resemblance: signatures whose share of equal slots estimates the Jaccard similarity.
//! [`BloomHasher`] sets bits of a filter that unions and counts of bits tell apart.
//! [`Sample`] keeps few features of each set, [`Signatures`] compares rows of them. Every vector kernel gives the bits of
//! the plain one.

pub mod bloom;
pub mod minhash;
pub mod samples;
pub mod signatures;
pub mod simhash;

pub use bloom::BloomHasher;
pub use minhash::{MinHasher, Scheme};
pub use samples::Sample;
pub use signatures::Signatures;
pub use simhash::simhash;

mod mersenne_twister;
#[cfg(target_arch = "x86_64")]
mod minhash_avx2;
#[cfg(target_arch = "x86_64")]
mod minhash_avx512;
mod minhash_bucket;
mod minhash_classical;
mod minhash_datasketch;
mod minhash_expansion;
#[cfg(target_arch = "aarch64")]
mod minhash_neon;
mod minhash_values;
#[cfg(target_arch = "x86_64")]
mod simhash_avx2;
#[cfg(target_arch = "x86_64")]
mod simhash_avx512;
#[cfg(target_arch = "aarch64")]
mod simhash_neon;
mod simhash_plain;

#[cfg(test)]
mod statistics_tests;
#[cfg(test)]
mod tests;
