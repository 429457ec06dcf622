//! Which documents hold a feature, and which stretches of them are not worth a look?
//!
//! Documents of one template meet in every posting of their list. So a list keeps the smallest size and the largest
//! rest of each 64 and of each 4,096 postings: a block whose bounds fail is skipped, and the few documents met before
//! are looked up in it by bisection. The candidates are those of a full scan.

use std::ops::Range;

use crate::prefetch::prefetch_read;

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
    /// The form of all documents; 0 if they have none or several.
    pub(super) form: u32,
}

const NOTHING: Bounds = Bounds {
    least_size: f32::INFINITY,
    most_rest: 0.0,
    form: 0,
};

/// For each feature, the documents with it in their prefix and those with it behind: 8 bytes an entry, 24 a feature.
#[derive(Debug)]
pub(super) struct Lists {
    heads: Vec<Head>,
    num_entries: usize,
    postings: Vec<Posting>,
    /// Empty where every weight is 1.
    weights: Vec<u32>,
    /// Bounds of each `1 << SHIFTS[i]` postings; wider than needed, but valid, after postings are removed.
    bounds: [Vec<Bounds>; 2],
}

/// Where the lists of a feature are.
#[derive(Debug, Clone, Copy)]
struct Head {
    start: usize,
    /// Postings that the first list has room for; then comes the second.
    num_prefix: u32,
    /// How much of each is filled, positions ascending.
    lengths: [u32; 2],
}

/// Which list of a feature.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Part {
    Prefix = 0,
    Behind = 1,
}

/// Of the wide stretches first.
const SHIFTS: [u32; 2] = [12, 6];

impl Lists {
    /// Room for so many features, none of them made.
    pub(super) fn with_capacity(num_features: usize) -> Self {
        Lists {
            heads: Vec::with_capacity(num_features),
            num_entries: 0,
            postings: Vec::new(),
            weights: Vec::new(),
            bounds: [Vec::new(), Vec::new()],
        }
    }

    /// Makes the lists of a feature with room for so many entries; returns the number of the feature.
    pub(super) fn make(&mut self, [num_prefix, num_behind]: [u32; 2]) -> u32 {
        self.heads.push(Head {
            start: self.num_entries,
            num_prefix,
            lengths: [0, 0],
        });
        self.num_entries += num_prefix as usize + num_behind as usize;
        self.heads.len() as u32 - 1
    }

    /// Makes room for the entries of all lists that were made.
    pub(super) fn finish(mut self, is_weighted: bool) -> Self {
        let num_entries = self.num_entries;
        self.postings = vec![Posting::default(); num_entries];
        self.weights = vec![0; if is_weighted { num_entries } else { 0 }];
        self.bounds = SHIFTS.map(|shift| vec![NOTHING; (num_entries >> shift) + 1]);
        self
    }

    pub(super) fn num_bytes(&self) -> usize {
        8 * self.postings.len()
            + 4 * self.weights.len()
            + size_of::<Head>() * self.heads.len()
            + size_of::<Bounds>() * self.bounds.iter().map(Vec::len).sum::<usize>()
    }

    /// Asks for what tells where the lists of a feature are.
    #[inline(always)]
    pub(super) fn prefetch_head(&self, feature: u32) {
        prefetch_read(&self.heads, feature as usize);
    }

    /// Asks for the place where the next document of the first list goes.
    #[inline(always)]
    pub(super) fn prefetch_end(&self, feature: u32) {
        prefetch_read(&self.postings, self.slots(feature, Part::Prefix).end);
    }

    /// Adds a document of this size behind all of a list, whose positions are lower.
    pub(super) fn push(
        &mut self,
        feature: u32,
        part: Part,
        posting: Posting,
        (size, form): (f32, u32),
        weight: Option<u32>,
    ) {
        let slot = self.slots(feature, part).end;
        self.postings[slot] = posting;
        if let Some(weight) = weight {
            self.weights[slot] = weight;
        }
        self.heads[feature as usize].lengths[part as usize] += 1;
        for (bounds, shift) in self.bounds.iter_mut().zip(SHIFTS) {
            let bounds = &mut bounds[slot >> shift];
            let is_first = bounds.least_size == f32::INFINITY;
            bounds.form = if is_first || bounds.form == form {
                form
            } else {
                0
            };
            bounds.least_size = bounds.least_size.min(size);
            bounds.most_rest = bounds.most_rest.max(posting.rest);
        }
    }

    /// Removes the last document of a list.
    pub(super) fn pop(&mut self, feature: u32, part: Part) {
        self.heads[feature as usize].lengths[part as usize] -= 1;
    }

    /// Where the documents of a list stand.
    #[inline(always)]
    pub(super) fn slots(&self, feature: u32, part: Part) -> Range<usize> {
        let head = &self.heads[feature as usize];
        let start = match part {
            Part::Prefix => head.start,
            Part::Behind => head.start + head.num_prefix as usize,
        };
        start..start + head.lengths[part as usize] as usize
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
        let mut lists = Lists::with_capacity(2);
        let (first, second) = (lists.make([10, 0]), lists.make([19_990, 7]));
        let mut lists = lists.finish(false);
        let size_of = |position: u32| if position % 3001 == 7 { 3.0 } else { 50.0 };
        let all = [
            (first, Part::Prefix, 10),
            (second, Part::Prefix, 19_990),
            (second, Part::Behind, 7),
        ];
        for (feature, part, room) in all {
            for position in 0..room {
                let posting = Posting {
                    position,
                    rest: 10.0,
                };
                lists.push(feature, part, posting, (size_of(position), 0), None);
            }
        }
        for (least, expected) in [(100.0, 20_000), (10.0, 7), (2.0, 0)] {
            for (feature, part, room) in all {
                let slots = lists.slots(feature, part);
                assert_eq!(slots.len(), room as usize);
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
