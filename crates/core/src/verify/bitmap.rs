//! At most how much can two feature sets share, told without reading their features?

/// Copies of a feature beyond this many have no bit.
const MAX_COPIES: u32 = 15;

/// Bits aimed at for each copy: the size is the power of two from this to less than twice this.
const MIN_BITS_PER_COPY: u64 = 8;

/// Greatest size: 2^26 bits, 8 MiB.
const MAX_SIZE_BITS: u32 = 26;

/// A bit for each copy of a feature, at a place hashed from feature and copy.
#[derive(Debug, Clone)]
pub(super) struct Bitmap {
    words: Box<[u64]>,
    /// Total weight less the bits set: copies that share a bit with another or have none.
    slack: u64,
}

impl Bitmap {
    pub(super) fn new(features: &[u64], weights: &[u32], total: u64) -> Self {
        let num_copies: u64 = if weights.is_empty() {
            total
        } else {
            weights
                .iter()
                .map(|&weight| u64::from(weight.min(MAX_COPIES)))
                .sum()
        };
        let size_bits = (num_copies.max(1) * MIN_BITS_PER_COPY)
            .next_power_of_two()
            .clamp(64, 1 << MAX_SIZE_BITS);
        let mut words = vec![0u64; (size_bits / 64) as usize].into_boxed_slice();
        let mask = size_bits - 1;
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
        Bitmap {
            words,
            slack: total - num_set,
        }
    }

    pub(super) fn num_bytes(&self) -> usize {
        size_of_val::<[u64]>(&self.words)
    }

    /// An upper bound of the sum of the lesser weights over the features shared with another set.
    ///
    /// Let S be the copies (feature, number) that both sets hold, so that |S| is the sum wanted, and
    /// h(S) the bits they set. h(S) lies in both bitmaps, so |h(S)| <= popcount(A & B). Adding a copy to
    /// a set of copies raises its size by one and its bits by at most one, so size less bits never falls
    /// as sets grow: |S| - |h(S)| <= slack of A, as S lies in A; the same for B. Hence
    /// |S| <= popcount(A & B) + min(slack A, slack B). Copies without a bit only weaken the bound.
    ///
    /// A larger bitmap is folded to the size of the smaller by `or` of its parts: places are taken
    /// modulo the size, so the result is the bitmap of that size, with a slack to match.
    pub(super) fn bound(&self, other: &Bitmap) -> u64 {
        let (small, large) = if self.words.len() <= other.words.len() {
            (self, other)
        } else {
            (other, self)
        };
        let mut num_common = 0;
        if small.words.len() == large.words.len() {
            for (a, b) in small.words.iter().zip(&large.words) {
                num_common += u64::from((a & b).count_ones());
            }
            return num_common + small.slack.min(large.slack);
        }
        let mut num_lost: u64 = large.slack;
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

/// Where the bit of a copy (from 0) of a feature goes, before the size is applied.
///
/// The middle bits of the product depend on the low half of the feature and mix well enough for a
/// filter; a poor spread costs time, never a result.
#[inline(always)]
fn place(feature: u64, copy: u32) -> u64 {
    let copy = feature.wrapping_add(u64::from(copy).wrapping_mul(0xD6E8_FEB8_6659_FD93));
    (copy ^ copy >> 32).wrapping_mul(0xC2B2_AE3D_27D4_EB4F) >> 32
}
