//! Which items have equal keys?

/// Number of key bits per pass of the radix sort.
const DIGIT_BITS: u32 = 11;
/// Number of items below which a comparison sort is faster than clearing the counters.
const FEW: usize = 512;

/// Scratch space of [`Grouper::for_each_run`]: 16 bytes per item.
#[derive(Debug, Default)]
pub(super) struct Grouper {
    /// The high half of the key above the item's index, so that items with equal keys remain in order of index.
    packed: Vec<u64>,
    spare: Vec<u64>,
    tied: Vec<(u64, u32)>,
    run: Vec<u32>,
}

impl Grouper {
    /// Calls `visit` with the ascending indices of two or more items with equal keys, in two or three passes.
    pub(super) fn for_each_run(&mut self, keys: &[u64], mut visit: impl FnMut(&[u32])) {
        self.packed.clear();
        self.packed.extend(
            keys.iter()
                .enumerate()
                .map(|(i, key)| (key >> 32 << 32) | i as u64),
        );
        let num_passes = match keys.len() {
            0..=FEW => 0,
            length if length < 1 << 18 => 2,
            _ => 3,
        };
        let shift = if num_passes == 0 {
            self.packed.sort_unstable();
            32
        } else {
            let shift = u64::BITS - num_passes * DIGIT_BITS;
            for pass in 0..num_passes {
                self.sort_by_digit(shift + pass * DIGIT_BITS);
            }
            // The lowest of three digits overlaps one bit of the index, which is 0 below 2^31 items.
            shift.max(32)
        };
        let mut start = 0;
        while start < self.packed.len() {
            let high = self.packed[start] >> shift;
            let length = 1 + self.packed[start + 1..]
                .iter()
                .take_while(|&&item| item >> shift == high)
                .count();
            if length > 1 {
                self.visit_tied(keys, start..start + length, &mut visit);
            }
            start += length;
        }
    }

    /// Visits the runs among items whose sorted key bits are equal.
    fn visit_tied(
        &mut self,
        keys: &[u64],
        range: std::ops::Range<usize>,
        visit: &mut impl FnMut(&[u32]),
    ) {
        self.run.clear();
        self.run
            .extend(self.packed[range].iter().map(|&item| item as u32));
        let first = keys[self.run[0] as usize];
        if self.run.iter().all(|&i| keys[i as usize] == first) {
            visit(&self.run);
            return;
        }
        self.tied.clear();
        self.tied
            .extend(self.run.iter().map(|&i| (keys[i as usize], i)));
        self.tied.sort_unstable();
        for equal in self.tied.chunk_by(|a, b| a.0 == b.0) {
            if equal.len() > 1 {
                self.run.clear();
                self.run.extend(equal.iter().map(|&(_, i)| i));
                visit(&self.run);
            }
        }
    }

    fn sort_by_digit(&mut self, shift: u32) {
        const NUM_DIGITS: usize = 1 << DIGIT_BITS;
        let digit = |item: u64| (item >> shift) as usize & (NUM_DIGITS - 1);
        let mut next = [0_u32; NUM_DIGITS];
        for &item in &self.packed {
            next[digit(item)] += 1;
        }
        let mut total = 0;
        for slot in &mut next {
            total += std::mem::replace(slot, total);
        }
        self.spare.resize(self.packed.len(), 0);
        for &item in &self.packed {
            let slot = &mut next[digit(item)];
            self.spare[*slot as usize] = item;
            *slot += 1;
        }
        std::mem::swap(&mut self.packed, &mut self.spare);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hash::mix64;
    use std::collections::BTreeMap;

    fn runs_of(keys: &[u64]) -> Vec<Vec<u32>> {
        let mut found = Vec::new();
        Grouper::default().for_each_run(keys, |run| found.push(run.to_vec()));
        found.sort();
        found
    }

    #[test]
    fn runs_are_those_of_a_map() {
        for (length, values) in [
            (0, 1),
            (1, 1),
            (50, 7),
            (3000, 2000),
            (3000, 3),
            (300_000, 200_000),
        ] {
            // `mix64` produces spread keys; the second form differs only in the low half, so that the sorted bits tie.
            for tied in [false, true] {
                let keys: Vec<u64> = (0..length)
                    .map(|i| mix64(i) % values)
                    .map(|v| if tied { v } else { mix64(v + 1) })
                    .collect();
                let mut by_key: BTreeMap<u64, Vec<u32>> = BTreeMap::new();
                for (i, key) in keys.iter().enumerate() {
                    by_key.entry(*key).or_default().push(i as u32);
                }
                let mut expected: Vec<Vec<u32>> =
                    by_key.into_values().filter(|run| run.len() > 1).collect();
                expected.sort();
                assert_eq!(runs_of(&keys), expected);
            }
        }
    }
}
