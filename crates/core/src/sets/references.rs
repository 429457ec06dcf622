//! Which of some reference sets does a set share most with?

use std::collections::HashMap;
use std::hash::BuildHasherDefault;

use super::gather::MixHasher;
use crate::features::FeatureFilter;

/// A reference that a query was answered with.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Answer {
    /// Number of the reference, in the order in which they were added.
    pub reference: u32,
    /// Weight of the features that both hold.
    pub shared: u64,
    pub score: f64,
}

/// Returns the geometric mean of both containments: of references in one text, the one wins that explains most of it.
/// Each step is rounded once, the same on every processor.
pub fn score(shared: u64, reference_size: u64, query_size: u64) -> f64 {
    let shared = shared as f64;
    ((shared / reference_size as f64) * (shared / query_size as f64)).sqrt()
}

/// Feature sets of references, by feature: 4 bytes for each feature of each (8 with weights), 40 for each distinct one.
#[derive(Debug)]
pub struct References {
    lists: HashMap<u64, u32, BuildHasherDefault<MixHasher>>,
    filter: FeatureFilter,
    /// List `l` is `members[starts[l]..starts[l + 1]]`.
    starts: Vec<usize>,
    members: Vec<u32>,
    /// Empty where every weight is 1.
    weights: Vec<u32>,
    sizes: Vec<u64>,
}

impl References {
    /// Makes the lists of references, each given as its distinct features and their weights (empty where all are 1).
    pub fn new(sets: &[(Vec<u64>, Vec<u32>)]) -> Self {
        let mut lists = HashMap::default();
        let mut counts: Vec<usize> = Vec::new();
        for (features, _) in sets {
            for &feature in features {
                let list = *lists.entry(feature).or_insert(counts.len() as u32) as usize;
                match counts.get_mut(list) {
                    Some(count) => *count += 1,
                    None => counts.push(1),
                }
            }
        }
        let filter = FeatureFilter::new(lists.keys().copied(), lists.len());
        let mut starts = Vec::with_capacity(counts.len() + 1);
        let mut end = 0;
        starts.push(0);
        for count in counts {
            end += count;
            starts.push(end);
        }
        let is_weighted = sets.iter().any(|(_, weights)| !weights.is_empty());
        let mut members = vec![0; end];
        let mut all_weights = vec![1; if is_weighted { end } else { 0 }];
        let mut next = starts.clone();
        for (reference, (features, weights)) in sets.iter().enumerate() {
            for (i, feature) in features.iter().enumerate() {
                let slot = &mut next[lists[feature] as usize];
                members[*slot] = reference as u32;
                if let (true, Some(&weight)) = (is_weighted, weights.get(i)) {
                    all_weights[*slot] = weight;
                }
                *slot += 1;
            }
        }
        References {
            lists,
            filter,
            starts,
            members,
            weights: all_weights,
            sizes: sets
                .iter()
                .map(|(features, weights)| size_of(features, weights))
                .collect(),
        }
    }

    #[inline]
    fn list(&self, feature: u64) -> Option<usize> {
        if !self.filter.may_hold(feature) {
            return None;
        }
        self.lists.get(&feature).map(|&list| list as usize)
    }

    pub fn sizes(&self) -> &[u64] {
        &self.sizes
    }
}

/// Sum of the weights of a set; `weights` is empty where all are 1.
pub fn size_of(features: &[u64], weights: &[u32]) -> u64 {
    match weights.is_empty() {
        true => features.len() as u64,
        false => weights.iter().map(|&weight| u64::from(weight)).sum(),
    }
}

/// Answers queries; holds the scratch space, so keep one for each thread.
#[derive(Debug)]
pub struct Matcher<'a> {
    references: &'a References,
    /// Weight that the query shares with each reference.
    shared: Vec<u64>,
    touched: Vec<u32>,
}

impl<'a> Matcher<'a> {
    /// Scratch space for these references: 8 bytes each.
    pub fn new(references: &'a References) -> Self {
        Matcher {
            references,
            shared: vec![0; references.sizes.len()],
            touched: Vec::new(),
        }
    }

    /// Calls `take` with each reference that shares a feature, and the weight shared; returns the length of the lists.
    pub(super) fn share(
        &mut self,
        features: &[u64],
        weights: &[u32],
        mut take: impl FnMut(u32, u64),
    ) -> usize {
        let all = self.references;
        let mut num_entries = 0;
        for (i, &feature) in features.iter().enumerate() {
            let Some(list) = all.list(feature) else {
                continue;
            };
            let weight = weights.get(i).copied().unwrap_or(1);
            let slots = all.starts[list]..all.starts[list + 1];
            num_entries += slots.len();
            for slot in slots {
                let reference = all.members[slot];
                let common = weight.min(all.weights.get(slot).copied().unwrap_or(1));
                let shared = &mut self.shared[reference as usize];
                if *shared == 0 {
                    self.touched.push(reference);
                }
                *shared += u64::from(common);
            }
        }
        for reference in self.touched.drain(..) {
            take(
                reference,
                std::mem::take(&mut self.shared[reference as usize]),
            );
        }
        num_entries
    }

    /// Appends the best references of a query, at most `top`, the best first; all share something and have `min_score`.
    pub fn answer(
        &mut self,
        features: &[u64],
        weights: &[u32],
        top: usize,
        min_score: f64,
        answers: &mut Vec<Answer>,
    ) {
        let all = self.references;
        let size = size_of(features, weights);
        let first = answers.len();
        self.share(features, weights, |reference, shared| {
            let score = score(shared, all.sizes[reference as usize], size);
            if shared > 0 && score >= min_score {
                answers.push(Answer {
                    reference,
                    shared,
                    score,
                });
            }
        });
        let own = &mut answers[first..];
        let by_rank = |a: &Answer, b: &Answer| {
            b.score
                .total_cmp(&a.score)
                .then(a.reference.cmp(&b.reference))
        };
        if own.len() > top {
            own.select_nth_unstable_by(top, by_rank);
        }
        let num_kept = own.len().min(top);
        own[..num_kept].sort_unstable_by(by_rank);
        answers.truncate(first + num_kept);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Random;

    fn answers_of(
        references: &References,
        query: &(Vec<u64>, Vec<u32>),
        top: usize,
        min_score: f64,
    ) -> Vec<Answer> {
        let mut answers = Vec::new();
        Matcher::new(references).answer(&query.0, &query.1, top, min_score, &mut answers);
        answers
    }

    /// Every reference scored by itself.
    fn slowly(
        sets: &[(Vec<u64>, Vec<u32>)],
        query: &(Vec<u64>, Vec<u32>),
        top: usize,
        min_score: f64,
    ) -> Vec<Answer> {
        let weight_in = |set: &(Vec<u64>, Vec<u32>), feature: u64| {
            let place = set.0.iter().position(|&own| own == feature);
            place.map_or(0, |i| u64::from(set.1.get(i).copied().unwrap_or(1)))
        };
        let size = |set: &(Vec<u64>, Vec<u32>)| {
            set.0.iter().map(|&f| weight_in(set, f)).sum::<u64>() as f64
        };
        let mut found: Vec<Answer> = Vec::new();
        for (i, set) in sets.iter().enumerate() {
            let common = |&f: &u64| weight_in(set, f).min(weight_in(query, f));
            let shared = set.0.iter().map(common).sum::<u64>();
            if shared > 0 {
                let score = (shared as f64 / size(set) * (shared as f64 / size(query))).sqrt();
                found.push(Answer {
                    reference: i as u32,
                    shared,
                    score,
                });
            }
        }
        found.retain(|answer| answer.score >= min_score);
        found.sort_by(|a, b| b.score.total_cmp(&a.score));
        found.truncate(top);
        found
    }

    #[test]
    fn answers_are_those_of_scoring_every_reference() {
        let mut random = Random::new(7);
        for is_weighted in [false, true] {
            let mut set = |most: usize| {
                let mut features: Vec<u64> = (0..random.below(most) as u64).collect();
                features.retain(|_| random.below(3) > 0);
                let weights = match is_weighted {
                    true => features
                        .iter()
                        .map(|_| 1 + random.below(9) as u32)
                        .collect(),
                    false => Vec::new(),
                };
                (features, weights)
            };
            let sets: Vec<_> = (0..60).map(|_| set(30)).collect();
            let references = References::new(&sets);
            for _ in 0..40 {
                let query = set(40);
                for (top, min_score) in [(1, 0.0), (3, 0.3), (100, 0.0), (100, 0.5), (0, 0.0)] {
                    assert_eq!(
                        answers_of(&references, &query, top, min_score),
                        slowly(&sets, &query, top, min_score)
                    );
                }
            }
        }
    }

    #[test]
    fn of_equal_references_the_first_comes_first() {
        let sets = vec![(vec![1, 2, 3], vec![]); 3];
        let references = References::new(&sets);
        let found = answers_of(&references, &(vec![3, 2, 9], vec![]), 2, 0.0);
        assert_eq!(
            found.iter().map(|a| a.reference).collect::<Vec<_>>(),
            [0, 1]
        );
        assert_eq!(references.sizes(), [3, 3, 3]);
    }

    #[test]
    fn empty_sets_answer_nothing_and_are_no_answer() {
        let references = References::new(&[(vec![], vec![]), (vec![5], vec![])]);
        assert!(answers_of(&references, &(vec![], vec![]), 9, 0.0).is_empty());
        assert_eq!(
            answers_of(&references, &(vec![5], vec![]), 9, 0.0)[0].reference,
            1
        );
    }
}
