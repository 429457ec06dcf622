//! The searches of the literature, as designs and with the textbook's figures.

use super::blocks::{Division, even_widths};
use super::families::{Design, Family, chosen_blocks, nested_blocks, probed_neighbors};
use super::layout::{ball, choose, power_of_two};

/// Maximum number of tables for which a historical design is priced table by table.
const MAX_LISTED: f64 = 1024.0;

/// Returns the scan, probing and storing all neighbors, and the tables of Manku et al. 2007: 4, 10, 16 and 20 of them
/// for k = 3.
pub(super) fn historical_designs(bits: u32, within: u32, division: &Division) -> Vec<Design> {
    let bare = |family, name: &str| Design {
        family,
        name: name.to_owned(),
        keys: Vec::new(),
    };
    let mut found = vec![
        bare(Family::Scan, "scan: every fingerprint compared"),
        bare(Family::StoredNeighbors, "all neighbors stored"),
    ];
    if within < bits {
        found.push(Design {
            name: "all neighbors probed".to_owned(),
            ..probed_neighbors(bits, within)
        });
    }
    for chosen in 1..=3 {
        let num_blocks = within + chosen;
        if num_blocks <= bits && choose(num_blocks, chosen) <= MAX_LISTED {
            found.push(chosen_blocks(division, bits, num_blocks, chosen, 0));
        }
    }
    if is_nestable(bits, within)
        && f64::from((within + 1) * (within + 1)) <= MAX_LISTED
        && within > 0
    {
        found.push(nested_blocks(division, bits, within));
    }
    found
}

/// Whether the bits outside the widest block can be divided again.
fn is_nestable(bits: u32, within: u32) -> bool {
    let num_blocks = within + 1;
    num_blocks <= bits && bits - bits.div_ceil(num_blocks) >= num_blocks
}

/// The textbook cost of a historical search: plain sorted tables, uniform codes.
#[derive(Clone, Debug, PartialEq)]
pub struct TextbookRow {
    /// The family of the search.
    pub family: Family,
    /// What it does, in words.
    pub name: String,
    /// Number of tables.
    pub num_tables: f64,
    /// Minimum and maximum number of bits that are looked up.
    pub key_bits: (u32, u32),
    /// Number of lookups at exactly the radius.
    pub num_probes_exactly: f64,
    /// Number of lookups in all tables.
    pub num_probes: f64,
    /// Number of candidates in the table of the narrowest key.
    pub num_candidates_a_table: f64,
    /// Number of candidates in all tables.
    pub num_candidates: f64,
    /// Number of stored fingerprints, relative to the size of the set.
    pub num_copies: f64,
    /// Size of these in bytes, without compression.
    pub num_bytes: f64,
}

/// Returns the textbook costs of the historical searches for `n` fingerprints: matching p of the bits leaves n / 2^p
/// candidates.
pub fn textbook(num_fingerprints: u64, bits: u32, within: u32) -> Vec<TextbookRow> {
    let n = num_fingerprints as f64;
    let code_bytes = f64::from(bits) / 8.0;
    let neighbors = ball(bits, within);
    let row = |family, name: &str, copies: f64| TextbookRow {
        family,
        name: name.to_owned(),
        num_tables: 1.0,
        key_bits: (bits, bits),
        num_probes_exactly: 1.0,
        num_probes: 1.0,
        num_candidates_a_table: n * neighbors / power_of_two(bits),
        num_candidates: n * neighbors / power_of_two(bits),
        num_copies: copies,
        num_bytes: copies * code_bytes * n,
    };
    let mut rows = vec![
        TextbookRow {
            key_bits: (0, 0),
            num_probes_exactly: 0.0,
            num_probes: 0.0,
            num_candidates_a_table: n,
            num_candidates: n,
            ..row(Family::Scan, "scan", 1.0)
        },
        TextbookRow {
            num_probes_exactly: choose(bits, within),
            num_probes: neighbors,
            ..row(Family::ProbedNeighbors, "all neighbors probed", 1.0)
        },
        row(Family::StoredNeighbors, "all neighbors stored", neighbors),
    ];
    let tables = |family, name: String, groups: &[(f64, u32)]| {
        let num_tables: f64 = groups.iter().map(|(count, _)| count).sum();
        let least = groups.iter().map(|&(_, width)| width).min().unwrap_or(0);
        let most = groups.iter().map(|&(_, width)| width).max().unwrap_or(0);
        TextbookRow {
            num_tables,
            key_bits: (least, most),
            num_probes_exactly: num_tables,
            num_probes: num_tables,
            num_candidates_a_table: n / power_of_two(least),
            num_candidates: groups
                .iter()
                .map(|&(count, width)| count * n / power_of_two(width))
                .sum(),
            ..row(family, &name, num_tables)
        }
    };
    for chosen in 1..=3 {
        let num_blocks = within + chosen;
        if num_blocks <= bits {
            let name = match chosen {
                1 => format!("{num_blocks} blocks"),
                _ => format!("{chosen} of {num_blocks} blocks"),
            };
            rows.push(tables(
                Family::ChosenBlocks,
                name,
                &chosen_groups(bits, num_blocks, chosen),
            ));
        }
        if chosen == 1 && within > 0 && is_nestable(bits, within) {
            let num_blocks = within + 1;
            let mut groups = Vec::new();
            for outer in even_widths(bits, num_blocks) {
                for inner in even_widths(bits - outer, num_blocks) {
                    groups.push((1.0, outer + inner));
                }
            }
            let name = format!("{num_blocks} blocks, then {num_blocks} of the rest");
            rows.push(tables(Family::NestedBlocks, name, &groups));
        }
    }
    rows
}

/// Returns the number and width of the choices, by how many of the wider blocks they contain.
fn chosen_groups(bits: u32, num_blocks: u32, chosen: u32) -> Vec<(f64, u32)> {
    let num_wide = bits % num_blocks;
    (0..=chosen)
        .map(|wide| {
            let count = choose(num_wide, wide) * choose(num_blocks - num_wide, chosen - wide);
            (count, bits / num_blocks * chosen + wide)
        })
        .filter(|&(count, _)| count > 0.0)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::Key;

    #[test]
    fn figures_of_the_paper() {
        // 2^34 fingerprints of 64 bits, k = 3.
        let rows = textbook(1 << 34, 64, 3);
        let row = |name: &str| rows.iter().find(|row| row.name == name).unwrap();
        assert_eq!(row("all neighbors probed").num_probes_exactly, 41_664.0);
        assert_eq!(row("all neighbors stored").num_copies, 43_745.0);
        let four = row("4 blocks");
        assert_eq!(
            (four.num_candidates_a_table, four.num_candidates),
            (262_144.0, 1_048_576.0)
        );
        assert_eq!(four.num_bytes, 32.0 * (1_u64 << 34) as f64);
        for (name, tables, key_bits, candidates) in [
            ("2 of 5 blocks", 10.0, (25, 26), 512.0),
            ("4 blocks, then 4 of the rest", 16.0, (28, 28), 64.0),
            ("3 of 6 blocks", 20.0, (31, 33), 8.0),
        ] {
            let found = row(name);
            assert_eq!(found.num_tables, tables);
            assert_eq!(found.key_bits, key_bits);
            assert_eq!(found.num_candidates_a_table, candidates);
        }
    }

    #[test]
    fn groups_count_what_is_listed() {
        for (bits, within) in [(64, 3), (32, 5), (128, 7)] {
            for chosen in 1..=3 {
                let keys =
                    chosen_blocks(&Division::Contiguous, bits, within + chosen, chosen, 0).keys;
                for (count, width) in chosen_groups(bits, within + chosen, chosen) {
                    let listed = keys
                        .iter()
                        .map(Key::width)
                        .filter(|&found| found == width)
                        .count();
                    assert_eq!(count, listed as f64);
                }
            }
        }
    }
}
