//! Which earlier documents may a document reach the threshold with?

use std::ops::Range;
use std::sync::Mutex;
use std::sync::atomic::AtomicBool;

use super::limit::Limit;
use super::prefix::SetFacts;
use super::scratch::{APART, Borrowed, Scratch};
use crate::error::Error;
use crate::parallel::map_ranges;
use crate::states::REMOVED;

/// A feature of a document.
#[derive(Debug, Clone, Copy)]
pub(super) struct Entry {
    pub(super) list: u32,
    /// Size of the document's features from this one on, in order of rank.
    pub(super) rest: f32,
}

/// A document in the list of a feature.
#[derive(Debug, Clone, Copy, Default)]
struct Posting {
    position: u32,
    rest: f32,
}

/// For every feature the documents that hold it in their prefix, and what tells early that a pair shares too little.
///
/// 16 bytes an entry (24 with weights), 20 a feature, 36 a document; 8 bytes a document a thread of scratch.
#[derive(Debug)]
pub struct PrefixJoin {
    limit: Limit,
    /// Position `p` has `entries[offsets[p]..offsets[p + 1]]`, by rank.
    offsets: Vec<usize>,
    entries: Vec<Entry>,
    /// Of the entries; empty where every weight is 1.
    weights: Vec<u32>,
    facts: Vec<SetFacts>,
    sizes: Vec<f32>,
    lists: Lists,
    /// Positions below this one stand in the lists, removed ones and those from `listed.start` on apart.
    listed: Range<usize>,
    idle: Mutex<Vec<Scratch>>,
}

/// Pairs that may reach the threshold, sorted by (later, earlier).
#[derive(Debug, Default)]
pub struct Listed {
    /// Later positions.
    pub later: Vec<u32>,
    /// Earlier positions.
    pub earlier: Vec<u32>,
    /// Later positions from here on were not looked at.
    pub end: u32,
}

/// Lists 2f and 2f + 1 are those of feature f: documents with it in their prefix, and behind it.
#[derive(Debug)]
struct Lists {
    starts: Vec<usize>,
    /// How much of each list is filled, positions ascending.
    lengths: Vec<u32>,
    postings: Vec<Posting>,
    weights: Vec<u32>,
}

/// Later positions in one piece of work.
const GRAIN: usize = 16;
/// Later positions between two looks at the number of pairs, for each thread.
const BLOCK: usize = 128;

impl PrefixJoin {
    pub(super) fn new(
        limit: Limit,
        offsets: Vec<usize>,
        entries: Vec<Entry>,
        weights: Vec<u32>,
        facts: Vec<SetFacts>,
        starts: Vec<usize>,
    ) -> Self {
        let num_weights = if weights.is_empty() { 0 } else { entries.len() };
        PrefixJoin {
            limit,
            lists: Lists {
                lengths: vec![0; starts.len() - 1],
                postings: vec![Posting::default(); entries.len()],
                weights: vec![0; num_weights],
                starts,
            },
            offsets,
            entries,
            weights,
            sizes: facts.iter().map(|facts| facts.size).collect(),
            facts,
            listed: 0..0,
            idle: Mutex::new(Vec::new()),
        }
    }

    /// Number of positions.
    pub fn len(&self) -> usize {
        self.facts.len()
    }

    /// Whether there is no position.
    pub fn is_empty(&self) -> bool {
        self.facts.is_empty()
    }

    /// Bytes held, scratch space apart.
    pub fn num_bytes(&self) -> usize {
        8 * (self.offsets.len() + self.entries.len() + self.lists.postings.len())
            + 4 * (self.weights.len() + self.lists.weights.len() + self.sizes.len())
            + size_of::<SetFacts>() * self.facts.len()
            + 8 * self.lists.starts.len()
            + 4 * self.lists.lengths.len()
    }

    /// Pairs whose later position lies in `range` that may reach the threshold, sorted by (later, earlier): `(later, earlier)`.
    ///
    /// None that reaches it is missing, but for those of earlier documents with `states[earlier] == REMOVED`. Ranges must come one
    /// behind the other, and a document that was removed stays so. Does not depend on `threads`.
    ///
    /// # Errors
    /// [`Error::InvalidParameter`] where the range does not begin where the last one ended, or goes beyond the positions or
    /// states; [`Error::Cancelled`], after which the join is of no more use.
    ///
    /// # Cost
    /// About 2 ns for each earlier document of the same feature, for each feature of a prefix.
    pub fn candidates(
        &mut self,
        range: Range<u32>,
        states: Option<&[u8]>,
        threads: usize,
        cancel: &AtomicBool,
    ) -> Result<(Vec<u32>, Vec<u32>), Error> {
        let found = self.candidates_up_to(usize::MAX, range, states, threads, cancel)?;
        Ok((found.later, found.earlier))
    }

    /// The same up to `max_pairs`, the next range beginning at the `end` of the later positions that were looked at.
    ///
    /// At least one position is looked at, and all pairs of one later position stay together. What is held on the way is
    /// at most the pairs of some 128 positions a thread more.
    ///
    /// # Errors
    /// As for [`Self::candidates`].
    pub fn candidates_up_to(
        &mut self,
        max_pairs: usize,
        range: Range<u32>,
        states: Option<&[u8]>,
        threads: usize,
        cancel: &AtomicBool,
    ) -> Result<Listed, Error> {
        let range = range.start as usize..range.end as usize;
        let end = states.map_or(self.len(), <[u8]>::len).min(self.len());
        if range.start != self.listed.end || range.end < range.start || range.end > end {
            return Err(Error::invalid(
                "range",
                format!(
                    "{range:?} does not begin at {} or ends beyond {end}",
                    self.listed.end
                ),
            ));
        }
        self.unlist_removed(states);
        let mut found = Listed::default();
        let mut looked_at = range.start;
        while looked_at < range.end && found.later.len() <= max_pairs {
            let high = range.end.min(looked_at + BLOCK * threads.max(1));
            self.find_block(looked_at..high, states, threads, cancel, &mut found)?;
            looked_at = high;
        }
        if let Some(&first_beyond) = found.later.get(max_pairs) {
            let cut = looked_at.min((first_beyond as usize).max(range.start + 1));
            // What stands behind the cut is asked for again.
            for position in cut..looked_at {
                self.unlist(position);
            }
            let num_pairs = found.later.partition_point(|&later| (later as usize) < cut);
            found.later.truncate(num_pairs);
            found.earlier.truncate(num_pairs);
            looked_at = cut;
        }
        self.listed = range.start..looked_at;
        found.end = looked_at as u32;
        Ok(found)
    }

    /// Lists the positions of a block, and adds their pairs.
    fn find_block(
        &mut self,
        block: Range<usize>,
        states: Option<&[u8]>,
        threads: usize,
        cancel: &AtomicBool,
        found: &mut Listed,
    ) -> Result<(), Error> {
        for position in block.clone() {
            self.list(position);
        }
        let this = &*self;
        let parts = map_ranges(
            block.len(),
            GRAIN,
            threads,
            cancel,
            || Borrowed::take(&this.idle, this.len()),
            |scratch, piece| {
                let (mut later, mut earlier) = (Vec::new(), Vec::new());
                for position in block.start + piece.start..block.start + piece.end {
                    this.find(position, states, &mut scratch.0, &mut earlier);
                    later.resize(earlier.len(), position as u32);
                }
                (later, earlier)
            },
        )?;
        for (later, earlier) in parts {
            found.later.extend(later);
            found.earlier.extend(earlier);
        }
        Ok(())
    }

    /// Takes the documents of the last range that were removed since out of the lists, so that crowds cost what is kept of them.
    fn unlist_removed(&mut self, states: Option<&[u8]>) {
        let Some(states) = states else { return };
        let last = self.listed.clone();
        if !states[last.clone()].contains(&REMOVED) {
            return;
        }
        for position in last.clone() {
            self.unlist(position);
        }
        for position in last {
            if states[position] != REMOVED {
                self.list(position);
            }
        }
    }

    fn list(&mut self, position: usize) {
        for i in self.offsets[position]..self.offsets[position + 1] {
            let list = self.list_of(position, i);
            let slot = self.lists.starts[list] + self.lists.lengths[list] as usize;
            self.lists.postings[slot] = Posting {
                position: position as u32,
                rest: self.entries[i].rest,
            };
            if let Some(&weight) = self.weights.get(i) {
                self.lists.weights[slot] = weight;
            }
            self.lists.lengths[list] += 1;
        }
    }

    /// Shortens the lists of a position: of some that end them all, each in any order.
    fn unlist(&mut self, position: usize) {
        for i in self.offsets[position]..self.offsets[position + 1] {
            let list = self.list_of(position, i);
            self.lists.lengths[list] -= 1;
        }
    }

    fn is_prefix(&self, position: usize, entry: usize) -> bool {
        entry - self.offsets[position] < self.facts[position].num_prefix as usize
    }

    fn list_of(&self, position: usize, entry: usize) -> usize {
        2 * self.entries[entry].list as usize + usize::from(!self.is_prefix(position, entry))
    }

    /// Adds to `found` the earlier documents that may reach the threshold, ascending.
    fn find(
        &self,
        position: usize,
        states: Option<&[u8]>,
        scratch: &mut Scratch,
        found: &mut Vec<u32>,
    ) {
        let own = &self.facts[position];
        for i in self.offsets[position]..self.offsets[position + 1] {
            let list = 2 * self.entries[i].list as usize;
            let is_prefix = self.is_prefix(position, i);
            self.scan(position, i, list, is_prefix, true, scratch);
            if is_prefix && self.limit.is_one_sided() {
                self.scan(position, i, list + 1, true, false, scratch);
            }
        }
        let Scratch { shared, touched } = scratch;
        touched.sort_unstable();
        for other in touched.drain(..) {
            let sum = std::mem::take(&mut shared[other as usize]);
            let is_removed = states.is_some_and(|states| states[other as usize] == REMOVED);
            if sum != APART && !is_removed && self.may_reach(own, other as usize, sum) {
                found.push(other);
            }
        }
    }

    /// Adds up what the documents of a list share with this one through its entry `i`.
    ///
    /// Two documents are first met at the rarest feature that they share; what they may share from there on is at most the rest of
    /// either (PPJoin's positional filter).
    #[inline(always)]
    fn scan(
        &self,
        position: usize,
        i: usize,
        list: usize,
        own_is_prefix: bool,
        other_is_prefix: bool,
        scratch: &mut Scratch,
    ) {
        let limit = self.limit;
        let start = self.lists.starts[list];
        let slots = start..start + self.lists.lengths[list] as usize;
        let (size, rest) = (
            f64::from(self.sizes[position]),
            f64::from(self.entries[i].rest),
        );
        let weight = self.weights.get(i).copied().unwrap_or(1);
        for slot in slots {
            let posting = self.lists.postings[slot];
            let other = posting.position as usize;
            if other >= position {
                break;
            }
            let sum = &mut scratch.shared[other];
            if *sum == APART {
                continue;
            }
            let other_size = f64::from(self.sizes[other]);
            if limit.is_one_sided() {
                // Only the prefix of the smaller counts.
                let counts = if size <= other_size {
                    own_is_prefix
                } else {
                    other_is_prefix
                };
                if !counts {
                    continue;
                }
            }
            let most = *sum + limit.most(rest, f64::from(posting.rest));
            if most < limit.needed(size, other_size) {
                if *sum > 0.0 {
                    *sum = APART;
                }
                continue;
            }
            if *sum == 0.0 {
                scratch.touched.push(posting.position);
            }
            let other_weight = self.lists.weights.get(slot).copied().unwrap_or(1);
            *sum += limit.shared(weight, other_weight);
        }
    }

    /// Whether what is shared in the prefixes and what may be shared behind them reaches the threshold.
    fn may_reach(&self, own: &SetFacts, other: usize, sum: f64) -> bool {
        let limit = self.limit;
        let theirs = &self.facts[other];
        // All that both hold up to the end of the prefix that ends first is in the sum already.
        let is_own = if limit.is_one_sided() {
            own.size <= theirs.size
        } else {
            own.last <= theirs.last
        };
        let (after, size) = if is_own {
            (own.after, theirs.size)
        } else {
            (theirs.after, own.size)
        };
        sum + limit.most(f64::from(after), f64::from(size))
            >= limit.needed(f64::from(own.size), f64::from(theirs.size))
    }
}
