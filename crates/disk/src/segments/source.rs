//! Of what is a segment built?

use std::ops::Range;

use crate::error::Error;

/// One document, as the truth has it.
#[derive(Debug, Clone, Copy)]
pub struct SourceRow<'a> {
    /// Its number.
    pub row: u32,
    /// The user's id; looked at where [`Needed::ids`] asks for it.
    pub id: &'a str,
    /// Its sketch; looked at where [`Needed::sketches`] asks for it and the document is found by its sketch.
    pub sketch: &'a [u8],
    /// Of a removed document the row of the kept one that it matched; nothing of a kept one.
    pub leader: Option<u32>,
    /// Whether the user removed it or it has expired. Such a row is left out.
    pub is_gone: bool,
    /// Whether it is found by its sketch: the first of its class, not empty.
    pub is_found: bool,
    /// Whether it is short: a mark of the caller's, one bit a row.
    pub is_short: bool,
    /// Hash of the key of its class, where it is the first of one.
    pub class: Option<u64>,
    /// Bands and levels of the buckets that are not of level 0, ascending by band; a level above the last says that it is no member.
    pub levels: &'a [(u16, u8)],
}

/// What a pass over the rows looks at, so that a source may leave the rest empty.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Needed {
    /// The ids.
    pub ids: bool,
    /// The sketches and the levels.
    pub sketches: bool,
    /// The classes.
    pub classes: bool,
}

/// Gives documents in order of row: the truth, or a stand-in of a test. Rows that were dropped are missing.
pub trait RowSource {
    /// The random identity of the database.
    fn identity(&self) -> [u8; 16];

    /// Identity of what makes the bytes of a sketch.
    fn sketch_id(&self) -> &str;

    /// The last event that every later [`each_row`](RowSource::each_row) knows of. It may know of later ones too: whoever reads the segment
    /// replays the events behind this one, which sets states and adds nothing up.
    fn last_event(&self) -> u64;

    /// Most rows that [`each_row`](RowSource::each_row) gives of a range and that are not gone.
    fn most_rows(&self, rows: &Range<u32>) -> u32 {
        rows.end - rows.start
    }

    /// Identity of the last batch of the rows below `end`.
    ///
    /// # Errors
    /// Those of the source.
    fn batch_before(&self, end: u32) -> Result<u64, Error>;

    /// Gives each row of the range that was not dropped once, ascending. A build goes over the rows several times where memory is small.
    ///
    /// # Errors
    /// Those of the source, and of `each`, at which it stops.
    fn each_row(
        &self,
        rows: Range<u32>,
        needed: Needed,
        each: &mut dyn FnMut(&SourceRow<'_>) -> Result<(), Error>,
    ) -> Result<(), Error>;
}
