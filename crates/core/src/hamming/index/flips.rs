//! Which values lie near a value?

/// Masks of one weight after the other over a run of bits: XORed to a value they give its neighbours.
#[derive(Debug, Clone)]
pub(super) struct Flips {
    masks: Vec<u64>,
    /// Number of masks of weight `radius` or less.
    ends: Vec<usize>,
}

impl Flips {
    /// Masks of weight 0 to `radius` over the `bits` bits from bit `shift` on.
    pub(super) fn new(bits: u32, shift: u32, radius: u32) -> Self {
        let mut masks = vec![0_u64];
        let mut ends = vec![1];
        for weight in 1..=radius.min(bits) {
            // All numbers of that many ones in ascending order, each from the one before (Gosper).
            let mut mask = (1_u64 << weight) - 1;
            while mask >> bits == 0 {
                masks.push(mask << shift);
                let lowest = mask & mask.wrapping_neg();
                let carried = mask + lowest;
                mask = carried | ((mask ^ carried) / lowest) >> 2;
            }
            ends.push(masks.len());
        }
        Flips { masks, ends }
    }

    /// Greatest weight there is.
    #[inline(always)]
    pub(super) fn max_weight(&self) -> u32 {
        self.ends.len() as u32 - 1
    }

    /// Masks of exactly that weight.
    #[inline(always)]
    pub(super) fn of_weight(&self, weight: u32) -> &[u64] {
        let weight = weight as usize;
        let start = if weight == 0 {
            0
        } else {
            self.ends[weight - 1]
        };
        &self.masks[start..self.ends[weight]]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_neighbour_comes_once_by_weight() {
        for (bits, shift, radius) in [(0, 3, 2), (5, 0, 0), (7, 2, 3), (4, 1, 9), (16, 4, 16)] {
            let flips = Flips::new(bits, shift, radius);
            assert_eq!(flips.max_weight(), radius.min(bits));
            for weight in 0..=flips.max_weight() {
                let expected: Vec<u64> = (0..1_u64 << bits)
                    .filter(|mask| mask.count_ones() == weight)
                    .map(|mask| mask << shift)
                    .collect();
                assert_eq!(flips.of_weight(weight), expected);
            }
        }
    }
}
