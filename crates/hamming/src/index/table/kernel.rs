//! Which basic operations of a table search does each instruction set implement?

use super::directory::{FIRST_WORD, LAST_WORD};
use super::permutation::Permutation;
use crate::kernels::Plain;
#[cfg(target_arch = "x86_64")]
use crate::kernels::{Avx2, Avx512};
use crate::plan::shape::LINE_WORDS;

/// How eight packed numbers of one width are moved into eight words.
#[derive(Debug, Clone)]
#[repr(align(64))]
pub(crate) struct Unpacking {
    /// For each byte of the eight words, the byte of memory that it comes from.
    bytes: [u8; 64],
    /// Number of bits below the number within its word.
    shifts: [u64; 8],
}

impl Unpacking {
    /// Creates the tables for numbers of `width` bits (1 to 57, or 64) that begin at bit 0, 1, ..., 7 of a byte.
    pub(crate) fn of_width(width: u32) -> Box<[Unpacking; 8]> {
        Box::new(std::array::from_fn(|phase| Unpacking {
            bytes: std::array::from_fn(|i| {
                let first = (phase + i / 8 * width as usize) / 8;
                // The last of eight narrow numbers does not extend beyond byte 63.
                (first + i % 8).min(63) as u8
            }),
            shifts: std::array::from_fn(|lane| ((phase + lane * width as usize) % 8) as u64),
        }))
    }
}

/// A query to compare with eight packed numbers.
#[derive(Clone, Copy)]
pub(crate) struct Comparison<'a> {
    pub(crate) unpacking: &'a Unpacking,
    pub(crate) query: u64,
    pub(crate) mask: u64,
    pub(crate) limit: u32,
}

/// Number of ones before each word of a directory line.
#[derive(Clone, Copy)]
#[repr(align(64))]
pub(crate) struct OnesBefore([u64; LINE_WORDS]);

/// The unary part of each word of a line.
const UNARY: [u64; LINE_WORDS] = [FIRST_WORD, !0, !0, !0, !0, !0, !0, LAST_WORD];

/// An implementation of the search for one instruction set: of what it does not replace, the plain one.
pub(crate) trait TableKernel {
    /// Returns the permuted code. Safety: the processor must have the instruction set.
    #[inline(always)]
    unsafe fn permute<const W: usize>(permutation: &Permutation, code: &[u64; W]) -> [u64; W] {
        permutation.apply(code)
    }

    /// Computes the data needed to find buckets of a line. Safety: same as [`permute`](Self::permute).
    #[inline(always)]
    unsafe fn read_line(words: &[u64; LINE_WORDS]) -> OnesBefore {
        let mut before = [0; LINE_WORDS];
        for i in 1..LINE_WORDS {
            before[i] = before[i - 1] + u64::from((words[i - 1] & UNARY[i - 1]).count_ones());
        }
        OnesBefore(before)
    }

    /// Returns the entries of the line before a bucket, and in it. Safety: same as [`permute`](Self::permute).
    #[inline(always)]
    unsafe fn bucket(line: &OnesBefore, words: &[u64; LINE_WORDS], bucket: u32) -> (u32, u32) {
        let word = word_of_one(line, u64::from(bucket));
        let mut rest = words[word] & UNARY[word];
        for _ in 0..u64::from(bucket) - line.0[word].min(u64::from(bucket)) {
            rest &= rest.wrapping_sub(1);
        }
        bucket_behind(words, bucket, word, rest.trailing_zeros().min(63))
    }

    /// Returns a mask of the first `num` numbers that differ from the query in at most `limit` bits. Safety: same as
    /// [`permute`](Self::permute), with 64 readable bytes.
    #[inline(always)]
    unsafe fn near8(packed: *const u8, comparison: &Comparison<'_>, num: usize) -> u32 {
        let mut near = 0;
        for lane in 0..num.min(8) {
            let unpacking = comparison.unpacking;
            // SAFETY: the eight bytes are within the 64 readable ones.
            let word = unsafe {
                packed
                    .add(unpacking.bytes[8 * lane] as usize)
                    .cast::<u64>()
                    .read_unaligned()
            };
            let differing = (word >> unpacking.shifts[lane] ^ comparison.query) & comparison.mask;
            near |= u32::from(differing.count_ones() <= comparison.limit) << lane;
        }
        near
    }
}

impl TableKernel for Plain {}

/// Returns the word of the line that contains 1 number `target`, counted from 0.
#[inline(always)]
fn word_of_one(line: &OnesBefore, target: u64) -> usize {
    let mut word = 0;
    for i in 1..LINE_WORDS {
        word += usize::from(line.0[i] <= target);
    }
    word
}

/// Returns the bucket after a 1 at a bit of a word.
#[inline(always)]
fn bucket_behind(words: &[u64; LINE_WORDS], bucket: u32, word: usize, bit: u32) -> (u32, u32) {
    let at = 64 * word as u32 + bit;
    // The bits of the number of entries, and the ones, are not entries.
    let before = at.wrapping_sub(32 + bucket) & 511;
    let behind = words[word] & UNARY[word] & (!1 << bit);
    if behind != 0 {
        return (before, behind.trailing_zeros() - bit - 1);
    }
    let mut next_word = word + 1;
    while next_word < LINE_WORDS && words[next_word] & UNARY[next_word] == 0 {
        next_word += 1;
    }
    let next = match words.get(next_word) {
        Some(bits) => 64 * next_word as u32 + bits.trailing_zeros(),
        None => 511,
    };
    (before, next.saturating_sub(at + 1))
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use super::*;
    use std::arch::x86_64::*;

    /// Permutes with PEXT if a code is one word. Safety: the processor must have BMI2.
    #[inline(always)]
    unsafe fn permute<const W: usize>(permutation: &Permutation, code: &[u64; W]) -> [u64; W] {
        if W > 1 {
            return permutation.apply(code);
        }
        let mut permuted = [0; W];
        // SAFETY: the caller's processor has BMI2.
        permuted[0] = unsafe { permutation.apply_bmi2(code[0]) };
        permuted
    }

    /// Finds the bucket of a line with PDEP. Safety: the processor must have BMI2.
    #[inline(always)]
    unsafe fn bucket_in(
        line: &OnesBefore,
        words: &[u64; LINE_WORDS],
        bucket: u32,
        word: usize,
    ) -> (u32, u32) {
        let target = u64::from(bucket);
        let nth = 1_u64 << (target.wrapping_sub(line.0[word]) & 63);
        // SAFETY: the caller's processor has BMI2.
        let one = unsafe { _pdep_u64(nth, words[word] & UNARY[word]) };
        bucket_behind(words, bucket, word, one.trailing_zeros().min(63))
    }

    impl TableKernel for Avx2 {
        #[inline(always)]
        unsafe fn permute<const W: usize>(permutation: &Permutation, code: &[u64; W]) -> [u64; W] {
            // SAFETY: guaranteed by the caller; BMI2 comes with this instruction set.
            unsafe { permute(permutation, code) }
        }

        #[inline(always)]
        unsafe fn bucket(line: &OnesBefore, words: &[u64; LINE_WORDS], bucket: u32) -> (u32, u32) {
            let word = word_of_one(line, u64::from(bucket));
            // SAFETY: as above.
            unsafe { bucket_in(line, words, bucket, word) }
        }
    }

    impl TableKernel for Avx512 {
        #[inline(always)]
        unsafe fn permute<const W: usize>(permutation: &Permutation, code: &[u64; W]) -> [u64; W] {
            // SAFETY: as above.
            unsafe { permute(permutation, code) }
        }

        #[inline(always)]
        unsafe fn read_line(words: &[u64; LINE_WORDS]) -> OnesBefore {
            // SAFETY: the caller's processor has the instructions; arrays of eight words are read and written.
            unsafe {
                let bits = _mm512_and_si512(
                    _mm512_loadu_si512(words.as_ptr().cast()),
                    _mm512_loadu_si512(UNARY.as_ptr().cast()),
                );
                let ones = _mm512_popcnt_epi64(bits);
                let zero = _mm512_setzero_si512();
                // Prefix sums over the lanes, in three doublings.
                let mut before = _mm512_alignr_epi64::<7>(ones, zero);
                before = _mm512_add_epi64(before, _mm512_alignr_epi64::<7>(before, zero));
                before = _mm512_add_epi64(before, _mm512_alignr_epi64::<6>(before, zero));
                before = _mm512_add_epi64(before, _mm512_alignr_epi64::<4>(before, zero));
                let mut line = OnesBefore([0; LINE_WORDS]);
                _mm512_store_si512(line.0.as_mut_ptr().cast(), before);
                line
            }
        }

        #[inline(always)]
        unsafe fn bucket(line: &OnesBefore, words: &[u64; LINE_WORDS], bucket: u32) -> (u32, u32) {
            // SAFETY: the caller's processor has the instructions.
            unsafe {
                let before = _mm512_load_si512(line.0.as_ptr().cast());
                let target = _mm512_set1_epi64(i64::from(bucket));
                let reached = _mm512_cmple_epu64_mask(before, target);
                // Nothing precedes the first lane.
                let word = (reached.count_ones() as usize).clamp(1, LINE_WORDS) - 1;
                bucket_in(line, words, bucket, word)
            }
        }

        #[inline(always)]
        unsafe fn near8(packed: *const u8, comparison: &Comparison<'_>, num: usize) -> u32 {
            // SAFETY: the caller's processor has the instructions, and 64 bytes are readable.
            unsafe {
                let unpacking = comparison.unpacking;
                let memory = _mm512_loadu_si512(packed.cast());
                let bytes = _mm512_load_si512(unpacking.bytes.as_ptr().cast());
                let shifts = _mm512_load_si512(unpacking.shifts.as_ptr().cast());
                let numbers = _mm512_srlv_epi64(_mm512_permutexvar_epi8(bytes, memory), shifts);
                let query = _mm512_set1_epi64(comparison.query as i64);
                let mask = _mm512_set1_epi64(comparison.mask as i64);
                // (numbers ^ query) & mask
                let differing = _mm512_ternarylogic_epi64::<0x28>(numbers, query, mask);
                let limit = _mm512_set1_epi64(i64::from(comparison.limit));
                let near = _mm512_cmple_epu64_mask(_mm512_popcnt_epi64(differing), limit);
                u32::from(near) & ((1 << num.min(8)) - 1)
            }
        }
    }
}

#[cfg(all(test, target_arch = "x86_64"))]
mod tests {
    use super::*;
    use likewise_core::isa::Isa;
    use likewise_core::testing::Random;

    /// Returns a kernel's results for a line's buckets and for packed numbers.
    fn describe<K: TableKernel>(
        words: &[u64; LINE_WORDS],
        packed: &[u8; 64],
        comparison: &Comparison<'_>,
    ) -> (Vec<(u32, u32)>, Vec<u32>) {
        // SAFETY: the caller checks the processor; 64 bytes are readable.
        unsafe {
            let line = K::read_line(words);
            let num_ones: u32 = (0..LINE_WORDS)
                .map(|i| (words[i] & UNARY[i]).count_ones())
                .sum();
            let buckets = (0..num_ones.saturating_sub(1))
                .map(|bucket| K::bucket(&line, words, bucket))
                .collect();
            let near = (0..=8)
                .map(|num| K::near8(packed.as_ptr(), comparison, num))
                .collect();
            (buckets, near)
        }
    }

    #[test]
    fn kernels_agree_on_lines_and_packed_numbers() {
        let mut random = Random::new(12);
        for round in 0..600 {
            let words: [u64; LINE_WORDS] = std::array::from_fn(|_| match round % 4 {
                0 => random.next(),
                1 => random.next() & random.next() & random.next(),
                2 => random.next() | random.next() | random.next(),
                _ => [0, !0, 1, 1 << 63][random.below(4)],
            });
            let packed: [u8; 64] = std::array::from_fn(|_| random.next() as u8);
            let width = [1, 5, 13, 31, 48, 57, 64][round % 7];
            let unpacking = Unpacking::of_width(width);
            let comparison = Comparison {
                unpacking: &unpacking[if width == 64 { 0 } else { random.below(8) }],
                query: random.next(),
                mask: u64::MAX >> (64 - width),
                limit: random.below(width as usize / 2 + 2) as u32,
            };
            let expected = describe::<Plain>(&words, &packed, &comparison);
            if Isa::avx2().is_some() {
                assert!(describe::<Avx2>(&words, &packed, &comparison) == expected);
            }
            if Isa::avx512().is_some() {
                assert!(describe::<Avx512>(&words, &packed, &comparison) == expected);
            }
        }
    }
}
