//! How does NEON compare fingerprints?
//!
//! It counts the ones of bytes; pairwise sums reduce the counts of eight codes to one register.

use super::{Kernel, LANES, PART_LANES, Plain};
use std::arch::aarch64::*;

/// Kernel with the popcount of bytes.
pub struct Neon;

/// Returns the ones in each of eight words, given those of their bytes, at most 32. Safety: NEON.
#[inline(always)]
pub(crate) unsafe fn sums_of_words(bytes: [uint8x16_t; 4]) -> uint16x8_t {
    // SAFETY: the caller's processor has NEON.
    unsafe {
        // Four bytes per word, then two, of at most 128 each.
        let low = vpaddq_u8(bytes[0], bytes[1]);
        let high = vpaddq_u8(bytes[2], bytes[3]);
        vpaddlq_u8(vpaddq_u8(low, high))
    }
}

/// Returns a mask in which bit `i` is set if number `i` is `limit` or less. Safety: the processor must have NEON.
#[inline(always)]
pub(crate) unsafe fn mask_within(numbers: uint16x8_t, limit: u32) -> u8 {
    const BITS: [u16; LANES] = [1, 2, 4, 8, 16, 32, 64, 128];
    let limit = limit.min(u32::from(u16::MAX)) as u16;
    // SAFETY: the caller's processor has NEON; eight numbers are read.
    unsafe {
        let near = vcleq_u16(numbers, vdupq_n_u16(limit));
        vaddvq_u16(vandq_u16(near, vld1q_u16(BITS.as_ptr()))) as u8
    }
}

impl Neon {
    /// Returns the distances of eight codes. Safety: same as [`Kernel::within8`].
    #[inline(always)]
    unsafe fn distances8<const W: usize>(
        codes: *const u64,
        stride: usize,
        query: &[u64; W],
    ) -> uint16x8_t {
        // SAFETY: the caller's processor has NEON and the codes are readable.
        unsafe {
            let mut bytes = [vdupq_n_u8(0); 4];
            for (w, &word) in query.iter().enumerate() {
                let word = vdupq_n_u64(word);
                for (i, bytes) in bytes.iter_mut().enumerate() {
                    let differing = veorq_u64(vld1q_u64(codes.add(w * stride + 2 * i)), word);
                    *bytes = vaddq_u8(*bytes, vcntq_u8(vreinterpretq_u8_u64(differing)));
                }
            }
            sums_of_words(bytes)
        }
    }

    /// Returns the distances of sixteen parts. Safety: same as [`Kernel::parts_within16`].
    #[inline(always)]
    unsafe fn part_distances16(parts: *const u32, query: u32) -> uint8x16_t {
        // SAFETY: the caller's processor has NEON and the parts are readable.
        unsafe {
            let query = vdupq_n_u32(query);
            let mut bytes = [vdupq_n_u8(0); 4];
            for (i, bytes) in bytes.iter_mut().enumerate() {
                let differing = veorq_u32(vld1q_u32(parts.add(4 * i)), query);
                *bytes = vcntq_u8(vreinterpretq_u8_u32(differing));
            }
            // Two bytes per part, then one, of at most 32.
            let low = vpaddq_u8(bytes[0], bytes[1]);
            let high = vpaddq_u8(bytes[2], bytes[3]);
            vpaddq_u8(low, high)
        }
    }
}

impl Kernel for Neon {
    #[inline(always)]
    unsafe fn parts_within16(parts: *const u32, query: u32, within: u32) -> u16 {
        const BITS: [u8; PART_LANES] = [1, 2, 4, 8, 16, 32, 64, 128, 1, 2, 4, 8, 16, 32, 64, 128];
        // SAFETY: guaranteed by the caller; sixteen numbers are read.
        unsafe {
            let distances = Self::part_distances16(parts, query);
            let near = vcleq_u8(distances, vdupq_n_u8(within.min(255) as u8));
            let mut mask = vandq_u8(near, vld1q_u8(BITS.as_ptr()));
            for _ in 0..3 {
                mask = vpaddq_u8(mask, mask);
            }
            vgetq_lane_u16::<0>(vreinterpretq_u16_u8(mask))
        }
    }

    // One comparison for all queries: moving masks out of vector registers costs more than the distances.
    #[inline(always)]
    unsafe fn any_part_within16<const Q: usize>(
        parts: *const u32,
        queries: &[u32; Q],
        within: u32,
    ) -> bool {
        // SAFETY: guaranteed by the caller.
        unsafe {
            let mut least = vdupq_n_u8(u8::MAX);
            for &query in queries {
                least = vminq_u8(least, Self::part_distances16(parts, query));
            }
            u32::from(vminvq_u8(least)) <= within
        }
    }

    // NEON has no PEXT.
    #[inline(always)]
    unsafe fn gather(word: u64, mask: u64) -> u64 {
        // SAFETY: portable.
        unsafe { Plain::gather(word, mask) }
    }

    #[inline(always)]
    unsafe fn within8<const W: usize>(
        codes: *const u64,
        stride: usize,
        query: &[u64; W],
        within: u32,
    ) -> u8 {
        // SAFETY: guaranteed by the caller.
        unsafe { mask_within(Self::distances8(codes, stride, query), within) }
    }

    #[inline(always)]
    unsafe fn any_within8<const W: usize, const Q: usize>(
        codes: *const u64,
        stride: usize,
        queries: &[[u64; W]; Q],
        within: u32,
    ) -> bool {
        // SAFETY: guaranteed by the caller.
        unsafe {
            let mut least = vdupq_n_u16(u16::MAX);
            for query in queries {
                least = vminq_u16(least, Self::distances8(codes, stride, query));
            }
            u32::from(vminvq_u16(least)) <= within
        }
    }
}
