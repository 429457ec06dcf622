//! What does the state contain about one row?

use likewise_core::features::Shape;
use likewise_disk::store::{Evidence, Row};

use crate::state::in_memory::{COLLAPSED, MemoryRow, level_of};

/// A row, of memory or of the store.
pub enum RowView<'k> {
    Memory(MemoryRow<'k>),
    Stored(&'k Row),
}

impl RowView<'_> {
    pub fn id(&self) -> &str {
        match self {
            RowView::Memory(row) => row.id,
            RowView::Stored(row) => &row.id,
        }
    }

    pub fn sketch(&self) -> &[u8] {
        match self {
            RowView::Memory(row) => row.sketch,
            RowView::Stored(row) => &row.sketch,
        }
    }

    /// The shape, with [`COLLAPSED`].
    pub fn shape(&self) -> u8 {
        match self {
            RowView::Memory(row) => row.shape,
            RowView::Stored(row) => row.shape,
        }
    }

    pub fn num_features(&self) -> u32 {
        match self {
            RowView::Memory(row) => row.num_features,
            RowView::Stored(row) => row.num_features,
        }
    }

    /// XXH3-64 of the text, if it had one.
    pub fn text_digest(&self) -> Option<u64> {
        match self {
            RowView::Memory(row) => row.text_digest,
            RowView::Stored(row) => row.text_digest,
        }
    }

    pub fn verdict(&self) -> Option<Evidence> {
        match self {
            RowView::Memory(row) => row.verdict,
            RowView::Stored(row) => row.verdict,
        }
    }

    pub fn is_blank(&self) -> bool {
        self.shape() & !COLLAPSED == Shape::Empty as u8
    }

    /// Band and level of each bucket that is not of level 0, ascending; of one that collapsed as of the document that it collapsed into.
    pub fn levels(&self) -> &[(u16, u8)] {
        match self {
            RowView::Memory(row) => row.levels,
            RowView::Stored(row) => &row.levels,
        }
    }

    /// The level of a band at which it is a member.
    pub fn level(&self, band: u32) -> Option<u32> {
        level_of(self.levels(), band)
    }
}
