//! Which window is the first of those that are equal?

use super::Pair;

/// Stands for no place.
const NONE: u64 = u64::MAX;

/// Finds the first place of each hash; holds the scratch space: 32 to 64 bytes a pair.
#[derive(Debug, Default)]
pub struct FirstPlaces {
    slots: Vec<Pair>,
}

impl FirstPlaces {
    /// Calls `take` with the place and the first one of each pair (hash, place) whose hash has an earlier place.
    ///
    /// The pairs come in any order, all that have one of their hashes. `skip_bits` upper bits of the hashes tell nothing: they are equal
    /// for all. Places are below 2^64 - 1.
    ///
    /// # Cost
    /// Two looks into a table a pair.
    pub fn for_each_later(
        &mut self,
        pairs: &[Pair],
        skip_bits: u32,
        mut take: impl FnMut(u64, u64),
    ) {
        let num_slots = (2 * pairs.len()).next_power_of_two().max(2);
        let shift = u64::BITS - num_slots.trailing_zeros();
        self.slots.clear();
        self.slots.resize(num_slots, [0, NONE]);
        for &[hash, place] in pairs {
            let slot = find(&self.slots, hash, skip_bits, shift);
            let [_, first] = self.slots[slot];
            self.slots[slot] = [hash, place.min(first)];
        }
        for &[hash, place] in pairs {
            let [_, first] = self.slots[find(&self.slots, hash, skip_bits, shift)];
            if first != place {
                take(place, first);
            }
        }
    }
}

/// The slot of a hash, or the one that it would have.
#[inline]
fn find(slots: &[Pair], hash: u64, skip_bits: u32, shift: u32) -> usize {
    let mut slot = (hash << skip_bits >> shift) as usize;
    while slots[slot][0] != hash && slots[slot][1] != NONE {
        slot = (slot + 1) & (slots.len() - 1);
    }
    slot
}
