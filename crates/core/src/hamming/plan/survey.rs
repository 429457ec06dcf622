//! Which plan is the cheapest that fits the memory, and what are the others?

use super::blocks::Division;
use super::costs::Costs;
use super::families::{Design, Family};
use super::historical::historical_designs;
use super::layout::{Collection, EXPOSED, KeyCost, ball, key_cost, power_of_two};
use super::space::designs;
use super::{Key, SearchPlan};
use crate::error::Error;

/// Plans this much slower than the fastest are as good: the smallest of them is taken.
const AS_GOOD: f64 = 1.1;
/// A larger plan must be faster by this factor to stand on the frontier.
const WORTH_ITS_BYTES: f64 = 1.05;
/// Bytes that a plan may take where nothing is said, as a multiple of the fingerprints': the four tables of the least of the 2007 paper's plans.
const DEFAULT_COPIES: f64 = 4.0;

/// What is to be planned.
#[derive(Clone, Debug)]
pub struct SurveyRequest {
    /// The set that is searched.
    pub collection: Collection,
    /// Radius within which every pair is to be found.
    pub within: u32,
    /// Bytes that the tables and ids may take; four times the fingerprints and the ids where None.
    pub memory_bytes: Option<f64>,
    /// How blocks are cut.
    pub division: Division,
    /// Costs of the machine.
    pub costs: Costs,
}

/// A plan and its price.
#[derive(Clone, Debug, PartialEq)]
pub struct PricedPlan {
    /// The family it belongs to.
    pub family: Family,
    /// What it does, in words.
    pub name: String,
    /// Its keys; none for the scan and for stored neighbours.
    pub keys: Vec<Key>,
    /// Tables.
    pub num_tables: usize,
    /// Probes, candidates, times and bytes of all tables; bytes with ids.
    pub cost: KeyCost,
    /// Whether it is one of the searches of the literature.
    pub is_historical: bool,
    /// Whether every smaller plan is slower by a twentieth or more.
    pub is_on_frontier: bool,
    /// Whether it fits the memory.
    pub fits: bool,
}

impl PricedPlan {
    /// Whether an index of it can be built; all but stored neighbours.
    pub fn is_searchable(&self) -> bool {
        self.family != Family::StoredNeighbours
    }
}

/// The frontier of plans and the historical ones, by size.
#[derive(Clone, Debug, PartialEq)]
pub struct Survey {
    /// The plans, in order of bytes.
    pub plans: Vec<PricedPlan>,
    /// The plan that is taken: of those that fit and are at most a tenth slower than the fastest of these, the smallest. None where none fits.
    pub chosen: Option<usize>,
}

/// Prices the plans for a collection and chooses one.
///
/// # Errors
/// [`Error::InvalidParameter`] where bits, radius, frequencies or costs are out of range.
///
/// # Cost
/// Milliseconds to some tenths of a second, growing with the radius.
pub fn survey(request: &SurveyRequest) -> Result<Survey, Error> {
    check(request)?;
    let SurveyRequest {
        collection,
        within,
        memory_bytes,
        division,
        costs,
    } = request;
    let mut plans: Vec<PricedPlan> = Vec::new();
    for design in historical_designs(collection.bits, *within, division) {
        plans.push(PricedPlan {
            is_historical: true,
            ..price(request, design)
        });
    }
    for design in designs(collection, *within, division, costs) {
        if !plans.iter().any(|plan| plan.keys == design.keys) {
            plans.push(price(request, design));
        }
    }
    let memory_bytes = memory_bytes
        .unwrap_or_else(|| DEFAULT_COPIES * collection.plain_bytes() + collection.id_bytes());
    for plan in &mut plans {
        plan.fits = plan.cost.num_bytes <= memory_bytes;
    }
    plans.sort_by(|a, b| {
        let (a, b) = (&a.cost, &b.cost);
        a.num_bytes
            .total_cmp(&b.num_bytes)
            .then(a.batch_ns.total_cmp(&b.batch_ns))
    });
    // A plan whose completeness takes too long to check is not offered: completeness is never believed.
    loop {
        mark_frontier(&mut plans);
        let num_plans = plans.len();
        plans.retain(|plan| {
            let is_offered = plan.is_searchable() && (plan.is_on_frontier || plan.is_historical);
            !is_offered || SearchPlan::new(collection.bits, *within, plan.keys.clone()).is_ok()
        });
        if plans.len() == num_plans {
            break;
        }
    }
    plans.retain(|plan| plan.is_on_frontier || plan.is_historical);
    let candidates = || {
        plans
            .iter()
            .filter(|plan| plan.fits && plan.is_searchable())
    };
    let least = candidates()
        .map(|plan| plan.cost.batch_ns)
        .fold(f64::INFINITY, f64::min);
    let chosen = plans.iter().position(|plan| {
        plan.fits && plan.is_searchable() && plan.cost.batch_ns <= least * AS_GOOD
    });
    Ok(Survey { plans, chosen })
}

/// Marks the plans, in order of bytes, that are faster than every smaller one by what their bytes are worth.
fn mark_frontier(plans: &mut [PricedPlan]) {
    let mut fastest = f64::INFINITY;
    for plan in plans {
        plan.is_on_frontier =
            plan.is_searchable() && plan.cost.batch_ns * WORTH_ITS_BYTES < fastest;
        if plan.is_on_frontier {
            fastest = plan.cost.batch_ns;
        }
    }
}

/// The plan that is taken for a collection; None where nothing fits the memory.
///
/// # Errors
/// As [`survey`].
pub fn choose_plan(request: &SurveyRequest) -> Result<Option<SearchPlan>, Error> {
    let survey = survey(request)?;
    survey
        .chosen
        .map(|index| {
            SearchPlan::new(
                request.collection.bits,
                request.within,
                survey.plans[index].keys.clone(),
            )
        })
        .transpose()
}

fn check(request: &SurveyRequest) -> Result<(), Error> {
    let Collection {
        num_fingerprints,
        bits,
        id_bits,
    } = request.collection;
    if !(32..=256).contains(&bits) || !bits.is_multiple_of(32) {
        return Err(Error::invalid(
            "bits",
            format!("{bits} is not a multiple of 32 from 32 to 256"),
        ));
    }
    if request.within > bits {
        return Err(Error::invalid(
            "within",
            format!(
                "{} is above the {bits} bits of a fingerprint",
                request.within
            ),
        ));
    }
    if num_fingerprints > 1 << 48 {
        return Err(Error::invalid(
            "n",
            format!("{num_fingerprints} is above 2^48"),
        ));
    }
    if id_bits > 64 {
        return Err(Error::invalid("id_bits", format!("{id_bits} is above 64")));
    }
    if let Division::Balanced(ones) = &request.division
        && (ones.len() != bits as usize || !ones.iter().all(|share| (0.0..=1.0).contains(share)))
    {
        return Err(Error::invalid(
            "bit_frequencies",
            format!("must be {bits} numbers between 0 and 1, the share of ones at each bit"),
        ));
    }
    request.costs.check()
}

fn price(request: &SurveyRequest, design: Design) -> PricedPlan {
    let SurveyRequest {
        collection,
        within,
        division,
        costs,
        ..
    } = request;
    let n = collection.num_fingerprints as f64;
    let mut cost = KeyCost::default();
    let mut num_tables = design.keys.len();
    match design.family {
        Family::Scan => {
            (cost.single_ns, cost.batch_ns) = collection.scan_ns(costs);
            (cost.num_candidates, cost.num_compared) = (n, n);
            cost.num_bytes = collection.plain_bytes();
        }
        Family::StoredNeighbours => {
            // A hash table of the neighbours: the code and the id, and one entry in three free.
            num_tables = 1;
            let num_stored = n * ball(collection.bits, *within);
            cost.num_bytes = 1.5
                * (collection.plain_bytes() + collection.id_bytes())
                * ball(collection.bits, *within);
            cost.num_probes = 1.0;
            cost.num_buckets = 1.0;
            cost.num_candidates = num_stored / power_of_two(collection.bits);
            cost.num_compared = 1.0 + cost.num_candidates;
            let (latency_ns, overlapped_ns) = costs.read_ns(cost.num_bytes);
            let asked_ns = costs.table_ns + costs.bucket_ns;
            cost.batch_ns = asked_ns + EXPOSED * latency_ns;
            cost.single_ns = costs.query_ns + asked_ns + latency_ns;
            cost.build_ns = num_stored * (overlapped_ns + costs.bucket_ns);
        }
        _ => {
            let mismatch = division.mismatch(collection.bits);
            let mut previous: Option<(Vec<f64>, u32, KeyCost)> = None;
            for key in &design.keys {
                // The leading bit of a key is its highest position.
                let own: Vec<f64> = (0..collection.bits)
                    .rev()
                    .filter(|&bit| key.contains(bit))
                    .map(|bit| mismatch[bit as usize])
                    .collect();
                let one = match &previous {
                    Some((known, radius, one)) if *known == own && *radius == key.radius => *one,
                    _ => key_cost(collection, &own, key.radius, num_tables, costs),
                };
                cost = add(cost, one);
                previous = Some((own, key.radius, one));
            }
            cost.num_bytes += collection.id_bytes();
            cost.single_ns += costs.query_ns;
        }
    }
    PricedPlan {
        family: design.family,
        name: design.name,
        keys: design.keys,
        num_tables,
        cost,
        is_historical: false,
        is_on_frontier: false,
        fits: false,
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
