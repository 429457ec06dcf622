//! How is a segment built?

use std::ops::Range;
use std::path::Path;
use std::sync::atomic::AtomicBool;

use likewise_core::isa::Isa;

use super::files::Files;
use super::layout::{BandPlan, HammingPlan};
use super::source::RowSource;
use crate::error::Error;
use crate::store::LiveSegment;

/// What a recipe asks of segments.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SegmentPlan {
    /// Whether documents are looked up by their class.
    pub classes: bool,
    /// How fingerprints are searched.
    pub hamming: Option<HammingPlan>,
    /// How signatures are searched.
    pub bands: Option<BandPlan>,
}

/// Means of a build.
#[derive(Clone, Copy)]
pub struct Building<'a> {
    /// Instruction set.
    pub isa: Isa,
    /// Threads of the call.
    pub threads: usize,
    /// Bytes of memory, about; at least those of one table (8 a row, of fingerprints some 30) are taken all the same.
    pub memory_bytes: usize,
    /// Ends the work when set.
    pub cancel: &'a AtomicBool,
}

/// Builds the files of a segment of the rows in `dir`, durable under new names. Nobody looks at them before the store names them.
///
/// # Errors
/// [`Error::InvalidParameter`] where there is no row or more than [`MAX_SEGMENT_ROWS`](super::MAX_SEGMENT_ROWS), or a row does not fit the
/// plan; [`Error::Io`]; [`Error::Cancelled`]; those of the source. No file is left then.
///
/// # Cost
/// About 50 ns a row and table on one core, beside the passes over the source: one for each `memory_bytes` of tables.
pub fn build_segment(
    dir: &Path,
    files: &dyn Files,
    source: &dyn RowSource,
    rows: Range<u32>,
    plan: &SegmentPlan,
    building: Building<'_>,
) -> Result<LiveSegment, Error> {
    let _ = (dir, files, source, rows, plan, building);
    todo!()
}
