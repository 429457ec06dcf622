//! How many bits do several filters share with each of eight others?

use super::rows::LANES;
use crate::isa::Isa;

/// Number of filters that are compared with eight others at once.
pub(super) const NUM_QUERIES: usize = 4;

/// Number of bits that each query shares with each of eight filters.
pub(super) type Shared = [[u64; LANES]; NUM_QUERIES];

/// Counts the bits that each of [`NUM_QUERIES`] filters shares with each of eight, which are stored word by word.
#[inline]
pub(super) fn count_shared(queries: &[u64], group: &[u64], isa: Isa) -> Shared {
    assert_eq!(
        queries.len() * LANES,
        group.len() * NUM_QUERIES,
        "words of filters"
    );
    match isa {
        #[cfg(target_arch = "x86_64")]
        // SAFETY: an `Isa` of this kind is created only if the processor has it.
        Isa::Avx2(_) => unsafe { x86::avx2(queries, group) },
        #[cfg(target_arch = "x86_64")]
        // SAFETY: as above.
        Isa::Avx512(_) => unsafe { x86::avx512(queries, group) },
        #[cfg(target_arch = "aarch64")]
        // SAFETY: as above.
        Isa::Neon(_) => unsafe { neon(queries, group) },
        _ => plain(queries, group),
    }
}

/// The oracle of the vector kernels.
fn plain(queries: &[u64], group: &[u64]) -> Shared {
    let num_words = queries.len() / NUM_QUERIES;
    let mut shared = [[0; LANES]; NUM_QUERIES];
    for (w, eight) in group.as_chunks::<LANES>().0.iter().enumerate() {
        for (q, counts) in shared.iter_mut().enumerate() {
            let word = queries[q * num_words + w];
            for (count, filter) in counts.iter_mut().zip(eight) {
                *count += u64::from((filter & word).count_ones());
            }
        }
    }
    shared
}

/// Number of words after which byte counts are added up: each word adds at most 8, and a byte holds 255.
const WORDS_A_BYTE: usize = 31;

#[cfg(target_arch = "aarch64")]
#[target_feature(enable = "neon")]
fn neon(queries: &[u64], group: &[u64]) -> Shared {
    use std::arch::aarch64::*;

    let num_words = queries.len() / NUM_QUERIES;
    let mut shared = [[0; LANES]; NUM_QUERIES];
    for (q, counts) in shared.iter_mut().enumerate() {
        let query = &queries[q * num_words..(q + 1) * num_words];
        let mut sums = [vdupq_n_u64(0); LANES / 2];
        let words = group.as_chunks::<LANES>().0.chunks(WORDS_A_BYTE);
        for (eights, words) in words.zip(query.chunks(WORDS_A_BYTE)) {
            let mut bytes = [vdupq_n_u8(0); LANES / 2];
            for (eight, &word) in eights.iter().zip(words) {
                let word = vdupq_n_u64(word);
                for (bytes, two) in bytes.iter_mut().zip(eight.as_chunks::<2>().0) {
                    // SAFETY: two words are read.
                    let both = vandq_u64(unsafe { vld1q_u64(two.as_ptr()) }, word);
                    *bytes = vaddq_u8(*bytes, vcntq_u8(vreinterpretq_u8_u64(both)));
                }
            }
            for (sum, bytes) in sums.iter_mut().zip(bytes) {
                *sum = vpadalq_u32(*sum, vpaddlq_u16(vpaddlq_u8(bytes)));
            }
        }
        for (two, sum) in counts.as_chunks_mut::<2>().0.iter_mut().zip(sums) {
            // SAFETY: two words are written.
            unsafe { vst1q_u64(two.as_mut_ptr(), sum) };
        }
    }
    shared
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use super::{LANES, NUM_QUERIES, Shared, WORDS_A_BYTE};
    use std::arch::x86_64::*;

    #[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512dq,avx512vpopcntdq,avx2,popcnt")]
    pub(super) fn avx512(queries: &[u64], group: &[u64]) -> Shared {
        let num_words = queries.len() / NUM_QUERIES;
        let queries: [&[u64]; NUM_QUERIES] =
            std::array::from_fn(|q| &queries[q * num_words..(q + 1) * num_words]);
        let mut counts = [_mm512_setzero_si512(); NUM_QUERIES];
        for (w, eight) in group.as_chunks::<LANES>().0.iter().enumerate() {
            // SAFETY: eight words; no alignment is required.
            let filters = unsafe { _mm512_loadu_si512(eight.as_ptr().cast()) };
            for (count, query) in counts.iter_mut().zip(queries) {
                let word = _mm512_set1_epi64(query[w] as i64);
                let both = _mm512_popcnt_epi64(_mm512_and_si512(filters, word));
                *count = _mm512_add_epi64(*count, both);
            }
        }
        let mut shared = [[0; LANES]; NUM_QUERIES];
        for (out, count) in shared.iter_mut().zip(counts) {
            // SAFETY: eight words; no alignment is required.
            unsafe { _mm512_storeu_si512(out.as_mut_ptr().cast(), count) };
        }
        shared
    }

    /// Popcount by table lookup of nibbles (Mula, Kurz, Lemire, 2018).
    #[target_feature(enable = "avx2,popcnt")]
    pub(super) fn avx2(queries: &[u64], group: &[u64]) -> Shared {
        let num_words = queries.len() / NUM_QUERIES;
        let table = _mm256_setr_epi8(
            0, 1, 1, 2, 1, 2, 2, 3, 1, 2, 2, 3, 2, 3, 3, 4, //
            0, 1, 1, 2, 1, 2, 2, 3, 1, 2, 2, 3, 2, 3, 3, 4,
        );
        let low = _mm256_set1_epi8(0x0f);
        let mut shared = [[0; LANES]; NUM_QUERIES];
        for (q, counts) in shared.iter_mut().enumerate() {
            let query = &queries[q * num_words..(q + 1) * num_words];
            let mut sums = [_mm256_setzero_si256(); 2];
            let words = group.as_chunks::<LANES>().0.chunks(WORDS_A_BYTE);
            for (eights, words) in words.zip(query.chunks(WORDS_A_BYTE)) {
                let mut bytes = [_mm256_setzero_si256(); 2];
                for (eight, &word) in eights.iter().zip(words) {
                    let word = _mm256_set1_epi64x(word as i64);
                    for (half, bytes) in bytes.iter_mut().enumerate() {
                        // SAFETY: four of the eight words from 0 or 4 on; no alignment is required.
                        let filters =
                            unsafe { _mm256_loadu_si256(eight.as_ptr().add(4 * half).cast()) };
                        let both = _mm256_and_si256(filters, word);
                        let lower = _mm256_and_si256(both, low);
                        let upper = _mm256_and_si256(_mm256_srli_epi16::<4>(both), low);
                        let lower = _mm256_shuffle_epi8(table, lower);
                        let upper = _mm256_shuffle_epi8(table, upper);
                        *bytes = _mm256_add_epi8(*bytes, _mm256_add_epi8(lower, upper));
                    }
                }
                for (sum, bytes) in sums.iter_mut().zip(bytes) {
                    let added = _mm256_sad_epu8(bytes, _mm256_setzero_si256());
                    *sum = _mm256_add_epi64(*sum, added);
                }
            }
            for (half, sum) in sums.into_iter().enumerate() {
                // SAFETY: four of the eight words from 0 or 4 on; no alignment is required.
                unsafe { _mm256_storeu_si256(counts.as_mut_ptr().add(4 * half).cast(), sum) };
            }
        }
        shared
    }
}
