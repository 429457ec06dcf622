//! How do AVX2 and AVX-512 compare fingerprints?

use super::Kernel;
use std::arch::x86_64::*;

/// Kernel with popcount by table lookup of nibbles.
pub struct Avx2;

impl Avx2 {
    /// Returns the number of ones in each byte. Safety: the processor must have AVX2.
    #[inline(always)]
    unsafe fn ones_of_bytes(bytes: __m256i) -> __m256i {
        // SAFETY: the caller's processor has AVX2.
        unsafe {
            let counts = _mm256_setr_epi8(
                0, 1, 1, 2, 1, 2, 2, 3, 1, 2, 2, 3, 2, 3, 3, 4, //
                0, 1, 1, 2, 1, 2, 2, 3, 1, 2, 2, 3, 2, 3, 3, 4,
            );
            let low = _mm256_set1_epi8(0x0f);
            let lower = _mm256_and_si256(bytes, low);
            let upper = _mm256_and_si256(_mm256_srli_epi16::<4>(bytes), low);
            _mm256_add_epi8(
                _mm256_shuffle_epi8(counts, lower),
                _mm256_shuffle_epi8(counts, upper),
            )
        }
    }

    /// Returns the distances of four codes as 64-bit numbers. Safety: same as [`Kernel::within8`], for four codes.
    #[inline(always)]
    unsafe fn distances4<const W: usize>(
        codes: *const u64,
        stride: usize,
        query: &[u64; W],
    ) -> __m256i {
        // SAFETY: the caller's processor has AVX2 and the codes are readable.
        unsafe {
            // Bytes hold at most 8 per word, 32 in total.
            let mut bytes = _mm256_setzero_si256();
            for (w, &word) in query.iter().enumerate() {
                let code = _mm256_loadu_si256(codes.add(w * stride).cast());
                let differing = _mm256_xor_si256(code, _mm256_set1_epi64x(word as i64));
                bytes = _mm256_add_epi8(bytes, Self::ones_of_bytes(differing));
            }
            _mm256_sad_epu8(bytes, _mm256_setzero_si256())
        }
    }

    /// Returns the distances of eight parts in 32 bits. Safety: [`Kernel::parts_within16`], for eight.
    #[inline(always)]
    unsafe fn part_distances8(parts: *const u32, query: u32) -> __m256i {
        // SAFETY: the caller's processor has AVX2 and the parts are readable.
        unsafe {
            let part = _mm256_loadu_si256(parts.cast());
            let differing = _mm256_xor_si256(part, _mm256_set1_epi32(query as i32));
            let bytes = Self::ones_of_bytes(differing);
            let pairs = _mm256_maddubs_epi16(bytes, _mm256_set1_epi8(1));
            _mm256_madd_epi16(pairs, _mm256_set1_epi16(1))
        }
    }
}

impl Kernel for Avx2 {
    #[inline(always)]
    unsafe fn parts_within16(parts: *const u32, query: u32, within: u32) -> u16 {
        // SAFETY: guaranteed by the caller.
        unsafe {
            let limit = _mm256_set1_epi32(within as i32);
            let first = _mm256_cmpgt_epi32(Self::part_distances8(parts, query), limit);
            let second = _mm256_cmpgt_epi32(Self::part_distances8(parts.add(8), query), limit);
            let first = _mm256_movemask_ps(_mm256_castsi256_ps(first));
            let second = _mm256_movemask_ps(_mm256_castsi256_ps(second));
            !((first | second << 8) as u16)
        }
    }

    #[inline(always)]
    unsafe fn any_part_within16<const Q: usize>(
        parts: *const u32,
        queries: &[u32; Q],
        within: u32,
    ) -> bool {
        // SAFETY: guaranteed by the caller.
        unsafe {
            let mut least = Self::part_distances8(parts, queries[0]);
            for &query in queries {
                let first = Self::part_distances8(parts, query);
                let second = Self::part_distances8(parts.add(8), query);
                least = _mm256_min_epu32(least, _mm256_min_epu32(first, second));
            }
            let far = _mm256_cmpgt_epi32(least, _mm256_set1_epi32(within as i32));
            _mm256_movemask_epi8(far) != -1
        }
    }

    #[inline(always)]
    unsafe fn gather(word: u64, mask: u64) -> u64 {
        // SAFETY: the caller's processor has BMI2.
        unsafe { _pext_u64(word, mask) }
    }

    #[inline(always)]
    unsafe fn within8<const W: usize>(
        codes: *const u64,
        stride: usize,
        query: &[u64; W],
        within: u32,
    ) -> u8 {
        // SAFETY: guaranteed by the caller.
        unsafe {
            let limit = _mm256_set1_epi64x(i64::from(within));
            let first = _mm256_cmpgt_epi64(Self::distances4(codes, stride, query), limit);
            let second = _mm256_cmpgt_epi64(Self::distances4(codes.add(4), stride, query), limit);
            let first = _mm256_movemask_pd(_mm256_castsi256_pd(first));
            let second = _mm256_movemask_pd(_mm256_castsi256_pd(second));
            !((first | second << 4) as u8)
        }
    }

    // Distances fit in 32 bits and the upper halves are 0, so the minimum is taken before one comparison.
    #[inline(always)]
    unsafe fn any_within8<const W: usize, const Q: usize>(
        codes: *const u64,
        stride: usize,
        queries: &[[u64; W]; Q],
        within: u32,
    ) -> bool {
        // SAFETY: guaranteed by the caller.
        unsafe {
            let mut least = Self::distances4(codes, stride, &queries[0]);
            for query in queries {
                let first = Self::distances4(codes, stride, query);
                let second = Self::distances4(codes.add(4), stride, query);
                least = _mm256_min_epu32(least, _mm256_min_epu32(first, second));
            }
            let far = _mm256_cmpgt_epi64(least, _mm256_set1_epi64x(i64::from(within)));
            _mm256_movemask_epi8(far) != -1
        }
    }
}

/// Kernel with VPOPCNTDQ.
pub struct Avx512;

impl Avx512 {
    /// Returns the distances of eight codes as 64-bit numbers. Safety: same as [`Kernel::within8`].
    #[inline(always)]
    unsafe fn distances8<const W: usize>(
        codes: *const u64,
        stride: usize,
        query: &[u64; W],
    ) -> __m512i {
        // SAFETY: the caller's processor has the instructions and the codes are readable.
        unsafe {
            let mut distances = _mm512_setzero_si512();
            for (w, &word) in query.iter().enumerate() {
                let code = _mm512_loadu_si512(codes.add(w * stride).cast());
                let differing = _mm512_xor_si512(code, _mm512_set1_epi64(word as i64));
                distances = _mm512_add_epi64(distances, _mm512_popcnt_epi64(differing));
            }
            distances
        }
    }

    /// Returns the distances of sixteen parts as 32-bit numbers. Safety: same as [`Kernel::parts_within16`].
    #[inline(always)]
    unsafe fn part_distances16(parts: *const u32, query: u32) -> __m512i {
        // SAFETY: the caller's processor has the instructions and the parts are readable.
        unsafe {
            let part = _mm512_loadu_si512(parts.cast());
            _mm512_popcnt_epi32(_mm512_xor_si512(part, _mm512_set1_epi32(query as i32)))
        }
    }
}

impl Kernel for Avx512 {
    #[inline(always)]
    unsafe fn parts_within16(parts: *const u32, query: u32, within: u32) -> u16 {
        // SAFETY: guaranteed by the caller.
        unsafe {
            let limit = _mm512_set1_epi32(within as i32);
            _mm512_cmple_epu32_mask(Self::part_distances16(parts, query), limit)
        }
    }

    #[inline(always)]
    unsafe fn any_part_within16<const Q: usize>(
        parts: *const u32,
        queries: &[u32; Q],
        within: u32,
    ) -> bool {
        // SAFETY: guaranteed by the caller.
        unsafe {
            let mut least = Self::part_distances16(parts, queries[0]);
            for &query in &queries[1..] {
                least = _mm512_min_epu32(least, Self::part_distances16(parts, query));
            }
            let limit = _mm512_set1_epi32(within as i32);
            _mm512_cmple_epu32_mask(least, limit) != 0
        }
    }

    #[inline(always)]
    unsafe fn gather(word: u64, mask: u64) -> u64 {
        // SAFETY: the caller's processor has BMI2.
        unsafe { _pext_u64(word, mask) }
    }

    #[inline(always)]
    unsafe fn within8<const W: usize>(
        codes: *const u64,
        stride: usize,
        query: &[u64; W],
        within: u32,
    ) -> u8 {
        // SAFETY: guaranteed by the caller.
        unsafe {
            let limit = _mm512_set1_epi64(i64::from(within));
            _mm512_cmple_epu64_mask(Self::distances8(codes, stride, query), limit)
        }
    }

    // One comparison for all queries: moving masks out of vector registers costs more than the distances.
    #[inline(always)]
    unsafe fn any_within8<const W: usize, const Q: usize>(
        codes: *const u64,
        stride: usize,
        queries: &[[u64; W]; Q],
        within: u32,
    ) -> bool {
        // SAFETY: guaranteed by the caller.
        unsafe {
            let mut least = Self::distances8(codes, stride, &queries[0]);
            for query in &queries[1..] {
                least = _mm512_min_epu64(least, Self::distances8(codes, stride, query));
            }
            let limit = _mm512_set1_epi64(i64::from(within));
            _mm512_cmple_epu64_mask(least, limit) != 0
        }
    }
}
