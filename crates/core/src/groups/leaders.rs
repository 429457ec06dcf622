//! Which documents are removed, and because of which kept ones?

use std::ops::Range;

use crate::error::{Error, invalid_if};
use crate::search::{KEPT, REMOVED, UNDECIDED};

/// Value of `best_earlier` and `best_distance` if there is no match.
pub const NO_MATCH: u32 = u32::MAX;

/// Verdicts and evidence, filled from the front: a document is removed if a kept one before it matches, which gives the
/// lexicographically first maximal independent set.
#[derive(Debug, Clone)]
pub struct Leaders {
    /// [`UNDECIDED`], [`KEPT`] or [`REMOVED`].
    pub states: Vec<u8>,
    /// The most similar kept document, among equals the first; [`NO_MATCH`] if not removed.
    pub best_earlier: Vec<u32>,
    /// Similarity to it; NaN if not removed.
    pub best_similarity: Vec<f64>,
    /// Distance to it; [`NO_MATCH`] if not removed or no distances were given.
    pub best_distance: Vec<u32>,
    pub num_decided: u32,
}

impl Leaders {
    pub fn new(n: usize) -> Self {
        Leaders {
            states: vec![UNDECIDED; n],
            best_earlier: vec![NO_MATCH; n],
            best_similarity: vec![f64::NAN; n],
            best_distance: vec![NO_MATCH; n],
            num_decided: 0,
        }
    }

    /// Decides the documents of `range`, which follow the last one, by all their compared pairs, sorted by `later`; the
    /// similarity is NaN for no match, and pairs with removed documents are ignored.
    pub fn decide(
        &mut self,
        range: Range<u32>,
        later: &[u32],
        earlier: &[u32],
        similarity: &[f64],
        distance: &[u32],
    ) -> Result<(), Error> {
        if range.start != self.num_decided || range.end < range.start {
            return Err(Error::invalid(
                "range",
                format!(
                    "{range:?} does not start at {}, where the last one ended",
                    self.num_decided
                ),
            ));
        }
        invalid_if(range.end as usize > self.states.len(), "range", || {
            format!("{range:?} goes beyond the {} documents", self.states.len())
        })?;
        let part = range.start as usize..range.end as usize;
        let verdicts = decide_range(
            &self.states[..part.start],
            range.end - range.start,
            later,
            earlier,
            similarity,
            distance,
        )?;
        self.states[part.clone()].copy_from_slice(&verdicts.states);
        self.best_earlier[part.clone()].copy_from_slice(&verdicts.best_earlier);
        self.best_similarity[part.clone()].copy_from_slice(&verdicts.best_similarity);
        self.best_distance[part].copy_from_slice(&verdicts.best_distance);
        self.num_decided = range.end;
        Ok(())
    }
}

/// Verdicts on consecutive documents; columns as in [`Leaders`].
#[derive(Debug, Clone)]
pub struct RangeVerdicts {
    /// [`KEPT`] or [`REMOVED`].
    pub states: Vec<u8>,
    /// The kept document because of which each was removed.
    pub best_earlier: Vec<u32>,
    pub best_similarity: Vec<f64>,
    pub best_distance: Vec<u32>,
}

/// Decides the next `num` documents after those of `states`, which are decided. Pairs are as for [`Leaders::decide`].
pub fn decide_range(
    states: &[u8],
    num: u32,
    later: &[u32],
    earlier: &[u32],
    similarity: &[f64],
    distance: &[u32],
) -> Result<RangeVerdicts, Error> {
    let first = states.len() as u32;
    check(&(first..first + num), later, earlier, similarity, distance)?;
    let len = num as usize;
    let mut verdicts = RangeVerdicts {
        states: vec![UNDECIDED; len],
        best_earlier: vec![NO_MATCH; len],
        best_similarity: vec![f64::NAN; len],
        best_distance: vec![NO_MATCH; len],
    };
    let mut i = 0;
    for place in 0..len {
        let start = i;
        while i < later.len() && later[i] == first + place as u32 {
            i += 1;
        }
        let is_kept = |position: u32| {
            let state = match position.checked_sub(first) {
                None => states[position as usize],
                Some(place) => verdicts.states[place as usize],
            };
            state == KEPT
        };
        let best = (start..i)
            // Most pairs do not match, and states are scattered.
            .filter(|&j| !similarity[j].is_nan() && is_kept(earlier[j]))
            .reduce(|best, j| {
                let wins = similarity[j] > similarity[best]
                    || (similarity[j] == similarity[best] && earlier[j] < earlier[best]);
                if wins { j } else { best }
            });
        verdicts.states[place] = if best.is_some() { REMOVED } else { KEPT };
        if let Some(best) = best {
            verdicts.best_earlier[place] = earlier[best];
            verdicts.best_similarity[place] = similarity[best];
            verdicts.best_distance[place] = distance.get(best).copied().unwrap_or(NO_MATCH);
        }
    }
    Ok(verdicts)
}

/// Checks that pairs are sorted, within the range, and each of a later and an earlier document.
fn check(
    range: &Range<u32>,
    later: &[u32],
    earlier: &[u32],
    similarity: &[f64],
    distance: &[u32],
) -> Result<(), Error> {
    let num_pairs = later.len();
    if earlier.len() != num_pairs
        || similarity.len() != num_pairs
        || (!distance.is_empty() && distance.len() != num_pairs)
    {
        return Err(Error::invalid(
            "later",
            format!(
                "{num_pairs} later, {} earlier, {} similarities, {} distances; all the same number, distances also 0",
                earlier.len(),
                similarity.len(),
                distance.len()
            ),
        ));
    }
    invalid_if(!later.is_sorted(), "later", || "not in ascending order")?;
    let inside = |position: Option<&u32>| position.is_none_or(|p| range.contains(p));
    invalid_if(
        !inside(later.first()) || !inside(later.last()),
        "later",
        || format!("holds positions outside the range {range:?}"),
    )?;
    if let Some((a, b)) = later
        .iter()
        .zip(earlier)
        .find(|(later, earlier)| earlier >= later)
    {
        return Err(Error::invalid(
            "earlier",
            format!("{b} does not stand before its later document {a}"),
        ));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hash::mix64;

    #[test]
    fn no_chains_and_the_best_kept_one_is_the_evidence() {
        let mut leaders = Leaders::new(5);
        // 1 is removed by 0; 2 matches only 1, which was removed, so it is kept; 3 matches 0 and 2 equally well and 1
        // best of all; 4 was compared with 3 and did not match.
        let later = [1, 2, 3, 3, 3, 4];
        let earlier = [0, 1, 2, 0, 1, 2];
        let similarity = [0.9, 0.95, 0.85, 0.85, 1.0, f64::NAN];
        let distance = [1, 2, 3, 4, 5, 6];
        leaders
            .decide(0..5, &later, &earlier, &similarity, &distance)
            .unwrap();
        assert_eq!(leaders.states, [KEPT, REMOVED, KEPT, REMOVED, KEPT]);
        assert_eq!(leaders.best_earlier, [NO_MATCH, 0, NO_MATCH, 0, NO_MATCH]);
        assert_eq!(leaders.best_distance, [NO_MATCH, 1, NO_MATCH, 4, NO_MATCH]);
        assert_eq!(leaders.best_similarity[3], 0.85);
        assert!(leaders.best_similarity[4].is_nan());
    }

    #[test]
    fn any_cut_into_ranges_gives_the_same() {
        let n = 300_u32;
        let mut edges: Vec<(u32, u32, f64)> = Vec::new();
        for later in 1..n {
            for draw in 0..4 {
                let key = mix64(u64::from(later) * 4 + draw);
                let earlier = (key % u64::from(later)) as u32;
                let similarity = ((key >> 32) % 4) as f64 / 4.0;
                let similarity = if similarity == 0.0 {
                    f64::NAN
                } else {
                    similarity
                };
                edges.push((later, earlier, similarity));
            }
        }
        // The rule, document by document, from a matrix of matches.
        let mut kept: Vec<u32> = Vec::new();
        let mut expected = Vec::new();
        for later in 0..n {
            let mut matches: Vec<(f64, u32)> = edges
                .iter()
                .filter(|edge| edge.0 == later && kept.contains(&edge.1) && edge.2 > 0.0)
                .map(|edge| (-edge.2, edge.1))
                .collect();
            matches.sort_by(|a, b| a.partial_cmp(b).unwrap());
            expected.push(matches.first().map_or(NO_MATCH, |best| best.1));
            if matches.is_empty() {
                kept.push(later);
            }
        }
        for step in [1, 7, 64, 300] {
            let mut leaders = Leaders::new(n as usize);
            for start in (0..n).step_by(step) {
                let end = (start + step as u32).min(n);
                let part: Vec<_> = edges
                    .iter()
                    .filter(|e| (start..end).contains(&e.0))
                    .collect();
                let later: Vec<u32> = part.iter().map(|e| e.0).collect();
                let earlier: Vec<u32> = part.iter().map(|e| e.1).collect();
                let similarity: Vec<f64> = part.iter().map(|e| e.2).collect();
                leaders
                    .decide(start..end, &later, &earlier, &similarity, &[])
                    .unwrap();
            }
            assert_eq!(leaders.best_earlier, expected);
            assert_eq!(leaders.num_decided, n);
        }
    }

    #[test]
    fn bad_ranges_and_pairs_are_refused_and_change_nothing() {
        let mut leaders = Leaders::new(4);
        leaders.decide(0..2, &[1], &[0], &[0.9], &[]).unwrap();
        type Call<'a> = (Range<u32>, &'a [u32], &'a [u32], &'a [f64], &'a [u32]);
        let cases: [Call<'_>; 8] = [
            (0..2, &[], &[], &[], &[]),
            (3..4, &[], &[], &[], &[]),
            (2..5, &[], &[], &[], &[]),
            (2..4, &[1], &[0], &[0.9], &[]),
            (2..4, &[3, 2], &[0, 0], &[0.9, 0.9], &[]),
            (2..4, &[2], &[2], &[0.9], &[]),
            (2..4, &[2], &[0], &[], &[]),
            (2..4, &[2], &[0], &[0.9], &[1, 2]),
        ];
        for (range, later, earlier, similarity, distance) in cases {
            let result = leaders.decide(range, later, earlier, similarity, distance);
            assert!(matches!(result, Err(Error::InvalidParameter { .. })));
            assert_eq!(leaders.states, [KEPT, REMOVED, UNDECIDED, UNDECIDED]);
        }
        leaders.decide(2..4, &[], &[], &[], &[]).unwrap();
        assert_eq!(leaders.states, [KEPT, REMOVED, KEPT, KEPT]);
    }
}
