//! How far does a file outside the database show that the store had reached?
//!
//! SQLite takes the first incomplete frame of its log as the end, since power loss leaves such ends. Damage before the
//! end looks the same, and the batches after it would be lost silently. So each commit records in a small file how far
//! the store reaches. The file is never synced, so after a power loss it may be older than the log, or absent: a mark
//! behind the database proves nothing, a mark ahead of it proves a loss.
//!
//! A mark holds the last committed and the last synced position. The first proves a loss only within one boot of the
//! machine, the second always.

use std::io::ErrorKind::{NotFound, PermissionDenied, UnexpectedEof};
use std::ops::Range;
use std::path::Path;
use std::{fmt, io};

use super::Store;
use super::bytes::{Cursor, Malformed, begin, open, seal};
use super::clock::{put_time, take_time};
use super::database::DATABASE_NAME;
use super::types::{ClockTime, Durability, Position};
use crate::environment::{Facts, Files, OpenFile};
use crate::error::{Doing, Error, Result};

const MARK_NAME: &str = "documents.mark";
/// Distance between the two slots, which are written alternately: a torn write damages only one.
const SLOT_BYTES: u64 = 4096;
/// Size of the record in a slot, in bytes.
const RECORD_BYTES: usize = 152;

/// How far the store reached.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Reached {
    pub(super) position: Position,
    /// Identity of the batch of the last row; 0 if unknown.
    pub(super) batch: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Mark {
    /// The synced state, which survives a power loss.
    pub(super) synced: Reached,
    /// The committed state, which survives as long as the machine runs, even if the process dies.
    pub(super) committed: Reached,
    /// The boot of the machine during which that was.
    pub(super) boot_id: u128,
    /// The arrival time of the last batch, and the machine's uptime then; 0 with boot id 0 if unknown.
    pub(super) arrived: ClockTime,
}

/// What was acknowledged and is missing from the database.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Loss {
    /// Lost documents in order of arrival, counted from 0.
    pub rows: Range<u32>,
    /// Lost removals, counted from 1.
    pub events: Range<u64>,
}

impl fmt::Display for Loss {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.rows.is_empty(), self.events.is_empty()) {
            (false, _) => write!(
                f,
                "{} documents (number {} to {} in order of arrival)",
                self.rows.len(),
                self.rows.start + 1,
                self.rows.end
            )?,
            (true, true) => f.write_str("documents of another history")?,
            (true, false) => {}
        }
        if !self.events.is_empty() {
            write!(
                f,
                "{}{} removals (number {} to {})",
                if self.rows.is_empty() { "" } else { " and " },
                self.events.end - self.events.start,
                self.events.start,
                self.events.end - 1
            )?;
        }
        Ok(())
    }
}

impl Loss {
    /// Returns the error for callers that have not accepted the loss.
    pub(super) fn error(&self) -> Error {
        Error::Damaged {
            reason: format!(
                "the database or its log is damaged: {self} were acknowledged and are lost. Restore a snapshot, or continue without them with \
                 accept_loss=True (likewise index verify --accept-loss)"
            ),
        }
    }
}

/// The files that a mark belongs to; in a copy of the directory, the names refer to others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Bound {
    identity: [u8; 16],
    device: u64,
    database: u64,
    mark: u64,
}

impl Bound {
    fn of(identity: [u8; 16], database: Facts, mark: Facts) -> Self {
        Bound {
            identity,
            device: database.device,
            database: database.inode,
            mark: mark.inode,
        }
    }
}

#[derive(Debug)]
pub(super) struct MarkFile {
    file: Box<dyn OpenFile>,
    bound: Bound,
    number: u64,
    record: Vec<u8>,
}

impl MarkFile {
    /// Opens the mark of a database for writing, or returns `None` without permission.
    pub(super) fn open(
        files: &dyn Files,
        dir: &Path,
        database: &Path,
        identity: [u8; 16],
    ) -> Result<Option<Self>> {
        let wrong = |error| Error::io("open the mark of the index", error);
        let file = match files.open_to_write(&dir.join(MARK_NAME)) {
            Ok(file) => file,
            Err(error) if error.kind() == PermissionDenied => return Ok(None),
            Err(error) => return Err(wrong(error)),
        };
        let facts = files.facts(database).map_err(wrong)?;
        let bound = Bound::of(identity, facts, file.facts().map_err(wrong)?);
        let number = newest(file.as_ref())
            .map_err(wrong)?
            .map_or(0, |(number, ..)| number.wrapping_add(1));
        Ok(Some(MarkFile {
            file,
            bound,
            number,
            record: Vec::with_capacity(RECORD_BYTES),
        }))
    }

    /// Overwrites the older slot; errors are ignored, since a mark that is behind proves nothing.
    pub(super) fn write(&mut self, mark: &Mark) {
        encode(&mut self.record, self.number, &self.bound, mark);
        let offset = SLOT_BYTES * (self.number % 2);
        let _ = self.file.write_all_at(&self.record, offset);
        self.number = self.number.wrapping_add(1);
    }
}

/// Returns the newest complete mark, and whether it belongs to this file or a copy; errors must not be ignored.
pub(super) fn read(
    files: &dyn Files,
    dir: &Path,
    database: &Path,
    identity: [u8; 16],
) -> Result<Option<(Mark, bool)>> {
    let wrong = |error| Error::io("read the mark of the index", error);
    let file = match files.open(&dir.join(MARK_NAME)) {
        Ok(file) => file,
        Err(error) if matches!(error.kind(), NotFound | PermissionDenied) => return Ok(None),
        Err(error) => return Err(wrong(error)),
    };
    let facts = files.facts(database).map_err(wrong)?;
    let bound = Bound::of(identity, facts, file.facts().map_err(wrong)?);
    let newest = newest(file.as_ref()).map_err(wrong)?;
    Ok(newest.and_then(|(_, found, mark)| {
        (found.identity == identity).then_some((mark, found == bound))
    }))
}

/// Deletes the mark, durably.
pub(super) fn forget(files: &dyn Files, dir: &Path) -> Result<()> {
    match files.unlink(&dir.join(MARK_NAME)) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(Error::io("delete the mark of the index", error))
        }
        _ => files.sync_dir(dir).doing("sync the directory"),
    }
}

fn newest(file: &dyn OpenFile) -> io::Result<Option<(u64, Bound, Mark)>> {
    let mut found = Vec::new();
    for slot in 0..2 {
        let mut record = [0; RECORD_BYTES];
        match file.read_exact_at(&mut record, SLOT_BYTES * slot) {
            Ok(()) => found.extend(decode(&record).ok()),
            Err(error) if error.kind() == UnexpectedEof => {}
            Err(error) => return Err(error),
        }
    }
    Ok(found.into_iter().max_by_key(|&(number, ..)| number))
}

fn encode(out: &mut Vec<u8>, number: u64, bound: &Bound, mark: &Mark) {
    begin(out);
    out.extend_from_slice(&number.to_le_bytes());
    out.extend_from_slice(&bound.identity);
    for part in [bound.device, bound.database, bound.mark] {
        out.extend_from_slice(&part.to_le_bytes());
    }
    for reached in [&mark.synced, &mark.committed] {
        let Position {
            num_rows,
            last_event,
            expired_below,
        } = reached.position;
        out.extend_from_slice(&num_rows.to_le_bytes());
        out.extend_from_slice(&expired_below.to_le_bytes());
        out.extend_from_slice(&last_event.to_le_bytes());
        out.extend_from_slice(&reached.batch.to_le_bytes());
    }
    out.extend_from_slice(&mark.boot_id.to_le_bytes());
    put_time(out, &mark.arrived);
    seal(out, 0);
}

fn decode(record: &[u8]) -> Result<(u64, Bound, Mark), Malformed> {
    let mut cursor = Cursor(open(record, 0)?);
    let number = cursor.u64()?;
    let identity = cursor.u128()?.to_le_bytes();
    let bound = Bound {
        identity,
        device: cursor.u64()?,
        database: cursor.u64()?,
        mark: cursor.u64()?,
    };
    let mut reached = || -> Result<Reached, Malformed> {
        let rows = cursor.u64()?;
        Ok(Reached {
            position: Position {
                num_rows: rows as u32,
                expired_below: (rows >> 32) as u32,
                last_event: cursor.u64()?,
            },
            batch: cursor.u64()?,
        })
    };
    let (synced, committed) = (reached()?, reached()?);
    let mark = Mark {
        synced,
        committed,
        boot_id: cursor.u128()?,
        arrived: take_time(&mut cursor)?,
    };
    Ok((number, bound, mark))
}

impl Store {
    /// Checks that nothing acknowledged is missing, by the mark, even while a writer is active.
    pub fn check_loss(&self) -> Result<()> {
        // The mark is read first: what it records was committed before, so it is part of any state read later.
        match self.loss_by(self.read_mark()?)? {
            Some(loss) => Err(loss.error()),
            None => Ok(()),
        }
    }

    /// Accepts the current state of the database; returns what was lost.
    pub(super) fn accept_loss(&mut self) -> Result<Option<Loss>> {
        let loss = self.loss_by(self.read_mark()?)?;
        if loss.is_some() {
            if let Some(writer) = &mut self.writer {
                writer.marking = None;
            }
            // Durably: after a power loss, an old mark would prove the same loss again.
            forget(self.environment.files.as_ref(), &self.dir)?;
            self.begin_marking()?;
        }
        self.mark_synced();
        Ok(loss)
    }

    pub(super) fn read_mark(&self) -> Result<Option<Mark>> {
        let found = self.read_any_mark()?;
        Ok(found.and_then(|(mark, is_own)| is_own.then_some(mark)))
    }

    fn read_any_mark(&self) -> Result<Option<(Mark, bool)>> {
        let database = self.dir.join(DATABASE_NAME);
        read(
            self.environment.files.as_ref(),
            &self.dir,
            &database,
            self.identity,
        )
    }

    /// Returns what a copy lacks by the mark of its original: no loss, since files may be from different moments.
    pub(super) fn loss_of_copy(&self) -> Result<Option<Loss>> {
        match self.read_any_mark()? {
            Some((mark, false)) => self.loss_by(Some(mark)),
            _ => Ok(None),
        }
    }

    fn loss_by(&self, mark: Option<Mark>) -> Result<Option<Loss>> {
        let Some(mark) = mark else {
            return Ok(None);
        };
        let boot_id = self.environment.clock.uptime().boot_id;
        let position = self.read_position()?;
        let reached = match mark.boot_id == boot_id {
            // What was written survives as long as the machine runs.
            true => mark.committed,
            false => mark.synced,
        };
        let past = reached.position;
        let is_missing = past.num_rows > position.num_rows
            || past.last_event > position.last_event
            || past.expired_below > position.expired_below;
        // If chunks were joined since, the batch cannot be found, and proves nothing.
        let is_other = !is_missing
            && reached.batch != 0
            && self
                .batch_before(past.num_rows)?
                .is_some_and(|batch| batch != reached.batch);
        Ok((is_missing || is_other).then(|| Loss {
            rows: position.num_rows..past.num_rows.max(position.num_rows),
            events: position.last_event + 1..past.last_event.max(position.last_event) + 1,
        }))
    }

    /// Starts to write the mark, from the state that the store shows.
    pub(super) fn begin_marking(&mut self) -> Result<()> {
        let batch = self.batch_before(self.position.num_rows)?.unwrap_or(0);
        let committed = Reached {
            position: self.position,
            batch,
        };
        let before = self.read_mark()?;
        let database = self.dir.join(DATABASE_NAME);
        let files = self.environment.files.as_ref();
        let file = MarkFile::open(files, &self.dir, &database, self.identity)?;
        let boot_id = self.environment.clock.uptime().boot_id;
        if let Some(writer) = &mut self.writer {
            writer.marking = file.map(|file| Marking {
                file,
                mark: Mark {
                    synced: before.map_or(Reached::default(), |before| before.synced),
                    committed,
                    boot_id,
                    arrived: before.map_or(ClockTime::default(), |before| before.arrived),
                },
            });
        }
        Ok(())
    }

    /// Records how far the database had reached before its log, which is synced first, was checkpointed: a log that
    /// leads to an older state was damaged, and every later opening can tell.
    pub(super) fn mark_reached(&mut self, reached: Position) {
        let is_ahead = reached.num_rows > self.position.num_rows
            || reached.last_event > self.position.last_event;
        if is_ahead {
            self.mark(|mark, _, _| {
                let past = mark.committed.position;
                let position = Position {
                    num_rows: past.num_rows.max(reached.num_rows),
                    last_event: past.last_event.max(reached.last_event),
                    ..past
                };
                mark.committed = Reached { position, batch: 0 };
                mark.synced = mark.committed;
            });
        }
    }

    /// Records that the state of the store is committed, with the identity of the last batch if that is a new one.
    pub(super) fn mark_committed(&mut self, batch: Option<u64>) {
        let position = self.position;
        let uptime = self.environment.clock.uptime();
        self.mark(|mark, is_synced, unix_s| {
            mark.boot_id = uptime.boot_id;
            mark.committed.position = position;
            if let Some(batch) = batch {
                mark.committed.batch = batch;
                mark.arrived = ClockTime { unix_s, uptime };
            }
            if is_synced {
                mark.synced = mark.committed;
            }
        });
    }

    /// Records that the state of the store is safe from power loss.
    pub(super) fn mark_synced(&mut self) {
        self.mark(|mark, _, _| mark.synced = mark.committed);
    }

    /// The arrival time of the last batch, if the mark records it.
    pub fn last_arrival(&self) -> Option<ClockTime> {
        let marking = self.writer.as_ref()?.marking.as_ref()?;
        let arrived = marking.mark.arrived;
        (arrived != ClockTime::default()).then_some(arrived)
    }

    fn mark(&mut self, set: impl FnOnce(&mut Mark, bool, u64)) {
        if let Some(writer) = &mut self.writer
            && let Some(marking) = &mut writer.marking
        {
            let syncs = writer.durability == Durability::Commit;
            set(&mut marking.mark, syncs, writer.last_arrival_s);
            marking.file.write(&marking.mark);
        }
    }
}

#[derive(Debug)]
pub(super) struct Marking {
    file: MarkFile,
    mark: Mark,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::environment::Uptime;

    #[test]
    fn marks_come_back() {
        let reached = |num_rows| Reached {
            position: Position {
                num_rows,
                last_event: 1 << 40,
                expired_below: num_rows / 2,
            },
            batch: u64::MAX - 1,
        };
        let mark = Mark {
            synced: reached(7),
            committed: reached(u32::MAX),
            boot_id: 1 << 100,
            arrived: ClockTime {
                unix_s: 5,
                uptime: Uptime::default(),
            },
        };
        let bound = Bound {
            identity: [9; 16],
            device: 1,
            database: 2,
            mark: 3,
        };
        let mut record = Vec::new();
        encode(&mut record, 11, &bound, &mark);
        assert_eq!(record.len(), RECORD_BYTES);
        assert_eq!(decode(&record), Ok((11, bound, mark)));
        record[50] ^= 1;
        assert!(decode(&record).is_err());
    }

    #[test]
    fn a_loss_is_told_in_numbers_of_documents_and_removals() {
        let loss = |rows, events| Loss { rows, events }.to_string();
        assert_eq!(
            loss(5..7, 3..3),
            "2 documents (number 6 to 7 in order of arrival)"
        );
        assert_eq!(loss(5..5, 3..5), "2 removals (number 3 to 4)");
        assert!(loss(5..7, 3..5).ends_with("arrival) and 2 removals (number 3 to 4)"));
        assert_eq!(loss(5..5, 3..3), "documents of another history");
    }
}
