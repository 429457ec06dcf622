//! Which small summary of a feature set shows how similar two documents are?
//!
//! [`simhash`](fn@simhash) estimates the angle: the Hamming distance of fingerprints grows with the angle between the
//! weighted feature vectors. [`MinHasher`] estimates resemblance: the fraction of equal slots of signatures estimates
//! the Jaccard similarity. [`BloomHasher`] sets the bits of filters, which are compared by their unions and numbers of
//! bits. [`Sample`] keeps a few features of each set. [`Signatures`] compares rows of signatures. Every vector kernel
//! gives the same bits as the plain one.

pub mod bloom;
pub mod minhash;
mod minhash_bucket;
mod minhash_classical;
mod minhash_values;
pub mod samples;
pub mod signatures;
pub mod simhash;

pub use bloom::BloomHasher;
pub use minhash::{MinHasher, Scheme};
pub use samples::Sample;
pub use signatures::Signatures;
pub use simhash::simhash;

#[cfg(target_arch = "x86_64")]
mod minhash_avx2;
#[cfg(target_arch = "x86_64")]
mod minhash_avx512;
mod minhash_datasketch;
mod minhash_expansion;
#[cfg(target_arch = "x86_64")]
mod simhash_avx2;
#[cfg(target_arch = "x86_64")]
mod simhash_avx512;
mod simhash_plain;

#[cfg(test)]
mod statistics_tests;
#[cfg(test)]
mod tests;
