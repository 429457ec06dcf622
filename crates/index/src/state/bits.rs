//! Which of many rows are marked?

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};
use std::ops::Range;
use std::sync::{Arc, Mutex};

use likewise_core::parallel::lock;
use likewise_core::verify::FeatureSet;

const BLOCK_ROWS: u32 = 1 << 16;
/// Words of a block.
const BLOCK_WORDS: usize = BLOCK_ROWS as usize / 64;

/// A set of rows, in blocks of one bit a row. A block without rows takes only the memory of its address.
#[derive(Debug, Clone, Default)]
pub struct Bits {
    blocks: Vec<Option<Box<[u64; BLOCK_WORDS]>>>,
}

/// The block of a row, the word in it, and the bit in that.
fn place(row: u32) -> (usize, usize, u64) {
    let in_block = row % BLOCK_ROWS;
    (
        (row / BLOCK_ROWS) as usize,
        (in_block / 64) as usize,
        1 << (in_block % 64),
    )
}

impl Bits {
    pub fn insert(&mut self, row: u32) {
        let (block, word, bit) = place(row);
        if self.blocks.len() <= block {
            self.blocks.resize(block + 1, None);
        }
        let words = self.blocks[block].get_or_insert_with(|| Box::new([0; BLOCK_WORDS]));
        words[word] |= bit;
    }

    pub fn contains(&self, row: u32) -> bool {
        let (block, word, bit) = place(row);
        match self.blocks.get(block) {
            Some(Some(words)) => words[word] & bit != 0,
            _ => false,
        }
    }

    pub fn num_in(&self, rows: &Range<u32>) -> usize {
        let mut num = 0;
        for (first, words) in self.blocks_of(rows) {
            for (number, word) in (0..).zip(words) {
                num += (word & mask(first + 64 * number, rows)).count_ones() as usize;
            }
        }
        num
    }

    /// Takes the marks of all rows of a range away.
    pub fn clear(&mut self, rows: &Range<u32>) {
        for (number, block) in (0..).zip(&mut self.blocks) {
            let Some(words) = block else {
                continue;
            };
            let first = number * BLOCK_ROWS;
            for (number, word) in (0..).zip(words.iter_mut()) {
                *word &= !mask(first + 64 * number, rows);
            }
            if words.iter().all(|&word| word == 0) {
                *block = None;
            }
        }
    }

    /// Blocks that may have rows of a range, with the first row of each.
    fn blocks_of(&self, rows: &Range<u32>) -> impl Iterator<Item = (u32, &[u64; BLOCK_WORDS])> {
        let begin = (rows.start / BLOCK_ROWS) as usize;
        let end = (rows.end.div_ceil(BLOCK_ROWS) as usize).min(self.blocks.len());
        let blocks = self.blocks.get(begin..end).unwrap_or_default();
        let numbered = (begin as u32..).zip(blocks);
        numbered.filter_map(|(number, words)| Some((number * BLOCK_ROWS, words.as_deref()?)))
    }
}

/// Of the word of 64 rows the bits of those in a range.
fn mask(first: u32, rows: &Range<u32>) -> u64 {
    let from = rows.start.saturating_sub(first).min(64);
    let end = rows.end.saturating_sub(first).min(64);
    let below = |num: u32| if num == 64 { u64::MAX } else { (1 << num) - 1 };
    below(end) & !below(from)
}

/// Takes a value that is a good hash already as its own.
#[derive(Debug, Default, Clone, Copy)]
pub struct Itself(u64);

impl Hasher for Itself {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.0 = (self.0 ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
        }
    }

    fn write_u64(&mut self, value: u64) {
        self.0 = value;
    }

    fn write_u32(&mut self, value: u32) {
        // Rows follow each other; the table takes its places from the low bits and its tags from the high ones.
        self.0 = u64::from(value)
            .wrapping_mul(0x9E37_79B9_7F4A_7C15)
            .rotate_left(32);
    }
}

pub type Quick<K, V> = HashMap<K, V, BuildHasherDefault<Itself>>;

/// Rows by 64-bit hash, in order of arrival. One row of a hash is the rule.
#[derive(Debug, Default, Clone)]
pub struct RowsByHash {
    first: Quick<u64, u32>,
    /// Those behind the first.
    others: Quick<u64, Vec<u32>>,
}

impl RowsByHash {
    pub fn insert(&mut self, hash: u64, row: u32) {
        use std::collections::hash_map::Entry;
        match self.first.entry(hash) {
            Entry::Vacant(entry) => {
                entry.insert(row);
            }
            Entry::Occupied(_) => self.others.entry(hash).or_default().push(row),
        }
    }

    pub fn append_to(&self, hash: u64, out: &mut Vec<u32>) {
        if let Some(&row) = self.first.get(&hash) {
            out.push(row);
            if !self.others.is_empty()
                && let Some(others) = self.others.get(&hash)
            {
                out.extend_from_slice(others);
            }
        }
    }
}

/// Bytes of feature sets held.
const BUDGET_BYTES: usize = 32 << 20;

/// Feature sets of rows, shared by threads. If they take too much memory, the least recently used ones are dropped.
#[derive(Debug, Default)]
pub struct RecentSets {
    inner: Mutex<Inner>,
}

#[derive(Debug, Default)]
struct Inner {
    /// Asked for since the last time that room was made.
    new: Quick<u32, Arc<FeatureSet>>,
    new_bytes: usize,
    /// Asked for before.
    old: Quick<u32, Arc<FeatureSet>>,
}

impl RecentSets {
    /// The set of a row, if it is held.
    pub fn get(&self, row: u32) -> Option<Arc<FeatureSet>> {
        let mut inner = lock(&self.inner);
        if let Some(set) = inner.new.get(&row) {
            return Some(set.clone());
        }
        let set = inner.old.remove(&row)?;
        inner.insert(row, set.clone());
        Some(set)
    }

    pub fn insert(&self, row: u32, set: Arc<FeatureSet>) {
        let mut inner = lock(&self.inner);
        inner.insert(row, set);
    }
}

impl Inner {
    fn insert(&mut self, row: u32, set: Arc<FeatureSet>) {
        self.new_bytes += set.num_bytes();
        self.new.insert(row, set);
        if self.new_bytes > BUDGET_BYTES / 2 {
            self.old = std::mem::take(&mut self.new);
            self.new_bytes = 0;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_counted_once_and_in_any_range() {
        let mut bits = Bits::default();
        let rows = [0, 63, 64, 64, 200, 65_535, 65_536, 1 << 31, u32::MAX - 1];
        for row in rows {
            bits.insert(row);
        }
        assert!(bits.contains(64) && !bits.contains(65) && !bits.contains(10_000));
        let below = [0, 1, 63, 64, 65, 200, 201, 65_536, 65_537, u32::MAX];
        let below = below.map(|end| bits.num_in(&(0..end)));
        assert_eq!(below, [0, 1, 1, 2, 3, 3, 4, 5, 6, 8]);
        assert_eq!(bits.num_in(&(64..65_536)), 3);
        bits.clear(&(64..201));
        assert_eq!(bits.num_in(&(0..u32::MAX)), 6);
        assert!(bits.contains(63) && !bits.contains(64));
        bits.clear(&(0..u32::MAX));
        assert!(bits.blocks.iter().all(Option::is_none));
    }
}

#[cfg(test)]
mod rows_by_hash_tests {
    use super::*;

    #[test]
    fn rows_of_one_hash_come_in_order_of_arrival() {
        let mut rows = RowsByHash::default();
        for (hash, row) in [(7, 3), (0, 4), (7, 9), (u64::MAX, 1), (7, 5)] {
            rows.insert(hash, row);
        }
        let mut found = vec![42];
        rows.append_to(7, &mut found);
        assert_eq!(found, [42, 3, 9, 5]);
        found.clear();
        rows.append_to(8, &mut found);
        assert!(found.is_empty());
    }
}

#[cfg(test)]
mod recent_sets_tests {
    use super::*;

    #[test]
    fn what_was_not_asked_for_lately_goes() {
        let recent = RecentSets::default();
        let set = |row: u32| {
            let features: Vec<u64> = (0..50_000).map(|i| i * 7 + u64::from(row)).collect();
            Arc::new(FeatureSet::new(&features, &[]))
        };
        for row in 0..200 {
            recent.insert(row, set(row));
            assert!(recent.get(0).is_some(), "{row}");
        }
        assert!(recent.get(1).is_none());
        assert!(recent.get(199).is_some());
    }
}
