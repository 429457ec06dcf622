//! What is stored about each document, and is it safe?
//!
//! One SQLite database, `documents.sqlite`, is the source of truth; everything that makes searches fast is derived from
//! it and may be lost. Documents are stored in chunks, packed column by column, rather than one per row, so that a
//! batch costs a few inserts and a document a few bytes in addition to its data. The data of a document in a chunk
//! never changes; the effects of removals and expiry are stored separately. Chunks are joined, and the records of gone
//! documents are dropped from them. A chunk still covers its dropped rows, so that each row belongs to one chunk.

mod bytes;
mod clock;
mod compact;
mod contents;
mod copy;
mod database;
mod decode;
mod encode;
mod events;
mod live;
mod log;
mod mark;
mod place;
mod read;
mod scan;
mod state;
#[cfg(test)]
mod tests;
mod transact;
mod types;
mod watch;
mod write;

use rusqlite::config::DbConfig;
use std::cell::{Cell, RefCell};
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::environment::{Environment, Facts, FileLock};
use crate::error::{Doing, Error};
use database::Database;
use read::HeldChunks;
use transact::Writer;
use watch::Watch;

pub use bytes::{Cursor, Malformed, put_varint};
pub use compact::{Compacted, Dropping};
pub use log::LogCheckpoint;
pub use mark::Loss;
pub use types::{
    AddingRun, ArrivalShift, CAPPED, Changed, Chunk, ChunkRow, ClockDoubt, ClockRecord, ClockTime,
    Content, Description, DocumentRow, Durability, Event, Evidence, Keeps, LiveSegment, NewContent,
    NewRows, Position, Row, Sizes, Swept,
};

/// An open store: the writer, or one of many readers. It may be sent to another thread; threads that read concurrently
/// need one each ([`Store::reader`]). It must not be used in a child of the process that opened it.
pub struct Store {
    environment: Environment,
    connection: Database,
    /// Absolute, with links resolved.
    dir: PathBuf,
    /// The open files, shared by all connections of the store.
    watch: Arc<Watch>,
    description: Description,
    pub identity: [u8; 16],
    /// The current state of this store: for the writer after its last append, for a reader at its last
    /// [`Store::refresh`].
    pub position: Position,
    /// The state of the writer; `None` in a reader.
    writer: Option<Writer>,
    chunks: RefCell<HeldChunks>,
    /// SQLite's counter of other connections' commits, at the last check.
    data_version: Cell<i64>,
    /// The correction of arrival times, if any.
    shift: Option<ArrivalShift>,
    /// What a copy of the directory lacks of its original.
    copy_lacks: Option<Loss>,
    /// Identity of the last batch at that check.
    last_batch: Cell<Option<u64>>,
    /// How many times records had been dropped, in the state in use.
    droppings: Cell<u64>,
}

/// Opens connections to an open store, as long as its files are those at its path.
#[derive(Debug, Clone)]
pub struct StoreSource {
    environment: Environment,
    dir: PathBuf,
    watch: Arc<Watch>,
}

impl StoreSource {
    /// Opens another connection for reading.
    pub fn reader(&self) -> Result<Store, Error> {
        self.watch.check()?;
        let opened = database::open_to_read(&self.environment, &self.dir).and_then(|connection| {
            let (dir, watch) = (self.dir.clone(), Arc::clone(&self.watch));
            Store::with(&self.environment, dir, connection, watch, None)
        });
        // The opened files were checked before and after. If the files are gone, this is the error to return, not
        // SQLite's.
        self.watch.check()?;
        opened
    }

    /// Opens the log of the store, which this process has open for writing.
    pub fn log(&self) -> Result<LogCheckpoint, Error> {
        LogCheckpoint::open(&self.environment, &self.dir, &self.watch)
    }
}

impl fmt::Debug for Store {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Store")
            .field("dir", &self.dir)
            .field("position", &self.position)
            .field("is_writer", &self.writer.is_some())
            .finish_non_exhaustive()
    }
}

impl Drop for Store {
    fn drop(&mut self) {
        if self.poison().is_some() {
            // A sync of the database may have failed, after which the system considers unwritten data as written. So
            // the log is kept, and the next opening applies all of it again.
            let _ = self
                .connection
                .set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true);
        }
    }
}

impl Store {
    /// Creates a store in a directory and opens it for writing. The directory is created if it is absent. Returns
    /// [`Error::InvalidParameter`] if the directory already holds a store, [`Error::Unsupported`] if it holds another
    /// database or is on a network file system.
    pub fn create(
        dir: &Path,
        description: &Description,
        durability: Durability,
    ) -> Result<Self, Error> {
        Store::create_in(&Environment::default(), dir, description, durability)
    }

    pub fn create_in(
        environment: &Environment,
        dir: &Path,
        description: &Description,
        durability: Durability,
    ) -> Result<Self, Error> {
        let given = dir;
        let files = environment.files.as_ref();
        files.create_dir_all(dir).doing("make the directory")?;
        let dir = place::settle(files, dir)?;
        let lock = place::lock(files, &dir)?;
        let connection = database::open_to_write(environment, &dir, durability)?;
        log::leave(&connection);
        match database::kind_of(&connection)? {
            database::Kind::Empty => {
                database::make(&connection, description)?;
                // Otherwise, damage of the log could make it an empty database again.
                log::empty(&connection)?;
            }
            database::Kind::Store => {
                return Err(Error::invalid(
                    "path",
                    format!("{} already contains an index; open it", dir.display()),
                ));
            }
        }
        place::sync_directory(files, &dir)?;
        if let Some(parent) = dir.parent() {
            place::sync_directory(files, parent)?;
        }
        let watch = Watch::new(&environment.files, given, &dir, None, true)?;
        Store::with(
            environment,
            dir,
            connection,
            watch,
            Some((lock, durability)),
        )
    }

    /// Opens the store of a directory for writing, as its only writer. Returns [`Error::Locked`] while another writer
    /// has it, [`Error::InvalidParameter`] if there is none, [`Error::Unsupported`] for another database, another
    /// format or a network file system.
    pub fn open(dir: &Path, durability: Durability) -> Result<Self, Error> {
        Store::open_in(&Environment::default(), dir, durability)
    }

    pub fn open_in(
        environment: &Environment,
        dir: &Path,
        durability: Durability,
    ) -> Result<Self, Error> {
        let mut store = Store::open_unchecked(environment, dir, durability)?;
        store.check_loss()?;
        // What was found was made durable before it was opened.
        store.mark_synced();
        Ok(store)
    }

    /// Same as [`Store::open_in`], but also opens a store that has lost acknowledged rows or events, and returns what
    /// was lost.
    pub fn open_accepting_loss(
        environment: &Environment,
        dir: &Path,
        durability: Durability,
    ) -> Result<(Self, Option<Loss>), Error> {
        let mut store = Store::open_unchecked(environment, dir, durability)?;
        let loss = store.accept_loss()?;
        Ok((store, loss))
    }

    fn open_unchecked(
        environment: &Environment,
        dir: &Path,
        durability: Durability,
    ) -> Result<Self, Error> {
        let given = dir;
        let (dir, before) = present(environment, given)?;
        let files = environment.files.as_ref();
        let lock = place::lock(files, &dir)?;
        let mut reached = None;
        if place::harden_log(files, &dir, database::DATABASE_NAME)? {
            reached = database::reach_without_log(environment, &dir);
            // The log is checkpointed, so that the next commit starts another: what it holds after a damaged place
            // never counts again, even if the damage occurs later. From here on, checks see what is on disk.
            let connection = database::open_to_write(environment, &dir, durability)?;
            log::leave(&connection);
            if let log::Outcome::UpTo(pages) = log::bring_in(&connection, None)?
                && !place::has_frames_behind(files, &dir, database::DATABASE_NAME, pages)
            {
                // It is complete but has another history, because another program put it there.
                reached = None;
            }
            // Closing deletes it, unless there are readers.
            drop(connection);
            place::sync_directory(files, &dir)?;
        }
        let connection = database::open_to_write(environment, &dir, durability)?;
        log::leave(&connection);
        let watch = Watch::new(&environment.files, given, &dir, Some(before), true)?;
        let lock = Some((lock, durability));
        let mut store = Store::with(environment, dir, connection, watch, lock)?;
        if let Some(reached) = reached {
            store.mark_reached(reached);
        }
        Ok(store)
    }

    /// Opens the store of a directory for reading, concurrently with its writer and other readers.
    pub fn open_reader(dir: &Path) -> Result<Self, Error> {
        Store::open_reader_in(&Environment::default(), dir)
    }

    pub fn open_reader_in(environment: &Environment, dir: &Path) -> Result<Self, Error> {
        let given = dir;
        let (dir, before) = present(environment, given)?;
        let connection = database::open_to_read(environment, &dir)?;
        let watch = Watch::new(&environment.files, given, &dir, Some(before), false)?;
        Store::with(environment, dir, connection, watch, None)
    }

    /// Opens another connection to the same store for reading, for use in another thread.
    pub fn reader(&self) -> Result<Self, Error> {
        self.source().reader()
    }

    /// Returns an opener of further connections to the same store, which can be used concurrently.
    pub fn source(&self) -> StoreSource {
        StoreSource {
            environment: self.environment.clone(),
            dir: self.dir.clone(),
            watch: Arc::clone(&self.watch),
        }
    }

    fn with(
        environment: &Environment,
        dir: PathBuf,
        connection: Database,
        watch: impl Into<Arc<Watch>>,
        lock: Option<(Box<dyn FileLock>, Durability)>,
    ) -> Result<Self, Error> {
        if database::kind_of(&connection)? == database::Kind::Empty {
            return Err(no_index(&dir));
        }
        let (description, identity) = database::describe(&connection)?;
        let writer = |(lock, durability)| Writer::new(&connection, lock, durability);
        let writer = lock.map(writer).transpose()?;
        let mut store = Store {
            environment: environment.clone(),
            connection,
            dir,
            watch: watch.into(),
            description,
            identity,
            position: Position::default(),
            writer,
            chunks: RefCell::default(),
            data_version: Cell::new(0),
            shift: None,
            copy_lacks: None,
            last_batch: Cell::new(None),
            droppings: Cell::new(0),
        };
        store.refresh()?;
        store.check_ends()?;
        store.copy_lacks = store.loss_of_copy()?;
        if store.writer.is_some() {
            let last_s = store.last_arrival_s()?.unwrap_or(0);
            if let Some(writer) = &mut store.writer {
                writer.last_arrival_s = last_s;
            }
            store.begin_marking()?;
        }
        Ok(store)
    }

    pub fn description(&self) -> &Description {
        &self.description
    }

    /// Returns what was attached to the description under a name when the store was created.
    pub fn attached(&self, name: &str) -> Result<Option<Vec<u8>>, Error> {
        database::meta(&self.connection, &database::attached_name(name))
    }

    /// What it lacks of the original that its directory is a copy of, as far as the mark shows.
    pub fn copy_lacks(&self) -> Option<&Loss> {
        self.copy_lacks.as_ref()
    }

    /// The directory: absolute, with links resolved.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    pub fn is_reader(&self) -> bool {
        self.writer.is_none()
    }

    pub fn num_rows(&self) -> u32 {
        self.position.num_rows
    }

    /// Number of the last event; 0 before the first.
    pub fn last_event(&self) -> u64 {
        self.position.last_event
    }

    pub fn sqlite_version() -> &'static str {
        rusqlite::version()
    }
}

/// Returns the directory of an existing store, and the facts of its database.
fn present(environment: &Environment, dir: &Path) -> Result<(PathBuf, Facts), Error> {
    let files = environment.files.as_ref();
    match files.facts(&dir.join(database::DATABASE_NAME)) {
        Ok(facts) => Ok((place::settle(files, dir)?, facts)),
        Err(_) => Err(no_index(dir)),
    }
}

fn no_index(dir: &Path) -> Error {
    Error::invalid("path", format!("{} contains no index", dir.display()))
}
