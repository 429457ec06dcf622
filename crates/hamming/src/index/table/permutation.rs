//! How are the bits of a key moved to the top of a code?

use crate::plan::Key;

/// An order of the bits: those of the key first, then the others, each from high to low. The first word holds the first
/// 64, the first one highest, so permuted codes compare like their bit strings.
#[derive(Debug, Clone)]
pub(crate) struct Permutation {
    bits: u32,
    /// The key within the first word, for codes of one word.
    #[cfg_attr(
        not(target_arch = "x86_64"),
        expect(dead_code, reason = "PEXT alone reads it")
    )]
    mask: u64,
    #[cfg_attr(
        not(target_arch = "x86_64"),
        expect(dead_code, reason = "PEXT alone reads it")
    )]
    key_width: u32,
    runs: Vec<Run>,
}

/// Neighboring bits that remain neighbors.
#[derive(Debug, Clone, Copy)]
struct Run {
    from_word: usize,
    from_shift: u32,
    to_word: usize,
    to_shift: u32,
    mask: u64,
}

impl Permutation {
    pub(crate) fn new(bits: u32, key: &Key) -> Self {
        let positions = (0..bits)
            .rev()
            .filter(|&bit| key.contains(bit))
            .chain((0..bits).rev().filter(|&bit| !key.contains(bit)));
        let mut runs: Vec<Run> = Vec::new();
        for (place, bit) in (0..bits).zip(positions) {
            let to_word = (place / 64) as usize;
            let bits_of_word = (bits - 64 * to_word as u32).min(64);
            let to_shift = bits_of_word - 1 - place % 64;
            let (from_word, from_shift) = ((bit / 64) as usize, bit % 64);
            match runs.last_mut() {
                Some(run)
                    if run.to_word == to_word
                        && run.from_word == from_word
                        && run.to_shift == to_shift + 1
                        && run.from_shift == from_shift + 1 =>
                {
                    run.to_shift = to_shift;
                    run.from_shift = from_shift;
                    run.mask = run.mask << 1 | 1;
                }
                _ => runs.push(Run {
                    from_word,
                    from_shift,
                    to_word,
                    to_shift,
                    mask: 1,
                }),
            }
        }
        Permutation {
            bits,
            mask: key.mask[0],
            key_width: key.width(),
            runs,
        }
    }

    /// Number of bits of the first word of a permuted code.
    pub(crate) fn top_bits(&self) -> u32 {
        self.bits.min(64)
    }

    #[inline(always)]
    pub(crate) fn apply<const W: usize>(&self, code: &[u64; W]) -> [u64; W] {
        let mut permuted = [0; W];
        for run in &self.runs {
            permuted[run.to_word % W] |=
                (code[run.from_word % W] >> run.from_shift & run.mask) << run.to_shift;
        }
        permuted
    }

    /// Returns the code of a permuted code.
    #[inline(always)]
    pub(crate) fn invert<const W: usize>(&self, permuted: &[u64; W]) -> [u64; W] {
        let mut code = [0; W];
        for run in &self.runs {
            code[run.from_word % W] |=
                (permuted[run.to_word % W] >> run.to_shift & run.mask) << run.from_shift;
        }
        code
    }

    /// [`apply`](Self::apply) for codes of one word. Safety: the processor must have BMI2.
    #[cfg(target_arch = "x86_64")]
    #[inline(always)]
    pub(crate) unsafe fn apply_bmi2(&self, code: u64) -> u64 {
        use std::arch::x86_64::_pext_u64;
        let all = u64::MAX >> (64 - self.bits.min(64));
        // SAFETY: the caller's processor has BMI2.
        let (top, low) = unsafe {
            (
                _pext_u64(code, self.mask),
                _pext_u64(code, all & !self.mask),
            )
        };
        let low_bits = self.bits - self.key_width;
        // For a key of all 64 bits, nothing remains to be shifted; an empty key is impossible.
        top.wrapping_shl(low_bits) | low
    }
}

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
    use likewise_core::hash::mix64;

    #[test]
    fn key_bits_come_first_and_all_come_back() {
        for (bits, positions) in [
            (64, (0..16).collect::<Vec<u32>>()),
            (64, (0..64).step_by(3).collect()),
            (64, (0..64).collect()),
            (32, vec![31, 0, 5]),
            (96, (40..80).collect()),
            (256, (0..256).filter(|bit| bit % 7 == 2).collect()),
        ] {
            let key = Key::of_bits(positions.iter().copied(), 0);
            let permutation = Permutation::new(bits, &key);
            for i in 0..50 {
                let mut code: [u64; 4] = std::array::from_fn(|w| mix64(i * 4 + w as u64));
                for bit in bits..256 {
                    code[bit as usize / 64] &= !(1 << (bit % 64));
                }
                let permuted = permutation.apply(&code);
                assert_eq!(permutation.invert(&permuted), code);
                let mut descending = positions.clone();
                descending.sort_by_key(|&bit| std::cmp::Reverse(bit));
                for (place, bit) in descending.iter().enumerate().take(64) {
                    let expected = code[*bit as usize / 64] >> (bit % 64) & 1;
                    let top_bits = permutation.top_bits() as usize;
                    if place < top_bits {
                        assert_eq!(permuted[0] >> (top_bits - 1 - place) & 1, expected);
                    }
                }
                #[cfg(target_arch = "x86_64")]
                if bits <= 64 && likewise_core::isa::Isa::avx2().is_some() {
                    // SAFETY: AVX2 was detected together with BMI2.
                    assert_eq!(unsafe { permutation.apply_bmi2(code[0]) }, permuted[0]);
                }
            }
        }
    }
}

#[cfg(test)]
mod flips_tests {
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
