//! Blocks of text in two AVX2 registers.
//!
//! No closures here or in the callers: they would not be compiled for the instruction set.

use std::arch::x86_64::*;

use super::kernel::{Kernel, Masks, run_of_ideographs};

/// AVX2 with BMI1, BMI2 and POPCNT.
pub(crate) struct Avx2;

#[inline(always)]
unsafe fn load(source: *const u8) -> [__m256i; 2] {
    // SAFETY: the caller guarantees 64 readable bytes and the instruction set.
    unsafe {
        [
            _mm256_loadu_si256(source.cast()),
            _mm256_loadu_si256(source.add(32).cast()),
        ]
    }
}

/// Returns the top bits of the bytes of both halves.
#[inline(always)]
unsafe fn mask(halves: [__m256i; 2]) -> u64 {
    // SAFETY: the caller guarantees the instruction set.
    unsafe {
        let low = _mm256_movemask_epi8(halves[0]) as u32;
        u64::from(low) | u64::from(_mm256_movemask_epi8(halves[1]) as u32) << 32
    }
}

/// Compares bytes with the range `first..first + num`, as signed bytes; the range must be all ASCII or all non-ASCII.
#[inline(always)]
unsafe fn within(half: __m256i, first: u8, num: u8) -> __m256i {
    // SAFETY: the caller guarantees the instruction set.
    unsafe {
        let above = _mm256_cmpgt_epi8(half, _mm256_set1_epi8(first.wrapping_sub(1) as i8));
        let below = _mm256_cmpgt_epi8(_mm256_set1_epi8(first.wrapping_add(num) as i8), half);
        _mm256_and_si256(above, below)
    }
}

/// Returns the bytes with ASCII capitals in lower case.
#[inline(always)]
unsafe fn small(half: __m256i) -> __m256i {
    // SAFETY: the caller guarantees the instruction set.
    unsafe {
        let capitals = within(half, b'A', 26);
        _mm256_add_epi8(half, _mm256_and_si256(capitals, _mm256_set1_epi8(32)))
    }
}

/// Returns the mask of the bytes within `first..first + num` in both halves.
#[inline(always)]
unsafe fn mask_within(halves: [__m256i; 2], first: u8, num: u8) -> u64 {
    // SAFETY: the caller guarantees the instruction set.
    unsafe { mask([within(halves[0], first, num), within(halves[1], first, num)]) }
}

/// Returns the mask of the bytes equal to `byte`.
#[inline(always)]
unsafe fn mask_equal(halves: [__m256i; 2], byte: u8) -> u64 {
    // SAFETY: the caller guarantees the instruction set.
    unsafe {
        let wanted = _mm256_set1_epi8(byte as i8);
        mask([
            _mm256_cmpeq_epi8(halves[0], wanted),
            _mm256_cmpeq_epi8(halves[1], wanted),
        ])
    }
}

impl Kernel for Avx2 {
    #[inline(always)]
    unsafe fn lower(source: *const u8, target: *mut u8) -> u64 {
        // SAFETY: guaranteed by the caller.
        unsafe {
            let halves = load(source);
            _mm256_storeu_si256(target.cast(), small(halves[0]));
            _mm256_storeu_si256(target.add(32).cast(), small(halves[1]));
            mask(halves)
        }
    }

    #[inline(always)]
    unsafe fn non_ascii(source: *const u8) -> u64 {
        // SAFETY: guaranteed by the caller.
        unsafe { mask(load(source)) }
    }

    #[inline(always)]
    unsafe fn white_space(source: *const u8) -> (u64, u64) {
        // SAFETY: guaranteed by the caller.
        unsafe {
            let halves = load(source);
            let spaces = mask_equal(halves, b' ');
            (spaces | mask_within(halves, 9, 5), spaces)
        }
    }

    #[inline(always)]
    unsafe fn classify(source: *const u8) -> Masks {
        // SAFETY: guaranteed by the caller.
        unsafe {
            let halves = load(source);
            // Setting bit 5 turns capitals into small letters, and nothing else into letters.
            let bit_5 = _mm256_set1_epi8(32);
            let small = [
                _mm256_or_si256(halves[0], bit_5),
                _mm256_or_si256(halves[1], bit_5),
            ];
            let both = mask_equal(halves, b'.') | mask_equal(halves, b'\'');
            Masks {
                letters: mask_within(small, b'a', 26),
                digits: mask_within(halves, b'0', 10),
                connectors: mask_equal(halves, b'_'),
                mid_letters: both | mask_equal(halves, b':'),
                mid_numbers: both | mask_equal(halves, b',') | mask_equal(halves, b';'),
            }
        }
    }

    #[inline(always)]
    unsafe fn ideographs(source: *const u8) -> usize {
        // SAFETY: guaranteed by the caller.
        unsafe {
            let halves = load(source);
            let leads = mask_within(halves, 0xE5, 5);
            let e4 = mask_equal(halves, 0xE4);
            let b8 = _mm256_set1_epi8(0xB8_u8 as i8);
            let below_b8 = mask([
                _mm256_cmpgt_epi8(b8, halves[0]),
                _mm256_cmpgt_epi8(b8, halves[1]),
            ]);
            // A continuation byte follows E4, so it is negative as a signed byte.
            run_of_ideographs(leads | (e4 & !(below_b8 >> 1)))
        }
    }
}
