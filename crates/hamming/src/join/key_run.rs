//! How are the pairs of one key found on all threads?

use super::codes::View;
use super::compare::{Progress, Wanted};
use super::large::{Join, Source, sides_of};
use super::node::{Flip, Joiner, Sides, Task, flips_within};
use super::output::Stopped;
use super::partition::{Digit, Table};
use crate::plan::Key;
use likewise_core::parallel::map_ranges;

/// Buckets too large for one thread: the part of each side and the values.
struct Deferred {
    flip: Flip,
    parts: (usize, usize),
    value: usize,
}

/// Two buckets too large for one thread, copied.
struct Copied {
    left: Table,
    right: Option<Table>,
}

/// One key of a join.
pub(super) struct KeyRun<'k, 'j, 'o> {
    pub(super) join: &'k Join<'j, 'o>,
    pub(super) task: &'k Task,
    pub(super) keys: &'k [Key],
    pub(super) index: usize,
    pub(super) upper: Digit,
    pub(super) lower: Digit,
    pub(super) part_mask: Option<[u64; 4]>,
}

/// What a thread keeps from one part to the next.
#[derive(Default)]
struct State {
    joiner: Joiner,
    left: Table,
    right: Table,
    progress: Progress,
}

impl KeyRun<'_, '_, '_> {
    /// The codes of all pieces with value `part` of the upper bits, by the lower ones.
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

    /// Joins the buckets of equal values as they are made.
    pub(super) fn exactly(
        &self,
        left: Vec<Table>,
        right: Option<Vec<Table>>,
    ) -> Result<(), Stopped> {
        let join = self.join;
        let owners = self.task.owners_of(self.keys, self.index);
        let how = Flip {
            flip: 0,
            is_self: right.is_none(),
        };
        let wanted = Wanted {
            part_within: self.part_mask.map(|_| self.task.within),
            ..join.search.wanted(&owners)
        };
        join.output.begin_phase();
        let work = |state: &mut State, part: usize| {
            let mut writer = join.output.writer(part);
            let State {
                joiner,
                left: left_table,
                right: right_table,
                progress,
            } = state;
            self.gather(&left, part, left_table);
            if let Some(right) = &right {
                self.gather(right, part, right_table);
            }
            let tables = (
                &*left_table,
                if how.is_self {
                    &*left_table
                } else {
                    &*right_table
                },
            );
            joiner.compare_buckets(&wanted, tables, how, progress, &mut writer)?;
            let mut copied = Vec::new();
            for value in std::mem::take(&mut progress.large) {
                let sides = how.sides(tables, value as usize);
                if sides.max_len() > join.search.limits.many_codes {
                    let (left, right) = match sides {
                        Sides::Same(view) => (view, None),
                        Sides::Two(left, right) => (left, Some(right)),
                    };
                    copied.push(Copied {
                        left: join.flattened(&[left]),
                        right: right.map(|view| join.flattened(&[view])),
                    });
                } else {
                    let rest = self.task.behind(self.keys, self.index, 0);
                    joiner.join(join.search, sides, rest, &mut writer)?;
                }
            }
            writer.finish()?;
            Ok::<_, Stopped>(copied)
        };
        let results = map_ranges(
            1 << self.upper.width,
            1,
            join.threads,
            join.cancel,
            State::default,
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

    /// Makes all buckets, then joins each with those within the key's radius.
    pub(super) fn with_neighbours(
        &self,
        left: Vec<Table>,
        right: Option<Vec<Table>>,
    ) -> Result<(), Stopped> {
        let join = self.join;
        let is_self = right.is_none();
        let owners = self.task.owners_of(self.keys, self.index);
        let radius = self.keys[self.index].radius;
        let left = self.gathered(left)?;
        let right = match right {
            Some(pieces) => Some(self.gathered(pieces)?),
            None => None,
        };
        let other = right.as_ref().unwrap_or(&left);
        let mut upper_flips = Vec::new();
        flips_within(self.upper.width, radius, &mut upper_flips);
        let lower_flips: Vec<Vec<u32>> = (0..=radius)
            .map(|radius| {
                let mut flips = Vec::new();
                flips_within(self.lower.width, radius, &mut flips);
                flips
            })
            .collect();
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
                    let num_errors = spent + flip.count_ones();
                    let wanted = Wanted {
                        part_within: self.part_mask.map(|_| self.task.within - num_errors),
                        ..join.search.wanted(&owners)
                    };
                    joiner.compare_buckets(&wanted, tables, how, progress, &mut writer)?;
                    for value in std::mem::take(&mut progress.large) {
                        let sides = how.sides(tables, value as usize);
                        if sides.max_len() > join.search.limits.many_codes {
                            deferred.push(Deferred {
                                flip: how,
                                parts: (part, partner),
                                value: value as usize,
                            });
                        } else {
                            let rest = self.task.behind(self.keys, self.index, num_errors);
                            joiner.join(join.search, sides, rest, &mut writer)?;
                        }
                    }
                }
            }
            writer.finish()?;
            Ok::<_, Stopped>(deferred)
        };
        join.output.begin_phase();
        let results = map_ranges(
            left.len(),
            1,
            join.threads,
            join.cancel,
            Default::default,
            |state, range| work(state, range.start),
        )?;
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

    /// One table for each value of the upper bits.
    fn gathered(&self, pieces: Vec<Table>) -> Result<Vec<Table>, Stopped> {
        let join = self.join;
        let num_parts = 1 << self.upper.width;
        let tables = map_ranges(
            num_parts,
            1,
            join.threads,
            join.cancel,
            || (),
            |(), range| {
                let mut table = join.spare_table();
                self.gather(&pieces, range.start, &mut table);
                table
            },
        )?;
        join.spare_again(pieces);
        Ok(tables)
    }
}
