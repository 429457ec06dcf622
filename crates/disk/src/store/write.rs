//! How is a batch written?

use std::ops::Range;

use super::bytes::{Cursor, Malformed, put_varint};
use super::database::{self, CHANGES_TALLY, meta, set_meta};
use super::encode::{CHUNK_BYTES, MAX_CHUNK_ROWS};
use super::events::{Change, ChangesTally, decode_change, encode_change, encode_event};
use super::read::blob;
use super::transact::Writer;
use super::types::{AddingRun, Chunk, DocumentRow, Event, NewRows, Position};
use super::{Store, contents};
use crate::error::{Error, Result};
use likewise_core::error::invalid_if;

/// Maximum length of an id in bytes.
const MAX_ID_BYTES: usize = 65_535;

impl Store {
    /// Appends rows, then events, in one transaction, acknowledged on return; returns the rows. Arrival times never
    /// decrease, since clocks can be set back. [`Error::InvalidParameter`] appends nothing; an error of the disk
    /// poisons the store: after reopening, the batch may be there as a whole. About 0.1 us per row, 20 us for a single
    /// one.
    pub fn append(&mut self, rows: &NewRows<'_>, events: &[Event]) -> Result<Range<u32>> {
        self.fits(rows)?;
        let position = self.position;
        let end = position.num_rows + rows.documents.len() as u32;
        let (after, batch) = self.transact(|store, writer| {
            let (mut after, batch) = store.write_rows(writer, rows)?;
            store.write_events(writer, &mut after, events)?;
            Ok((after, batch))
        })?;
        self.position = after;
        if let Some(writer) = &mut self.writer
            && let Some(last) = rows.documents.last()
        {
            writer.last_arrival_s = writer.last_arrival_s.max(last.arrival_s);
            self.last_batch.set(Some(writer.batch()));
        }
        self.mark_committed(batch);
        Ok(position.num_rows..end)
    }

    /// Expires all rows below `below`, and appends events, in one transaction; the bound never falls.
    pub fn expire(&mut self, below: u32, events: &[Event]) -> Result<()> {
        if below <= self.position.expired_below {
            return Ok(());
        }
        self.is_there(&self.position, below - 1)?;
        let mut after = self.position;
        after.expired_below = below;
        self.position = self.transact(|store, writer| {
            writer.record.clear();
            put_varint(&mut writer.record, u64::from(below));
            database::set_meta(&store.connection, "expired_below", &writer.record)?;
            store.write_events(writer, &mut after, events)?;
            Ok(after)
        })?;
        self.mark_committed(None);
        Ok(())
    }

    fn fits(&self, rows: &NewRows<'_>) -> Result<()> {
        let documents = rows.documents;
        let sketch_bytes = self.description.sketch_bytes as usize;
        let has_text = |document: &DocumentRow<'_>| document.text_digest.is_some();
        let are_alike = documents.iter().all(|of| of.sketch.len() == sketch_bytes)
            && documents
                .windows(2)
                .all(|of| has_text(&of[0]) == has_text(&of[1]));
        invalid_if(!are_alike, "rows", || "differ in their sketches or digests")?;
        let levels = || documents.iter().map(|of| of.levels);
        invalid_if(
            levels().any(|all| !all.is_sorted()),
            "levels",
            || "not ascending",
        )?;
        let are_ordered = documents.is_sorted_by_key(|of| of.arrival_s);
        invalid_if(!are_ordered, "arrivals_s", || "not ascending")?;
        if let Some(id) = documents
            .iter()
            .map(|of| of.id)
            .find(|id| id.len() > MAX_ID_BYTES)
        {
            return Err(Error::invalid(
                "doc_id",
                format!(
                    "an id has {} bytes; the maximum is {MAX_ID_BYTES}",
                    id.len()
                ),
            ));
        }
        if documents.len() as u64 + u64::from(self.position.num_rows) >= u64::from(u32::MAX) {
            return Err(Error::invalid(
                "rows",
                "an index accepts at most 4,294,967,294 additions, including documents removed later; export its documents and \
                 add them to a new index",
            ));
        }
        Ok(())
    }

    /// Writes rows; returns the state after them and the identity of their batch.
    fn write_rows(
        &self,
        writer: &mut Writer,
        rows: &NewRows<'_>,
    ) -> Result<(Position, Option<u64>)> {
        let mut position = self.position;
        if rows.documents.is_empty() {
            return Ok((position, None));
        }
        let first_row = position.num_rows;
        let batch = writer.new_batch();
        let arrival_s = writer.last_arrival_s;
        let Writer {
            block,
            packer,
            record,
            ..
        } = writer;
        let mut begin = 0;
        while begin < rows.documents.len() {
            let first_row = first_row + begin as u32;
            let mut most = MAX_CHUNK_ROWS;
            let end = loop {
                let (chunk, end) = Chunk::of(rows, begin, first_row, batch, arrival_s, most);
                chunk.encode(record);
                // The size of a chunk is known only after packing. A last chunk is not divided.
                let is_last = end == rows.documents.len() && record.len() < 2 * CHUNK_BYTES;
                if record.len() <= CHUNK_BYTES || is_last || end == begin + 1 {
                    break end;
                }
                most = ((end - begin) * CHUNK_BYTES / record.len()).clamp(1, end - begin - 1);
            };
            self.insert("chunks", first_row, (end - begin) as u32, record)?;
            begin = end;
        }
        contents::cut(rows.documents, first_row, block, |block| {
            block.encode(packer, record)?;
            self.insert("contents", block.first_row(), block.num_rows, record)
        })?;
        position.num_rows += rows.documents.len() as u32;
        if let Some(run) = rows.run {
            self.remember_run(run, position.num_rows)?;
        }
        Ok((position, Some(batch)))
    }

    /// Inserts a chunk or a block.
    pub(super) fn insert(
        &self,
        table: &str,
        first_row: u32,
        num_rows: u32,
        record: &[u8],
    ) -> Result<()> {
        let sql = format!("INSERT INTO {table} (first_row, num_rows, data) VALUES (?1, ?2, ?3)");
        database::execute(&self.connection, &sql, (first_row, num_rows, record))?;
        Ok(())
    }

    fn write_events(
        &self,
        writer: &mut Writer,
        after: &mut Position,
        events: &[Event],
    ) -> Result<()> {
        for event in events {
            after.last_event += 1;
            self.write_event(writer, after, event)?;
        }
        Ok(())
    }

    fn write_event(&self, writer: &mut Writer, position: &Position, event: &Event) -> Result<()> {
        encode_event(&mut writer.record, position.last_event, event);
        database::execute(
            &self.connection,
            "INSERT INTO events (seq, data) VALUES (?1, ?2)",
            (position.last_event as i64, &writer.record),
        )?;
        let Event::Removed {
            row,
            promoted,
            moved,
        } = event;
        let mut tally = self.changes_tally()?;
        tally.last_event = position.last_event;
        let mut apply = |row: u32, set: &dyn Fn(&mut Change)| -> Result<()> {
            self.is_there(position, row)?;
            self.change_row(&mut writer.record, &mut tally, row, set)
        };
        apply(*row, &|change| change.is_gone = true)?;
        for &row in promoted {
            apply(row, &|change| change.verdict = Some(None))?;
        }
        for &(row, evidence) in moved {
            apply(row, &|change| change.verdict = Some(Some(evidence)))?;
        }
        database::set_meta(&self.connection, CHANGES_TALLY, &tally.encode())
    }

    fn is_there(&self, position: &Position, row: u32) -> Result<()> {
        match row < position.num_rows || row == 0 {
            true => Ok(()),
            false => Err(Error::invalid("events", format!("there is no row {row}"))),
        }
    }

    pub(super) fn delete_change(&self, tally: &mut ChangesTally, row: u32) -> Result<()> {
        let mut statement = self.statement("DELETE FROM changes WHERE row = ?1 RETURNING data")?;
        let mut deleted = statement.query([row])?;
        while let Some(found) = deleted.next()? {
            tally.remove(blob(found, 0)?);
        }
        Ok(())
    }

    fn change_row(
        &self,
        record: &mut Vec<u8>,
        tally: &mut ChangesTally,
        row: u32,
        set: impl Fn(&mut Change),
    ) -> Result<()> {
        let mut change = Change::default();
        {
            let mut statement = self.statement("SELECT data FROM changes WHERE row = ?1")?;
            let mut rows = statement.query([row])?;
            if let Some(found) = rows.next()? {
                let found = blob(found, 0)?;
                change = decode_change(found, row)?;
                tally.remove(found);
            }
        }
        set(&mut change);
        encode_change(record, row, &change);
        tally.add(record);
        database::execute(
            &self.connection,
            "INSERT OR REPLACE INTO changes (row, data) VALUES (?1, ?2)",
            (row, &*record),
        )?;
        Ok(())
    }
}

/// Maximum number of remembered runs, the newest ones.
const MOST_RUNS: usize = 1000;
const NAME: &str = "runs";

/// A remembered run, and the end of the last rows that it added.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Remembered {
    run: AddingRun,
    end: u32,
}

impl Store {
    /// Returns the rows that the store had when a run first compared its documents; `None` if unknown or all expired.
    pub fn first_row_of_run(&self, identity: [u8; 16]) -> Result<Option<u32>> {
        let runs = self.remembered()?;
        let found = runs.iter().find(|other| other.run.identity == identity);
        Ok(found.map(|found| found.run.first_row))
    }

    /// Remembers that a run added the rows before `end`. Must be called in the transaction that adds them.
    pub(super) fn remember_run(&self, run: AddingRun, end: u32) -> Result<()> {
        let mut runs = self.remembered()?;
        let same = runs
            .iter_mut()
            .find(|other| other.run.identity == run.identity);
        match same {
            Some(same) => same.end = end,
            None => runs.push(Remembered { run, end }),
        }
        let surplus = runs.len().saturating_sub(MOST_RUNS);
        set_meta(&self.connection, NAME, &encoded(&runs[surplus..]))
    }

    /// Returns the runs whose rows have not all expired, oldest first.
    fn remembered(&self) -> Result<Vec<Remembered>> {
        let mut runs = match meta(&self.connection, NAME)? {
            Some(bytes) => decoded(&bytes)?,
            None => Vec::new(),
        };
        runs.retain(|remembered| remembered.end > self.position.expired_below);
        Ok(runs)
    }
}

fn encoded(runs: &[Remembered]) -> Vec<u8> {
    let mut out = Vec::with_capacity(runs.len() * 24);
    for Remembered { run, end } in runs {
        out.extend_from_slice(&run.identity);
        put_varint(&mut out, u64::from(run.first_row));
        put_varint(&mut out, u64::from(*end));
    }
    out
}

fn decoded(bytes: &[u8]) -> Result<Vec<Remembered>, Malformed> {
    let mut cursor = Cursor(bytes);
    let mut runs = Vec::new();
    while !cursor.0.is_empty() {
        let identity = cursor.take(16)?.try_into().map_err(|_| Malformed)?;
        let first_row = cursor.varint_u32()?;
        let end = cursor.varint_u32()?;
        runs.push(Remembered {
            run: AddingRun {
                identity,
                first_row,
            },
            end,
        });
    }
    Ok(runs)
}
