//! SimHash kernels for AVX-512: 64 byte counters in one register; a word is the mask of a byte addition.

use std::arch::x86_64::*;

use super::simhash_plain::{Counts, plain};

/// Number of additions after which a byte counter may wrap.
const MAX_PENDING: u64 = 255;

/// Number of words added without checking their weights one by one.
const GROUP_LEN: usize = 8;

/// See `simhash::add_block`.
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512dq,avx2,bmi1,bmi2,popcnt")]
pub(super) fn add_bits(words: &[u64], weights: &[u32], counts: &mut Counts) {
    let mut wide = WideCounts::new();
    if weights.is_empty() {
        for chunk in words.chunks(2 * MAX_PENDING as usize) {
            // Two registers of counters, so that additions do not depend on the previous one.
            let one = _mm512_set1_epi8(1);
            let (mut even, mut odd) = (_mm512_setzero_si512(), _mm512_setzero_si512());
            let (pairs, rest) = chunk.as_chunks::<2>();
            for &[a, b] in pairs {
                even = _mm512_mask_add_epi8(even, a, even, one);
                odd = _mm512_mask_add_epi8(odd, b, odd, one);
            }
            for &a in rest {
                even = _mm512_mask_add_epi8(even, a, even, one);
            }
            wide.add(even, counts);
            wide.add(odd, counts);
        }
    } else {
        add_weighted(words, weights, &mut wide, counts);
    }
    wide.flush(counts);
}

#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512dq,avx2,bmi1,bmi2,popcnt")]
fn add_weighted(words: &[u64], weights: &[u32], wide: &mut WideCounts, counts: &mut Counts) {
    let mut bytes = _mm512_setzero_si512();
    let mut pending = 0u64;
    for (words, weights) in words.chunks(GROUP_LEN).zip(weights.chunks(GROUP_LEN)) {
        let group: u64 = weights.iter().map(|&weight| u64::from(weight)).sum();
        if group > MAX_PENDING {
            // Rare: weights that do not fit in bytes are counted one by one.
            plain(words, weights, counts);
            continue;
        }
        if pending + group > MAX_PENDING {
            wide.add(bytes, counts);
            bytes = _mm512_setzero_si512();
            pending = 0;
        }
        pending += group;
        for (&word, &weight) in words.iter().zip(weights) {
            bytes = _mm512_mask_add_epi8(bytes, word, bytes, _mm512_set1_epi8(weight as i8));
        }
    }
    wide.add(bytes, counts);
}

/// 64 counters of 32 bits.
struct WideCounts {
    counts: [__m512i; 4],
    /// Number of byte registers added since the last flush, each worth at most 255 per counter.
    num_added: u32,
}

impl WideCounts {
    #[target_feature(enable = "avx512f")]
    fn new() -> Self {
        WideCounts {
            counts: [_mm512_setzero_si512(); 4],
            num_added: 0,
        }
    }

    #[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512dq,avx2")]
    #[inline]
    fn add(&mut self, bytes: __m512i, counts: &mut Counts) {
        let quarters = [
            _mm512_castsi512_si128(bytes),
            _mm512_extracti32x4_epi32::<1>(bytes),
            _mm512_extracti32x4_epi32::<2>(bytes),
            _mm512_extracti32x4_epi32::<3>(bytes),
        ];
        for (count, quarter) in self.counts.iter_mut().zip(quarters) {
            *count = _mm512_add_epi32(*count, _mm512_cvtepu8_epi32(quarter));
        }
        self.num_added += 1;
        if self.num_added == u32::MAX / 255 {
            self.flush(counts);
        }
    }

    #[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512dq,avx2")]
    fn flush(&mut self, counts: &mut Counts) {
        for (wide, counts) in self.counts.iter_mut().zip(counts.as_chunks_mut::<16>().0) {
            let mut narrow = [0u32; 16];
            // SAFETY: `narrow` has the 64 stored bytes; no alignment is required.
            unsafe { _mm512_storeu_si512(narrow.as_mut_ptr().cast(), *wide) };
            for (count, &narrow) in counts.iter_mut().zip(&narrow) {
                *count += u64::from(narrow);
            }
            *wide = _mm512_setzero_si512();
        }
        self.num_added = 0;
    }
}
