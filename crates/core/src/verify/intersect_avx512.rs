//! Intersection kernels for AVX-512: eight features of each side at a time, all against all.
//!
//! A block of one side is left when its maximum feature is not above the other block's, so that every pair of blocks
//! that could share a feature is compared.

use std::arch::x86_64::*;

use super::side::{Side, steps};

/// See `intersect::num_shared`.
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512dq,avx2,bmi1,bmi2,popcnt")]
pub(super) fn num_shared(a: Side<'_>, b: Side<'_>, needed: u64) -> u64 {
    let (x, y) = (a.padded_features(), b.padded_features());
    let (mut i, mut j, mut num_shared) = (0, 0, 0u64);
    while i < x.len() && j < y.len() {
        let (left_a, left_b) = (a.len() - i, b.len() - j);
        if num_shared + (left_a.min(left_b) as u64) < needed {
            return num_shared;
        }
        let valid = valid_lanes(left_a);
        // SAFETY: i and j are multiples of 8 below lengths that are multiples of 8.
        let (va, vb, last_a, last_b) = unsafe {
            (
                _mm512_loadu_si512(x.as_ptr().add(i).cast()),
                _mm512_loadu_si512(y.as_ptr().add(j).cast()),
                *x.get_unchecked(i + 7),
                *y.get_unchecked(j + 7),
            )
        };
        macro_rules! unequal {
            ($mask:expr, $turn:literal) => {
                _mm512_mask_cmpneq_epi64_mask($mask, va, _mm512_alignr_epi64::<$turn>(vb, vb))
            };
        }
        // Two chains of masks, each shorter than one through all eight rotations.
        let even = unequal!(unequal!(unequal!(unequal!(valid, 0), 2), 4), 6);
        let odd = unequal!(unequal!(unequal!(unequal!(valid, 1), 3), 5), 7);
        num_shared += u64::from((valid & !(even & odd)).count_ones());
        let (step_a, step_b) = steps(last_a, last_b);
        i += 8 * step_a;
        j += 8 * step_b;
    }
    num_shared
}

/// See `intersect::sum`.
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512dq,avx2,bmi1,bmi2,popcnt")]
pub(super) fn sum(a: Side<'_>, b: Side<'_>, is_product: bool) -> u64 {
    let (x, y) = (a.padded_features(), b.padded_features());
    let (mut i, mut j) = (0, 0);
    let mut sums = _mm512_setzero_si512();
    while i < x.len() && j < y.len() {
        let valid = valid_lanes(a.len() - i);
        // SAFETY: i and j are multiples of 8 below lengths that are multiples of 8.
        let (va, vb, last_a, last_b) = unsafe {
            (
                _mm512_loadu_si512(x.as_ptr().add(i).cast()),
                _mm512_loadu_si512(y.as_ptr().add(j).cast()),
                *x.get_unchecked(i + 7),
                *y.get_unchecked(j + 7),
            )
        };
        let wa = weights(a, i);
        let wb = weights(b, j);
        // For each lane, the weight of the equal feature of b, or 0.
        let mut matched = _mm256_setzero_si256();
        macro_rules! match_turn {
            ($($turn:literal)*) => {$(
                let turned = _mm512_alignr_epi64::<$turn>(vb, vb);
                let equal = _mm512_mask_cmpeq_epi64_mask(valid, va, turned);
                matched = _mm256_mask_alignr_epi32::<$turn>(matched, equal, wb, wb);
            )*};
        }
        match_turn!(0 1 2 3 4 5 6 7);
        let terms = if is_product {
            _mm512_mul_epu32(_mm512_cvtepu32_epi64(wa), _mm512_cvtepu32_epi64(matched))
        } else {
            _mm512_cvtepu32_epi64(_mm256_min_epu32(wa, matched))
        };
        sums = _mm512_add_epi64(sums, terms);
        let (step_a, step_b) = steps(last_a, last_b);
        i += 8 * step_a;
        j += 8 * step_b;
    }
    _mm512_reduce_add_epi64(sums) as u64
}

/// Returns the mask of the lanes that hold features rather than padding, if `left` features remain.
#[inline]
fn valid_lanes(left: usize) -> u8 {
    if left >= 8 { 0xff } else { (1 << left) - 1 }
}

/// Loads eight weights from index `i` on, a multiple of 8 below the length.
#[target_feature(enable = "avx512f,avx512vl,avx2")]
#[inline]
fn weights(side: Side<'_>, i: usize) -> __m256i {
    match side.padded_weights().get(i..i + 8) {
        // SAFETY: the slice has the 32 loaded bytes; no alignment is required.
        Some(weights) => unsafe { _mm256_loadu_si256(weights.as_ptr().cast()) },
        None => _mm256_set1_epi32(1),
    }
}
