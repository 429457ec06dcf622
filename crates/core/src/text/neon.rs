//! Blocks of text in four NEON registers.

use std::arch::aarch64::*;

use super::kernel::{
    ASCII_CLASSES, BLOCK, CONNECTOR, DIGIT, Kernel, LETTER, MID_LETTER, MID_NUMBER, Masks,
    run_of_ideographs,
};

pub(crate) struct Neon;

type Quarters = [uint8x16_t; BLOCK / 16];

#[inline(always)]
unsafe fn load(source: *const u8) -> Quarters {
    // SAFETY: the caller guarantees 64 readable bytes and the instruction set.
    let block = unsafe { vld1q_u8_x4(source) };
    [block.0, block.1, block.2, block.3]
}

/// Returns a bit for each byte, where bytes are all ones or all zeros.
#[inline(always)]
unsafe fn mask(quarters: Quarters) -> u64 {
    const BITS: [u8; 16] = [1, 2, 4, 8, 16, 32, 64, 128, 1, 2, 4, 8, 16, 32, 64, 128];
    // SAFETY: sixteen bytes are read; the caller guarantees the instruction set.
    unsafe {
        let bits = vld1q_u8(BITS.as_ptr());
        let [a, b, c, d] = quarters;
        let low = vpaddq_u8(vandq_u8(a, bits), vandq_u8(b, bits));
        let high = vpaddq_u8(vandq_u8(c, bits), vandq_u8(d, bits));
        let sums = vpaddq_u8(low, high);
        vgetq_lane_u64::<0>(vreinterpretq_u64_u8(vpaddq_u8(sums, sums)))
    }
}

/// Compares bytes with the range `first..first + num`.
#[inline(always)]
unsafe fn within(quarter: uint8x16_t, first: u8, num: u8) -> uint8x16_t {
    // SAFETY: the caller guarantees the instruction set.
    unsafe { vcltq_u8(vsubq_u8(quarter, vdupq_n_u8(first)), vdupq_n_u8(num)) }
}

/// Returns the mask of a condition on each quarter. A macro, since a closure would not inherit the instruction set.
macro_rules! mask_of {
    ($quarters:expr, $quarter:ident => $bytes:expr) => {{
        let mut answers = $quarters;
        for answer in &mut answers {
            let $quarter = *answer;
            *answer = $bytes;
        }
        mask(answers)
    }};
}

impl Kernel for Neon {
    #[inline(always)]
    unsafe fn lower(source: *const u8, target: *mut u8) -> u64 {
        // SAFETY: guaranteed by the caller.
        unsafe {
            let quarters = load(source);
            for (i, &quarter) in quarters.iter().enumerate() {
                let capitals = vandq_u8(within(quarter, b'A', 26), vdupq_n_u8(32));
                vst1q_u8(target.add(16 * i), vorrq_u8(quarter, capitals));
            }
            mask_of!(quarters, quarter => vcgeq_u8(quarter, vdupq_n_u8(0x80)))
        }
    }

    #[inline(always)]
    unsafe fn non_ascii(source: *const u8) -> u64 {
        // SAFETY: guaranteed by the caller.
        unsafe { mask_of!(load(source), quarter => vcgeq_u8(quarter, vdupq_n_u8(0x80))) }
    }

    #[inline(always)]
    unsafe fn white_space(source: *const u8) -> (u64, u64) {
        // SAFETY: guaranteed by the caller.
        unsafe {
            let quarters = load(source);
            let spaces = mask_of!(quarters, quarter => vceqq_u8(quarter, vdupq_n_u8(b' ')));
            let others = mask_of!(quarters, quarter => within(quarter, 9, 5));
            (spaces | others, spaces)
        }
    }

    #[inline(always)]
    unsafe fn classify(source: *const u8) -> Masks {
        // SAFETY: guaranteed by the caller; the table is 128 bytes long.
        unsafe {
            let low = vld1q_u8_x4(ASCII_CLASSES.as_ptr());
            let high = vld1q_u8_x4(ASCII_CLASSES.as_ptr().add(64));
            let mut classes = load(source);
            for quarter in &mut classes {
                // A lookup beyond a table gives 0, or the previous contents.
                let of_low = vqtbl4q_u8(low, *quarter);
                *quarter = vqtbx4q_u8(of_low, high, vsubq_u8(*quarter, vdupq_n_u8(64)));
            }
            Masks {
                letters: mask_of!(classes, quarter => vtstq_u8(quarter, vdupq_n_u8(LETTER))),
                digits: mask_of!(classes, quarter => vtstq_u8(quarter, vdupq_n_u8(DIGIT))),
                connectors: mask_of!(classes, quarter => vtstq_u8(quarter, vdupq_n_u8(CONNECTOR))),
                mid_letters: mask_of!(classes, quarter => vtstq_u8(quarter, vdupq_n_u8(MID_LETTER))),
                mid_numbers: mask_of!(classes, quarter => vtstq_u8(quarter, vdupq_n_u8(MID_NUMBER))),
            }
        }
    }

    #[inline(always)]
    unsafe fn ideographs(source: *const u8) -> usize {
        // SAFETY: guaranteed by the caller.
        unsafe {
            let quarters = load(source);
            let leads = mask_of!(quarters, quarter => within(quarter, 0xE5, 5));
            let e4 = mask_of!(quarters, quarter => vceqq_u8(quarter, vdupq_n_u8(0xE4)));
            let from_b8 = mask_of!(quarters, quarter => vcgeq_u8(quarter, vdupq_n_u8(0xB8)));
            run_of_ideographs(leads | (e4 & (from_b8 >> 1)))
        }
    }
}
