//! Placeholder.

use crate::isa::Isa;

/// Temporary stub.
#[derive(Debug, Clone, Copy)]
pub struct Signatures<'a> {
    /// Rows.
    pub bytes: &'a [u8],
    /// Slots a row.
    pub num_slots: usize,
    /// Bytes a slot.
    pub slot_bytes: usize,
}

#[allow(clippy::len_without_is_empty)]
impl<'a> Signatures<'a> {
    /// Rows.
    pub fn len(&self) -> usize {
        self.bytes.len() / (self.num_slots * self.slot_bytes).max(1)
    }
    /// Bytes of row `i`.
    #[inline]
    pub fn row(&self, i: usize) -> &'a [u8] {
        let width = self.num_slots * self.slot_bytes;
        &self.bytes[i * width..(i + 1) * width]
    }
    /// Equal slots of two rows.
    #[inline]
    pub fn num_equal(&self, a: usize, b: usize, isa: Isa) -> u32 {
        let (a, b) = (self.row(a), self.row(b));
        #[cfg(target_arch = "x86_64")]
        if isa == Isa::Avx512 && self.slot_bytes == 2 {
            // SAFETY: the caller passes an instruction set the processor has.
            return unsafe { equal16(a, b) };
        }
        a.chunks_exact(self.slot_bytes)
            .zip(b.chunks_exact(self.slot_bytes))
            .map(|(x, y)| u32::from(x == y))
            .sum()
    }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512bw,avx512vl,popcnt")]
fn equal16(a: &[u8], b: &[u8]) -> u32 {
    use std::arch::x86_64::*;
    let mut total = 0;
    let mut i = 0;
    while i + 64 <= a.len() {
        // SAFETY: 64 bytes are left in both.
        unsafe {
            let x = _mm512_loadu_si512(a.as_ptr().add(i).cast());
            let y = _mm512_loadu_si512(b.as_ptr().add(i).cast());
            total += _mm512_cmpeq_epi16_mask(x, y).count_ones();
        }
        i += 64;
    }
    while i + 2 <= a.len() {
        total += u32::from(a[i..i + 2] == b[i..i + 2]);
        i += 2;
    }
    total
}
