//! How is a large set of codes joined on all threads?
//!
//! For each key, the codes are moved to their buckets in two steps that both stay in the caches: pieces of the input by
//! the key's upper bits, then, for one value of these at a time, all pieces by the lower ones. The result of the second
//! step is compared at once, unless neighboring buckets are searched too: then it is kept.

use std::sync::Mutex;

use super::compare::{Progress, Search, Wanted};
use super::keys::FreeBits;
use super::node::{Flip, Joiner, PIECE_LEN, Sides, Task, flips_within};
use super::output::{Output, Stopped, Writer};
use super::partition::{Digit, Table, View};
use crate::plan::Key;
use likewise_core::error::Error;
use likewise_core::parallel::{Run, lock};

/// Bytes of the codes with one value of the upper bits: in the L2 cache together with their scattered copy.
const PART_BYTES: usize = 384 << 10;
/// Minimum and maximum number of upper bits of a key.
const MIN_UPPER: u32 = 5;
const MAX_UPPER: u32 = 11;

/// State shared by all phases of a join.
pub(super) struct Join<'j, 'o> {
    pub(super) search: Search,
    pub(super) run: Run<'j>,
    pub(super) output: &'j Output<'o>,
    /// Tables that may be reused.
    pub(super) spare: Mutex<Vec<Table>>,
}

/// Codes to join, in contiguous views: a set with itself, or with another.
pub(super) struct Source<'a> {
    pub(super) left: Vec<View<'a>>,
    pub(super) right: Option<Vec<View<'a>>>,
}

impl From<Error> for Stopped {
    fn from(_: Error) -> Self {
        Stopped
    }
}

fn len_of(views: &[View<'_>]) -> usize {
    views.iter().map(|view| view.len).sum()
}

impl<'a> Source<'a> {
    pub(super) fn of(sides: Sides<'a>) -> Self {
        match sides {
            Sides::Same(view) => Source {
                left: vec![view],
                right: None,
            },
            Sides::Two(left, right) => Source {
                left: vec![left],
                right: Some(vec![right]),
            },
        }
    }

    pub(super) fn measured(&self, free: &FreeBits) -> FreeBits {
        let both = [&self.left[..], self.right.as_deref().unwrap_or_default()].concat();
        free.measured(&both)
    }
}

impl Join<'_, '_> {
    /// Finds all pairs of the source within the task.
    pub(super) fn join(&self, source: &Source<'_>, mut task: Task) -> Result<(), Stopped> {
        let num_left = len_of(&source.left);
        let num_right = source.right.as_ref().map(|views| len_of(views));
        if num_left == 0 || num_right == Some(0) {
            return Ok(());
        }
        if num_left.max(num_right.unwrap_or(0)) <= self.search.limits.few_codes {
            return self.join_few(source, task);
        }
        task.free = source.measured(&task.free);
        let keys = task
            .free
            .keys((num_left, num_right), &self.search, task.within);
        if keys.is_empty() {
            return self.compare_all(source, &task);
        }
        for index in 0..keys.len() {
            self.join_key(source, &task, &keys, index)?;
        }
        Ok(())
    }

    fn join_few(&self, source: &Source<'_>, task: Task) -> Result<(), Stopped> {
        let left = self.flattened(&source.left);
        let right = source.right.as_ref().map(|views| self.flattened(views));
        self.output.begin_phase();
        let mut writer = self.output.writer(0);
        let sides = sides_of(&left, right.as_ref());
        Joiner::default().join(self.search, sides, task, &mut writer)?;
        writer.finish()
    }

    fn compare_all(&self, source: &Source<'_>, task: &Task) -> Result<(), Stopped> {
        let left = self.flattened(&source.left);
        let right = source.right.as_ref().map(|views| self.flattened(views));
        let sides = sides_of(&left, right.as_ref());
        self.output.begin_phase();
        let results = self.run.map(
            left.codes.len,
            PIECE_LEN,
            Joiner::default,
            |joiner, range| {
                let mut writer = self.output.writer(range.start / PIECE_LEN);
                joiner.compare_piece(self.search, sides, range.start, &task.owners, &mut writer)?;
                writer.finish()
            },
        )?;
        self.spare_again([left].into_iter().chain(right));
        results.into_iter().collect()
    }

    /// Finds the pairs that key `index` owns.
    pub(super) fn join_key(
        &self,
        source: &Source<'_>,
        task: &Task,
        keys: &[Key],
        index: usize,
    ) -> Result<(), Stopped> {
        let key = &keys[index];
        let num_codes =
            len_of(&source.left).max(source.right.as_ref().map_or(0, |views| len_of(views)));
        let num_parts = num_codes * (8 * self.search.num_words + 4) / PART_BYTES;
        let upper_bits = num_parts.next_power_of_two().ilog2();
        let upper_bits = upper_bits.clamp(MIN_UPPER, MAX_UPPER).min(key.width());
        let (upper, lower) = Digit::split(key, upper_bits);
        let left = self.spread(&source.left, upper)?;
        let right = source.right.as_ref().map(|views| self.spread(views, upper));
        let right = right.transpose()?;
        let run = KeyRun {
            join: self,
            task,
            keys,
            index,
            upper,
            lower,
            part_mask: task.free.part_mask(key, task.within),
        };
        if key.radius == 0 {
            run.exactly(left, right)
        } else {
            run.with_neighbors(left, right)
        }
    }

    /// Partitions the source into pieces by a digit.
    fn spread(&self, views: &[View<'_>], digit: Digit) -> Result<Vec<Table>, Stopped> {
        let piece_len = (len_of(views) / 8).clamp(1 << 13, 1 << 18);
        let mut pieces: Vec<Vec<View<'_>>> = Vec::new();
        let mut room = 0;
        for view in views {
            let mut start = 0;
            while start < view.len {
                if room == 0 {
                    pieces.push(Vec::new());
                    room = piece_len;
                }
                let end = (start + room).min(view.len);
                if let Some(piece) = pieces.last_mut() {
                    piece.push(view.part(start, end));
                }
                room -= end - start;
                start = end;
            }
        }
        let tables = self.run.each(pieces.len(), |i| {
            let mut table = self.spare_table();
            table.fill(
                self.search.isa,
                self.search.num_words,
                &pieces[i],
                digit,
                None,
            );
            table
        })?;
        Ok(tables)
    }

    /// Copies all codes into one table.
    fn flattened(&self, views: &[View<'_>]) -> Table {
        let mut table = self.spare_table();
        let nothing = Digit {
            mask: [0; 4],
            shift: 0,
            width: 0,
        };
        table.fill(self.search.isa, self.search.num_words, views, nothing, None);
        table
    }

    fn spare_table(&self) -> Table {
        let mut spare = lock(&self.spare);
        spare.pop().unwrap_or_default()
    }

    fn spare_again(&self, tables: impl IntoIterator<Item = Table>) {
        let mut spare = lock(&self.spare);
        spare.extend(tables);
    }
}

fn sides_of<'t>(left: &'t Table, right: Option<&'t Table>) -> Sides<'t> {
    match right {
        None => Sides::Same(left.all()),
        Some(right) => Sides::Two(left.all(), right.all()),
    }
}

fn flips(digit: Digit, radius: u32) -> Vec<u32> {
    let mut flips = Vec::new();
    flips_within(digit.width, radius, &mut flips);
    flips
}

/// Buckets too large for one thread: the part of each side and the value.
struct Deferred {
    flip: Flip,
    parts: (usize, usize),
    value: usize,
}

/// Copies of two buckets that are too large for one thread.
struct Copied {
    left: Table,
    right: Option<Table>,
}

struct KeyRun<'k, 'j, 'o> {
    join: &'k Join<'j, 'o>,
    task: &'k Task,
    keys: &'k [Key],
    index: usize,
    upper: Digit,
    lower: Digit,
    part_mask: Option<[u64; 4]>,
}

/// The state that a thread reuses for every part.
#[derive(Default)]
struct KeyState {
    joiner: Joiner,
    left: Table,
    right: Table,
    progress: Progress,
}

impl KeyRun<'_, '_, '_> {
    /// Collects the codes of all pieces with value `part` of the upper bits, by the lower ones.
    fn gather(&self, pieces: &[Table], part: usize, table: &mut Table) {
        let runs: Vec<View<'_>> = pieces.iter().map(|piece| piece.bucket(part)).collect();
        let search = &self.join.search;
        table.fill(
            search.isa,
            search.num_words,
            &runs,
            self.lower,
            self.part_mask,
        );
    }

    /// Joins the buckets of two tables, which differ in `num_errors` bits of the key; passes the values of those too large
    /// for one thread to `defer`.
    fn join_buckets(
        &self,
        (joiner, progress): (&mut Joiner, &mut Progress),
        tables: (&Table, &Table),
        (how, num_errors): (Flip, u32),
        owners: &[Key],
        writer: &mut Writer<'_, '_>,
        mut defer: impl FnMut(usize),
    ) -> Result<(), Stopped> {
        let search = self.join.search;
        let wanted = Wanted {
            part_within: self.part_mask.map(|_| self.task.within - num_errors),
            ..search.wanted(owners)
        };
        joiner.compare_buckets(&wanted, tables, how, progress, writer)?;
        for value in std::mem::take(&mut progress.large) {
            let sides = how.sides(tables, value as usize);
            if sides.max_len() > search.limits.many_codes {
                defer(value as usize);
            } else {
                let rest = self.task.behind(self.keys, self.index, num_errors);
                joiner.join(search, sides, rest, writer)?;
            }
        }
        Ok(())
    }

    /// Joins the buckets of equal values as soon as they are built.
    fn exactly(&self, left: Vec<Table>, right: Option<Vec<Table>>) -> Result<(), Stopped> {
        let join = self.join;
        let owners = self.task.owners_of(self.keys, self.index);
        let how = Flip {
            flip: 0,
            is_self: right.is_none(),
        };
        join.output.begin_phase();
        let work = |state: &mut KeyState, part: usize| {
            let mut writer = join.output.writer(part);
            self.gather(&left, part, &mut state.left);
            if let Some(right) = &right {
                self.gather(right, part, &mut state.right);
            }
            let tables = match how.is_self {
                true => (&state.left, &state.left),
                false => (&state.left, &state.right),
            };
            let joiner = (&mut state.joiner, &mut state.progress);
            let mut copied = Vec::new();
            self.join_buckets(joiner, tables, (how, 0), &owners, &mut writer, |value| {
                let (left, right) = match how.sides(tables, value) {
                    Sides::Same(view) => (view, None),
                    Sides::Two(left, right) => (left, Some(right)),
                };
                copied.push(Copied {
                    left: join.flattened(&[left]),
                    right: right.map(|view| join.flattened(&[view])),
                });
            })?;
            writer.finish()?;
            Ok::<_, Stopped>(copied)
        };
        let results = join.run.map(
            1 << self.upper.width,
            1,
            KeyState::default,
            |state, range| work(state, range.start),
        )?;
        join.spare_again(left.into_iter().chain(right.into_iter().flatten()));
        for copied in results {
            for Copied { left, right } in copied? {
                let source = Source::of(sides_of(&left, right.as_ref()));
                join.join(&source, self.task.behind(self.keys, self.index, 0))?;
            }
        }
        Ok(())
    }

    /// Builds all buckets, then joins each with those within the key's radius.
    fn with_neighbors(&self, left: Vec<Table>, right: Option<Vec<Table>>) -> Result<(), Stopped> {
        let join = self.join;
        let is_self = right.is_none();
        let owners = self.task.owners_of(self.keys, self.index);
        let radius = self.keys[self.index].radius;
        let left = self.gathered(left)?;
        let right = right.map(|pieces| self.gathered(pieces)).transpose()?;
        let other = right.as_ref().unwrap_or(&left);
        let upper_flips = flips(self.upper, radius);
        let lower_flips = (0..=radius).map(|radius| flips(self.lower, radius));
        let lower_flips: Vec<Vec<u32>> = lower_flips.collect();
        let work = |(joiner, progress): &mut (Joiner, Progress), part: usize| {
            let mut writer = join.output.writer(part);
            let mut deferred = Vec::new();
            for &upper_flip in &upper_flips {
                let partner = part ^ upper_flip as usize;
                if is_self && partner < part {
                    continue;
                }
                let tables = (&left[part], &other[partner]);
                let spent = upper_flip.count_ones();
                for &flip in &lower_flips[(radius - spent) as usize] {
                    let how = Flip {
                        flip: flip as usize,
                        is_self: is_self && upper_flip == 0,
                    };
                    let errors = (how, spent + flip.count_ones());
                    let joiner = (&mut *joiner, &mut *progress);
                    self.join_buckets(joiner, tables, errors, &owners, &mut writer, |value| {
                        deferred.push(Deferred {
                            flip: how,
                            parts: (part, partner),
                            value,
                        });
                    })?;
                }
            }
            writer.finish()?;
            Ok::<_, Stopped>(deferred)
        };
        join.output.begin_phase();
        let results = join
            .run
            .map(left.len(), 1, Default::default, |state, range| {
                work(state, range.start)
            })?;
        for deferred in results {
            for Deferred { flip, parts, value } in deferred? {
                let tables = (&left[parts.0], &other[parts.1]);
                let num_errors = (parts.0 ^ parts.1).count_ones() + flip.flip.count_ones();
                let source = Source::of(flip.sides(tables, value));
                join.join(&source, self.task.behind(self.keys, self.index, num_errors))?;
            }
        }
        join.spare_again(left.into_iter().chain(right.into_iter().flatten()));
        Ok(())
    }

    /// Returns one table for each value of the upper bits.
    fn gathered(&self, pieces: Vec<Table>) -> Result<Vec<Table>, Stopped> {
        let join = self.join;
        let num_parts = 1 << self.upper.width;
        let tables = join.run.each(num_parts, |i| {
            let mut table = join.spare_table();
            self.gather(&pieces, i, &mut table);
            table
        })?;
        join.spare_again(pieces);
        Ok(tables)
    }
}
