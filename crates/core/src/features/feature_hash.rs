//! Which hash function converts a token to a number?
//!
//! XXH3-64, unless a recipe names another one for collections whose sketches were made by other programs. Only XXH3
//! takes a seed.

use md5::Md5;
use sha1::{Digest, Sha1};

use crate::hash::xxh3_64_with_seed;

/// The hash of a token and, for hashes of a package, that package's way of cutting and joining tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum FeatureHash {
    /// XXH3-64 with a seed.
    #[default]
    Xxh3,
    /// The last 8 bytes of MD5, big-endian.
    Md5,
    /// The first 8 bytes of SHA-1, little-endian.
    Sha1,
    /// [`multiplicative_hash`]: the string hash of old Python versions, over UTF-16 code units.
    Multiplicative,
    /// The method of the Python package `simhash`: its own tokens, hashed like [`FeatureHash::Md5`].
    Simhash1e0ng,
    /// What users of the package `datasketch` do: a shingle is its joined tokens, hashed like [`FeatureHash::Sha1`].
    Datasketch,
}

named!(FeatureHash {
    Xxh3: "xxh3",
    Md5: "md5",
    Sha1: "sha1",
    Multiplicative: "1000003",
    Simhash1e0ng: "simhash-1e0ng",
    Datasketch: "datasketch",
});

impl FeatureHash {
    /// Returns the hash of one token in well-formed UTF-8.
    pub fn of(self, token: &[u8], seed: u64) -> u64 {
        match self {
            FeatureHash::Xxh3 => xxh3_64_with_seed(token, seed),
            FeatureHash::Md5 | FeatureHash::Simhash1e0ng => {
                let digest = Md5::digest(token);
                digest[8..]
                    .iter()
                    .fold(0, |hash, &byte| hash << 8 | u64::from(byte))
            }
            FeatureHash::Sha1 | FeatureHash::Datasketch => {
                let digest = Sha1::digest(token);
                digest[..8]
                    .iter()
                    .rev()
                    .fold(0, |hash, &byte| hash << 8 | u64::from(byte))
            }
            FeatureHash::Multiplicative => multiplicative_hash(&String::from_utf8_lossy(token)),
        }
    }
}

/// Returns the string hash of Python up to 3.2, in 64 bits, over the UTF-16 code units of a text:
/// `x = x * 1000003 ^ u`, from the first unit times 128. 2^64 - 1, an error code there, becomes 2^64 - 2.
pub fn multiplicative_hash(text: &str) -> u64 {
    let mut units = text.encode_utf16();
    let Some(first) = units.clone().next() else {
        return 0;
    };
    let start = u64::from(first) << 7;
    let (hash, num_units) = units.by_ref().fold((start, 0u64), |(hash, count), unit| {
        (hash.wrapping_mul(1_000_003) ^ u64::from(unit), count + 1)
    });
    match hash ^ num_units {
        u64::MAX => u64::MAX - 1,
        hash => hash,
    }
}

/// Tokens of one text, kept so that shingles of them can be joined and hashed, as users of `datasketch` do.
#[derive(Debug, Default)]
pub(super) struct JoinedTokens {
    /// All tokens, each followed by its separator if it has one.
    bytes: Vec<u8>,
    spans: Vec<(usize, usize)>,
}

impl JoinedTokens {
    pub(super) fn clear(&mut self) {
        self.bytes.clear();
        self.spans.clear();
    }

    pub(super) fn len(&self) -> usize {
        self.spans.len()
    }

    /// Adds a token, followed by a space if `spaced`.
    pub(super) fn push(&mut self, token: &[u8], spaced: bool) {
        let start = self.bytes.len();
        self.bytes.extend_from_slice(token);
        self.spans.push((start, self.bytes.len()));
        if spaced {
            self.bytes.push(b' ');
        }
    }

    /// Appends the hash of every run of `width` tokens, 1 <= width <= len.
    pub(super) fn hash(&self, width: usize, hash: FeatureHash, out: &mut Vec<u64>) {
        out.extend(self.spans.windows(width).map(|run| {
            let (start, end) = (run[0].0, run[run.len() - 1].1);
            hash.of(&self.bytes[start..end], 0)
        }));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hashes_by_name_are_those_of_the_papers() {
        for hash in FeatureHash::ALL {
            assert_eq!(FeatureHash::from_name(hash.name()), Some(hash));
        }
        assert_eq!(FeatureHash::from_name("MD5"), None);
        // RFC 1321, A.5: MD5 of "" is d41d8cd98f00b204 e9800998ecf8427e, of "abc" 900150983cd24fb0 d6963f7d28e17f72.
        assert_eq!(FeatureHash::Md5.of(b"", 9), 0xe980_0998_ecf8_427e);
        assert_eq!(FeatureHash::Md5.of(b"abc", 0), 0xd696_3f7d_28e1_7f72);
        // FIPS 180: SHA-1 of "abc" begins with a9993e36 4706816a.
        let first = u64::from_le_bytes([0xa9, 0x99, 0x3e, 0x36, 0x47, 0x06, 0x81, 0x6a]);
        assert_eq!(FeatureHash::Sha1.of(b"abc", 3), first);
        assert_eq!(FeatureHash::Datasketch.of(b"abc", 0), first);
        assert_eq!(
            FeatureHash::Xxh3.of(b"abc", 3),
            xxh3_64_with_seed(b"abc", 3)
        );
    }

    #[test]
    fn the_multiplicative_hash_counts_utf16_units() {
        assert_eq!(multiplicative_hash(""), 0);
        // One unit u: (128 u * 1000003 ^ u) ^ 1.
        assert_eq!(multiplicative_hash("a"), ((97 * 128 * 1_000_003) ^ 97) ^ 1);
        let (high, low) = (0xD83D_u64, 0xDE00_u64);
        let two = ((high << 7).wrapping_mul(1_000_003) ^ high).wrapping_mul(1_000_003) ^ low ^ 2;
        assert_eq!(multiplicative_hash("\u{1F600}"), two);
    }
}
