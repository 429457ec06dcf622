//! What is known of every document, and is it safe?
//!
//! One SQLite database, `documents.sqlite`, is the truth; whatever makes searches fast is derived from it and may be lost. Documents stand in
//! chunks, packed column by column, not in a row each: so a batch costs a few inserts and a document a few bytes beside its own.
//! What a chunk says of a document never changes; what removals and expiry make of the document stands beside. Chunks are joined, and the records of
//! documents that are gone are dropped from them. A chunk covers the rows that it lost, so that each row still belongs to one chunk.

mod bytes;
mod chunk;
mod clock;
mod compact;
mod contents;
mod copy;
mod database;
mod decode;
mod encode;
mod events;
mod features;
mod held;
mod live;
mod log;
mod loss;
mod mark;
mod place;
mod process;
mod read;
mod runs;
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
use crate::error::Error;
use database::Database;
use held::HeldChunks;
use transact::Writer;
use watch::Watch;

pub use chunk::Chunk;
pub use compact::{Compacted, Dropping};
pub use log::LogCheckpoint;
pub use mark::Loss;
pub use types::{
    AddingRun, ArrivalShift, BandLevel, Changed, ClockDoubt, ClockRecord, ClockTime, Content,
    Description, Durability, Event, Evidence, Keeps, LiveSegment, NewContents, NewRows, Position,
    Row, Sizes, Swept,
};

/// An open store: the one that writes, or one of many that read.
///
/// It may be sent to another thread; threads that read at once have one each ([`Store::reader`]). It must not be used in a child of the
/// process that opened it.
pub struct Store {
    environment: Environment,
    connection: Database,
    /// Absolute, without links.
    dir: PathBuf,
    /// The files that are open, for all connections of the store.
    watch: Arc<Watch>,
    description: Description,
    identity: [u8; 16],
    position: Position,
    /// What only the one that writes has.
    writer: Option<Writer>,
    chunks: RefCell<HeldChunks>,
    /// What the library said of other connections' commits at the last look.
    data_version: Cell<i64>,
    /// How arrivals are corrected.
    shift: Option<ArrivalShift>,
    /// Identity of the last batch at that look.
    last_batch: Cell<Option<u64>>,
    /// How often records were dropped, in the state that was taken.
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
    /// Opens the store once more for reading.
    ///
    /// # Errors
    /// Those of [`Store::open_reader`]; [`Error::Replaced`].
    pub fn reader(&self) -> Result<Store, Error> {
        self.watch.check()?;
        let opened = database::open_to_read(&self.environment, &self.dir).and_then(|connection| {
            let (dir, watch) = (self.dir.clone(), Arc::clone(&self.watch));
            Store::with(&self.environment, dir, connection, watch, None)
        });
        // What was opened is what was looked at before and after. Of files that are gone this is the error, not what SQLite makes of it.
        self.watch.check()?;
        opened
    }

    /// Opens the log of the store, which this process has open to write.
    ///
    /// # Errors
    /// Those of [`StoreSource::reader`].
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
            // A sync of the database may have failed, after which the system takes for written what is not. So the log stays, and the next
            // opening brings all of it in again.
            let _ = self
                .connection
                .set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true);
        }
    }
}

impl Store {
    /// Makes a store in a directory and opens it for writing. The directory is made where it is absent.
    ///
    /// # Errors
    /// [`Error::InvalidParameter`] where it holds a store already, [`Error::Unsupported`] where it holds another database or is on a network
    /// file system, [`Error::Locked`], and [`Error::Io`].
    pub fn create(
        dir: &Path,
        description: &Description,
        durability: Durability,
    ) -> Result<Self, Error> {
        Store::create_in(&Environment::default(), dir, description, durability)
    }

    /// As [`Store::create`], in a given environment.
    ///
    /// # Errors
    /// Those of [`Store::create`].
    pub fn create_in(
        environment: &Environment,
        dir: &Path,
        description: &Description,
        durability: Durability,
    ) -> Result<Self, Error> {
        let given = dir;
        let files = environment.files.as_ref();
        files
            .create_dir_all(dir)
            .map_err(|e| Error::io("make the directory", e))?;
        let dir = place::settle(files, dir)?;
        let lock = place::lock(files, &dir)?;
        let connection = database::open_to_write(environment, &dir, durability)?;
        log::leave(&connection);
        match database::kind_of(&connection)? {
            database::Kind::Empty => {
                database::make(&connection, description)?;
                // Else damage of the log could make it an empty database again.
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

    /// Opens the store of a directory for writing: the one that may.
    ///
    /// # Errors
    /// [`Error::Locked`] while another writer has it, [`Error::InvalidParameter`] where there is none, [`Error::Unsupported`] for another
    /// database, another format or a network file system, [`Error::Damaged`], and [`Error::Io`].
    pub fn open(dir: &Path, durability: Durability) -> Result<Self, Error> {
        Store::open_in(&Environment::default(), dir, durability)
    }

    /// As [`Store::open`], in a given environment.
    ///
    /// # Errors
    /// Those of [`Store::open`].
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

    /// As [`Store::open_in`]; opens a store from which acknowledged rows or events were lost too, and says which.
    ///
    /// # Errors
    /// Those of [`Store::open`].
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
            // Into the database, so that the next commit begins another: what stands in this one behind a damaged place, or before one that is damaged
            // later, never counts again. What is checked from here on is what the disk has.
            let connection = database::open_to_write(environment, &dir, durability)?;
            log::leave(&connection);
            if let log::Outcome::UpTo(pages) = log::bring_in(&connection, None)?
                && !place::has_frames_behind(files, &dir, database::DATABASE_NAME, pages)
            {
                // Whole, but of another history, which somebody else put there.
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

    /// Opens the store of a directory for reading, beside its writer and other readers.
    ///
    /// # Errors
    /// Those of [`Store::open`] but [`Error::Locked`].
    pub fn open_reader(dir: &Path) -> Result<Self, Error> {
        Store::open_reader_in(&Environment::default(), dir)
    }

    /// As [`Store::open_reader`], in a given environment.
    ///
    /// # Errors
    /// Those of [`Store::open_reader`].
    pub fn open_reader_in(environment: &Environment, dir: &Path) -> Result<Self, Error> {
        let given = dir;
        let (dir, before) = present(environment, given)?;
        let connection = database::open_to_read(environment, &dir)?;
        let watch = Watch::new(&environment.files, given, &dir, Some(before), false)?;
        Store::with(environment, dir, connection, watch, None)
    }

    /// Opens the same store once more for reading: for another thread.
    ///
    /// # Errors
    /// Those of [`Store::open_reader`]; [`Error::Replaced`].
    pub fn reader(&self) -> Result<Self, Error> {
        self.source().reader()
    }

    /// What opens the same store once more, also while this one is in use.
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
        let writer = match lock {
            Some((lock, durability)) => Some(Writer::new(&connection, lock, durability)?),
            None => None,
        };
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
            last_batch: Cell::new(None),
            droppings: Cell::new(0),
        };
        store.refresh()?;
        store.check_ends()?;
        if store.writer.is_some() {
            let last_s = store.last_arrival_s()?.unwrap_or(0);
            if let Some(writer) = &mut store.writer {
                writer.last_arrival_s = last_s;
            }
            store.begin_marking()?;
        }
        Ok(store)
    }

    /// What the store is of.
    pub fn description(&self) -> &Description {
        &self.description
    }

    /// What was attached to the description under a name when the store was made.
    ///
    /// # Errors
    /// [`Error::Damaged`] and [`Error::Io`].
    pub fn attached(&self, name: &str) -> Result<Option<Vec<u8>>, Error> {
        database::meta(&self.connection, &database::attached_name(name))
    }

    /// The random identity that the database was given when it was made.
    pub fn identity(&self) -> [u8; 16] {
        self.identity
    }

    /// The directory: absolute, without links.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// The state that this store shows: of a writer after its last append, of a reader at its last [`Store::refresh`].
    pub fn position(&self) -> Position {
        self.position
    }

    /// Whether it was opened for reading.
    pub fn is_reader(&self) -> bool {
        self.writer.is_none()
    }

    /// Rows appended.
    pub fn num_rows(&self) -> u32 {
        self.position.num_rows
    }

    /// Number of the last event; 0 before the first.
    pub fn last_event(&self) -> u64 {
        self.position.last_event
    }

    /// The version of SQLite that is bundled.
    pub fn sqlite_version() -> &'static str {
        rusqlite::version()
    }

    /// Ends what the library is doing for this store, from another thread: the call fails with [`Error::Io`].
    pub fn interrupt_handle(&self) -> rusqlite::InterruptHandle {
        self.connection.get_interrupt_handle()
    }
}

/// The directory of a store that is there, and its database.
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
