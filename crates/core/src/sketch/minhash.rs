//! Which signature has a weighted feature set?
//!
//! Two schemes give `num_slots` values whose share of equal slots estimates the Jaccard similarity
//! of two feature sets without bias: bucket filling (cheap, and of lower variance) and classical
//! permutations. The exact rules are in `docs/reference/definitions.md`.

use crate::hash::{GOLDEN, expand, mix64};
use crate::isa::Isa;

use super::minhash_datasketch::Permutations;
use super::{minhash_bucket, minhash_classical};

/// Copies of weighted features held at once. Sets of more are expanded again for every round, so
/// that memory stays bounded whatever the weights.
const EXPANSION_LEN: usize = 1 << 16;

/// How the slots of a signature get their values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scheme {
    /// Fast similarity sketching: rounds in which every feature competes for one slot, until all are filled.
    Bucket,
    /// One permutation of all features for every slot.
    Classical,
    /// As version 2 of the package `datasketch` does.
    Affine32,
    /// As all earlier versions of it did.
    Legacy,
}

impl Scheme {
    /// Every scheme, in the order in which they are told.
    pub const ALL: [Scheme; 4] = [
        Scheme::Bucket,
        Scheme::Classical,
        Scheme::Affine32,
        Scheme::Legacy,
    ];

    /// Name as users write it.
    pub fn name(self) -> &'static str {
        match self {
            Scheme::Bucket => "bucket",
            Scheme::Classical => "classical",
            Scheme::Affine32 => "affine32",
            Scheme::Legacy => "legacy",
        }
    }

    /// The scheme of that name, or `None`.
    pub fn from_name(name: &str) -> Option<Scheme> {
        Scheme::ALL.into_iter().find(|scheme| scheme.name() == name)
    }
}

/// Computes signatures. Holds the scratch space, so keep one for each thread.
#[derive(Debug, Clone)]
pub struct MinHasher {
    num_slots: u32,
    scheme: Scheme,
    seed: u64,
    /// Those of the package `datasketch`, where the scheme is one of its.
    permutations: Option<Permutations>,
    isa: Isa,
    /// See [`Expansion`].
    folded: Vec<u64>,
    /// A value for every slot; `u64::MAX` while unfilled (values of slots have 32 bits).
    slots: Vec<u64>,
}

impl MinHasher {
    /// Makes a hasher for signatures of `num_slots` slots.
    ///
    /// # Panics
    /// When `num_slots` is outside 1..=65535. Of the seed of [`Scheme::Affine32`] and [`Scheme::Legacy`] only the low 32 bits
    /// count: NumPy's generator takes no more.
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

    /// Writes the 32-bit value of every slot into `out`; the caller cuts them to the width of its slots.
    ///
    /// `weights` is empty (each feature weighs 1) or as long as `features`; a feature of weight v
    /// stands for v features ([`expand`]). Without any feature every slot is `u32::MAX`. Neither order
    /// nor repetition of features matters.
    ///
    /// # Panics
    /// When `out` is not `num_slots` long or `weights` has another length than `features`.
    pub fn sketch(&mut self, features: &[u64], weights: &[u32], out: &mut [u32]) {
        assert_eq!(out.len(), self.num_slots as usize, "slots of the signature");
        assert!(
            weights.is_empty() || weights.len() == features.len(),
            "{} weights for {} features",
            weights.len(),
            features.len()
        );
        let mut expansion = Expansion::new(features, weights, self.isa, &mut self.folded);
        if expansion.is_empty() {
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

/// `x ^ (x >> 33)`, the first step of `mix64`. It is linear over exclusive or, so that
/// `mix64(f ^ k) = finish(fold(f) ^ fold(k))`: features and keys are folded once, not once a round.
#[inline(always)]
pub(super) const fn fold(x: u64) -> u64 {
    x ^ (x >> 33)
}

/// The rest of `mix64` after [`fold`], without its last step. The high 33 bits are those of `mix64`
/// already; [`fold`] of the result is `mix64`.
#[inline(always)]
pub(super) const fn finish_high(folded: u64) -> u64 {
    let mut x = folded.wrapping_mul(0xff51_afd7_ed55_8ccd);
    x ^= x >> 33;
    x.wrapping_mul(0xc4ce_b9fe_1a85_ec53)
}

/// The folded key of a round (bucket filling) or of a slot (classical).
#[inline(always)]
pub(super) const fn folded_key(round: u32, seed: u64) -> u64 {
    fold(mix64((round as u64 + 1).wrapping_mul(GOLDEN) ^ seed))
}

/// The expansion of a weighted feature set in blocks of folded features.
///
/// Every block is padded to a multiple of [`Expansion::LANES`] by features that it holds already:
/// a repeated feature changes no minimum, and the kernels need no tails.
pub(super) struct Expansion<'a> {
    features: &'a [u64],
    weights: &'a [u32],
    block: &'a mut Vec<u64>,
    /// Whether `block` holds the whole expansion.
    is_whole: bool,
    is_empty: bool,
}

impl<'a> Expansion<'a> {
    /// Blocks are a multiple of this long.
    pub(super) const LANES: usize = 8;

    fn new(features: &'a [u64], weights: &'a [u32], isa: Isa, block: &'a mut Vec<u64>) -> Self {
        let total: u64 = weights.iter().map(|&weight| u64::from(weight)).sum();
        let mut expansion = Expansion {
            features,
            weights,
            block,
            is_whole: true,
            is_empty: if weights.is_empty() {
                features.is_empty()
            } else {
                total == 0
            },
        };
        expansion.block.clear();
        if weights.is_empty() {
            expansion
                .block
                .extend(features.iter().map(|&feature| fold(feature)));
            expansion.pad();
        } else if total <= EXPANSION_LEN as u64 {
            expand_all(features, weights, isa, expansion.block);
            expansion.pad();
        } else {
            expansion.is_whole = false;
        }
        expansion
    }

    fn is_empty(&self) -> bool {
        self.is_empty
    }

    fn pad(&mut self) {
        if let Some(&first) = self.block.first() {
            let len = self.block.len().next_multiple_of(Self::LANES);
            self.block.resize(len, first);
        }
    }

    /// The one block that holds the whole expansion, unless there are several.
    pub(super) fn whole(&self) -> Option<&[u64]> {
        self.is_whole.then_some(&**self.block)
    }

    /// Calls `work` on every block, in order.
    pub(super) fn for_each_block(&mut self, mut work: impl FnMut(&[u64])) {
        if self.is_whole {
            work(self.block);
            return;
        }
        self.block.clear();
        for (&feature, &weight) in self.features.iter().zip(self.weights) {
            for copy in 1..=weight {
                self.block.push(fold(expand(feature, copy)));
                if self.block.len() == EXPANSION_LEN {
                    work(self.block);
                    self.block.clear();
                }
            }
        }
        if !self.block.is_empty() {
            self.pad();
            work(self.block);
        }
    }
}

/// Appends the folded expansion of weighted features.
fn expand_all(features: &[u64], weights: &[u32], isa: Isa, block: &mut Vec<u64>) {
    match isa {
        #[cfg(target_arch = "x86_64")]
        // SAFETY: an `Isa` of this kind is made only where the processor has it.
        Isa::Avx512(_) => unsafe { super::minhash_avx512::expand_all(features, weights, block) },
        _ => {
            for (&feature, &weight) in features.iter().zip(weights) {
                block.extend((1..=weight).map(|copy| fold(expand(feature, copy))));
            }
        }
    }
}

#[cfg(test)]
mod expansion_tests {
    use super::*;
    use crate::testing::Random;

    #[test]
    fn every_instruction_set_expands_alike() {
        let mut random = Random::new(8);
        let features: Vec<u64> = (0..200).map(|_| random.next()).collect();
        let weights: Vec<u32> = (0..200)
            .map(|i| [0, 1, 7, 8, 9, 15, 16, 40][i % 8])
            .collect();
        let mut wanted = vec![3];
        for (&feature, &weight) in features.iter().zip(&weights) {
            for copy in 1..=weight {
                wanted.push(fold(expand(feature, copy)));
            }
        }
        for isa in Isa::available() {
            let mut block = vec![3];
            expand_all(&features, &weights, isa, &mut block);
            assert_eq!(block, wanted, "{}", isa.name());
        }
    }
}
