//! Can a few errors make every key miss?
//!
//! Positions in the same keys are interchangeable: they form a class. A pattern of errors is then a number for each
//! class, at most its size. It escapes a key if the classes of the key sum to more than the key's radius. The least
//! total that escapes all keys is an integer program over a few dozen classes, solved exactly by branch and bound. The
//! search is skipped for sets that a counting argument settles ([`super::evidence`]).

use std::collections::BTreeMap;

use super::evidence::is_evident;
use super::{Key, MAX_BITS, MAX_KEYS};
use likewise_core::error::{Error, Result};

/// Number of steps after which the search is abandoned.
const MAX_STEPS: u64 = 1 << 20;

/// The positions of errors.
#[derive(Clone, Copy, Debug)]
pub(super) struct Errors {
    pub(super) mask: [u64; 4],
}

impl Errors {
    pub(super) fn contains(&self, bit: u32) -> bool {
        self.mask[bit as usize / 64] >> (bit % 64) & 1 == 1
    }
}

/// Interchangeable positions.
struct Class {
    bits: Vec<u32>,
    keys: Vec<usize>,
}

/// Returns at most `within` errors that every key misses, or `None` if the plan is complete.
pub(super) fn escape(within: u32, keys: &[Key]) -> Result<Option<Errors>> {
    if keys.len() > MAX_KEYS {
        return Err(Error::invalid(
            "keys",
            format!(
                "{} are more than the {MAX_KEYS} that can be checked",
                keys.len()
            ),
        ));
    }
    // A key whose radius reaches its width misses nothing.
    if keys.iter().any(|key| key.radius >= key.width()) {
        return Ok(None);
    }
    if is_evident(within, keys) {
        return Ok(None);
    }
    escape_by_search(within, keys)
}

/// Same as [`escape`], by search alone; every key must be wider than its radius.
pub(super) fn escape_by_search(within: u32, keys: &[Key]) -> Result<Option<Errors>> {
    let classes = classes(within, keys);
    let mut search = Search {
        keys: keys.len(),
        of_key: (0..keys.len())
            .map(|key| {
                (0..classes.len())
                    .filter(|&class| classes[class].keys.contains(&key))
                    .collect()
            })
            .collect(),
        need: keys.iter().map(|key| i64::from(key.radius) + 1).collect(),
        left: classes.iter().map(|class| class.bits.len()).collect(),
        placed: vec![0; classes.len()],
        classes,
        num_steps: 0,
    };
    if !search.run(within)? {
        return Ok(None);
    }
    let mut mask = [0; 4];
    for (class, &count) in search.classes.iter().zip(&search.placed) {
        for &bit in &class.bits[..count] {
            mask[bit as usize / 64] |= 1 << (bit % 64);
        }
    }
    Ok(Some(Errors { mask }))
}

/// Returns the classes worth an error, without those that can always be replaced by another class that is large enough.
fn classes(within: u32, keys: &[Key]) -> Vec<Class> {
    let mut by_keys: BTreeMap<Vec<usize>, Vec<u32>> = BTreeMap::new();
    for bit in 0..MAX_BITS {
        let holders: Vec<usize> = (0..keys.len())
            .filter(|&key| keys[key].contains(bit))
            .collect();
        if !holders.is_empty() {
            by_keys.entry(holders).or_default().push(bit);
        }
    }
    let all: Vec<Class> = by_keys
        .into_iter()
        .map(|(keys, bits)| Class { bits, keys })
        .collect();
    let is_replaced: Vec<bool> = all
        .iter()
        .map(|class| {
            all.iter().any(|other| {
                other.keys.len() > class.keys.len()
                    && other.bits.len() >= within as usize
                    && class
                        .keys
                        .iter()
                        .all(|key| other.keys.binary_search(key).is_ok())
            })
        })
        .collect();
    all.into_iter()
        .zip(is_replaced)
        .filter_map(|(class, is_replaced)| (!is_replaced).then_some(class))
        .collect()
}

struct Search {
    keys: usize,
    classes: Vec<Class>,
    /// The classes of each key.
    of_key: Vec<Vec<usize>>,
    /// Number of errors that each key still needs before it misses; it misses at 0 or less.
    need: Vec<i64>,
    /// Number of positions of each class that may still hold an error.
    left: Vec<usize>,
    placed: Vec<usize>,
    num_steps: u64,
}

impl Search {
    /// Returns whether `budget` more errors can make every key miss; if so, they are in `placed`.
    fn run(&mut self, budget: u32) -> Result<bool> {
        self.num_steps += 1;
        if self.num_steps > MAX_STEPS {
            return Err(Error::invalid(
                "keys",
                format!(
                    "{} overlapping ones are too many to check: {MAX_STEPS} steps did not settle it",
                    self.keys
                ),
            ));
        }
        if self.need.iter().all(|&need| need <= 0) {
            return Ok(true);
        }
        let Some(key) = self.narrowest_key() else {
            return Ok(false);
        };
        if self.least_errors() > i64::from(budget) {
            return Ok(false);
        }
        let mut open: Vec<usize> = self.of_key[key]
            .iter()
            .copied()
            .filter(|&class| self.left[class] > 0)
            .collect();
        open.sort_by_key(|&class| std::cmp::Reverse(self.num_unmet(class)));
        let mut closed = Vec::with_capacity(open.len());
        let mut found = false;
        for class in open {
            self.place(class, 1);
            self.left[class] -= 1;
            self.placed[class] += 1;
            found = self.run(budget - 1)?;
            if found {
                break;
            }
            self.place(class, -1);
            self.left[class] += 1;
            self.placed[class] -= 1;
            // Every pattern with one more error in this class has been visited; the next branches have none.
            closed.push((class, self.left[class]));
            self.left[class] = 0;
        }
        for (class, left) in closed {
            self.left[class] = left;
        }
        Ok(found)
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

    /// Returns the unmet key with the fewest open classes, or `None` if some key can no longer be met.
    fn narrowest_key(&self) -> Option<usize> {
        let mut best = None;
        for key in (0..self.keys).filter(|&key| self.need[key] > 0) {
            let room: usize = self.of_key[key].iter().map(|&class| self.left[class]).sum();
            if (room as i64) < self.need[key] {
                return None;
            }
            let num_open = self.of_key[key]
                .iter()
                .filter(|&&class| self.left[class] > 0)
                .count();
            let rank = (num_open, -self.need[key]);
            if best.is_none_or(|(least, _)| rank < least) {
                best = Some((rank, key));
            }
        }
        best.map(|(_, key)| key)
    }

    /// Returns a lower bound on the errors still needed, by disjoint keys and by the most keys of a class.
    fn least_errors(&self) -> i64 {
        let mut unmet: Vec<usize> = (0..self.keys).filter(|&key| self.need[key] > 0).collect();
        unmet.sort_by_key(|&key| -self.need[key]);
        let mut is_used = vec![false; self.classes.len()];
        let mut disjoint = 0;
        let mut total = 0;
        for key in unmet {
            total += self.need[key];
            let open = || {
                self.of_key[key]
                    .iter()
                    .filter(|&&class| self.left[class] > 0)
            };
            if open().all(|&class| !is_used[class]) {
                disjoint += self.need[key];
                open().for_each(|&class| is_used[class] = true);
            }
        }
        let most = (0..self.classes.len())
            .filter(|&class| self.left[class] > 0)
            .map(|class| self.num_unmet(class))
            .max()
            .unwrap_or(0) as i64;
        let most = most.max(1);
        disjoint.max((total + most - 1) / most)
    }
}
