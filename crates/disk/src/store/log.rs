//! How does what was committed come from the log into the database?
//!
//! Left to the library, a commit now and then does it for all those before: writes some thousand pages and waits for the disk, while everybody
//! waits for that commit. Here a thread beside the writer does it, by a connection of its own, and the commit that makes the log long
//! only says so.

use std::cell::Cell;
use std::ffi::c_int;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use rusqlite::Connection;
use rusqlite::config::DbConfig;
use rusqlite::hooks::Wal;

use super::Store;
use super::database::{self, Database, wrong};
use super::watch::{Replacement, Watch};
use crate::environment::Environment;
use crate::error::Error;

/// Pages of the log, of 4 KiB, at which a commit brings it into the database itself, where nobody else did: 64 MB.
pub(super) const MOST_PAGES: u32 = 16_384;
/// How long the writer waits for the transactions that still read the log, so that it can begin again. A build reads for some milliseconds at a time.
const READERS_WAIT: Duration = Duration::from_millis(250);
/// The same where the log has [`MOST_PAGES`].
const LONG_READERS_WAIT: Duration = Duration::from_secs(2);

thread_local! {
    /// Pages of the log after the last commit of this thread, until that is asked for.
    static PAGES: Cell<Option<u32>> = const { Cell::new(None) };
}

/// Called by the library at the end of a commit, in its thread, in place of bringing the log into the database.
fn note_pages(_: &Wal, pages: c_int) -> rusqlite::Result<()> {
    PAGES.set(u32::try_from(pages).ok());
    Ok(())
}

/// Leaves the log as it is at commits of this connection.
pub(super) fn leave(connection: &Connection) {
    connection.wal_hook(Some(note_pages));
}

/// How long the log is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct LogState {
    pages: u32,
    /// What it was when it was brought in last.
    brought_in: u32,
    /// Pages from which on the writer waits for readers: after a wait in vain, twice the pages of then.
    waits_from: u32,
}

impl LogState {
    /// After a commit that this thread just made. One that changed nothing wrote nothing.
    pub(super) fn committed(&mut self) {
        if let Some(pages) = PAGES.take() {
            self.is_now(pages);
        }
    }

    fn is_now(&mut self, pages: u32) {
        if pages < self.pages {
            // All of it was in the database, and it began anew.
            self.brought_in = 0;
            self.waits_from = 0;
        }
        self.pages = pages;
    }

    /// Pages since it was brought in: where a reader kept that from being done wholly, it is not tried again at each commit.
    fn new_pages(self) -> u32 {
        self.pages.saturating_sub(self.brought_in)
    }

    /// How long the next attempt may wait for readers.
    fn wait(self) -> Option<Duration> {
        match self.pages {
            pages if pages < self.waits_from => None,
            MOST_PAGES.. => Some(LONG_READERS_WAIT),
            _ => Some(READERS_WAIT),
        }
    }

    /// After an attempt that `waited` for readers or did not.
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

/// What an attempt to bring in the log did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Outcome {
    /// All is in the database and nobody reads the log: the next commit begins it again.
    Restarted,
    /// So many of its pages are in the database; readers may need those behind.
    UpTo(u32),
    /// Another connection was bringing it in: nothing was done.
    Elsewhere,
}

/// Brings all that no reader still needs into the database and waits for the disk. With `wait`, waits so long for readers and other writers.
///
/// # Errors
/// [`Error::Io`].
pub(super) fn bring_in(connection: &Connection, wait: Option<Duration>) -> Result<Outcome, Error> {
    let sql = match wait {
        // Without waiting for readers, writers, or others that are at it.
        None => "PRAGMA wal_checkpoint(PASSIVE)",
        Some(_) => "PRAGMA wal_checkpoint(RESTART)",
    };
    if let Some(wait) = wait {
        connection.busy_timeout(wait).map_err(wrong)?;
    }
    let found = connection.query_row(sql, [], |row| {
        Ok((row.get::<_, bool>(0)?, row.get::<_, i64>(2)?))
    });
    if wait.is_some() {
        connection
            .busy_timeout(database::BUSY_WAIT)
            .map_err(wrong)?;
    }
    let (is_busy, pages) = found.map_err(wrong)?;
    Ok(match u32::try_from(pages) {
        Ok(_) if wait.is_some() && !is_busy => Outcome::Restarted,
        Ok(pages) => Outcome::UpTo(pages),
        Err(_) => Outcome::Elsewhere,
    })
}

/// Brings all of a log into the database and cuts it off; whether nobody used it meanwhile, so that this was done.
///
/// # Errors
/// [`Error::Io`].
pub(super) fn empty(connection: &Connection) -> Result<bool, Error> {
    connection
        .query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |row| {
            row.get::<_, bool>(0)
        })
        .map(|is_busy| !is_busy)
        .map_err(wrong)
}

/// Brings the log into the database while others write it.
pub struct LogCheckpoint {
    connection: Database,
    watch: Arc<Watch>,
}

impl LogCheckpoint {
    /// Opens the log of a store that this process has open to write.
    ///
    /// # Errors
    /// Those of [`Store::open_reader`].
    pub(super) fn open(
        environment: &Environment,
        dir: &Path,
        watch: &Arc<Watch>,
    ) -> Result<Self, Error> {
        watch.check()?;
        let opened = database::open_to_checkpoint(environment, dir);
        // As for readers: of files that are gone this is the error.
        watch.check()?;
        Ok(LogCheckpoint {
            connection: opened?,
            watch: Arc::clone(watch),
        })
    }

    /// Brings in what is committed by now; gives how many pages of the log are in the database then.
    ///
    /// # Errors
    /// [`Error::Io`]: then the store is to be [given up](Store::give_up).
    pub fn drain(&self) -> Result<u32, Error> {
        let outcome = self.watch.checkpoint(|| bring_in(&self.connection, None))?;
        Ok(match outcome {
            Outcome::UpTo(pages) => pages,
            Outcome::Restarted | Outcome::Elsewhere => 0,
        })
    }
}

impl Store {
    /// Pages of the log, of 4 KiB, since it was brought in last.
    pub fn new_log_pages(&self) -> u32 {
        self.writer
            .as_ref()
            .map_or(0, |writer| writer.log.new_pages())
    }

    /// Pages of the log after the last commit.
    pub fn log_pages(&self) -> u32 {
        self.writer.as_ref().map_or(0, |writer| writer.log.pages)
    }

    /// Brings in what is left of the log, so that the next commit begins it anew. Waits a moment for those who read it, and less often the longer
    /// they stay: then it goes on growing.
    ///
    /// # Errors
    /// [`Error::Poisoned`] from before; [`Error::Io`], which poisons: whether the pages reached the disk cannot be found out any more.
    pub fn checkpoint_log(&mut self) -> Result<(), Error> {
        let wait = self.writer.as_ref().and_then(|writer| writer.log.wait());
        self.checkpoint_log_within(wait).map(|_| ())
    }

    /// Brings all of the log into the database and cuts it off; whether that was done, or somebody read it meanwhile.
    ///
    /// # Errors
    /// Those of [`Store::checkpoint_log`].
    pub fn cut_log(&mut self) -> Result<bool, Error> {
        self.cut_log_within(READERS_WAIT)
    }

    fn cut_log_within(&mut self, wait: Duration) -> Result<bool, Error> {
        if self.checkpoint_log_within(Some(wait))? != Outcome::Restarted {
            return Ok(false);
        }
        // File systems may cut in steps. Whatever is left of a log of one commit is that commit, which is in the database, or none.
        self.commit_synced()?;
        let cut = self.watch.checkpoint(|| {
            self.connection.busy_timeout(wait).map_err(wrong)?;
            let cut = empty(&self.connection);
            self.connection
                .busy_timeout(database::BUSY_WAIT)
                .map_err(wrong)?;
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

    /// Writes the whole database again and cuts the log off, so that no byte of what was deleted is left in either; whether that was done, or
    /// somebody read the log meanwhile.
    ///
    /// # Errors
    /// Those of [`Store::checkpoint_log`].
    ///
    /// # Cost
    /// Writes the database three times: to a temporary file of the system, to the log, and to itself. Nothing else is written meanwhile.
    pub fn rewrite(&mut self) -> Result<bool, Error> {
        // A log that is being read cannot be cut. This shows while it is short.
        if !self.cut_log_within(LONG_READERS_WAIT)? {
            return Ok(false);
        }
        self.connection
            .execute_batch("VACUUM")
            .map_err(wrong)
            .inspect_err(|error| self.give_up(error))?;
        if let Some(writer) = &mut self.writer {
            writer.log.committed();
        }
        self.cut_log_within(LONG_READERS_WAIT)
    }

    fn checkpoint_log_within(&mut self, wait: Option<Duration>) -> Result<Outcome, Error> {
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
    /// After the files at the path turned out to be others: saves what the log holds, where the database is still there, or keeps the log from a
    /// database to which it does not belong.
    pub(super) fn leave_files(&self) {
        match self.watch.loss() {
            // The log may have lost its name; the connection has it open all the same.
            Some(Replacement::Beside) => drop(bring_in(&self.connection, None)),
            Some(Replacement::Moved | Replacement::Overwritten) => {
                // Closing would bring it into whatever the database is now.
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
