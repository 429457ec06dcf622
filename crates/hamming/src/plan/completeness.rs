//! Can a few errors make every key miss?
//!
//! Positions in the same keys are interchangeable: they form a class. A pattern of errors is then a number for each
//! class, at most its size. It escapes a key if the classes of the key sum to more than the key's radius.

use std::collections::BTreeMap;

use super::{Key, MAX_BITS};

/// Number of steps after which the search is abandoned.
const MAX_STEPS: u64 = 1 << 20;

/// Interchangeable positions.
struct Class {
    /// The keys that hold them.
    keys: Vec<usize>,
    /// Number of positions that may still hold an error.
    num_left: usize,
}

struct Search {
    classes: Vec<Class>,
    /// Number of errors that each key still needs before it misses; it misses at 0 or less.
    need: Vec<i64>,
    num_steps: u64,
}

/// Whether some key finds each pattern of at most `within` errors; false also where the search was abandoned.
pub(super) fn is_complete(within: u32, keys: &[Key]) -> bool {
    let mut classes: BTreeMap<Vec<usize>, usize> = BTreeMap::new();
    for bit in 0..MAX_BITS {
        let holders = (0..keys.len()).filter(|&key| keys[key].contains(bit));
        *classes.entry(holders.collect()).or_default() += 1;
    }
    let class = |(keys, num_left)| Class { keys, num_left };
    let mut search = Search {
        classes: classes.into_iter().map(class).collect(),
        need: keys.iter().map(|key| i64::from(key.radius) + 1).collect(),
        num_steps: 0,
    };
    search.finds_all(within)
}

impl Search {
    /// Whether some key finds every pattern with at most `budget` more errors.
    fn finds_all(&mut self, budget: u32) -> bool {
        self.num_steps += 1;
        let unmet = (0..self.need.len()).filter(|&key| self.need[key] > 0);
        let Some(narrowest) = unmet.clone().min_by_key(|&key| self.open_of(key).count()) else {
            return false;
        };
        // An error counts in the keys of its class: the generalized pigeonhole principle, and for a ring the mean.
        let needed: i64 = unmet.map(|key| self.need[key]).sum();
        let open = (0..self.classes.len()).filter(|&class| self.classes[class].num_left > 0);
        let most = open.map(|class| self.num_unmet(class)).max();
        if needed > most.unwrap_or(0) as i64 * i64::from(budget) {
            return true;
        }
        let mut branches: Vec<usize> = self.open_of(narrowest).collect();
        branches.sort_by_key(|&class| std::cmp::Reverse(self.num_unmet(class)));
        let mut is_complete = self.num_steps < MAX_STEPS;
        let mut closed = Vec::with_capacity(branches.len());
        for class in branches {
            if is_complete {
                self.place(class, 1);
                self.classes[class].num_left -= 1;
                is_complete = self.finds_all(budget - 1);
                self.classes[class].num_left += 1;
                self.place(class, -1);
                // Every pattern with one more error in this class has been visited; the next branches have none.
                closed.push((class, std::mem::take(&mut self.classes[class].num_left)));
            }
        }
        for (class, num_left) in closed {
            self.classes[class].num_left = num_left;
        }
        is_complete
    }

    /// Returns the classes of a key that may hold another error.
    fn open_of(&self, key: usize) -> impl Iterator<Item = usize> {
        (0..self.classes.len()).filter(move |&class| {
            let class = &self.classes[class];
            class.num_left > 0 && class.keys.binary_search(&key).is_ok()
        })
    }

    fn place(&mut self, class: usize, errors: i64) {
        for &key in &self.classes[class].keys {
            self.need[key] -= errors;
        }
    }

    /// Number of keys that an error in the class would bring closer to missing.
    fn num_unmet(&self, class: usize) -> usize {
        let keys = &self.classes[class].keys;
        keys.iter().filter(|&&key| self.need[key] > 0).count()
    }
}
