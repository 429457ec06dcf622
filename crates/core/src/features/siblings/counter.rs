//! Which places of a collection are slots, and how rare are its words?

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::{FEWEST_FILLINGS, SLOT_TOKENS, each_filling, word_key};
use crate::error::Error;
use crate::features::feature_table::FeatureTable;
use crate::features::rarity::Rarity;
use crate::features::weight_table::Entries;
use crate::features::weights::MAX_WEIGHT;
use crate::parallel::map_ranges;

/// Maximum number of documents that are counted, those of the lowest digests: more show no more forms.
pub const MOST_COUNTED: usize = 1 << 14;
/// Documents per piece of work.
const GRAIN: usize = 256;
/// Frames are distributed over this many parts by their highest bits, and hashed into this many counters.
const PARTS: usize = 64;
const FILTER_BITS: u32 = 23;

/// Collects a sample of documents with distinct feature sets, and finds the slots that they have in common.
///
/// Which documents are counted depends only on their digests, so the result does not depend on threads or order.
#[derive(Debug)]
pub struct NameCounter {
    /// Documents of this digest or a higher one are not counted.
    bound: AtomicU64,
    sample: Mutex<Vec<Sampled>>,
}

#[derive(Debug)]
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

    /// Adds the tokens of a document, in order. Each digest may be added once.
    pub fn add(&self, digest: [u64; 2], tokens: &[u64]) {
        let tokens = tokens[..tokens.len().min(SLOT_TOKENS)].into();
        let mut sample = self.locked();
        sample.push(Sampled { digest, tokens });
        if sample.len() >= 2 * MOST_COUNTED {
            let (_, highest, _) = sample.select_nth_unstable_by_key(MOST_COUNTED, |one| one.digest);
            self.bound.store(highest.digest[0], Ordering::Relaxed);
            sample.truncate(MOST_COUNTED + 1);
        }
    }

    fn locked(&self) -> MutexGuard<'_, Vec<Sampled>> {
        self.sample.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the table of names: the rarity of each word that weighs less than 15, and the frames of slots, which
    /// weigh 0. Cost: about 200 ns per token of at most `MOST_COUNTED` documents.
    ///
    /// # Errors
    /// Returns [`Error::Canceled`] if `cancel` was set.
    pub fn finish(&self, threads: usize, cancel: &AtomicBool) -> Result<Entries, Error> {
        let mut sample = std::mem::take(&mut *self.locked());
        sample.sort_unstable_by_key(|one| one.digest);
        sample.truncate(MOST_COUNTED);
        let mut listed = slots(&sample, threads, cancel)?;
        listed.extend(words(&sample));
        listed.sort_unstable();
        listed.dedup_by_key(|&mut (key, _)| key);
        let (features, weights) = listed.into_iter().unzip();
        Ok(Entries::Listed { features, weights })
    }
}

/// Returns the keys of words, with the weights of those that are not the rarest.
fn words(sample: &[Sampled]) -> Vec<(u64, u8)> {
    let mut counts = FeatureTable::default();
    let mut distinct = Vec::new();
    for one in sample {
        distinct.clear();
        distinct.extend_from_slice(&one.tokens);
        distinct.sort_unstable();
        distinct.dedup();
        counts.add(&distinct);
    }
    let rarity = Rarity::new(sample.len() as u64);
    let weighed = counts
        .iter()
        .map(|(token, df)| (word_key(token), rarity.weight(u64::from(df))));
    weighed.filter(|&(_, weight)| weight < MAX_WEIGHT).collect()
}

/// Returns the frames of slots, which weigh 0.
fn slots(sample: &[Sampled], threads: usize, cancel: &AtomicBool) -> Result<Vec<(u64, u8)>, Error> {
    // A frame in fewer places than a slot has fillings is none. Counters may be shared, which only keeps more of them.
    let mut places = vec![0u8; 1 << FILTER_BITS];
    let place = |frame: u64| (frame >> (64 - FILTER_BITS)) as usize;
    let mut padded = Vec::new();
    for one in sample {
        each_filling(&one.tokens, &mut padded, |frame, _| {
            let count = &mut places[place(frame)];
            *count = count.saturating_add(1);
        });
    }
    let found = map_ranges(
        sample.len(),
        GRAIN,
        threads,
        cancel,
        Vec::new,
        |padded, range| {
            let mut parts: Vec<Vec<(u64, u64)>> = vec![Vec::new(); PARTS];
            let mut own = Vec::new();
            for one in &sample[range] {
                own.clear();
                each_filling(&one.tokens, padded, |frame, filling| {
                    if usize::from(places[place(frame)]) >= FEWEST_FILLINGS {
                        own.push((frame, filling));
                    }
                });
                own.sort_unstable();
                own.dedup();
                for &(frame, filling) in &own {
                    parts[frame as usize % PARTS].push((frame, filling));
                }
            }
            parts
        },
    )?;
    let each = map_ranges(PARTS, 1, threads, cancel, Vec::new, |all, part| {
        all.clear();
        all.extend(found.iter().flat_map(|parts| &parts[part.start]));
        all.sort_unstable();
        let of_frame = all.chunk_by(|a: &(u64, u64), b| a.0 == b.0);
        let slots = of_frame.filter(|documents| {
            let fillings = documents.chunk_by(|a, b| a == b).map(<[_]>::len);
            let (num, most) = fillings.fold((0, 0), |(num, most), len| (num + 1, most.max(len)));
            num >= FEWEST_FILLINGS && FEWEST_FILLINGS * most <= documents.len()
        });
        slots
            .map(|documents| (documents[0].0, 0))
            .collect::<Vec<(u64, u8)>>()
    })?;
    Ok(each.concat())
}
