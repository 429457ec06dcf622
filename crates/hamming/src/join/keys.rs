//! By which keys is a set of codes joined?
//!
//! Disjoint keys whose `radius + 1` sum to more than the radius of the join find every pair (generalized pigeonhole
//! principle: otherwise the keys alone would contain that many differing bits). The bits of a key are chosen by their
//! selectivity in the given codes: a bit in which all codes agree is useless, and shared words or templates produce
//! many such bits.

use super::compare::Search;
use super::partition::View;
use crate::plan::Key;

const MAX_NUM_KEYS: u32 = 12;
/// Maximum width of a key searched exactly, and with neighbors: each value costs a few bytes of directory.
const MAX_WIDTH: u32 = 24;
const MAX_WIDTH_WITH_NEIGHBORS: u32 = 21;
/// Minimum width of a key that is worth a pass over the codes.
const MIN_WIDTH: u32 = 3;
/// Bits of a part, their least total selectivity, and the radius up to which codes are rarely near by chance.
const PART_BITS: usize = 32;
const MIN_PART_TOLD: f64 = 24.0;
const MAX_PART_WITHIN: u32 = 6;
/// Maximum number of codes sampled to measure the selectivity of bits; at most one in four is sampled.
const NUM_SAMPLED: usize = 1 << 10;

/// Nanoseconds for moving a one-word code to its bucket.
const PLACE_NS: f64 = 4.0;
/// Nanoseconds for visiting a bucket, and one of its neighbors.
const BUCKET_NS: f64 = 2.0;
const NEIGHBOR_NS: f64 = 10.0;
/// Nanoseconds for loading four codes of a bucket.
const GROUP_NS: f64 = 4.0;
/// Nanoseconds for comparing four one-word codes with eight, or 32 bits of four with sixteen.
const STEP_NS: f64 = 3.0;

/// Bits in which codes may still differ, the most selective first.
#[derive(Debug, Clone)]
pub(super) struct FreeBits {
    /// Position and selectivity of each bit: 1 if half of the pairs of codes differ in it, 0 if none does.
    bits: Vec<(u32, f64)>,
}

impl FreeBits {
    /// All bits of a width, equally selective.
    pub(super) fn all(num_bits: u32) -> Self {
        FreeBits {
            bits: (0..num_bits).map(|bit| (bit, 1.0)).collect(),
        }
    }

    /// Returns the bits outside a key.
    pub(super) fn without(&self, key: &Key) -> Self {
        FreeBits {
            bits: self
                .bits
                .iter()
                .copied()
                .filter(|&(bit, _)| !key.contains(bit))
                .collect(),
        }
    }

    /// Returns the 32 most selective bits outside a key, if they are selective enough to avoid comparing the others.
    pub(super) fn part_mask(&self, key: &Key, within: u32) -> Option<[u64; 4]> {
        let bits: Vec<(u32, f64)> = self
            .bits
            .iter()
            .copied()
            .filter(|&(bit, _)| !key.contains(bit))
            .take(PART_BITS)
            .collect();
        let told: f64 = bits.iter().map(|bit| bit.1).sum();
        (bits.len() == PART_BITS && told >= MIN_PART_TOLD && within <= MAX_PART_WITHIN)
            .then(|| Key::of_bits(bits.iter().map(|bit| bit.0), 0).mask)
    }

    /// Returns the same bits, ordered by their selectivity in a sample of these codes.
    pub(super) fn measured(&self, views: &[View<'_>]) -> Self {
        let len: usize = views.iter().map(|view| view.len).sum();
        let step = len.div_ceil(NUM_SAMPLED).max(4);
        let mut counts = vec![0_u32; self.bits.len()];
        let (mut num_sampled, mut skipped) = (0, 0);
        for view in views {
            let mut index = skipped;
            while index < view.len {
                num_sampled += 1;
                for (count, &(bit, _)) in counts.iter_mut().zip(&self.bits) {
                    let word = view.data[bit as usize / 64 * view.stride + index];
                    *count += (word >> (bit % 64) & 1) as u32;
                }
                index += step;
            }
            skipped = index - view.len;
        }
        let mut bits: Vec<(u32, f64)> = self
            .bits
            .iter()
            .zip(counts)
            .map(|(&(bit, _), count)| {
                let ones = f64::from(count) / f64::from(num_sampled.max(1));
                // Rounded, so that chance does not separate neighboring bits that are equally selective.
                let tells = (4.0 * ones * (1.0 - ones) * 16.0 + 0.5).floor() / 16.0;
                (bit, tells)
            })
            .collect();
        bits.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
        FreeBits { bits }
    }

    /// Returns the cheapest complete keys for `num_left` codes, alone or with `num_right`; none if all are compared.
    pub(super) fn keys(
        &self,
        sizes: (usize, Option<usize>),
        search: &Search,
        within: u32,
    ) -> Vec<Key> {
        match self.cheapest(sizes, search, within).1 {
            None => Vec::new(),
            Some((num_keys, width)) => self.deal(num_keys, width, within),
        }
    }

    /// Returns the estimated nanoseconds on one core, and the number and width of the keys of [`FreeBits::keys`].
    pub(super) fn cheapest(
        &self,
        (num_left, num_right): (usize, Option<usize>),
        search: &Search,
        within: u32,
    ) -> (f64, Option<(u32, u32)>) {
        let join = JoinSize {
            left: num_left as f64,
            right: num_right.unwrap_or(num_left) as f64,
            is_self: num_right.is_none(),
            num_words: search.num_words as f64,
            by_parts: within <= MAX_PART_WITHIN,
        };
        let mut told = vec![0.0];
        for &(_, tells) in &self.bits {
            told.push(told[told.len() - 1] + tells);
        }
        let num_free = self.bits.len() as u32;
        let mut best = (join.scan_ns() * search.limits.scan_factor, None);
        for num_keys in 1..=(within + 1).min(MAX_NUM_KEYS).min(num_free) {
            let (radius, num_wider) = ((within + 1) / num_keys, (within + 1) % num_keys);
            // `num_wider` keys have radius `radius`, the others one less.
            let max_radius = if num_wider > 0 { radius } else { radius - 1 };
            let limit = if max_radius > 0 {
                MAX_WIDTH_WITH_NEIGHBORS
            } else {
                MAX_WIDTH
            };
            let widest = (num_free / num_keys).min(limit);
            for width in MIN_WIDTH.max(max_radius)..=widest {
                if join.left.max(join.right) * 8.0 < f64::from(1_u32 << width) {
                    break;
                }
                let tells = told[(width * num_keys) as usize] / f64::from(num_keys);
                let wider = join.key_ns(width, tells, max_radius);
                let rest = if num_wider > 0 {
                    join.key_ns(width, tells, radius - 1)
                } else {
                    wider
                };
                let num_wider = if num_wider > 0 { num_wider } else { num_keys };
                let cost = f64::from(num_wider) * wider + f64::from(num_keys - num_wider) * rest;
                if cost < best.0 {
                    best = (cost, Some((num_keys, width)));
                }
            }
        }
        best
    }

    /// Returns keys of `width` bits each, the first ones with the greater radius.
    fn deal(&self, num_keys: u32, width: u32, within: u32) -> Vec<Key> {
        let mut chosen: Vec<(u32, f64)> = self.bits[..(num_keys * width) as usize].to_vec();
        let is_even = chosen.iter().all(|bit| bit.1 == chosen[0].1);
        if is_even {
            // Runs of neighboring bits are gathered fastest.
            chosen.sort_by_key(|bit| bit.0);
        }
        (0..num_keys)
            .map(|number| {
                let share = (within + 1) / num_keys + u32::from(number < (within + 1) % num_keys);
                let bits = (0..width).map(|i| {
                    let index = if is_even {
                        number * width + i
                    } else {
                        i * num_keys + number
                    };
                    chosen[index as usize].0
                });
                Key::of_bits(bits, share - 1)
            })
            .collect()
    }
}

/// The size of a join, from which its cost in nanoseconds on one core is computed.
struct JoinSize {
    left: f64,
    right: f64,
    is_self: bool,
    num_words: f64,
    /// Whether buckets are first compared by parts of 32 bits.
    by_parts: bool,
}

impl JoinSize {
    fn halved(&self) -> f64 {
        if self.is_self { 0.5 } else { 1.0 }
    }

    fn scan_ns(&self) -> f64 {
        self.left * self.right * self.halved() / 32.0 * STEP_NS * self.num_words
    }

    /// Returns the cost of a key of `width` bits that is as selective as `tells` bits of uniform codes.
    fn key_ns(&self, width: u32, tells: f64, radius: u32) -> f64 {
        let num_buckets = f64::from(1_u32 << width);
        let num_values = libm::exp2(tells);
        let mut probes = 1.0;
        let mut term = 1.0;
        for j in 0..radius {
            term *= f64::from(width - j) / f64::from(j + 1);
            probes += term;
        }
        // In its own bucket, a code meets half of the others.
        let inside = if self.is_self { 0.5 } else { 1.0 };
        let met = if self.is_self {
            (probes - 1.0) * 0.5
        } else {
            probes - 1.0
        };
        let placed = self.left + if self.is_self { 0.0 } else { self.right };
        // A table whose neighbors are searched is written once more.
        let passes = if radius > 0 { 3.0 } else { 2.0 };
        let visits = num_buckets * (BUCKET_NS + met * NEIGHBOR_NS);
        let share = (probes / num_values).min(1.0);
        let pairs = self.left * self.right * share * self.halved();
        let (lanes, words) = if self.by_parts {
            (16.0, 1.0)
        } else {
            (8.0, self.num_words)
        };
        // Buckets are compared four codes by eight or sixteen; the last group of each is half full.
        let groups = (inside * 2.0 * GROUP_NS + met * GROUP_NS)
            * (self.left / 4.0 + num_values.min(self.left) / 2.0);
        let steps = pairs / (4.0 * lanes)
            + (inside + met) * (self.left / 8.0 + num_values.min(self.left) / 4.0);
        placed * passes * PLACE_NS * (0.5 + 0.5 * self.num_words)
            + visits
            + groups
            + steps * STEP_NS * words
    }
}
