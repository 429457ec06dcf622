//! What does a plan cost?

use std::collections::HashMap;

use super::Key;
use super::blocks::Division;
use super::costs;
use super::families::Design;
use super::layout::{Collection, KeyCost, key_cost, least_key_ns};

#[derive(Clone, Debug)]
pub struct SurveyRequest {
    pub collection: Collection,
    /// Radius within which every pair must be found.
    pub within: u32,
    /// Maximum size of tables and ids in bytes; if `None`, four times the fingerprints, and the ids.
    pub memory_bytes: Option<f64>,
    /// How positions are assigned to blocks.
    pub division: Division,
}

#[derive(Clone, Debug, PartialEq)]
pub struct PricedPlan {
    pub family: &'static str,
    pub name: String,
    /// Its keys; none for the scan.
    pub keys: Vec<Key>,
    /// Probes, candidates, times and bytes of all tables; bytes include ids.
    pub cost: KeyCost,
    pub fits: bool,
}

/// Prices plans of one collection, and caches the costs of keys.
pub(super) struct Pricer<'a> {
    request: &'a SurveyRequest,
    /// P(two codes differ) at each bit.
    mismatch: Vec<f64>,
    /// Costs by width, radius and number of tables, if all bits are equivalent.
    by_width: Option<HashMap<(u32, u32, usize), KeyCost>>,
    /// Size of a table, and the minimum time of a query in it, by width and radius.
    outlines: HashMap<(u32, u32), (f64, f64)>,
    pub(super) num_plans: usize,
    /// Number of priced keys, without cached ones.
    pub(super) num_keys: usize,
}

impl<'a> Pricer<'a> {
    pub(super) fn new(request: &'a SurveyRequest) -> Self {
        let mismatch = request.division.mismatch(request.collection.bits);
        let is_uniform = mismatch.windows(2).all(|pair| pair[0] == pair[1]);
        Pricer {
            request,
            mismatch,
            by_width: is_uniform.then(HashMap::new),
            outlines: HashMap::new(),
            num_plans: 0,
            num_keys: 0,
        }
    }

    /// Returns the priced design, or `None` if one of `others` is neither larger nor slower, which keeps it off the
    /// frontier.
    pub(super) fn price_unless_beaten(
        &mut self,
        design: Design,
        others: &[PricedPlan],
    ) -> Option<PricedPlan> {
        let mut num_bytes = self.request.collection.id_bytes();
        let mut least_ns = 0.0;
        for key in &design.keys {
            let (key_bytes, key_ns) = self.outline(key.width(), key.radius);
            num_bytes += key_bytes;
            least_ns += key_ns;
        }
        let limit_ns = others
            .iter()
            .filter(|other| other.cost.num_bytes <= num_bytes)
            .map(|other| other.cost.batch_ns)
            .fold(f64::INFINITY, f64::min);
        match least_ns < limit_ns {
            true => self.price(design, limit_ns),
            false => None,
        }
    }

    /// Returns the size of a table in bytes, and the nanoseconds for its bucket lookups.
    fn outline(&mut self, width: u32, radius: u32) -> (f64, f64) {
        let collection = &self.request.collection;
        *self.outlines.entry((width, radius)).or_insert_with(|| {
            (
                collection.table_bytes(width),
                least_key_ns(collection, width, radius),
            )
        })
    }

    /// Returns the priced design, or `None` if a query in a batch takes `limit_ns` or more.
    pub(super) fn price(&mut self, design: Design, limit_ns: f64) -> Option<PricedPlan> {
        let cost = match design.keys.is_empty() {
            true => self.scan(),
            false => self.tables(&design.keys, limit_ns)?,
        };
        self.num_plans += 1;
        Some(PricedPlan {
            family: design.family,
            name: design.name,
            keys: design.keys,
            cost,
            fits: false,
        })
    }

    fn scan(&self) -> KeyCost {
        let collection = &self.request.collection;
        let n = collection.num_fingerprints as f64;
        let (single_ns, batch_ns) = collection.scan_ns();
        KeyCost {
            num_candidates: n,
            num_compared: n,
            num_bytes: collection.plain_bytes(),
            single_ns,
            batch_ns,
            ..KeyCost::default()
        }
    }

    /// Returns the sum over the tables, including ids, or `None` as soon as it reaches the limit.
    fn tables(&mut self, keys: &[Key], limit_ns: f64) -> Option<KeyCost> {
        let mut cost = KeyCost {
            num_bytes: self.request.collection.id_bytes(),
            single_ns: costs::QUERY_NS,
            ..KeyCost::default()
        };
        for key in keys {
            cost = add(cost, self.key(key, keys.len()));
            if cost.batch_ns >= limit_ns {
                return None;
            }
        }
        Some(cost)
    }

    fn key(&mut self, key: &Key, num_tables: usize) -> KeyCost {
        let known = (key.width(), key.radius, num_tables);
        if let Some(cost) = self.by_width.as_ref().and_then(|costs| costs.get(&known)) {
            return *cost;
        }
        self.num_keys += 1;
        let request = self.request;
        // The leading bit of a key is its highest position.
        let own: Vec<f64> = (0..request.collection.bits)
            .rev()
            .filter(|&bit| key.contains(bit))
            .map(|bit| self.mismatch[bit as usize])
            .collect();
        let cost = key_cost(
            &request.collection,
            &own,
            request.division.dependence(),
            key.radius,
            num_tables,
        );
        if let Some(costs) = &mut self.by_width {
            costs.insert(known, cost);
        }
        cost
    }
}

fn add(a: KeyCost, b: KeyCost) -> KeyCost {
    KeyCost {
        num_probes: a.num_probes + b.num_probes,
        num_candidates: a.num_candidates + b.num_candidates,
        num_buckets: a.num_buckets + b.num_buckets,
        num_compared: a.num_compared + b.num_compared,
        num_bytes: a.num_bytes + b.num_bytes,
        single_ns: a.single_ns + b.single_ns,
        batch_ns: a.batch_ns + b.batch_ns,
        build_ns: a.build_ns + b.build_ns,
    }
}
