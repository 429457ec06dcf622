//! What is stored about one document?

use std::collections::BTreeMap;
use std::ops::Range;

use super::contents::Contents;
use super::decode::View;
use super::events::{Change, decode_change, decode_event};
use super::types::{Content, Event, Row};
use super::{Store, bytes};
use crate::error::{Error, Result};

/// The statement that finds the chunk of a row.
const CHUNK_OF_ROW: &str = "SELECT first_row, num_rows, data FROM chunks WHERE first_row <= ?1 ORDER BY first_row DESC LIMIT 1";

impl Store {
    /// Returns one document in its current state, in about 10 us; [`Error::Dropped`] if it is gone with its record.
    pub fn row(&self, row: u32) -> Result<Row> {
        let change = self.change(row)?;
        let is_expired = row < self.position.expired_below;
        self.with_chunk(row, |view, i| {
            Ok(Row {
                id: view.id(i)?.to_owned(),
                sketch: view.sketch(i).to_vec(),
                shape: view.shape(i),
                num_features: view.num_features(i),
                text_digest: view.text_digest(i),
                feature_digest: view.feature_digest(i),
                verdict: match change.verdict {
                    Some(verdict) => verdict,
                    None => view.verdict(i)?,
                },
                is_gone: is_expired || change.is_gone,
                levels: view.levels_of(i),
                arrival_s: self.corrected(row, view.arrival_s(i)?),
            })
        })
    }

    pub fn id(&self, row: u32) -> Result<String> {
        self.with_chunk(row, |view, i| Ok(view.id(i)?.to_owned()))
    }

    /// Whether a document has this id. Cost: as for [`Store::row`].
    pub fn has_id(&self, row: u32, id: &str) -> Result<bool> {
        self.with_chunk(row, |view, i| Ok(view.id(i)? == id))
    }

    pub fn sketch(&self, row: u32, out: &mut Vec<u8>) -> Result<()> {
        self.with_chunk(row, |view, i| {
            out.extend_from_slice(view.sketch(i));
            Ok(())
        })
    }

    /// Returns the arrival time of the first document, from a row on, that still exists, or `None` if there is none.
    fn arrival_from_s(&self, row: u32) -> Result<Option<u64>> {
        let mut row = row;
        while row < self.position.num_rows {
            let (end, arrival_s) = self.with_view(row, |view| {
                let i = view.num_below(row);
                let arrival_s = (i < view.num_documents)
                    .then(|| self.arrival_of(view, i))
                    .transpose()?;
                Ok((view.first_row.saturating_add(view.num_rows), arrival_s))
            })?;
            if arrival_s.is_some() {
                return Ok(arrival_s);
            }
            row = end;
        }
        Ok(None)
    }

    /// Returns the arrival time of the last document that still exists, or `None` if there is none.
    pub fn last_arrival_s(&self) -> Result<Option<u64>> {
        let mut end = self.position.num_rows;
        while end > 0 {
            let (first_row, arrival_s) = self.with_view(end - 1, |view| {
                let last = view.num_documents.checked_sub(1);
                let arrival_s = last.map(|last| self.arrival_of(view, last)).transpose()?;
                Ok((view.first_row, arrival_s))
            })?;
            if arrival_s.is_some() {
                return Ok(arrival_s);
            }
            end = first_row;
        }
        Ok(None)
    }

    fn arrival_of(&self, view: &View<'_>, place: usize) -> Result<u64> {
        Ok(self.corrected(view.row(place), view.arrival_s(place)?))
    }

    /// Returns a live row such that exactly the documents below it arrived before a time.
    pub fn first_row_since(&self, arrival_s: u64) -> Result<u32> {
        let (mut low, mut high) = (self.position.expired_below, self.position.num_rows);
        while low < high {
            let middle = low + (high - low) / 2;
            match self.arrival_from_s(middle)? {
                Some(found_s) if found_s < arrival_s => low = middle + 1,
                _ => high = middle,
            }
        }
        Ok(low)
    }

    /// Returns the identity of the batch whose last row is `end - 1`, or `None` if no chunk ends there.
    pub fn batch_before(&self, end: u32) -> Result<Option<u64>> {
        match end.checked_sub(1) {
            Some(last) if end <= self.position.num_rows => self.with_view(last, |view| {
                let ends_here = view.first_row.checked_add(view.num_rows) == Some(end);
                Ok(ends_here.then_some(view.batch))
            }),
            _ => Ok(None),
        }
    }

    /// Same as [`batch_before`](Self::batch_before), for the database's current state.
    pub(super) fn stored_batch(&self, end: u32) -> Result<Option<u64>> {
        let Some(last) = end.checked_sub(1) else {
            return Ok(None);
        };
        let mut statement = self.statement(CHUNK_OF_ROW)?;
        let mut rows = statement.query([last])?;
        let Some(found) = rows.next()? else {
            return Ok(None);
        };
        let (first_row, num_rows) = range_of(found)?;
        if first_row + num_rows != end {
            return Ok(None);
        }
        let sketch_bytes = self.description.sketch_bytes as usize;
        Ok(Some(
            View::new(blob(found, 2)?, first_row, sketch_bytes)?.batch,
        ))
    }

    /// Returns the feature set or text of a document, by a read of about 32 KiB; of a gone one it may be dropped.
    pub fn content(&self, row: u32) -> Result<Content> {
        let mut statement = self.statement(
                "SELECT first_row, num_rows, data FROM contents WHERE first_row <= ?1 ORDER BY first_row DESC LIMIT 1",
            )?;
        let mut rows = statement.query([row])?;
        if let Some(found) = rows.next()? {
            let (first_row, num_rows) = range_of(found)?;
            let contents = Contents::new(blob(found, 2)?, first_row)?;
            if contents.num_rows != num_rows {
                return Err(misplaced("block", first_row));
            }
            if let Some(content) = contents.get(row)? {
                return Ok(content);
            }
        }
        let had_content = self.with_chunk(row, |view, i| Ok(view.has_content(i)))?;
        let is_gone = row < self.position.expired_below || self.change(row)?.is_gone;
        match had_content && !is_gone {
            true => Err(misplaced("content of row", row)),
            false => Ok(Content::Absent),
        }
    }

    /// Returns the events after number `after`, as [`events`](Self::events) passes them.
    pub fn events_after(&self, after: u64) -> Result<Vec<(u64, Event)>> {
        let mut found = Vec::new();
        self.events(after, |number, event| {
            found.push((number, event.clone()));
            Ok(())
        })?;
        Ok(found)
    }

    /// Passes the events after number `after`, none of them dropped, to `each`, with their numbers.
    pub fn events(
        &self,
        after: u64,
        mut each: impl FnMut(u64, &Event) -> Result<()>,
    ) -> Result<()> {
        let mut statement =
            self.statement("SELECT seq, data FROM events WHERE seq > ?1 ORDER BY seq")?;
        let mut rows = statement.query([after as i64])?;
        let mut next = after + 1;
        while let Some(row) = rows.next()? {
            let number: i64 = row.get(0)?;
            if number as u64 != next {
                return Err(misplaced("event", number));
            }
            each(next, &decode_event(blob(row, 1)?, next)?)?;
            next += 1;
        }
        match next > self.position.last_event {
            true => Ok(()),
            false => Err(misplaced("event", next)),
        }
    }

    /// Returns how events changed a row.
    pub(super) fn change(&self, row: u32) -> Result<Change> {
        if self.position.last_event == 0 {
            return Ok(Change::default());
        }
        let mut statement = self.statement("SELECT data FROM changes WHERE row = ?1")?;
        let mut rows = statement.query([row])?;
        Ok(match rows.next()? {
            Some(found) => decode_change(blob(found, 0)?, row)?,
            None => Change::default(),
        })
    }

    /// Calls `read` with the chunk of a row and the position of the document in it.
    fn with_chunk<T>(
        &self,
        row: u32,
        read: impl FnOnce(&View<'_>, usize) -> Result<T>,
    ) -> Result<T> {
        self.with_view(row, |view| match view.position_of(row) {
            Some(position) => read(view, position),
            None => Err(Error::Dropped { row }),
        })
    }

    /// Calls `read` with the chunk that covers a row.
    fn with_view<T>(&self, row: u32, read: impl FnOnce(&View<'_>) -> Result<T>) -> Result<T> {
        let sketch_bytes = self.description.sketch_bytes as usize;
        let held = self.chunks.borrow().find(row);
        let place = match held {
            Some(place) => place,
            None => self.hold_chunk(row)?,
        };
        let chunks = self.chunks.borrow();
        let (first_row, record) = chunks.get(place);
        // Its checksum was verified when it was read.
        let view = View::of_proven(record, first_row, sketch_bytes)?;
        read(&view)
    }

    /// Reads the chunk of a row into the cache; returns its index there.
    fn hold_chunk(&self, row: u32) -> Result<usize> {
        let mut statement = self.statement(CHUNK_OF_ROW)?;
        let mut rows = statement.query([row])?;
        let found = rows.next()?;
        let Some(found) = found else {
            return Err(self.no_row(row));
        };
        let (first_row, num_rows) = range_of(found)?;
        if row - first_row >= num_rows {
            return Err(self.no_row(row));
        }
        let record = blob(found, 2)?;
        let view = View::new(record, first_row, self.description.sketch_bytes as usize)?;
        if view.num_rows != num_rows {
            return Err(misplaced("chunk", first_row));
        }
        let rows = first_row..first_row + num_rows;
        Ok(self.chunks.borrow_mut().put(rows, record))
    }

    /// Returns a statement, which a connection prepares once.
    pub(super) fn statement(&self, sql: &str) -> Result<rusqlite::CachedStatement<'_>> {
        Ok(self.connection.prepare_cached(sql)?)
    }

    fn no_row(&self, row: u32) -> Error {
        match row < self.position.num_rows {
            true => misplaced("row", row),
            false => Error::invalid("row", format!("there is no row {row}")),
        }
    }
}

/// Reads the first row and the number of rows from the first two columns.
pub(super) fn range_of(row: &rusqlite::Row<'_>) -> Result<(u32, u32)> {
    let first_row: u32 = row.get(0)?;
    let num_rows: u32 = row.get(1)?;
    match first_row.checked_add(num_rows) {
        Some(_) => Ok((first_row, num_rows)),
        None => Err(bytes::Malformed.into()),
    }
}

pub(super) fn blob<'a>(row: &'a rusqlite::Row<'_>, column: usize) -> Result<&'a [u8]> {
    row.get_ref(column)?
        .as_blob()
        .map_err(|_| bytes::Malformed.into())
}

pub(super) fn misplaced(what: &str, which: impl std::fmt::Display) -> Error {
    Error::Damaged {
        reason: format!("the database is damaged: {what} {which} is missing or not in its place"),
    }
}

/// Number of cached chunks: 4 MiB if they are full.
const NUM_HELD: usize = 256;

/// A cache of chunk records with verified checksums, which never change but may still have gone documents.
#[derive(Debug, Default)]
pub(super) struct HeldChunks {
    /// Index of each chunk, by its first row.
    places: BTreeMap<u32, usize>,
    held: Vec<(Range<u32>, Vec<u8>)>,
    /// The index that is replaced next.
    oldest: usize,
}

impl HeldChunks {
    pub(super) fn find(&self, row: u32) -> Option<usize> {
        let (_, &place) = self.places.range(..=row).next_back()?;
        self.held[place].0.contains(&row).then_some(place)
    }

    /// Returns the first row and the record of the chunk at an index.
    pub(super) fn get(&self, place: usize) -> (u32, &[u8]) {
        let (rows, record) = &self.held[place];
        (rows.start, record)
    }

    /// Stores a chunk; returns its index.
    pub(super) fn put(&mut self, rows: Range<u32>, record: &[u8]) -> usize {
        let first_row = rows.start;
        let place = if self.held.len() < NUM_HELD {
            self.held.push((rows, record.to_vec()));
            self.held.len() - 1
        } else {
            let place = self.oldest;
            self.oldest = (place + 1) % NUM_HELD;
            let (held_rows, held) = &mut self.held[place];
            // A longer chunk with the same first row may have replaced it.
            if self.places.get(&held_rows.start) == Some(&place) {
                self.places.remove(&held_rows.start);
            }
            *held_rows = rows;
            held.clear();
            held.extend_from_slice(record);
            place
        };
        self.places.insert(first_row, place);
        place
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_is_found_in_the_chunk_that_was_read_last() {
        let mut held = HeldChunks::default();
        for first in 0..NUM_HELD as u32 {
            held.put(10 * first..10 * first + 9, &[first as u8]);
        }
        assert_eq!(held.find(9), None);
        let place = held.find(2_558).map(|place| held.get(place));
        assert_eq!(place, Some((2_550, &[255][..])));
        // After chunks are joined, a row can be in two records, which agree.
        held.put(0..30, b"joined");
        assert_eq!(held.find(25).map(|place| held.get(place).0), Some(20));
        assert_eq!(
            held.find(9).map(|place| held.get(place).1),
            Some(&b"joined"[..])
        );
        for first in 1_000..1_000 + NUM_HELD as u32 {
            held.put(10 * first..10 * first + 10, &[]);
        }
        assert_eq!(held.find(9), None);
        assert_eq!(held.places.len(), NUM_HELD);
    }
}
