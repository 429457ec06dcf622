//! Four token hashes at a time.

use std::arch::aarch64::*;

use super::keys::{Keys, PRIME_MX2, PRIME64_2, PRIME64_3, word};
use crate::halves::Four;

/// Same as `TokenHasher::hash`, for whole groups of four; returns the remaining starts and ends.
#[target_feature(enable = "neon")]
pub(super) fn hash<'a>(
    keys: &Keys,
    text: &[u8],
    starts: &'a [u32],
    ends: &'a [u32],
    hashes: &mut Vec<u64>,
) -> (&'a [u32], &'a [u32]) {
    let num_tokens = starts.len().min(ends.len());
    let (starts, rest_starts) = starts[..num_tokens].as_chunks::<4>();
    let (ends, rest_ends) = ends[..num_tokens].as_chunks::<4>();
    let done = hashes.len();
    hashes.resize(done + 4 * starts.len(), 0);
    let out = hashes[done..].as_chunks_mut::<4>().0;
    for ((starts, ends), out) in starts.iter().zip(ends).zip(out) {
        *out = four(keys, text, starts, ends);
    }
    (rest_starts, rest_ends)
}

/// Returns the hashes of four tokens; those of more than eight bytes, which are rare, one at a time.
#[target_feature(enable = "neon")]
#[inline]
fn four(keys: &Keys, text: &[u8], starts: &[u32; 4], ends: &[u32; 4]) -> [u64; 4] {
    let mut words = [0; 4];
    for (at, &start) in words.iter_mut().zip(starts) {
        *at = word(text, start as usize);
    }
    // SAFETY: four numbers each.
    let lens = unsafe { vsubq_u32(vld1q_u32(ends.as_ptr()), vld1q_u32(starts.as_ptr())) };
    let mut hashes = up_to_8(keys, &words, lens);
    if vmaxvq_u32(lens) > 8 {
        for (i, hash) in hashes.iter_mut().enumerate() {
            let (start, end) = (starts[i] as usize, ends[i] as usize);
            if end - start > 8 {
                *hash = keys.over_8(text, start, end);
            }
        }
    }
    hashes
}

/// Returns the hashes of four tokens, right for those of at most eight bytes.
#[target_feature(enable = "neon")]
#[inline]
fn up_to_8(keys: &Keys, words: &[u64; 4], lens: uint32x4_t) -> [u64; 4] {
    // SAFETY: four numbers are read.
    let words = unsafe { vld1q_u64_x2(words.as_ptr()) };
    let low_halves = low_halves(words.0, words.1);
    // Shifts to the left, and to the right if negative.
    let bits = vreinterpretq_s32_u32(vshlq_n_u32::<3>(lens));

    // From high to low: the last byte, the length, the first byte and the middle one. For at most three bytes, the low
    // half has all of them.
    let to_middle = vnegq_s32(vshlq_n_s32::<3>(vshrq_n_s32::<4>(bits)));
    let to_last = vsubq_s32(vdupq_n_s32(8), bits);
    let mut bytes = vsliq_n_u32::<8>(vshlq_u32(low_halves, to_last), lens);
    bytes = vsliq_n_u32::<16>(bytes, low_halves);
    bytes = vsliq_n_u32::<24>(bytes, vshlq_u32(low_halves, to_middle));
    let mut small = Four {
        low: bytes,
        high: vdupq_n_u32(0),
    };
    small = small.exclusive_or(keys.small).fold().multiply(PRIME64_2);
    small = exclusive_or_shifted::<29, 3>(small).multiply(PRIME64_3);
    small.low = veorq_u32(small.low, small.high);

    // The last four bytes, and above them the first four.
    let to_last = vsubq_s32(vdupq_n_s32(32), bits);
    let mut middle = Four {
        low: self::low_halves(
            vshlq_u64(words.0, vmovl_s32(vget_low_s32(to_last))),
            vshlq_u64(words.1, vmovl_high_s32(to_last)),
        ),
        high: low_halves,
    };
    middle = middle.exclusive_or(keys.middle);
    // Rotated by 49 (which swaps the halves and rotates by 17) and by 24.
    let rotated = Four {
        low: veorq_u32(
            vsliq_n_u32::<17>(vshrq_n_u32::<15>(middle.low), middle.high),
            vsliq_n_u32::<24>(vshrq_n_u32::<8>(middle.high), middle.low),
        ),
        high: veorq_u32(
            vsliq_n_u32::<17>(vshrq_n_u32::<15>(middle.high), middle.low),
            vsliq_n_u32::<24>(vshrq_n_u32::<8>(middle.low), middle.high),
        ),
    };
    middle.low = veorq_u32(middle.low, rotated.low);
    middle.high = veorq_u32(middle.high, rotated.high);
    middle = middle.multiply(PRIME_MX2);
    middle.low = veorq_u32(middle.low, vsraq_n_u32::<3>(lens, middle.high));
    middle = middle.multiply(PRIME_MX2);
    middle = exclusive_or_shifted::<28, 4>(middle);

    let is_small = vcltq_u32(lens, vdupq_n_u32(4));
    let mut hashes = [0; 4];
    Four {
        low: vbslq_u32(is_small, small.low, middle.low),
        high: vbslq_u32(is_small, small.high, middle.high),
    }
    .store(&mut hashes);
    hashes
}

#[target_feature(enable = "neon")]
#[inline]
fn low_halves(first: uint64x2_t, second: uint64x2_t) -> uint32x4_t {
    vuzp1q_u32(vreinterpretq_u32_u64(first), vreinterpretq_u32_u64(second))
}

/// Returns `x ^ (x >> SHIFT)`, where `REST` is 32 - `SHIFT`.
#[target_feature(enable = "neon")]
#[inline]
fn exclusive_or_shifted<const SHIFT: i32, const REST: i32>(x: Four) -> Four {
    let low = vsliq_n_u32::<REST>(vshrq_n_u32::<SHIFT>(x.low), x.high);
    Four {
        low: veorq_u32(x.low, low),
        high: veorq_u32(x.high, vshrq_n_u32::<SHIFT>(x.high)),
    }
}
