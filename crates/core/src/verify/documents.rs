//! Which pairs of documents reach the threshold, if their sets are stored at separate places?
//!
//! Documents of one template meet in their buckets, about 190 pairs each, and an estimate near the threshold excludes
//! few of them. So each pair must be cheap: sizes are compared first, then an upper bound from two bitmaps; both only
//! reject pairs that cannot match. Sets are found by position, without following a pointer, and are prefetched. The
//! measuring threads look up the sets and the states.

use crate::error::Error;
use crate::isa::Isa;
use crate::parallel::Run;
use crate::search::REMOVED;

use super::Measure;
use super::pairs::{FeatureSets, GRAIN_PAIRS, NOWHERE, check};
use super::required::Required;

/// Where the sets of documents are stored (without places, at the positions of the documents), and which documents are
/// excluded.
#[derive(Debug, Clone, Copy, Default)]
pub struct HeldDocuments<'a> {
    pub places: Option<&'a [u32]>,
    pub states: &'a [u8],
}

#[derive(Debug, Clone, Default)]
pub struct MeasuredPairs {
    /// The exact similarity of each pair that reaches the threshold, NaN for the others.
    pub similarities: Vec<f64>,
    /// Number of pairs that were not skipped.
    pub num_measured: usize,
}

impl FeatureSets {
    /// Returns the exact similarity of A = `later[i]` against B = `earlier[i]` for every pair that reaches the
    /// [`Required`] one for sets of their sizes, NaN for the others, and if the earlier one is [`REMOVED`]. All threads
    /// look up documents, since each costs a cache miss.
    pub fn verify_pairs(
        &self,
        held: HeldDocuments<'_>,
        [later, earlier]: [&[u32]; 2],
        measure: Measure,
        required: impl Into<Required>,
        isa: Isa,
        run: Run<'_>,
    ) -> Result<MeasuredPairs, Error> {
        let required = required.into();
        check(later, earlier, required)?;
        held.check()?;
        let parts = run.map(
            later.len(),
            GRAIN_PAIRS,
            || (Vec::new(), Vec::new()),
            |(later_places, earlier_places), range| {
                later_places.clear();
                earlier_places.clear();
                let mut num_measured = 0;
                for (&later, &earlier) in later[range.clone()].iter().zip(&earlier[range]) {
                    later_places.push(held.place("later", later)?);
                    let is_removed = held.states.get(earlier as usize) == Some(&REMOVED);
                    num_measured += usize::from(!is_removed);
                    earlier_places.push(match is_removed {
                        true => NOWHERE,
                        false => held.place("earlier", earlier)?,
                    });
                }
                let found = self.measure(later_places, earlier_places, measure, required, isa)?;
                Ok::<_, Error>((found, num_measured))
            },
        )?;
        let mut all = MeasuredPairs {
            similarities: Vec::with_capacity(later.len()),
            num_measured: 0,
        };
        for part in parts {
            let (mut similarities, num_measured) = part?;
            all.similarities.append(&mut similarities);
            all.num_measured += num_measured;
        }
        Ok(all)
    }
}

impl HeldDocuments<'_> {
    fn check(&self) -> Result<(), Error> {
        match self.places {
            Some(places) if !self.states.is_empty() && self.states.len() != places.len() => {
                let reason = format!("{} states for {} places", self.states.len(), places.len());
                Err(Error::invalid("states", reason))
            }
            _ => Ok(()),
        }
    }

    #[inline(always)]
    fn place(&self, name: &'static str, document: u32) -> Result<u32, Error> {
        let Some(places) = self.places else {
            return Ok(document);
        };
        match places.get(document as usize) {
            Some(&place) if place != NOWHERE => Ok(place),
            _ => Err(Error::invalid(
                name,
                format!("document {document} has no place"),
            )),
        }
    }
}

/// Returns the documents below `num_documents` in any of the lists, ascending and each once.
pub fn distinct_documents(lists: &[&[u32]], num_documents: usize) -> Vec<u32> {
    let mut words = vec![0u64; num_documents.div_ceil(64)];
    for &document in lists.iter().copied().flatten() {
        if (document as usize) < num_documents {
            words[document as usize / 64] |= 1 << (document % 64);
        }
    }
    let num_distinct: u32 = words.iter().map(|word| word.count_ones()).sum();
    let mut distinct = Vec::with_capacity(num_distinct as usize);
    for (i, &word) in words.iter().enumerate() {
        let mut left = word;
        while left != 0 {
            distinct.push(64 * i as u32 + left.trailing_zeros());
            left &= left - 1;
        }
    }
    distinct
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::sync::atomic::AtomicBool;

    use super::*;
    use crate::hash::mix64;
    use crate::search::{KEPT, UNDECIDED};
    use crate::verify::FeatureSet;

    /// Documents of a template; the sets of those not excluded are stored in reverse order.
    fn held(states: &[u8]) -> (FeatureSets, Vec<u32>) {
        let mut sets = FeatureSets::new(0);
        let mut places = vec![0; states.len()];
        for (document, &state) in states.iter().enumerate() {
            let place = 3 * (states.len() - document) as u32;
            let own =
                (0..5 + mix64(document as u64) % 60).map(|i| 1000 * (document as u64 + 1) + i);
            let features: Vec<u64> = (0..40).chain(own).map(mix64).collect();
            if state != REMOVED {
                sets.insert(place, FeatureSet::new(&features, &[]));
                places[document] = place;
            }
        }
        (sets, places)
    }

    #[test]
    fn documents_are_measured_as_their_places_are_and_removed_ones_passed_over() {
        let states: Vec<u8> = (0..300)
            .map(|i| [UNDECIDED, KEPT, REMOVED][mix64(i) as usize % 3])
            .collect();
        let (sets, places) = held(&states);
        let later: Vec<u32> = (0..300)
            .filter(|&d| states[d as usize] != REMOVED)
            .flat_map(|d| std::iter::repeat_n(d, 100))
            .collect();
        let earlier: Vec<u32> = (0..later.len())
            .map(|i| (mix64(i as u64) % 300) as u32)
            .collect();
        let stop = AtomicBool::new(false);
        for isa in Isa::available() {
            for threads in [1, 3] {
                let run = Run {
                    threads,
                    cancel: &stop,
                };
                let held = HeldDocuments {
                    places: Some(&places),
                    states: &states,
                };
                let found = sets
                    .verify_pairs(held, [&later, &earlier], Measure::Jaccard, 0.55, isa, run)
                    .unwrap();
                let mut num_measured = 0;
                let mut num_matching = 0;
                for (i, &similarity) in found.similarities.iter().enumerate() {
                    if states[earlier[i] as usize] == REMOVED {
                        assert!(similarity.is_nan());
                        continue;
                    }
                    num_measured += 1;
                    let a = sets.get(places[later[i] as usize]).unwrap();
                    let b = sets.get(places[earlier[i] as usize]).unwrap();
                    let exact = a.similarity(b, Measure::Jaccard);
                    num_matching += usize::from(exact >= 0.55);
                    assert!(
                        similarity == exact && exact >= 0.55 || similarity.is_nan() && exact < 0.55
                    );
                }
                assert_eq!(found.num_measured, num_measured);
                assert!(num_matching > 1000 && num_matching < num_measured - 1000);
            }
        }
    }

    #[test]
    fn what_has_no_set_and_lists_that_do_not_fit_are_refused() {
        let states = [KEPT, KEPT, REMOVED];
        let (sets, mut places) = held(&states);
        let stop = AtomicBool::new(false);
        let verify = |places: &[u32], states: &[u8], later: &[u32], earlier: &[u32], threshold| {
            let places = Some(places);
            sets.verify_pairs(
                HeldDocuments { places, states },
                [later, earlier],
                Measure::Jaccard,
                threshold,
                Isa::best(),
                Run::alone(&stop),
            )
        };
        assert_eq!(verify(&places, &[], &[], &[], 0.5).unwrap().num_measured, 0);
        // A removed document has no set, and needs none if its state is known.
        assert_eq!(
            verify(&places, &states, &[1], &[2], 0.5)
                .unwrap()
                .num_measured,
            0
        );
        assert!(verify(&places, &[], &[1], &[2], 0.5).is_err());
        assert!(verify(&places, &states, &[2], &[1], 0.5).is_err());
        assert!(verify(&places, &states, &[1], &[3], 0.5).is_err());
        assert!(verify(&places, &states[..2], &[1], &[0], 0.5).is_err());
        assert!(verify(&places, &states, &[1], &[], 0.5).is_err());
        assert!(verify(&places, &states, &[1], &[0], f64::NAN).is_err());
        places[0] = NOWHERE;
        assert!(verify(&places, &states, &[1], &[0], 0.5).is_err());
    }

    #[test]
    fn distinct_documents_are_those_of_a_set() {
        let list = |salt: u64, num: u64, end: u64| -> Vec<u32> {
            (0..num).map(|i| (mix64(salt + i) % end) as u32).collect()
        };
        for (num, end) in [
            (0, 1),
            (1, 1),
            (5, 64),
            (1000, 65),
            (1000, 5000),
            (100, 1 << 20),
        ] {
            let (a, b) = (list(1, num, end), list(1 << 40, num, end));
            for num_documents in [end, end / 2] {
                let expected: BTreeSet<u32> = a
                    .iter()
                    .chain(&b)
                    .copied()
                    .filter(|&document| u64::from(document) < num_documents)
                    .collect();
                let found = distinct_documents(&[&a, &b], num_documents as usize);
                assert_eq!(found, Vec::from_iter(expected));
            }
        }
    }
}
