//! How does a seed modify XXH3 for tokens of up to 16 bytes?

use crate::hash::xxh3_64_with_seed;

/// The parts of the XXH3 secret combined with the seed, for each range of lengths.
#[derive(Debug, Clone)]
pub(super) struct Keys {
    seed: u64,
    /// 1 to 3 bytes.
    pub(super) small: u64,
    /// 4 to 8 bytes.
    pub(super) middle: u64,
    /// 9 to 16 bytes: first and last eight.
    pub(super) large: [u64; 2],
}

/// The first 56 bytes of the default secret of XXH3, as seven little-endian words.
const SECRET: [u64; 7] = [
    0xbe4b_a423_396c_feb8,
    0x1cad_21f7_2c81_017c,
    0xdb97_9083_e96d_d4de,
    0x1f67_b3b7_a4a4_4072,
    0x78e5_c0cc_4ee6_79cb,
    0x2172_ffcc_7dd0_5a82,
    0x8e24_43f7_7446_08b8,
];

// Odd multipliers of XXH64 and XXH3.
pub(super) const PRIME64_2: u64 = 0xC2B2_AE3D_27D4_EB4F;
pub(super) const PRIME64_3: u64 = 0x1656_67B1_9E37_79F9;
pub(super) const PRIME_MX1: u64 = 0x1656_6791_9E37_79F9;
pub(super) const PRIME_MX2: u64 = 0x9FB2_1C65_1E98_DF25;

/// Maximum length of a token with a specialized path.
pub(super) const MAX_SHORT_BYTES: usize = 16;

impl Keys {
    pub(super) fn new(seed: u64) -> Keys {
        let flipped = seed ^ u64::from((seed as u32).swap_bytes()) << 32;
        let small = (SECRET[0] & 0xFFFF_FFFF) ^ (SECRET[0] >> 32);
        Keys {
            seed,
            small: small.wrapping_add(seed),
            middle: (SECRET[1] ^ SECRET[2]).wrapping_sub(flipped),
            large: [
                (SECRET[3] ^ SECRET[4]).wrapping_add(seed),
                (SECRET[5] ^ SECRET[6]).wrapping_sub(seed),
            ],
        }
    }

    /// Returns the hash of 1 to 8 bytes. Both ranges of lengths are computed: a mispredicted branch costs more.
    #[inline(always)]
    pub(super) fn up_to_8(&self, word: u64, len: u64) -> u64 {
        let (small, middle) = (self.up_to_3(word, len), self.of_4_to_8(word, len));
        std::hint::select_unpredictable(len < 4, small, middle)
    }

    /// Returns the hash of 1 to 3 bytes; another number for other lengths from 1.
    #[inline(always)]
    pub(super) fn up_to_3(&self, word: u64, len: u64) -> u64 {
        let byte = |at: u64| (word >> ((8 * at) & 63)) & 0xFF;
        let mut hash =
            (byte(0) << 16 | byte(len >> 1) << 24 | byte(len - 1) | len << 8) ^ self.small;
        hash = (hash ^ hash >> 33).wrapping_mul(PRIME64_2);
        hash = (hash ^ hash >> 29).wrapping_mul(PRIME64_3);
        hash ^ hash >> 32
    }

    /// Returns the hash of 4 to 8 bytes; another number for other lengths.
    #[inline(always)]
    pub(super) fn of_4_to_8(&self, word: u64, len: u64) -> u64 {
        let last = word >> (len.wrapping_sub(4).wrapping_mul(8) & 63) & 0xFFFF_FFFF;
        let mut hash = last.wrapping_add(word << 32) ^ self.middle;
        hash = (hash ^ hash.rotate_left(49) ^ hash.rotate_left(24)).wrapping_mul(PRIME_MX2);
        hash = (hash ^ (hash >> 35).wrapping_add(len)).wrapping_mul(PRIME_MX2);
        hash ^ hash >> 28
    }

    /// Returns the hash of the token `text[start..end]` of more than eight bytes.
    #[inline(always)]
    pub(super) fn over_8(&self, text: &[u8], start: usize, end: usize) -> u64 {
        match end - start {
            len @ ..=MAX_SHORT_BYTES => {
                self.up_to_16(word(text, start), word(text, end - 8), len as u64)
            }
            _ => self.long(&text[start..end]),
        }
    }

    /// Returns the hash of 9 to 16 bytes, given the first and the last eight.
    #[inline(always)]
    pub(super) fn up_to_16(&self, first: u64, last: u64, len: u64) -> u64 {
        let (low, high) = (first ^ self.large[0], last ^ self.large[1]);
        let product = u128::from(low) * u128::from(high);
        let folded = product as u64 ^ (product >> 64) as u64;
        let mut hash = len
            .wrapping_add(low.swap_bytes())
            .wrapping_add(high)
            .wrapping_add(folded);
        hash = (hash ^ hash >> 37).wrapping_mul(PRIME_MX1);
        hash ^ hash >> 32
    }

    #[cold]
    pub(super) fn long(&self, token: &[u8]) -> u64 {
        xxh3_64_with_seed(token, self.seed)
    }
}

/// Returns the eight bytes at a place as a number.
#[inline(always)]
pub(super) fn word(text: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(text[at..at + 8].try_into().unwrap_or([0; 8]))
}
