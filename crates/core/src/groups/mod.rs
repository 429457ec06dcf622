//! Which documents are kept, and which belong together?
//!
//! [`Leaders`] is the decision rule: no chains, and every removal is measured against a kept document. [`components`]
//! joins everything that is connected, for comparison. [`EqualKeys`] finds documents that no comparison could distinguish, and ids used
//! twice.
//!
//! The rule for a range of positions is a function of the states before it ([`decide_range`]). It returns verdicts
//! instead of changing states, so the states of all documents need not be copied for each range, and may be in a file.

mod equal_keys;
mod leaders;

pub use crate::search::{KEPT, REMOVED, UNDECIDED};
pub use equal_keys::{EqualKeys, Repeated};
pub use leaders::{Leaders, NO_MATCH, RangeVerdicts, decide_range};

/// Returns the smallest position in the component of each of `n` positions, joined by the pairs.
pub fn components(n: usize, later: &[u32], earlier: &[u32]) -> Vec<u32> {
    let mut joined = Components::new(n);
    joined.join(later, earlier);
    joined.smallest()
}

/// Components that grow as pairs are added. 4 bytes per position, for any number of pairs.
#[derive(Debug, Clone)]
pub struct Components {
    /// A parent is never larger than its child, so the root is the smallest position.
    parents: Vec<u32>,
}

impl Components {
    pub fn new(n: usize) -> Self {
        Components {
            parents: (0..n as u32).collect(),
        }
    }

    /// Joins the positions of pairs. Panics in the cases of [`components`].
    pub fn join(&mut self, later: &[u32], earlier: &[u32]) {
        assert_eq!(
            later.len(),
            earlier.len(),
            "one earlier position a later one"
        );
        for (&a, &b) in later.iter().zip(earlier) {
            let a = root_of(&mut self.parents, a);
            let b = root_of(&mut self.parents, b);
            self.parents[a.max(b) as usize] = a.min(b);
        }
    }

    /// Returns the smallest position of each position's component.
    pub fn smallest(mut self) -> Vec<u32> {
        for position in 0..self.parents.len() {
            // The parent is smaller and already points to its root.
            self.parents[position] = self.parents[self.parents[position] as usize];
        }
        self.parents
    }
}

fn root_of(parents: &mut [u32], mut position: u32) -> u32 {
    while parents[position as usize] != position {
        let above = parents[parents[position as usize] as usize];
        parents[position as usize] = above;
        position = above;
    }
    position
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hash::mix64;

    /// Propagates labels along the pairs until nothing changes.
    fn spread(n: usize, later: &[u32], earlier: &[u32]) -> Vec<u32> {
        let mut labels: Vec<u32> = (0..n as u32).collect();
        loop {
            let before = labels.clone();
            for (&a, &b) in later.iter().zip(earlier) {
                let least = labels[a as usize].min(labels[b as usize]);
                labels[a as usize] = least;
                labels[b as usize] = least;
            }
            if labels == before {
                return labels;
            }
        }
    }

    #[test]
    fn same_as_spreading_labels() {
        for (n, num_pairs) in [(1, 0), (2, 1), (50, 20), (500, 300), (500, 2000)] {
            let pick = |i: u64| (mix64(i + n) % n) as u32;
            let later: Vec<u32> = (0..num_pairs).map(|i| pick(2 * i)).collect();
            let earlier: Vec<u32> = (0..num_pairs).map(|i| pick(2 * i + 1)).collect();
            assert_eq!(
                components(n as usize, &later, &earlier),
                spread(n as usize, &later, &earlier)
            );
        }
        assert!(components(0, &[], &[]).is_empty());
    }
}
