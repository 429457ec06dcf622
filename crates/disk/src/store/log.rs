//! How does what was committed come from the log into the database?
//!
//! Left to the library, a commit now and then does it for all those before: writes some thousand pages and waits for the disk, while everybody
//! waits for that commit. Here a thread beside the writer does it, by a connection of its own, and the commit that makes the log long
//! only says so.

use std::cell::Cell;
use std::ffi::c_int;
use std::path::Path;
use std::sync::Arc;

use rusqlite::Connection;
use rusqlite::config::DbConfig;
use rusqlite::hooks::Wal;

use super::Store;
use super::database::{self, Database, wrong};
use super::watch::{Loss, Watch};
use crate::environment::Environment;
use crate::error::Error;

/// Pages of the log, of 4 KiB, at which a commit brings it into the database itself, where nobody else did: 64 MB.
pub(super) const MOST_PAGES: u32 = 16_384;

thread_local! {
    /// Pages of the log after the last commit of this thread.
    static PAGES: Cell<u32> = const { Cell::new(0) };
}

/// Called by the library at the end of a commit, in its thread, in place of bringing the log into the database.
fn note_pages(_: &Wal, pages: c_int) -> rusqlite::Result<()> {
    PAGES.set(u32::try_from(pages).unwrap_or(0));
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
}

impl LogState {
    /// After a commit that this thread just made.
    pub(super) fn committed(&mut self) {
        self.is_now(PAGES.get());
    }

    fn is_now(&mut self, pages: u32) {
        if pages < self.pages {
            // All of it was in the database, and it began anew.
            self.brought_in = 0;
        }
        self.pages = pages;
    }

    /// Pages since it was brought in: where a reader kept that from being done wholly, it is not tried again at each commit.
    fn new_pages(self) -> u32 {
        self.pages.saturating_sub(self.brought_in)
    }
}

/// Brings all that no reader still needs into the database and waits for the disk; how many pages of the log are there then.
///
/// # Errors
/// [`Error::Io`].
fn bring_in(connection: &Connection) -> Result<u32, Error> {
    // Without waiting for readers, writers, or others that are at it.
    let pages: i64 = connection
        .query_row("PRAGMA wal_checkpoint(PASSIVE)", [], |row| row.get(2))
        .map_err(wrong)?;
    Ok(u32::try_from(pages).unwrap_or(0))
}

/// Brings the log into the database while others write it.
pub struct LogDrain {
    connection: Database,
    watch: Arc<Watch>,
}

impl LogDrain {
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
        let connection = database::open_to_drain(environment, dir)?;
        watch.check()?;
        Ok(LogDrain {
            connection,
            watch: Arc::clone(watch),
        })
    }

    /// Brings in what is committed by now; gives how many pages of the log are in the database then.
    ///
    /// # Errors
    /// [`Error::Io`]: then the store is to be [given up](Store::give_up).
    pub fn drain(&self) -> Result<u32, Error> {
        self.watch.checkpoint(|| bring_in(&self.connection))
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

    /// Brings in what is left of the log, so that the next commit begins it anew where no reader needs it.
    ///
    /// # Errors
    /// [`Error::Poisoned`] from before; [`Error::Io`], which poisons: whether the pages reached the disk cannot be found out any more.
    pub fn drain_log(&mut self) -> Result<(), Error> {
        if let Some(reason) = self.poison() {
            return Err(Error::Poisoned {
                reason: reason.to_owned(),
            });
        }
        let brought_in = self.watch.checkpoint(|| bring_in(&self.connection));
        brought_in.inspect_err(|error| self.give_up(error))?;
        if let Some(writer) = &mut self.writer {
            writer.log.brought_in = writer.log.pages;
        }
        Ok(())
    }
}

impl Store {
    /// After the files at the path turned out to be others: saves what the log holds, where the database is still there, or keeps the log from a
    /// database to which it does not belong.
    pub(super) fn leave_files(&self) {
        match self.watch.loss() {
            // The log may have lost its name; the connection has it open all the same.
            Some(Loss::Beside) => drop(bring_in(&self.connection)),
            Some(Loss::Moved | Loss::Overwritten) => {
                // Closing would bring it into whatever the database is now.
                let _ = self
                    .connection
                    .set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true);
                self.watch.set_log_aside();
            }
            Some(Loss::Rewritten) | None => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_log_that_a_reader_holds_is_not_brought_in_at_each_commit() {
        let mut log = LogState::default();
        log.is_now(500);
        assert_eq!(log.new_pages(), 500);
        log.brought_in = 500;
        log.is_now(510);
        assert_eq!(log.new_pages(), 10);
        log.is_now(3);
        assert_eq!(log.new_pages(), 3);
    }
}
