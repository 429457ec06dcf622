//! How are rows found by id, class or sketch, without searching the store?
//!
//! A segment is a set of files with search tables for a range of rows. All of its contents are derived from the store:
//! a segment that is missing, damaged or belongs to another database is dropped and rebuilt, and no answer depends on
//! how rows are divided into segments. FORMAT.md describes every byte.
//!
//! The store's list of live segments holds a checksum that covers every byte of a segment through its block checksums.
//! The segment names its database, its rows and the last batch in them. So a file that was restored from elsewhere or
//! is incomplete is never searched, and this check takes microseconds. No lock is held while a segment is built: the
//! build records the last event before it reads, and later events are replayed over it.

mod build;
mod gather;
mod layout;
mod open;
mod segment;
mod table;
mod tiers;

pub use build::build_segment;
pub use gather::{RowSource, SourceRow};
pub use layout::{BandPlan, HammingPlan};
pub use open::Expected;
pub use open::{delete_orphans, other_names, segment_bytes, unlink_segments};
pub use segment::Segment;
pub use tiers::{Building, SegmentPlan};
pub use tiers::{MIN_ROWS, Piece, RATIO, next_build, next_worn};

/// Maximum number of rows of a segment.
pub const MAX_SEGMENT_ROWS: u32 = 1 << 31;
