//! When does the log come into the database?

use likewise_core::parallel::lock;
use std::sync::atomic::Ordering;

use likewise_disk::store::{LogCheckpoint, Store};

use crate::error::{Error, Result};
use crate::index::Index;
use crate::shared::Shared;

/// Pages of the log, of 4 KiB, that are worth bringing in: 8 MB.
const PAGES_DUE: u32 = 2048;
/// At most this many pages are checkpointed while the writer waits: about a millisecond, and the sync.
const FEW_PAGES: u32 = 64;
/// How often the rest is checkpointed while the writer goes on, before the writer has to wait.
const MOST_PASSES: usize = 6;

impl Index {
    /// Begins to bring the log into the database in the background if it has grown.
    pub(crate) fn checkpoint_when_due(&self) {
        let shared = &self.shared;
        if shared.stop.load(Ordering::Relaxed)
            || shared.new_log_pages.load(Ordering::Relaxed) < shared.pages_due()
            || shared.is_checkpointing.swap(true, Ordering::AcqRel)
        {
            return;
        }
        self.in_background(
            "likewise-log",
            |shared| &shared.is_checkpointing,
            |shared| shared.checkpoint_log(),
        );
    }
}

impl Shared {
    /// Pages of the log at which it is checkpointed: few if segments are small too.
    fn pages_due(&self) -> u32 {
        self.flush_rows
            .map_or(PAGES_DUE, |rows| rows.min(PAGES_DUE))
    }

    /// Records the length of the log for readers without the lock.
    pub fn note_log(&self, store: &Store) {
        self.new_log_pages
            .store(store.new_log_pages(), Ordering::Relaxed);
    }

    /// Checkpoints the log if it has grown, on a background thread; after an error nothing more is written.
    pub fn checkpoint_here_when_due(&self) -> Result<()> {
        if self.new_log_pages.load(Ordering::Relaxed) < self.pages_due()
            || self.is_checkpointing.swap(true, Ordering::AcqRel)
        {
            return Ok(());
        }
        let drained = self.checkpoint_log();
        self.is_checkpointing.store(false, Ordering::Release);
        drained
    }

    /// Checkpoints and truncates the log, unless a reader uses it too long; after an error nothing more is written.
    pub fn cut_log(&self) -> Result<()> {
        if let Some(store) = lock(&self.writer).as_mut() {
            store.cut_log()?;
            self.note_log(store);
        }
        Ok(())
    }

    /// Brings the log into the database, mostly while others write; after an error nothing more is written.
    pub fn checkpoint_log(&self) -> Result<()> {
        self.log_pages()?;
        // Where no connection more can be opened, for want of file handles say, nothing has failed yet: the writer does all of it.
        let drained = match self.source.log() {
            Ok(log) => self.checkpoint_concurrently(&log),
            Err(_) => Ok(()),
        };
        // The log restarts only if all of it was checkpointed.
        let mut writer = lock(&self.writer);
        let Some(store) = writer.as_mut() else {
            return Ok(());
        };
        if let Err(Error::Disk(error)) = &drained {
            store.give_up(error);
        }
        drained?;
        store.checkpoint_log()?;
        self.note_log(store);
        Ok(())
    }

    /// Pages of the log after the last commit; [`likewise_disk::Error::Poisoned`] after a failed sync, since pages may
    /// not be on the disk and a checkpoint could outlive its log.
    fn log_pages(&self) -> Result<u32> {
        match lock(&self.writer).as_ref() {
            None => Ok(0),
            Some(store) => match store.poison() {
                None => Ok(store.log_pages()),
                Some(reason) => Err(Error::Disk(likewise_disk::Error::Poisoned {
                    reason: reason.to_owned(),
                })),
            },
        }
    }

    /// Checkpoints the log while the writer adds to it, until little is left.
    fn checkpoint_concurrently(&self, log: &LogCheckpoint) -> Result<()> {
        for _ in 0..MOST_PASSES {
            let before = self.log_pages()?;
            let done = log.drain()?;
            let after = self.log_pages()?;
            let is_held = done < before;
            if is_held
                || after.saturating_sub(done) <= FEW_PAGES
                || self.stop.load(Ordering::Relaxed)
            {
                break;
            }
        }
        Ok(())
    }
}
