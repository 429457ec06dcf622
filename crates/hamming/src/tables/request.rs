//! What do the pieces of one call search, and how are their hits packed?

use std::ops::Range;

use crate::code_planes::CodePlanes;
use likewise_core::bound::Bound;

use super::block_table::{BlockTable, Neighbors};

/// State shared by the pieces of one call.
pub(super) struct Request<'a> {
    pub(super) codes: &'a CodePlanes,
    pub(super) within: u32,
    /// Empty if every pair is compared.
    pub(super) tables: &'a [BlockTable],
    pub(super) neighbors: &'a Neighbors,
    pub(super) states: Option<&'a [u8]>,
    pub(super) bound: Bound,
}

/// Bits of a packed hit below the later position, and below the earlier one.
pub(super) const LATER_SHIFT: u32 = 48;
pub(super) const EARLIER_SHIFT: u32 = 16;

/// Packs a hit so that hits are ordered by (later, earlier): later position relative to the start of the piece (16
/// bits), earlier position (32), distance (16).
#[inline(always)]
pub(super) fn pack_hit(later_in_piece: u32, earlier: u32, distance: u32) -> u64 {
    u64::from(later_in_piece) << LATER_SHIFT
        | u64::from(earlier) << EARLIER_SHIFT
        | u64::from(distance)
}

impl Request<'_> {
    /// Whether a piece with this many hits should be searched again in halves: its hits are not in order of the later
    /// position, so none is complete before the end.
    #[inline(always)]
    pub(super) fn is_too_dense(&self, piece: &Range<u32>, num_hits: usize) -> bool {
        num_hits > self.bound.a_piece() && piece.len() > 1
    }
}
