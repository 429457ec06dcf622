//! Which codes of a bucket need a closer comparison?

use crate::kernels::{Kernel, LANES, Plain};

/// Number of codes of a bucket that are compared in one step.
pub(super) const STEP: usize = 32;

/// An implementation of the comparison of check words for one instruction set.
pub(crate) trait CheckKernel: Kernel {
    /// Returns a mask in which bit `i` is set if `checks[i]` differs from `check` in at most `within` bits.
    ///
    /// # Safety
    /// [`STEP`] values must be readable, and the processor must have the instruction set.
    unsafe fn near_narrow(checks: *const u32, check: u32, within: u32) -> u32;

    /// Same as [`CheckKernel::near_narrow`], for check words of 64 bits.
    ///
    /// # Safety
    /// Same as [`CheckKernel::near_narrow`].
    #[inline(always)]
    unsafe fn near_wide(checks: *const u64, check: u64, within: u32) -> u32 {
        let mut near = 0;
        for group in 0..STEP / LANES {
            // SAFETY: guaranteed by the caller.
            let eight =
                unsafe { Self::within8::<1>(checks.add(group * LANES), 0, &[check], within) };
            near |= u32::from(eight) << (group * LANES);
        }
        near
    }

    /// Returns the bits of `word` at which `mask` is 1, packed together.
    ///
    /// # Safety
    /// The processor must have the instruction set.
    unsafe fn extract(word: u64, mask: u64) -> u64;
}

/// Returns the bits of `word` at which `mask` is 1, packed together: PEXT in plain steps, one for each run of ones.
pub(super) fn extract_plain(word: u64, mut mask: u64) -> u64 {
    let (mut value, mut shift) = (0, 0);
    while mask != 0 {
        let start = mask.trailing_zeros();
        let length = (mask >> start).trailing_ones();
        let low = u64::MAX >> (64 - length);
        value |= (word >> start & low) << shift;
        shift += length;
        mask &= !(low << start);
    }
    value
}

impl CheckKernel for Plain {
    #[inline(always)]
    unsafe fn near_narrow(checks: *const u32, check: u32, within: u32) -> u32 {
        let mut near = 0;
        for i in 0..STEP {
            // SAFETY: readable by the contract of the trait.
            let differing = unsafe { *checks.add(i) } ^ check;
            near |= u32::from(differing.count_ones() <= within) << i;
        }
        near
    }

    #[inline(always)]
    unsafe fn extract(word: u64, mask: u64) -> u64 {
        extract_plain(word, mask)
    }
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use std::arch::x86_64::*;

    use super::CheckKernel;
    use crate::kernels::{Avx2, Avx512};

    impl CheckKernel for Avx2 {
        #[inline(always)]
        unsafe fn near_narrow(checks: *const u32, check: u32, within: u32) -> u32 {
            // SAFETY: the caller's processor has AVX2 and the values are readable.
            unsafe {
                let counts = _mm256_setr_epi8(
                    0, 1, 1, 2, 1, 2, 2, 3, 1, 2, 2, 3, 2, 3, 3, 4, //
                    0, 1, 1, 2, 1, 2, 2, 3, 1, 2, 2, 3, 2, 3, 3, 4,
                );
                let low = _mm256_set1_epi8(0x0f);
                let query = _mm256_set1_epi32(check as i32);
                let limit = _mm256_set1_epi32(within as i32);
                let mut far = 0;
                for group in 0..4 {
                    let eight = _mm256_loadu_si256(checks.add(8 * group).cast());
                    let differing = _mm256_xor_si256(eight, query);
                    let lower = _mm256_and_si256(differing, low);
                    let upper = _mm256_and_si256(_mm256_srli_epi16::<4>(differing), low);
                    let bytes = _mm256_add_epi8(
                        _mm256_shuffle_epi8(counts, lower),
                        _mm256_shuffle_epi8(counts, upper),
                    );
                    let pairs = _mm256_maddubs_epi16(bytes, _mm256_set1_epi8(1));
                    let sums = _mm256_madd_epi16(pairs, _mm256_set1_epi16(1));
                    let above = _mm256_castsi256_ps(_mm256_cmpgt_epi32(sums, limit));
                    far |= (_mm256_movemask_ps(above) as u32) << (8 * group);
                }
                !far
            }
        }

        #[inline(always)]
        unsafe fn extract(word: u64, mask: u64) -> u64 {
            // SAFETY: `Isa::Avx2` implies BMI2.
            unsafe { _pext_u64(word, mask) }
        }
    }

    impl CheckKernel for Avx512 {
        #[inline(always)]
        unsafe fn near_narrow(checks: *const u32, check: u32, within: u32) -> u32 {
            // SAFETY: the caller's processor has the instructions and the values are readable.
            unsafe {
                let query = _mm512_set1_epi32(check as i32);
                let limit = _mm512_set1_epi32(within as i32);
                let low = _mm512_xor_si512(_mm512_loadu_si512(checks.cast()), query);
                let high = _mm512_xor_si512(_mm512_loadu_si512(checks.add(16).cast()), query);
                let low = _mm512_cmple_epu32_mask(_mm512_popcnt_epi32(low), limit);
                let high = _mm512_cmple_epu32_mask(_mm512_popcnt_epi32(high), limit);
                u32::from(low) | u32::from(high) << 16
            }
        }

        #[inline(always)]
        unsafe fn extract(word: u64, mask: u64) -> u64 {
            // SAFETY: `Isa::Avx512` implies BMI2.
            unsafe { _pext_u64(word, mask) }
        }
    }
}

#[cfg(target_arch = "aarch64")]
mod neon {
    use super::{CheckKernel, extract_plain};
    use crate::kernels::{Kernel, Neon, PART_LANES};

    impl CheckKernel for Neon {
        #[inline(always)]
        unsafe fn near_narrow(checks: *const u32, check: u32, within: u32) -> u32 {
            // SAFETY: twice sixteen values are readable.
            let (low, high) = unsafe {
                (
                    Self::parts_within16(checks, check, within),
                    Self::parts_within16(checks.add(PART_LANES), check, within),
                )
            };
            u32::from(low) | u32::from(high) << PART_LANES
        }

        // NEON has no PEXT.
        #[inline(always)]
        unsafe fn extract(word: u64, mask: u64) -> u64 {
            extract_plain(word, mask)
        }
    }
}
