//! Which items have the key of an earlier item?

use std::sync::atomic::{AtomicBool, Ordering};

use crate::error::Error;
use crate::hash::{GOLDEN, mix64};

const SHARD_BITS: u32 = 8;
const NUM_SHARDS: usize = 1 << SHARD_BITS;

/// Finds items whose key, of one or more words, equals that of an earlier item.
///
/// Memory: 8 bytes per word and 8 bytes per item, at most doubled while they are added, and 16 bytes per item found.
/// With several shares, each of which takes the same items, only the keys of one share are stored.
#[derive(Debug)]
pub struct EqualKeys {
    num_words: usize,
    share: u32,
    num_shares: u32,
    /// Keys by the highest bits of their hash, each followed by the number of its item; items ascend.
    shards: Vec<Vec<u64>>,
    num_items: u64,
}

/// Items with the key of an earlier one, and for each the first item with this key. They are in no order.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Repeated {
    /// The items.
    pub later: Vec<u64>,
    /// The first items with their keys.
    pub first: Vec<u64>,
}

impl EqualKeys {
    /// Creates an empty collection of the keys that belong to `share` of `num_shares`.
    ///
    /// # Errors
    /// Returns [`Error::InvalidParameter`] unless there are words, and `share` is below `num_shares`.
    pub fn new(num_words: usize, share: u32, num_shares: u32) -> Result<Self, Error> {
        if num_words == 0 {
            return Err(Error::invalid("num_words", "a key has at least one word"));
        }
        if share >= num_shares {
            return Err(Error::invalid(
                "share",
                format!("{share} is not below {num_shares}"),
            ));
        }
        Ok(EqualKeys {
            num_words,
            share,
            num_shares,
            shards: vec![Vec::new(); NUM_SHARDS],
            num_items: 0,
        })
    }

    /// Adds the keys of the next items, one after another. Cost: about 15 ns per key.
    ///
    /// # Errors
    /// Returns [`Error::InvalidParameter`] if the last key is incomplete.
    pub fn add(&mut self, keys: &[u64]) -> Result<(), Error> {
        if !keys.len().is_multiple_of(self.num_words) {
            return Err(Error::invalid(
                "keys",
                format!("{} words are not keys of {}", keys.len(), self.num_words),
            ));
        }
        for key in keys.chunks_exact(self.num_words) {
            let hash = hashed(key);
            // The lowest bits select the share, the highest the shard, and those in between the place in a table.
            let share = (u64::from(hash as u32) * u64::from(self.num_shares)) >> 32;
            if share == u64::from(self.share) {
                let shard = &mut self.shards[(hash >> (u64::BITS - SHARD_BITS)) as usize];
                shard.extend_from_slice(key);
                shard.push(self.num_items);
            }
            self.num_items += 1;
        }
        Ok(())
    }

    /// Returns the items with the key of an earlier one. Cost: about 30 ns per key.
    ///
    /// # Errors
    /// Returns [`Error::Canceled`] if `cancel` was set.
    pub fn finish(self, cancel: &AtomicBool) -> Result<Repeated, Error> {
        let mut found = Repeated::default();
        let mut table = Vec::new();
        for shard in self.shards {
            if cancel.load(Ordering::Relaxed) {
                return Err(Error::Canceled);
            }
            find_repeated(&shard, self.num_words, &mut table, &mut found);
        }
        Ok(found)
    }
}

/// Appends the items of a shard with the key of an earlier one; `table` is scratch space.
fn find_repeated(shard: &[u64], num_words: usize, table: &mut Vec<u32>, found: &mut Repeated) {
    let entry = |number: usize| shard[number * (num_words + 1)..].split_at(num_words);
    let num_entries = shard.len() / (num_words + 1);
    let num_bits = (2 * num_entries).max(2).next_power_of_two().ilog2();
    table.clear();
    // 0 is a free place, n + 1 holds entry n.
    table.resize(1 << num_bits, 0);
    for number in 0..num_entries {
        let (key, rest) = entry(number);
        let mut at = (hashed(key) << SHARD_BITS >> (u64::BITS - num_bits)) as usize;
        loop {
            let held = table[at];
            if held == 0 {
                table[at] = number as u32 + 1;
                break;
            }
            let (its_key, its_rest) = entry(held as usize - 1);
            if its_key == key {
                found.later.push(rest[0]);
                found.first.push(its_rest[0]);
                break;
            }
            at = (at + 1) & (table.len() - 1);
        }
    }
}

#[inline(always)]
fn hashed(key: &[u64]) -> u64 {
    key.iter().fold(0, |hash: u64, &word| {
        mix64(hash.wrapping_add(GOLDEN) ^ word)
    })
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use super::*;
    use crate::testing::Random;

    #[test]
    fn repeated_keys_are_those_of_a_map() {
        let mut random = Random::new(3);
        for (num_words, num_values) in [(1, 1), (1, 40), (3, 2), (2, 3000), (1, u64::MAX)] {
            let keys: Vec<u64> = (0..6000 * num_words)
                .map(|_| random.next() % num_values)
                .collect();
            let mut firsts = HashMap::new();
            let mut wanted = Vec::new();
            for (item, key) in (0..).zip(keys.chunks_exact(num_words)) {
                let first = *firsts.entry(key).or_insert(item);
                if first < item {
                    wanted.push((item, first));
                }
            }
            for num_shares in [1, 3] {
                let mut found = Vec::new();
                for share in 0..num_shares {
                    let mut equal = EqualKeys::new(num_words, share, num_shares).unwrap();
                    for part in keys.chunks(num_words * 700) {
                        equal.add(part).unwrap();
                    }
                    let repeated = equal.finish(&AtomicBool::new(false)).unwrap();
                    found.extend(repeated.later.into_iter().zip(repeated.first));
                }
                found.sort_unstable();
                assert_eq!(found, wanted, "{num_words} {num_values} {num_shares}");
            }
        }
    }

    #[test]
    fn wrong_parameters_and_a_cancel_are_told() {
        assert!(EqualKeys::new(0, 0, 1).is_err());
        assert!(EqualKeys::new(1, 2, 2).is_err());
        let mut equal = EqualKeys::new(2, 0, 1).unwrap();
        assert!(equal.add(&[1, 2, 3]).is_err());
        assert_eq!(equal.finish(&AtomicBool::new(true)), Err(Error::Canceled));
    }
}
