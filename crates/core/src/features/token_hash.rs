//! What is the hash of a token?
//!
//! XXH3-64 with a seed, as the xxhash-rust crate computes it. Tokens are short, so the paths for up to 16 bytes stand here, written to
//! read whole words from a padded text and to depend on branches as little as possible.

use crate::hash::xxh3_64_with_seed;
use crate::isa::Isa;

/// Hashes tokens for one seed.
#[derive(Debug, Clone)]
pub(crate) struct TokenHasher {
    seed: u64,
    isa: Isa,
    pub(super) keys: Keys,
    /// Hash of every token of one ASCII byte.
    of_ascii: Box<[u64; 128]>,
}

/// What the seed adds to the secret of XXH3, for each range of lengths.
#[derive(Debug, Clone)]
pub(super) struct Keys {
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

/// Bytes that are looked at together for being ASCII.
const ASCII_STEP: usize = 32;

/// Longest token with a path of its own.
pub(super) const MAX_SHORT_BYTES: usize = 16;

impl Keys {
    fn new(seed: u64) -> Keys {
        let flipped = seed ^ u64::from((seed as u32).swap_bytes()) << 32;
        let small = (SECRET[0] & 0xFFFF_FFFF) ^ (SECRET[0] >> 32);
        Keys {
            small: small.wrapping_add(seed),
            middle: (SECRET[1] ^ SECRET[2]).wrapping_sub(flipped),
            large: [
                (SECRET[3] ^ SECRET[4]).wrapping_add(seed),
                (SECRET[5] ^ SECRET[6]).wrapping_sub(seed),
            ],
        }
    }

    /// Hash of 1 to 8 bytes, the low `len` bytes of `word`. Both ranges of lengths are computed and one is
    /// taken: a mispredicted branch costs more.
    #[inline(always)]
    fn up_to_8(&self, word: u64, len: u64) -> u64 {
        let small = {
            let byte = |at: u64| (word >> ((8 * at) & 63)) & 0xFF;
            let mut hash =
                (byte(0) << 16 | byte(len >> 1) << 24 | byte(len - 1) | len << 8) ^ self.small;
            hash = (hash ^ hash >> 33).wrapping_mul(PRIME64_2);
            hash = (hash ^ hash >> 29).wrapping_mul(PRIME64_3);
            hash ^ hash >> 32
        };
        let middle = {
            let last = word >> (len.wrapping_sub(4).wrapping_mul(8) & 63) & 0xFFFF_FFFF;
            let mut hash = last.wrapping_add(word << 32) ^ self.middle;
            hash = (hash ^ hash.rotate_left(49) ^ hash.rotate_left(24)).wrapping_mul(PRIME_MX2);
            hash = (hash ^ (hash >> 35).wrapping_add(len)).wrapping_mul(PRIME_MX2);
            hash ^ hash >> 28
        };
        std::hint::select_unpredictable(len < 4, small, middle)
    }

    /// Hash of 9 to 16 bytes, given the first and the last eight.
    #[inline(always)]
    fn up_to_16(&self, first: u64, last: u64, len: u64) -> u64 {
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
}

impl TokenHasher {
    pub(crate) fn new(seed: u64, isa: Isa) -> Self {
        let keys = Keys::new(seed);
        let of_ascii = Box::new(std::array::from_fn(|byte| keys.up_to_8(byte as u64, 1)));
        TokenHasher {
            seed,
            isa,
            keys,
            of_ascii,
        }
    }

    /// Appends the hash of every scalar of `text[..len]`, well-formed UTF-8 with at least 8 bytes behind it.
    pub(crate) fn hash_scalars(&self, text: &[u8], len: usize, hashes: &mut Vec<u64>) {
        hashes.reserve(len);
        let mut at = 0;
        while at < len {
            let rest = &text[at..len];
            let num_ascii = match rest
                .as_chunks::<ASCII_STEP>()
                .0
                .iter()
                .position(|step| !step.is_ascii())
            {
                Some(steps) => steps * ASCII_STEP,
                None => rest.len() / ASCII_STEP * ASCII_STEP,
            };
            // The mask tells the compiler what is known already.
            let of_ascii = |&byte: &u8| self.of_ascii[usize::from(byte & 0x7F)];
            hashes.extend(rest[..num_ascii].iter().map(of_ascii));
            at += num_ascii;
            let end = len.min(at + ASCII_STEP);
            while at < end {
                let lead = text[at];
                let num_bytes = match lead {
                    0..0x80 => {
                        hashes.push(self.of_ascii[lead as usize]);
                        at += 1;
                        continue;
                    }
                    0x80..0xE0 => 2,
                    0xE0..0xF0 => 3,
                    _ => 4,
                };
                hashes.push(self.one(text, at, at + num_bytes));
                at += num_bytes;
            }
        }
    }

    /// Appends the hash of every byte.
    pub(crate) fn hash_bytes(&self, bytes: &[u8], hashes: &mut Vec<u64>) {
        let of_byte: [u64; 256] = std::array::from_fn(|byte| self.keys.up_to_8(byte as u64, 1));
        hashes.extend(bytes.iter().map(|&byte| of_byte[byte as usize]));
    }

    /// Appends the hashes of the tokens `text[starts[i]..ends[i]]`, none of them empty. At least 16 bytes of text stand
    /// behind every start.
    #[inline]
    pub(crate) fn hash(&self, text: &[u8], starts: &[u32], ends: &[u32], hashes: &mut Vec<u64>) {
        #[cfg(target_arch = "x86_64")]
        if matches!(self.isa, Isa::Avx512(_)) {
            // SAFETY: an `Isa` of this kind is made only where the processor has it.
            unsafe { super::token_hash_avx512::hash(self, text, starts, ends, hashes) };
            return;
        }
        hashes.extend(
            starts
                .iter()
                .zip(ends)
                .map(|(&start, &end)| self.one(text, start as usize, end as usize)),
        );
    }

    /// Hash of one token of at least one byte. At least 16 bytes of text stand behind its start.
    #[inline(always)]
    pub(crate) fn one(&self, text: &[u8], start: usize, end: usize) -> u64 {
        let word = |at: usize| {
            let bytes: [u8; 8] = text[at..at + 8].try_into().unwrap_or([0; 8]);
            u64::from_le_bytes(bytes)
        };
        let len = end - start;
        if len <= 8 {
            self.keys.up_to_8(word(start), len as u64)
        } else if len <= MAX_SHORT_BYTES {
            self.keys.up_to_16(word(start), word(end - 8), len as u64)
        } else {
            self.long(&text[start..end])
        }
    }

    /// Hash of a token of any length.
    #[cold]
    pub(super) fn long(&self, token: &[u8]) -> u64 {
        xxh3_64_with_seed(token, self.seed)
    }
}
