//! Which windows of words occur earlier, in a collection of any size?
//!
//! Windows are partitioned by the first bits of their hashes. In each part, a table finds the first of equal windows;
//! the others are partitioned again by place, where consecutive ones become stretches. Data that exceeds the memory is
//! stored in one file.
//!
//! Nothing is sorted. The windows of a part fit in a table in the cache, which gives the first of each; the others,
//! partitioned by place, are written to their place in a stretch of text and read off in order. All remaining windows
//! are grouped, so the first of each is found however often boilerplate repeats.

use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex};

use likewise_core::parallel::{Cancel, Run, lock};
use likewise_core::repeats::{FewStretches, FirstPlaces, Pair, Stretches, repeated_stretches};
use zerocopy::IntoBytes;

use crate::error::{Doing, Error, Result};
use crate::position::{read_exact_at, write_all_at};
use crate::whole::TemporaryFile;

/// Approximate number of words per part, unless there are too many parts.
const PART_WORDS: u64 = 1 << 18;
const MOST_PARTS: u64 = 1 << 12;
/// Parts per thread whose stretches wait for those of earlier parts: up to 24 bytes per word.
const PARTS_A_THREAD: usize = 2;

/// Windows that may repeat an earlier one. Threads may share it.
#[derive(Debug)]
pub struct RepeatedWindows {
    num_window_words: u64,
    num_words: u64,
    /// Number of upper bits of a hash that give its part.
    part_bits: u32,
    /// Number of places per part.
    step: u64,
    by_hash: PairParts,
    by_place: PairParts,
}

impl RepeatedWindows {
    /// Prepares for windows of `num_window_words` words in documents with `num_words` words in total: 16 bytes per
    /// window, twice if repeated, in files of `folder` beyond `memory_bytes`; then 64 bytes per word of one of up to
    /// 4096 parts and thread, and 24 per stretch.
    pub fn new(folder: &Path, num_window_words: u64, num_words: u64, memory_bytes: usize) -> Self {
        let num_parts = (num_words / PART_WORDS)
            .clamp(1, MOST_PARTS)
            .next_power_of_two();
        // A part that is taken by hash frees its memory for what it stores by place.
        RepeatedWindows {
            num_window_words,
            num_words,
            part_bits: num_parts.trailing_zeros(),
            step: num_words.div_ceil(num_parts).max(1),
            by_hash: PairParts::new(folder, num_parts as usize, memory_bytes),
            by_place: PairParts::new(folder, num_parts as usize, memory_bytes),
        }
    }

    fn num_parts(&self) -> usize {
        1 << self.part_bits
    }

    /// Adds windows: the hash of each, and its place among all words.
    pub fn add(&self, windows: &[Pair]) -> Result<()> {
        if windows.iter().any(|&[_, place]| place >= self.num_words) {
            return Err(Error::InvalidParameter {
                name: "windows",
                message: format!("a position is {} or more", self.num_words),
            });
        }
        // In two steps, since a shift by all 64 bits is invalid.
        let shift = u64::BITS - self.part_bits - 1;
        self.by_hash
            .add(windows, |&[hash, _]| (hash >> shift >> 1) as usize)
    }

    /// Returns the longest stretches of windows that repeat consecutive ones, as [`FewStretches`] does, after all were
    /// added; `doc_starts` ends with the end of the last document.
    pub fn stretches(&self, doc_starts: &[i64], run: Run<'_>) -> Result<Stretches> {
        let ends = (doc_starts.first(), doc_starts.last());
        if ends != (Some(&0), Some(&(self.num_words as i64))) || !doc_starts.is_sorted() {
            return Err(Error::InvalidParameter {
                name: "doc_starts",
                message: format!("must be ascending, from 0 to {}", self.num_words),
            });
        }
        let make = || FirstPlaces::new(self.part_bits);
        run.map(self.num_parts(), 1, make, |firsts, range| {
            self.put_aside_by_place(range.start, firsts, run.cancel)
        })?
        .into_iter()
        .collect::<Result<()>>()?;
        let mut found = FewStretches::new(self.num_window_words, doc_starts);
        let scratch = || vec![0; self.step as usize];
        let at_once = PARTS_A_THREAD * run.threads.max(1);
        for done in (0..self.num_parts()).step_by(at_once) {
            let num_parts = at_once.min(self.num_parts() - done);
            let parts = run.map(num_parts, 1, scratch, |scratch, range| {
                let number = done + range.start;
                let later = self.by_place.take(number).all()?;
                let start = number as u64 * self.step;
                Ok::<_, Error>(repeated_stretches(
                    &later,
                    start,
                    scratch,
                    doc_starts,
                    self.num_window_words,
                ))
            })?;
            for part in parts {
                found.append(&part?);
            }
        }
        Ok(found.finish())
    }

    /// Stores the repeated windows of a part by place; of a large part, a few hashes, only hashes are in memory.
    fn put_aside_by_place(
        &self,
        number: usize,
        firsts: &mut FirstPlaces,
        cancel: &AtomicBool,
    ) -> Result<()> {
        let windows = self.by_hash.take(number);
        let most_held = 2 * PAIRS_AT_ONCE.max(self.step as usize);
        firsts.clear(windows.len().min(most_held));
        let by_place = |later: &[Pair]| {
            self.by_place
                .add(later, |&[place, _]| (place / self.step) as usize)
        };
        let mut later = Vec::new();
        if windows.len() <= most_held {
            let windows = windows.all()?;
            firsts.note(&windows);
            firsts.for_each_later(&windows, |place, first| later.push([place, first]));
            drop(windows);
            return by_place(&later);
        }
        windows.for_each_piece(|some| {
            firsts.note(some);
            Ok(cancel.check()?)
        })?;
        windows.for_each_piece(|some| {
            later.clear();
            firsts.for_each_later(some, |place, first| later.push([place, first]));
            by_place(&later)?;
            Ok(cancel.check()?)
        })
    }
}

const PAIR_BYTES: usize = size_of::<Pair>();
/// Pairs that are sorted, written or read at once.
pub(super) const PAIRS_AT_ONCE: usize = 1 << 18;

/// Partitioned pairs, which are taken one part at a time. Threads may share it.
#[derive(Debug)]
pub(super) struct PairParts {
    folder: PathBuf,
    /// Maximum number of pairs of a part that are held before they are written.
    most_held: usize,
    parts: Vec<Mutex<Part>>,
    /// `None` until something is written, and the position for the next bytes.
    file: Mutex<(Option<Arc<TemporaryFile>>, u64)>,
}

#[derive(Debug, Default)]
struct Part {
    held: Vec<Pair>,
    /// Positions in the file of the other pairs, and their numbers.
    written: Vec<(u64, usize)>,
}

impl PairParts {
    /// Creates `num_parts` parts, which hold about `memory_bytes` in total; the rest is written to a file in `folder`.
    pub(super) fn new(folder: &Path, num_parts: usize, memory_bytes: usize) -> Self {
        PairParts {
            folder: folder.to_owned(),
            most_held: (memory_bytes / PAIR_BYTES / num_parts).max(1),
            parts: (0..num_parts).map(|_| Mutex::default()).collect(),
            file: Mutex::new((None, 0)),
        }
    }

    /// Adds pairs to the parts given by `number_of`.
    pub(super) fn add(&self, pairs: &[Pair], number_of: impl Fn(&Pair) -> usize) -> Result<()> {
        let mut pieces = pairs.chunks(PAIRS_AT_ONCE);
        pieces.try_for_each(|some| self.add_some(some, &number_of))
    }

    fn add_some(&self, pairs: &[Pair], number_of: impl Fn(&Pair) -> usize) -> Result<()> {
        // Part by part, so that each is locked once.
        let mut bounds = vec![0_usize; self.parts.len() + 1];
        for pair in pairs {
            bounds[number_of(pair) + 1] += 1;
        }
        for i in 1..bounds.len() {
            bounds[i] += bounds[i - 1];
        }
        let mut next = bounds.clone();
        let mut sorted = vec![[0; 2]; pairs.len()];
        for pair in pairs {
            let place = &mut next[number_of(pair)];
            sorted[*place] = *pair;
            *place += 1;
        }
        for (part, bound) in self.parts.iter().zip(bounds.windows(2)) {
            if bound[0] < bound[1] {
                self.append(part, &sorted[bound[0]..bound[1]])?;
            }
        }
        Ok(())
    }

    fn append(&self, part: &Mutex<Part>, pairs: &[Pair]) -> Result<()> {
        let mut part = lock(part);
        part.held.extend_from_slice(pairs);
        if part.held.len() < self.most_held {
            return Ok(());
        }
        let bytes = part.held.as_bytes();
        let (spilled, offset) = self.room(bytes.len())?;
        write_all_at(&spilled.file, bytes, offset).doing("write")?;
        let count = part.held.len();
        part.written.push((offset, count));
        part.held.clear();
        Ok(())
    }

    /// Returns the file, creating it if necessary, and the position at which `num_bytes` bytes may be written.
    fn room(&self, num_bytes: usize) -> Result<(Arc<TemporaryFile>, u64)> {
        let mut file = lock(&self.file);
        let spilled = match &file.0 {
            Some(spilled) => spilled.clone(),
            None => Arc::new(TemporaryFile::create(&self.folder, "windows")?),
        };
        let offset = file.1;
        *file = (Some(spilled.clone()), offset + num_bytes as u64);
        Ok((spilled, offset))
    }

    pub(super) fn take(&self, number: usize) -> Taken {
        let Part { held, written } = std::mem::take(&mut *lock(&self.parts[number]));
        let file = lock(&self.file).0.clone();
        Taken {
            held,
            written,
            file,
        }
    }
}

/// The pairs of one part, in any order.
#[derive(Debug)]
pub(super) struct Taken {
    held: Vec<Pair>,
    written: Vec<(u64, usize)>,
    file: Option<Arc<TemporaryFile>>,
}

impl Taken {
    pub(super) fn len(&self) -> usize {
        self.written.iter().map(|&(_, count)| count).sum::<usize>() + self.held.len()
    }

    pub(super) fn all(mut self) -> Result<Vec<Pair>> {
        let num_written = self.len() - self.held.len();
        if num_written == 0 {
            return Ok(self.held);
        }
        let mut pairs = vec![[0; 2]; self.len()];
        pairs[num_written..].copy_from_slice(&self.held);
        self.held = Vec::new();
        let mut at = 0;
        for &(offset, count) in &self.written {
            self.read(&mut pairs[at..at + count], offset)?;
            at += count;
        }
        Ok(pairs)
    }

    /// Calls `take` with batches of about [`PAIRS_AT_ONCE`] pairs, until all are passed or it fails.
    pub(super) fn for_each_piece(&self, mut take: impl FnMut(&[Pair]) -> Result<()>) -> Result<()> {
        let mut piece: Vec<Pair> = Vec::new();
        for &(offset, count) in &self.written {
            if !piece.is_empty() && piece.len() + count > PAIRS_AT_ONCE {
                take(&piece)?;
                piece.clear();
            }
            let at = piece.len();
            piece.resize(at + count, [0; 2]);
            self.read(&mut piece[at..], offset)?;
        }
        take(&piece)?;
        self.held.chunks(PAIRS_AT_ONCE).try_for_each(take)
    }

    fn read(&self, pairs: &mut [Pair], offset: u64) -> Result<()> {
        match &self.file {
            Some(spilled) => {
                read_exact_at(&spilled.file, pairs.as_mut_bytes(), offset).reading(offset)
            }
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    const NUM_WORDS: u64 = 1_000_000;

    /// Hashes with few values, distributed over all bits.
    fn hash(place: u64) -> u64 {
        let value = (place / 3 * 7 + place % 5) % 2001;
        value.wrapping_mul(0x9E37_79B9_7F4A_7C15)
    }

    #[test]
    fn stretches_are_the_same_in_memory_and_on_disk_by_any_threads() {
        let folder = std::env::temp_dir();
        let places: Vec<u64> = (0..NUM_WORDS).filter(|place| place % 50 < 20).collect();
        let doc_starts: Vec<i64> = (0..=NUM_WORDS as i64).step_by(500).collect();
        let mut first = BTreeMap::new();
        let mut expected = FewStretches::new(10, &doc_starts);
        for &place in &places {
            let &mut other = first.entry(hash(place)).or_insert(place);
            if other / 500 < place / 500 || other + 10 <= place {
                expected.append(&Stretches {
                    places: vec![place as i64],
                    firsts: vec![other as i64],
                    num_windows: vec![1],
                });
            }
        }
        let expected = expected.finish();
        for (memory_bytes, threads) in [(0, 2), (1 << 20, 1), (1 << 28, 3)] {
            let windows = RepeatedWindows::new(&folder, 10, NUM_WORDS, memory_bytes);
            assert_eq!(windows.num_parts(), 4);
            for some in places.rchunks(70_001) {
                let pairs: Vec<Pair> = some.iter().map(|&place| [hash(place), place]).collect();
                windows.add(&pairs).unwrap();
            }
            let found = windows
                .stretches(
                    &doc_starts,
                    Run {
                        threads,
                        cancel: &AtomicBool::new(false),
                    },
                )
                .unwrap();
            assert_eq!(found, expected);
        }
        assert!(expected.places.len() > 1000);
    }

    /// One hash has almost all windows: its part is not held in memory.
    #[test]
    fn windows_that_are_all_equal_come_to_few_stretches() {
        let num_words = 10 * PAIRS_AT_ONCE as u64;
        let doc_starts = [0, 1000, num_words as i64];
        let pairs: Vec<Pair> = (0..num_words - 9)
            .filter(|place| !(991..1000).contains(place))
            .map(|place| [if place % 100_000 == 99_999 { place } else { 7 }, place])
            .collect();
        for (memory_bytes, threads) in [(0, 1), (1 << 28, 2)] {
            let windows = RepeatedWindows::new(&std::env::temp_dir(), 10, num_words, memory_bytes);
            for some in pairs.chunks(100_000) {
                windows.add(some).unwrap();
            }
            let found = windows
                .stretches(
                    &doc_starts,
                    Run {
                        threads,
                        cancel: &AtomicBool::new(false),
                    },
                )
                .unwrap();
            // Windows of the first document from the 11th word on; then all.
            assert_eq!(found.places[..5], [10, 19, 20, 29, 30]);
            assert!(found.places.contains(&1000));
            assert!(found.firsts.iter().all(|&first| first == 0));
            assert!(found.num_windows.iter().all(|&count| count == 1));
            // The first and the last of each ten words, and for the last ten of a document, in which one window begins,
            // that one.
            let expected = (2 * 98 + 1) + 2 * (num_words - 10 - 1000) / 10 + 1;
            assert_eq!(found.places.len() as u64, expected);
            assert!(found.places.contains(&99_998));
            assert!(!found.places.contains(&99_999));
        }
    }

    #[test]
    fn what_does_not_fit_is_refused() {
        let never = AtomicBool::new(false);
        let windows = RepeatedWindows::new(&std::env::temp_dir(), 10, 100, 0);
        assert!(matches!(
            windows.add(&[[1, 100]]),
            Err(Error::InvalidParameter { .. })
        ));
        for starts in [&[][..], &[0], &[0, 99], &[1, 100], &[0, 60, 50, 100]] {
            let refused = windows.stretches(starts, Run::alone(&never));
            assert!(
                matches!(refused, Err(Error::InvalidParameter { .. })),
                "{starts:?}"
            );
        }
        let canceled = windows.stretches(&[0, 100], Run::alone(&AtomicBool::new(true)));
        assert!(matches!(canceled, Err(Error::Canceled)));
        let empty = RepeatedWindows::new(&std::env::temp_dir(), 10, 0, 0);
        assert_eq!(
            empty
                .stretches(
                    &[0],
                    Run {
                        threads: 2,
                        cancel: &never
                    }
                )
                .unwrap(),
            Stretches::default()
        );
    }
}

#[cfg(test)]
mod pairs_tests {
    use super::*;

    #[test]
    fn pairs_come_back_from_memory_and_from_the_file() {
        for memory_bytes in [0, 3000, 1 << 20] {
            let folder = temporary_folder(memory_bytes);
            let parts = PairParts::new(&folder, 4, memory_bytes);
            for round in 0..10_u64 {
                let pairs: Vec<Pair> = (0..50).map(|i| [i * 7 + round, round]).collect();
                parts.add(&pairs, |pair| pair[0] as usize % 4).unwrap();
            }
            assert_eq!(lock(&parts.file).0.is_some(), memory_bytes < 1 << 20);
            for number in 0..4 {
                let taken = parts.take(number);
                let mut pieces = Vec::new();
                let keep = |some: &[Pair]| {
                    pieces.extend_from_slice(some);
                    Ok(())
                };
                taken.for_each_piece(keep).unwrap();
                assert_eq!(pieces.len(), taken.len());
                pieces.sort_unstable();
                let mut found = taken.all().unwrap();
                found.sort_unstable();
                assert_eq!(found, pieces);
                let all = (0..10).flat_map(|round| (0..50).map(move |i| [i * 7 + round, round]));
                let mut expected: Vec<Pair> = all.filter(|p| p[0] % 4 == number as u64).collect();
                expected.sort_unstable();
                assert_eq!(found, expected);
                assert_eq!(parts.take(number).len(), 0);
            }
            drop(parts);
            assert_eq!(std::fs::read_dir(&folder).unwrap().count(), 0);
            std::fs::remove_dir(&folder).unwrap();
        }
    }

    fn temporary_folder(memory_bytes: usize) -> PathBuf {
        let name = format!("likewise-pairs-{memory_bytes}-{}", std::process::id());
        let folder = std::env::temp_dir().join(name);
        std::fs::create_dir(&folder).unwrap();
        folder
    }
}
