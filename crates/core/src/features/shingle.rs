//! What is the feature of consecutive tokens?

use crate::hash::{SHINGLE_MULTIPLIER, mix64};
use crate::isa::Isa;

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
pub(super) fn shingle(hashes: &mut Vec<u64>, width: usize, isa: Isa) {
    #[cfg(target_arch = "x86_64")]
    if matches!(isa, Isa::Avx512(_)) && (2..=MAX_DIRECT_WIDTH).contains(&width) {
        // SAFETY: an `Isa` of this kind is made only where the processor has it.
        unsafe { shingle_avx512(hashes, width) };
        return;
    }
    let _ = isa;
    shingle_rolling(hashes, width);
}

/// One multiplication a hash and the next, each waiting for the one before.
fn shingle_rolling(hashes: &mut Vec<u64>, width: usize) {
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

/// Beyond, so many multiplications for each shingle cost more than waiting.
#[cfg(target_arch = "x86_64")]
const MAX_DIRECT_WIDTH: usize = 12;
/// Shingles at a time; the hashes that they are of are copied, so that none is overwritten too early.
#[cfg(target_arch = "x86_64")]
const BLOCK: usize = 256;

/// Every shingle from the beginning: more multiplications than [`shingle_rolling`], but none waits for another.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512dq,avx512vl,avx512bw,avx2")]
fn shingle_avx512(hashes: &mut Vec<u64>, width: usize) {
    let num_shingles = hashes.len() - width + 1;
    let mut copy = [0; BLOCK + MAX_DIRECT_WIDTH];
    let mut sums = [0; BLOCK];
    for start in (0..num_shingles).step_by(BLOCK) {
        let count = BLOCK.min(num_shingles - start);
        let taken = &mut copy[..count + width - 1];
        taken.copy_from_slice(&hashes[start..start + count + width - 1]);
        let sums = &mut sums[..count];
        sums.copy_from_slice(&taken[..count]);
        let out = &mut hashes[start..start + count];
        // Two at a time, so that half as many sums go through memory.
        let mut place = 1;
        while place + 1 < width {
            let pairs = taken[place..].iter().zip(&taken[place + 1..]);
            for (sum, (&first, &second)) in sums.iter_mut().zip(pairs) {
                *sum = append(append(*sum, first), second);
            }
            place += 2;
        }
        if place < width {
            for ((hash, &sum), &last) in out.iter_mut().zip(&*sums).zip(&taken[place..]) {
                *hash = mix64(append(sum, last));
            }
        } else {
            for (hash, &sum) in out.iter_mut().zip(&*sums) {
                *hash = mix64(sum);
            }
        }
    }
    hashes.truncate(num_shingles);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Random;

    #[test]
    fn every_instruction_set_makes_the_same_shingles() {
        let mut random = Random::new(3);
        for width in [1, 2, 3, 4, 5, 8, 11, 12, 13, 64] {
            for len in [width, width + 1, width + 7, 255, 256, 257, 600] {
                let hashes: Vec<u64> = (0..len.max(width)).map(|_| random.next()).collect();
                let mut expected = hashes.clone();
                shingle_rolling(&mut expected, width);
                for isa in Isa::available() {
                    let mut found = hashes.clone();
                    shingle(&mut found, width, isa);
                    assert_eq!(found, expected, "{width} of {len}");
                }
            }
        }
    }
}
