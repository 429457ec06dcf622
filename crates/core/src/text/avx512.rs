//! Blocks of text in one AVX-512 register.

use std::arch::x86_64::*;

use super::kernel::{
    ASCII_CLASSES, CONNECTOR, DIGIT, Kernel, LETTER, MID_LETTER, MID_NUMBER, Masks,
    run_of_ideographs,
};

/// AVX-512 with VBMI and VBMI2.
pub(crate) struct Avx512;

#[inline(always)]
unsafe fn load(source: *const u8) -> __m512i {
    // SAFETY: the caller guarantees 64 readable bytes and the instruction set.
    unsafe { _mm512_loadu_si512(source.cast()) }
}

/// Returns the mask of the bytes that have the bit of a class.
#[inline(always)]
unsafe fn class_mask(classes: __m512i, class: u8) -> u64 {
    // SAFETY: the caller guarantees the instruction set.
    unsafe { _mm512_test_epi8_mask(classes, _mm512_set1_epi8(class as i8)) }
}

impl Kernel for Avx512 {
    #[inline(always)]
    unsafe fn lower(source: *const u8, target: *mut u8) -> u64 {
        // SAFETY: guaranteed by the caller.
        unsafe {
            let block = load(source);
            let from_a = _mm512_sub_epi8(block, _mm512_set1_epi8(b'A' as i8));
            let capitals = _mm512_cmplt_epu8_mask(from_a, _mm512_set1_epi8(26));
            let small = _mm512_mask_add_epi8(block, capitals, block, _mm512_set1_epi8(32));
            _mm512_storeu_si512(target.cast(), small);
            _mm512_movepi8_mask(block)
        }
    }

    #[inline(always)]
    unsafe fn non_ascii(source: *const u8) -> u64 {
        // SAFETY: guaranteed by the caller.
        unsafe { _mm512_movepi8_mask(load(source)) }
    }

    #[inline(always)]
    unsafe fn white_space(source: *const u8) -> (u64, u64) {
        // SAFETY: guaranteed by the caller.
        unsafe {
            let block = load(source);
            let spaces = _mm512_cmpeq_epi8_mask(block, _mm512_set1_epi8(b' ' as i8));
            let from_tab = _mm512_sub_epi8(block, _mm512_set1_epi8(9));
            (
                spaces | _mm512_cmplt_epu8_mask(from_tab, _mm512_set1_epi8(5)),
                spaces,
            )
        }
    }

    #[inline(always)]
    unsafe fn classify(source: *const u8) -> Masks {
        // SAFETY: guaranteed by the caller; the table is 128 bytes long.
        unsafe {
            let block = load(source);
            let (low, high) = (
                load(ASCII_CLASSES.as_ptr()),
                load(ASCII_CLASSES.as_ptr().add(64)),
            );
            // The lookup ignores the top bit, so non-ASCII bytes are masked out.
            let ascii = !_mm512_movepi8_mask(block);
            let classes = _mm512_maskz_permutex2var_epi8(ascii, low, block, high);
            Masks {
                letters: class_mask(classes, LETTER),
                digits: class_mask(classes, DIGIT),
                connectors: class_mask(classes, CONNECTOR),
                mid_letters: class_mask(classes, MID_LETTER),
                mid_numbers: class_mask(classes, MID_NUMBER),
            }
        }
    }

    #[inline(always)]
    unsafe fn ideographs(source: *const u8) -> usize {
        // SAFETY: guaranteed by the caller.
        unsafe {
            let block = load(source);
            let from_e5 = _mm512_sub_epi8(block, _mm512_set1_epi8(0xE5_u8 as i8));
            let leads = _mm512_cmplt_epu8_mask(from_e5, _mm512_set1_epi8(5));
            let e4 = _mm512_cmpeq_epi8_mask(block, _mm512_set1_epi8(0xE4_u8 as i8));
            let from_b8 = _mm512_cmpge_epu8_mask(block, _mm512_set1_epi8(0xB8_u8 as i8));
            run_of_ideographs(leads | (e4 & (from_b8 >> 1)))
        }
    }

    #[inline(always)]
    unsafe fn keep(block: *mut u8, blanked: u64, kept: u64) -> usize {
        // SAFETY: guaranteed by the caller.
        unsafe {
            let space = _mm512_set1_epi8(b' ' as i8);
            let bytes = _mm512_mask_mov_epi8(load(block), blanked, space);
            _mm512_storeu_si512(block.cast(), _mm512_maskz_compress_epi8(kept, bytes));
        }
        kept.count_ones() as usize
    }

    #[inline(always)]
    unsafe fn positions(mask: u64, base: u32, target: *mut u32) -> usize {
        const INDEXES: [u8; 64] = {
            let mut indexes = [0; 64];
            let mut i = 0;
            while i < 64 {
                indexes[i] = i as u8;
                i += 1;
            }
            indexes
        };
        let num_bits = mask.count_ones() as usize;
        // SAFETY: guaranteed by the caller.
        unsafe {
            let packed = _mm512_maskz_compress_epi8(mask, load(INDEXES.as_ptr()));
            let base = _mm512_set1_epi32(base as i32);
            let first = _mm512_cvtepu8_epi32(_mm512_castsi512_si128(packed));
            _mm512_storeu_si512(target.cast(), _mm512_add_epi32(first, base));
            if num_bits > 16 {
                let second = _mm512_cvtepu8_epi32(_mm512_extracti32x4_epi32::<1>(packed));
                _mm512_storeu_si512(target.add(16).cast(), _mm512_add_epi32(second, base));
            }
            if num_bits > 32 {
                let third = _mm512_cvtepu8_epi32(_mm512_extracti32x4_epi32::<2>(packed));
                _mm512_storeu_si512(target.add(32).cast(), _mm512_add_epi32(third, base));
                let fourth = _mm512_cvtepu8_epi32(_mm512_extracti32x4_epi32::<3>(packed));
                _mm512_storeu_si512(target.add(48).cast(), _mm512_add_epi32(fourth, base));
            }
        }
        num_bits
    }
}
