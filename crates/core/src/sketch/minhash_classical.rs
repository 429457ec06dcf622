//! How is each slot of a signature filled by its own permutation?
//!
//! Source: Broder, On the resemblance and containment of documents, SEQUENCES 1997. The cost is slots x features
//! hashes; bucket filling gives less variance for far less work.

use crate::isa::{Isa, compiled};

use super::minhash_expansion::Expansion;
use super::minhash_values::{folded_key, least_hash_body};

/// Writes the low 32 bits of the least hash of every slot. The expansion must not be empty.
pub(super) fn fill(expansion: &mut Expansion<'_>, seed: u64, isa: Isa, out: &mut [u32]) {
    let mut least = vec![u64::MAX; out.len()];
    expansion.for_each_block(|block| {
        for (slot, least) in least.iter_mut().enumerate() {
            let key = folded_key(slot as u32, seed);
            *least = (*least).min(least_hash(block, key, isa));
        }
    });
    for (value, &least) in out.iter_mut().zip(&least) {
        *value = least as u32;
    }
}

/// Returns the least hash of the features of a block under one key.
fn least_hash(block: &[u64], key: u64, isa: Isa) -> u64 {
    compiled!(isa, least_hash_body, (block: &[u64], key: u64) -> u64)
}
