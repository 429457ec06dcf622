//! What does an index know at one moment?

use std::ops::Range;
use std::sync::Arc;

use likewise_disk::segments::Segment;
use likewise_disk::store::Position;

use crate::bits::Bits;
use crate::error::Error;
use crate::late::Late;
use crate::rows_by_hash::Quick;
use crate::tail::Tail;

/// Tables of consecutive rows.
#[derive(Debug)]
pub enum Layer {
    /// On disk.
    Segment(Arc<Segment>),
    /// In memory.
    Tail(Box<Tail>),
}

impl Layer {
    /// The rows.
    pub fn rows(&self) -> Range<u32> {
        match self {
            Layer::Segment(segment) => segment.rows(),
            Layer::Tail(tail) => tail.rows(),
        }
    }
}

/// Layers of all rows, and what befell these since the layers were made.
#[derive(Debug, Default)]
pub struct State {
    /// One behind the other, from row 0.
    pub layers: Vec<Layer>,
    /// Rows that the user removed.
    pub gone: Bits,
    /// Rows below have expired.
    pub expired_below: u32,
    /// Rows that were removed as duplicates when they came and are kept now.
    pub promoted: Bits,
    /// Rows that came to another leader than that of their layer, by leader.
    pub moved: Quick<u32, Vec<u32>>,
    /// Promoted rows that no layer finds.
    pub late: Late,
    /// The last event that all this knows of.
    pub last_event: u64,
}

impl State {
    /// Rows of all layers.
    pub fn num_rows(&self) -> u32 {
        self.layers.last().map_or(0, |layer| layer.rows().end)
    }

    /// What of the truth all this knows.
    pub fn position(&self) -> Position {
        Position {
            num_rows: self.num_rows(),
            last_event: self.last_event,
            expired_below: self.expired_below,
        }
    }

    /// Rows of the segments, ascending.
    pub fn segment_rows(&self) -> Vec<Range<u32>> {
        let rows = self.layers.iter().filter_map(|layer| match layer {
            Layer::Segment(segment) => Some(segment.rows()),
            Layer::Tail(_) => None,
        });
        rows.collect()
    }

    /// Documents that are not gone.
    pub fn num_documents(&self) -> usize {
        let gone_above = self.gone.len() - self.gone.num_below(self.expired_below);
        self.num_rows() as usize - self.expired_below as usize - gone_above
    }

    /// Notes that an event gave a row another leader, where the layer of the row does not know of it.
    pub fn note_moved(&mut self, event: u64, row: u32, leader: u32) {
        let is_known = match self.layer_of(row) {
            Layer::Segment(segment) => segment.last_event() >= event,
            Layer::Tail(_) => false,
        };
        if !is_known {
            self.moved.entry(leader).or_default().push(row);
        }
    }

    /// Notes that an event removed a row: its duplicates came to others in the same event, so nobody asks for them any more.
    pub fn note_removed(&mut self, row: u32) {
        self.gone.insert(row);
        self.moved.remove(&row);
    }

    /// Forgets what was noted of rows that are gone, and of those that stand in a new segment; what it does not know is to be noted again.
    pub fn forget_moved(&mut self, rows: &Range<u32>) {
        let (gone, expired_below) = (&self.gone, self.expired_below);
        self.moved.retain(|_, moved| {
            moved
                .retain(|&row| !rows.contains(&row) && row >= expired_below && !gone.contains(row));
            !moved.is_empty()
        });
    }

    /// Whether any row is gone.
    pub fn has_gone(&self) -> bool {
        self.expired_below > 0 || self.gone.len() > 0
    }

    /// Whether a row is gone.
    pub fn is_gone(&self, row: u32) -> bool {
        row < self.expired_below || self.gone.contains(row)
    }

    /// The layer of a row, which is below [`num_rows`](Self::num_rows).
    pub fn layer_of(&self, row: u32) -> &Layer {
        let layer = self.layers.partition_point(|layer| layer.rows().end <= row);
        &self.layers[layer]
    }

    /// The rows in memory, where this one is among them.
    pub fn tail_of(&self, row: u32) -> Option<&Tail> {
        match self.layer_of(row) {
            Layer::Tail(tail) => Some(tail),
            Layer::Segment(_) => None,
        }
    }

    /// The same, to change.
    pub fn tail_of_mut(&mut self, row: u32) -> Option<&mut Tail> {
        let layer = self.layers.partition_point(|layer| layer.rows().end <= row);
        match self.layers.get_mut(layer)? {
            Layer::Tail(tail) => Some(tail),
            Layer::Segment(_) => None,
        }
    }

    /// Whether a row is kept, gone or not.
    ///
    /// # Errors
    /// Those of a damaged segment.
    pub fn is_kept(&self, row: u32) -> Result<bool, Error> {
        if self.promoted.contains(row) {
            return Ok(true);
        }
        match self.layer_of(row) {
            Layer::Segment(segment) => Ok(segment.is_kept(row)?),
            Layer::Tail(tail) => Ok(tail.row(row).verdict.is_none()),
        }
    }

    /// The newest rows in memory; there is always a layer of them.
    pub fn newest(&mut self) -> Option<&mut Tail> {
        match self.layers.last_mut() {
            Some(Layer::Tail(tail)) => Some(tail),
            _ => None,
        }
    }
}
