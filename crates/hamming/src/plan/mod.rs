//! Which keys together find every pair within a radius, and what do they cost?
//!
//! A key is a set of bit positions, searched within its own radius around the query's value. Scans, neighbor probing,
//! permuted tables (Manku, Jain, Das Sarma: Detecting near-duplicates for web crawling, WWW 2007) and multi-index
//! hashing (Norouzi, Punjani, Fleet, PAMI 2014) are special cases of such sets. A [`SearchPlan`] is such a set.

mod blocks;
mod completeness;
mod costs;
mod families;
mod layout;
mod price;
pub(crate) mod shape;
mod space;
mod statistics;
mod survey;
#[cfg(test)]
mod survey_tests;
#[cfg(test)]
mod tests;

use crate::distance::Fingerprints;
use completeness::is_complete;
use likewise_core::error::{Error, invalid_if};

pub use blocks::Division;
pub use layout::{Collection, KeyCost};
pub use price::{PricedPlan, SurveyRequest};
pub use statistics::{BitStatistics, MAX_DEPENDENCE, bit_frequencies, bit_statistics};
pub use survey::{Survey, SurveyWork, choose_plan, survey};

pub const MAX_BITS: u32 = 256;
/// Maximum number of fingerprints in an index: rows are 32-bit numbers.
pub const MAX_INDEXED: u64 = u32::MAX as u64 - 1;
pub const MAX_JOINED: u64 = 1 << 31;

/// A key: a set of bit positions (bit i is bit i % 64 of word i / 64), and the radius searched around its value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Key {
    pub mask: [u64; 4],
    /// Maximum number of errors inside the key for which it is searched; 0 is an exact lookup.
    pub radius: u32,
}

impl Key {
    /// Creates the key of these positions, each below 256.
    pub fn of_bits(positions: impl IntoIterator<Item = u32>, radius: u32) -> Self {
        let mut mask = [0; 4];
        for bit in positions {
            mask[bit as usize / 64] |= 1 << (bit % 64);
        }
        Key { mask, radius }
    }

    pub fn width(&self) -> u32 {
        self.mask.iter().map(|word| word.count_ones()).sum()
    }

    pub fn contains(&self, bit: u32) -> bool {
        self.mask[bit as usize / 64] >> (bit % 64) & 1 == 1
    }

    /// Number of errors inside the key for codes that differ in these bits.
    pub fn num_errors(&self, differing: &[u64; 4]) -> u32 {
        self.mask
            .iter()
            .zip(differing)
            .map(|(mask, word)| (mask & word).count_ones())
            .sum()
    }

    /// Whether this key finds codes that differ in these bits.
    pub fn finds(&self, differing: &[u64; 4]) -> bool {
        self.num_errors(differing) <= self.radius
    }

    /// Number of values within the radius of a value: the sum of `C(width, j)` for j up to the radius.
    pub fn num_probes(&self) -> f64 {
        let width = f64::from(self.width());
        let mut term = 1.0;
        let mut sum = 1.0;
        for j in 0..self.radius {
            term *= (width - f64::from(j)) / f64::from(j + 1);
            sum += term;
        }
        sum
    }
}

/// Keys that together find every pair within `within`. A plan without keys is the scan.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SearchPlan {
    pub bits: u32,
    /// The radius within which every pair is found.
    pub within: u32,
    keys: Vec<Key>,
}

impl SearchPlan {
    /// Checks queries and the radius of a search by this plan.
    pub(crate) fn check_query(&self, queries: &Fingerprints<'_>, within: u32) -> Result<(), Error> {
        queries.check()?;
        let bits = self.bits;
        invalid_if(queries.bits != bits, "fingerprints", || {
            format!("have {} bits; those searched have {bits}", queries.bits)
        })?;
        let most = match self.keys() {
            [] => bits,
            _ => self.within,
        };
        invalid_if(within > most, "within", || {
            format!("{within} is above {most}, the radius this was built for")
        })?;
        Ok(())
    }

    /// Creates the plan with these keys for fingerprints of `bits` bits; without keys, it is a scan. The keys must be
    /// complete, as a family is by its counting argument: only that they fit in the fingerprints is checked.
    pub fn new(bits: u32, within: u32, keys: Vec<Key>) -> Result<Self, Error> {
        if !(1..=MAX_BITS).contains(&bits) {
            return Err(Error::invalid("bits", format!("{bits} is outside 1..=256")));
        }
        invalid_if(within > bits, "within", || {
            format!("{within} is above the {bits} bits of a fingerprint")
        })?;
        let plan = SearchPlan { bits, within, keys };
        for (index, key) in plan.keys.iter().enumerate() {
            plan.check_key(index, key)?;
        }
        Ok(plan)
    }

    /// Whether the keys find every pair; false also where millions of steps do not settle it.
    pub fn is_complete(&self) -> bool {
        self.keys.is_empty() || is_complete(self.within, &self.keys)
    }

    fn check_key(&self, index: usize, key: &Key) -> Result<(), Error> {
        let width = key.width();
        let message = if width == 0 {
            "has no bits".to_owned()
        } else if (self.bits..MAX_BITS).any(|bit| key.contains(bit)) {
            format!("reaches beyond the {} bits of a fingerprint", self.bits)
        } else if key.radius > width {
            format!("has {width} bits, fewer than its radius {}", key.radius)
        } else {
            return Ok(());
        };
        Err(Error::invalid("keys", format!("key {index} {message}")))
    }

    /// The keys, in order: the first that finds a pair owns it.
    pub fn keys(&self) -> &[Key] {
        &self.keys
    }

    /// Returns radii of the keys that suffice for a radius up to the plan's, in order of the keys; `None` if a key need
    /// not be searched. The most expensive probes are omitted as long as the rest is complete.
    pub(crate) fn radii_at(&self, within: u32) -> Vec<Option<u32>> {
        let mut radii: Vec<Option<u32>> = self.keys.iter().map(|key| Some(key.radius)).collect();
        if within >= self.within {
            return radii;
        }
        let is_enough = |radii: &[Option<u32>]| {
            let keys: Vec<Key> = self
                .keys
                .iter()
                .zip(radii)
                .filter_map(|(key, radius)| radius.map(|radius| Key { radius, ..*key }))
                .collect();
            is_complete(within, &keys)
        };
        loop {
            let mut order: Vec<usize> = (0..radii.len()).filter(|&i| radii[i].is_some()).collect();
            order.sort_by(|&a, &b| self.shell(b, radii[b]).total_cmp(&self.shell(a, radii[a])));
            let smaller = order.into_iter().find_map(|index| {
                let mut smaller = radii.clone();
                smaller[index] = radii[index].and_then(|radius| radius.checked_sub(1));
                is_enough(&smaller).then_some(smaller)
            });
            match smaller {
                Some(smaller) => radii = smaller,
                None => return radii,
            }
        }
    }

    /// Number of values at exactly the radius from a value of key `index`.
    fn shell(&self, index: usize, radius: Option<u32>) -> f64 {
        let key = self.keys[index];
        match radius {
            None => 0.0,
            Some(0) => 1.0,
            Some(radius) => {
                let inner = Key {
                    radius: radius - 1,
                    ..key
                };
                Key { radius, ..key }.num_probes() - inner.num_probes()
            }
        }
    }
}
