//! Which data is a segment built from?

use std::ops::Range;

use crate::error::Result;

/// One document, as stored.
#[derive(Debug, Clone, Copy)]
pub struct SourceRow<'a> {
    pub row: u32,
    /// The user's id; used if [`Needed::ids`] is set.
    pub id: &'a str,
    /// Its sketch; used if [`Needed::sketches`] is set and the document can be found by its sketch.
    pub sketch: &'a [u8],
    /// For a removed document, the row of the kept one that it matched; `None` for a kept one.
    pub leader: Option<u32>,
    /// Whether the user removed it or it has expired. Such rows are omitted.
    pub is_gone: bool,
    /// Whether it can be found by its sketch: it is the first of its class, and not empty.
    pub is_found: bool,
    /// Whether it is short: a mark of the caller, one bit per row.
    pub is_short: bool,
    /// Hash of the key of its class, if it is the first of one.
    pub class: Option<u64>,
    /// Bands and levels of the buckets above level 0, by band; above the last level it is not a member.
    pub levels: &'a [(u16, u8)],
}

/// The data that a pass over the rows uses; a source may leave the rest empty.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Needed {
    pub ids: bool,
    pub sketches: bool,
    pub classes: bool,
}

/// Yields documents in order of row, from the store or from test data. Dropped rows are missing.
pub trait RowSource {
    /// The random identity of the database.
    fn identity(&self) -> [u8; 16];

    /// Identity of everything that determines the bytes of a sketch.
    fn sketch_id(&self) -> &str;

    /// The last event that every later [`each_row`](RowSource::each_row) reflects; replaying later ones sets states.
    fn last_event(&self) -> u64;

    /// Maximum number of rows in a range that [`each_row`](RowSource::each_row) yields and that are not gone.
    fn most_rows(&self, rows: &Range<u32>) -> u32 {
        rows.end - rows.start
    }

    /// Returns the identity of the last batch of the rows below `end`.
    fn batch_before(&self, end: u32) -> Result<u64>;

    /// Passes each row of the range that was not dropped to `each`, in order; a build may read the rows several times.
    fn each_row(
        &self,
        rows: Range<u32>,
        needed: Needed,
        each: &mut dyn FnMut(&SourceRow<'_>) -> Result<()>,
    ) -> Result<()>;
}
