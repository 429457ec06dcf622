//! Is everything present that was acknowledged?

use super::Store;
use super::database::DATABASE_NAME;
use super::mark::{self, Loss, Mark, MarkFile, Reached};
use super::types::{ClockTime, Durability, Position};
use crate::error::Result;

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
            mark::forget(self.environment.files.as_ref(), &self.dir)?;
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
        mark::read(
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
