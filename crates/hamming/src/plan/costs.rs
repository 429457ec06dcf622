//! What do the basic steps of a search cost on a machine?
//!
//! The costs are measured outside the core, which has no clock; [`super::exercise`] contains the work to be timed.

use likewise_core::error::{Result, invalid_if};
use likewise_core::hash::{GOLDEN, mix64};
use likewise_core::isa::Isa;
use likewise_core::prefetch::prefetch_read;

use crate::kernels::{Kernel, LANES, run_kernel};

/// Random reads from a working set of a given size.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MemoryCost {
    pub num_bytes: f64,
    /// Nanoseconds per read if the next one depends on it.
    pub latency_ns: f64,
    /// Nanoseconds per read among many that are prefetched.
    pub overlapped_ns: f64,
}

/// Nanoseconds of the basic steps of a search, on one core.
#[derive(Clone, Debug, PartialEq)]
pub struct Costs {
    /// Random reads by size of the working set, ascending.
    pub memory: Vec<MemoryCost>,
    /// Additional cost of a single query, compared with one of many.
    pub query_ns: f64,
    /// Searching one table: permuting the code of the query.
    pub table_ns: f64,
    /// The additional cost of that for codes of several words.
    pub wide_ns: f64,
    /// Finding the bucket of one value near the query's, and iterating over it.
    pub bucket_ns: f64,
    /// Comparing a word of a code in a bucket, in addition to reading it.
    pub compare_ns: f64,
    /// Comparing a word of a code with one of many queries in a blocked scan.
    pub scan_ns: f64,
    /// Comparing a word of a code with a single query, read sequentially from memory.
    pub stream_ns: f64,
    /// Moving a word of a code in one pass of a sort.
    pub sort_ns: f64,
}

impl Default for Costs {
    /// Returns the costs of a virtual server core with AVX-512, 1 MiB of private cache and a share of 32 MiB.
    fn default() -> Self {
        let memory = [
            (15, 3.1, 1.55),
            (18, 5.4, 1.56),
            (21, 14.0, 1.7),
            (23, 71.0, 4.0),
            (25, 154.0, 9.2),
            (28, 205.0, 14.5),
            (32, 255.0, 18.8),
            (36, 302.0, 23.2),
        ];
        Costs {
            memory: memory
                .into_iter()
                .map(|(log2_bytes, latency_ns, overlapped_ns)| MemoryCost {
                    num_bytes: (1_u64 << log2_bytes) as f64,
                    latency_ns,
                    overlapped_ns,
                })
                .collect(),
            query_ns: 300.0,
            table_ns: 36.0,
            wide_ns: 200.0,
            bucket_ns: 11.0,
            compare_ns: 0.03,
            scan_ns: 0.07,
            stream_ns: 0.32,
            sort_ns: 12.0,
        }
    }
}

impl Costs {
    /// Returns the costs other than reads, by name.
    pub fn steps(&self) -> [(&'static str, f64); 8] {
        self.clone().steps_mut().map(|(name, step)| (name, *step))
    }

    fn steps_mut(&mut self) -> [(&'static str, &mut f64); 8] {
        [
            ("query_ns", &mut self.query_ns),
            ("table_ns", &mut self.table_ns),
            ("wide_ns", &mut self.wide_ns),
            ("bucket_ns", &mut self.bucket_ns),
            ("compare_ns", &mut self.compare_ns),
            ("scan_ns", &mut self.scan_ns),
            ("stream_ns", &mut self.stream_ns),
            ("sort_ns", &mut self.sort_ns),
        ]
    }

    pub fn step_mut(&mut self, name: &str) -> Option<&mut f64> {
        let mut steps = self.steps_mut().into_iter();
        steps.find_map(|(other, step)| (other == name).then_some(step))
    }

    /// Rejects costs that are not positive and finite, or sizes that do not ascend.
    pub fn check(&self) -> Result<()> {
        let reads = self.memory.iter().flat_map(|read| {
            [
                ("num_bytes", read.num_bytes),
                ("latency_ns", read.latency_ns),
                ("overlapped_ns", read.overlapped_ns),
            ]
        });
        for (name, value) in self.steps().into_iter().chain(reads) {
            invalid_if(!(value.is_finite() && value > 0.0), "costs", || {
                format!("{name} is {value}, not a positive number")
            })?;
        }
        invalid_if(
            self.memory.is_empty() || !self.memory.is_sorted_by(|a, b| a.num_bytes < b.num_bytes),
            "costs",
            || "memory sizes must be in ascending order",
        )?;
        Ok(())
    }

    /// Returns the nanoseconds of (a dependent, one of many prefetched) reads, linear in the logarithm of the size.
    pub fn read_ns(&self, num_bytes: f64) -> (f64, f64) {
        let last = self.memory.len() - 1;
        let upper = self
            .memory
            .partition_point(|read| read.num_bytes < num_bytes)
            .clamp(1.min(last), last);
        let (low, high) = (self.memory[upper.saturating_sub(1)], self.memory[upper]);
        if num_bytes <= low.num_bytes || last == 0 {
            return (low.latency_ns, low.overlapped_ns);
        }
        let share =
            libm::log2(num_bytes / low.num_bytes) / libm::log2(high.num_bytes / low.num_bytes);
        let between = |low: f64, high: f64| (low + share * (high - low)).max(low.min(high));
        (
            between(low.latency_ns, high.latency_ns),
            between(low.overlapped_ns, high.overlapped_ns),
        )
    }
}

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
    fn reads_are_interpolated_by_the_logarithm() {
        let point = |num_bytes, latency_ns| MemoryCost {
            num_bytes,
            latency_ns,
            overlapped_ns: latency_ns / 10.0,
        };
        let costs = Costs {
            memory: vec![point(1e3, 1.0), point(1e5, 3.0), point(1e7, 103.0)],
            ..Costs::default()
        };
        assert_eq!(costs.check(), Ok(()));
        for (num_bytes, expected) in [
            (1.0, 1.0),
            (1e3, 1.0),
            (1e4, 2.0),
            (1e5, 3.0),
            (1e6, 53.0),
            (1e7, 103.0),
            (1e9, 203.0),
        ] {
            let (latency_ns, overlapped_ns) = costs.read_ns(num_bytes);
            assert!(
                (latency_ns - expected).abs() < 1e-9,
                "{num_bytes}: {latency_ns}"
            );
            assert!((overlapped_ns - expected / 10.0).abs() < 1e-9);
        }
        let single = Costs {
            memory: vec![point(1e3, 2.0)],
            ..Costs::default()
        };
        assert_eq!(single.read_ns(1e9), (2.0, 0.2));
    }

    #[test]
    fn costs_that_make_no_sense_are_refused() {
        assert_eq!(Costs::default().check(), Ok(()));
        assert!(
            Costs {
                scan_ns: 0.0,
                ..Costs::default()
            }
            .check()
            .is_err()
        );
        assert!(
            Costs {
                memory: vec![],
                ..Costs::default()
            }
            .check()
            .is_err()
        );
        let mut turned = Costs::default();
        turned.memory.reverse();
        assert!(turned.check().is_err());
    }
}

#[cfg(test)]
mod exercise_tests {
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
