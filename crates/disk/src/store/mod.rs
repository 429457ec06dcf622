//! What is known of every document, and is it safe?
//!
//! One SQLite database, `documents.sqlite`, is the truth; whatever makes searches fast is derived from it and may be lost. Documents stand in
//! chunks, packed column by column, not in a row each: so a batch costs a few inserts and a document a few bytes beside its own.
//! Chunks are never changed, only joined; what removals and expiry make of a document stands beside them.

mod bytes;
mod chunk;
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
mod write;

use std::cell::{Cell, RefCell};
use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};

use crate::error::Error;
use database::Database;
use held::HeldChunks;
use transact::Writer;

pub use chunk::Chunk;
pub use compact::Compacted;
pub use log::LogDrain;
pub use runs::AddingRun;
pub use types::{
    BandLevel, Content, Description, Durability, Event, Evidence, Keeps, LiveSegment, NewContents,
    NewRows, Position, Row, Sizes,
};

/// An open store: the one that writes, or one of many that read.
///
/// It may be sent to another thread; threads that read at once have one each ([`Store::reader`]). It must not be used in a child of the
/// process that opened it.
pub struct Store {
    connection: Database,
    /// Absolute, without links.
    dir: PathBuf,
    description: Description,
    identity: [u8; 16],
    position: Position,
    /// What only the one that writes has.
    writer: Option<Writer>,
    chunks: RefCell<HeldChunks>,
    /// What the library said of other connections' commits at the last look.
    data_version: Cell<i64>,
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
        fs::create_dir_all(dir).map_err(|e| Error::io("make the directory", e))?;
        let dir = place::settle(dir)?;
        let lock = place::lock(&dir)?;
        let connection = database::open_to_write(&dir, durability)?;
        match database::kind_of(&connection)? {
            database::Kind::Empty => database::make(&connection, description)?,
            database::Kind::Store => {
                return Err(Error::invalid(
                    "path",
                    format!("{} holds an index already; open it", dir.display()),
                ));
            }
        }
        place::sync_directory(&dir)?;
        if let Some(parent) = dir.parent() {
            place::sync_directory(parent)?;
        }
        Store::with(dir, connection, Some((lock, durability)))
    }

    /// Opens the store of a directory for writing: the one that may.
    ///
    /// # Errors
    /// [`Error::Locked`] while another writer has it, [`Error::InvalidParameter`] where there is none, [`Error::Unsupported`] for another
    /// database, another format or a network file system, [`Error::Damaged`], and [`Error::Io`].
    pub fn open(dir: &Path, durability: Durability) -> Result<Self, Error> {
        let dir = present(dir)?;
        let lock = place::lock(&dir)?;
        let connection = database::open_to_write(&dir, durability)?;
        Store::with(dir, connection, Some((lock, durability)))
    }

    /// Opens the store of a directory for reading, beside its writer and other readers.
    ///
    /// # Errors
    /// Those of [`Store::open`] but [`Error::Locked`].
    pub fn open_reader(dir: &Path) -> Result<Self, Error> {
        let dir = present(dir)?;
        let connection = database::open_to_read(&dir)?;
        Store::with(dir, connection, None)
    }

    /// Opens the same store once more for reading: for another thread.
    ///
    /// # Errors
    /// Those of [`Store::open_reader`].
    pub fn reader(&self) -> Result<Self, Error> {
        Store::open_reader(&self.dir)
    }

    fn with(
        dir: PathBuf,
        connection: Database,
        lock: Option<(place::WriterLock, Durability)>,
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
            connection,
            dir,
            description,
            identity,
            position: Position::default(),
            writer,
            chunks: RefCell::default(),
            data_version: Cell::new(0),
        };
        store.refresh()?;
        store.check_ends()?;
        if store.writer.is_some() {
            let last_s = match store.position.num_rows {
                0 => 0,
                num_rows => store.arrival_s(num_rows - 1)?,
            };
            if let Some(writer) = &mut store.writer {
                writer.last_arrival_s = last_s;
            }
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

/// The directory of a store that is there.
fn present(dir: &Path) -> Result<PathBuf, Error> {
    if !dir.join(database::DATABASE_NAME).exists() {
        return Err(no_index(dir));
    }
    place::settle(dir)
}

fn no_index(dir: &Path) -> Error {
    Error::invalid("path", format!("{} holds no index", dir.display()))
}
