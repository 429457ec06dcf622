//! How are keys made from blocks?
//!
//! Sources: exact blocks and chosen blocks, Manku, Jain, Das Sarma (WWW 2007); windows of a ring, Qin and Xiao
//! (pigeonring, VLDB 2018).

use super::Key;
use super::blocks::{Division, even_widths, key_of_blocks};

const MAX_LISTED: usize = 4;

/// A set of keys and its origin.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Design {
    /// Disjoint blocks, each with a radius ("blocks"); every choice of some blocks ("chosen blocks"); every run of neighboring
    /// blocks on a ring ("ring"); one key of all bits ("probed neighbors"); none ("scan").
    pub(super) family: &'static str,
    pub(super) name: String,
    pub(super) keys: Vec<Key>,
}

/// Returns no keys: every code is compared.
pub(super) fn scan() -> Design {
    Design {
        family: "scan",
        name: "scan: every fingerprint compared".to_owned(),
        keys: Vec::new(),
    }
}

/// Returns a single key of all bits.
pub(super) fn probed_neighbors(bits: u32, within: u32) -> Design {
    Design {
        family: "probed neighbors",
        name: format!("1 table of {bits} bits, {within} errors probed"),
        keys: vec![Key::of_bits(0..bits, within)],
    }
}

/// Returns the keys for every choice of `chosen` of the blocks, with one radius.
pub(super) fn chosen_blocks(
    division: &Division,
    bits: u32,
    num_blocks: u32,
    chosen: u32,
    radius: u32,
) -> Design {
    let blocks = division.deal(&even_widths(bits, num_blocks));
    let mut keys = Vec::new();
    let mut picked: Vec<usize> = (0..chosen as usize).collect();
    loop {
        keys.push(key_of_blocks(
            picked.iter().map(|&block| &blocks[block]),
            radius,
        ));
        // The next choice in lexicographic order.
        let Some(place) = (0..picked.len())
            .rev()
            .find(|&place| picked[place] + picked.len() - place < blocks.len())
        else {
            break;
        };
        picked[place] += 1;
        for later in place + 1..picked.len() {
            picked[later] = picked[later - 1] + 1;
        }
    }
    let what = match chosen {
        1 if num_blocks == 1 => "all bits".to_owned(),
        1 => format!("{num_blocks} blocks"),
        _ => format!("{chosen} of {num_blocks} blocks"),
    };
    Design {
        family: "chosen blocks",
        name: format!("{}: {what}{}", tables(keys.len()), errors(radius)),
        keys,
    }
}

/// Returns the windows of `chosen` neighboring blocks, of which one has at most the mean number of errors.
pub(super) fn ring(
    division: &Division,
    bits: u32,
    num_blocks: u32,
    chosen: u32,
    within: u32,
) -> Design {
    let radius = ring_radius(num_blocks, chosen, within);
    let blocks = division.deal(&even_widths(bits, num_blocks));
    let keys = (0..num_blocks)
        .map(|first| {
            let window =
                (first..first + chosen).map(|block| &blocks[(block % num_blocks) as usize]);
            key_of_blocks(window, radius)
        })
        .collect();
    Design {
        family: "ring",
        name: format!(
            "{num_blocks} tables: {chosen} neighbors of a ring of {num_blocks} blocks{}",
            errors(radius)
        ),
        keys,
    }
}

/// Returns the mean number of errors of a window, rounded down.
pub(super) fn ring_radius(num_blocks: u32, chosen: u32, within: u32) -> u32 {
    within * chosen / num_blocks
}

/// Returns the least radius at which all choices of `chosen` of the blocks find all pairs: to escape, these hold radius
/// + 1, and each other block as many as their fullest.
pub(super) fn chosen_radius(num_blocks: u32, chosen: u32, within: u32) -> u32 {
    (0..=within)
        .find(|radius| radius + 1 + (num_blocks - chosen) * (radius + 1).div_ceil(chosen) > within)
        .unwrap_or(within)
}

pub(super) fn tables(number: usize) -> String {
    match number {
        1 => "1 table".to_owned(),
        _ => format!("{number} tables"),
    }
}

/// Formats consecutive numbers, abbreviating long repetitions: 17+17+16 and 3x14+5x13.
pub(super) fn list(values: &[u32]) -> String {
    let runs: Vec<String> = values
        .chunk_by(|a, b| a == b)
        .flat_map(|run| match values.len() > MAX_LISTED && run.len() > 1 {
            true => vec![format!("{}x{}", run.len(), run[0])],
            false => run.iter().map(u32::to_string).collect(),
        })
        .collect();
    runs.join("+")
}

fn errors(radius: u32) -> String {
    match radius {
        0 => String::new(),
        1 => ", 1 error probed".to_owned(),
        _ => format!(", {radius} errors probed"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::completeness::is_complete;

    #[test]
    fn no_smaller_radius_is_enough() {
        for (num_blocks, chosen) in [(5, 2), (5, 3), (6, 3), (4, 3), (7, 2)] {
            for within in 1..12 {
                let radius = chosen_radius(num_blocks, chosen, within);
                let keys = |radius| {
                    chosen_blocks(&Division::Contiguous, 84, num_blocks, chosen, radius).keys
                };
                assert!(is_complete(within, &keys(radius)));
                if radius > 0 {
                    assert!(!is_complete(within, &keys(radius - 1)));
                }
            }
        }
    }

    #[test]
    fn googles_tables_are_instances() {
        let widths = |design: Design| {
            let mut widths: Vec<u32> = design.keys.iter().map(Key::width).collect();
            widths.sort();
            (widths.len(), widths[0], widths[widths.len() - 1])
        };
        let division = Division::Contiguous;
        assert_eq!(widths(chosen_blocks(&division, 64, 4, 1, 0)), (4, 16, 16));
        assert_eq!(widths(chosen_blocks(&division, 64, 5, 2, 0)), (10, 25, 26));
        assert_eq!(widths(chosen_blocks(&division, 64, 6, 3, 0)), (20, 31, 33));
    }
}
