//! Intersection kernels for AVX2: four features of each side at a time, all against all.
//!
//! A block of one side is left when its maximum feature is not above the other block's, so that every pair of blocks
//! that could share a feature is compared.

use std::arch::x86_64::*;

use super::side::{Side, steps};

/// See `intersect::num_shared`.
#[target_feature(enable = "avx2,bmi1,bmi2,popcnt")]
pub(super) fn num_shared(a: Side<'_>, b: Side<'_>, needed: u64) -> u64 {
    let (x, y) = (a.padded_features(), b.padded_features());
    let (mut i, mut j, mut num_shared) = (0, 0, 0u64);
    // A block may hold only padding: it is past the end.
    while i < a.len() && j < b.len() {
        let (left_a, left_b) = (a.len() - i, b.len() - j);
        if num_shared + (left_a.min(left_b) as u64) < needed {
            return num_shared;
        }
        let (va, vb, last_a, last_b) = load(x, y, i, j);
        let equal = _mm256_or_si256(
            _mm256_or_si256(
                _mm256_cmpeq_epi64(va, vb),
                _mm256_cmpeq_epi64(va, _mm256_permute4x64_epi64::<0b00_11_10_01>(vb)),
            ),
            _mm256_or_si256(
                _mm256_cmpeq_epi64(va, _mm256_permute4x64_epi64::<0b01_00_11_10>(vb)),
                _mm256_cmpeq_epi64(va, _mm256_permute4x64_epi64::<0b10_01_00_11>(vb)),
            ),
        );
        let mut mask = _mm256_movemask_pd(_mm256_castsi256_pd(equal)) as u32;
        if left_a < 4 {
            mask &= (1 << left_a) - 1;
        }
        num_shared += u64::from(mask.count_ones());
        let (step_a, step_b) = steps(last_a, last_b);
        i += 4 * step_a;
        j += 4 * step_b;
    }
    num_shared
}

/// See `intersect::sum`.
#[target_feature(enable = "avx2,bmi1,bmi2,popcnt")]
pub(super) fn sum(a: Side<'_>, b: Side<'_>, is_product: bool) -> u64 {
    let (x, y) = (a.padded_features(), b.padded_features());
    let (mut i, mut j) = (0, 0);
    let mut sums = _mm256_setzero_si256();
    while i < a.len() && j < b.len() {
        let (va, vb, last_a, last_b) = load(x, y, i, j);
        let (wa, wb) = (weights(a, i), weights(b, j));
        // For each lane, the weight of the equal feature of b, or 0. Padding of b repeats feature and weight, so `or`
        // over the rotations is also correct there.
        let mut matched = _mm256_and_si256(_mm256_cmpeq_epi64(va, vb), wb);
        macro_rules! match_turn {
            ($($turn:literal)*) => {$(
                let turned = _mm256_permute4x64_epi64::<$turn>(vb);
                let weights = _mm256_permute4x64_epi64::<$turn>(wb);
                let equal = _mm256_cmpeq_epi64(va, turned);
                matched = _mm256_or_si256(matched, _mm256_and_si256(equal, weights));
            )*};
        }
        match_turn!(0b00_11_10_01 0b01_00_11_10 0b10_01_00_11);
        let mut terms = if is_product {
            _mm256_mul_epu32(wa, matched)
        } else {
            _mm256_min_epu32(wa, matched)
        };
        let left = a.len() - i;
        if left < 4 {
            let lanes = _mm256_setr_epi64x(0, 1, 2, 3);
            let is_valid = _mm256_cmpgt_epi64(_mm256_set1_epi64x(left as i64), lanes);
            terms = _mm256_and_si256(terms, is_valid);
        }
        sums = _mm256_add_epi64(sums, terms);
        let (step_a, step_b) = steps(last_a, last_b);
        i += 4 * step_a;
        j += 4 * step_b;
    }
    let mut lanes = [0u64; 4];
    // SAFETY: `lanes` has the 32 stored bytes; no alignment is required.
    unsafe { _mm256_storeu_si256(lanes.as_mut_ptr().cast(), sums) };
    lanes.into_iter().fold(0, u64::wrapping_add)
}

/// Loads four features of each side, and the last of each four.
#[target_feature(enable = "avx2")]
#[inline]
fn load(x: &[u64], y: &[u64], i: usize, j: usize) -> (__m256i, __m256i, u64, u64) {
    let (x, y) = (&x[i..i + 4], &y[j..j + 4]);
    // SAFETY: both slices have the 32 loaded bytes; no alignment is required.
    unsafe {
        (
            _mm256_loadu_si256(x.as_ptr().cast()),
            _mm256_loadu_si256(y.as_ptr().cast()),
            x[3],
            y[3],
        )
    }
}

/// Loads four weights from index `i` on, each as 64 bits.
#[target_feature(enable = "avx2")]
#[inline]
fn weights(side: Side<'_>, i: usize) -> __m256i {
    match side.padded_weights().get(i..i + 4) {
        // SAFETY: the slice has the 16 loaded bytes; no alignment is required.
        Some(weights) => unsafe { _mm256_cvtepu32_epi64(_mm_loadu_si128(weights.as_ptr().cast())) },
        None => _mm256_set1_epi64x(1),
    }
}
