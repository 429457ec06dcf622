//! How are the pairs of one bucket found, however large and skewed it is?
//!
//! Codes that agree in a key must be within the radius in the other bits, which is the same task again. So a large
//! bucket is split by keys of its remaining bits, its buckets by the bits that remain there, and so on, until comparing
//! all pairs is cheaper.

use super::compare::{Hit, Progress, Search, Wanted};
use super::keys::FreeBits;
use super::output::{Stopped, Writer};
use super::partition::{Digit, Table, View};
use crate::plan::Key;

/// Codes of a side that are compared without a pause, which limits the hits of a call.
pub(super) const PIECE_LEN: usize = 256;
const OTHER_PIECE_LEN: usize = 8192;

/// Codes to join: a set with itself, or with another.
#[derive(Clone, Copy)]
pub(super) enum Sides<'a> {
    Same(View<'a>),
    Two(View<'a>, View<'a>),
}

impl Sides<'_> {
    /// Number of codes of the larger side.
    pub(super) fn max_len(&self) -> usize {
        match self {
            Sides::Same(view) => view.len,
            Sides::Two(left, right) => left.len.max(right.len),
        }
    }
}

/// The remaining search among some codes.
#[derive(Clone)]
pub(super) struct Task {
    pub(super) free: FreeBits,
    /// Number of differing bits allowed in the free ones.
    pub(super) within: u32,
    /// Keys that were searched before: they own the pairs that they find.
    pub(super) owners: Vec<Key>,
}

impl Task {
    /// Returns the remaining task for two buckets of key `keys[index]` that differ there in `num_errors` bits.
    pub(super) fn behind(&self, keys: &[Key], index: usize, num_errors: u32) -> Task {
        Task {
            free: self.free.without(&keys[index]),
            within: self.within - num_errors,
            owners: self.owners_of(keys, index),
        }
    }

    pub(super) fn owners_of(&self, keys: &[Key], index: usize) -> Vec<Key> {
        [&self.owners[..], &keys[..index]].concat()
    }

    /// Returns the keys for these codes, and measures the bits of the task in them.
    pub(super) fn keys_for(&mut self, sides: &Sides<'_>, search: &Search) -> Vec<Key> {
        // Always measured again: codes that agree in one key may agree in many bits that distinguished others, and
        // splitting by such bits would repeat the same work for each key.
        self.free = match sides {
            Sides::Same(view) => self.free.measured(&[*view]),
            Sides::Two(left, right) => self.free.measured(&[*left, *right]),
        };
        let (left, right) = match sides {
            Sides::Same(view) => (view.len, None),
            Sides::Two(left, right) => (left.len, Some(right.len)),
        };
        self.free.keys((left, right), search, self.within)
    }
}

#[derive(Default)]
struct Level {
    left: Table,
    right: Table,
    flips: Vec<u32>,
    progress: Progress,
}

/// Joins small sets of codes on one thread.
#[derive(Default)]
pub(super) struct Joiner {
    levels: Vec<Level>,
    pub(super) hits: Vec<Hit>,
}

impl Joiner {
    /// Finds all pairs of `sides` within the task.
    pub(super) fn join(
        &mut self,
        search: Search,
        sides: Sides<'_>,
        mut task: Task,
        writer: &mut Writer<'_, '_>,
    ) -> Result<(), Stopped> {
        let keys = task.keys_for(&sides, &search);
        if keys.is_empty() {
            return self.compare_all(search, sides, &task.owners, writer);
        }
        let mut level = self.levels.pop().unwrap_or_default();
        let result = self.join_keys(search, sides, &task, &keys, &mut level, writer);
        self.levels.push(level);
        result
    }

    fn join_keys(
        &mut self,
        search: Search,
        sides: Sides<'_>,
        task: &Task,
        keys: &[Key],
        level: &mut Level,
        writer: &mut Writer<'_, '_>,
    ) -> Result<(), Stopped> {
        for (index, key) in keys.iter().enumerate() {
            let digit = Digit::whole(key);
            let part_mask = task.free.part_mask(key, task.within);
            let owners = task.owners_of(keys, index);
            let (is_self, left, right) = match sides {
                Sides::Same(view) => (true, view, None),
                Sides::Two(left, right) => (false, left, Some(right)),
            };
            level
                .left
                .fill(search.isa, search.num_words, &[left], digit, part_mask);
            if let Some(right) = right {
                level
                    .right
                    .fill(search.isa, search.num_words, &[right], digit, part_mask);
            }
            flips_within(key.width(), key.radius, &mut level.flips);
            let Level {
                left,
                right,
                flips,
                progress,
            } = &mut *level;
            let tables = (&*left, if is_self { &*left } else { &*right });
            for &flip in &*flips {
                let how = Flip {
                    flip: flip as usize,
                    is_self,
                };
                let wanted = Wanted {
                    part_within: part_mask.map(|_| task.within - flip.count_ones()),
                    ..search.wanted(&owners)
                };
                self.compare_buckets(&wanted, tables, how, progress, writer)?;
                for value in std::mem::take(&mut progress.large) {
                    let rest = task.behind(keys, index, flip.count_ones());
                    self.join(search, how.sides(tables, value as usize), rest, writer)?;
                }
            }
        }
        Ok(())
    }

    /// Compares the codes of all buckets that are not too large; the large ones remain in `progress`.
    pub(super) fn compare_buckets(
        &mut self,
        wanted: &Wanted<'_>,
        tables: (&Table, &Table),
        how: Flip,
        progress: &mut Progress,
        writer: &mut Writer<'_, '_>,
    ) -> Result<(), Stopped> {
        progress.next = 0;
        while progress.next < tables.0.num_buckets {
            if how.is_self && how.flip == 0 {
                wanted.in_buckets(tables.0, progress, &mut self.hits);
            } else {
                wanted.across_buckets(tables, (how.flip, how.is_self), progress, &mut self.hits);
            }
            writer.drain(&mut self.hits)?;
            if writer.is_stopped() {
                return Err(Stopped);
            }
        }
        Ok(())
    }

    fn compare_all(
        &mut self,
        search: Search,
        sides: Sides<'_>,
        owners: &[Key],
        writer: &mut Writer<'_, '_>,
    ) -> Result<(), Stopped> {
        let num_left = match sides {
            Sides::Same(view) => view.len,
            Sides::Two(left, _) => left.len,
        };
        for start in (0..num_left).step_by(PIECE_LEN) {
            self.compare_piece(search, sides, start, owners, writer)?;
        }
        Ok(())
    }

    /// Compares up to [`PIECE_LEN`] codes of the left side with the right side, or with all later ones.
    pub(super) fn compare_piece(
        &mut self,
        search: Search,
        sides: Sides<'_>,
        start: usize,
        owners: &[Key],
        writer: &mut Writer<'_, '_>,
    ) -> Result<(), Stopped> {
        let wanted = search.wanted(owners);
        let (left, right, mut other) = match sides {
            Sides::Same(view) => (view, view, (start + PIECE_LEN).min(view.len)),
            Sides::Two(left, right) => (left, right, 0),
        };
        let piece = left.part(start, (start + PIECE_LEN).min(left.len));
        if let Sides::Same(_) = sides {
            wanted.inside(piece, &mut self.hits);
            writer.drain(&mut self.hits)?;
        }
        while other < right.len {
            let end = (other + OTHER_PIECE_LEN).min(right.len);
            wanted.across(piece, right.part(other, end), &mut self.hits);
            writer.drain(&mut self.hits)?;
            other = end;
        }
        if writer.is_stopped() {
            return Err(Stopped);
        }
        Ok(())
    }
}

/// Which bucket of the right table is compared with a bucket of the left one.
#[derive(Debug, Clone, Copy)]
pub(super) struct Flip {
    /// The mask that is XORed to its value.
    pub(super) flip: usize,
    /// Whether both tables are the same, so that each pair of buckets is visited only once.
    pub(super) is_self: bool,
}

impl Flip {
    pub(super) fn sides<'t>(&self, tables: (&'t Table, &'t Table), value: usize) -> Sides<'t> {
        if self.is_self && self.flip == 0 {
            Sides::Same(tables.0.bucket(value))
        } else {
            Sides::Two(tables.0.bucket(value), tables.1.bucket(value ^ self.flip))
        }
    }
}

/// Returns all values of `width` bits with at most `radius` ones, 0 first, then ascending.
pub(super) fn flips_within(width: u32, radius: u32, flips: &mut Vec<u32>) {
    flips.clear();
    flips.push(0);
    let mut first_of_weight = 0;
    for _ in 0..radius.min(width) {
        let end = flips.len();
        for index in first_of_weight..end {
            let flip = flips[index];
            // Ones are added only above the highest, so that each value is produced once.
            for bit in flip.checked_ilog2().map_or(0, |top| top + 1)..width {
                flips.push(flip | 1 << bit);
            }
        }
        first_of_weight = end;
    }
    flips.sort_unstable();
}
