//! What is known of every document, and is it safe?
//!
//! One SQLite database, `documents.sqlite`, is the truth; whatever makes searches fast is derived from it.

mod chunk;
mod types;

use std::ops::Range;
use std::path::Path;

use crate::error::Error;

pub use chunk::Chunk;
pub use types::{
    BandLevel, Content, Description, Durability, Event, Evidence, Keeps, LiveSegment, NewContents,
    NewRows, Position, Row, Sizes,
};

/// An open store: the one that writes, or one of many that read.
///
/// It may be sent to another thread; threads that read at once have one each ([`Store::reader`]).
pub struct Store {}

impl Store {
    /// Makes a store in the directory, which is made where it is absent and holds none, and opens it for writing.
    pub fn create(
        dir: &Path,
        description: &Description,
        durability: Durability,
    ) -> Result<Self, Error> {
        todo!()
    }
    /// Opens the store of the directory for writing, alone.
    pub fn open(dir: &Path, durability: Durability) -> Result<Self, Error> {
        todo!()
    }
    /// Opens the store of the directory for reading, beside its writer and other readers.
    pub fn open_reader(dir: &Path) -> Result<Self, Error> {
        todo!()
    }
    /// Opens the same store once more for reading: for another thread.
    pub fn reader(&self) -> Result<Self, Error> {
        todo!()
    }
    /// What the store is of.
    pub fn description(&self) -> &Description {
        todo!()
    }
    /// The random identity that the database was given when it was made.
    pub fn identity(&self) -> [u8; 16] {
        todo!()
    }
    /// The directory.
    pub fn dir(&self) -> &Path {
        todo!()
    }
    /// The state that this store shows: of a writer after its last append, of a reader at its last [`Store::refresh`].
    pub fn position(&self) -> Position {
        todo!()
    }
    /// Rows appended.
    pub fn num_rows(&self) -> u32 {
        todo!()
    }
    /// Number of the last event; 0 before the first.
    pub fn last_event(&self) -> u64 {
        todo!()
    }
    /// Appends rows and events in one transaction; returns the rows. When it returns the batch is acknowledged. Events stand after the rows.
    pub fn append(&mut self, rows: &NewRows<'_>, events: &[Event]) -> Result<Range<u32>, Error> {
        todo!()
    }
    /// Gives whole chunks in order, those that hold any of the rows, all of one state, which is returned.
    pub fn scan(
        &self,
        rows: Range<u32>,
        each: impl FnMut(&Chunk) -> Result<(), Error>,
    ) -> Result<Position, Error> {
        todo!()
    }
    /// One document.
    pub fn row(&self, row: u32) -> Result<Row, Error> {
        todo!()
    }
    /// The id of a document.
    pub fn id(&self, row: u32) -> Result<String, Error> {
        todo!()
    }
    /// Feature set or text of a document.
    pub fn content(&self, row: u32) -> Result<Content, Error> {
        todo!()
    }
    /// Gives the events after number `after`, in order, with their numbers.
    pub fn events(
        &self,
        after: u64,
        each: impl FnMut(u64, &Event) -> Result<(), Error>,
    ) -> Result<(), Error> {
        todo!()
    }
    /// The first row that came at or after a time; the number of rows where none did.
    pub fn first_row_since(&self, arrival_s: u64) -> Result<u32, Error> {
        todo!()
    }
    /// Identity of the batch whose last row is `end - 1`, if a chunk ends there.
    pub fn batch_before(&self, end: u32) -> Result<Option<u64>, Error> {
        todo!()
    }
    /// Whether another connection has committed since the last look: cheap, for readers.
    pub fn changed(&self) -> Result<bool, Error> {
        todo!()
    }
    /// Takes the state that is committed now; returns it.
    pub fn refresh(&mut self) -> Result<Position, Error> {
        todo!()
    }
    /// The live segments, by first row.
    pub fn segments(&self) -> Result<Vec<LiveSegment>, Error> {
        todo!()
    }
    /// Adds and drops live segments in one transaction.
    pub fn publish(&mut self, added: &[LiveSegment], dropped: &[String]) -> Result<(), Error> {
        todo!()
    }
    /// Joins small neighbouring chunks, up to 1,000 rows, and drops the contents of what is gone; returns how many chunks there are less.
    pub fn compact_chunks(
        &mut self,
        progress: impl FnMut() -> Result<(), Error>,
    ) -> Result<u64, Error> {
        todo!()
    }
    /// Copies the database as it is now to a new directory.
    pub fn snapshot(
        &self,
        to: &Path,
        progress: impl FnMut() -> Result<(), Error>,
    ) -> Result<(), Error> {
        todo!()
    }
    /// Findings about the database, in words; none where all is well. `full` reads every byte.
    pub fn check(
        &self,
        full: bool,
        progress: impl FnMut() -> Result<(), Error>,
    ) -> Result<Vec<String>, Error> {
        todo!()
    }
    /// Makes all that was appended safe from power loss.
    pub fn sync(&mut self) -> Result<(), Error> {
        todo!()
    }
    /// What it takes of the disk.
    pub fn sizes(&self) -> Result<Sizes, Error> {
        todo!()
    }
    /// The version of SQLite that is bundled.
    pub fn sqlite_version() -> &'static str {
        rusqlite::version()
    }
}
