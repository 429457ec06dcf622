//! Which sets of keys are complete by a simple argument?
//!
//! Three counting arguments cover every family that the planner proposes. Each is applied to the keys themselves,
//! regardless of how they were made. A set that none of them covers may still be complete: the search of
//! [`super::completeness`] decides that.

use super::Key;
use super::layout::choose;

/// Whether one of the arguments shows that every pattern of at most `within` errors is found. False proves nothing.
pub(super) fn is_evident(within: u32, keys: &[Key]) -> bool {
    is_counted(within, keys) || is_every_choice(within, keys) || is_sunflowers(within, keys)
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

/// For groups of `within + 1` consecutive keys with a common core and otherwise disjoint petals: a pattern without
/// errors in the core leaves a petal free, and `within` errors cannot hit all cores.
fn is_sunflowers(within: u32, keys: &[Key]) -> bool {
    let mut cores = Vec::new();
    for group in keys.chunks(within as usize + 1) {
        let mut core = [u64::MAX; 4];
        for key in group {
            core = std::array::from_fn(|word| core[word] & key.mask[word]);
        }
        let petals: Vec<Key> = group
            .iter()
            .map(|key| Key {
                mask: std::array::from_fn(|word| key.mask[word] & !core[word]),
                ..*key
            })
            .collect();
        if is_counted(within, &petals) {
            cores.push(Key {
                mask: core,
                radius: 0,
            });
        }
    }
    !cores.is_empty() && is_counted(within, &cores)
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
    use super::super::families::{chosen_blocks, nested_blocks, ring};
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
        let (mut evident, mut spoilt) = ([0; 3], 0);
        for round in 0..900 {
            let bits = 10 + random.below(4) as u32;
            let num_blocks = 3 + random.below(3) as u32;
            let chosen = 1 + random.below(num_blocks as usize - 1) as u32;
            let radius = random.below(3) as u32;
            let division = Division::Interleaved;
            let designed = 1 + random.below(4) as u32;
            let mut keys = match round % 3 {
                0 => ring(&division, bits, num_blocks, chosen, designed).keys,
                1 => chosen_blocks(&division, bits, num_blocks, chosen, radius).keys,
                _ => nested_blocks(&division, bits, 1 + designed % 2).keys,
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
                let arguments = [
                    is_counted(within, &keys),
                    is_every_choice(within, &keys),
                    is_sunflowers(within, &keys),
                ];
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
        for within in 1..=9 {
            let nested = nested_blocks(&division, 128, within).keys;
            assert!(is_evident(within, &nested));
            assert!(!is_evident(within + 1, &nested));
            assert!(!is_evident(within, &nested[1..]));
        }
    }
}
