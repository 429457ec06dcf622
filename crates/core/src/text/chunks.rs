//! Where are bytes cut into chunks?

use fastcdc::v2020::FastCDC;

/// The library that determines content-defined cuts, and its version.
pub const CHUNK_LIBRARY: &str = "fastcdc 5.0.0";

/// How bytes are cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Chunks {
    /// By a rolling hash, so that an insertion only moves cuts near it: about this many bytes, a quarter to four times.
    Content(u32),
    /// After this number of bytes each.
    Fixed(u32),
}

/// Minimum and maximum size of [`Chunks::Content`]; powers of two, so that no logarithm is involved.
pub const CONTENT_BYTES: std::ops::RangeInclusive<u32> = 256..=1 << 20;

impl Chunks {
    /// Calls `take` with every chunk (Xia et al., The Design of Fast Content-Defined Chunking, 2020, level 1).
    pub(crate) fn cut<'a>(self, bytes: &'a [u8], mut take: impl FnMut(&'a [u8])) {
        match self {
            Chunks::Fixed(size) => bytes.chunks(size.max(1) as usize).for_each(take),
            Chunks::Content(size) => {
                // The library asserts its limits only in debug builds.
                let size = size.clamp(*CONTENT_BYTES.start(), *CONTENT_BYTES.end());
                let size = size.next_power_of_two() as usize;
                for chunk in FastCDC::new(bytes, size / 4, size, size * 4) {
                    take(&bytes[chunk.offset..chunk.offset + chunk.length]);
                }
            }
        }
    }
}

impl Default for Chunks {
    fn default() -> Self {
        Chunks::Content(1024)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hash::xxh3_64_with_seed;
    use crate::testing::Random;

    fn bytes(len: usize, seed: u64) -> Vec<u8> {
        let mut random = Random::new(seed);
        (0..len).map(|_| random.next() as u8).collect()
    }

    fn lengths(chunks: Chunks, bytes: &[u8]) -> Vec<usize> {
        let mut found = Vec::new();
        chunks.cut(bytes, |chunk| found.push(chunk.len()));
        found
    }

    #[test]
    fn chunks_follow_each_other_without_gaps() {
        for len in [0, 1, 63, 64, 255, 1000, 5000, 100_000] {
            let data = bytes(len, 3);
            for chunks in [
                Chunks::Content(256),
                Chunks::default(),
                Chunks::Content(4096),
                Chunks::Fixed(1),
                Chunks::Fixed(700),
            ] {
                let mut joined = Vec::new();
                chunks.cut(&data, |chunk| {
                    assert!(!chunk.is_empty());
                    joined.extend_from_slice(chunk);
                });
                assert_eq!(joined, data);
            }
        }
    }

    #[test]
    fn sizes_stay_in_their_bounds() {
        let data = bytes(1_000_000, 5);
        for size in [256, 1024, 4096] {
            let found = lengths(Chunks::Content(size), &data);
            let size = size as usize;
            let inner = &found[..found.len() - 1];
            assert!(
                inner
                    .iter()
                    .all(|&len| (size / 4..=size * 4).contains(&len))
            );
            let mean = data.len() / found.len();
            assert!((size / 2..size * 2).contains(&mean), "{mean} for {size}");
        }
        // Constant content is cut at the maximum size.
        assert_eq!(lengths(Chunks::Content(256), &[0; 3000]), [1024, 1024, 952]);
    }

    #[test]
    fn an_insertion_moves_only_cuts_near_it() {
        let mut data = bytes(200_000, 7);
        let hashes = |data: &[u8]| {
            let mut found = std::collections::BTreeSet::new();
            Chunks::default().cut(data, |chunk| {
                found.insert(xxh3_64_with_seed(chunk, 0));
            });
            found
        };
        let before = hashes(&data);
        data.insert(90_000, 1);
        let after = hashes(&data);
        assert!(before.difference(&after).count() <= 3);
        assert!(before.len() > 100);
    }

    /// The cuts when the recipe was defined; another version of the library is distinguished by its name.
    #[test]
    fn cuts_of_this_version() {
        let data = bytes(12_000, 11);
        assert_eq!(lengths(Chunks::default(), &data), GOLDEN);
    }

    const GOLDEN: &[usize] = &[1097, 1182, 843, 1506, 1080, 1224, 2116, 1571, 759, 622];
}
