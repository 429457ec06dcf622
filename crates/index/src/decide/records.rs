//! What is kept of each document?

use likewise_disk::store::{Content, Row};

use crate::error::Result;
use crate::state::State;

/// What is kept of each document, by row.
pub trait Records {
    /// A row that no layer of the state holds in memory.
    fn row(&self, state: &State, row: u32) -> Result<Row>;

    fn id(&self, row: u32) -> Result<String>;

    /// What is stored of a row in addition to its sketch.
    fn content(&self, row: u32) -> Result<Content>;

    /// Runs `read` on one state of the records.
    fn read_together(&self, read: &mut dyn FnMut(&dyn Records) -> Result<()>) -> Result<()>;
}
