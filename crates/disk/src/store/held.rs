//! Which chunks were read recently?

use std::collections::BTreeMap;
use std::ops::Range;

/// Number of cached chunks: 4 MiB if they are full.
const NUM_HELD: usize = 256;

/// A cache of chunk records with verified checksums, which never change but may still have gone documents.
#[derive(Debug, Default)]
pub(super) struct HeldChunks {
    /// Index of each chunk, by its first row.
    places: BTreeMap<u32, usize>,
    held: Vec<(Range<u32>, Vec<u8>)>,
    /// The index that is replaced next.
    oldest: usize,
}

impl HeldChunks {
    pub(super) fn find(&self, row: u32) -> Option<usize> {
        let (_, &place) = self.places.range(..=row).next_back()?;
        self.held[place].0.contains(&row).then_some(place)
    }

    /// Returns the first row and the record of the chunk at an index.
    pub(super) fn get(&self, place: usize) -> (u32, &[u8]) {
        let (rows, record) = &self.held[place];
        (rows.start, record)
    }

    /// Stores a chunk; returns its index.
    pub(super) fn put(&mut self, rows: Range<u32>, record: &[u8]) -> usize {
        let first_row = rows.start;
        let place = if self.held.len() < NUM_HELD {
            self.held.push((rows, record.to_vec()));
            self.held.len() - 1
        } else {
            let place = self.oldest;
            self.oldest = (place + 1) % NUM_HELD;
            let (held_rows, held) = &mut self.held[place];
            // A longer chunk with the same first row may have replaced it.
            if self.places.get(&held_rows.start) == Some(&place) {
                self.places.remove(&held_rows.start);
            }
            *held_rows = rows;
            held.clear();
            held.extend_from_slice(record);
            place
        };
        self.places.insert(first_row, place);
        place
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_is_found_in_the_chunk_that_was_read_last() {
        let mut held = HeldChunks::default();
        for first in 0..NUM_HELD as u32 {
            held.put(10 * first..10 * first + 9, &[first as u8]);
        }
        assert_eq!(held.find(9), None);
        let place = held.find(2_558).map(|place| held.get(place));
        assert_eq!(place, Some((2_550, &[255][..])));
        // After chunks are joined, a row can be in two records, which agree.
        held.put(0..30, b"joined");
        assert_eq!(held.find(25).map(|place| held.get(place).0), Some(20));
        assert_eq!(
            held.find(9).map(|place| held.get(place).1),
            Some(&b"joined"[..])
        );
        for first in 1_000..1_000 + NUM_HELD as u32 {
            held.put(10 * first..10 * first + 10, &[]);
        }
        assert_eq!(held.find(9), None);
        assert_eq!(held.places.len(), NUM_HELD);
    }
}
