//! Which values are near a value?

/// A mask that turns a value into a neighbor by XOR.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Flip {
    pub(crate) mask: u64,
    /// Number of its ones.
    pub(crate) weight: u32,
}

/// Flips over a run of bits, in ascending order of weight.
#[derive(Debug, Clone)]
pub(crate) struct Flips {
    flips: Vec<Flip>,
    /// Number of flips of weight `radius` or less.
    ends: Vec<usize>,
}

impl Flips {
    /// Creates the flips of weight 0 to `radius` over the `bits` bits from bit `shift` on.
    pub(crate) fn new(bits: u32, shift: u32, radius: u32) -> Self {
        let mut flips = vec![Flip { mask: 0, weight: 0 }];
        let mut ends = vec![1];
        for weight in 1..=radius.min(bits) {
            // All numbers with that many ones in ascending order, each from the previous one (Gosper).
            let mut mask = (1_u64 << weight) - 1;
            while mask >> bits == 0 {
                flips.push(Flip {
                    mask: mask << shift,
                    weight,
                });
                let lowest = mask & mask.wrapping_neg();
                let carried = mask + lowest;
                mask = carried | ((mask ^ carried) / lowest) >> 2;
            }
            ends.push(flips.len());
        }
        Flips { flips, ends }
    }

    /// Returns the flips of weight `radius` or less.
    #[inline(always)]
    pub(crate) fn within(&self, radius: u32) -> &[Flip] {
        let last = self.ends.len() - 1;
        &self.flips[..self.ends[last.min(radius as usize)]]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_neighbor_comes_once_by_weight() {
        for (bits, shift, most) in [(0, 3, 2), (5, 0, 0), (7, 2, 3), (4, 1, 9), (16, 4, 16)] {
            let flips = Flips::new(bits, shift, most);
            for radius in 0..=most + 1 {
                let mut expected: Vec<u64> = (0..1_u64 << bits)
                    .filter(|mask| mask.count_ones() <= radius.min(most))
                    .map(|mask| mask << shift)
                    .collect();
                expected.sort_by_key(|mask| mask.count_ones());
                let found = flips.within(radius);
                assert!(
                    found
                        .iter()
                        .all(|flip| flip.mask.count_ones() == flip.weight)
                );
                let masks: Vec<u64> = found.iter().map(|flip| flip.mask).collect();
                assert_eq!(masks, expected);
            }
        }
    }
}
