//! Are the files at the path of an open store still its own?
//!
//! SQLite continues to use the files that it opened, whatever their names refer to. So a store whose directory was
//! deleted, moved, linked to another one or restored from a snapshot would acknowledge documents that are never found
//! again, and new connections would open another database. Therefore names are compared with the open files at each
//! commit, when a connection is opened, and when a reader refreshes. Nothing inside a file could reveal this: a
//! snapshot copies it.

use likewise_core::parallel::lock;
use std::io;
use std::path::{Path, PathBuf, absolute};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock};
use std::time::SystemTime;

use super::database::DATABASE_NAME;
use crate::environment::{Facts, Files};
use crate::error::{Doing, Error, Result};

/// Suffix of a log that no longer belongs to any database.
const SET_ASIDE: &str = ".replaced";

/// The state of the database file after the last checkpoint of its writer. Nothing else changes that file.
#[derive(Debug)]
struct Content {
    /// Its modification time and size; `None` if they are unknown, and in a reader, which does not see the checkpoints.
    known: Option<(Option<SystemTime>, u64)>,
    is_writer: bool,
    /// In a reader, the same at the last check, and whether the file has changed since [`Watch::take_touched`].
    seen: (Option<SystemTime>, u64),
    is_touched: bool,
    /// Number of running checkpoints: while there are any, nothing is compared.
    num_running: u32,
}

/// The open files of a store's connections, shared by all of them.
#[derive(Debug)]
pub(super) struct Watch {
    files: Arc<dyn Files>,
    /// The path of the database as the caller gave it, which may lead through links.
    given: PathBuf,
    path: PathBuf,
    database: Facts,
    /// The log and its shared memory, if they exist.
    beside: Vec<(PathBuf, Facts)>,
    content: Mutex<Content>,
    /// The first loss that was found.
    lost: OnceLock<(Replacement, String)>,
}

/// What happened to the files of an open store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Replacement {
    /// A path of the database leads to another file, or to none.
    Moved,
    /// A file next to the database is another one, or was deleted.
    Beside,
    /// The database has other bytes.
    Overwritten,
    /// The database has other contents, written through SQLite.
    Rewritten,
}

/// Device and inode, if the system reports them.
fn id(facts: &Facts) -> (u64, u64) {
    (facts.device, facts.inode)
}

/// Whether an error means that a name does not exist.
fn is_absent(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory
    )
}

impl Watch {
    /// Records the files of a database that was just opened in `dir`, to which `given` led; [`Error::Replaced`] if it
    /// is not what was there `before`.
    pub(super) fn new(
        files: &Arc<dyn Files>,
        given: &Path,
        dir: &Path,
        before: Option<Facts>,
        is_writer: bool,
    ) -> Result<Self> {
        let path = dir.join(DATABASE_NAME);
        let given = absolute(given).doing("open the directory")?;
        let stamp = files.stamp(&path).doing("open the database")?;
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

    /// Compares the names with the open files; [`Error::Replaced`], for good, if they differ.
    pub(super) fn check(&self) -> Result<()> {
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

    /// Whether the database has changed since the previous call, usually by a checkpoint.
    pub(super) fn take_touched(&self) -> bool {
        std::mem::take(&mut self.content().is_touched)
    }

    /// The loss that was found, if any.
    pub(super) fn loss(&self) -> Option<Replacement> {
        self.lost.get().map(|(loss, _)| *loss)
    }

    fn check_database(&self, path: &Path) -> Result<()> {
        // Held while the file is checked, so that no checkpoint changes it in between.
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
        lock(&self.content)
    }

    /// Runs a checkpoint, which changes the database.
    pub(super) fn checkpoint<T>(&self, bring_in: impl FnOnce() -> Result<T>) -> Result<T> {
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

    /// Records a loss for every connection of the store, and returns it as an error.
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

    /// Whether the path that connections open leads to the open database.
    fn has_database(&self) -> bool {
        let now = self.files.facts(&self.path);
        now.is_ok_and(|now| id(&now) == id(&self.database))
    }

    /// Renames the log of another database, where the next opening would apply it; that one may have moved.
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
            // Even if this fails, this handle is lost.
            let _ = self.files.rename(path, Path::new(&name));
        }
    }
}
