//! Which rows have this hash?

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

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

#[cfg(test)]
mod tests {
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
