//! What is the feature of consecutive tokens?

#[cfg(target_arch = "x86_64")]
use std::arch::x86_64::*;

#[cfg(target_arch = "x86_64")]
use crate::hash::MIX_MULTIPLIERS;
use crate::hash::{SHINGLE_MULTIPLIER, mix64};
use crate::isa::Isa;

/// Calls `take` with the start and the polynomial of every run of `width` hashes, 1 <= width <= hashes.len().
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

#[inline(always)]
pub(super) const fn feature_of(sum: u64) -> u64 {
    mix64(sum)
}

#[inline(always)]
const fn append(sum: u64, hash: u64) -> u64 {
    sum.wrapping_mul(SHINGLE_MULTIPLIER).wrapping_add(hash)
}

/// Replaces n >= width >= 1 token hashes by their n - width + 1 shingles.
pub(super) fn shingle(hashes: &mut Vec<u64>, width: usize, isa: Isa) {
    #[cfg(target_arch = "x86_64")]
    match (isa, width) {
        // SAFETY: an `Isa` of this kind is created only if the processor has it.
        (Isa::Avx512(_), 2..=MAX_AVX512_WIDTH) => return unsafe { shingle_avx512(hashes, width) },
        // SAFETY: as above.
        (Isa::Avx2(_), 2..=MAX_AVX2_WIDTH) => return unsafe { shingle_avx2(hashes, width) },
        _ => {}
    }
    let _ = isa;
    shingle_rolling(hashes, width);
}

/// One multiplication per hash, each depending on the previous one.
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

/// Above these widths, the additional multiplications per shingle cost more than the dependency.
#[cfg(target_arch = "x86_64")]
const MAX_AVX512_WIDTH: usize = 12;
#[cfg(target_arch = "x86_64")]
const MAX_AVX2_WIDTH: usize = 6;

/// Computes every shingle from scratch: independent multiplications, of which the compiler makes vector code.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
fn shingle_avx2(hashes: &mut Vec<u64>, width: usize) {
    let num_shingles = hashes.len() - width + 1;
    let mut at = 0;
    while at + 32 <= num_shingles {
        shingle_block::<32>(&mut hashes[at..at + 32 + width - 1], width);
        at += 32;
    }
    while at + 4 <= num_shingles {
        shingle_block::<4>(&mut hashes[at..at + 4 + width - 1], width);
        at += 4;
    }
    for first in at..num_shingles {
        shingle_block::<1>(&mut hashes[first..first + width], width);
    }
    hashes.truncate(num_shingles);
}

/// Replaces the first `N` hashes by the shingles that begin with them; `width - 1` hashes must follow.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
fn shingle_block<const N: usize>(hashes: &mut [u64], width: usize) {
    assert_eq!(hashes.len() + 1, N + width);
    let mut sums = [0; N];
    for place in 0..width {
        for (sum, &next) in sums.iter_mut().zip(&hashes[place..place + N]) {
            *sum = append(*sum, next);
        }
    }
    for (hash, &sum) in hashes.iter_mut().zip(&sums) {
        *hash = feature_of(sum);
    }
}

/// Same as [`shingle_avx2`], in registers of eight.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512dq,avx512vl,avx512bw,avx2")]
fn shingle_avx512(hashes: &mut Vec<u64>, width: usize) {
    let num_shingles = hashes.len() - width + 1;
    let mut at = 0;
    while at + 4 * LANES <= num_shingles {
        shingle_registers::<4>(&mut hashes[at..at + 4 * LANES + width - 1], width);
        at += 4 * LANES;
    }
    while at + LANES <= num_shingles {
        shingle_registers::<1>(&mut hashes[at..at + LANES + width - 1], width);
        at += LANES;
    }
    for first in at..num_shingles {
        let sum = hashes[first..first + width]
            .iter()
            .fold(0, |sum, &hash| append(sum, hash));
        hashes[first] = feature_of(sum);
    }
    hashes.truncate(num_shingles);
}

#[cfg(target_arch = "x86_64")]
const LANES: usize = 8;

/// Replaces the first `N` registers of hashes by the shingles that begin with them; `width - 1` hashes must follow.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512dq,avx512vl,avx512bw,avx2")]
#[inline]
fn shingle_registers<const N: usize>(hashes: &mut [u64], width: usize) {
    assert_eq!(hashes.len() + 1, N * LANES + width);
    let multiply = |x: __m512i, by: u64| _mm512_mullo_epi64(x, _mm512_set1_epi64(by as i64));
    let mut sums = [_mm512_setzero_si512(); N];
    for place in 0..width {
        for (i, sum) in sums.iter_mut().enumerate() {
            // SAFETY: from a place below `width` on there are `N` registers, as asserted above.
            let next = unsafe { _mm512_loadu_si512(hashes.as_ptr().add(place + i * LANES).cast()) };
            *sum = match place {
                0 => next,
                _ => _mm512_add_epi64(multiply(*sum, SHINGLE_MULTIPLIER), next),
            };
        }
    }
    for (i, &sum) in sums.iter().enumerate() {
        let mut x = sum;
        for factor in MIX_MULTIPLIERS {
            x = multiply(_mm512_xor_si512(x, _mm512_srli_epi64::<33>(x)), factor);
        }
        x = _mm512_xor_si512(x, _mm512_srli_epi64::<33>(x));
        // SAFETY: as above.
        unsafe { _mm512_storeu_si512(hashes.as_mut_ptr().add(i * LANES).cast(), x) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Random;

    #[test]
    fn every_instruction_set_makes_the_same_shingles() {
        let mut random = Random::new(3);
        for width in [1, 2, 3, 4, 5, 6, 7, 8, 11, 12, 13, 64] {
            for len in [width, width + 1, width + 7, width + 8, width + 31, 255, 600] {
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
