//! How is a batch made safe?

use std::fs::File;
use std::io;
use std::ops::Range;

use rusqlite::{Connection, ErrorCode};
use xxhash_rust::xxh3::xxh3_64_with_seed;

use super::Store;
use super::bytes::{Cursor, Malformed, begin, open, put_varint, seal};
use super::contents::{self, Block, Packer};
use super::database::{self, wrong};
use super::encode::Columns;
use super::events::{Change, decode_change, encode_change, encode_event};
use super::read::blob;
use super::types::{Durability, Event, LiveSegment, NewContents, NewRows, Position};
use crate::error::Error;

/// Longest id in bytes.
const MAX_ID_BYTES: usize = 65_535;

/// What a test does in place of a commit.
type Fault = Box<dyn FnMut() -> io::Result<()> + Send>;

/// What only the one that writes has.
pub(super) struct Writer {
    /// Held, never read: its lock keeps other writers out.
    _lock: File,
    durability: Durability,
    /// Why nothing is written any more.
    poison: Option<String>,
    fault: Option<Fault>,
    /// Batches get random identities: the hash of their number, with a random seed for each time the store is opened.
    seed: u64,
    num_batches: u64,
    /// Whether something was committed that no sync has followed.
    has_unsynced: bool,
    pub(super) last_arrival_s: u64,
    columns: Columns,
    block: Block,
    pub(super) packer: Packer,
    pub(super) record: Vec<u8>,
}

impl Writer {
    pub(super) fn new(
        connection: &Connection,
        lock: File,
        durability: Durability,
    ) -> Result<Self, Error> {
        let seed: [u8; 8] = connection
            .query_row("SELECT randomblob(8)", [], |row| row.get(0))
            .map_err(wrong)?;
        Ok(Writer {
            _lock: lock,
            durability,
            poison: None,
            fault: None,
            seed: u64::from_le_bytes(seed),
            num_batches: 0,
            has_unsynced: false,
            last_arrival_s: 0,
            columns: Columns::default(),
            block: Block::default(),
            packer: Packer::default(),
            record: Vec::new(),
        })
    }

    fn new_batch(&mut self) -> u64 {
        self.num_batches += 1;
        xxh3_64_with_seed(&self.num_batches.to_le_bytes(), self.seed)
    }
}

impl Store {
    /// Appends rows and events in one transaction; returns the rows. When it returns the batch is acknowledged.
    ///
    /// Events come after the rows, so they may be about them. An arrival before that of the last batch counts as that: clocks are set back.
    /// Cost: some 0.1 us a row beside the sync; 20 us for a single one.
    ///
    /// # Errors
    /// [`Error::InvalidParameter`] where columns do not fit together or there would be 2^32 - 1 rows or more: nothing is appended then. Any
    /// error of the disk poisons the store: that batch is not acknowledged (it may be found there when the store is opened again, whole),
    /// and every later write is [`Error::Poisoned`]. [`Error::Unsupported`] where the store was opened for reading.
    pub fn append(&mut self, rows: &NewRows<'_>, events: &[Event]) -> Result<Range<u32>, Error> {
        self.fits(rows)?;
        let position = self.position;
        let end = position.num_rows + rows.ids.len() as u32;
        let after = self.transact(|store, writer| {
            let mut after = store.write_rows(writer, rows)?;
            for event in events {
                after.last_event += 1;
                store.write_event(writer, &mut after, event)?;
            }
            if after.expired_below != position.expired_below {
                writer.record.clear();
                put_varint(&mut writer.record, u64::from(after.expired_below));
                database::set_meta(&store.connection, "expired_below", &writer.record)?;
            }
            Ok(after)
        })?;
        self.position = after;
        if let Some(writer) = &mut self.writer
            && !rows.ids.is_empty()
        {
            writer.last_arrival_s = writer.last_arrival_s.max(rows.arrival_s);
        }
        Ok(position.num_rows..end)
    }

    /// That the columns fit together.
    fn fits(&self, rows: &NewRows<'_>) -> Result<(), Error> {
        let n = rows.ids.len();
        let sketch_bytes = self.description.sketch_bytes as usize;
        let num_contents = match rows.contents {
            NewContents::None => n,
            NewContents::Features(all) => all.len(),
            NewContents::Texts(all) => all.len(),
        };
        let are_long_enough = rows.sketches.len() == n * sketch_bytes
            && [
                rows.shapes.len(),
                rows.num_features.len(),
                rows.text_digests.map_or(n, <[u64]>::len),
                rows.feature_digests.map_or(n, <[u128]>::len),
                rows.verdicts.len(),
                num_contents,
            ]
            .iter()
            .all(|&length| length == n);
        if !are_long_enough {
            return Err(Error::invalid(
                "rows",
                format!("columns differ in length from the {n} ids"),
            ));
        }
        let key = |position: u32, band: u16| u64::from(position) << 16 | u64::from(band);
        if !rows
            .levels
            .is_sorted_by_key(|level| key(level.position, level.band))
            || rows
                .levels
                .last()
                .is_some_and(|last| last.position as usize >= n)
        {
            return Err(Error::invalid(
                "levels",
                "not ascending, or of no row of the batch",
            ));
        }
        if let Some(id) = rows.ids.iter().find(|id| id.len() > MAX_ID_BYTES) {
            return Err(Error::invalid(
                "doc_id",
                format!("an id has {} bytes; at most {MAX_ID_BYTES}", id.len()),
            ));
        }
        if n as u64 + u64::from(self.position.num_rows) >= u64::from(u32::MAX) {
            return Err(Error::invalid(
                "rows",
                "an index holds fewer than 4,294,967,295 documents",
            ));
        }
        Ok(())
    }

    /// Runs `write` in one transaction.
    pub(super) fn transact<T>(
        &mut self,
        write: impl FnOnce(&Store, &mut Writer) -> Result<T, Error>,
    ) -> Result<T, Error> {
        let Some(mut writer) = self.writer.take() else {
            return Err(Error::Unsupported {
                reason: "the index was opened for reading".to_owned(),
            });
        };
        let result = self.try_transact(&mut writer, write);
        self.writer = Some(writer);
        result
    }

    fn try_transact<T>(
        &self,
        writer: &mut Writer,
        write: impl FnOnce(&Store, &mut Writer) -> Result<T, Error>,
    ) -> Result<T, Error> {
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
            // Nothing was written where another connection holds the lock; it may be tried again.
            let is_busy = error.sqlite_error_code() == Some(ErrorCode::DatabaseBusy);
            let error = wrong(error);
            if !is_busy {
                writer.poison = Some(error.to_string());
            }
            return Err(error);
        }
        let result = write(self, writer).and_then(|result| {
            if let Some(fault) = &mut writer.fault {
                fault().map_err(|e| Error::io("use the database", e))?;
            }
            run("COMMIT").map_err(wrong)?;
            writer.has_unsynced = true;
            Ok(result)
        });
        if let Err(error) = &result {
            // After some errors SQLite has rolled back of its own accord; then there is nothing to roll back.
            let is_rolled_back = self.connection.is_autocommit() || run("ROLLBACK").is_ok();
            let is_of_disk = !matches!(error, Error::InvalidParameter { .. } | Error::Cancelled);
            if is_of_disk || !is_rolled_back {
                writer.poison = Some(error.to_string());
            }
        }
        result
    }

    fn write_rows(&self, writer: &mut Writer, rows: &NewRows<'_>) -> Result<Position, Error> {
        let mut position = self.position;
        if rows.ids.is_empty() {
            return Ok(position);
        }
        let first_row = position.num_rows;
        let batch = writer.new_batch();
        let arrival_s = writer.last_arrival_s.max(rows.arrival_s);
        let Writer {
            columns,
            block,
            packer,
            record,
            ..
        } = writer;
        let mut begin = 0;
        while begin < rows.ids.len() {
            let first_row = first_row + begin as u32;
            let end = columns.take(rows, begin, first_row, batch, arrival_s);
            columns.encode(record);
            self.insert("chunks", first_row, (end - begin) as u32, record)?;
            begin = end;
        }
        contents::cut(&rows.contents, first_row, block, |block| {
            block.encode(packer, record)?;
            self.insert("contents", block.first_row(), block.num_rows(), record)
        })?;
        position.num_rows += rows.ids.len() as u32;
        Ok(position)
    }

    /// Inserts a chunk or a block.
    pub(super) fn insert(
        &self,
        table: &str,
        first_row: u32,
        num_rows: u32,
        record: &[u8],
    ) -> Result<(), Error> {
        let sql = match table {
            "chunks" => "INSERT INTO chunks (first_row, num_rows, data) VALUES (?1, ?2, ?3)",
            _ => "INSERT INTO contents (first_row, num_rows, data) VALUES (?1, ?2, ?3)",
        };
        self.connection
            .prepare_cached(sql)
            .and_then(|mut statement| statement.execute((first_row, num_rows, record)))
            .map_err(wrong)?;
        Ok(())
    }

    fn write_event(
        &self,
        writer: &mut Writer,
        position: &mut Position,
        event: &Event,
    ) -> Result<(), Error> {
        encode_event(&mut writer.record, position.last_event, event);
        self.connection
            .prepare_cached("INSERT INTO events (seq, data) VALUES (?1, ?2)")
            .and_then(|mut statement| {
                statement.execute((position.last_event as i64, &writer.record))
            })
            .map_err(wrong)?;
        match event {
            Event::Expired { below } => {
                self.is_there(position, below.saturating_sub(1))?;
                position.expired_below = position.expired_below.max(*below);
            }
            Event::Removed {
                row,
                promoted,
                moved,
            } => {
                let mut num_changes = self.num_changes()?;
                let mut apply = |row: u32, set: &dyn Fn(&mut Change)| -> Result<(), Error> {
                    self.is_there(position, row)?;
                    num_changes += u64::from(self.change_row(&mut writer.record, row, set)?);
                    Ok(())
                };
                apply(*row, &|change| change.is_gone = true)?;
                for &row in promoted {
                    apply(row, &|change| change.verdict = Some(None))?;
                }
                for &(row, evidence) in moved {
                    apply(row, &|change| change.verdict = Some(Some(evidence)))?;
                }
                writer.record.clear();
                put_varint(&mut writer.record, num_changes);
                database::set_meta(&self.connection, "num_changes", &writer.record)?;
            }
        }
        Ok(())
    }

    fn is_there(&self, position: &Position, row: u32) -> Result<(), Error> {
        match row < position.num_rows || row == 0 {
            true => Ok(()),
            false => Err(Error::invalid("events", format!("there is no row {row}"))),
        }
    }

    /// Changes what became of a row; returns whether it is the first change.
    fn change_row(
        &self,
        record: &mut Vec<u8>,
        row: u32,
        set: impl Fn(&mut Change),
    ) -> Result<bool, Error> {
        let found: Option<Change> = {
            let mut statement = self
                .connection
                .prepare_cached("SELECT data FROM changes WHERE row = ?1")
                .map_err(wrong)?;
            let mut rows = statement.query([row]).map_err(wrong)?;
            match rows.next().map_err(wrong)? {
                Some(found) => Some(decode_change(blob(found, 0)?, row)?),
                None => None,
            }
        };
        let mut change = found.unwrap_or_default();
        set(&mut change);
        encode_change(record, row, &change);
        self.connection
            .prepare_cached("INSERT OR REPLACE INTO changes (row, data) VALUES (?1, ?2)")
            .and_then(|mut statement| statement.execute((row, &*record)))
            .map_err(wrong)?;
        Ok(found.is_none())
    }

    /// Adds and drops live segments in one transaction. Names that are not there are dropped without a word.
    ///
    /// # Errors
    /// Those of [`Store::append`].
    pub fn publish(&mut self, added: &[LiveSegment], dropped: &[String]) -> Result<(), Error> {
        self.transact(|store, writer| {
            for name in dropped {
                store
                    .connection
                    .prepare_cached("DELETE FROM segments WHERE name = ?1")
                    .and_then(|mut statement| statement.execute([name]))
                    .map_err(wrong)?;
            }
            for segment in added {
                encode_segment(&mut writer.record, segment);
                store
                    .connection
                    .prepare_cached("INSERT OR REPLACE INTO segments (name, data) VALUES (?1, ?2)")
                    .and_then(|mut statement| statement.execute((&segment.name, &writer.record)))
                    .map_err(wrong)?;
            }
            Ok(())
        })
    }

    /// Makes all that was appended safe from power loss; nothing is to be done where every commit is. Cost: that of one commit.
    ///
    /// # Errors
    /// Those of [`Store::append`].
    pub fn sync(&mut self) -> Result<(), Error> {
        let is_needed = self.writer.as_ref().is_none_or(|writer| {
            writer.poison.is_some()
                || (writer.has_unsynced && writer.durability != Durability::Commit)
        });
        if !is_needed {
            return Ok(());
        }
        // A commit that waits for the disk takes all before it along: they stand before it in the same log.
        database::set_synchronous(&self.connection, true)?;
        let result = self.transact(|store, _| {
            let count = database::meta(&store.connection, "num_syncs")?
                .and_then(|bytes| bytes.try_into().ok())
                .map_or(0, u64::from_le_bytes);
            database::set_meta(&store.connection, "num_syncs", &(count + 1).to_le_bytes())
        });
        let reset = database::set_synchronous(&self.connection, false);
        result?;
        reset?;
        if let Some(writer) = &mut self.writer {
            writer.has_unsynced = false;
        }
        Ok(())
    }

    /// Why nothing is written any more, if so.
    pub fn poison(&self) -> Option<&str> {
        self.writer.as_ref()?.poison.as_deref()
    }

    /// For tests: runs `fault` before each commit, which fails if it does.
    #[doc(hidden)]
    pub fn fail_commits(&mut self, fault: impl FnMut() -> io::Result<()> + Send + 'static) {
        if let Some(writer) = &mut self.writer {
            writer.fault = Some(Box::new(fault));
        }
    }
}

fn encode_segment(out: &mut Vec<u8>, segment: &LiveSegment) {
    begin(out);
    put_varint(out, u64::from(segment.rows.start));
    put_varint(out, u64::from(segment.rows.end));
    out.extend_from_slice(&segment.batch.to_le_bytes());
    put_varint(out, segment.last_event);
    out.extend_from_slice(segment.details.as_bytes());
    seal(out, place_of(&segment.name));
}

pub(super) fn decode_segment(record: &[u8], name: String) -> Result<LiveSegment, Malformed> {
    let mut cursor = Cursor(open(record, place_of(&name))?);
    let rows = cursor.varint_u32()?..cursor.varint_u32()?;
    let batch = cursor.u64()?;
    let last_event = cursor.varint()?;
    let details = str::from_utf8(cursor.0).map_err(|_| Malformed)?.to_owned();
    Ok(LiveSegment {
        name,
        rows,
        batch,
        last_event,
        details,
    })
}

fn place_of(name: &str) -> u64 {
    xxh3_64_with_seed(name.as_bytes(), 0)
}
