//! Are the files at the path of an open store still its own?
//!
//! SQLite goes on with the files that it opened, whatever their names name by now. So a store whose directory was deleted, moved, linked to another one or
//! restored from a snapshot would acknowledge documents that nobody finds again, and new connections would open another database. Names are therefore
//! compared with the files that were opened, at each commit, at each opening of a connection and whenever a reader follows.
//! Nothing inside a file could tell: a snapshot copies it.

use std::io;
use std::path::{Path, PathBuf, absolute};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::SystemTime;

use super::database::DATABASE_NAME;
use crate::environment::{Facts, Files};
use crate::error::Error;

/// What the name of a log that belongs to no database any more ends with.
const SET_ASIDE: &str = ".replaced";

/// What the last checkpoint of a store that is written left of its database. Nothing else changes that file.
#[derive(Debug)]
struct Content {
    /// When it was changed last, and its bytes; nothing where that could not be asked, and in a reader, which does not see the checkpoints.
    known: Option<(Option<SystemTime>, u64)>,
    is_writer: bool,
    /// In a reader: the same when it was looked at last, and whether it has been changed since [`Watch::take_touched`].
    seen: (Option<SystemTime>, u64),
    is_touched: bool,
    /// Checkpoints in progress: while there are any, nothing is compared.
    num_running: u32,
}

/// The files that the connections of a store have open; shared by all of them.
#[derive(Debug)]
pub(super) struct Watch {
    files: Arc<dyn Files>,
    /// The database by the path that the caller gave, which may lead through links.
    given: PathBuf,
    /// The database by the path that connections open.
    path: PathBuf,
    database: Facts,
    /// The log and its shared memory, where there are any.
    beside: Vec<(PathBuf, Facts)>,
    content: Mutex<Content>,
    /// What was found first.
    lost: OnceLock<(Replacement, String)>,
}

/// What happened to the files of an open store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Replacement {
    /// A path of the database leads to another file, or to none.
    Moved,
    /// A file next to the database is another one, or deleted.
    Beside,
    /// The database has other bytes.
    Overwritten,
    /// The database has other contents, by the means of SQLite.
    Rewritten,
}

/// Device and inode, where the system has them.
fn id(facts: &Facts) -> (u64, u64) {
    (facts.device, facts.inode)
}

/// Whether an error says that a name leads to nothing.
fn is_absent(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory
    )
}

impl Watch {
    /// Notes the files of a database that was just opened by `dir`, to which `given` led. It was `before` before it was opened, if there was one.
    ///
    /// # Errors
    /// [`Error::Replaced`] if it is another file now; [`Error::Io`].
    pub(super) fn new(
        files: &Arc<dyn Files>,
        given: &Path,
        dir: &Path,
        before: Option<Facts>,
        is_writer: bool,
    ) -> Result<Self, Error> {
        let path = dir.join(DATABASE_NAME);
        let given = absolute(given).map_err(|e| Error::io("open the directory", e))?;
        let stamp = files
            .stamp(&path)
            .map_err(|e| Error::io("open the database", e))?;
        let beside = ["-wal", "-shm"].iter().filter_map(|ending| {
            let path = dir.join(format!("{DATABASE_NAME}{ending}"));
            let facts = files.facts(&path).ok()?;
            Some((path, facts))
        });
        let watch = Watch {
            beside: beside.collect(),
            files: Arc::clone(files),
            given: given.join(DATABASE_NAME),
            path,
            database: stamp.facts,
            content: Mutex::new(Content {
                known: is_writer.then_some((stamp.modified, stamp.facts.num_bytes)),
                is_writer,
                seen: (stamp.modified, stamp.facts.num_bytes),
                is_touched: false,
                num_running: 0,
            }),
            lost: OnceLock::new(),
        };
        if before.is_some_and(|before| id(&before) != id(&stamp.facts)) {
            return Err(watch.lose(
                Replacement::Moved,
                "the database was replaced while it was being opened",
            ));
        }
        watch.check()?;
        Ok(watch)
    }

    /// Compares the names with the files that are open. What is found once stays found.
    ///
    /// # Errors
    /// [`Error::Replaced`].
    pub(super) fn check(&self) -> Result<(), Error> {
        if let Some((_, reason)) = self.lost.get() {
            return Err(Error::Replaced {
                reason: reason.clone(),
            });
        }
        self.check_database(&self.given)?;
        if self.path != self.given {
            self.check_database(&self.path)?;
        }
        for (path, facts) in &self.beside {
            let what = match self.files.facts(path) {
                Ok(now) if id(&now) == id(facts) => continue,
                Ok(_) => "replaced",
                Err(error) if is_absent(&error) => "deleted",
                Err(error) => return Err(Error::io("look at the database", error)),
            };
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            let what = format!("{name} was {what} while the index was open");
            return Err(self.lose(Replacement::Beside, &what));
        }
        Ok(())
    }

    /// Whether the database was changed since this was asked last: by a checkpoint, as a rule.
    pub(super) fn take_touched(&self) -> bool {
        std::mem::take(&mut self.content().is_touched)
    }

    /// What was found, if anything was.
    pub(super) fn loss(&self) -> Option<Replacement> {
        self.lost.get().map(|(loss, _)| *loss)
    }

    fn check_database(&self, path: &Path) -> Result<(), Error> {
        // Held while the file is looked at: a checkpoint does not change it in between.
        let mut content = self.content();
        let stamp = match self.files.stamp(path) {
            Ok(stamp) => stamp,
            Err(error) if is_absent(&error) => {
                return Err(self.lose(
                    Replacement::Moved,
                    "the database was deleted or moved while the index was open",
                ));
            }
            Err(error) => return Err(Error::io("look at the database", error)),
        };
        if id(&stamp.facts) != id(&self.database) {
            return Err(self.lose(
                Replacement::Moved,
                "the path of the index now refers to a different database than the open one",
            ));
        }
        let now = (stamp.modified, stamp.facts.num_bytes);
        content.is_touched |= content.seen != now;
        content.seen = now;
        match content.known {
            Some(known) if content.num_running == 0 && known != now => Err(self.lose(
                Replacement::Overwritten,
                "the database was overwritten while the index was open",
            )),
            _ => Ok(()),
        }
    }

    fn content(&self) -> MutexGuard<'_, Content> {
        self.content.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Runs a checkpoint, which changes the database.
    ///
    /// # Errors
    /// Those of [`Watch::check`], before the checkpoint, and those of `bring_in`.
    pub(super) fn checkpoint<T>(
        &self,
        bring_in: impl FnOnce() -> Result<T, Error>,
    ) -> Result<T, Error> {
        self.check()?;
        self.content().num_running += 1;
        let result = bring_in();
        let mut content = self.content();
        content.num_running -= 1;
        if content.is_writer {
            let stamp = self.files.stamp(&self.path);
            content.known = stamp
                .ok()
                .map(|stamp| (stamp.modified, stamp.facts.num_bytes));
        }
        result
    }

    /// Notes what is wrong, for every connection of the store, and gives it as an error.
    pub(super) fn lose(&self, loss: Replacement, what: &str) -> Error {
        let (_, reason) = self.lost.get_or_init(|| {
            let reason = format!(
                "{what}, so nothing more is read or written; close the index and open it again"
            );
            (loss, reason)
        });
        Error::Replaced {
            reason: reason.clone(),
        }
    }

    /// Whether the path that connections open leads to the database that is open.
    fn has_database(&self) -> bool {
        let now = self.files.facts(&self.path);
        now.is_ok_and(|now| id(&now) == id(&self.database))
    }

    /// Takes the log away from a database to which it does not belong: it would be applied when that is opened next.
    ///
    /// It gets another name, since the database to which it belongs may have one too.
    pub(super) fn set_log_aside(&self) {
        let is_ours = |(path, facts): &(PathBuf, Facts)| {
            let now = self.files.facts(path);
            now.is_ok_and(|now| id(&now) == id(facts))
        };
        let is_apart = self.loss() == Some(Replacement::Overwritten) || !self.has_database();
        if !is_apart || !self.beside.iter().all(is_ours) {
            return;
        }
        for (path, _) in &self.beside {
            let mut name = path.clone().into_os_string();
            name.push(SET_ASIDE);
            // Whatever fails here, this handle is lost all the same.
            let _ = self.files.rename(path, Path::new(&name));
        }
    }
}
