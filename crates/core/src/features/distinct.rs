//! Which features are distinct, and how often does each occur?

/// Open-addressing table over a list of distinct features, in order of first occurrence.
#[derive(Debug, Default)]
pub(crate) struct Distinct {
    /// Index into `features` plus one, 0 = free; the length is a power of two, and at most half of the slots are used.
    slots: Vec<u32>,
    pub(crate) features: Vec<u64>,
    pub(crate) counts: Vec<u32>,
}

const MIN_SLOTS: usize = 256;
/// At first, at most a quarter of the slots are used, up to this number of slots.
const MAX_FIRST_SLOTS: usize = 8192;
/// Number of occurrences between checks whether the table has to grow.
const ADDED_AT_ONCE: usize = 1024;

impl Distinct {
    /// Replaces the contents by the distinct features of `occurrences`.
    pub(crate) fn collect(&mut self, occurrences: &[u64]) {
        let wanted = (occurrences.len() * 4).next_power_of_two();
        self.slots.clear();
        self.slots
            .resize(wanted.clamp(MIN_SLOTS, MAX_FIRST_SLOTS), 0);
        self.features.clear();
        self.counts.clear();
        for some in occurrences.chunks(ADDED_AT_ONCE) {
            let most = self.features.len() + some.len();
            if most * 2 > self.slots.len() {
                self.grow();
            }
            self.add(some);
        }
    }

    pub(crate) fn place(&self, feature: u64) -> Option<usize> {
        let mask = self.slots.len().checked_sub(1)?;
        let mut slot = feature as usize & mask;
        loop {
            match self.slots[slot] {
                0 => return None,
                i if self.features[i as usize - 1] == feature => return Some(i as usize - 1),
                _ => slot = (slot + 1) & mask,
            }
        }
    }

    /// Keeps the features for whose index `keep` returns true; nothing can be added afterward.
    pub(crate) fn retain(&mut self, keep: impl Fn(usize) -> bool) {
        let mut num_kept = 0;
        for i in 0..self.features.len() {
            if keep(i) {
                self.features[num_kept] = self.features[i];
                self.counts[num_kept] = self.counts[i];
                num_kept += 1;
            }
        }
        self.features.truncate(num_kept);
        self.counts.truncate(num_kept);
    }

    fn add(&mut self, occurrences: &[u64]) {
        let mut len = self.features.len();
        self.features.resize(len + occurrences.len(), 0);
        self.counts.resize(len + occurrences.len(), 0);
        let (features, counts) = (&mut self.features[..], &mut self.counts[..]);
        let slots = &mut self.slots[..];
        let mask = slots.len() - 1;
        for &feature in occurrences {
            // A free slot is that of the new feature. So nothing branches on whether a feature is new, which no
            // processor predicts.
            features[len] = feature;
            let mut slot = feature as usize & mask;
            let place = loop {
                let stored = slots[slot] as usize;
                let place = if stored == 0 { len } else { stored - 1 };
                if features[place] == feature {
                    break place;
                }
                slot = (slot + 1) & mask;
            };
            slots[slot] = place as u32 + 1;
            counts[place] += 1;
            len += usize::from(place == len);
        }
        self.features.truncate(len);
        self.counts.truncate(len);
    }

    #[cold]
    fn grow(&mut self) {
        let num_slots = self.slots.len() * 4;
        self.slots.clear();
        self.slots.resize(num_slots, 0);
        for (i, &feature) in self.features.iter().enumerate() {
            let mut slot = feature as usize & (num_slots - 1);
            while self.slots[slot] != 0 {
                slot = (slot + 1) & (num_slots - 1);
            }
            self.slots[slot] = i as u32 + 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use super::*;
    use crate::testing::Random;

    #[test]
    fn features_are_in_order_of_first_occurrence_however_many_there_are() {
        let mut random = Random::new(11);
        let mut distinct = Distinct::default();
        for (num_occurrences, num_features) in
            [(0, 1), (1, 1), (5000, 3), (5000, 5000), (90_000, 30_000)]
        {
            // Few lowest bits, so that features compete for slots; 0 is a feature too.
            let occurrences: Vec<u64> = (0..num_occurrences)
                .map(|_| random.next() % num_features * 64)
                .collect();
            let mut places: HashMap<u64, usize> = HashMap::new();
            let (mut features, mut counts) = (Vec::new(), Vec::new());
            for &feature in &occurrences {
                let place = *places.entry(feature).or_insert(features.len());
                if place == features.len() {
                    features.push(feature);
                    counts.push(0);
                }
                counts[place] += 1;
            }
            distinct.collect(&occurrences);
            assert_eq!(distinct.features, features);
            assert_eq!(distinct.counts, counts);
            for (&feature, &place) in &places {
                assert_eq!(distinct.place(feature), Some(place));
            }
            assert_eq!(distinct.place(1), None);
        }
    }
}
