//! What is the hash of a token?
//!
//! XXH3-64 with a seed, as computed by the xxhash-rust crate. Tokens are short, so the paths for up to 16 bytes are
//! implemented here. They read whole words from a padded text and depend on branches as little as possible.

#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512;
mod keys;

use self::keys::{Keys, word};
use crate::isa::Isa;

#[derive(Debug, Clone)]
pub(crate) struct TokenHasher {
    isa: Isa,
    keys: Keys,
    /// Hash of every token of one ASCII byte.
    of_ascii: Box<[u64; 128]>,
}

/// Number of bytes that are checked together for being ASCII.
const ASCII_STEP: usize = 32;

impl TokenHasher {
    pub(crate) fn new(seed: u64, isa: Isa) -> Self {
        let keys = Keys::new(seed);
        let of_ascii = Box::new(std::array::from_fn(|byte| keys.up_to_8(byte as u64, 1)));
        TokenHasher {
            isa,
            keys,
            of_ascii,
        }
    }

    /// Appends the hash of every scalar of `text[..len]`, which must be well-formed UTF-8 followed by at least 8 bytes.
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
            // The mask tells the compiler that the index is in range.
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

    pub(crate) fn hash_bytes(&self, bytes: &[u8], hashes: &mut Vec<u64>) {
        let of_byte: [u64; 256] = std::array::from_fn(|byte| self.keys.up_to_8(byte as u64, 1));
        hashes.extend(bytes.iter().map(|&byte| of_byte[byte as usize]));
    }

    /// Appends the hashes of nonempty tokens; at least 16 bytes of text must follow every start.
    #[inline]
    pub(crate) fn hash(&self, text: &[u8], starts: &[u32], ends: &[u32], hashes: &mut Vec<u64>) {
        #[cfg(target_arch = "x86_64")]
        if matches!(self.isa, Isa::Avx512(_)) {
            // SAFETY: an `Isa` of this kind is created only if the processor has it.
            unsafe { avx512::hash(&self.keys, text, starts, ends, hashes) };
            return;
        }
        #[cfg(target_arch = "x86_64")]
        let (starts, ends) = match self.isa {
            // SAFETY: as above.
            Isa::Avx2(_) => unsafe { avx2::hash(&self.keys, text, starts, ends, hashes) },
            _ => (starts, ends),
        };
        hashes.extend(
            starts
                .iter()
                .zip(ends)
                .map(|(&start, &end)| self.one(text, start as usize, end as usize)),
        );
    }

    /// Returns the hash of one token of at least one byte. At least 16 bytes of text must follow its start.
    #[inline(always)]
    pub(crate) fn one(&self, text: &[u8], start: usize, end: usize) -> u64 {
        let len = end - start;
        if len <= 8 {
            self.keys.up_to_8(word(text, start), len as u64)
        } else {
            self.keys.over_8(text, start, end)
        }
    }
}
