//! Can a few errors make every key miss?
//!
//! Positions in the same keys are interchangeable: they form a class. A pattern of errors is then a number for each
//! class, at most its size. It escapes a key if the classes of the key sum to more than the key's radius. The least
//! total that escapes all keys is an integer program over a few dozen classes, solved exactly by branch and bound. The
//! search is skipped for sets that a counting argument settles ([`super::evidence`]).

use std::collections::BTreeMap;

use likewise_core::error::{Result, invalid_if};

use super::layout::choose;
use super::{Key, MAX_BITS, MAX_KEYS};

/// Number of steps after which the search is abandoned.
const MAX_STEPS: u64 = 1 << 20;

/// Interchangeable positions.
struct Class {
    bits: Vec<u32>,
    keys: Vec<usize>,
}

/// Returns at most `within` errors that every key misses, as a key, or `None` if the plan is complete.
pub(super) fn escape(within: u32, keys: &[Key]) -> Result<Option<Key>> {
    invalid_if(keys.len() > MAX_KEYS, "keys", || {
        format!(
            "{} are more than the {MAX_KEYS} that can be checked",
            keys.len()
        )
    })?;
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
pub(super) fn escape_by_search(within: u32, keys: &[Key]) -> Result<Option<Key>> {
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
    let placed = search.classes.iter().zip(&search.placed);
    let errors = placed.flat_map(|(class, &count)| class.bits[..count].iter().copied());
    Ok(Some(Key::of_bits(errors, 0)))
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
        invalid_if(self.num_steps > MAX_STEPS, "keys", || {
            format!(
                "{} overlapping ones are too many to check: {MAX_STEPS} steps did not settle it",
                self.keys
            )
        })?;
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

/// Whether one of the arguments shows that every pattern of at most `within` errors is found. False proves nothing.
pub(super) fn is_evident(within: u32, keys: &[Key]) -> bool {
    is_counted(within, keys) || is_every_choice(within, keys)
}

/// An escaping pattern has at least `radius + 1` errors in every key, and an error counts in the keys of its position:
/// the generalized pigeonhole principle, and for a ring the mean.
fn is_counted(within: u32, keys: &[Key]) -> bool {
    let needed: u64 = keys.iter().map(|key| u64::from(key.radius) + 1).sum();
    let most_shared = (0..super::MAX_BITS)
        .map(|bit| keys.iter().filter(|key| key.contains(bit)).count() as u64)
        .max()
        .unwrap_or(0);
    needed > most_shared * u64::from(within)
}

/// For all choices of j out of m disjoint blocks with one radius: the fullest of the j blocks with the fewest errors
/// has at least `(radius + 1) / j`, and each of the other `m - j` at least as many.
fn is_every_choice(within: u32, keys: &[Key]) -> bool {
    let Some(radius) = keys.first().map(|key| key.radius) else {
        return false;
    };
    if keys.iter().any(|key| key.radius != radius) {
        return false;
    }
    let blocks = blocks_of(keys);
    let held = |key: &Key| {
        blocks
            .iter()
            .filter(|block| meets(block, &key.mask))
            .count()
    };
    let chosen = held(&keys[0]);
    let mut masks: Vec<[u64; 4]> = keys.iter().map(|key| key.mask).collect();
    masks.sort_unstable();
    masks.dedup();
    // There are as many distinct unions of `chosen` blocks as choices, so every choice is among them.
    if masks.len() as f64 != choose(blocks.len() as u32, chosen as u32)
        || keys.iter().any(|key| held(key) != chosen)
    {
        return false;
    }
    let least = radius + 1 + (blocks.len() - chosen) as u32 * (radius + 1).div_ceil(chosen as u32);
    least > within
}

/// Returns the coarsest disjoint sets such that every key is a union of some of them.
fn blocks_of(keys: &[Key]) -> Vec<[u64; 4]> {
    let mut blocks = Vec::new();
    let mut seen = [0; 4];
    for key in keys {
        let mut next = Vec::with_capacity(blocks.len() + 1);
        for block in blocks {
            next.push(both(&block, &key.mask));
            next.push(without(&block, &key.mask));
        }
        next.push(without(&key.mask, &seen));
        next.retain(|block| *block != [0; 4]);
        seen = std::array::from_fn(|word| seen[word] | key.mask[word]);
        blocks = next;
    }
    blocks
}

fn both(a: &[u64; 4], b: &[u64; 4]) -> [u64; 4] {
    std::array::from_fn(|word| a[word] & b[word])
}

fn without(a: &[u64; 4], b: &[u64; 4]) -> [u64; 4] {
    std::array::from_fn(|word| a[word] & !b[word])
}

fn meets(a: &[u64; 4], b: &[u64; 4]) -> bool {
    both(a, b) != [0; 4]
}

#[cfg(test)]
mod tests {
    use super::super::blocks::Division;
    use super::super::completeness::escape_by_search;
    use super::super::families::{chosen_blocks, ring};
    use super::*;
    use likewise_core::testing::Random;

    /// Returns by brute force whether some pattern of at most `within` errors escapes all keys.
    fn escapes(bits: u32, within: u32, keys: &[Key]) -> bool {
        (0_u64..1 << bits)
            .filter(|pattern| pattern.count_ones() <= within)
            .any(|pattern| !keys.iter().any(|key| key.finds(&[pattern, 0, 0, 0])))
    }

    #[test]
    fn what_is_evident_is_complete_by_enumeration() {
        let mut random = Random::new(11);
        let (mut evident, mut spoilt) = ([0; 2], 0);
        for round in 0..900 {
            let bits = 10 + random.below(4) as u32;
            let num_blocks = 3 + random.below(3) as u32;
            let chosen = 1 + random.below(num_blocks as usize - 1) as u32;
            let radius = random.below(3) as u32;
            let division = Division::Contiguous;
            let designed = 1 + random.below(4) as u32;
            let mut keys = match round % 2 {
                0 => ring(&division, bits, num_blocks, chosen, designed).keys,
                _ => chosen_blocks(&division, bits, num_blocks, chosen, radius).keys,
            };
            // Half of them are broken: a key is missing, duplicated, or has another radius or position.
            if random.below(2) == 0 {
                let place = random.below(keys.len());
                match random.below(4) {
                    0 if keys.len() > 1 => drop(keys.remove(place)),
                    1 => keys[place] = keys[0],
                    2 => keys[place].radius = random.below(2) as u32,
                    _ => keys[place].mask[0] ^= 1 << random.below(bits as usize),
                }
                spoilt += 1;
            }
            keys.retain(|key| key.width() > key.radius);
            for within in 0..=5 {
                let arguments = [is_counted(within, &keys), is_every_choice(within, &keys)];
                let is_complete = !keys.is_empty() && !escapes(bits, within, &keys);
                for (count, holds) in evident.iter_mut().zip(arguments) {
                    assert!(!holds || is_complete, "{bits} {within} {keys:?}");
                    *count += u32::from(holds);
                }
                if !keys.is_empty() {
                    let found = escape_by_search(within, &keys).unwrap().is_none();
                    assert_eq!(found, is_complete, "{bits} {within} {keys:?}");
                }
            }
        }
        assert!(
            spoilt > 300 && evident.iter().all(|&count| count > 200),
            "{evident:?}"
        );
    }

    #[test]
    fn every_family_is_evident_as_far_as_it_reaches() {
        let division = Division::Contiguous;
        for within in 1..=24 {
            for keys in [
                chosen_blocks(&division, 128, within + 1, 1, 0).keys,
                chosen_blocks(&division, 128, within + 2, 2, 0).keys,
                ring(&division, 128, 9, 4, within).keys,
            ] {
                assert!(is_evident(within, &keys), "{within}");
            }
            let most = chosen_blocks(&division, 128, within + 2, 2, 0).keys;
            assert!(!is_evident(within + 1, &most));
        }
    }
}
