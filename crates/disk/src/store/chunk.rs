//! Which documents does one chunk hold?

use std::ops::Range;

use super::types::{BandLevel, Evidence};

/// Neighboring documents, column by column, in their current state.
#[derive(Debug, Clone, Default)]
pub struct Chunk {
    pub(super) span: Range<u32>,
    /// The remaining rows, ascending.
    pub(super) rows: Vec<u32>,
    pub(super) batch: u64,
    pub(super) id_ends: Vec<u32>,
    pub(super) ids: String,
    pub(super) sketches: Vec<u8>,
    pub(super) shapes: Vec<u8>,
    pub(super) num_features: Vec<u32>,
    pub(super) has_content: Vec<bool>,
    pub(super) text_digests: Option<Vec<u64>>,
    pub(super) feature_digests: Option<Vec<u128>>,
    pub(super) verdicts: Vec<Option<Evidence>>,
    pub(super) gone: Vec<bool>,
    pub(super) levels: Vec<BandLevel>,
    pub(super) arrivals_s: Vec<u64>,
}

impl Chunk {
    /// The row of each document, ascending.
    pub fn rows(&self) -> &[u32] {
        &self.rows
    }

    /// The range of rows that the chunk covers, including dropped ones.
    pub fn span(&self) -> Range<u32> {
        self.span.clone()
    }

    /// Identity of the batch that added the last row.
    pub fn batch(&self) -> u64 {
        self.batch
    }

    /// The user's id of the document at a position. Panics if `position` is out of range.
    pub fn id(&self, position: usize) -> &str {
        let begin = match position {
            0 => 0,
            _ => self.id_ends[position - 1],
        };
        &self.ids[begin as usize..self.id_ends[position] as usize]
    }

    pub fn sketches(&self) -> &[u8] {
        &self.sketches
    }

    /// The caller's byte of each document.
    pub fn shapes(&self) -> &[u8] {
        &self.shapes
    }

    pub fn num_features(&self) -> &[u32] {
        &self.num_features
    }

    /// Whether a feature set or a text of each document was stored; for a gone document it may have been dropped since.
    pub fn has_content(&self) -> &[bool] {
        &self.has_content
    }

    /// XXH3-64 of the texts, if texts were given.
    pub fn text_digests(&self) -> Option<&[u64]> {
        self.text_digests.as_deref()
    }

    pub fn feature_digests(&self) -> Option<&[u128]> {
        self.feature_digests.as_deref()
    }

    /// Current evidence of each removed document, `None` for kept ones.
    pub fn verdicts(&self) -> &[Option<Evidence>] {
        &self.verdicts
    }

    /// Whether each document was removed by the user or has expired.
    pub fn gone(&self) -> &[bool] {
        &self.gone
    }

    /// Buckets above level 0, ascending by position and band.
    pub fn levels(&self) -> &[BandLevel] {
        &self.levels
    }

    /// Arrival time of each document in seconds since 1970; never decreasing.
    pub fn arrivals_s(&self) -> &[u64] {
        &self.arrivals_s
    }
}
