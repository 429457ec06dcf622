//! How many slots of two signatures are equal?

use crate::isa::Isa;

/// Rows of signatures: n times `num_slots * slot_bytes` bytes, each slot little-endian.
#[derive(Debug, Clone, Copy)]
pub struct Signatures<'a> {
    pub bytes: &'a [u8],
    pub num_slots: usize,
    /// Bytes per slot: 1, 2 or 4.
    pub slot_bytes: usize,
}

impl<'a> Signatures<'a> {
    pub fn len(&self) -> usize {
        self.bytes.len().checked_div(self.row_bytes()).unwrap_or(0)
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    pub fn row_bytes(&self) -> usize {
        self.num_slots * self.slot_bytes
    }

    /// Returns the bytes of row `i`. Panics if there is no such row.
    #[inline]
    pub fn row(&self, i: usize) -> &'a [u8] {
        let row_bytes = self.row_bytes();
        &self.bytes[i * row_bytes..(i + 1) * row_bytes]
    }

    #[inline]
    pub fn num_equal(&self, a: usize, b: usize, isa: Isa) -> u32 {
        num_equal(self.row(a), self.row(b), self.slot_bytes, isa)
    }
}

/// Returns the number of equal slots of two rows of the same length, with slots of 1, 2 or 4 bytes.
#[inline]
pub fn num_equal(a: &[u8], b: &[u8], slot_bytes: usize, isa: Isa) -> u32 {
    assert!(
        matches!(slot_bytes, 1 | 2 | 4),
        "slot_bytes = {slot_bytes}, none of 1, 2, 4"
    );
    match isa {
        #[cfg(target_arch = "x86_64")]
        // SAFETY: an `Isa` of this kind is created only if the processor has it.
        Isa::Avx2(_) => unsafe { x86::avx2(a, b, slot_bytes) },
        #[cfg(target_arch = "x86_64")]
        // SAFETY: as above.
        Isa::Avx512(_) => unsafe { x86::avx512(a, b, slot_bytes) },
        _ => plain(a, b, slot_bytes),
    }
}

/// The oracle of the vector kernels.
fn plain(a: &[u8], b: &[u8], slot_bytes: usize) -> u32 {
    match slot_bytes {
        1 => plain_of::<1>(a, b),
        2 => plain_of::<2>(a, b),
        _ => plain_of::<4>(a, b),
    }
}

fn plain_of<const SLOT_BYTES: usize>(a: &[u8], b: &[u8]) -> u32 {
    let (a, _) = a.as_chunks::<SLOT_BYTES>();
    let (b, _) = b.as_chunks::<SLOT_BYTES>();
    a.iter().zip(b).map(|(a, b)| u32::from(a == b)).sum()
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use std::arch::x86_64::*;

    /// Rows that end within a vector are padded with differing bytes, which add no equal slots.
    #[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512dq,avx2,bmi1,bmi2,popcnt")]
    pub(super) fn avx512(a: &[u8], b: &[u8], slot_bytes: usize) -> u32 {
        let count = |a: __m512i, b: __m512i| match slot_bytes {
            1 => _mm512_cmpeq_epi8_mask(a, b).count_ones(),
            2 => _mm512_cmpeq_epi16_mask(a, b).count_ones(),
            _ => _mm512_cmpeq_epi32_mask(a, b).count_ones(),
        };
        let (a, a_rest) = a.as_chunks::<64>();
        let (b, b_rest) = b.as_chunks::<64>();
        let mut num_equal = 0;
        for (a, b) in a.iter().zip(b) {
            // SAFETY: both are arrays of 64 bytes; no alignment is required.
            let (a, b) = unsafe {
                (
                    _mm512_loadu_si512(a.as_ptr().cast()),
                    _mm512_loadu_si512(b.as_ptr().cast()),
                )
            };
            num_equal += count(a, b);
        }
        let rest = a_rest.len().min(b_rest.len());
        if rest > 0 {
            let mask = (1u64 << rest) - 1;
            let ones = _mm512_set1_epi8(-1);
            // SAFETY: only the `rest` bytes that both rows have are read.
            let (a, b) = unsafe {
                (
                    _mm512_maskz_loadu_epi8(mask, a_rest.as_ptr().cast()),
                    _mm512_mask_loadu_epi8(ones, mask, b_rest.as_ptr().cast()),
                )
            };
            num_equal += count(a, b);
        }
        num_equal
    }

    #[target_feature(enable = "avx2,bmi1,bmi2,popcnt")]
    pub(super) fn avx2(a: &[u8], b: &[u8], slot_bytes: usize) -> u32 {
        let equal = |a: __m256i, b: __m256i| match slot_bytes {
            1 => _mm256_cmpeq_epi8(a, b),
            2 => _mm256_cmpeq_epi16(a, b),
            _ => _mm256_cmpeq_epi32(a, b),
        };
        let (a, a_rest) = a.as_chunks::<32>();
        let (b, b_rest) = b.as_chunks::<32>();
        let mut num_equal_bytes = 0;
        for (a, b) in a.iter().zip(b) {
            // SAFETY: both are arrays of 32 bytes; no alignment is required.
            let (a, b) = unsafe {
                (
                    _mm256_loadu_si256(a.as_ptr().cast()),
                    _mm256_loadu_si256(b.as_ptr().cast()),
                )
            };
            num_equal_bytes += (_mm256_movemask_epi8(equal(a, b)) as u32).count_ones();
        }
        num_equal_bytes / slot_bytes as u32 + super::plain(a_rest, b_rest, slot_bytes)
    }
}
