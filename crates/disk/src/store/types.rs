//! What goes into the store and comes out of it?

use std::collections::BTreeMap;
use std::ops::Range;
use std::time::Duration;

use crate::environment::Uptime;

/// What a store is of; written when it is made and never changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Description {
    /// The recipe in JSON.
    pub recipe_json: String,
    /// Identity of the recipe.
    pub recipe_id: String,
    /// Identity of what makes the bytes of a sketch.
    pub sketch_id: String,
    /// Bytes of the sketch of one row.
    pub sketch_bytes: u32,
    /// What is kept of a document beside its sketch.
    pub keeps: Keeps,
    /// What else the caller has written beside these, by name. Of a store that is there it is empty: [`Store::attached`](super::Store::attached)
    /// reads it.
    pub attached: BTreeMap<String, Vec<u8>>,
}

/// What is kept of a document beside its sketch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Keeps {
    /// Nothing, but for the feature sets of short texts.
    Sketch,
    /// The feature set.
    Shingles,
    /// The text.
    Text,
}

/// When is what was appended safe from power loss?
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Durability {
    /// When the call returns.
    Commit,
    /// When the next [`Store::sync`](super::Store::sync) returns, which the owner calls this often. A kill of the process loses nothing all the same;
    /// power loss loses a tail of whole batches.
    Interval(Duration),
}

/// Why a document was removed.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Evidence {
    /// The kept document that it matched.
    pub kept_row: u32,
    /// Similarity of the two, in `[0, 1]`.
    pub similarity: f64,
    /// Hamming distance of their fingerprints, in a run that has one.
    pub distance: Option<u16>,
}

/// A bucket of a document that is not of level 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BandLevel {
    /// The document: its place in the batch or the chunk, from 0.
    pub position: u32,
    /// The band.
    pub band: u16,
    /// The level in whose bucket it is a member: 1, 2, or [`BandLevel::CAPPED`].
    pub level: u8,
}

impl BandLevel {
    /// In place of a level: the buckets of all levels were full.
    pub const CAPPED: u8 = 3;
}

/// Feature sets or texts of a batch, in the order of its rows.
#[derive(Debug, Clone, Copy, Default)]
pub enum NewContents<'a> {
    /// Of no row.
    #[default]
    None,
    /// Of each row its features, ascending and distinct, and their weights (empty: all are 1), or nothing.
    Features(&'a [Option<(&'a [u64], &'a [u32])>]),
    /// Of each row its text in UTF-8, or the bytes of a document that is no text.
    Texts(&'a [&'a [u8]]),
}

/// Rows to append. All slices but `levels` are as long as `ids`, those of sketches `sketch_bytes` times as long.
#[derive(Debug, Clone, Copy, Default)]
pub struct NewRows<'a> {
    /// The user's ids, of at most 65,535 bytes each. That none is there already is for the caller to see to.
    pub ids: &'a [&'a str],
    /// The sketches, one behind another.
    pub sketches: &'a [u8],
    /// A byte of the caller's for each row: its shape, and whether it collapsed.
    pub shapes: &'a [u8],
    /// Distinct features.
    pub num_features: &'a [u32],
    /// XXH3-64 of the texts; absent where sketches were given.
    pub text_digests: Option<&'a [u64]>,
    /// Digests of the feature sets, where classes are told by them.
    pub feature_digests: Option<&'a [u128]>,
    /// The evidence of a removed document, nothing for a kept one. Its `kept_row` may be of the same batch.
    pub verdicts: &'a [Option<Evidence>],
    /// Ascending by position and band.
    pub levels: &'a [BandLevel],
    /// Feature sets or texts.
    pub contents: NewContents<'a>,
    /// Seconds since 1970; never less than in the batch before.
    pub arrival_s: u64,
    /// The batch run that adds them, if one does.
    pub run: Option<AddingRun>,
}

/// One document.
#[derive(Debug, Clone, PartialEq)]
pub struct Row {
    /// The user's id.
    pub id: String,
    /// Its sketch.
    pub sketch: Vec<u8>,
    /// The caller's byte.
    pub shape: u8,
    /// Distinct features.
    pub num_features: u32,
    /// XXH3-64 of the text, where a text was given.
    pub text_digest: Option<u64>,
    /// Digest of the feature set, where it was given.
    pub feature_digest: Option<u128>,
    /// Evidence of a removed document as of now, nothing for a kept one.
    pub verdict: Option<Evidence>,
    /// Whether it was removed by the user or has expired.
    pub is_gone: bool,
    /// Band and level of each bucket that is not of level 0.
    pub levels: Vec<(u16, u8)>,
    /// Seconds since 1970 when it came.
    pub arrival_s: u64,
}

/// What is kept of a document beside its sketch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Content {
    /// Nothing.
    Absent,
    /// Its features, ascending, and their weights (empty: all are 1).
    Features(Vec<u64>, Vec<u32>),
    /// Its text.
    Text(Vec<u8>),
}

/// What befell documents after they were appended. Replaying events sets states, so one that is replayed twice changes nothing.
#[derive(Debug, Clone, PartialEq)]
pub enum Event {
    /// The user removed a document.
    Removed {
        /// It.
        row: u32,
        /// Documents that are kept from now on.
        promoted: Vec<u32>,
        /// Documents that are removed because of another one from now on.
        moved: Vec<(u32, Evidence)>,
    },
}

/// Derived files that may be searched; see [`crate::segments`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LiveSegment {
    /// Name of the files, without directory and ending.
    pub name: String,
    /// The rows that they hold.
    pub rows: Range<u32>,
    /// Identity of the last batch of these rows: [`Store::batch_before`](super::Store::batch_before) of `rows.end`.
    pub batch: u64,
    /// The last event that they know of.
    pub last_event: u64,
    /// Words of the module that made them.
    pub details: String,
}

/// A document that events made something else of, as of now.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Changed {
    /// Its row.
    pub row: u32,
    /// Whether the user removed it.
    pub is_gone: bool,
    /// Its verdict, where that is another one than when it was added.
    pub verdict: Option<Option<Evidence>>,
}

/// Up to where upkeep has looked for records to drop.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Swept {
    /// The last event then.
    pub last_event: u64,
    /// The bound of expiry then.
    pub expired_below: u32,
}

/// A state of the store.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Position {
    /// Rows appended.
    pub num_rows: u32,
    /// Number of the last event; 0 before the first.
    pub last_event: u64,
    /// Rows below have expired.
    pub expired_below: u32,
}

/// A moment by both clocks of the machine.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ClockTime {
    /// Seconds since 1970.
    pub unix_s: u64,
    /// Time since the machine started.
    pub uptime: Uptime,
}

/// A clock that is too far ahead to be believed at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ClockDoubt {
    /// The first row that arrived since.
    pub first_row: u32,
    /// What the clock said when it was first in doubt, in seconds since 1970.
    pub wall_s: u64,
    /// By which time documents arrived then.
    pub index_s: u64,
    /// The machine's uptime then.
    pub uptime: Uptime,
}

/// Rows that arrived later than their chunks say, since the clock that was in doubt was right.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ArrivalShift {
    /// First of these rows.
    pub first_row: u32,
    /// End of them.
    pub end_row: u32,
    /// Seconds.
    pub add_s: u64,
}

/// What a store keeps about the clock.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ClockRecord {
    /// That it is in doubt.
    pub doubt: Option<ClockDoubt>,
    /// What was corrected when it was believed after a doubt. Rows before these have expired then.
    pub shift: Option<ArrivalShift>,
    /// When it was believed after a doubt.
    pub accepted: Option<ClockTime>,
}

/// What the store takes of the disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Sizes {
    /// Bytes of the database.
    pub database_bytes: u64,
    /// Of these, bytes of free pages, used again by what is appended next.
    pub free_bytes: u64,
    /// Bytes of the log of what was committed and not yet brought into the database.
    pub log_bytes: u64,
    /// Chunks that the documents stand in.
    pub num_chunks: u64,
    /// Blocks that feature sets and texts stand in.
    pub num_content_blocks: u64,
}

/// A batch run that adds rows. A rerun has the same identity, and compares its documents with the rows below `first_row` only.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AddingRun {
    /// What makes the run's answer, hashed.
    pub identity: [u8; 16],
    /// Number of rows in the store when the run compared its documents with it.
    pub first_row: u32,
}
