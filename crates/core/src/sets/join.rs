//! Which earlier documents may a document reach the threshold with?

use std::ops::Range;
use std::sync::Mutex;
use std::sync::atomic::AtomicBool;

use super::forms::Forms;
use super::limit::{Demand, Limit};
use super::lists::{Lists, Part, Posting};
use super::prefix::SetFacts;
use super::scratch::{Borrowed, Scratch};
use crate::error::Error;
use crate::parallel::Run;
use crate::search::{Call, Pairs, REMOVED};

#[derive(Debug, Clone, Copy)]
pub(super) struct Entry {
    pub(super) list: u32,
    /// Size of the document's features from this one on, in order of rank.
    pub(super) rest: f32,
}

/// For every feature the documents that hold it in their prefix, and what tells early that a pair shares too little. 16
/// bytes an entry (24 with weights), 24 a feature, 40 a document; 8 bytes a document a thread of scratch.
#[derive(Debug)]
pub struct PrefixJoin {
    pub(super) demand: Demand,
    pub(super) limit: Limit,
    /// Position `p` has `entries[offsets[p]..offsets[p + 1]]`, by rank.
    pub(super) offsets: Vec<usize>,
    pub(super) entries: Vec<Entry>,
    /// Of the entries; empty where every weight is 1.
    pub(super) weights: Vec<u32>,
    pub(super) facts: Vec<SetFacts>,
    pub(super) sizes: Vec<f32>,
    pub(super) lists: Lists,
    pub(super) forms: Forms,
    /// Positions below this one stand in the lists, removed ones and those from `listed.start` on apart.
    listed: Range<usize>,
    /// Positions whose pairs were found, some of them several times.
    #[cfg(test)]
    pub(super) num_found: usize,
    idle: Mutex<Vec<Scratch>>,
}

/// Later positions in one piece of work.
const GRAIN: usize = 16;
/// Later positions between two looks at the number of pairs, for each thread.
const BLOCK: usize = 128;
/// Entries ahead for which memory is asked, in two steps.
const LOOKAHEAD: usize = 8;

impl PrefixJoin {
    pub(super) fn new(
        demand: Demand,
        offsets: Vec<usize>,
        entries: Vec<Entry>,
        weights: Vec<u32>,
        facts: Vec<SetFacts>,
        lists: Lists,
    ) -> Self {
        PrefixJoin {
            demand,
            limit: demand.limit(),
            lists,
            forms: Forms::default(),
            offsets,
            entries,
            weights,
            sizes: facts.iter().map(|facts| facts.size).collect(),
            facts,
            listed: 0..0,
            #[cfg(test)]
            num_found: 0,
            idle: Mutex::new(Vec::new()),
        }
    }

    /// Sets the forms of documents, whose pairs need more than others.
    #[must_use]
    pub fn with_forms(mut self, forms: Forms) -> Self {
        self.forms = forms;
        self
    }

    pub fn len(&self) -> usize {
        self.facts.len()
    }

    pub fn is_empty(&self) -> bool {
        self.facts.is_empty()
    }

    pub fn num_bytes(&self) -> usize {
        8 * (self.offsets.len() + self.entries.len())
            + 4 * (self.weights.len() + self.sizes.len())
            + size_of::<SetFacts>() * self.facts.len()
            + self.lists.num_bytes()
            + self.forms.num_bytes()
    }

    /// Returns the pairs of a call that may reach the threshold; the range begins where the last call ended. A few more
    /// than `max_pairs` are held. Costs about 2 ns for each earlier document of each feature of a prefix.
    pub fn candidates(&mut self, call: &Call<'_>) -> Result<Pairs, Error> {
        let &Call {
            states,
            max_pairs,
            threads,
            cancel,
            ..
        } = call;
        let range = call.range.start as usize..call.range.end as usize;
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
        let mut found = Pairs::default();
        let mut looked_at = range.start;
        // What is found behind the cut is found again. So a block is as long as the last range, then as the pairs so far suggest.
        let (least, most) = (threads.max(1), BLOCK * threads.max(1));
        let mut step = self.listed.len().clamp(least, most);
        while looked_at < range.end && found.later.len() <= max_pairs {
            let high = range.end.min(looked_at + step);
            self.find_block(looked_at..high, states, threads, cancel, &mut found)?;
            looked_at = high;
            let share_left = max_pairs as f64 / found.later.len().max(1) as f64 - 1.0;
            let positions_left = (looked_at - range.start) as f64 * share_left;
            step = (positions_left as usize).clamp(least, most.min(2 * step));
        }
        if let Some(&first_beyond) = found.later.get(max_pairs) {
            let cut = looked_at.min((first_beyond as usize).max(range.start + 1));
            // Positions after the cut are asked for again.
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
        found.num_considered = found.later.len() as u64;
        Ok(found)
    }

    /// Lists positions up to `end` as earlier ones, without their own pairs.
    pub fn pass_over(&mut self, end: u32) -> Result<(), Error> {
        let (start, end) = (self.listed.end, end as usize);
        if end < start || end > self.len() {
            return Err(Error::invalid(
                "end",
                format!("{end} is outside {start}..{}", self.len()),
            ));
        }
        for position in start..end {
            self.list(position);
        }
        self.listed = end..end;
        Ok(())
    }

    /// Lists the positions of a block, and adds their pairs.
    fn find_block(
        &mut self,
        block: Range<usize>,
        states: Option<&[u8]>,
        threads: usize,
        cancel: &AtomicBool,
        found: &mut Pairs,
    ) -> Result<(), Error> {
        for position in block.clone() {
            self.list(position);
        }
        #[cfg(test)]
        {
            self.num_found += block.len();
        }
        let this = &*self;
        let parts = Run { threads, cancel }.map(
            block.len(),
            block.len().div_ceil(threads.max(1)).clamp(1, GRAIN),
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
            // Documents that follow are listed next.
            if let Some(ahead) = self.entries.get(i + 2 * LOOKAHEAD) {
                self.lists.prefetch_head(ahead.list);
            }
            if let Some(ahead) = self.entries.get(i + LOOKAHEAD) {
                self.lists.prefetch_end(ahead.list);
            }
            let part = self.part_of(position, i);
            let posting = Posting {
                position: position as u32,
                rest: self.entries[i].rest,
            };
            let weight = self.weights.get(i).copied();
            self.lists.push(
                self.entries[i].list,
                part,
                posting,
                (self.sizes[position], self.forms.of(position)),
                weight,
            );
        }
    }

    /// Shortens the lists of a position: of some that end them all, each in any order.
    fn unlist(&mut self, position: usize) {
        for i in self.offsets[position]..self.offsets[position + 1] {
            let part = self.part_of(position, i);
            self.lists.pop(self.entries[i].list, part);
        }
    }

    pub(super) fn is_prefix(&self, position: usize, entry: usize) -> bool {
        entry - self.offsets[position] < self.facts[position].num_prefix as usize
    }

    fn part_of(&self, position: usize, entry: usize) -> Part {
        match self.is_prefix(position, entry) {
            true => Part::Prefix,
            false => Part::Behind,
        }
    }
}
