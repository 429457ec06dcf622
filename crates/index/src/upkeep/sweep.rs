//! When and how is space given back that documents took which are gone?
//!
//! A sweep goes over all rows of the store in steps, each a transaction of some milliseconds. Before it, segments half of whose rows are gone are built
//! again; what a segment still holds stays in the store, so that a process that opens the index knows that it is gone.

use likewise_core::parallel::{Cancel, Run, lock};
use std::collections::HashMap;
use std::sync::atomic::AtomicBool;

use likewise_disk::priority::at_low_priority;
use likewise_disk::segments::{MIN_ROWS, delete_orphans, other_names};
use likewise_disk::store::{Dropping, Store, Swept};

use crate::error::{Error, Result};
use crate::index::Index;
use crate::shared::Shared;
use crate::state::Layer;

/// Free pages of 4 KiB that are given back in one transaction.
const PAGES_A_STEP: u32 = 1024;
/// One in this many pages stays free for additions.
const FREE_PART: u32 = 8;

/// How far a sweep goes.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Extent {
    /// Some free pages, and the events of one sweep for readers to follow by, stay.
    Usual,
    /// Nothing stays that is not needed.
    All,
}

impl Shared {
    /// Whether a sweep is due: at least half as many documents are gone as are held, and not few.
    pub fn is_sweep_due(&self, flush_rows: u32) -> bool {
        let state = self.state();
        state.num_to_sweep() >= u64::from(flush_rows.min(MIN_ROWS).max(state.num_held() / 2))
    }

    /// The same of the rows in memory to which rows still come.
    pub fn is_newest_worn(&self, flush_rows: u32) -> Result<bool> {
        let pieces = self.state().pieces()?;
        Ok(pieces.last().is_some_and(|newest| {
            newest.num_held >= flush_rows.min(MIN_ROWS) && newest.num_live <= newest.num_held / 2
        }))
    }

    /// Gives back the space of documents that are gone, while others go first.
    pub fn sweep(&self) -> Result<()> {
        self.build_worn()?;
        self.sweep_store(Extent::Usual, &self.stop).map(|_| ())
    }

    /// The same of all that is gone and that no segment holds; gives how many chunks and blocks there are less.
    pub fn sweep_all(&self, cancel: &AtomicBool) -> Result<u64> {
        self.sweep_store(Extent::All, cancel)
    }

    /// Runs while no segment is built, since a build relies on the rows that exist.
    fn sweep_store(&self, extent: Extent, cancel: &AtomicBool) -> Result<u64> {
        let (position, before) = {
            let state = self.state();
            (state.position(), state.swept)
        };
        let expired_below = position.expired_below;
        // Those that expire from now on stay until the next sweep: this one does not know who names them.
        let leaders = match expired_below {
            0 => Default::default(),
            _ => at_low_priority("likewise-sweep", || {
                Store::open_reader_in(&self.environment, &self.dir)?
                    .leaders_below(expired_below, cancel)
            })?,
        };
        let mut num_fewer = 0;
        let mut next_row = Some(0);
        while let Some(row) = next_row {
            cancel.check()?;
            // Others write between the steps.
            let step = self.write_a_step(|store| {
                let state = self.state();
                let ends: Vec<u32> = state.layers.iter().map(|layer| layer.rows().end).collect();
                let stays = |row: u32| match state.layer_of(row) {
                    _ if row < expired_below => leaders.contains(&row),
                    // Who opens the index would not know that it is gone.
                    Some(Layer::Segment(segment)) => segment.holds(row).unwrap_or(true),
                    _ => false,
                };
                let dropping = Dropping {
                    expired_below,
                    stays: &stays,
                    ends: &ends,
                };
                Ok(store.compact_chunks(row, dropping)?)
            })?;
            num_fewer += step.num_fewer;
            next_row = step.next_row;
        }
        let swept = Swept {
            last_event: position.last_event,
            expired_below,
        };
        let (drop_events, part) = match extent {
            // Readers that are further behind load the state again.
            Extent::Usual => (before.last_event, Some(FREE_PART)),
            Extent::All => (position.last_event, None),
        };
        self.write_a_step(|store| {
            store.note_swept(swept, drop_events)?;
            self.state_mut().swept = swept;
            Ok(())
        })?;
        while self.write_a_step(|store| Ok(store.give_back_pages(PAGES_A_STEP, part)?))? {
            cancel.check()?;
        }
        Ok(num_fewer)
    }

    /// Does one step with the writer, and checkpoints the log if it became long.
    fn write_a_step<T>(&self, step: impl FnOnce(&mut Store) -> Result<T>) -> Result<T> {
        let done = {
            let mut writer = lock(&self.writer);
            let store = writer.as_mut().ok_or(Error::ReadOnly)?;
            let done = step(store)?;
            self.note_log(store);
            done
        };
        self.checkpoint_here_when_due()?;
        Ok(done)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Standing {
    Present,
    /// An expired document that duplicates still name, so that upkeep does not drop it.
    Named,
    /// A document that is gone, and that upkeep drops.
    Gone,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StoredRecord {
    /// Place of the id among the given ones.
    pub place: usize,
    pub row: u32,
    pub standing: Standing,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Purged {
    /// Whether the log was truncated; if not, a reader was using it.
    pub is_log_cut: bool,
    /// Entries of the directory of segments that belong to no live one and could not be deleted.
    pub left: Vec<String>,
}

impl Index {
    /// All records of ids, by place and row, from all chunks; of equal ids the first place counts.
    pub fn records_of(&self, ids: &[&str], cancel: &AtomicBool) -> Result<Vec<StoredRecord>> {
        self.ready(cancel)?;
        let mut places = HashMap::new();
        for (place, &id) in ids.iter().enumerate() {
            places.entry(id).or_insert(place);
        }
        self.repairing(|| {
            let lease = self.shared.lease(&self.shared.state())?;
            let expired_below = lease.position.expired_below;
            let mut records = Vec::new();
            lease.scan(0..lease.num_rows(), |chunk| {
                cancel.check()?;
                let documents = chunk.rows.iter().zip(&chunk.gone).enumerate();
                for (i, (&row, &is_gone)) in documents {
                    if let Some(&place) = places.get(chunk.id(i)) {
                        let standing = match is_gone {
                            true => Standing::Gone,
                            false => Standing::Present,
                        };
                        records.push(StoredRecord {
                            place,
                            row,
                            standing,
                        });
                    }
                }
                Ok(())
            })?;
            if records.iter().any(|record| record.row < expired_below) {
                let named = lease.leaders_below(expired_below, cancel)?;
                for record in &mut records {
                    if named.contains(&record.row) {
                        record.standing = Standing::Named;
                    }
                }
            }
            records.sort_unstable_by_key(|record| (record.place, record.row));
            Ok(records)
        })
    }

    /// Compacts the index and rewrites the database, so that no file holds anything of documents that are gone.
    pub fn purge(&self, run: Run<'_>) -> Result<Purged> {
        self.quietly(run, || {
            self.compact_quiet(run)?;
            self.rewrite_quiet()
        })
    }

    fn rewrite_quiet(&self) -> Result<Purged> {
        let shared = &self.shared;
        let mut writer = lock(&shared.writer);
        let store = writer.as_mut().ok_or(Error::ReadOnly)?;
        let live = store.segment_names()?;
        delete_orphans(&shared.segment_dir(), shared.files(), &live)?;
        let left = other_names(&shared.segment_dir(), shared.files(), &live)?;
        let is_log_cut = store.rewrite()?;
        shared.note_log(store);
        Ok(Purged { left, is_log_cut })
    }
}
