//! Checking, compacting, copying, rebuilding and closing an index.

pub mod checkpoint;
pub mod repair;
pub mod segments;
pub mod sweep;

use likewise_core::parallel::{Run, lock};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use likewise_disk::environment::process_id;
use likewise_disk::store::{Chunk, Sizes, Store};

use crate::clock::IndexClock;
use crate::error::{Error, Result};
use crate::index::Index;
use crate::shared::Lease;
use crate::state::Layer;

#[derive(Debug, Clone, Default)]
pub struct Facts {
    /// Documents that are not gone.
    pub num_documents: usize,
    /// Documents ever added.
    pub num_rows: u32,
    /// Rows that each segment holds.
    pub segment_rows: Vec<u32>,
    /// Bytes of each segment.
    pub segment_bytes: Vec<u64>,
    pub num_in_memory: u32,
    /// Promoted documents, which have tables of their own.
    pub num_late: usize,
    /// Rows below have expired.
    pub expired_below: u32,
    /// Removals.
    pub num_events: u64,
    pub num_built: u64,
    /// Segments found damaged, missing or stale since it was opened.
    pub num_rebuilt: u64,
    pub is_building: bool,
    pub build_error: Option<String>,
    /// A warning about the clock, if documents expire and it cannot be trusted.
    pub clock_warning: Option<String>,
    /// What was lost, in words, and accepted when the index was opened.
    pub loss: Option<String>,
    /// What is to be known of a copy of the directory that lacks documents of its original, in words.
    pub copy_warning: Option<String>,
    pub sizes: Sizes,
}

impl Index {
    pub fn facts(&self) -> Result<Facts> {
        self.ready(&AtomicBool::new(false))?;
        self.repairing(|| self.present_facts())
    }

    fn present_facts(&self) -> Result<Facts> {
        let shared = &self.shared;
        let state = shared.state();
        let mut facts = Facts {
            num_documents: state.num_documents()?,
            num_rows: state.num_rows(),
            num_late: state.promoted_tables.rows().len() + state.promoted_tables.blank().len(),
            expired_below: state.expired_below,
            num_events: state.last_event,
            num_built: shared.num_built.load(Ordering::Relaxed),
            num_rebuilt: shared.num_rebuilt.load(Ordering::Relaxed),
            is_building: shared.is_building.load(Ordering::Relaxed),
            build_error: lock(&shared.build_error).clone(),
            clock_warning: lock(&shared.clock).as_ref().and_then(IndexClock::warning),
            loss: lock(&shared.loss).as_ref().map(ToString::to_string),
            copy_warning: lock(&shared.copy_lacks).as_ref().map(|loss| {
                format!(
                    "this directory is a copy, and lacks {loss} of its original: its log was damaged, or it was copied while the index was in use; \
                     copy it again, or restore a snapshot"
                )
            }),
            sizes: shared.lease(&state)?.sizes()?,
            ..Facts::default()
        };
        for layer in &state.layers {
            match layer {
                Layer::Segment(segment) => {
                    facts.segment_rows.push(segment.num_rows);
                    facts.segment_bytes.push(segment.num_bytes);
                }
                Layer::Memory(tail) => facts.num_in_memory += tail.num_held(),
            }
        }
        Ok(facts)
    }

    /// One message for each problem of the index. `full` reads every byte.
    pub fn verify(&self, full: bool, cancel: &AtomicBool) -> Result<Vec<String>> {
        self.ready(cancel)?;
        let lease = self.leased()?;
        let mut findings = lease.check(full, cancel)?;
        let state = self.shared.state();
        for segment in state.segments() {
            match segment.verify(cancel) {
                Ok(()) => {}
                Err(likewise_disk::Error::Canceled) => {
                    return Err(Error::Disk(likewise_disk::Error::Canceled));
                }
                Err(error) => findings.push(format!("segment {}: {error}", segment.name())),
            }
        }
        Ok(findings)
    }

    /// Makes one segment of all rows, drops what is gone, and joins small pieces; gives how many there are less.
    pub fn compact(&self, run: Run<'_>) -> Result<u64> {
        self.quietly(run, || self.compact_quiet(run))
    }

    pub(super) fn compact_quiet(&self, run: Run<'_>) -> Result<u64> {
        // It contains nothing that is gone, so the store may drop that.
        self.compact_segments(run)?;
        let shared = &self.shared;
        let num_fewer = shared.sweep_all(run.cancel)?;
        shared.cut_log()?;
        Ok(num_fewer)
    }

    /// Runs `work` while no background build runs. A segment that turns out to be damaged while it is read is dropped,
    /// and its rows come from the database.
    pub(super) fn quietly<T>(&self, run: Run<'_>, work: impl Fn() -> Result<T>) -> Result<T> {
        self.ready(run.cancel)?;
        while self.shared.is_building.swap(true, Ordering::AcqRel) {
            self.shared
                .environment
                .background
                .pause(std::time::Duration::from_millis(2));
        }
        let result = self.repairing(work);
        self.shared.is_building.store(false, Ordering::Release);
        result
    }

    /// Copies the store to a new directory. Everything derived is rebuilt when the copy is opened.
    pub fn snapshot(&self, to: &Path, cancel: &AtomicBool) -> Result<()> {
        self.ready(cancel)?;
        let lease = self.leased()?;
        Ok(lease.snapshot(to, cancel)?)
    }

    /// Gives all documents, chunk by chunk.
    pub fn scan(
        &self,
        each: impl FnMut(&Chunk, &Store) -> Result<(), likewise_disk::Error>,
    ) -> Result<()> {
        self.ready(&AtomicBool::new(false))?;
        let lease = self.leased()?;
        let num_rows = lease.num_rows();
        let mut each = each;
        lease.scan(0..num_rows, |chunk| each(chunk, &lease))?;
        Ok(())
    }

    /// A store to read from that knows all that is known now.
    fn leased(&self) -> Result<Lease<'_>> {
        self.repairing(|| self.shared.lease(&self.shared.state()))
    }

    pub fn rebuild(&self, run: Run<'_>) -> Result<()> {
        self.quietly(run, || self.compact_segments(run))
    }

    fn compact_segments(&self, run: Run<'_>) -> Result<()> {
        let shared = &self.shared;
        if lock(&shared.writer).is_none() {
            return Err(Error::ReadOnly);
        }
        let end = {
            let mut state = shared.state_mut();
            shared.freeze(&mut state)?
        };
        match end {
            0 => Ok(()),
            _ => shared.build(0..end, run),
        }
    }

    /// Closes the index; a second call does nothing. Rows in memory become a segment if that is worth its files.
    pub fn close(&self) -> Result<()> {
        let shared = &self.shared;
        if process_id() != shared.process {
            return Err(Error::Forked);
        }
        if shared.is_closed.swap(true, Ordering::AcqRel) {
            return Ok(());
        }
        shared.stop.store(true, Ordering::Release);
        let tasks = std::mem::take(&mut *lock(&self.tasks));
        for task in tasks {
            task.wake();
            // One that panicked left nothing that the next opening does not see through.
            task.join();
        }
        let is_writer = lock(&shared.writer).is_some();
        let built = match is_writer {
            true => shared.build_last(&AtomicBool::new(false)),
            false => Ok(()),
        };
        // The next opening drops a segment that is damaged.
        let built = built.or_else(|error| {
            if error.is_damage() {
                Ok(())
            } else {
                Err(error)
            }
        });
        // The writer is closed last: it then checkpoints and deletes the log.
        *lock(&shared.follower) = None;
        lock(&shared.readers).clear();
        let synced = match lock(&shared.writer).take() {
            Some(mut store) => store.sync().map_err(Error::from),
            None => Ok(()),
        };
        *shared.state_mut() = crate::state::State::default();
        synced.and(built)
    }
}

impl Drop for Index {
    fn drop(&mut self) {
        // In a forked process the threads are not there, and the locks are the parent's: nothing of it may be closed, so it stays as it is.
        match process_id() == self.shared.process {
            true => drop(self.close()),
            false => std::mem::forget(self.shared.clone()),
        }
    }
}
