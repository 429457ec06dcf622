//! Which of many rows are marked?

use std::ops::Range;

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
