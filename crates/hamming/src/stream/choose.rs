//! Which keys cost least for these queries and this stream?
//!
//! Every plan tried is complete. A sample of the stream is looked up in a sample of the queries to measure the actual
//! sizes of buckets, since real fingerprints are skewed.

use super::key_value::KeyValue;
use super::table::neighbors;
use crate::code_planes::CodePlanes;
use crate::distance::Fingerprints;
use crate::plan::{Key, SearchPlan};
use likewise_core::error::Error;
use likewise_core::hash::mix64;

/// Numbers of queries and codes sampled.
const NUM_SAMPLED_QUERIES: usize = 1 << 17;
const NUM_SAMPLED_CODES: usize = 256;
/// Number of lookups of sampled codes in one key.
const NUM_SAMPLED_PROBES: usize = 1 << 18;
/// Maximum width of a key in bits.
const MAX_WIDTH: u32 = 64;
/// Maximum number of lookups of a code in one key.
const MAX_PROBES: f64 = 65_536.0;
/// Maximum number of keys made by choosing blocks.
const MAX_CHOSEN: usize = 64;
/// Deviation of the fraction of ones in a bit from one half beyond which the fingerprints are skewed.
const SKEW: f64 = 0.02;

/// Nanoseconds on one core: for extracting a key from a code; for a lookup; in addition, if the directory or the bucket
/// is not in the L2 cache, or not in the L3 cache; for a code of a bucket; for a word of a query in a scan.
const KEY_NS: f64 = 1.5;
const PROBE_NS: f64 = 2.5;
const SECOND_CACHE_NS: f64 = 2.0;
const THIRD_CACHE_NS: f64 = 8.0;
const CANDIDATE_NS: f64 = 0.08;
const SCAN_NS: f64 = 0.06;

/// Returns the cheapest complete plan found.
pub(super) fn choose_plan(
    queries: &CodePlanes,
    sample: &Fingerprints<'_>,
    within: u32,
) -> Result<SearchPlan, Error> {
    let bits = sample.bits;
    let mut best = (
        queries.len() as f64 * queries.num_words() as f64 * SCAN_NS,
        Vec::new(),
    );
    let mut orders = vec![(0..bits).collect::<Vec<u32>>()];
    orders.extend(order_by_information(queries, bits));
    for order in &orders {
        for keys in families(order, within) {
            // Plans known to be more expensive than the best so far are skipped.
            let least: f64 = keys
                .iter()
                .map(|key| KEY_NS + PROBE_NS * key.num_probes())
                .sum();
            if least < best.0 {
                let cost = cost(queries, sample, &keys);
                if cost < best.0 {
                    best = (cost, keys);
                }
            }
        }
    }
    SearchPlan::new(bits, within, best.1)
}

/// Returns plans on equal blocks of the positions in this order: one key per block with neighbors, or exact keys of
/// several blocks.
fn families(order: &[u32], within: u32) -> Vec<Vec<Key>> {
    let bits = order.len() as u32;
    let mut plans = Vec::new();
    for num_blocks in 1..=(within + 1).min(bits) {
        // within = m*r + a: a + 1 blocks at radius r, the others at r - 1; blocks at radius -1 are not searched.
        let radius = within / num_blocks;
        let num_higher = within % num_blocks + 1;
        let mut keys = Vec::new();
        for block in 0..num_blocks {
            let radius = if block < num_higher {
                Some(radius)
            } else {
                radius.checked_sub(1)
            };
            if let Some(radius) = radius {
                keys.push(Key::of_bits(dealt(order, num_blocks, block), radius));
            }
        }
        let is_affordable = |key: &Key| {
            key.width() <= MAX_WIDTH && key.radius <= key.width() && key.num_probes() <= MAX_PROBES
        };
        if keys.iter().all(is_affordable) {
            plans.push(keys);
        }
    }
    for chosen in 2..=4 {
        // Errors hit at most `within` blocks, so `chosen` others are error-free.
        let num_blocks = within + chosen;
        if num_blocks > bits || num_blocks > 24 {
            break;
        }
        let sets: Vec<u32> = (0_u32..1 << num_blocks)
            .filter(|set| set.count_ones() == chosen)
            .take(MAX_CHOSEN + 1)
            .collect();
        if sets.len() > MAX_CHOSEN {
            break;
        }
        let keys: Vec<Key> = sets
            .iter()
            .map(|set| {
                let blocks = (0..num_blocks).filter(|block| set >> block & 1 == 1);
                Key::of_bits(blocks.flat_map(|b| dealt(order, num_blocks, b)), 0)
            })
            .collect();
        if keys.iter().all(|key| key.width() <= MAX_WIDTH) {
            plans.push(keys);
        }
    }
    plans
}

/// Returns the positions of one of `num_blocks` equal runs of the order.
fn dealt(order: &[u32], num_blocks: u32, block: u32) -> impl Iterator<Item = u32> {
    let start = |block: u32| order.len() * block as usize / num_blocks as usize;
    order[start(block)..start(block + 1)].iter().copied()
}

/// Returns positions in an order whose equal runs are about equally selective, or `None` if all bits are.
fn order_by_information(queries: &CodePlanes, bits: u32) -> Option<Vec<u32>> {
    let step = queries.len().div_ceil(1 << 14).max(1);
    let num_seen = queries.len().div_ceil(step).max(1) as f64;
    let bias = |bit: u32| {
        let plane = queries.plane(bit as usize / 64);
        let ones: u64 = plane
            .iter()
            .step_by(step)
            .map(|word| word >> (bit % 64) & 1)
            .sum();
        (ones as f64 / num_seen - 0.5).abs()
    };
    let biases: Vec<f64> = (0..bits).map(bias).collect();
    if biases.iter().all(|&bias| bias <= SKEW) {
        return None;
    }
    let mut by_bias: Vec<u32> = (0..bits).collect();
    by_bias.sort_by(|&a, &b| biases[a as usize].total_cmp(&biases[b as usize]));
    // A step coprime to the width visits all ranks and distributes any run of them over best and worst.
    let stride = (1..)
        .map(|i| bits * 3 / 8 + i)
        .find(|&s| gcd(s, bits) == 1)?;
    Some(
        (0..bits)
            .map(|i| by_bias[(i * stride % bits) as usize])
            .collect(),
    )
}

fn gcd(a: u32, b: u32) -> u32 {
    if b == 0 { a } else { gcd(b, a % b) }
}

/// Estimates the nanoseconds per code of the stream.
fn cost(queries: &CodePlanes, sample: &Fingerprints<'_>, keys: &[Key]) -> f64 {
    let num_queries = queries.len() as f64;
    let buckets_bytes = 4.0 * num_queries * keys.len() as f64;
    keys.iter()
        .map(|key| {
            let masks = neighbors(key.width(), key.radius);
            let num_candidates = num_candidates(queries, sample, key, &masks);
            let num_probes = masks.len() as f64;
            let width = key.width().min(queries.len().max(2).ilog2() + 2);
            let directory_bytes = 4.0 * f64::from(1_u32 << width.min(28));
            let probe = PROBE_NS + cache_ns(directory_bytes);
            // An empty bucket is not read.
            let num_read = num_probes.min(num_candidates);
            KEY_NS
                + num_probes * probe
                + num_read * cache_ns(buckets_bytes)
                + num_candidates * CANDIDATE_NS
        })
        .sum()
}

fn cache_ns(num_bytes: f64) -> f64 {
    match num_bytes {
        ..5e5 => 0.0,
        5e5..2e7 => SECOND_CACHE_NS,
        _ => THIRD_CACHE_NS,
    }
}

/// Average number of queries with which one code of the stream is compared.
fn num_candidates(
    queries: &CodePlanes,
    sample: &Fingerprints<'_>,
    key: &Key,
    masks: &[u64],
) -> f64 {
    let num_codes = sample
        .len()
        .min(NUM_SAMPLED_CODES)
        .min(NUM_SAMPLED_PROBES / masks.len());
    if num_codes == 0 || queries.len() == 0 {
        return 0.0;
    }
    let mut codes = CodePlanes::new(num_codes, queries.num_words());
    for word in 0..queries.num_words() {
        for (index, code) in codes.plane_mut(word).iter_mut().enumerate() {
            let row = index * sample.len() / num_codes;
            *code = sample.words[row * queries.num_words() + word];
        }
    }
    let key = KeyValue::new(key);
    let mut asked = Counts::new(num_codes * masks.len());
    for index in 0..num_codes {
        let value = key.of_row(&codes, index);
        for mask in masks {
            asked.add(value ^ mask);
        }
    }
    let step = queries.len().div_ceil(NUM_SAMPLED_QUERIES);
    let num_met: u64 = (0..queries.len())
        .step_by(step)
        .map(|row| u64::from(asked.get(key.of_row(queries, row))))
        .sum();
    num_met as f64 * step as f64 / num_codes as f64
}

/// Counts of added values, with open addressing.
struct Counts {
    slots: Vec<(u64, u32)>,
}

impl Counts {
    fn new(num_values: usize) -> Self {
        Counts {
            slots: vec![(0, 0); (2 * num_values).next_power_of_two()],
        }
    }

    fn slot(&self, value: u64) -> usize {
        let mut slot = mix64(value) as usize & (self.slots.len() - 1);
        while self.slots[slot].1 != 0 && self.slots[slot].0 != value {
            slot = (slot + 1) & (self.slots.len() - 1);
        }
        slot
    }

    fn add(&mut self, value: u64) {
        let slot = self.slot(value);
        self.slots[slot] = (value, self.slots[slot].1 + 1);
    }

    fn get(&self, value: u64) -> u32 {
        self.slots[self.slot(value)].1
    }
}

/// The plans that are tried on unskewed bits, for the tests.
#[cfg(test)]
pub(super) fn plans_tried(bits: u32, within: u32) -> Vec<Vec<Key>> {
    families(&(0..bits).collect::<Vec<_>>(), within)
}
