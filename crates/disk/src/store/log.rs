//! How are committed changes moved from the log into the database?
//!
//! Left to SQLite, an occasional commit does this for all previous ones: it writes some thousand pages and waits for
//! the disk, while everyone waits for that commit. Instead, a thread next to the writer does it over a separate
//! connection, and the commit that makes the log long only reports so.

use std::cell::Cell;
use std::ffi::c_int;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use rusqlite::Connection;
use rusqlite::config::DbConfig;
use rusqlite::hooks::Wal;

use super::Store;
use super::database::{self, Database};
use super::watch::{Replacement, Watch};
use crate::environment::Environment;
use crate::error::{Error, Result};

/// Pages of the log, of 4 KiB, at which a commit itself checkpoints the log if no thread has done so: 64 MB.
pub(super) const MOST_PAGES: u32 = 16_384;
/// How long the writer waits for readers of the log, so that it can restart; a build reads for milliseconds.
const READERS_WAIT: Duration = Duration::from_millis(250);
/// The same for a log with [`MOST_PAGES`].
const LONG_READERS_WAIT: Duration = Duration::from_secs(2);

thread_local! {
    /// Pages of the log after the last commit of this thread, until they are read.
    static PAGES: Cell<Option<u32>> = const { Cell::new(None) };
}

/// Called by SQLite at the end of a commit, in its thread, instead of checkpointing the log.
fn note_pages(_: &Wal, pages: c_int) -> rusqlite::Result<()> {
    PAGES.set(u32::try_from(pages).ok());
    Ok(())
}

/// Disables automatic checkpoints at commits of this connection.
pub(super) fn leave(connection: &Connection) {
    connection.wal_hook(Some(note_pages));
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct LogState {
    pages: u32,
    /// Its length at the last checkpoint.
    brought_in: u32,
    /// Number of pages from which the writer waits for readers; after a futile wait, twice the pages at that time.
    waits_from: u32,
}

impl LogState {
    /// Updates the state after a commit that this thread just made. A commit without changes wrote nothing.
    pub(super) fn committed(&mut self) {
        if let Some(pages) = PAGES.take() {
            self.is_now(pages);
        }
    }

    fn is_now(&mut self, pages: u32) {
        if pages < self.pages {
            // All of it was in the database, and the log restarted.
            self.brought_in = 0;
            self.waits_from = 0;
        }
        self.pages = pages;
    }

    /// Pages since the last checkpoint. If a reader prevented its completion, it is not retried at each commit.
    fn new_pages(self) -> u32 {
        self.pages.saturating_sub(self.brought_in)
    }

    /// How long the next checkpoint may wait for readers.
    fn wait(self) -> Option<Duration> {
        match self.pages {
            pages if pages < self.waits_from => None,
            MOST_PAGES.. => Some(LONG_READERS_WAIT),
            _ => Some(READERS_WAIT),
        }
    }

    /// Updates the state after a checkpoint; `waited` is whether it waited for readers.
    fn tried(&mut self, outcome: Outcome, waited: bool) {
        match outcome {
            Outcome::Restarted => *self = LogState::default(),
            // Nothing was done, so the next commit tries again.
            Outcome::Elsewhere => {}
            Outcome::UpTo(_) => {
                self.brought_in = self.pages;
                if waited {
                    self.waits_from = self.pages.saturating_mul(2);
                }
            }
        }
    }
}

/// The result of a checkpoint.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Outcome {
    /// All pages are in the database and there are no readers: the next commit restarts the log.
    Restarted,
    /// This many pages are in the database; readers may need later ones.
    UpTo(u32),
    /// Another connection was checkpointing: nothing was done.
    Elsewhere,
}

/// Moves all pages that no reader needs into the database and waits for the disk; with `wait`, also for others.
pub(super) fn bring_in(connection: &Connection, wait: Option<Duration>) -> Result<Outcome> {
    let sql = match wait {
        // Does not wait for readers, writers, or other checkpoints.
        None => "PRAGMA wal_checkpoint(PASSIVE)",
        Some(_) => "PRAGMA wal_checkpoint(RESTART)",
    };
    if let Some(wait) = wait {
        connection.busy_timeout(wait)?;
    }
    let found = connection.query_row(sql, [], |row| {
        Ok((row.get::<_, bool>(0)?, row.get::<_, i64>(2)?))
    });
    if wait.is_some() {
        connection.busy_timeout(database::BUSY_WAIT)?;
    }
    let (is_busy, pages) = found?;
    Ok(match u32::try_from(pages) {
        Ok(_) if wait.is_some() && !is_busy => Outcome::Restarted,
        Ok(pages) => Outcome::UpTo(pages),
        Err(_) => Outcome::Elsewhere,
    })
}

/// Moves the whole log into the database and truncates it; returns false if it was in use, so that this was not done.
pub(super) fn empty(connection: &Connection) -> Result<bool> {
    connection
        .query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |row| {
            row.get::<_, bool>(0)
        })
        .map(|is_busy| !is_busy)
        .map_err(Error::from)
}

pub struct LogCheckpoint {
    connection: Database,
    watch: Arc<Watch>,
}

impl LogCheckpoint {
    /// Opens the log of a store that this process has open for writing.
    pub(super) fn open(environment: &Environment, dir: &Path, watch: &Arc<Watch>) -> Result<Self> {
        watch.check()?;
        let opened = database::open_to_checkpoint(environment, dir);
        // As for readers: if the files are gone, this is the error to return.
        watch.check()?;
        Ok(LogCheckpoint {
            connection: opened?,
            watch: Arc::clone(watch),
        })
    }

    /// Checkpoints everything committed; returns its pages. After an error, [give up](Store::give_up) the store.
    pub fn drain(&self) -> Result<u32> {
        let outcome = self.watch.checkpoint(|| bring_in(&self.connection, None))?;
        Ok(match outcome {
            Outcome::UpTo(pages) => pages,
            Outcome::Restarted | Outcome::Elsewhere => 0,
        })
    }
}

impl Store {
    /// Pages of the log, of 4 KiB, since the last checkpoint.
    pub fn new_log_pages(&self) -> u32 {
        self.writer
            .as_ref()
            .map_or(0, |writer| writer.log.new_pages())
    }

    pub fn log_pages(&self) -> u32 {
        self.writer.as_ref().map_or(0, |writer| writer.log.pages)
    }

    /// Checkpoints the rest of the log, so that the next commit restarts it, waiting briefly for readers; an error
    /// poisons the store, since pages may not have reached the disk.
    pub fn checkpoint_log(&mut self) -> Result<()> {
        let wait = self.writer.as_ref().and_then(|writer| writer.log.wait());
        self.checkpoint_log_within(wait).map(|_| ())
    }

    /// Moves the whole log into the database and truncates it; returns false if a reader prevented that.
    pub fn cut_log(&mut self) -> Result<bool> {
        self.cut_log_within(READERS_WAIT)
    }

    fn cut_log_within(&mut self, wait: Duration) -> Result<bool> {
        if self.checkpoint_log_within(Some(wait))? != Outcome::Restarted {
            return Ok(false);
        }
        // File systems may truncate in steps. The remainder of a log with one commit is either that commit, which is in
        // the database, or nothing.
        self.commit_synced()?;
        let cut = self.watch.checkpoint(|| {
            self.connection.busy_timeout(wait)?;
            let cut = empty(&self.connection);
            self.connection.busy_timeout(database::BUSY_WAIT)?;
            cut
        });
        let is_cut = cut.inspect_err(|error| self.give_up(error))?;
        if let Some(writer) = &mut self.writer
            && is_cut
        {
            writer.log.tried(Outcome::Restarted, true);
        }
        Ok(is_cut)
    }

    /// Rewrites the whole database, three times, and truncates the log, so that no byte of deleted data remains;
    /// returns false if a reader of the log prevented that.
    pub fn rewrite(&mut self) -> Result<bool> {
        // A log that is being read cannot be truncated. This shows while it is still short. A thread of a busy machine
        // that only reads a page may take seconds.
        if !self.cut_log_within(database::BUSY_WAIT)? {
            return Ok(false);
        }
        self.connection
            .execute_batch("VACUUM")
            .map_err(Error::from)
            .inspect_err(|error| self.give_up(error))?;
        if let Some(writer) = &mut self.writer {
            writer.log.committed();
        }
        self.cut_log_within(database::BUSY_WAIT)
    }

    fn checkpoint_log_within(&mut self, wait: Option<Duration>) -> Result<Outcome> {
        if let Some(reason) = self.poison() {
            return Err(Error::Poisoned {
                reason: reason.to_owned(),
            });
        }
        let outcome = self
            .watch
            .checkpoint(|| bring_in(&self.connection, wait))
            .inspect_err(|error| self.give_up(error))?;
        if let Some(writer) = &mut self.writer {
            writer.log.tried(outcome, wait.is_some());
        }
        Ok(outcome)
    }
}

impl Store {
    /// After the files at the path turned out to be others: saves the log if its database is there, or keeps it away.
    pub(super) fn leave_files(&self) {
        match self.watch.loss() {
            // The log may have lost its name, but the connection still has it open.
            Some(Replacement::Beside) => drop(bring_in(&self.connection, None)),
            Some(Replacement::Moved | Replacement::Overwritten) => {
                // Closing would checkpoint it into whatever the database is now.
                let _ = self
                    .connection
                    .set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true);
                self.watch.set_log_aside();
            }
            Some(Replacement::Rewritten) | None => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn long(pages: u32) -> LogState {
        let mut log = LogState::default();
        log.is_now(pages);
        log
    }

    #[test]
    fn a_log_that_a_reader_holds_is_not_brought_in_at_each_commit() {
        let mut log = long(500);
        assert_eq!(log.new_pages(), 500);
        log.tried(Outcome::UpTo(300), false);
        log.is_now(510);
        assert_eq!(log.new_pages(), 10);
        log.is_now(3);
        assert_eq!(log.new_pages(), 3);
    }

    #[test]
    fn a_log_that_another_connection_brings_in_is_still_due() {
        let mut log = long(500);
        log.tried(Outcome::Elsewhere, true);
        assert_eq!(log, long(500));
        log.tried(Outcome::Restarted, true);
        assert_eq!(log.new_pages(), 0);
    }

    #[test]
    fn the_longer_a_reader_stays_the_less_often_the_writer_waits_for_it() {
        let (mut log, mut num_waits) = (long(1), 0);
        for pages in 1..100_000 {
            log.is_now(pages);
            let wait = log.wait();
            num_waits += u32::from(wait.is_some());
            log.tried(Outcome::UpTo(0), wait.is_some());
        }
        assert_eq!(num_waits, 17);
        log.is_now(2);
        assert_eq!(log.wait(), Some(READERS_WAIT));
        assert_eq!(long(MOST_PAGES).wait(), Some(LONG_READERS_WAIT));
    }
}
