//! Which sets of keys are worth a look?
//!
//! Sources: one radius a block, Norouzi, Punjani, Fleet (PAMI 2014); radii that need only sum to k - m + 1, Qin et al. (GPH, ICDE 2018,
//! TKDE 2021); the other families stand in [`super::families`].

use std::collections::HashMap;

use super::blocks::{Division, even_widths, key_of_blocks};
use super::costs::Costs;
use super::families::{Design, Family, chosen_blocks, chosen_radius, probed_neighbours, ring};
use super::layout::{Collection, choose, key_cost};

/// Tables of a plan that is proposed by itself.
const MAX_TABLES: u32 = 32;
/// Blocks of a plan without chosen sets.
const MAX_BLOCKS: u32 = 16;
/// How far the radii of blocks may lie from their mean, where the blocks are few, and where they are many.
const SPREAD: [u32; 2] = [3, 1];
/// Gain for which a bit is moved from one block to another, as a share of the whole.
const WORTH_A_BIT: f64 = 0.005;
/// Blocks up to which they are few.
const FEW_BLOCKS: u32 = 4;

/// Every design that is proposed for the collection.
pub(super) fn designs(
    collection: &Collection,
    within: u32,
    division: &Division,
    costs: &Costs,
) -> Vec<Design> {
    let bits = collection.bits;
    let mut found = vec![probed_neighbours(bits, within)];
    let mut widths = WidthSearch::new(collection, division, costs);
    for num_blocks in 2..=MAX_BLOCKS.min(within + 1).min(bits / 4) {
        for radii in radii_of_blocks(num_blocks, within) {
            found.push(widths.design(&radii));
        }
    }
    for num_blocks in 3..=MAX_TABLES.min(bits / 4) {
        for chosen in 2..num_blocks {
            if choose(num_blocks, chosen) <= f64::from(MAX_TABLES) {
                let radius = chosen_radius(num_blocks, chosen, within);
                found.push(chosen_blocks(division, bits, num_blocks, chosen, radius));
            }
            found.push(ring(division, bits, num_blocks, chosen, within));
        }
    }
    found.retain(|design| design.keys.iter().all(|key| key.radius < key.width()));
    found
}

/// Non-increasing radii of the blocks that sum to within - blocks + 1 and lie near their mean.
fn radii_of_blocks(num_blocks: u32, within: u32) -> Vec<Vec<u32>> {
    let sum = within + 1 - num_blocks;
    let spread = SPREAD[usize::from(num_blocks > FEW_BLOCKS)];
    let low = (sum / num_blocks).saturating_sub(spread);
    let high = sum.div_ceil(num_blocks) + spread;
    let mut found = Vec::new();
    let mut radii = Vec::new();
    extend_radii(num_blocks, sum, low, high, &mut radii, &mut found);
    found
}

fn extend_radii(
    num_left: u32,
    sum: u32,
    low: u32,
    high: u32,
    radii: &mut Vec<u32>,
    found: &mut Vec<Vec<u32>>,
) {
    if num_left == 0 {
        if sum == 0 {
            found.push(radii.clone());
        }
        return;
    }
    for radius in low..=high.min(sum) {
        if (num_left * low..=num_left * radius).contains(&sum) {
            radii.push(radius);
            extend_radii(num_left - 1, sum - radius, low, radius, radii, found);
            radii.pop();
        }
    }
}

/// Widths of blocks with given radii at which a query is cheapest.
struct WidthSearch<'a> {
    collection: &'a Collection,
    division: &'a Division,
    costs: &'a Costs,
    /// Mean probability that a bit differs, by collision entropy.
    mismatch: f64,
    known: HashMap<(u32, u32, usize), f64>,
}

impl<'a> WidthSearch<'a> {
    fn new(collection: &'a Collection, division: &'a Division, costs: &'a Costs) -> Self {
        let mismatch = division.mismatch(collection.bits);
        let information: f64 = mismatch
            .iter()
            .map(|differs| libm::log2(1.0 - differs))
            .sum();
        WidthSearch {
            collection,
            division,
            costs,
            mismatch: 1.0 - libm::exp2(information / f64::from(collection.bits)),
            known: HashMap::new(),
        }
    }

    fn cost(&mut self, width: u32, radius: u32, num_tables: usize) -> f64 {
        if width <= radius {
            return f64::INFINITY;
        }
        *self
            .known
            .entry((width, radius, num_tables))
            .or_insert_with(|| {
                let mismatch = vec![self.mismatch; width as usize];
                key_cost(self.collection, &mismatch, radius, num_tables, self.costs).batch_ns
            })
    }

    /// From equal widths, one bit at a time from one block to another while that pays.
    fn design(&mut self, radii: &[u32]) -> Design {
        let tables = radii.len();
        let mut widths = even_widths(self.collection.bits, radii.len() as u32);
        loop {
            let total: f64 = (0..tables)
                .map(|i| self.cost(widths[i], radii[i], tables))
                .sum();
            let mut best = (-WORTH_A_BIT * total, None);
            for from in 0..radii.len() {
                for to in 0..radii.len() {
                    if from == to || widths[from] <= 1 {
                        continue;
                    }
                    let gain = self.cost(widths[from] - 1, radii[from], tables)
                        - self.cost(widths[from], radii[from], tables)
                        + self.cost(widths[to] + 1, radii[to], tables)
                        - self.cost(widths[to], radii[to], tables);
                    if gain < best.0 {
                        best = (gain, Some((from, to)));
                    }
                }
            }
            let Some((from, to)) = best.1 else { break };
            widths[from] -= 1;
            widths[to] += 1;
        }
        let blocks = self.division.deal(&widths);
        let list = |values: &[u32]| {
            values
                .iter()
                .map(u32::to_string)
                .collect::<Vec<_>>()
                .join("+")
        };
        let probed = match radii.iter().any(|&radius| radius > 0) {
            true => format!(", {} errors probed", list(radii)),
            false => String::new(),
        };
        Design {
            family: Family::Blocks,
            name: format!(
                "{} tables: blocks of {}{probed}",
                radii.len(),
                list(&widths)
            ),
            keys: blocks
                .iter()
                .zip(radii)
                .map(|(block, &radius)| key_of_blocks([block], radius))
                .collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hamming::plan::SearchPlan;

    #[test]
    fn every_design_is_complete() {
        for (bits, n) in [
            (32, 10_000),
            (64, 10_000_000),
            (128, 1_000_000),
            (256, 1_000_000_000),
        ] {
            let collection = Collection::with_rows(n, bits);
            for within in [0, 1, 3, 4, 7, 10] {
                let found = designs(
                    &collection,
                    within,
                    &Division::Interleaved,
                    &Costs::default(),
                );
                assert!(!found.is_empty());
                for design in found {
                    let plan = SearchPlan::new(bits, within, design.keys.clone());
                    assert!(plan.is_ok(), "{bits} {within} {}: {plan:?}", design.name);
                }
            }
        }
    }

    #[test]
    fn radii_cover_the_sum_without_rest() {
        assert_eq!(radii_of_blocks(2, 3), [[1, 1], [2, 0]]);
        assert_eq!(radii_of_blocks(4, 3), [[0, 0, 0, 0]]);
        assert!(radii_of_blocks(3, 8).contains(&vec![2, 2, 2]));
    }
}
