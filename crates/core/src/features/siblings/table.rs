//! Which places are slots, and how rare is a word?

use super::word_key;
use crate::error::Error;
use crate::features::feature_filter::FeatureFilter;
use crate::features::weight_table::{Entries, WeightTable};
use crate::features::weights::MAX_WEIGHT;
use crate::isa::Isa;

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
            slots: FeatureFilter::new(slots.iter().copied(), slots.len()),
            num_slots: slots.len(),
        })
    }

    /// Whether any place is a slot.
    pub(super) fn has_slots(&self) -> bool {
        self.num_slots > 0
    }

    /// Whether a frame may be that of a slot: false for most that are not.
    #[inline]
    pub(super) fn may_be_slot(&self, frame: u64) -> bool {
        self.slots.may_hold(frame)
    }

    /// Keeps the frames of slots, and the fillings at the same places.
    pub(super) fn keep_slots(
        &self,
        frames: &mut Vec<u64>,
        fillings: &mut Vec<u64>,
        isa: Isa,
        weights: &mut Vec<u32>,
    ) {
        self.table.weigh(frames, isa, weights);
        for list in [frames, fillings] {
            let mut weights = weights.iter();
            list.retain(|_| weights.next() == Some(&0));
        }
    }

    /// Replaces `rarities` by those of tokens, 1 to 15.
    pub(super) fn rarities(&self, tokens: &[u64], isa: Isa, rarities: &mut Vec<u32>) {
        let keys: Vec<u64> = tokens.iter().map(|&token| word_key(token)).collect();
        self.table.weigh(&keys, isa, rarities);
    }

    /// Returns the contents, with keys ascending.
    pub fn entries(&self) -> &Entries {
        self.table.entries()
    }

    /// Size in memory, in bytes.
    pub fn num_bytes(&self) -> usize {
        self.table.num_bytes() + self.slots.num_bytes()
    }
}
