//! How does the Python package `datasketch` fill the slots of a signature?
//!
//! Its formulas (version 2.0, `minhash.py`), bit for bit, on the low 32 bits of each feature. The affine scheme is
//! 2-universal, not min-wise independent; the legacy one computes "modulo 2^61 - 1" in wrapping 64-bit arithmetic. Both
//! exist only for stored signatures.

use super::minhash_expansion::Expansion;
use super::minhash_values::fold;

const MERSENNE_PRIME: u64 = (1 << 61) - 1;

/// The permutations of all slots.
#[derive(Debug, Clone)]
pub(super) enum Permutations {
    /// `a * h + b` modulo 2^32 of the mixed hash, with odd `a`: factors, then terms.
    Affine32(Vec<u32>, Vec<u32>),
    /// `(a * h + b) mod 2^64 mod (2^61 - 1) mod 2^32`.
    Legacy(Vec<u64>, Vec<u64>),
}

impl Permutations {
    /// Returns the permutations of a seed in the default scheme of version 2.
    pub(super) fn affine32(num_slots: u32, seed: u32) -> Self {
        let mut random = MersenneTwister::new(seed);
        let factors = (0..num_slots).map(|_| random.next_32() << 1 | 1).collect();
        let terms = (0..num_slots).map(|_| random.next_32()).collect();
        Permutations::Affine32(factors, terms)
    }

    /// Returns the permutations of all versions before 2.
    pub(super) fn legacy(num_slots: u32, seed: u32) -> Self {
        let mut random = MersenneTwister::new(seed);
        let draw = |_| {
            let factor = 1 + random.up_to(MERSENNE_PRIME - 2);
            (factor, random.up_to(MERSENNE_PRIME - 1))
        };
        let (factors, terms) = (0..num_slots).map(draw).unzip();
        Permutations::Legacy(factors, terms)
    }

    /// Writes the least value of every slot. The expansion must not be empty.
    pub(super) fn fill(&self, expansion: &mut Expansion<'_>, out: &mut [u32]) {
        out.fill(u32::MAX);
        expansion.for_each_block(|block| {
            // Folding twice restores the feature.
            let hashes = block.iter().map(|&folded| fold(folded) as u32);
            match self {
                Permutations::Affine32(factors, terms) => {
                    for hash in hashes.map(mix32) {
                        for ((least, &a), &b) in out.iter_mut().zip(factors).zip(terms) {
                            *least = (*least).min(a.wrapping_mul(hash).wrapping_add(b));
                        }
                    }
                }
                Permutations::Legacy(factors, terms) => {
                    for hash in hashes.map(u64::from) {
                        for ((least, &a), &b) in out.iter_mut().zip(factors).zip(terms) {
                            let value = a.wrapping_mul(hash).wrapping_add(b) % MERSENNE_PRIME;
                            *least = (*least).min(value as u32);
                        }
                    }
                }
            }
        });
    }
}

/// The 32-bit finalizer of MurmurHash3.
const fn mix32(mut x: u32) -> u32 {
    x ^= x >> 16;
    x = x.wrapping_mul(0x85EB_CA6B);
    x ^= x >> 13;
    x = x.wrapping_mul(0xC2B2_AE35);
    x ^ x >> 16
}

const SIZE: usize = 624;
const MIDDLE: usize = 397;

#[derive(Debug, Clone)]
pub(super) struct MersenneTwister {
    state: Box<[u32; SIZE]>,
    next: usize,
}

impl MersenneTwister {
    pub(super) fn new(seed: u32) -> Self {
        let mut state = Box::new([seed; SIZE]);
        for i in 1..SIZE {
            let last = state[i - 1];
            state[i] = (last ^ last >> 30)
                .wrapping_mul(1_812_433_253)
                .wrapping_add(i as u32);
        }
        MersenneTwister { state, next: SIZE }
    }

    pub(super) fn next_32(&mut self) -> u32 {
        if self.next == SIZE {
            self.twist();
        }
        let mut x = self.state[self.next];
        self.next += 1;
        x ^= x >> 11;
        x ^= x << 7 & 0x9D2C_5680;
        x ^= x << 15 & 0xEFC6_0000;
        x ^ x >> 18
    }

    /// Returns a number from 0 to `last`, at least 2^32: masked 64-bit draws, the upper half first, until one fits.
    pub(super) fn up_to(&mut self, last: u64) -> u64 {
        let mask = u64::MAX >> last.leading_zeros();
        loop {
            let high = u64::from(self.next_32());
            let drawn = (high << 32 | u64::from(self.next_32())) & mask;
            if drawn <= last {
                return drawn;
            }
        }
    }

    fn twist(&mut self) {
        for i in 0..SIZE {
            let joined = self.state[i] & 0x8000_0000 | self.state[(i + 1) % SIZE] & 0x7FFF_FFFF;
            let odd = if joined & 1 == 1 { 0x9908_B0DF } else { 0 };
            self.state[i] = self.state[(i + MIDDLE) % SIZE] ^ joined >> 1 ^ odd;
        }
        self.next = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_stream_is_that_of_the_paper() {
        // The authors' example output for init_genrand(5489), also in the C++ standard, [rand.predef]: the 10000th
        // number.
        let mut twister = MersenneTwister::new(5489);
        let last = (0..10_000).map(|_| twister.next_32()).last();
        assert_eq!(last, Some(4_123_659_995));
    }
}
