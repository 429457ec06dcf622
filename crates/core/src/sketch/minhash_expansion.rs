//! Which features does a weighted set represent?

use crate::features::total_weight;
use crate::hash::expand;
use crate::isa::Isa;

use super::minhash_values::fold;

/// Maximum copies of weighted features in memory; larger expansions are computed again for every round.
const EXPANSION_LEN: usize = 1 << 16;

/// The expansion in blocks of folded features, padded to a multiple of [`Expansion::LANES`] by repeating some, which
/// changes no minimum.
pub(super) struct Expansion<'a> {
    features: &'a [u64],
    weights: &'a [u32],
    block: &'a mut Vec<u64>,
    /// Whether `block` holds the whole expansion.
    is_whole: bool,
    pub(super) is_empty: bool,
}

impl<'a> Expansion<'a> {
    /// Block lengths are multiples of this.
    pub(super) const LANES: usize = 8;

    pub(super) fn new(
        features: &'a [u64],
        weights: &'a [u32],
        isa: Isa,
        block: &'a mut Vec<u64>,
    ) -> Self {
        let total = total_weight(features, weights);
        let mut expansion = Expansion {
            features,
            weights,
            block,
            is_whole: true,
            is_empty: total == 0,
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

    fn pad(&mut self) {
        if let Some(&first) = self.block.first() {
            let len = self.block.len().next_multiple_of(Self::LANES);
            self.block.resize(len, first);
        }
    }

    /// Returns the block with the whole expansion, or `None` if there are several blocks.
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
        // SAFETY: an `Isa` of this kind is created only if the processor has it.
        Isa::Avx512(_) => unsafe { super::minhash_avx512::expand_all(features, weights, block) },
        _ => {
            for (&feature, &weight) in features.iter().zip(weights) {
                block.extend((1..=weight).map(|copy| fold(expand(feature, copy))));
            }
        }
    }
}

#[cfg(test)]
mod tests {
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
