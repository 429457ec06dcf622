//! What is known of all documents, in order?

use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};

use super::Store;
use super::chunk::Chunk;
use super::contents::Contents;
use super::database::{CHANGES_TALLY, wrong};
use super::decode::View;
use super::events::{Change, ChangesTally, decode_change};
use super::read::{blob, misplaced, range_of};
use super::types::{Content, Position};
use crate::error::Error;

impl Store {
    /// Gives whole chunks in order, those that hold any of the rows, all of one state, which is returned.
    ///
    /// Where the first row is asked for, whatever the last is, it is proven first that no change was lost. Cost: about 0.1 us a document.
    /// Meanwhile the log of what is committed grows.
    ///
    /// # Errors
    /// Those of `each`, [`Error::Damaged`] and [`Error::Io`].
    pub fn scan(
        &self,
        rows: Range<u32>,
        mut each: impl FnMut(&Chunk) -> Result<(), Error>,
    ) -> Result<Position, Error> {
        self.read_together(|store| {
            let position = store.read_position()?;
            let end = rows.end.min(position.num_rows);
            if rows.start >= end {
                return Ok(position);
            }
            if rows.start == 0 {
                // Whoever goes over all of it in parts begins here.
                store.check_changes()?;
            }
            store.scan_chunks(rows.start..end, position, &mut each)?;
            Ok(position)
        })
    }

    /// That the changes are those that were written: with a lost or an older one a removal, or a document that came to another, would be undone
    /// in silence. Cost: some 0.1 us for each.
    ///
    /// # Errors
    /// [`Error::Damaged`] and [`Error::Io`].
    pub fn check_changes(&self) -> Result<(), Error> {
        self.read_together(Store::check_changes_of_a_state)
    }

    fn check_changes_of_a_state(&self) -> Result<(), Error> {
        let mut found = ChangesTally::default();
        let mut statement = self
            .connection
            .prepare_cached("SELECT data FROM changes")
            .map_err(wrong)?;
        let mut rows = statement.query([]).map_err(wrong)?;
        while let Some(row) = rows.next().map_err(wrong)? {
            found.add(blob(row, 0)?);
        }
        match found == self.changes_tally()? {
            true => Ok(()),
            false => Err(misplaced("one of the changes", "")),
        }
    }

    /// Scans rows that are there.
    fn scan_chunks(
        &self,
        rows: Range<u32>,
        position: Position,
        each: &mut impl FnMut(&Chunk) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let sketch_bytes = self.description.sketch_bytes as usize;
        let begin: Option<u32> = self
            .connection
            .prepare_cached("SELECT max(first_row) FROM chunks WHERE first_row <= ?1")
            .and_then(|mut statement| statement.query_row([rows.start], |row| row.get(0)))
            .map_err(wrong)?;
        let begin = begin.ok_or_else(|| misplaced("row", rows.start))?;
        let mut statement = self
            .connection
            .prepare_cached(
                "SELECT first_row, num_rows, data FROM chunks WHERE first_row >= ?1 AND first_row < ?2 ORDER BY first_row",
            )
            .map_err(wrong)?;
        let mut found = statement.query([begin, rows.end]).map_err(wrong)?;
        let mut changes = self
            .connection
            .prepare_cached("SELECT row, data FROM changes WHERE row >= ?1 ORDER BY row")
            .map_err(wrong)?;
        let mut changes = changes.query([begin]).map_err(wrong)?;
        let mut next_change = next_change(&mut changes)?;
        let mut next_row = begin;
        let mut chunk = Chunk::default();
        while let Some(row) = found.next().map_err(wrong)? {
            let (first_row, num_rows) = range_of(row)?;
            if first_row != next_row {
                return Err(misplaced("chunk", first_row));
            }
            let view = View::new(blob(row, 2)?, first_row, sketch_bytes)?;
            if view.num_rows != num_rows as usize {
                return Err(misplaced("chunk", first_row));
            }
            let end = first_row + num_rows;
            next_row = end;
            view.unpack(&mut chunk)?;
            for gone in chunk
                .gone
                .iter_mut()
                .take(position.expired_below.saturating_sub(first_row) as usize)
            {
                *gone = true;
            }
            while let Some((row, change)) = next_change.filter(|(row, _)| *row < end) {
                let place = (row - first_row) as usize;
                chunk.gone[place] |= change.is_gone;
                if let Some(verdict) = change.verdict {
                    chunk.verdicts[place] = verdict;
                }
                next_change = self::next_change(&mut changes)?;
            }
            if self.shift.is_some() {
                for (row, arrival_s) in (first_row..).zip(&mut chunk.arrivals_s) {
                    *arrival_s = self.corrected(row, *arrival_s);
                }
            }
            each(&chunk)?;
        }
        match next_row >= rows.end {
            true => Ok(()),
            false => Err(misplaced("row", rows.end - 1)),
        }
    }

    /// Gives feature sets or texts of rows in order; rows without any are passed over, of those that are gone some may be. All of one state.
    ///
    /// # Errors
    /// Those of `each`, [`Error::Damaged`] (also where one is not there that was kept) and [`Error::Io`].
    pub fn scan_contents(
        &self,
        rows: Range<u32>,
        mut each: impl FnMut(u32, Content) -> Result<(), Error>,
    ) -> Result<(), Error> {
        self.scan(rows.clone(), |chunk| {
            let first_row = chunk.rows().start;
            let asked = first_row.max(rows.start)..chunk.rows().end.min(rows.end);
            // What is missing is found out before what stands behind it is given.
            let none_lost = |mut rows: Range<u32>| {
                let is_lost = |row: &u32| {
                    let place = (row - first_row) as usize;
                    chunk.has_content[place] && !chunk.gone[place]
                };
                match rows.find(is_lost) {
                    Some(row) => Err(misplaced("content of row", row)),
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
        each: &mut dyn FnMut(u32, Content) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let mut statement = self
            .connection
            .prepare_cached(
                "SELECT first_row, num_rows, data FROM contents WHERE first_row < ?2 AND first_row >= \
                 coalesce((SELECT max(first_row) FROM contents WHERE first_row <= ?1), 0) ORDER BY first_row",
            )
            .map_err(wrong)?;
        let mut found = statement.query([rows.start, rows.end]).map_err(wrong)?;
        while let Some(row) = found.next().map_err(wrong)? {
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

    /// What all records of changes come to.
    pub(super) fn changes_tally(&self) -> Result<ChangesTally, Error> {
        Ok(ChangesTally::decode(&self.needed(CHANGES_TALLY)?)?)
    }

    /// Findings about the database, in words; none where all is well.
    ///
    /// Without `full` SQLite looks at the structure of its pages (`quick_check`). With it (`integrity_check`) every record is read too, its checksum
    /// proven, and their order. Cost: reading the file once, twice if `full`.
    ///
    /// # Errors
    /// [`Error::Cancelled`] and [`Error::Io`]. Damage is no error here but a finding.
    pub fn check(&self, full: bool, cancel: &AtomicBool) -> Result<Vec<String>, Error> {
        let not_cancelled = || match cancel.load(Ordering::Relaxed) {
            true => Err(Error::Cancelled),
            false => Ok(()),
        };
        let mut findings = Vec::new();
        let mut note = |result: Result<(), Error>| match result {
            Err(Error::Damaged { reason }) => {
                findings.push(reason);
                Ok(())
            }
            other => other,
        };
        for table in [
            "meta", "segments", "changes", "events", "chunks", "contents",
        ] {
            not_cancelled()?;
            note(self.check_pages(table, full))?;
        }
        if !full {
            return Ok(findings);
        }
        note(self.events(0, |_, _| not_cancelled()))?;
        note(self.scan(0..u32::MAX, |_| not_cancelled()).map(|_| ()))?;
        note(self.scan_contents(0..u32::MAX, |_, _| not_cancelled()))?;
        note(self.segments().map(|_| ()))?;
        note(self.check_ends())?;
        Ok(findings)
    }

    fn check_pages(&self, table: &str, full: bool) -> Result<(), Error> {
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
            })
            .map_err(wrong)?;
        reasons.retain(|reason| reason != "ok");
        match reasons.is_empty() {
            true => Ok(()),
            false => Err(Error::Damaged {
                reason: format!("{table}: {}", reasons.join("; ")),
            }),
        }
    }
}

fn next_change(rows: &mut rusqlite::Rows<'_>) -> Result<Option<(u32, Change)>, Error> {
    match rows.next().map_err(wrong)? {
        Some(found) => {
            let row: u32 = found.get(0).map_err(wrong)?;
            Ok(Some((row, decode_change(blob(found, 1)?, row)?)))
        }
        None => Ok(None),
    }
}
