//! The searches of the literature, as designs to be priced.

use super::blocks::Division;
use super::families::{Design, Family, chosen_blocks, nested_blocks, probed_neighbors};
use super::layout::choose;

/// Maximum number of tables for which a historical design is priced table by table.
const MAX_LISTED: f64 = 1024.0;

/// Returns the scan, probing and storing all neighbors, and the tables of Manku et al. 2007 (4 to 20 for k = 3).
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
