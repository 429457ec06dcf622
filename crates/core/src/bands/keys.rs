//! What is the key of a band?

use crate::hash::xxh3_64_with_seed;
use crate::sketch::Signatures;

/// Computes the keys of one band at one level, row by row.
#[derive(Debug, Clone)]
pub struct BandKey {
    seed: u64,
    /// First byte of the band in a row.
    start: usize,
    /// Number of bytes up to the end of the row or of the key, whichever comes first.
    head_end: usize,
    /// Number of bytes from the start of the row if the key wraps around its end.
    tail_end: usize,
    joined: Vec<u8>,
}

impl BandKey {
    /// Creates the key of band `band` at `level`: `min(num_slots, rows * 2^level)` slots, taken cyclically.
    pub fn new(signatures: &Signatures<'_>, band: u32, rows: u32, level: u32) -> Self {
        let num_slots = signatures.num_slots;
        let length = ((rows as usize) << level).min(num_slots);
        let start = band as usize * rows as usize;
        let end = start + length;
        BandKey {
            seed: u64::from(band) * 256 + u64::from(level),
            start: start * signatures.slot_bytes,
            head_end: end.min(num_slots) * signatures.slot_bytes,
            tail_end: end.saturating_sub(num_slots) * signatures.slot_bytes,
            joined: Vec::new(),
        }
    }

    /// Offset of the key's first byte in a row.
    pub fn start(&self) -> usize {
        self.start
    }

    /// Returns the key of one row. Panics if the row is shorter than those of the signatures that this was created for.
    #[inline]
    pub fn of(&mut self, row: &[u8]) -> u64 {
        if self.tail_end == 0 {
            return xxh3_64_with_seed(&row[self.start..self.head_end], self.seed);
        }
        self.joined.clear();
        self.joined
            .extend_from_slice(&row[self.start..self.head_end]);
        self.joined.extend_from_slice(&row[..self.tail_end]);
        xxh3_64_with_seed(&self.joined, self.seed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_hashes_of_the_slots_of_the_band_taken_cyclically() {
        let bytes: Vec<u8> = (0..10).collect();
        let signatures = Signatures {
            bytes: &bytes,
            num_slots: 5,
            slot_bytes: 2,
        };
        // Slots 2 and 3; then 2, 3, 4, 0; then all five, from 2 on. Seeds are band * 256 + level.
        let expected: [(u32, &[u8], u64); 3] = [
            (0, &[4, 5, 6, 7], 256),
            (1, &[4, 5, 6, 7, 8, 9, 0, 1], 257),
            (2, &[4, 5, 6, 7, 8, 9, 0, 1, 2, 3], 258),
        ];
        for (level, slots, seed) in expected {
            let key = BandKey::new(&signatures, 1, 2, level).of(signatures.row(0));
            assert_eq!(key, xxh3_64_with_seed(slots, seed), "{level}");
        }
    }
}
