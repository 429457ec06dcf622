//! A known amount of work, which a caller with a clock can time to measure the costs of steps.

use likewise_core::hash::{GOLDEN, mix64};
use likewise_core::isa::Isa;
use likewise_core::prefetch::prefetch_read;

use crate::kernels::{Kernel, LANES, run_kernel};

/// Number of reads prefetched before the first of them is used.
const NUM_PENDING: usize = 64;
/// Queries compared with each vector of codes in a blocked scan.
const NUM_QUERIES: usize = 4;
/// Number of codes that stay in the L1 cache in a blocked scan.
const TILE_LEN: usize = 2048;

#[derive(Debug)]
pub struct Exercise {
    /// The requested number of words, and padding for a full vector.
    words: Vec<u64>,
    len: usize,
}

impl Exercise {
    /// Allocates about `num_bytes`: a power of two of words, at least eight.
    pub fn new(num_bytes: usize) -> Self {
        let len = 1_usize << (num_bytes / 8).max(LANES).ilog2();
        Exercise {
            words: (0..(len + LANES) as u64).map(|i| mix64(i + 1)).collect(),
            len,
        }
    }

    /// Number of bytes over which reads are distributed.
    pub fn num_bytes(&self) -> usize {
        self.len * 8
    }

    /// Reads at random places, each determined by the previous read and the seed; returns a number from all.
    pub fn wait(&self, num_reads: usize, seed: u64) -> u64 {
        let mut state = mix64(seed ^ GOLDEN);
        for _ in 0..num_reads {
            // A single multiplication between the reads takes a few cycles.
            let place = (state.wrapping_mul(GOLDEN) >> 32) as usize & (self.len - 1);
            state = state.rotate_left(5) ^ self.words[place];
        }
        state
    }

    /// Reads at random places, which depend on the seed and are prefetched several dozen ahead.
    pub fn ask(&self, num_reads: usize, seed: u64) -> u64 {
        let first = mix64(seed);
        let mut sum = 0_u64;
        let mut places = [0_usize; NUM_PENDING];
        for group in 0..num_reads.div_ceil(NUM_PENDING) {
            for (i, place) in places.iter_mut().enumerate() {
                let number = first.wrapping_add((group * NUM_PENDING + i) as u64);
                *place = mix64(number) as usize & (self.len - 1);
                prefetch_read(&self.words, *place);
            }
            for &place in &places {
                sum = sum.wrapping_add(self.words[place]);
            }
        }
        sum
    }

    /// Compares one query with every word, in order; returns the number within the radius.
    pub fn stream(&self, within: u32, isa: Isa) -> u64 {
        let mut found = 0;
        let (words, len, count) = (self.words.as_slice(), self.len, &mut found);
        run_kernel!(isa, 1, stream, (words: &[u64], len: usize, within: u32, count: &mut u64));
        found
    }

    /// Compares queries, in fours, with every word, in tiles; returns the vectors with a pair within the radius.
    pub fn scan(&self, num_queries: usize, within: u32, isa: Isa) -> u64 {
        let mut found = 0;
        let (words, len, count) = (self.words.as_slice(), self.len, &mut found);
        run_kernel!(
            isa,
            1,
            scan,
            (words: &[u64], len: usize, num_queries: usize, within: u32, count: &mut u64)
        );
        found
    }
}

/// Safety: the processor must have the kernel's instruction set, and `words` must have [`LANES`] words more than `len`.
#[inline(always)]
unsafe fn stream<K: Kernel, const W: usize>(
    words: &[u64],
    len: usize,
    within: u32,
    count: &mut u64,
) {
    let query = [0x5555_5555_5555_5555; W];
    for index in (0..len).step_by(LANES) {
        // SAFETY: eight words are readable from every index below `len`; with one-word codes, the stride is not used.
        let near = unsafe { K::within8::<W>(words[index..].as_ptr(), 0, &query, within) };
        *count += u64::from(near.count_ones());
    }
}

/// Safety: same as [`stream`].
#[inline(always)]
unsafe fn scan<K: Kernel, const W: usize>(
    words: &[u64],
    len: usize,
    num_queries: usize,
    within: u32,
    count: &mut u64,
) {
    for tile in (0..len).step_by(TILE_LEN) {
        for first in (0..num_queries).step_by(NUM_QUERIES) {
            let queries: [[u64; W]; NUM_QUERIES] =
                std::array::from_fn(|i| [mix64((first + i) as u64 ^ 0x0f0f_0f0f); W]);
            for index in (tile..(tile + TILE_LEN).min(len)).step_by(LANES) {
                // SAFETY: as in `stream`.
                let any = unsafe { K::any_within8(words[index..].as_ptr(), 0, &queries, within) };
                *count += u64::from(any);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_word_is_compared() {
        let exercise = Exercise::new(100_000);
        assert_eq!(exercise.num_bytes(), 65_536);
        let query = 0x5555_5555_5555_5555;
        let expected = (1..=8192_u64)
            .filter(|&i| (mix64(i) ^ query).count_ones() <= 25)
            .count() as u64;
        assert!(expected > 100);
        for isa in Isa::available() {
            assert_eq!(exercise.stream(25, isa), expected);
            assert_eq!(exercise.stream(64, isa), 8192);
            assert_eq!(exercise.scan(8, 64, isa), 2 * 8192 / 8);
            assert_eq!(exercise.scan(5, 0, isa), 0);
        }
        assert_ne!(exercise.wait(10, 0), exercise.wait(10, 1));
        assert_ne!(exercise.ask(64, 0), exercise.ask(64, 1));
    }
}
