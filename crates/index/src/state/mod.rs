//! What does an index know at one moment?

pub mod bits;
pub mod in_memory;
pub mod plan;
pub mod promoted;

use std::ops::Range;
use std::sync::Arc;

use likewise_disk::segments::{Piece, Segment};
use likewise_disk::store::{Position, Swept};

use crate::error::Result;
use crate::state::bits::{Bits, Quick};
use crate::state::in_memory::MemoryRows;
use crate::state::promoted::PromotedTables;

/// Tables of the rows of a range, but for those that were gone when the tables were made.
#[derive(Debug)]
pub enum Layer {
    Segment(Arc<Segment>),
    Memory(Box<MemoryRows>),
}

impl Layer {
    pub fn rows(&self) -> Range<u32> {
        match self {
            Layer::Segment(segment) => segment.rows(),
            Layer::Memory(tail) => tail.rows(),
        }
    }

    pub fn num_held(&self) -> u32 {
        match self {
            Layer::Segment(segment) => segment.num_rows,
            Layer::Memory(tail) => tail.num_held(),
        }
    }

    pub fn num_below(&self, row: u32) -> Result<u32> {
        match self {
            Layer::Segment(segment) => Ok(segment.num_below(row)?),
            Layer::Memory(tail) => Ok(tail.num_below(row)),
        }
    }

    pub fn holds(&self, row: u32) -> Result<bool> {
        match self {
            Layer::Segment(segment) => Ok(segment.holds(row)?),
            Layer::Memory(tail) => Ok(tail.holds(row)),
        }
    }
}

/// Layers of all rows that are not gone, and what befell the rows that they hold since they were made.
#[derive(Debug, Default)]
pub struct State {
    /// Ascending; between them all rows are gone.
    pub layers: Vec<Layer>,
    /// Rows of the layers that the user removed since these were made.
    pub gone: Bits,
    /// Rows below have expired.
    pub expired_below: u32,
    /// Rows of the layers that were removed as duplicates when these were made and are kept now.
    pub promoted: Bits,
    /// Rows that came to another leader than that of their layer, by leader.
    pub moved: Quick<u32, Vec<u32>>,
    /// PromotedTables rows that no layer finds.
    pub promoted_tables: PromotedTables,
    /// The last event that all this knows of.
    pub last_event: u64,
    /// Up to where records were looked at that may be dropped.
    pub swept: Swept,
    /// Whether its documents moved here from an index that may have had others: levels of buckets may have gaps.
    pub is_moved: bool,
    /// In a reader, how often the writer had dropped records before this state: later drops make it unusable.
    pub droppings: u64,
}

impl State {
    pub fn num_rows(&self) -> u32 {
        self.layers.last().map_or(0, |layer| layer.rows().end)
    }

    pub fn position(&self) -> Position {
        Position {
            num_rows: self.num_rows(),
            last_event: self.last_event,
            expired_below: self.expired_below,
        }
    }

    /// The layers as those who build segments see them.
    pub fn pieces(&self) -> Result<Vec<Piece>> {
        let pieces = self.layers.iter().map(|layer| {
            let rows = layer.rows();
            let num_held = layer.num_held();
            let not_expired = rows.start.max(self.expired_below)..rows.end.max(self.expired_below);
            let num_gone = self.gone.num_in(&not_expired) as u32;
            Ok(Piece {
                num_held,
                num_live: num_held - layer.num_below(self.expired_below)? - num_gone,
                is_built: matches!(layer, Layer::Segment(_)),
                rows,
            })
        });
        pieces.collect()
    }

    /// Rows that the layers hold, gone ones included.
    pub fn num_held(&self) -> u32 {
        self.layers.iter().map(Layer::num_held).sum()
    }

    /// Documents that are not gone.
    pub fn num_documents(&self) -> Result<usize> {
        let pieces = self.pieces()?;
        Ok(pieces.iter().map(|piece| piece.num_live as usize).sum())
    }

    /// About how many documents are gone whose records were not swept yet.
    pub fn num_to_sweep(&self) -> u64 {
        self.last_event - self.swept.last_event
            + u64::from(self.expired_below - self.swept.expired_below)
    }

    /// Records that an event gave a row another leader, if the layer of the row does not contain the event.
    pub fn note_moved(&mut self, event: u64, row: u32, leader: u32) -> Result<()> {
        let is_known = match self.layer_of(row) {
            Some(Layer::Segment(segment)) => segment.last_event() >= event,
            _ => false,
        };
        // One that no layer holds was removed since.
        if !is_known && self.holds(row)? {
            self.moved.entry(leader).or_default().push(row);
        }
        Ok(())
    }

    /// Records that an event removed a row. The same event reassigned its duplicates, so they need no entry.
    pub fn note_removed(&mut self, row: u32) -> Result<()> {
        if self.holds(row)? {
            self.gone.insert(row);
        }
        self.moved.remove(&row);
        Ok(())
    }

    /// Deletes the records about rows of a new segment; events that it does not contain must be recorded again.
    pub fn forget_noted(&mut self, rows: &Range<u32>) {
        self.forget_moved(rows);
        self.gone.clear(rows);
        self.promoted.clear(rows);
    }

    /// Deletes the leaders of rows that are gone or in a new segment.
    fn forget_moved(&mut self, rows: &Range<u32>) {
        let (gone, expired_below) = (&self.gone, self.expired_below);
        self.moved.retain(|_, moved| {
            moved
                .retain(|&row| !rows.contains(&row) && row >= expired_below && !gone.contains(row));
            !moved.is_empty()
        });
    }

    /// Whether any row was ever gone, here or in the index from which the documents moved.
    pub fn has_gone(&self) -> bool {
        self.is_moved || self.expired_below > 0 || self.last_event > 0
    }

    /// Whether a row is gone that a layer holds, or that was the leader of one.
    pub fn is_gone(&self, row: u32) -> bool {
        row < self.expired_below || self.gone.contains(row)
    }

    pub fn segments(&self) -> impl Iterator<Item = &Arc<Segment>> {
        self.layers.iter().filter_map(|layer| match layer {
            Layer::Segment(segment) => Some(segment),
            Layer::Memory(_) => None,
        })
    }

    pub fn layer_of(&self, row: u32) -> Option<&Layer> {
        let layer = self.layers.partition_point(|layer| layer.rows().end <= row);
        let layer = self.layers.get(layer)?;
        layer.rows().contains(&row).then_some(layer)
    }

    pub fn holds(&self, row: u32) -> Result<bool> {
        match self.layer_of(row) {
            Some(layer) => layer.holds(row),
            None => Ok(false),
        }
    }

    /// The rows in memory, where this one is among them.
    pub fn memory_of(&self, row: u32) -> Option<&MemoryRows> {
        match self.layer_of(row) {
            Some(Layer::Memory(tail)) if tail.holds(row) => Some(tail),
            _ => None,
        }
    }

    /// The same, to change.
    pub fn memory_of_mut(&mut self, row: u32) -> Option<&mut MemoryRows> {
        let layer = self.layers.partition_point(|layer| layer.rows().end <= row);
        match self.layers.get_mut(layer)? {
            Layer::Memory(tail) if tail.holds(row) => Some(tail),
            _ => None,
        }
    }

    /// Whether a row that a layer holds is kept, gone or not.
    pub fn is_kept(&self, row: u32) -> Result<bool> {
        if self.promoted.contains(row) {
            return Ok(true);
        }
        match self.layer_of(row) {
            Some(Layer::Segment(segment)) => Ok(segment.is_kept(row)?),
            Some(Layer::Memory(tail)) => Ok(tail.holds(row) && tail.row(row).verdict.is_none()),
            None => Ok(false),
        }
    }

    /// The newest rows in memory; there is always a layer of them.
    pub fn newest(&mut self) -> Option<&mut MemoryRows> {
        match self.layers.last_mut() {
            Some(Layer::Memory(tail)) => Some(tail),
            _ => None,
        }
    }
}
