//! By which keys is a document found?

use likewise_core::bands::BandKey;
use likewise_core::features::Shape;
use likewise_core::hash::mix64;
use likewise_core::sketch::Signatures;

use crate::rules::{Method, Rules};

/// Class of the empty texts.
const EMPTY_CLASS: u64 = 0x6c69_6b65_7769_7365;

/// The words of a fingerprint.
pub fn words_of(sketch: &[u8]) -> impl Iterator<Item = u64> {
    let (words, _) = sketch.as_chunks::<8>();
    words.iter().map(|word| u64::from_le_bytes(*word))
}

/// Differing bits of two fingerprints.
pub fn distance_of(a: &[u8], b: &[u8]) -> u16 {
    let differing = words_of(a)
        .zip(words_of(b))
        .map(|(x, y)| (x ^ y).count_ones());
    differing.sum::<u32>() as u16
}

/// Computes band keys; scratch space of a thread.
#[derive(Debug, Clone, Default)]
pub struct Keys {
    /// Of each band those of the three levels.
    bands: Vec<[BandKey; 3]>,
}

impl Keys {
    /// For the bands of the rules, if they have any.
    pub fn new(rules: &Rules) -> Self {
        let Method::Minhash {
            num_slots,
            slot_bytes,
            bands,
            rows,
            ..
        } = rules.method
        else {
            return Keys::default();
        };
        let shape = Signatures {
            bytes: &[],
            num_slots: num_slots as usize,
            slot_bytes: slot_bytes as usize,
        };
        let levels = |band| [0, 1, 2].map(|level| BandKey::new(&shape, band, rows, level));
        Keys {
            bands: (0..bands).map(levels).collect(),
        }
    }

    pub fn num_bands(&self) -> u32 {
        self.bands.len() as u32
    }

    /// The key of a band at a level.
    pub fn of(&mut self, sketch: &[u8], band: u32, level: u32) -> u64 {
        self.bands[band as usize][level as usize].of(sketch)
    }

    /// Hash of the key of a document's class, if looked up: of empty texts, and where feature sets are measured.
    pub fn class_hash(&self, rules: &Rules, shape: u8, digest: u128) -> Option<u64> {
        if shape & 3 == Shape::Empty as u8 {
            return Some(EMPTY_CLASS);
        }
        (!rules.is_distance_only()).then(|| mix64(digest as u64 ^ (digest >> 64) as u64))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distances_count_bits_of_all_words() {
        let a: Vec<u8> = [1_u64, 0]
            .iter()
            .flat_map(|word| word.to_le_bytes())
            .collect();
        let b: Vec<u8> = [6_u64, 1 << 63]
            .iter()
            .flat_map(|word| word.to_le_bytes())
            .collect();
        assert_eq!(distance_of(&a, &b), 4);
        assert_eq!(words_of(&b).collect::<Vec<_>>(), [6, 1 << 63]);
    }
}
