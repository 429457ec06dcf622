//! How is a batch made safe, and what happens if that fails?

use std::io;
use std::time::Duration;

use rusqlite::{Connection, ErrorCode};
use xxhash_rust::xxh3::xxh3_64_with_seed;

use super::contents::{Block, Packer};
use super::log::{LogState, MOST_PAGES};
use super::mark::Marking;
use super::types::Durability;
use super::{Store, database};
use crate::environment::FileLock;
use crate::error::{Doing, Error, Result};

/// How often commits that do not wait for the disk compare the names of the files with the open files.
const COMPARE_EVERY: Duration = Duration::from_millis(5);

/// What a test runs in place of a commit.
type Fault = Box<dyn FnMut() -> io::Result<()> + Send>;

pub(super) struct Writer {
    /// Held but never read: its lock excludes other writers.
    _lock: Box<dyn FileLock>,
    pub(super) durability: Durability,
    /// The mark outside the database that records how far the store reaches; `None` if it cannot be written.
    pub(super) marking: Option<Marking>,
    /// Why nothing more is written, if so.
    poison: Option<String>,
    /// Whether the files at the path are known to be others.
    has_left: bool,
    /// The uptime at which they were last compared; used only if commits do not wait for the disk.
    compared: Option<Duration>,
    fault: Option<Fault>,
    /// Batches get random identities: the hash of their number, with a random seed for each opening of the store.
    seed: u64,
    num_batches: u64,
    /// Whether something was committed after the last sync.
    has_unsynced: bool,
    pub(super) log: LogState,
    pub(super) last_arrival_s: u64,
    pub(super) block: Block,
    pub(super) packer: Packer,
    pub(super) record: Vec<u8>,
}

impl Writer {
    pub(super) fn new(
        connection: &Connection,
        lock: Box<dyn FileLock>,
        durability: Durability,
    ) -> Result<Self> {
        let seed: [u8; 8] = connection.query_row("SELECT randomblob(8)", [], |row| row.get(0))?;
        Ok(Writer {
            _lock: lock,
            durability,
            marking: None,
            poison: None,
            has_left: false,
            compared: None,
            fault: None,
            seed: u64::from_le_bytes(seed),
            num_batches: 0,
            has_unsynced: false,
            log: LogState::default(),
            last_arrival_s: 0,
            block: Block::default(),
            packer: Packer::default(),
            record: Vec::new(),
        })
    }

    /// Whether a commit at this uptime compares the names of the files with the open files: one that waits for the disk
    /// always does, others, which cost less than that, at intervals.
    fn compares(&mut self, uptime: impl FnOnce() -> Duration) -> bool {
        if self.durability == Durability::Commit {
            return true;
        }
        let now = uptime();
        let is_due = self
            .compared
            .is_none_or(|before| now.saturating_sub(before) >= COMPARE_EVERY);
        if is_due {
            self.compared = Some(now);
        }
        is_due
    }

    pub(super) fn new_batch(&mut self) -> u64 {
        self.num_batches += 1;
        self.batch()
    }

    pub(super) fn batch(&self) -> u64 {
        xxh3_64_with_seed(&self.num_batches.to_le_bytes(), self.seed)
    }
}

impl Store {
    /// Runs `write` in one transaction.
    pub(super) fn transact<T>(
        &mut self,
        write: impl FnOnce(&Store, &mut Writer) -> Result<T>,
    ) -> Result<T> {
        let Some(mut writer) = self.writer.take() else {
            return Err(Error::Unsupported {
                reason: "the index was opened for reading".to_owned(),
            });
        };
        let result = self.try_transact(&mut writer, write);
        self.writer = Some(writer);
        if self.new_log_pages() >= MOST_PAGES {
            // The data is committed; an error here belongs to the next commit.
            let _ = self.checkpoint_log();
        }
        result
    }

    fn try_transact<T>(
        &self,
        writer: &mut Writer,
        write: impl FnOnce(&Store, &mut Writer) -> Result<T>,
    ) -> Result<T> {
        if self.watch.loss().is_some() {
            self.check_written(writer)?;
        }
        if let Some(reason) = &writer.poison {
            return Err(Error::Poisoned {
                reason: reason.clone(),
            });
        }
        let run = |sql: &str| {
            self.connection
                .prepare_cached(sql)
                .and_then(|mut statement| statement.execute([]))
                .map(|_| ())
        };
        if let Err(error) = run("BEGIN IMMEDIATE") {
            // If another connection holds the lock, nothing was written and the commit may be retried.
            let is_busy = error.sqlite_error_code() == Some(ErrorCode::DatabaseBusy);
            let error = Error::from(error);
            if !is_busy {
                writer.poison = Some(error.to_string());
            }
            return Err(error);
        }
        let compares = writer.compares(|| self.environment.clock.uptime().elapsed);
        let alone = if compares { self.check_alone() } else { Ok(()) };
        let result = alone.and_then(|()| write(self, writer));
        let result = result.and_then(|result| {
            if let Some(fault) = &mut writer.fault {
                fault().doing("use the database")?;
            }
            run("COMMIT")?;
            writer.has_unsynced = true;
            writer.log.committed();
            Ok(result)
        });
        if let Err(error) = &result {
            // After some errors SQLite has already rolled back, so there is nothing to roll back.
            let is_rolled_back = self.connection.is_autocommit() || run("ROLLBACK").is_ok();
            let is_of_disk = !matches!(error, Error::InvalidParameter { .. } | Error::Canceled);
            if is_of_disk || !is_rolled_back {
                writer.poison = Some(error.to_string());
            }
        }
        // A commit is acknowledged only if it is in the files at the path.
        if compares || result.is_err() {
            self.check_written(writer)?;
        }
        result
    }

    /// Checks that the files at the path are the open files.
    fn check_written(&self, writer: &mut Writer) -> Result<()> {
        let checked = self.watch.check();
        if let Err(error) = &checked
            && !writer.has_left
        {
            writer.has_left = true;
            writer.poison = Some(error.to_string());
            self.leave_files();
        }
        checked
    }

    /// Makes everything appended safe from power loss, at the cost of a commit, unless every commit does that.
    pub fn sync(&mut self) -> Result<()> {
        if let Some(mut writer) = self.writer.take() {
            let checked = self.check_written(&mut writer);
            self.writer = Some(writer);
            checked?;
        }
        let is_needed = self.writer.as_ref().is_none_or(|writer| {
            writer.poison.is_some()
                || (writer.has_unsynced && writer.durability != Durability::Commit)
        });
        if !is_needed {
            return Ok(());
        }
        self.commit_synced()
    }

    /// Commits a counter, and waits for the disk.
    pub(super) fn commit_synced(&mut self) -> Result<()> {
        let durability = self.writer.as_ref().map(|writer| writer.durability);
        // A commit that waits for the disk makes all previous ones durable: they precede it in the same log.
        database::set_synchronous(&self.connection, true)?;
        let result = self.transact(|store, _| {
            let count = database::meta(&store.connection, "num_syncs")?
                .and_then(|bytes| bytes.try_into().ok())
                .map_or(0, u64::from_le_bytes);
            database::set_meta(&store.connection, "num_syncs", &(count + 1).to_le_bytes())
        });
        let syncs = durability == Some(Durability::Commit);
        let reset = database::set_synchronous(&self.connection, syncs);
        result?;
        reset?;
        if let Some(writer) = &mut self.writer {
            writer.has_unsynced = false;
        }
        self.mark_synced();
        Ok(())
    }

    /// Rejects every later write, after an error that affects the log or the database.
    pub fn give_up(&mut self, error: &Error) {
        if let Some(writer) = &mut self.writer {
            writer.poison.get_or_insert_with(|| error.to_string());
        }
    }

    /// Why nothing more is written, if so.
    pub fn poison(&self) -> Option<&str> {
        self.writer.as_ref()?.poison.as_deref()
    }

    /// For tests: runs `fault` before each commit, which fails if `fault` fails.
    #[doc(hidden)]
    pub fn fail_commits(&mut self, fault: impl FnMut() -> io::Result<()> + Send + 'static) {
        if let Some(writer) = &mut self.writer {
            writer.fault = Some(Box::new(fault));
        }
    }
}
