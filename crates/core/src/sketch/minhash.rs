//! What is the signature of a weighted feature set?
//!
//! Two schemes give `num_slots` values whose fraction of equal slots is an unbiased estimate of the Jaccard similarity
//! of two feature sets: bucket filling (cheap, and with lower variance) and classical permutations. The exact rules are
//! in `docs/developers/definitions.md`.

use crate::isa::Isa;

use super::minhash_datasketch::Permutations;
use super::minhash_expansion::Expansion;
use super::{minhash_bucket, minhash_classical};

/// How the slots of a signature get their values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scheme {
    /// Fast similarity sketching: rounds in which every feature competes for one slot, until all are filled.
    Bucket,
    /// One permutation of all features per slot.
    Classical,
    /// Like version 2 of the package `datasketch`.
    Affine32,
    /// Like all earlier versions of that package.
    Legacy,
}

named!(Scheme {
    Bucket: "bucket",
    Classical: "classical",
    Affine32: "affine32",
    Legacy: "legacy",
});

/// Computes signatures, reusing its memory; keep one per thread.
#[derive(Debug, Clone)]
pub struct MinHasher {
    num_slots: u32,
    scheme: Scheme,
    seed: u64,
    /// The permutations of the package `datasketch`, if the scheme is one of its.
    permutations: Option<Permutations>,
    isa: Isa,
    /// See [`Expansion`].
    folded: Vec<u64>,
    /// A value for every slot; `u64::MAX` while unfilled (values have 32 bits).
    slots: Vec<u64>,
}

impl MinHasher {
    /// Creates a hasher; as in NumPy's generator, [`Scheme::Affine32`] and [`Scheme::Legacy`] use 32 bits of the seed.
    pub fn new(num_slots: u32, scheme: Scheme, seed: u64, isa: Isa) -> Self {
        assert!(
            (1..=65535).contains(&num_slots),
            "num_slots = {num_slots}, not in 1..=65535"
        );
        MinHasher {
            num_slots,
            scheme,
            seed,
            permutations: match scheme {
                Scheme::Affine32 => Some(Permutations::affine32(num_slots, seed as u32)),
                Scheme::Legacy => Some(Permutations::legacy(num_slots, seed as u32)),
                Scheme::Bucket | Scheme::Classical => None,
            },
            isa,
            folded: Vec::new(),
            slots: Vec::new(),
        }
    }

    /// Writes the 32-bit value of every slot to `out`; a feature of weight v stands for v features
    /// ([`expand`](crate::hash::expand)), and without any, every slot is `u32::MAX`.
    pub fn sketch(&mut self, features: &[u64], weights: &[u32], out: &mut [u32]) {
        assert_eq!(out.len(), self.num_slots as usize, "slots of the signature");
        let mut expansion = Expansion::new(features, weights, self.isa, &mut self.folded);
        if expansion.is_empty {
            out.fill(u32::MAX);
            return;
        }
        if let Some(permutations) = &self.permutations {
            permutations.fill(&mut expansion, out);
            return;
        }
        match self.scheme {
            Scheme::Bucket => {
                self.slots.clear();
                self.slots.resize(out.len(), u64::MAX);
                minhash_bucket::fill(&mut expansion, self.seed, self.isa, &mut self.slots);
                for (value, &slot) in out.iter_mut().zip(&self.slots) {
                    *value = slot as u32;
                }
            }
            _ => minhash_classical::fill(&mut expansion, self.seed, self.isa, out),
        }
    }
}
