//! Which numbers does NumPy's `RandomState` draw?
//!
//! MT19937 (Matsumoto, Nishimura, ACM TOMACS 8, 1998), seeded and bounded like
//! `numpy.random.RandomState(seed).randint`. NumPy has frozen that stream, and `datasketch` draws its permutations from
//! it.

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
