//! Which of some reference sets does a set share most with?

use crate::features::{FeatureFilter, FeatureTable};
use crate::prefetch::prefetch_read;

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

/// Feature sets of references, by feature: 8 bytes for each feature of each, up to 42 for each distinct one.
#[derive(Debug)]
pub struct References {
    /// Number of each feature's list.
    lists: FeatureTable,
    filter: FeatureFilter,
    /// Where each list starts: its length (and 0), then the references and their weights.
    starts: Vec<usize>,
    entries: Vec<(u32, u32)>,
    sizes: Vec<u64>,
}

impl References {
    /// Makes the lists of references, each given as its distinct features and their weights (empty where all are 1).
    pub fn new(sets: &[(Vec<u64>, Vec<u32>)]) -> Self {
        let mut lists = FeatureTable::default();
        for (features, _) in sets {
            lists.add(features);
        }
        let filter = FeatureFilter::new(lists.iter().map(|(feature, _)| feature), lists.len());
        let (mut starts, mut end) = (Vec::with_capacity(lists.len()), 0);
        lists.map(|count| {
            starts.push(end);
            end += 1 + count as usize;
            starts.len() as u32 - 1
        });
        let mut entries = vec![(0, 0); end];
        for (reference, (features, weights)) in sets.iter().enumerate() {
            let mut weights = weights.iter().copied().chain(std::iter::repeat(1));
            lists.get_all(features, |list| {
                let (start, weight) = (starts[list.unwrap_or(0) as usize], weights.next());
                let num = entries[start].0 as usize + 1;
                entries[start].0 = num as u32;
                entries[start + num] = (reference as u32, weight.unwrap_or(1));
            });
        }
        References {
            lists,
            filter,
            starts,
            entries,
            sizes: sets
                .iter()
                .map(|(features, weights)| size_of(features, weights))
                .collect(),
        }
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
    /// Features of the query that may have lists, with their weights, then the lists in their place.
    held: (Vec<u64>, Vec<u32>),
    lists: Vec<(usize, u32)>,
}

impl<'a> Matcher<'a> {
    /// Scratch space for these references: 8 bytes each.
    pub fn new(references: &'a References) -> Self {
        Matcher {
            references,
            shared: vec![0; references.sizes.len()],
            touched: Vec::new(),
            held: (Vec::new(), Vec::new()),
            lists: Vec::new(),
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
        let (held, held_weights) = &mut self.held;
        held.clear();
        held_weights.clear();
        for (i, &feature) in features.iter().enumerate() {
            if all.filter.may_hold(feature) {
                held.push(feature);
                held_weights.push(weights.get(i).copied().unwrap_or(1));
            }
        }
        self.lists.clear();
        let mut of_held = held_weights.iter();
        all.lists.get_all(held, |list| {
            if let (Some(list), Some(&weight)) = (list, of_held.next()) {
                prefetch_read(&all.starts, list as usize);
                self.lists.push((list as usize, weight));
            }
        });
        for (list, _) in &mut self.lists {
            *list = all.starts[*list];
            prefetch_read(&all.entries, *list);
        }
        let mut num_entries = 0;
        for &(list, weight) in &self.lists {
            let num = all.entries[list].0 as usize;
            num_entries += num;
            for &(reference, own) in &all.entries[list + 1..=list + num] {
                let shared = &mut self.shared[reference as usize];
                if *shared == 0 {
                    self.touched.push(reference);
                }
                *shared += u64::from(weight.min(own));
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
