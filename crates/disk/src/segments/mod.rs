//! Where is what was seen before, without asking the truth?
//!
//! A segment is a set of files with search tables of consecutive rows. Everything in them is derived from the store: a segment that is
//! missing, damaged or of another database is dropped and built again, and no answer depends on which rows stand in which segment.
//! Every byte is described in FORMAT.md.

mod build;
mod gather;
mod layout;
mod open;
mod passes;
mod publish;
mod segment;
mod source;
mod table;
mod tiers;

pub use build::{Building, SegmentPlan, build_segment};
pub use layout::{BandPlan, HammingPlan};
pub use publish::{delete_orphans, segment_bytes, unlink_segments};
pub use segment::{Expected, Segment};
pub use source::{Needed, RowSource, SourceRow};
pub use tiers::{MIN_ROWS, RATIO, next_build};

/// Most rows of a segment.
pub const MAX_SEGMENT_ROWS: u32 = 1 << 31;
