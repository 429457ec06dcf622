//! What is the feature of consecutive tokens?

use crate::hash::{SHINGLE_MULTIPLIER, mix64};

/// Calls `take` with the first place and the polynomial of every run of `width` hashes, 1 <= width <= hashes.len().
#[inline(always)]
pub(super) fn windows(hashes: &[u64], width: usize, mut take: impl FnMut(usize, u64)) {
    let leaving = (0..width).fold(1u64, |power, _| power.wrapping_mul(SHINGLE_MULTIPLIER));
    let mut sum = hashes[..width]
        .iter()
        .fold(0, |sum, &hash| append(sum, hash));
    take(0, sum);
    for (first, (&gone, &come)) in hashes.iter().zip(&hashes[width..]).enumerate() {
        sum = append(sum, come).wrapping_sub(gone.wrapping_mul(leaving));
        take(first + 1, sum);
    }
}

/// The feature of a polynomial.
#[inline(always)]
pub(super) const fn feature_of(sum: u64) -> u64 {
    mix64(sum)
}

#[inline(always)]
const fn append(sum: u64, hash: u64) -> u64 {
    sum.wrapping_mul(SHINGLE_MULTIPLIER).wrapping_add(hash)
}

/// Replaces n >= width >= 1 token hashes by the n - width + 1 shingles of them.
pub(super) fn shingle(hashes: &mut Vec<u64>, width: usize) {
    let leaving = (0..width).fold(1u64, |power, _| power.wrapping_mul(SHINGLE_MULTIPLIER));
    let mut sum = hashes[..width]
        .iter()
        .fold(0, |sum, &hash| append(sum, hash));
    let num_shingles = hashes.len() - width + 1;
    for i in 0..num_shingles {
        let first = hashes[i];
        hashes[i] = mix64(sum);
        if i + width < hashes.len() {
            sum = append(sum, hashes[i + width]).wrapping_sub(first.wrapping_mul(leaving));
        }
    }
    hashes.truncate(num_shingles);
}
