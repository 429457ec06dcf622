//! Which data enters and leaves the store?

use std::collections::BTreeMap;
use std::ops::Range;
use std::time::Duration;

use crate::environment::Uptime;

/// The description of a store, written at its creation and never changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Description {
    pub recipe_json: String,
    pub recipe_id: String,
    /// Identity of everything that determines the bytes of a sketch.
    pub sketch_id: String,
    pub sketch_bytes: u32,
    /// What is stored of a document in addition to its sketch.
    pub keeps: Keeps,
    /// Further data by name; for an existing store, use [`Store::attached`](super::Store::attached).
    pub attached: BTreeMap<String, Vec<u8>>,
}

/// What is stored of a document in addition to its sketch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Keeps {
    /// Nothing, except for the feature sets of short texts.
    Sketch,
    Shingles,
    Text,
}

/// When appended data is safe from power loss.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Durability {
    /// When the call returns.
    Commit,
    /// When the next [`Store::sync`](super::Store::sync) returns; power loss loses the last batches, as wholes.
    Interval(Duration),
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Evidence {
    pub kept_row: u32,
    /// Similarity of the two, in `[0, 1]`.
    pub similarity: f64,
    /// Hamming distance of their fingerprints, in a run that uses it.
    pub distance: Option<u16>,
}

/// Used instead of the level, 1 or 2, of a bucket above level 0: the buckets of all levels were full.
pub const CAPPED: u8 = 3;

/// What is to be stored of a document in addition to its sketch.
#[derive(Debug, Clone, Copy, Default)]
pub enum NewContent<'a> {
    #[default]
    Absent,
    /// Its features, ascending and distinct, and their weights (if empty, all are 1).
    Features(&'a [u64], &'a [u32]),
    /// Its text in UTF-8, or the bytes of a document that is not text.
    Text(&'a [u8]),
}

/// One document, as it is appended and as tables in memory take it.
#[derive(Debug, Clone, Copy, Default)]
pub struct DocumentRow<'a> {
    pub row: u32,
    /// The user's id, of at most 65,535 bytes. The caller ensures that none of them exists already.
    pub id: &'a str,
    pub sketch: &'a [u8],
    /// A byte of the caller: its shape, and whether it collapsed.
    pub shape: u8,
    pub num_features: u32,
    /// XXH3-64 of its text; absent if a sketch was given.
    pub text_digest: Option<u64>,
    /// Digest of its feature set; 0 if unknown.
    pub digest: u128,
    /// The evidence of a removed document, `None` for a kept one.
    pub verdict: Option<Evidence>,
    /// Band and level of each bucket above level 0, ascending; of one that collapsed as of the document that it
    /// collapsed into.
    pub levels: &'a [(u16, u8)],
    /// What is appended in addition; tables in memory ignore it.
    pub content: NewContent<'a>,
    /// Arrival time in seconds since 1970; only of a document that is appended.
    pub arrival_s: u64,
}

/// Documents to append, in the order of their arrival. Either all have a digest of the text or none.
#[derive(Debug, Clone, Copy, Default)]
pub struct NewRows<'a> {
    /// They get the next rows, whatever theirs are. The kept document of one may be in the same batch.
    pub documents: &'a [DocumentRow<'a>],
    /// Whether classes are distinguished by digests of feature sets, so that these are stored.
    pub has_digests: bool,
    /// The batch run that adds the rows, if any.
    pub run: Option<AddingRun>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Row {
    pub id: String,
    pub sketch: Vec<u8>,
    /// The caller's byte.
    pub shape: u8,
    pub num_features: u32,
    /// XXH3-64 of the text, if a text was given.
    pub text_digest: Option<u64>,
    pub feature_digest: Option<u128>,
    /// Current evidence of a removed document, `None` for a kept one.
    pub verdict: Option<Evidence>,
    /// Whether it was removed by the user or has expired.
    pub is_gone: bool,
    /// Band and level of each bucket above level 0.
    pub levels: Vec<(u16, u8)>,
    /// Arrival time in seconds since 1970.
    pub arrival_s: u64,
}

impl Row {
    /// As tables in memory take it.
    pub fn at(&self, row: u32) -> DocumentRow<'_> {
        DocumentRow {
            row,
            id: &self.id,
            sketch: &self.sketch,
            shape: self.shape,
            num_features: self.num_features,
            text_digest: self.text_digest,
            digest: self.feature_digest.unwrap_or(0),
            verdict: self.verdict,
            levels: &self.levels,
            ..DocumentRow::default()
        }
    }
}

/// What is stored of a document in addition to its sketch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Content {
    Absent,
    /// Its features, ascending, and their weights (if empty, all are 1).
    Features(Vec<u64>, Vec<u32>),
    Text(Vec<u8>),
}

impl Content {
    /// As it is appended to another store.
    pub fn as_new(&self) -> NewContent<'_> {
        match self {
            Content::Absent => NewContent::Absent,
            Content::Features(features, weights) => NewContent::Features(features, weights),
            Content::Text(text) => NewContent::Text(text),
        }
    }
}

/// A change of documents after they were appended. Events set states, so replaying one twice changes nothing.
#[derive(Debug, Clone, PartialEq)]
pub enum Event {
    Removed {
        row: u32,
        /// Documents that become kept.
        promoted: Vec<u32>,
        /// Documents that are reassigned to another kept document.
        moved: Vec<(u32, Evidence)>,
    },
}

/// A segment that may be searched; see [`crate::segments`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LiveSegment {
    /// Name of the files, without directory and extension.
    pub name: String,
    pub rows: Range<u32>,
    /// Identity of the last batch of these rows: [`Store::batch_before`](super::Store::batch_before) of `rows.end`.
    pub batch: u64,
    pub last_event: u64,
    /// Details written by the module that built them.
    pub details: String,
}

/// The current state of a document that events have changed.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Changed {
    pub row: u32,
    pub is_gone: bool,
    /// Its verdict, if it differs from the original one.
    pub verdict: Option<Option<Evidence>>,
}

/// How far upkeep has searched for records to drop.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Swept {
    pub last_event: u64,
    /// The bound of expiry at that time.
    pub expired_below: u32,
}

/// A state of the store.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Position {
    pub num_rows: u32,
    /// Number of the last event; 0 before the first.
    pub last_event: u64,
    /// Rows below this one have expired.
    pub expired_below: u32,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ClockTime {
    /// Seconds since 1970.
    pub unix_s: u64,
    /// Time since the machine started.
    pub uptime: Uptime,
}

/// A clock that is too far ahead to be trusted at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ClockDoubt {
    /// The first row that has arrived since.
    pub first_row: u32,
    /// The clock's time when it was first doubted, in seconds since 1970.
    pub wall_s: u64,
    /// The time used for arrivals at that moment.
    pub index_s: u64,
    /// The machine's uptime at that moment.
    pub uptime: Uptime,
}

/// Rows that arrived later than their chunks state, because the doubted clock was right.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ArrivalShift {
    pub first_row: u32,
    pub end_row: u32,
    pub add_s: u64,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ClockRecord {
    pub doubt: Option<ClockDoubt>,
    /// The correction made when a doubted clock was last trusted. Rows before these had expired by then.
    pub shift: Option<ArrivalShift>,
    /// When a doubted clock was last trusted.
    pub accepted: Option<ClockTime>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Sizes {
    pub database_bytes: u64,
    /// The part of these bytes in free pages, which later appends reuse.
    pub free_bytes: u64,
    /// Size of the log of commits that are not yet in the database.
    pub log_bytes: u64,
    /// Number of chunks, which hold the documents.
    pub num_chunks: u64,
    /// Number of blocks, which hold feature sets and texts.
    pub num_content_blocks: u64,
}

/// A batch run that adds rows. A rerun has the same identity, and compares with the rows below `first_row`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AddingRun {
    /// Hash of everything that determines the run's answer.
    pub identity: [u8; 16],
    /// Number of rows in the store when the run compared its documents with it.
    pub first_row: u32,
}

/// Neighboring documents, column by column: in their current state, or as they are to be committed.
#[derive(Debug, Clone, Default)]
pub struct Chunk {
    /// The rows that the chunk covers, including dropped ones.
    pub span: Range<u32>,
    /// The remaining rows, ascending.
    pub rows: Vec<u32>,
    /// Identity of the batch that added the last row.
    pub batch: u64,
    pub(super) id_ends: Vec<u32>,
    pub(super) ids: String,
    pub sketches: Vec<u8>,
    /// The caller's byte of each document.
    pub shapes: Vec<u8>,
    pub num_features: Vec<u32>,
    /// Whether a feature set or a text of each document was stored; for a gone document it may have been dropped since.
    pub has_content: Vec<bool>,
    /// XXH3-64 of the texts, if texts were given.
    pub text_digests: Option<Vec<u64>>,
    pub feature_digests: Option<Vec<u128>>,
    /// Current evidence of each removed document, `None` for kept ones.
    pub verdicts: Vec<Option<Evidence>>,
    /// Whether each document was removed by the user or has expired.
    pub gone: Vec<bool>,
    /// Band and level of each bucket above level 0, by document.
    pub levels: Vec<Vec<(u16, u8)>>,
    /// Arrival time of each document in seconds since 1970; never decreasing.
    pub arrivals_s: Vec<u64>,
}

/// One document of a chunk.
#[derive(Debug, Clone, Copy)]
pub struct ChunkRow<'a> {
    /// Its digest is 0 if the chunk has none, and its content is not read.
    pub document: DocumentRow<'a>,
    pub feature_digest: Option<u128>,
    pub has_content: bool,
    pub is_gone: bool,
}

impl Chunk {
    /// The user's id of the document at a position. Panics if `position` is out of range.
    pub fn id(&self, position: usize) -> &str {
        let begin = match position {
            0 => 0,
            _ => self.id_ends[position - 1],
        };
        &self.ids[begin as usize..self.id_ends[position] as usize]
    }

    /// The documents, in order of their rows.
    pub fn documents(&self) -> impl Iterator<Item = ChunkRow<'_>> {
        let sketch_bytes = self.sketches.len() / self.rows.len().max(1);
        self.rows.iter().enumerate().map(move |(place, &row)| {
            let feature_digest = self.feature_digests.as_deref().map(|all| all[place]);
            ChunkRow {
                document: DocumentRow {
                    row,
                    id: self.id(place),
                    sketch: &self.sketches[place * sketch_bytes..(place + 1) * sketch_bytes],
                    shape: self.shapes[place],
                    num_features: self.num_features[place],
                    text_digest: self.text_digests.as_deref().map(|all| all[place]),
                    digest: feature_digest.unwrap_or(0),
                    verdict: self.verdicts[place],
                    levels: &self.levels[place],
                    content: NewContent::Absent,
                    arrival_s: self.arrivals_s[place],
                },
                feature_digest,
                has_content: self.has_content[place],
                is_gone: self.gone[place],
            }
        })
    }

    /// Appends a document. Its row must follow those before it, in `span`.
    pub(super) fn push(&mut self, pushed: ChunkRow<'_>) {
        let document = pushed.document;
        self.rows.push(document.row);
        self.ids.push_str(document.id);
        self.id_ends.push(self.ids.len() as u32);
        self.sketches.extend_from_slice(document.sketch);
        self.shapes.push(document.shape);
        self.num_features.push(document.num_features);
        self.has_content.push(pushed.has_content);
        if let Some(digest) = document.text_digest {
            self.text_digests.get_or_insert_default().push(digest);
        }
        if let Some(digest) = pushed.feature_digest {
            self.feature_digests.get_or_insert_default().push(digest);
        }
        self.verdicts.push(document.verdict);
        self.gone.push(pushed.is_gone);
        self.levels.push(document.levels.to_vec());
        self.arrivals_s.push(document.arrival_s);
    }
}
