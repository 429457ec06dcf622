//! Which plan is the cheapest that fits in the memory, and what are the others?

use std::sync::atomic::AtomicBool;

use super::SearchPlan;
use super::blocks::Division;
use super::families::{Design, scan};
use super::layout::Collection;
use super::price::{PricedPlan, Pricer, SurveyRequest};
use super::space::propose_designs;
use super::statistics::MAX_DEPENDENCE;
use likewise_core::error::{Result, invalid_if};
use likewise_core::parallel::Cancel;

/// Plans within this factor of the fastest are equivalent: the smallest of them is chosen.
const AS_GOOD: f64 = 1.1;
/// A larger plan must be faster by this factor to be on the frontier.
const WORTH_ITS_BYTES: f64 = 1.05;
/// Default memory for a plan, in sizes of the fingerprints: the four tables of the smallest plan of 2007.
const DEFAULT_COPIES: f64 = 4.0;

/// The plans on the frontier, by size.
#[derive(Clone, Debug, PartialEq)]
pub struct Survey {
    pub plans: Vec<PricedPlan>,
    /// Of the plans that fit and are at most a tenth slower than the fastest of these, the smallest, if any.
    pub chosen: Option<usize>,
    pub work: SurveyWork,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SurveyWork {
    pub num_plans_priced: usize,
    /// Number of priced keys; each combination of bits, radius and number of tables counts once.
    pub num_keys_priced: usize,
}

/// Prices the plans for a collection and chooses one, in milliseconds ([`SurveyWork`] counts the steps).
pub fn survey(request: &SurveyRequest, cancel: &AtomicBool) -> Result<Survey> {
    check(request)?;
    let SurveyRequest {
        collection,
        within,
        memory_bytes,
        division,
    } = request;
    let mut pricer = Pricer::new(request);
    // The scan is the smallest plan of all: slower plans are never chosen.
    let mut plans: Vec<PricedPlan> = Vec::from_iter(pricer.price(scan(), f64::INFINITY));
    let (_, scan_ns) = collection.scan_ns();
    let mut propose = |design: Design| {
        cancel.check()?;
        if !plans.iter().any(|plan| plan.keys == design.keys) {
            plans.extend(pricer.price_unless_beaten(design, &plans));
        }
        Ok(())
    };
    propose_designs(collection, *within, division, scan_ns, &mut propose)?;
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
    let work = SurveyWork {
        num_plans_priced: pricer.num_plans,
        num_keys_priced: pricer.num_keys,
    };
    keep_faster(&mut plans);
    Ok(Survey {
        chosen: chosen(&plans),
        plans,
        work,
    })
}

/// Of the plans that fit and are about as fast as the fastest of these, the smallest; plans ascend by size.
fn chosen(plans: &[PricedPlan]) -> Option<usize> {
    let least = plans
        .iter()
        .filter(|plan| plan.fits)
        .map(|plan| plan.cost.batch_ns)
        .fold(f64::INFINITY, f64::min);
    plans
        .iter()
        .position(|plan| plan.fits && plan.cost.batch_ns <= least * AS_GOOD)
}

/// From plans in order of size, keeps those sufficiently faster than every smaller one.
fn keep_faster(plans: &mut Vec<PricedPlan>) {
    let mut fastest = f64::INFINITY;
    plans.retain(|plan| {
        let is_worth = plan.cost.batch_ns * WORTH_ITS_BYTES < fastest;
        if is_worth {
            fastest = plan.cost.batch_ns;
        }
        is_worth
    });
}

/// Returns the plan chosen for a collection, or `None` if nothing fits in the memory.
pub fn choose_plan(request: &SurveyRequest, cancel: &AtomicBool) -> Result<Option<SearchPlan>> {
    let survey = survey(request, cancel)?;
    let plan = |index: usize| {
        let keys = survey.plans[index].keys.clone();
        SearchPlan::new(request.collection.bits, request.within, keys)
    };
    survey.chosen.map(plan).transpose()
}

fn check(request: &SurveyRequest) -> Result<()> {
    let Collection {
        num_fingerprints,
        bits,
        id_bits,
    } = request.collection;
    invalid_if(
        !(32..=256).contains(&bits) || !bits.is_multiple_of(32),
        "bits",
        || format!("{bits} is not a multiple of 32 from 32 to 256"),
    )?;
    invalid_if(request.within > bits, "within", || {
        format!(
            "{} is above the {bits} bits of a fingerprint",
            request.within
        )
    })?;
    invalid_if(num_fingerprints > 1 << 48, "n", || {
        format!("{num_fingerprints} is above 2^48")
    })?;
    invalid_if(id_bits > 64, "id_bits", || format!("{id_bits} is above 64"))?;
    if let Division::Balanced(known) = &request.division {
        let ones = &known.ones;
        invalid_if(
            ones.len() != bits as usize || !ones.iter().all(|share| (0.0..=1.0).contains(share)),
            "bit_frequencies",
            || format!("must be {bits} numbers between 0 and 1, the share of ones at each bit"),
        )?;
        invalid_if(
            !(0.0..=MAX_DEPENDENCE).contains(&known.dependence),
            "bit_dependence",
            || format!("{} is outside 0..={MAX_DEPENDENCE}", known.dependence),
        )?;
    }
    Ok(())
}
