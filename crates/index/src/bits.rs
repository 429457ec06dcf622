//! Which of many rows are marked?

/// A set of rows: one bit each up to the greatest.
#[derive(Debug, Clone, Default)]
pub struct Bits {
    words: Vec<u64>,
    len: usize,
}

impl Bits {
    /// Marks a row.
    pub fn insert(&mut self, row: u32) {
        let word = row as usize / 64;
        if self.words.len() <= word {
            self.words.resize(word + 1, 0);
        }
        let bit = 1 << (row % 64);
        self.len += usize::from(self.words[word] & bit == 0);
        self.words[word] |= bit;
    }

    /// Whether a row is marked.
    pub fn contains(&self, row: u32) -> bool {
        self.words
            .get(row as usize / 64)
            .is_some_and(|word| word >> (row % 64) & 1 == 1)
    }

    /// Rows marked.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Rows marked below a bound.
    pub fn num_below(&self, end: u32) -> usize {
        let whole = end as usize / 64;
        let mut num: u32 = self
            .words
            .iter()
            .take(whole)
            .map(|word| word.count_ones())
            .sum();
        if let Some(word) = self.words.get(whole) {
            num += (word & ((1 << (end % 64)) - 1)).count_ones();
        }
        num as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_counted_once_and_below_any_bound() {
        let mut bits = Bits::default();
        for row in [0, 63, 64, 64, 200] {
            bits.insert(row);
        }
        assert_eq!(bits.len(), 4);
        assert!(bits.contains(64) && !bits.contains(65) && !bits.contains(10_000));
        let below = [0, 1, 63, 64, 65, 200, 201, 10_000].map(|end| bits.num_below(end));
        assert_eq!(below, [0, 1, 1, 2, 3, 3, 4, 4]);
    }
}
