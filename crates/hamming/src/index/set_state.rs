//! What does a set of fingerprints consist of at one moment?

use std::sync::Arc;

use super::planes::Planes;
use super::removed::{Removed, are_dense};
use super::segment::Segment;

/// What a search needs: cheap to copy.
#[derive(Debug, Clone)]
pub(super) struct State {
    pub(super) segments: Vec<Arc<Segment>>,
    pub(super) tail: Vec<Arc<Planes>>,
    pub(super) removed: Arc<Removed>,
    /// Above all rows ever inserted.
    pub(super) next_row: u64,
    /// Rows in segments and tail, removed ones included.
    pub(super) num_rows: usize,
}

impl State {
    /// Marks the rows that new ones leave out.
    pub(super) fn skip(&mut self, rows: &[u32]) {
        if !are_dense(self.next_row, rows) {
            Arc::make_mut(&mut self.removed).skip(self.next_row, rows);
        }
    }

    /// Fingerprints that wait.
    pub(super) fn tail_len(&self) -> usize {
        self.tail.iter().map(|planes| planes.len()).sum()
    }
}
