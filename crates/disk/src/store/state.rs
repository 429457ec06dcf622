//! Up to where does the store reach, and is that still so?

use rusqlite::OptionalExtension;

use super::Store;
use super::bytes::Cursor;
use super::database::{self, DATABASE_NAME, wrong};
use super::read::misplaced;
use super::types::{Position, Sizes};
use super::watch::Loss;
use crate::error::Error;

impl Store {
    /// Runs `read` on one state of the store, whatever the writer commits meanwhile. Also faster, where it reads many documents.
    ///
    /// # Errors
    /// Those of `read`, and [`Error::Io`].
    pub fn read_together<T, E: From<Error>>(
        &self,
        read: impl FnOnce(&Store) -> Result<T, E>,
    ) -> Result<T, E> {
        if !self.connection.is_autocommit() {
            return read(self);
        }
        // Ended when it is dropped; there is nothing to commit.
        let _transaction = self.connection.unchecked_transaction().map_err(wrong)?;
        read(self)
    }

    /// Whether another connection has committed since the last [`Store::refresh`]. Cost: about 2 us.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn changed(&self) -> Result<bool, Error> {
        Ok(self.read_data_version()? != self.data_version.get())
    }

    fn read_data_version(&self) -> Result<i64, Error> {
        self.connection
            .prepare_cached("PRAGMA data_version")
            .and_then(|mut statement| statement.query_row([], |row| row.get(0)))
            .map_err(wrong)
    }

    /// Takes the state that is committed now; returns it.
    ///
    /// # Errors
    /// [`Error::Replaced`] if it does not continue the state taken before; [`Error::Damaged`] and [`Error::Io`].
    pub fn refresh(&mut self) -> Result<Position, Error> {
        // Looked at first: what is committed in between is looked at again.
        self.data_version.set(self.read_data_version()?);
        let (position, batch) = self.read_together(|store| {
            let position = store.continued()?;
            Ok::<_, Error>((position, store.stored_batch(position.num_rows)?))
        })?;
        self.position = position;
        self.last_batch.set(batch);
        Ok(position)
    }

    /// The state that is committed now, which has all that was known before.
    fn continued(&self) -> Result<Position, Error> {
        let (now, before) = (self.read_position()?, self.position);
        let is_longer = now.num_rows >= before.num_rows
            && now.last_event >= before.last_event
            && now.expired_below >= before.expired_below;
        let batches = (self.last_batch.get(), self.stored_batch(before.num_rows)?);
        match batches {
            _ if !is_longer => Err(self.watch.lose(
                Loss::Rewritten,
                "the database went back to an earlier state",
            )),
            (Some(known), Some(found)) if known != found => Err(self.watch.lose(
                Loss::Rewritten,
                "the database has other documents than before",
            )),
            _ => Ok(now),
        }
    }

    /// Inside a transaction of the writer: that nobody else has written, which its lock forbids.
    pub(super) fn check_alone(&self) -> Result<(), Error> {
        let version = self.read_data_version()?;
        if version == self.data_version.get() {
            return Ok(());
        }
        // A checkpoint may count as a change.
        match self.continued()? == self.position {
            true => {
                self.data_version.set(version);
                Ok(())
            }
            false => Err(self
                .watch
                .lose(Loss::Rewritten, "another process wrote to the database")),
        }
    }

    /// Compares the names of the store's files with those that are open. Cost: that of looking at three names.
    ///
    /// # Errors
    /// [`Error::Replaced`], from then on always.
    pub fn check_files(&self) -> Result<(), Error> {
        self.watch.check()
    }

    /// Takes a state that another connection of this process knows to be committed: whatever is read from now on is that state or a later one.
    pub fn advance(&mut self, to: Position) {
        let position = &mut self.position;
        position.num_rows = position.num_rows.max(to.num_rows);
        position.last_event = position.last_event.max(to.last_event);
        position.expired_below = position.expired_below.max(to.expired_below);
        // Not looked up: a leased reader is not asked for it.
        self.last_batch.set(None);
    }

    /// The state that is committed now.
    pub(super) fn read_position(&self) -> Result<Position, Error> {
        let num_rows = self
            .connection
            .prepare_cached(
                "SELECT first_row, num_rows FROM chunks ORDER BY first_row DESC LIMIT 1",
            )
            .and_then(|mut statement| {
                statement
                    .query_row([], |row| Ok(row.get::<_, u32>(0)?.checked_add(row.get(1)?)))
                    .optional()
            })
            .map_err(wrong)?
            .unwrap_or(Some(0))
            .ok_or_else(|| misplaced("chunk", "last"))?;
        let last_event: Option<i64> = self
            .connection
            .prepare_cached("SELECT max(seq) FROM events")
            .and_then(|mut statement| statement.query_row([], |row| row.get(0)))
            .map_err(wrong)?;
        let expired_below = Cursor(&self.needed("expired_below")?).varint_u32()?;
        Ok(Position {
            num_rows,
            last_event: last_event.unwrap_or(0) as u64,
            expired_below,
        })
    }

    /// The value of a name that every store has.
    pub(super) fn needed(&self, name: &str) -> Result<Vec<u8>, Error> {
        database::meta(&self.connection, name)?.ok_or_else(|| misplaced("the value of", name))
    }

    /// What it takes of the disk. Cost: counts the chunks, a millisecond for some 10^5.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn sizes(&self) -> Result<Sizes, Error> {
        let number = |sql: &str| -> Result<u64, Error> {
            self.connection
                .query_row(sql, [], |row| row.get::<_, i64>(0))
                .map(|number| number as u64)
                .map_err(wrong)
        };
        let page_bytes = number("PRAGMA page_size")?;
        // Only looked at, never opened: that would drop the locks of the database.
        let log = self.dir.join(format!("{DATABASE_NAME}-wal"));
        Ok(Sizes {
            database_bytes: page_bytes * number("PRAGMA page_count")?,
            free_bytes: page_bytes * number("PRAGMA freelist_count")?,
            log_bytes: self
                .environment
                .files
                .facts(&log)
                .map_or(0, |found| found.num_bytes),
            num_chunks: number("SELECT count(*) FROM chunks")?,
            num_content_blocks: number("SELECT count(*) FROM contents")?,
        })
    }
}
