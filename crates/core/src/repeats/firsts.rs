//! Which of several equal windows is the first?

use super::Pair;

const NONE: u64 = u64::MAX;
/// Pairs between two checks of how full the table is.
const PAIRS_AT_ONCE: usize = 1 << 16;

/// The first place of each hash. Memory: 32 to 64 bytes per hash, however often it occurs, or per expected pair.
#[derive(Debug)]
pub struct FirstPlaces {
    slots: Vec<Pair>,
    num_hashes: usize,
    /// Number of upper bits that are equal in all hashes.
    skip_bits: u32,
}

impl FirstPlaces {
    /// Creates a table for hashes whose `skip_bits` upper bits are equal.
    pub fn new(skip_bits: u32) -> Self {
        FirstPlaces {
            slots: Vec::new(),
            num_hashes: 0,
            skip_bits,
        }
    }

    /// Clears the table and allocates space for about `num_expected` hashes; it grows as needed.
    pub fn clear(&mut self, num_expected: usize) {
        let num_slots = (2 * num_expected).next_power_of_two().max(2);
        self.slots.clear();
        self.slots.resize(num_slots, [0, NONE]);
        self.num_hashes = 0;
    }

    /// Records pairs (hash, place), in any order. Places must be below 2^64 - 1. Cost: one table access per pair.
    pub fn note(&mut self, pairs: &[Pair]) {
        for some in pairs.chunks(PAIRS_AT_ONCE) {
            self.reserve(some.len());
            let shift = self.shift();
            for &[hash, place] in some {
                let slot = find(&self.slots, hash, self.skip_bits, shift);
                let [_, first] = self.slots[slot];
                self.num_hashes += usize::from(first == NONE);
                self.slots[slot] = [hash, place.min(first)];
            }
        }
    }

    /// Calls `take` with the place, and the first place of its hash, for each recorded pair with an earlier place.
    pub fn for_each_later(&self, pairs: &[Pair], mut take: impl FnMut(u64, u64)) {
        let shift = self.shift();
        for &[hash, place] in pairs {
            let [_, first] = self.slots[find(&self.slots, hash, self.skip_bits, shift)];
            if first != place {
                take(place, first);
            }
        }
    }

    fn shift(&self) -> u32 {
        u64::BITS - self.slots.len().trailing_zeros()
    }

    /// Makes space for `num_more` hashes, with at most half of the slots used.
    fn reserve(&mut self, num_more: usize) {
        let num_slots = (2 * (self.num_hashes + num_more)).next_power_of_two();
        if num_slots <= self.slots.len() {
            return;
        }
        let old = std::mem::replace(&mut self.slots, vec![[0, NONE]; num_slots.max(2)]);
        let shift = self.shift();
        for pair in old.into_iter().filter(|pair| pair[1] != NONE) {
            let slot = find(&self.slots, pair[0], self.skip_bits, shift);
            self.slots[slot] = pair;
        }
    }
}

/// Returns the slot of a hash, or the free one that it would take.
#[inline]
fn find(slots: &[Pair], hash: u64, skip_bits: u32, shift: u32) -> usize {
    let mut slot = (hash << skip_bits >> shift) as usize;
    while slots[slot][0] != hash && slots[slot][1] != NONE {
        slot = (slot + 1) & (slots.len() - 1);
    }
    slot
}
