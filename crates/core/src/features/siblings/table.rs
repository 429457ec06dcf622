//! Which places are slots, and how rare is a word?

use super::word_key;
use crate::error::Error;
use crate::features::feature_filter::FeatureFilter;
use crate::features::weight_table::{Entries, WeightTable};
use crate::features::weights::MAX_WEIGHT;

/// Bits of the filter for each slot, in units of those that a filter has for a feature: most places are no slots.
const SPARSE: usize = 8;

/// What [`NameCounter::finish`](super::NameCounter::finish) found.
#[derive(Debug)]
pub struct NameTable {
    table: WeightTable,
    slots: FeatureFilter,
    num_slots: usize,
}

impl NameTable {
    /// Builds a table. Cost: about 20 ns per entry.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidParameter`] as for [`WeightTable::new`].
    pub fn new(entries: Entries) -> Result<Self, Error> {
        let slots: Vec<u64> = match &entries {
            Entries::Listed { features, weights } => {
                let listed = features.iter().zip(weights);
                let slots = listed.filter(|&(_, &weight)| weight == 0);
                slots.map(|(&frame, _)| frame).collect()
            }
            Entries::Cells { .. } => Vec::new(),
        };
        Ok(NameTable {
            table: WeightTable::new(MAX_WEIGHT, entries)?,
            slots: FeatureFilter::new(slots.iter().copied(), SPARSE * slots.len()),
            num_slots: slots.len(),
        })
    }

    /// Whether any place is a slot.
    pub(super) fn has_slots(&self) -> bool {
        self.num_slots > 0
    }

    /// Whether a frame is that of a slot.
    #[inline]
    pub(super) fn is_slot(&self, frame: u64) -> bool {
        self.slots.may_hold(frame) && self.table.listed(frame) == Some(0)
    }

    /// The rarity of a token, 1 to 15.
    pub(super) fn rarity(&self, token: u64) -> u8 {
        self.table.listed(word_key(token)).unwrap_or(MAX_WEIGHT)
    }

    /// Returns the contents, with keys ascending.
    pub fn entries(&self) -> Entries {
        self.table.entries()
    }

    /// Size in memory, in bytes.
    pub fn num_bytes(&self) -> usize {
        self.table.num_bytes() + self.num_slots * SPARSE
    }
}
