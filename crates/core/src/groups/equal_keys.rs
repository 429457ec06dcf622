//! Which items have the key of an earlier item?

use std::sync::atomic::AtomicBool;

use crate::error::{Error, invalid_if};
use crate::hash::{GOLDEN, mix64};
use crate::parallel::Cancel;

const SHARD_BITS: u32 = 8;
const NUM_SHARDS: usize = 1 << SHARD_BITS;

/// Number of stored keys of a shard from which repeated ones are dropped.
const LEAST_KEYS: usize = 1024;

/// Finds items whose key equals that of an earlier item: 8 bytes per word and per distinct key, at most doubled while
/// they are added; of several shares, each takes the same items and stores the keys of one.
#[derive(Debug)]
pub struct EqualKeys {
    num_words: usize,
    share: u32,
    num_shares: u32,
    /// Keys by the highest bits of their hash.
    shards: Vec<Shard>,
    num_items: u64,
    /// See [`Shard::drop_repeated`].
    table: Vec<u32>,
}

/// Keys, each followed by the number of its item; items ascend.
#[derive(Debug, Clone, Default)]
struct Shard {
    words: Vec<u64>,
    /// Number of words after the last call of [`Shard::drop_repeated`].
    num_distinct: usize,
}

/// Items with the key of an earlier one, and for each the first item with this key. They are in no order.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Repeated {
    pub later: Vec<u64>,
    /// The first items with their keys.
    pub first: Vec<u64>,
}

impl EqualKeys {
    /// Creates an empty collection of the keys that belong to `share` of `num_shares`.
    pub fn new(num_words: usize, share: u32, num_shares: u32) -> Result<Self, Error> {
        if num_words == 0 {
            return Err(Error::invalid("num_words", "a key has at least one word"));
        }
        invalid_if(share >= num_shares, "share", || {
            format!("{share} is not below {num_shares}")
        })?;
        Ok(EqualKeys {
            num_words,
            share,
            num_shares,
            shards: vec![Shard::default(); NUM_SHARDS],
            num_items: 0,
            table: Vec::new(),
        })
    }

    /// Adds the keys of the next items; returns some of the items found so far.
    pub fn add(&mut self, keys: &[u64]) -> Result<Repeated, Error> {
        invalid_if(!keys.len().is_multiple_of(self.num_words), "keys", || {
            format!("{} words are not keys of {}", keys.len(), self.num_words)
        })?;
        let mut found = Repeated::default();
        let least = LEAST_KEYS * (self.num_words + 1);
        for key in keys.chunks_exact(self.num_words) {
            let hash = hashed(key);
            // The lowest bits select the share, the highest the shard, and those in between the place in a table.
            let share = (u64::from(hash as u32) * u64::from(self.num_shares)) >> 32;
            if share == u64::from(self.share) {
                let shard = &mut self.shards[(hash >> (u64::BITS - SHARD_BITS)) as usize];
                shard.words.extend_from_slice(key);
                shard.words.push(self.num_items);
                // So that equal keys do not take memory, and each key is looked at a few times only.
                if shard.words.len() >= least.max(2 * shard.num_distinct) {
                    shard.drop_repeated(self.num_words, &mut self.table, &mut found);
                }
            }
            self.num_items += 1;
        }
        Ok(found)
    }

    /// Returns the items that were not returned by [`EqualKeys::add`]. Cost: about 30 ns per distinct key.
    pub fn finish(mut self, cancel: &AtomicBool) -> Result<Repeated, Error> {
        let mut found = Repeated::default();
        for mut shard in self.shards {
            cancel.check()?;
            shard.drop_repeated(self.num_words, &mut self.table, &mut found);
        }
        Ok(found)
    }
}

impl Shard {
    /// Keeps only the first item of each key, and appends the others to `found`; `table` is scratch space.
    fn drop_repeated(&mut self, num_words: usize, table: &mut Vec<u32>, found: &mut Repeated) {
        let (words, step) = (&mut self.words, num_words + 1);
        let num_entries = words.len() / step;
        let num_bits = (2 * num_entries).max(2).next_power_of_two().ilog2();
        table.clear();
        // 0 is a free place, n + 1 holds kept entry n.
        table.resize(1 << num_bits, 0);
        let mut num_kept = 0;
        for start in (0..words.len()).step_by(step) {
            let key = start..start + num_words;
            let hash = hashed(&words[key.clone()]);
            let mut at = (hash << SHARD_BITS >> (u64::BITS - num_bits)) as usize;
            loop {
                let Some(held) = (table[at] as usize).checked_sub(1) else {
                    words.copy_within(start..start + step, num_kept * step);
                    num_kept += 1;
                    table[at] = num_kept as u32;
                    break;
                };
                let first = held * step;
                if words[first..first + num_words] == words[key.clone()] {
                    found.later.push(words[start + num_words]);
                    found.first.push(words[first + num_words]);
                    break;
                }
                at = (at + 1) & (table.len() - 1);
            }
        }
        words.truncate(num_kept * step);
        self.num_distinct = words.len();
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
            let keys: Vec<u64> = (0..60_000 * num_words)
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
                    let parts = keys.chunks(num_words * 700);
                    let mut all: Vec<Repeated> =
                        parts.map(|part| equal.add(part).unwrap()).collect();
                    all.push(equal.finish(&AtomicBool::new(false)).unwrap());
                    for repeated in all {
                        found.extend(repeated.later.into_iter().zip(repeated.first));
                    }
                }
                found.sort_unstable();
                assert_eq!(found, wanted, "{num_words} {num_values} {num_shares}");
            }
        }
    }

    #[test]
    fn equal_keys_take_the_memory_of_one() {
        let mut equal = EqualKeys::new(3, 0, 1).unwrap();
        let mut num_found = 0;
        for _ in 0..100 {
            num_found += equal.add(&[7; 3 * 1000]).unwrap().later.len();
        }
        let num_words: usize = equal
            .shards
            .iter()
            .map(|shard| shard.words.capacity())
            .sum();
        assert!(num_words <= 2 * 4 * LEAST_KEYS, "{num_words}");
        num_found += equal.finish(&AtomicBool::new(false)).unwrap().later.len();
        assert_eq!(num_found, 100 * 1000 - 1);
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
