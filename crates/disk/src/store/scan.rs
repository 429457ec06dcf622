//! What is stored about all documents, in order?

use likewise_core::parallel::Cancel;
use std::collections::HashSet;
use std::ops::Range;
use std::sync::atomic::AtomicBool;

use super::Store;
use super::contents::Contents;
use super::database::{self, CHANGES_TALLY};
use super::decode::View;
use super::events::{Change, ChangesTally, decode_change};
use super::read::{blob, misplaced, range_of};
use super::types::{Changed, Chunk, Content, Position};
use crate::error::{Error, Result};

/// Number of rows that are read in one state of the store, so that the log can restart.
const ROWS_A_STATE: u32 = 1 << 16;

impl Store {
    /// Passes the chunks that hold any of the rows to `each`, in order and from one state, which is returned. From row
    /// 0 on, first checks that no change was lost; of all rows, also that no chunk is outdated. The log grows
    /// meanwhile.
    pub fn scan(
        &self,
        rows: Range<u32>,
        mut each: impl FnMut(&Chunk) -> Result<()>,
    ) -> Result<Position> {
        self.read_together(|store| {
            let position = store.read_position()?;
            let end = rows.end.min(position.num_rows);
            if rows.start >= end {
                return Ok(position);
            }
            if rows.start == 0 {
                // Callers that scan the store in parts begin here.
                store.check_changes()?;
            }
            let num_dropped = store.scan_chunks(rows.start..end, position, &mut each)?;
            let is_whole = rows.start == 0 && end == position.num_rows;
            match is_whole && num_dropped != store.read_droppings()?.num_records {
                true => Err(misplaced("one of the chunks", "")),
                false => Ok(position),
            }
        })
    }

    /// Checks that the changes are those that were written: losing one would undo a removal or a reassignment.
    pub fn check_changes(&self) -> Result<()> {
        self.changes(|_| Ok(()))
    }

    /// Scans existing rows; returns how many documents of the chunks no longer have a record.
    fn scan_chunks(
        &self,
        rows: Range<u32>,
        position: Position,
        each: &mut impl FnMut(&Chunk) -> Result<()>,
    ) -> Result<u64> {
        let sketch_bytes = self.description.sketch_bytes as usize;
        let begin: Option<u32> = database::value(
            &self.connection,
            "SELECT max(first_row) FROM chunks WHERE first_row <= ?1",
            [rows.start],
        )?;
        let begin = begin.ok_or_else(|| misplaced("row", rows.start))?;
        let mut statement = self.statement(
                "SELECT first_row, num_rows, data FROM chunks WHERE first_row >= ?1 AND first_row < ?2 ORDER BY first_row",
            )?;
        let mut found = statement.query([begin, rows.end])?;
        let mut changes =
            self.statement("SELECT row, data FROM changes WHERE row >= ?1 ORDER BY row")?;
        let mut changes = changes.query([begin])?;
        let mut next_change = next_change(&mut changes)?;
        let mut next_row = begin;
        let mut num_dropped = 0;
        while let Some(row) = found.next()? {
            let (first_row, num_rows) = range_of(row)?;
            if first_row != next_row {
                return Err(misplaced("chunk", first_row));
            }
            let view = View::new(blob(row, 2)?, first_row, sketch_bytes)?;
            if view.num_rows != num_rows {
                return Err(misplaced("chunk", first_row));
            }
            let end = first_row + num_rows;
            next_row = end;
            num_dropped += u64::from(num_rows) - view.num_documents as u64;
            let mut chunk = view.unpack()?;
            self.expire_and_correct(&mut chunk, position);
            while let Some((row, change)) = next_change.filter(|(row, _)| *row < end) {
                // A record is dropped together with its change.
                let place = chunk.rows.binary_search(&row);
                let place = place.map_err(|_| misplaced("the document of change", row))?;
                chunk.gone[place] |= change.is_gone;
                if let Some(verdict) = change.verdict {
                    chunk.verdicts[place] = verdict;
                }
                next_change = self::next_change(&mut changes)?;
            }
            each(&chunk)?;
        }
        match next_row >= rows.end {
            true => Ok(num_dropped),
            false => Err(misplaced("row", rows.end - 1)),
        }
    }

    /// Notes which documents of a chunk have expired, and corrects their arrival times.
    fn expire_and_correct(&self, chunk: &mut Chunk, position: Position) {
        let num_expired = chunk
            .rows
            .partition_point(|&row| row < position.expired_below);
        chunk.gone[..num_expired].fill(true);
        if self.shift.is_some() {
            for (&row, arrival_s) in chunk.rows.iter().zip(&mut chunk.arrivals_s) {
                *arrival_s = self.corrected(row, *arrival_s);
            }
        }
    }

    /// Passes the feature sets or texts of rows to `each`, in order and from one state, skipping rows without any.
    pub fn scan_contents(
        &self,
        rows: Range<u32>,
        mut each: impl FnMut(u32, Content) -> Result<()>,
    ) -> Result<()> {
        self.scan(rows.clone(), |chunk| {
            let span = chunk.span.clone();
            let asked = span.start.max(rows.start)..span.end.min(rows.end);
            // Missing contents are detected before later ones are passed on.
            let none_lost = |rows: Range<u32>| {
                let place_of = |row: u32| chunk.rows.partition_point(|&other| other < row);
                let mut places = place_of(rows.start)..place_of(rows.end);
                match places.find(|&place| chunk.has_content[place] && !chunk.gone[place]) {
                    Some(place) => Err(misplaced("content of row", chunk.rows[place])),
                    None => Ok(()),
                }
            };
            let mut next = asked.start;
            self.scan_blocks(asked.clone(), &mut |row, content| {
                if row < next {
                    return Err(misplaced("content of row", row));
                }
                none_lost(next..row)?;
                next = row + 1;
                each(row, content)
            })?;
            none_lost(next..asked.end)
        })
        .map(|_| ())
    }

    fn scan_blocks(
        &self,
        rows: Range<u32>,
        each: &mut dyn FnMut(u32, Content) -> Result<()>,
    ) -> Result<()> {
        let mut statement = self.statement(
                "SELECT first_row, num_rows, data FROM contents WHERE first_row < ?2 AND first_row >= \
                 coalesce((SELECT max(first_row) FROM contents WHERE first_row <= ?1), 0) ORDER BY first_row",
            )?;
        let mut found = statement.query([rows.start, rows.end])?;
        while let Some(row) = found.next()? {
            let (first_row, num_rows) = range_of(row)?;
            if first_row + num_rows <= rows.start {
                continue;
            }
            let contents = Contents::new(blob(row, 2)?, first_row)?;
            if contents.num_rows != num_rows {
                return Err(misplaced("block", first_row));
            }
            for row in contents.rows().filter(|row| rows.contains(row)) {
                if let Some(content) = contents.get(row)? {
                    each(row, content)?;
                }
            }
        }
        Ok(())
    }

    /// Passes how events changed documents to `each`, by row, and checks that no change was lost.
    pub fn changes(&self, mut each: impl FnMut(Changed) -> Result<()>) -> Result<()> {
        self.read_together(|store| {
            let stored = store.changes_tally()?;
            let mut found = ChangesTally {
                last_event: stored.last_event,
                ..ChangesTally::default()
            };
            let mut statement = store.statement("SELECT row, data FROM changes ORDER BY row")?;
            let mut rows = statement.query([])?;
            while let Some(found_row) = rows.next()? {
                let row: u32 = found_row.get(0)?;
                let record = blob(found_row, 1)?;
                found.add(record);
                let change = decode_change(record, row)?;
                each(Changed {
                    row,
                    is_gone: change.is_gone,
                    verdict: change.verdict,
                })?;
            }
            match found == stored {
                true => Ok(()),
                false => Err(misplaced("one of the changes", "")),
            }
        })
    }

    /// Returns how many documents of a range have records, including gone ones. Cost: a read of their chunks.
    pub fn num_records(&self, rows: Range<u32>) -> Result<u32> {
        let mut num_records = 0;
        self.scan(rows.clone(), |chunk| {
            num_records += chunk.rows.iter().filter(|row| rows.contains(row)).count() as u32;
            Ok(())
        })?;
        Ok(num_records)
    }

    /// Returns the rows below `bound` that live documents from it on name as their match, reading in parts.
    pub fn leaders_below(&self, bound: u32, cancel: &AtomicBool) -> Result<HashSet<u32>> {
        let mut leaders = HashSet::new();
        let mut next = bound;
        while next < self.position.num_rows {
            let mut num_seen = 0;
            let end = next.saturating_add(ROWS_A_STATE);
            self.scan(next..end, |chunk| {
                cancel.check()?;
                num_seen = chunk.span.end;
                for (&is_gone, verdict) in chunk.gone.iter().zip(&chunk.verdicts) {
                    if let Some(evidence) = verdict.filter(|_| !is_gone)
                        && evidence.kept_row < bound
                    {
                        leaders.insert(evidence.kept_row);
                    }
                }
                Ok(())
            })?;
            next = end.max(num_seen);
        }
        Ok(leaders)
    }

    /// Returns the tally of all records of changes.
    pub(super) fn changes_tally(&self) -> Result<ChangesTally> {
        Ok(ChangesTally::decode(&self.needed(CHANGES_TALLY)?)?)
    }

    /// Returns findings about the database, none if it is intact: SQLite's `quick_check`; with `full`,
    /// `integrity_check`, and every record with its checksum and order.
    pub fn check(&self, full: bool, cancel: &AtomicBool) -> Result<Vec<String>> {
        let mut findings = Vec::new();
        let mut note = |result: Result<()>| match result {
            Err(Error::Damaged { reason }) => {
                findings.push(reason);
                Ok(())
            }
            other => other,
        };
        for table in [
            "meta", "segments", "changes", "events", "chunks", "contents",
        ] {
            cancel.check()?;
            note(self.check_pages(table, full))?;
        }
        if !full {
            return Ok(findings);
        }
        // Upkeep drops old events concurrently, so both must be read from one state.
        note(self.read_together(|store| {
            let num_old = store.num_old_events()?;
            store.events(num_old, |_, _| Ok(cancel.check()?))
        }))?;
        note(self.scan(0..u32::MAX, |_| Ok(cancel.check()?)).map(|_| ()))?;
        note(self.scan_contents(0..u32::MAX, |_, _| Ok(cancel.check()?)))?;
        note(self.segments().map(|_| ()))?;
        note(self.check_ends())?;
        Ok(findings)
    }

    fn check_pages(&self, table: &str, full: bool) -> Result<()> {
        let name = if full {
            "integrity_check"
        } else {
            "quick_check"
        };
        let mut reasons = self
            .connection
            .prepare(&format!("PRAGMA {name}({table})"))
            .and_then(|mut statement| {
                statement
                    .query_map([], |row| row.get::<_, String>(0))?
                    .collect::<Result<Vec<_>, _>>()
            })?;
        reasons.retain(|reason| reason != "ok");
        match reasons.is_empty() {
            true => Ok(()),
            false => Err(Error::Damaged {
                reason: format!("{table}: {}", reasons.join("; ")),
            }),
        }
    }
}

fn next_change(rows: &mut rusqlite::Rows<'_>) -> Result<Option<(u32, Change)>> {
    match rows.next()? {
        Some(found) => {
            let row: u32 = found.get(0)?;
            Ok(Some((row, decode_change(blob(found, 1)?, row)?)))
        }
        None => Ok(None),
    }
}
