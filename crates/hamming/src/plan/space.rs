//! Which sets of keys are worth considering?
//!
//! Sources: one radius per block, Norouzi, Punjani, Fleet (PAMI 2014); radii that only need to sum to k - m + 1, Qin et
//! al. (GPH, ICDE 2018, TKDE 2021); the other families are in [`super::families`].

use std::collections::HashMap;

use super::blocks::{Division, even_widths, key_of_blocks};
use super::families::{
    Design, chosen_blocks, chosen_radius, list, probed_neighbors, ring, ring_radius, tables,
};
use super::layout::{Collection, choose, key_cost, least_key_ns};
use super::shape::MAX_PREFIX_BITS;
use likewise_core::error::Result;

/// Maximum number of tables of a plan proposed by default.
const MAX_TABLES: u32 = 32;
/// Maximum number of blocks of a plan without chosen sets.
const MAX_BLOCKS: u32 = 16;
/// Maximum deviation of block radii from their mean, for few and for many blocks.
const SPREAD: [u32; 2] = [3, 1];
/// Minimum gain for moving a bit from one block to another, as a fraction of the total.
const WORTH_A_BIT: f64 = 0.005;
/// Maximum number of blocks that counts as few.
const FEW_BLOCKS: u32 = 4;
/// Width from which a wider key does not reduce reads: the maximum number of prefix bits.
const PREFIX_SETTLED: usize = MAX_PREFIX_BITS as usize;

/// Proposes the designs for the collection whose queries may take less than `limit_ns`, until `propose` refuses.
pub(super) fn propose_designs(
    collection: &Collection,
    within: u32,
    division: &Division,
    limit_ns: f64,
    propose: &mut dyn FnMut(Design) -> Result<()>,
) -> Result<()> {
    let bits = collection.bits;
    let mut propose = |design: Design| match design.keys.iter().all(|key| key.radius < key.width())
    {
        true => propose(design),
        false => Ok(()),
    };
    propose(probed_neighbors(bits, within))?;
    let mut widths = WidthSearch::new(collection, division);
    for num_blocks in 2..=MAX_BLOCKS.min(within + 1).min(bits / 4) {
        for radii in radii_of_blocks(num_blocks, within) {
            if widths.least_ns(&radii) < limit_ns {
                propose(widths.design(&radii))?;
            }
        }
    }
    for num_blocks in 3..=MAX_TABLES.min(bits / 4) {
        for chosen in 2..num_blocks {
            // The lower bound for the narrowest key, from its bucket lookups alone.
            let width = bits / num_blocks * chosen;
            let least = |radius| least_key_ns(collection, width, radius);
            let num_tables = choose(num_blocks, chosen);
            if num_tables <= f64::from(MAX_TABLES) {
                let radius = chosen_radius(num_blocks, chosen, within);
                if num_tables * least(radius) < limit_ns {
                    propose(chosen_blocks(division, bits, num_blocks, chosen, radius))?;
                }
            }
            let radius = ring_radius(num_blocks, chosen, within);
            if f64::from(num_blocks) * least(radius) < limit_ns {
                propose(ring(division, bits, num_blocks, chosen, within))?;
            }
        }
    }
    Ok(())
}

/// Returns the non-increasing radii of the blocks that sum to within - blocks + 1 and are close to their mean.
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

/// The search for the block widths, for given radii, at which a query is cheapest.
struct WidthSearch<'a> {
    collection: &'a Collection,
    division: &'a Division,
    /// Mean probability that a bit differs, by collision entropy.
    mismatch: f64,
    /// Costs by number of tables and radius: the cost for each width, NaN if not yet known, and the minimum.
    known: HashMap<(usize, u32), (Vec<f64>, f64)>,
}

impl<'a> WidthSearch<'a> {
    fn new(collection: &'a Collection, division: &'a Division) -> Self {
        let mismatch = division.mismatch(collection.bits);
        let information: f64 = mismatch
            .iter()
            .map(|differs| libm::log2(1.0 - differs))
            .sum();
        WidthSearch {
            collection,
            division,
            mismatch: 1.0 - libm::exp2(information / f64::from(collection.bits)),
            known: HashMap::new(),
        }
    }

    /// Returns the cost of a block by width, and the minimum.
    fn costs_of(&mut self, radius: u32, num_tables: usize) -> &(Vec<f64>, f64) {
        let (collection, mismatch) = (self.collection, self.mismatch);
        let dependence = self.division.dependence();
        self.known.entry((num_tables, radius)).or_insert_with(|| {
            let bits = collection.bits as usize;
            let mut by_width = vec![f64::INFINITY; bits + 1];
            for width in radius as usize + 1..=bits {
                // The leading bits determine what a query reads: wider keys cost the same.
                by_width[width] =
                    match width > PREFIX_SETTLED && by_width[width - 1] < f64::INFINITY {
                        true => by_width[width - 1],
                        false => {
                            key_cost(
                                collection,
                                &vec![mismatch; width],
                                dependence,
                                radius,
                                num_tables,
                            )
                            .batch_ns
                        }
                    };
            }
            let least = by_width.iter().copied().fold(f64::INFINITY, f64::min);
            (by_width, least)
        })
    }

    /// Returns a lower bound of the cost of blocks with these radii, for any widths.
    fn least_ns(&mut self, radii: &[u32]) -> f64 {
        let num_tables = radii.len();
        radii
            .iter()
            .map(|&radius| self.costs_of(radius, num_tables).1)
            .sum()
    }

    /// Starts from equal widths and moves one bit at a time between blocks while that pays.
    fn design(&mut self, radii: &[u32]) -> Design {
        let num_tables = radii.len();
        let mut widths: Vec<usize> = even_widths(self.collection.bits, num_tables as u32)
            .iter()
            .map(|&width| width as usize)
            .collect();
        let costs: Vec<Vec<f64>> = radii
            .iter()
            .map(|&radius| self.costs_of(radius, num_tables).0.clone())
            .collect();
        loop {
            let total: f64 = (0..num_tables)
                .map(|block| costs[block][widths[block]])
                .sum();
            // The cost of removing a bit from a block, and the gain from adding one.
            let change =
                |block: usize, width: usize| costs[block][width] - costs[block][widths[block]];
            let mut best = (-WORTH_A_BIT * total, None);
            for from in (0..num_tables).filter(|&from| widths[from] > 1) {
                let loss = change(from, widths[from] - 1);
                for to in (0..num_tables).filter(|&to| to != from) {
                    let gain = loss + change(to, widths[to] + 1);
                    if gain < best.0 {
                        best = (gain, Some((from, to)));
                    }
                }
            }
            let Some((from, to)) = best.1 else { break };
            widths[from] -= 1;
            widths[to] += 1;
        }
        let widths: Vec<u32> = widths.iter().map(|&width| width as u32).collect();
        let blocks = self.division.deal(&widths);
        let probed = match radii.iter().any(|&radius| radius > 0) {
            true => format!(", {} errors probed", list(radii)),
            false => String::new(),
        };
        Design {
            family: "blocks",
            name: format!(
                "{}: blocks of {}{probed}",
                tables(radii.len()),
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
    use crate::plan::completeness::is_complete;

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
                let mut found = Vec::new();
                let proposed = propose_designs(
                    &collection,
                    within,
                    &Division::Contiguous,
                    f64::INFINITY,
                    &mut |design| {
                        found.push(design);
                        Ok(())
                    },
                );
                assert_eq!(proposed, Ok(()));
                assert!(!found.is_empty());
                for design in found {
                    assert!(
                        is_complete(within, &design.keys),
                        "{bits} {within} {}",
                        design.name
                    );
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
