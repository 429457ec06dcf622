//! Intersection kernels for NEON: four features of each side at a time, all against all.
//!
//! A block of one side is left when its maximum feature is not above the other block's, so that every pair of blocks
//! that could share a feature is compared.

use std::arch::aarch64::*;

use super::side::{Side, steps};

/// See `intersect::num_shared`.
#[target_feature(enable = "neon")]
pub(super) fn num_shared(a: Side<'_>, b: Side<'_>, needed: u64) -> u64 {
    let (x, y) = (a.padded_features(), b.padded_features());
    let (mut i, mut j, mut num_shared) = (0, 0, 0u64);
    // A block may hold only padding: it is past the end.
    while i < a.len() && j < b.len() {
        let (left_a, left_b) = (a.len() - i, b.len() - j);
        if num_shared + (left_a.min(left_b) as u64) < needed {
            return num_shared;
        }
        // SAFETY: both are multiples of 4 below the number of features, and padding extends to a multiple of 8.
        let (va, vb, last_a, last_b) = unsafe { load(x, y, i, j) };
        let [turn, next_turn] = [vextq_u64::<1>(vb[0], vb[1]), vextq_u64::<1>(vb[1], vb[0])];
        let mut equal = [vdupq_n_u32(0); 2];
        for (equal, two) in equal.iter_mut().zip(va) {
            let even = vorrq_u64(vceqq_u64(two, vb[0]), vceqq_u64(two, vb[1]));
            let odd = vorrq_u64(vceqq_u64(two, turn), vceqq_u64(two, next_turn));
            *equal = vreinterpretq_u32_u64(vorrq_u64(even, odd));
        }
        // 32 bits per feature, all ones if it is shared.
        let mut shared = vuzp1q_u32(equal[0], equal[1]);
        if left_a < 4 {
            shared = vandq_u32(shared, valid_lanes(left_a));
        }
        num_shared += u64::from(vaddvq_u32(shared).wrapping_neg());
        let (step_a, step_b) = steps(last_a, last_b);
        i += 4 * step_a;
        j += 4 * step_b;
    }
    num_shared
}

/// See `intersect::sum`.
#[target_feature(enable = "neon")]
pub(super) fn sum(a: Side<'_>, b: Side<'_>, is_product: bool) -> u64 {
    let (x, y) = (a.padded_features(), b.padded_features());
    let (mut i, mut j) = (0, 0);
    let mut sums = vdupq_n_u64(0);
    while i < a.len() && j < b.len() {
        // SAFETY: both are multiples of 4 below the number of features, and padding extends to a multiple of 8.
        let ((va, vb, last_a, last_b), wa, wb) =
            unsafe { (load(x, y, i, j), weights(a, i), weights(b, j)) };
        let [turn, next_turn] = [vextq_u64::<1>(vb[0], vb[1]), vextq_u64::<1>(vb[1], vb[0])];
        // For each lane, the weight of the equal feature of b, or 0. Padding of b repeats feature and weight, so `or`
        // over the rotations is also correct there.
        let even = vorrq_u32(
            vandq_u32(equal(va, vb[0], vb[1]), wb),
            vandq_u32(equal(va, vb[1], vb[0]), vextq_u32::<2>(wb, wb)),
        );
        let odd = vorrq_u32(
            vandq_u32(equal(va, turn, next_turn), vextq_u32::<1>(wb, wb)),
            vandq_u32(equal(va, next_turn, turn), vextq_u32::<3>(wb, wb)),
        );
        let mut matched = vorrq_u32(even, odd);
        let left_a = a.len() - i;
        if left_a < 4 {
            matched = vandq_u32(matched, valid_lanes(left_a));
        }
        sums = if is_product {
            let low = vmlal_u32(sums, vget_low_u32(wa), vget_low_u32(matched));
            vmlal_high_u32(low, wa, matched)
        } else {
            vpadalq_u32(sums, vminq_u32(wa, matched))
        };
        let (step_a, step_b) = steps(last_a, last_b);
        i += 4 * step_a;
        j += 4 * step_b;
    }
    vaddvq_u64(sums)
}

/// Compares four features with another four; returns for each lane whether it equals any of them.
#[target_feature(enable = "neon")]
#[inline]
fn equal(four: [uint64x2_t; 2], first: uint64x2_t, second: uint64x2_t) -> uint32x4_t {
    let (low, high) = (vceqq_u64(four[0], first), vceqq_u64(four[1], second));
    vuzp1q_u32(vreinterpretq_u32_u64(low), vreinterpretq_u32_u64(high))
}

/// Loads four features of each side, and the last of each four. Safety: multiples of 4 below padded lengths.
#[target_feature(enable = "neon")]
#[inline]
unsafe fn load(
    x: &[u64],
    y: &[u64],
    i: usize,
    j: usize,
) -> ([uint64x2_t; 2], [uint64x2_t; 2], u64, u64) {
    // SAFETY: four features follow each place. The last ones are read again, by a load that the compiler must not
    // change: moved out of vector registers, they would arrive later, and the next step waits for them.
    unsafe {
        let (x, y) = (x.as_ptr().add(i), y.as_ptr().add(j));
        (
            [vld1q_u64(x), vld1q_u64(x.add(2))],
            [vld1q_u64(y), vld1q_u64(y.add(2))],
            x.add(3).read_volatile(),
            y.add(3).read_volatile(),
        )
    }
}

/// Loads four weights from index `i` on. Safety: `i` must be a multiple of 4 below the number of features.
#[target_feature(enable = "neon")]
#[inline]
unsafe fn weights(side: Side<'_>, i: usize) -> uint32x4_t {
    if side.padded_weights().is_empty() {
        return vdupq_n_u32(1);
    }
    // SAFETY: there is a weight for each feature, with padding to a multiple of 8.
    unsafe { vld1q_u32(side.padded_weights().as_ptr().add(i)) }
}

/// Returns ones in the lanes that hold features rather than padding, if `left` features remain.
#[target_feature(enable = "neon")]
#[inline]
fn valid_lanes(left: usize) -> uint32x4_t {
    // SAFETY: four numbers are read.
    let lanes = unsafe { vld1q_u32([0, 1, 2, 3].as_ptr()) };
    vcltq_u32(lanes, vdupq_n_u32(left as u32))
}
