//! How are pairs partitioned by number, in memory as far as possible and then in one file?

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use likewise_core::repeats::Pair;
use zerocopy::IntoBytes;

use crate::error::{Error, Result};
use crate::position::{read_exact_at, write_all_at};
use crate::temporary::TemporaryFile;

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
        write_all_at(&spilled.file, bytes, offset).map_err(|e| Error::io("write", e))?;
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
            Some(spilled) => read_exact_at(&spilled.file, pairs.as_mut_bytes(), offset)
                .map_err(|e| Error::read(e, offset)),
            None => Ok(()),
        }
    }
}

/// Locks even a poisoned mutex: a thread that panicked reports its own error, and the pairs are whole.
fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex
        .lock()
        .unwrap_or_else(std::sync::PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
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
