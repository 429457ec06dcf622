//! What is the maximum that two feature sets can share, without reading their features?

use crate::isa::{Isa, compiled};

/// Copies of a feature beyond this number have no bit.
const MAX_COPIES: u32 = 15;

/// Target number of bits per copy: the size is the power of two from this to less than twice this.
const MIN_BITS_PER_COPY: u64 = 8;

/// Maximum size: 2^26 bits, 8 MiB.
const MAX_SIZE_BITS: u32 = 26;

/// A bit for each copy of a feature, at a place hashed from feature and copy. Without words, nothing is known.
#[derive(Debug, Clone, Copy)]
pub(super) struct Bitmap<'a> {
    /// The words; their number is a power of two.
    pub(super) words: &'a [u64],
    /// Total weight minus the number of set bits: copies that share a bit with another or have none.
    pub(super) slack: u64,
}

impl Bitmap<'_> {
    pub(super) fn num_words(weights: &[u32], total: u64) -> usize {
        let num_copies: u64 = if weights.is_empty() {
            total
        } else {
            let copies = weights.iter().map(|&weight| weight.min(MAX_COPIES));
            copies.map(u64::from).sum()
        };
        let size_bits = (num_copies * MIN_BITS_PER_COPY).next_power_of_two();
        (size_bits.clamp(64, 1 << MAX_SIZE_BITS) / 64) as usize
    }

    /// Sets the bits of a set in `words` (all 0 before); returns the slack.
    pub(super) fn fill(words: &mut [u64], features: &[u64], weights: &[u32], total: u64) -> u64 {
        let mask = words.len() as u64 * 64 - 1;
        let mut set = |feature: u64, copy: u32| {
            let bit = place(feature, copy) & mask;
            words[(bit / 64) as usize] |= 1 << (bit % 64);
        };
        for (i, &feature) in features.iter().enumerate() {
            let weight = weights.get(i).map_or(1, |&weight| weight.min(MAX_COPIES));
            for copy in 0..weight {
                set(feature, copy);
            }
        }
        let num_set: u64 = words.iter().map(|word| u64::from(word.count_ones())).sum();
        total - num_set
    }

    /// Returns an upper bound of the sum of the lesser weights over the shared features. Let S be the copies (feature,
    /// number) in both sets, so that |S| is that sum, and h(S) the bits they set: |h(S)| <= popcount(A & B). A copy
    /// adds one to the size of a set and at most one to its bits, so |S| - |h(S)| <= slack of A, as S is a subset of A,
    /// and of B. A larger bitmap is folded to the smaller size by `or` of its parts.
    #[inline(always)]
    pub(super) fn bound(self, other: Bitmap<'_>) -> u64 {
        let (small, large) = if self.words.len() <= other.words.len() {
            (self, other)
        } else {
            (other, self)
        };
        let mut num_common = 0;
        if small.words.len() == large.words.len() {
            for (a, b) in small.words.iter().zip(large.words) {
                num_common += u64::from((a & b).count_ones());
            }
            return num_common + small.slack.min(large.slack);
        }
        let mut num_lost = large.slack;
        for (i, a) in small.words.iter().enumerate() {
            let mut folded = 0;
            let mut num_set = 0;
            for part in large.words[i..].iter().step_by(small.words.len()) {
                folded |= part;
                num_set += u64::from(part.count_ones());
            }
            num_lost += num_set - u64::from(folded.count_ones());
            num_common += u64::from((a & folded).count_ones());
        }
        num_common + small.slack.min(num_lost)
    }
}

/// Computes [`Bitmap::bound`] with a given instruction set; the result is the same for each.
#[inline]
pub(super) fn bound(a: Bitmap<'_>, b: Bitmap<'_>, isa: Isa) -> u64 {
    match a.words.is_empty() || b.words.is_empty() {
        true => u64::MAX,
        false => compiled!(isa, Bitmap::bound, (a: Bitmap<'_>, b: Bitmap<'_>) -> u64),
    }
}

/// Returns the bit of a copy (from 0) of a feature; the middle bits of the product mix well enough for a filter.
#[inline(always)]
fn place(feature: u64, copy: u32) -> u64 {
    let copy = feature.wrapping_add(u64::from(copy).wrapping_mul(0xD6E8_FEB8_6659_FD93));
    (copy ^ copy >> 32).wrapping_mul(0xC2B2_AE3D_27D4_EB4F) >> 32
}
