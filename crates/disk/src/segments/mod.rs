//! Where is what was seen before, without asking the truth?
//!
//! A segment is a set of files with search tables of consecutive rows. Everything in them is derived from the store: a segment that is
//! missing, damaged or of another database is dropped and built again, and no answer depends on which rows stand in which segment.
//! Every byte is described in FORMAT.md.
//!
//! The store's list of live segments holds a checksum that covers every byte of a segment, by way of its block
//! checksums. The segment names its database, its rows and the last batch in them. So a file restored from elsewhere,
//! or half written, is never searched, and checking that takes microseconds. No lock is held while a segment is built:
//! the build notes the last event before it reads, and later events are replayed over it.

mod build;
mod gather;
mod layout;
mod open;
mod passes;
mod plan;
mod publish;
mod segment;
mod source;
mod table;
mod tiers;

pub use build::build_segment;
pub use layout::{BandPlan, HammingPlan};
pub use open::Expected;
pub use plan::{Building, SegmentPlan};
pub use publish::{delete_orphans, other_names, segment_bytes, unlink_segments};
pub use segment::Segment;
pub use source::{Needed, RowSource, SourceRow};
pub use tiers::{MIN_ROWS, Piece, RATIO, next_build, next_worn};

/// Most rows of a segment.
pub const MAX_SEGMENT_ROWS: u32 = 1 << 31;
