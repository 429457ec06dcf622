//! Which places of a collection are slots, and how rare are its words?

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use super::{FEWEST_FILLINGS, SLOT_TOKENS, Scratch, each_frame, filling, places_where, word_key};
use crate::error::Error;
use crate::features::distinct::Distinct;
use crate::features::rarity::Rarity;
use crate::features::weight_table::Entries;
use crate::features::weights::MAX_WEIGHT;
use crate::isa::Isa;
use crate::parallel::{Run, lock};
use crate::prefetch::prefetch_read;
use crate::sort::sort_hashed;

/// Maximum number of documents that are counted, those of the lowest digests: more show no more forms.
pub const MOST_COUNTED: usize = 1 << 13;
/// Documents per piece of work.
const GRAIN: usize = 256;
/// Frames are distributed over this many parts by their lowest bits, and hashed into this many counters.
const PARTS: usize = 64;
const FILTER_BITS: u32 = 24;

/// Collects a sample of documents, chosen by their digests alone, and finds the slots that they have in common.
#[derive(Debug)]
pub struct NameCounter {
    /// Documents of this digest or a higher one are not counted.
    bound: AtomicU64,
    sample: Mutex<Vec<Sampled>>,
}

#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Sampled {
    digest: [u64; 2],
    tokens: Box<[u64]>,
}

impl Default for NameCounter {
    fn default() -> Self {
        NameCounter {
            bound: AtomicU64::new(u64::MAX),
            sample: Mutex::default(),
        }
    }
}

impl NameCounter {
    /// Whether a document with this digest may be counted.
    #[inline]
    pub fn wants(&self, digest: [u64; 2]) -> bool {
        digest[0] < self.bound.load(Ordering::Relaxed)
    }

    /// Adds the tokens of a document, in order. Of equal digests, the lowest tokens count.
    pub fn add(&self, digest: [u64; 2], tokens: &[u64]) {
        let tokens = tokens[..tokens.len().min(SLOT_TOKENS)].into();
        let mut sample = lock(&self.sample);
        sample.push(Sampled { digest, tokens });
        if sample.len() >= 2 * MOST_COUNTED {
            keep_lowest(&mut sample);
            if let Some(highest) = sample.get(MOST_COUNTED) {
                self.bound.store(highest.digest[0], Ordering::Relaxed);
            }
            sample.truncate(MOST_COUNTED + 1);
        }
    }

    /// Returns the table of names: the rarity of each word that weighs less than 15, and the frames of slots, which
    /// weigh 0. Cost: about 70 ns per token of at most `MOST_COUNTED` documents.
    pub fn finish(&self, threads: usize, cancel: &AtomicBool) -> Result<Entries, Error> {
        let mut sample = std::mem::take(&mut *lock(&self.sample));
        keep_lowest(&mut sample);
        sample.truncate(MOST_COUNTED);
        let may_be_slot = frequent_frames(&sample, threads, cancel)?;
        let parts = Run { threads, cancel }.map(
            sample.len(),
            GRAIN,
            Scratch::default,
            |scratch, range| {
                let mut part = Part::new(&sample[range.clone()]);
                for one in &sample[range] {
                    part.add(&one.tokens, scratch, &may_be_slot);
                }
                part
            },
        )?;
        let rarity = Rarity::new(sample.len() as u64);
        let listed = Run { threads, cancel }.each(PARTS, |which| {
            let mut listed = words(&parts, which, &rarity);
            listed.extend(slots(&parts, which));
            listed
        })?;
        let mut listed = listed.concat();
        listed.sort_unstable();
        listed.dedup_by_key(|&mut (key, _)| key);
        let (features, weights) = listed.into_iter().unzip();
        Ok(Entries::Listed { features, weights })
    }
}

/// Sorts documents, and keeps the lowest of each digest.
fn keep_lowest(sample: &mut Vec<Sampled>) {
    sample.sort_unstable();
    sample.dedup_by_key(|one| one.digest);
}

/// Words and possible slots of some documents, distributed by their bits so that each part is counted by itself.
struct Part {
    /// Each word once per document.
    words: Vec<Vec<u64>>,
    /// Frames with their fillings, each once per document.
    fillings: Vec<Vec<(u64, u64)>>,
    distinct: Distinct,
    own: Vec<(u64, u64)>,
    /// Scratch space of [`places_where`].
    places: Vec<u32>,
}

impl Part {
    /// Creates a part with room for as many words and fillings as these documents usually have.
    fn new(documents: &[Sampled]) -> Self {
        let num_tokens: usize = documents.iter().map(|one| one.tokens.len()).sum();
        let room = num_tokens / (2 * PARTS);
        Part {
            words: (0..PARTS).map(|_| Vec::with_capacity(room)).collect(),
            fillings: (0..PARTS).map(|_| Vec::with_capacity(room)).collect(),
            distinct: Distinct::default(),
            own: Vec::new(),
            places: Vec::new(),
        }
    }

    fn add(&mut self, tokens: &[u64], scratch: &mut Scratch, may_be_slot: &FrameCounts) {
        self.distinct.collect(tokens);
        for &word in &self.distinct.features {
            self.words[word as usize % PARTS].push(word);
        }
        self.own.clear();
        each_frame(tokens, scratch, Isa::best(), |frames, tokens, length| {
            may_be_slot.prefetch(frames);
            let may_be = |frame| may_be_slot.are_enough(frame) & (frame != 0);
            for place in places_where(frames, &mut self.places, may_be) {
                let filling = filling(frames[place], &tokens[place..place + length]);
                self.own.push((frames[place], filling));
            }
        });
        sort_hashed(&mut self.own, 0, |(frame, _)| frame);
        self.own.dedup();
        for &slot in &self.own {
            self.fillings[slot.0 as usize % PARTS].push(slot);
        }
    }
}

/// In how many places frames are, up to [`FEWEST_FILLINGS`]: a slot is in as many as it has fillings.
///
/// Two bits for each counter, so that most of them stay in a cache. Frames may share one, which only keeps more of them.
struct FrameCounts(Vec<u8>);

impl FrameCounts {
    fn new() -> Self {
        FrameCounts(vec![0; 1 << (FILTER_BITS - 2)])
    }

    /// The byte of the counter of a frame, and the place of its bits.
    #[inline]
    fn place(frame: u64) -> (usize, u32) {
        let counter = frame >> (64 - FILTER_BITS);
        ((counter >> 2) as usize, (2 * (counter & 3)) as u32)
    }

    fn prefetch(&self, frames: &[u64]) {
        let places = frames.iter().map(|&frame| FrameCounts::place(frame).0);
        places.for_each(|byte| prefetch_read(&self.0, byte));
    }

    #[inline]
    fn add(&mut self, frame: u64) {
        let (byte, shift) = FrameCounts::place(frame);
        let all = self.0[byte];
        self.0[byte] = all + (u8::from(all >> shift & 3 < FEWEST_FILLINGS as u8) << shift);
    }

    #[inline]
    fn are_enough(&self, frame: u64) -> bool {
        let (byte, shift) = FrameCounts::place(frame);
        usize::from(self.0[byte] >> shift & 3) == FEWEST_FILLINGS
    }

    /// Adds the counts of other documents.
    fn merge(mut self, other: FrameCounts) -> Self {
        for (all, more) in self.0.iter_mut().zip(other.0) {
            let sum = |shift: u32| ((*all >> shift & 3) + (more >> shift & 3)).min(3) << shift;
            *all = sum(0) | sum(2) | sum(4) | sum(6);
        }
        self
    }
}

/// Returns in how many places the frames are.
fn frequent_frames(
    sample: &[Sampled],
    threads: usize,
    cancel: &AtomicBool,
) -> Result<FrameCounts, Error> {
    let grain = sample.len().div_ceil(threads.max(1)).max(1);
    let counts =
        Run { threads, cancel }.map(sample.len(), grain, Scratch::default, |scratch, range| {
            let mut counts = FrameCounts::new();
            for one in &sample[range] {
                each_frame(&one.tokens, scratch, Isa::best(), |frames, _, _| {
                    counts.prefetch(frames);
                    frames.iter().for_each(|&frame| counts.add(frame));
                });
            }
            counts
        })?;
    let counts = counts.into_iter().reduce(FrameCounts::merge);
    Ok(counts.unwrap_or_else(FrameCounts::new))
}

/// Returns the keys of words that are not the rarest, with their weights.
fn words(parts: &[Part], which: usize, rarity: &Rarity) -> Vec<(u64, u8)> {
    let lists: Vec<&[u64]> = parts.iter().map(|part| &part.words[which][..]).collect();
    let mut all = lists.concat();
    sort_hashed(&mut all, 0, |token| token);
    let weighed = all
        .chunk_by(|a, b| a == b)
        .map(|same| (word_key(same[0]), rarity.weight(same.len() as u64)));
    weighed.filter(|&(_, weight)| weight < MAX_WEIGHT).collect()
}

/// Returns the frames of slots, which weigh 0.
fn slots(parts: &[Part], which: usize) -> Vec<(u64, u8)> {
    let lists: Vec<&[(u64, u64)]> = parts.iter().map(|part| &part.fillings[which][..]).collect();
    let mut all = lists.concat();
    sort_hashed(&mut all, 0, |(frame, _)| frame);
    let of_frame = all.chunk_by(|a, b| a.0 == b.0).filter(|documents| {
        let fillings = documents.chunk_by(|a, b| a == b).map(<[_]>::len);
        let (num, most) = fillings.fold((0, 0), |(num, most), len| (num + 1, most.max(len)));
        num >= FEWEST_FILLINGS && FEWEST_FILLINGS * most <= documents.len()
    });
    of_frame.map(|documents| (documents[0].0, 0)).collect()
}
