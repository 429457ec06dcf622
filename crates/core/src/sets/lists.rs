//! Which documents hold a feature, and which stretches of them are not worth a look?
//!
//! Documents of one template meet in every posting of their list. So a list keeps the smallest size and the largest
//! rest of each 64 and of each 4,096 postings: a block whose bounds fail is skipped, and the few documents met before
//! are looked up in it by bisection. The candidates are those of a full scan.

use std::ops::Range;

/// A document in the list of a feature.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Posting {
    pub(super) position: u32,
    /// Size of the document's features from this one on, in order of rank.
    pub(super) rest: f32,
}

/// Bounds of the documents of a stretch of postings.
#[derive(Debug, Clone, Copy)]
pub(super) struct Bounds {
    pub(super) least_size: f32,
    pub(super) most_rest: f32,
}

const NOTHING: Bounds = Bounds {
    least_size: f32::INFINITY,
    most_rest: 0.0,
};

/// Lists 2f and 2f + 1 are those of feature f: documents with it in their prefix, and behind it. 8 bytes an entry and a
/// little more for bounds (12 with weights), 24 a feature.
#[derive(Debug)]
pub(super) struct Lists {
    starts: Vec<usize>,
    /// How much of each list is filled, positions ascending.
    lengths: Vec<u32>,
    postings: Vec<Posting>,
    /// Empty where every weight is 1.
    weights: Vec<u32>,
    /// Bounds of each `1 << SHIFTS[i]` postings, whatever lists they belong to. What is taken out of a list
    /// leaves them as they are: they stay true.
    bounds: [Vec<Bounds>; 2],
}

/// Of the wide stretches first.
const SHIFTS: [u32; 2] = [12, 6];

impl Lists {
    /// Empty lists with room for all entries: list `l` has that of `starts[l]..starts[l + 1]`.
    pub(super) fn new(starts: Vec<usize>, is_weighted: bool) -> Self {
        let num_entries = starts.last().copied().unwrap_or(0);
        Lists {
            lengths: vec![0; starts.len() - 1],
            postings: vec![Posting::default(); num_entries],
            weights: vec![0; if is_weighted { num_entries } else { 0 }],
            bounds: SHIFTS.map(|shift| vec![NOTHING; (num_entries >> shift) + 1]),
            starts,
        }
    }

    pub(super) fn num_bytes(&self) -> usize {
        8 * (self.postings.len() + self.starts.len())
            + 4 * (self.weights.len() + self.lengths.len())
            + 8 * self.bounds.iter().map(Vec::len).sum::<usize>()
    }

    /// Adds a document of this size behind all of a list, whose positions are lower.
    pub(super) fn push(&mut self, list: usize, posting: Posting, size: f32, weight: Option<u32>) {
        let slot = self.starts[list] + self.lengths[list] as usize;
        self.postings[slot] = posting;
        if let Some(weight) = weight {
            self.weights[slot] = weight;
        }
        self.lengths[list] += 1;
        for (bounds, shift) in self.bounds.iter_mut().zip(SHIFTS) {
            let bounds = &mut bounds[slot >> shift];
            bounds.least_size = bounds.least_size.min(size);
            bounds.most_rest = bounds.most_rest.max(posting.rest);
        }
    }

    /// Takes out the last document of a list.
    pub(super) fn pop(&mut self, list: usize) {
        self.lengths[list] -= 1;
    }

    /// Where the documents of a list stand.
    #[inline(always)]
    pub(super) fn slots(&self, list: usize) -> Range<usize> {
        let start = self.starts[list];
        start..start + self.lengths[list] as usize
    }

    #[inline(always)]
    pub(super) fn posting(&self, slot: usize) -> Posting {
        self.postings[slot]
    }

    #[inline(always)]
    pub(super) fn weight(&self, slot: usize) -> u32 {
        self.weights.get(slot).copied().unwrap_or(1)
    }

    /// Where a document stands among the slots of a list.
    pub(super) fn slot_of(&self, position: u32, slots: Range<usize>) -> Option<usize> {
        let found = self.postings[slots.clone()]
            .binary_search_by_key(&position, |posting| posting.position);
        found.ok().map(|at| slots.start + at)
    }

    /// The first stretch from `slot` on with bounds that pass, cut at `end`; empty where there is none.
    pub(super) fn next_stretch(
        &self,
        mut slot: usize,
        end: usize,
        passes: impl Fn(Bounds) -> bool,
    ) -> Range<usize> {
        'next: while slot < end {
            for (bounds, shift) in self.bounds.iter().zip(SHIFTS) {
                if !passes(bounds[slot >> shift]) {
                    slot = ((slot >> shift) + 1) << shift;
                    continue 'next;
                }
            }
            let fine = SHIFTS[1];
            return slot..end.min(((slot >> fine) + 1) << fine);
        }
        end..end
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stretches_hold_every_document_whose_own_bounds_pass() {
        let mut lists = Lists::new(vec![0, 10, 20_000, 20_007], false);
        let size_of = |position: u32| if position % 3001 == 7 { 3.0 } else { 50.0 };
        for list in 0..3 {
            let room = lists.starts[list + 1] - lists.starts[list];
            for position in 0..room as u32 {
                let posting = Posting {
                    position,
                    rest: 10.0,
                };
                lists.push(list, posting, size_of(position), None);
            }
        }
        for (least, expected) in [(100.0, 20_000), (10.0, 7), (2.0, 0)] {
            for list in 0..3 {
                let slots = lists.slots(list);
                let (mut slot, mut passed, mut looked_at) = (slots.start, 0, 0);
                while slot < slots.end {
                    let stretch =
                        lists.next_stretch(slot, slots.end, |bounds| bounds.least_size <= least);
                    for slot in stretch.clone() {
                        let position = lists.posting(slot).position;
                        assert_eq!(lists.slot_of(position, slots.clone()), Some(slot));
                        passed += usize::from(size_of(position) <= least);
                        looked_at += 1;
                    }
                    slot = stretch.end;
                }
                let there = slots
                    .clone()
                    .filter(|&slot| size_of(lists.posting(slot).position) <= least);
                assert_eq!(passed, there.count());
                assert!(looked_at <= expected * 64);
            }
        }
    }
}
