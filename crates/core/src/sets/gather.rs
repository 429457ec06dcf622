//! Where are the prefixes of all documents?

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

use super::join::{Entry, PrefixJoin};
use super::limit::Limit;
use super::prefix::{Batch, SetFacts};
use crate::error::Error;
use crate::hash::mix64;

/// The prefixes of documents as they come, in any order.
///
/// 8 bytes an entry (12 with weights), some 20 to 40 a distinct feature until [`Prefixes::into_join`], 40 a document.
#[derive(Debug)]
pub struct Prefixes {
    limit: Limit,
    /// By position; the start of its entries, and what else is known.
    sets: Vec<Option<(usize, SetFacts)>>,
    entries: Vec<Entry>,
    weights: Vec<u32>,
    lists: HashMap<u64, u32, BuildHasherDefault<MixHasher>>,
    /// Entries of each list: of prefixes, and behind them.
    counts: Vec<[u32; 2]>,
}

impl Prefixes {
    /// Nothing gathered yet of documents at positions `0..num_positions`.
    pub fn new(limit: Limit, num_positions: usize) -> Self {
        Prefixes {
            limit,
            sets: vec![None; num_positions],
            entries: Vec::new(),
            weights: Vec::new(),
            lists: HashMap::default(),
            counts: Vec::new(),
        }
    }

    /// Takes the entries of a batch, one document a position.
    ///
    /// # Errors
    /// [`Error::InvalidParameter`] where the positions are not as many, or one is out of range; or where there are more
    /// features than can be numbered, 2^32 - 1, after which nothing can be added.
    pub fn add(&mut self, positions: &[u32], batch: &Batch) -> Result<(), Error> {
        if positions.len() != batch.sets.len() {
            return Err(Error::invalid(
                "positions",
                format!(
                    "{} positions for {} documents",
                    positions.len(),
                    batch.sets.len()
                ),
            ));
        }
        if !batch.weights.is_empty() {
            self.weights.resize(self.entries.len(), 1);
            self.weights.extend_from_slice(&batch.weights);
        }
        let mut next = 0;
        for (&position, &facts) in positions.iter().zip(&batch.sets) {
            let Some(place) = self.sets.get_mut(position as usize) else {
                return Err(Error::invalid(
                    "positions",
                    format!("{position} is outside 0..{}", self.sets.len()),
                ));
            };
            *place = Some((self.entries.len(), facts));
            for i in 0..facts.num_entries {
                let new_list = number_of_list(self.counts.len())?;
                let list = *self.lists.entry(batch.features[next]).or_insert(new_list);
                if list == new_list {
                    self.counts.push([0, 0]);
                }
                self.counts[list as usize][usize::from(i >= facts.num_prefix)] += 1;
                self.entries.push(Entry {
                    list,
                    rest: batch.rests[next],
                });
                next += 1;
            }
        }
        if !self.weights.is_empty() {
            self.weights.resize(self.entries.len(), 1);
        }
        Ok(())
    }

    /// Drops the features that no pair can meet in, and makes room for the lists of the others.
    pub fn into_join(mut self) -> PrefixJoin {
        self.lists = HashMap::default();
        let mut number_of = vec![u32::MAX; self.counts.len()];
        let mut starts = vec![0];
        let mut end = 0;
        for (number, &[num_prefix, num_behind]) in number_of.iter_mut().zip(&self.counts) {
            if num_prefix > 0 && num_prefix + num_behind > 1 {
                *number = ((starts.len() - 1) / 2) as u32;
                for count in [num_prefix, num_behind] {
                    end += count as usize;
                    starts.push(end);
                }
            }
        }
        self.counts = Vec::new();
        let is_weighted = !self.weights.is_empty();
        let (mut entries, mut weights) = (Vec::new(), Vec::new());
        let mut offsets = Vec::with_capacity(self.sets.len() + 1);
        offsets.push(0);
        let mut facts = Vec::with_capacity(self.sets.len());
        for set in &self.sets {
            let (start, mut own) = set.unwrap_or((0, NO_SET));
            let mut num_prefix = 0;
            for i in 0..own.num_entries {
                let entry = self.entries[start + i as usize];
                let list = number_of[entry.list as usize];
                if list != u32::MAX {
                    num_prefix += u32::from(i < own.num_prefix);
                    entries.push(Entry { list, ..entry });
                    if is_weighted {
                        weights.push(self.weights[start + i as usize]);
                    }
                }
            }
            own.num_prefix = num_prefix;
            offsets.push(entries.len());
            facts.push(own);
        }
        PrefixJoin::new(self.limit, offsets, entries, weights, facts, starts)
    }
}

/// The number of the next list; the last one, `u32::MAX`, stands for lists that were dropped.
fn number_of_list(num_lists: usize) -> Result<u32, Error> {
    u32::try_from(num_lists)
        .ok()
        .filter(|&number| number < u32::MAX)
        .ok_or_else(|| {
            Error::invalid(
                "threshold",
                "the prefixes of these documents contain more than 2^32 - 2 features; use a higher threshold",
            )
        })
}

/// Stands where a position has no document.
const NO_SET: SetFacts = SetFacts {
    num_entries: 0,
    num_prefix: 0,
    size: 0.0,
    after: 0.0,
    last: (0, 0),
};

/// Hashes the one integer that a key is.
#[derive(Debug, Default)]
pub(crate) struct MixHasher(u64);

impl Hasher for MixHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.write_u64(self.0 << 8 | u64::from(byte));
        }
    }

    fn write_u64(&mut self, key: u64) {
        self.0 = mix64(key);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_that_cannot_be_numbered_are_refused() {
        let last = u32::MAX as usize;
        assert_eq!(number_of_list(0).unwrap(), 0);
        assert_eq!(number_of_list(last - 1).unwrap(), u32::MAX - 1);
        for beyond in [last, last + 1, last + 2] {
            assert!(number_of_list(beyond).is_err());
        }
    }
}
