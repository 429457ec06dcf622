//! Which positions form a block?

use super::Key;
use super::statistics::{BitStatistics, mismatch};

/// How positions are assigned to blocks.
#[derive(Clone, Debug, PartialEq)]
pub enum Division {
    /// Runs of neighboring positions.
    Contiguous,
    /// By the fraction of ones at each position of the data, so that blocks are about equally selective.
    Balanced(BitStatistics),
}

impl Division {
    /// Returns P(two codes of the data differ) at each of `bits` positions: 2 p (1 - p), or 1/2 if nothing is known.
    pub fn mismatch(&self, bits: u32) -> Vec<f64> {
        match self {
            Division::Balanced(known) => mismatch(&known.ones),
            _ => vec![0.5; bits as usize],
        }
    }

    /// Mean correlation between two positions being different; 0 if nothing is known.
    pub fn dependence(&self) -> f64 {
        match self {
            Division::Balanced(known) => known.dependence,
            _ => 0.0,
        }
    }

    /// Returns the positions of blocks with these widths, which must sum to the number of positions.
    pub fn deal(&self, widths: &[u32]) -> Vec<Vec<u32>> {
        let bits: u32 = widths.iter().sum();
        if *self == Division::Contiguous {
            let mut positions = 0..bits;
            let mut block = |&width: &u32| positions.by_ref().take(width as usize).collect();
            return widths.iter().map(&mut block).collect();
        }
        // The most selective positions first, to the block furthest behind (longest processing time first).
        let mut blocks: Vec<Vec<u32>> = vec![Vec::new(); widths.len()];
        // Bits of collision entropy: how much a position reduces the size of a bucket.
        let information: Vec<f64> = self
            .mismatch(bits)
            .iter()
            .map(|differs| -libm::log2(1.0 - differs))
            .collect();
        let mut order: Vec<u32> = (0..bits).collect();
        order.sort_by(|&a, &b| {
            information[b as usize]
                .total_cmp(&information[a as usize])
                .then(a.cmp(&b))
        });
        let mut held = vec![0.0; widths.len()];
        for bit in order {
            let behind = |block: usize| held[block] / f64::from(widths[block]);
            let block = (0..widths.len())
                .filter(|&block| blocks[block].len() < widths[block] as usize)
                .min_by(|&a, &b| behind(a).total_cmp(&behind(b)))
                .unwrap_or(0);
            held[block] += information[bit as usize];
            blocks[block].push(bit);
        }
        blocks
    }
}

/// Returns the widths of `num_blocks` blocks, as equal as possible, the wider first.
pub fn even_widths(bits: u32, num_blocks: u32) -> Vec<u32> {
    (0..num_blocks)
        .map(|block| bits / num_blocks + u32::from(block < bits % num_blocks))
        .collect()
}

pub(super) fn key_of_blocks<'a>(
    blocks: impl IntoIterator<Item = &'a Vec<u32>>,
    radius: u32,
) -> Key {
    Key::of_bits(blocks.into_iter().flatten().copied(), radius)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_position_is_dealt_once() {
        let skewed: Vec<f64> = (0..64).map(|bit| f64::from(bit) / 70.0).collect();
        for division in [Division::Contiguous, balanced(skewed)] {
            for widths in [vec![64], vec![22, 21, 21], vec![16; 4], vec![40, 4, 20]] {
                let blocks = division.deal(&widths);
                let sizes: Vec<u32> = blocks.iter().map(|block| block.len() as u32).collect();
                assert_eq!(sizes, widths);
                let mut all: Vec<u32> = blocks.concat();
                all.sort();
                assert_eq!(all, (0..64).collect::<Vec<_>>());
            }
        }
        assert_eq!(Division::Contiguous.deal(&[2, 2, 2])[1], [2, 3]);
    }

    #[test]
    fn near_constant_positions_are_spread() {
        // The upper half of the positions is almost constant.
        let ones: Vec<f64> = (0..64)
            .map(|bit| if bit < 32 { 0.5 } else { 0.001 })
            .collect();
        for block in balanced(ones).deal(&[16; 4]) {
            assert_eq!(block.iter().filter(|&&bit| bit < 32).count(), 8);
        }
    }

    #[test]
    fn blocks_are_as_even_as_can_be() {
        assert_eq!(even_widths(64, 6), [11, 11, 11, 11, 10, 10]);
    }

    fn balanced(ones: Vec<f64>) -> Division {
        Division::Balanced(BitStatistics {
            ones,
            dependence: 0.0,
        })
    }
}
