//! Where are the prefixes of all documents?
//!
//! The features of many documents together are a table far larger than a cache. So they are parted by their highest
//! byte when they come, by each thread for itself, and numbered at the end: a shard at a time, whose table fits a cache.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};
use std::mem::take;
use std::sync::Mutex;
use std::sync::atomic::AtomicBool;

use super::join::{Entry, PrefixJoin};
use super::limit::Demand;
use super::lists::Lists;
use super::prefix::{Batch, SetFacts};
use crate::error::Error;
use crate::hash::mix64;
use crate::parallel::{Cancel, Run, lock};
use crate::prefetch::prefetch_read;

const NUM_SHARDS: usize = 256;
/// Entries of small batches that are parted together: a part has 6 kB besides its entries.
const ENTRIES_OF_PART: usize = 1 << 16;
/// Entries ahead for which memory is asked.
const LOOKAHEAD: usize = 16;
/// Positions put in order between two looks at whether the caller canceled.
const POSITIONS_BETWEEN_CHECKS: usize = 1 << 16;
/// Stands for a list that no pair can meet in.
const NO_LIST: u32 = u32::MAX;

/// The prefixes of documents as they come, in any order: 13 bytes an entry (17 with weights), 40 a document.
#[derive(Debug)]
pub struct Prefixes {
    demand: Demand,
    num_positions: usize,
    parts: Vec<Parted>,
    /// Small batches to be parted together, their positions, and the number of their entries and documents.
    waiting: (Vec<u32>, Vec<Batch>, usize),
}

/// The entries of a batch, parted by shards.
#[derive(Debug, Default)]
pub struct Parted {
    positions: Vec<u32>,
    sets: Vec<SetFacts>,
    /// Of each entry in the order of the documents; in it, the next slot of that shard is the entry's.
    shards: Vec<u8>,
    rests: Vec<f32>,
    weights: Vec<u32>,
    /// Shard `s` has `slots[starts[s]..starts[s + 1]]`: the feature without its highest byte, and whether it is behind.
    slots: Vec<u64>,
    starts: Vec<usize>,
}

impl Parted {
    /// Fewer entries than this are not worth a part of their own: see [`Prefixes::add_few`].
    pub const LEAST_ENTRIES: usize = 1 << 14;

    /// Parts the entries of batches, whose documents have these positions in turn.
    pub fn new(positions: &[u32], batches: &[Batch]) -> Result<Parted, Error> {
        check_documents(positions, batches)?;
        let num_entries = batches.iter().map(|batch| batch.features.len()).sum();
        let mut starts = vec![0; NUM_SHARDS + 1];
        for &feature in batches.iter().flat_map(|batch| &batch.features) {
            starts[shard_of(feature) + 1] += 1;
        }
        for shard in 0..NUM_SHARDS {
            starts[shard + 1] += starts[shard];
        }
        let mut next = starts.clone();
        let mut parted = Parted {
            positions: positions.to_vec(),
            sets: Vec::with_capacity(positions.len()),
            shards: Vec::with_capacity(num_entries),
            rests: Vec::with_capacity(num_entries),
            weights: Vec::new(),
            slots: vec![0; num_entries],
            starts,
        };
        for batch in batches {
            if !batch.weights.is_empty() {
                parted.weights.resize(parted.rests.len(), 1);
                parted.weights.extend_from_slice(&batch.weights);
            }
            parted.rests.extend_from_slice(&batch.rests);
            parted.sets.extend_from_slice(&batch.sets);
            let mut features = batch.features.iter();
            for facts in &batch.sets {
                for (i, &feature) in features
                    .by_ref()
                    .take(facts.num_entries as usize)
                    .enumerate()
                {
                    let shard = shard_of(feature);
                    let is_behind = i >= facts.num_prefix as usize;
                    parted.shards.push(shard as u8);
                    parted.slots[next[shard]] = feature << 8 | u64::from(is_behind);
                    next[shard] += 1;
                }
            }
        }
        if !parted.weights.is_empty() {
            parted.weights.resize(num_entries, 1);
        }
        Ok(parted)
    }

    fn slots_by_shard(&mut self) -> impl Iterator<Item = &mut [u64]> {
        let mut rest = &mut self.slots[..];
        self.starts.windows(2).map(move |ends| {
            let (slots, others) = take(&mut rest).split_at_mut(ends[1] - ends[0]);
            rest = others;
            slots
        })
    }

    /// The entries whose features are in a list, in the order of the documents. Lists of shard `s` are numbered from `bases[s]` on.
    fn numbered(mut self, bases: &[u32]) -> Numbered {
        let mut next = self.starts;
        let mut numbered = Numbered {
            positions: self.positions,
            is_weighted: !self.weights.is_empty(),
            // What is not needed of it is never touched.
            entries: Vec::with_capacity(self.shards.len()),
            ..Numbered::default()
        };
        let mut at = 0;
        for facts in &mut self.sets {
            let num_before = numbered.entries.len();
            let (num_entries, num_prefix) = (facts.num_entries, facts.num_prefix);
            facts.num_prefix = 0;
            for i in 0..num_entries {
                let shard = self.shards[at] as usize;
                let number = self.slots[next[shard]] as u32;
                next[shard] += 1;
                if number != NO_LIST {
                    facts.num_prefix += u32::from(i < num_prefix);
                    numbered.entries.push(Entry {
                        list: bases[shard] + number,
                        rest: self.rests[at],
                    });
                    if numbered.is_weighted {
                        numbered.weights.push(self.weights[at]);
                    }
                }
                at += 1;
            }
            facts.num_entries = (numbered.entries.len() - num_before) as u32;
        }
        numbered.sets = self.sets;
        numbered
    }
}

fn check_documents(positions: &[u32], batches: &[Batch]) -> Result<(), Error> {
    let num_documents: usize = batches.iter().map(|batch| batch.sets.len()).sum();
    if positions.len() == num_documents {
        return Ok(());
    }
    Err(Error::invalid(
        "positions",
        format!(
            "{} positions for {num_documents} documents",
            positions.len()
        ),
    ))
}

/// The entries of a [`Parted`] that are left, with their lists.
#[derive(Debug, Default)]
struct Numbered {
    positions: Vec<u32>,
    sets: Vec<SetFacts>,
    entries: Vec<Entry>,
    weights: Vec<u32>,
    is_weighted: bool,
}

impl Prefixes {
    /// Nothing gathered yet of documents at positions `0..num_positions`.
    pub fn new(demand: Demand, num_positions: usize) -> Self {
        Prefixes {
            demand,
            num_positions,
            parts: Vec::new(),
            waiting: Default::default(),
        }
    }

    /// Adds the entries of some documents, one document per position.
    pub fn add(&mut self, part: Parted) -> Result<(), Error> {
        self.check_positions(&part.positions)?;
        self.parts.push(part);
        Ok(())
    }

    /// Adds the entries of a few documents, which are parted together with those of other calls.
    pub fn add_few(&mut self, positions: &[u32], batches: Vec<Batch>) -> Result<(), Error> {
        self.check_positions(positions)?;
        check_documents(positions, &batches)?;
        let (all_positions, all_batches, size) = &mut self.waiting;
        all_positions.extend_from_slice(positions);
        *size += positions.len();
        for batch in batches {
            *size += batch.num_entries();
            all_batches.push(batch);
        }
        if *size >= ENTRIES_OF_PART {
            self.part_waiting()?;
        }
        Ok(())
    }

    #[cfg(test)]
    pub(super) fn num_parts(&self) -> usize {
        self.parts.len()
    }

    fn part_waiting(&mut self) -> Result<(), Error> {
        let (positions, batches, _) = take(&mut self.waiting);
        if !positions.is_empty() {
            self.parts.push(Parted::new(&positions, &batches)?);
        }
        Ok(())
    }

    fn check_positions(&self, positions: &[u32]) -> Result<(), Error> {
        let num_positions = self.num_positions;
        let outside = |&&position: &&u32| position as usize >= num_positions;
        match positions.iter().find(outside) {
            Some(position) => Err(Error::invalid(
                "positions",
                format!("{position} is outside 0..{num_positions}"),
            )),
            None => Ok(()),
        }
    }

    /// Numbers the features, drops those that no pair can meet in, and makes room for the lists of the others.
    pub fn into_join(mut self, threads: usize, cancel: &AtomicBool) -> Result<PrefixJoin, Error> {
        self.part_waiting()?;
        let (bases, rooms) = self.number(threads, cancel)?;
        let parts: Vec<_> = self
            .parts
            .into_iter()
            .map(|part| Mutex::new(Some(part)))
            .collect();
        let parts = Run { threads, cancel }.each(parts.len(), |i| {
            let part = lock(&parts[i]).take();
            part.map_or_else(Numbered::default, |part| part.numbered(&bases))
        })?;
        joined(self.demand, self.num_positions, &parts, &rooms, cancel)
    }

    /// Puts into each slot the number of its feature among those left; returns first numbers by shard, and entries.
    fn number(
        &mut self,
        threads: usize,
        cancel: &AtomicBool,
    ) -> Result<(Vec<u32>, Vec<[u32; 2]>), Error> {
        let mut shards: Vec<Vec<&mut [u64]>> = Vec::new();
        shards.resize_with(NUM_SHARDS, Vec::new);
        for part in &mut self.parts {
            for (shard, slots) in shards.iter_mut().zip(part.slots_by_shard()) {
                shard.push(slots);
            }
        }
        let shards: Vec<_> = shards.into_iter().map(Mutex::new).collect();
        let counted =
            Run { threads, cancel }.map(NUM_SHARDS, 1, HashMap::default, |numbers, range| {
                let mut slots = lock(&shards[range.start]);
                number_shard(&mut slots, numbers)
            })?;
        let (mut bases, mut rooms) = (Vec::with_capacity(NUM_SHARDS), Vec::new());
        for counts in counted {
            bases.push(number_of_list(rooms.len())?);
            rooms.extend(counts?);
        }
        number_of_list(rooms.len())?;
        Ok((bases, rooms))
    }
}

/// Numbers the features of one shard; those that no pair can meet in get [`NO_LIST`]. Returns the entries of the others.
fn number_shard(
    slots: &mut [&mut [u64]],
    numbers: &mut HashMap<u64, u32, BuildHasherDefault<MixHasher>>,
) -> Result<Vec<[u32; 2]>, Error> {
    numbers.clear();
    let mut counts: Vec<[u32; 2]> = Vec::new();
    for slot in slots.iter_mut().flat_map(|slots| slots.iter_mut()) {
        let new = number_of_list(counts.len())?;
        let number = *numbers.entry(*slot >> 8).or_insert(new);
        if number == new {
            counts.push([0, 0]);
        }
        counts[number as usize][(*slot & 1) as usize] += 1;
        *slot = u64::from(number);
    }
    let mut left = Vec::new();
    let number_of: Vec<u32> = counts
        .into_iter()
        .map(|[num_prefix, num_behind]| {
            if num_prefix == 0 || num_prefix + num_behind == 1 {
                return NO_LIST;
            }
            left.push([num_prefix, num_behind]);
            left.len() as u32 - 1
        })
        .collect();
    for slot in slots.iter_mut().flat_map(|slots| slots.iter_mut()) {
        *slot = u64::from(number_of[*slot as usize]);
    }
    Ok(left)
}

/// Puts documents in order, and numbers lists in the order in which they come: those of one stay together.
fn joined(
    demand: Demand,
    num_positions: usize,
    parts: &[Numbered],
    rooms: &[[u32; 2]],
    cancel: &AtomicBool,
) -> Result<PrefixJoin, Error> {
    let mut places = vec![None; num_positions];
    for (number, part) in parts.iter().enumerate() {
        let mut start = 0;
        for (&position, facts) in part.positions.iter().zip(&part.sets) {
            places[position as usize] = Some((number, start, *facts));
            start += facts.num_entries as usize;
        }
    }
    let num_entries = parts.iter().map(|part| part.entries.len()).sum();
    let is_weighted = parts.iter().any(|part| part.is_weighted);
    let mut entries = Vec::with_capacity(num_entries);
    let mut weights = Vec::with_capacity(if is_weighted { num_entries } else { 0 });
    let mut offsets = Vec::with_capacity(num_positions + 1);
    offsets.push(0);
    let mut facts = Vec::with_capacity(num_positions);
    let mut number_of = vec![NO_LIST; rooms.len()];
    let mut lists = Lists::with_capacity(rooms.len());
    for (position, place) in places.into_iter().enumerate() {
        if position % POSITIONS_BETWEEN_CHECKS == 0 {
            cancel.check()?;
        }
        let (part, start, own) = place.unwrap_or((0, 0, NO_SET));
        let range = start..start + own.num_entries as usize;
        if let Some(part) = parts.get(part) {
            for (i, entry) in part.entries[range.clone()].iter().enumerate() {
                if let Some(ahead) = part.entries.get(range.start + i + LOOKAHEAD) {
                    prefetch_read(&number_of, ahead.list as usize);
                }
                let list = &mut number_of[entry.list as usize];
                if *list == NO_LIST {
                    *list = lists.make(rooms[entry.list as usize]);
                }
                entries.push(Entry {
                    list: *list,
                    ..*entry
                });
            }
            if is_weighted {
                let of_part = part.weights.get(range);
                weights.extend_from_slice(of_part.unwrap_or_default());
                weights.resize(entries.len(), 1);
            }
        }
        offsets.push(entries.len());
        facts.push(own);
    }
    Ok(PrefixJoin::new(
        demand,
        offsets,
        entries,
        weights,
        facts,
        lists.finish(is_weighted),
    ))
}

/// The highest byte of a feature.
#[inline(always)]
fn shard_of(feature: u64) -> usize {
    (feature >> 56) as usize
}

/// The number of the next list; the last one, [`NO_LIST`], is none.
fn number_of_list(num_lists: usize) -> Result<u32, Error> {
    u32::try_from(num_lists)
        .ok()
        .filter(|&number| number != NO_LIST)
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
    num_features: 0,
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
