//! How far does the store reach, and is that still true?

use rusqlite::OptionalExtension;

use super::Store;
use super::bytes::{Cursor, put_varint};
use super::database::{self, DATABASE_NAME, DROPPINGS};
use super::read::misplaced;
use super::types::{Position, Sizes, Swept};
use super::watch::Replacement;
use crate::error::Error;

/// What upkeep has dropped of gone documents.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Droppings {
    /// How many times it has dropped something.
    pub(super) num_times: u64,
    /// How many documents no longer have a record.
    pub(super) num_records: u64,
}

impl Droppings {
    pub(super) fn encode(self, out: &mut Vec<u8>) {
        out.clear();
        put_varint(out, self.num_times);
        put_varint(out, self.num_records);
    }
}

impl Store {
    /// Runs `read` on one state of the store, whatever the writer commits meanwhile; also faster for many documents.
    pub fn read_together<T, E: From<Error>>(
        &self,
        read: impl FnOnce(&Store) -> Result<T, E>,
    ) -> Result<T, E> {
        if !self.connection.is_autocommit() {
            return read(self);
        }
        let transaction = self
            .connection
            .unchecked_transaction()
            .map_err(Error::from)?;
        let result = self.of_one_state(read(self));
        // There is nothing to commit.
        drop(transaction);
        result
    }

    /// Returns the result of reads, or an error if SQLite ended the transaction, as after a failed read.
    fn of_one_state<T, E: From<Error>>(&self, result: Result<T, E>) -> Result<T, E> {
        match result {
            Ok(_) if self.connection.is_autocommit() => {
                let reason = std::io::Error::other("a reading was interrupted");
                Err(Error::io("read the database", reason).into())
            }
            result => result,
        }
    }

    /// Whether another connection has committed since the last [`Store::refresh`]. Cost: about 2 us.
    pub fn changed(&self) -> Result<bool, Error> {
        Ok(self.read_data_version()? != self.data_version.get())
    }

    fn read_data_version(&self) -> Result<i64, Error> {
        database::value(&self.connection, "PRAGMA data_version", []).map_err(Error::from)
    }

    /// Switches to the committed state and returns it; [`Error::Replaced`] if it does not continue the one before.
    pub fn refresh(&mut self) -> Result<Position, Error> {
        self.refresh_and_read(|store| Ok(store.position))
    }

    /// Switches to the state that is currently committed and runs `read` on it, whatever the writer commits meanwhile.
    pub fn refresh_and_read<T, E: From<Error>>(
        &mut self,
        read: impl FnOnce(&Store) -> Result<T, E>,
    ) -> Result<T, E> {
        // Read first: commits in between are checked again.
        self.data_version.set(self.read_data_version()?);
        if !self.connection.is_autocommit() {
            // A panic left it open.
            self.connection
                .execute_batch("ROLLBACK")
                .map_err(Error::from)?;
        }
        self.connection
            .execute_batch("BEGIN")
            .map_err(Error::from)?;
        let result = match self.take_state() {
            Ok(()) => read(self),
            Err(error) => Err(error.into()),
        };
        let result = self.of_one_state(result);
        if !self.connection.is_autocommit() {
            // There is nothing to commit, so this ends the transaction even if it fails.
            self.connection
                .execute_batch("ROLLBACK")
                .map_err(Error::from)?;
        }
        result
    }

    fn take_state(&mut self) -> Result<(), Error> {
        let position = self.continued()?;
        let batch = self.stored_batch(position.num_rows)?;
        self.shift = self.clock_record()?.shift;
        self.take_num_droppings()?;
        self.position = position;
        self.last_batch.set(batch);
        Ok(())
    }

    /// How many times upkeep had dropped data of gone documents, in the state in use.
    pub fn droppings(&self) -> u64 {
        self.droppings.get()
    }

    pub(super) fn read_droppings(&self) -> Result<Droppings, Error> {
        let bytes = self.needed(DROPPINGS)?;
        let mut cursor = Cursor(&bytes);
        Ok(Droppings {
            num_times: cursor.varint()?,
            num_records: cursor.varint()?,
        })
    }

    /// Reads how many times something was dropped, and clears the cache if that has changed.
    pub(super) fn take_num_droppings(&self) -> Result<(), Error> {
        let now = self.read_droppings()?.num_times;
        if self.droppings.replace(now) != now {
            self.chunks.take();
        }
        Ok(())
    }

    /// Fixes one state until [`Store::release`]; [`Error::Dropped`] if something was dropped since `droppings`.
    pub fn hold(&self, droppings: u64) -> Result<(), Error> {
        self.connection
            .execute_batch("BEGIN")
            .map_err(Error::from)?;
        let taken = self.take_num_droppings();
        match taken {
            Ok(()) if self.droppings() == droppings => Ok(()),
            taken => {
                self.release();
                taken.and(Err(Error::Dropped { row: 0 }))
            }
        }
    }

    /// Ends what [`Store::hold`] began.
    pub fn release(&self) {
        if !self.connection.is_autocommit() {
            // There is nothing to commit; if this fails, the next BEGIN does too.
            let _ = self.connection.execute_batch("ROLLBACK");
        }
    }

    /// Returns the currently committed state after checking that it contains everything known before.
    fn continued(&self) -> Result<Position, Error> {
        self.continues(self.position, self.last_batch.get())?;
        self.read_position()
    }

    /// Checks that the currently committed state contains an earlier one, which ended with a batch.
    fn continues(&self, before: Position, last_batch: Option<u64>) -> Result<(), Error> {
        let now = self.read_position()?;
        let is_longer = now.num_rows >= before.num_rows
            && now.last_event >= before.last_event
            && now.expired_below >= before.expired_below;
        let batches = (last_batch, self.stored_batch(before.num_rows)?);
        match batches {
            _ if !is_longer => Err(self.watch.lose(
                Replacement::Rewritten,
                "the database went back to an earlier state",
            )),
            (Some(known), Some(found)) if known != found => Err(self.watch.lose(
                Replacement::Rewritten,
                "the database has other documents than before",
            )),
            _ => Ok(()),
        }
    }

    /// Checks, inside a transaction of the writer, that no one else has written, which its lock forbids.
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
            false => Err(self.watch.lose(
                Replacement::Rewritten,
                "another process wrote to the database",
            )),
        }
    }

    /// Compares the names of the store's files with the open ones; [`Error::Replaced`] from now on.
    pub fn check_files(&self) -> Result<(), Error> {
        self.watch.check()?;
        if self.is_reader() && self.watch.take_touched() {
            self.check_content()?;
        }
        Ok(())
    }

    /// Checks that a new connection finds everything known, since SQLite may not see a file copied over it.
    fn check_content(&self) -> Result<(), Error> {
        let other = self.source().reader()?;
        if other.identity != self.identity {
            return Err(self.watch.lose(
                Replacement::Rewritten,
                "the database was overwritten with another one while the index was open",
            ));
        }
        other.continues(self.position, self.last_batch.get())
    }

    /// Accepts a state that another connection of this process knows to be committed, for all later reads.
    pub fn advance(&mut self, to: Position) {
        let position = &mut self.position;
        position.num_rows = position.num_rows.max(to.num_rows);
        position.last_event = position.last_event.max(to.last_event);
        position.expired_below = position.expired_below.max(to.expired_below);
        // Not looked up: a leased reader does not need it.
        self.last_batch.set(None);
    }

    /// Returns the committed state, read in one transaction.
    pub fn read_position(&self) -> Result<Position, Error> {
        self.read_together(Store::position_now)
    }

    fn position_now(&self) -> Result<Position, Error> {
        let num_rows = self
            .connection
            .prepare_cached(
                "SELECT first_row, num_rows FROM chunks ORDER BY first_row DESC LIMIT 1",
            )
            .and_then(|mut statement| {
                statement
                    .query_row([], |row| Ok(row.get::<_, u32>(0)?.checked_add(row.get(1)?)))
                    .optional()
            })?
            .unwrap_or(Some(0))
            .ok_or_else(|| misplaced("chunk", "last"))?;
        let last_event: Option<i64> =
            database::value(&self.connection, "SELECT max(seq) FROM events", [])?;
        let expired_below = Cursor(&self.needed("expired_below")?).varint_u32()?;
        let num_old_events = self.num_old_events()?;
        let last_event = last_event.map_or(num_old_events, |last| last as u64);
        if last_event < num_old_events {
            return Err(misplaced("event", num_old_events));
        }
        // Otherwise only some pages of a transaction are there, or one of them is outdated.
        let applied = self.changes_tally()?.last_event;
        if applied != last_event {
            return Err(misplaced("event", applied.max(last_event)));
        }
        Ok(Position {
            num_rows,
            last_event,
            expired_below,
        })
    }

    /// Returns the number of events that were dropped, from which the remaining ones are numbered.
    pub fn num_old_events(&self) -> Result<u64, Error> {
        Ok(Cursor(&self.needed("num_old_events")?).varint()?)
    }

    /// Returns how far upkeep has searched for records to drop.
    pub fn swept(&self) -> Result<Swept, Error> {
        let bytes = self.needed("swept")?;
        let mut cursor = Cursor(&bytes);
        Ok(Swept {
            last_event: cursor.varint()?,
            expired_below: cursor.varint_u32()?,
        })
    }

    /// Returns the value of a key that every store has.
    pub(super) fn needed(&self, name: &str) -> Result<Vec<u8>, Error> {
        database::meta(&self.connection, name)?.ok_or_else(|| misplaced("the value of", name))
    }

    /// Returns the size of the store on disk. Cost: counting the chunks, a millisecond per 10^5 or so.
    pub fn sizes(&self) -> Result<Sizes, Error> {
        let number = |sql: &str| -> Result<u64, Error> {
            self.connection
                .query_row(sql, [], |row| row.get::<_, i64>(0))
                .map(|number| number as u64)
                .map_err(Error::from)
        };
        let page_bytes = number("PRAGMA page_size")?;
        // Only its size is read. It is never opened, which would release the locks of the database.
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
