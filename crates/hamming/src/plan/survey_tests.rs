//! Which plans are chosen?

use super::blocks::Division;
use super::families::chosen_blocks;
use super::layout::{Collection, key_cost};
use super::price::{PricedPlan, Pricer, SurveyRequest};
use super::survey::Survey;
use super::{BitStatistics, SearchPlan, survey as surveyed};
use likewise_core::error::Error;
use std::sync::atomic::AtomicBool;

fn request(n: u64, bits: u32, within: u32) -> SurveyRequest {
    SurveyRequest {
        collection: Collection::with_rows(n, bits),
        within,
        memory_bytes: None,
        division: Division::Contiguous,
    }
}

fn balanced(ones: Vec<f64>) -> Division {
    Division::Balanced(BitStatistics {
        ones,
        dependence: 0.0,
    })
}

fn survey(request: &SurveyRequest) -> Result<Survey, Error> {
    surveyed(request, &AtomicBool::new(false))
}

fn choose_plan(request: &SurveyRequest) -> Result<Option<SearchPlan>, Error> {
    super::choose_plan(request, &AtomicBool::new(false))
}

fn chosen(request: &SurveyRequest) -> PricedPlan {
    let found = survey(request).unwrap();
    found.plans[found.chosen.unwrap()].clone()
}

#[test]
fn more_fingerprints_want_fewer_tables() {
    // Four exact blocks while buckets are small, and finally halves.
    for (n, num_tables, radii) in [
        (1_000_000, 4, vec![0, 0, 0, 0]),
        (1_000_000_000, 2, vec![1, 1]),
        (17_000_000_000, 2, vec![1, 1]),
    ] {
        let plan = chosen(&request(n, 64, 3));
        let found: Vec<u32> = plan.keys.iter().map(|key| key.radius).collect();
        assert_eq!(
            (plan.keys.len(), found),
            (num_tables, radii),
            "{n}: {}",
            plan.name
        );
    }
}

#[test]
fn memory_bounds_the_choice() {
    let n = 1_000_000_000;
    let free = chosen(&request(n, 64, 3));
    let bounded = |memory_bytes: f64| SurveyRequest {
        memory_bytes: Some(memory_bytes),
        ..request(n, 64, 3)
    };
    let rich = chosen(&bounded(1e12));
    assert!(rich.cost.num_bytes > free.cost.num_bytes && rich.cost.batch_ns < free.cost.batch_ns);
    assert_eq!(chosen(&bounded(8e9)).family, "scan");
    assert_eq!(survey(&bounded(7e9)).unwrap().chosen, None);
    assert_eq!(choose_plan(&bounded(7e9)).unwrap(), None);
    let plan = choose_plan(&request(n, 64, 3)).unwrap().unwrap();
    assert_eq!((plan.keys(), plan.within), (free.keys.as_slice(), 3));
}

#[test]
fn the_frontier_falls_from_the_scan_on() {
    for (n, bits, within) in [
        (10_000, 32, 2),
        (1_000_000, 64, 3),
        (1_000_000, 128, 12),
        (100_000_000, 256, 32),
    ] {
        let plans = survey(&request(n, bits, within)).unwrap().plans;
        assert_eq!(plans[0].family, "scan");
        assert!(plans.len() > 1);
        assert!(plans.is_sorted_by(|a, b| {
            a.cost.num_bytes <= b.cost.num_bytes && a.cost.batch_ns > b.cost.batch_ns
        }));
    }
}

#[test]
fn skew_is_priced_and_balanced_blocks_pay() {
    // Every other position is almost constant in the lower half of the code.
    let ones: Vec<f64> = (0..64)
        .map(|bit| if bit < 32 { 0.02 } else { 0.5 })
        .collect();
    let mut skewed = request(10_000_000, 64, 3);
    let uniform = chosen(&skewed);
    skewed.division = balanced(ones.clone());
    let balanced = survey(&skewed).unwrap();
    let four = |request: &SurveyRequest| {
        let blocks = chosen_blocks(&request.division, 64, 4, 1, 0);
        let priced = Pricer::new(request).price(blocks, f64::INFINITY);
        priced.unwrap().cost.num_compared
    };
    assert!(four(&skewed) > 5.0 * four(&request(10_000_000, 64, 3)));
    assert!(balanced.plans[balanced.chosen.unwrap()].cost.batch_ns > uniform.cost.batch_ns);
    // Contiguous blocks of the same data: two are almost useless.
    let contiguous = key_cost(&skewed.collection, &[2.0 * 0.02 * 0.98; 16], 0.0, 0, 4);
    assert!(contiguous.num_compared > four(&skewed));
}

#[test]
fn dependent_bits_find_more_and_want_narrower_blocks_with_fewer_flips() {
    // The statistics of fingerprints of real paragraphs: 3 tables of 22 bits look good unless the sizes of their
    // buckets are known.
    let known = |dependence| {
        Division::Balanced(BitStatistics {
            ones: (0..64)
                .map(|bit| 0.3 + 0.4 * f64::from(bit) / 63.0)
                .collect(),
            dependence,
        })
    };
    let cost_of = |dependence| {
        let found = survey(&SurveyRequest {
            division: known(dependence),
            ..request(10_000_000, 64, 6)
        });
        let plan = found.unwrap();
        plan.plans[plan.chosen.unwrap()].cost
    };
    let (plain, dependent) = (cost_of(0.0), cost_of(0.003));
    assert!(dependent.batch_ns > 1.05 * plain.batch_ns);
    assert_eq!(cost_of(0.0), plain);
}

#[test]
fn what_makes_no_sense_is_refused() {
    for wrong in [
        request(10, 48, 3),
        request(10, 64, 65),
        request(1 << 49, 64, 3),
        SurveyRequest {
            division: balanced(vec![0.5; 63]),
            ..request(10, 64, 3)
        },
        SurveyRequest {
            division: balanced(vec![1.5; 64]),
            ..request(10, 64, 3)
        },
        SurveyRequest {
            division: Division::Balanced(BitStatistics {
                ones: vec![0.5; 64],
                dependence: 0.9,
            }),
            ..request(10, 64, 3)
        },
    ] {
        assert!(survey(&wrong).is_err());
    }
    for (n, within) in [(0, 3), (1, 0), (2, 64), (1 << 48, 3), (1000, 63)] {
        assert!(survey(&request(n, 64, within)).is_ok(), "{n} {within}");
    }
}

/// Fingerprints, bits, (width, radius) of each key, and microseconds per query of a batch, measured on the machine of
/// the built-in costs.
type Measured = (f64, u32, &'static [(u32, u32)], f64);

#[test]
fn predictions_lie_within_a_factor_of_two_of_measured_times() {
    let measured: [Measured; 22] = [
        (1e5, 64, &[(16, 0); 4], 0.139),
        (1e5, 64, &[(22, 1), (21, 0), (21, 0)], 0.469),
        (1e5, 64, &[(64, 3)], 14.3),
        (1e6, 64, &[(16, 0); 4], 0.33),
        (1e6, 64, &[(22, 1), (21, 0), (21, 0)], 0.68),
        (1e6, 64, &[(32, 1); 2], 0.94),
        (1e6, 64, &[(17, 1), (17, 1), (16, 1), (14, 0)], 1.39),
        (1e6, 64, &[(22, 2), (21, 1), (21, 1)], 6.52),
        (1e6, 64, &[(32, 3), (32, 2)], 31.4),
        (1e6, 64, &[(16, 2), (16, 1), (16, 1), (16, 1)], 6.21),
        (1e6, 64, &[(22, 2), (21, 2), (21, 2)], 12.2),
        (1e6, 64, &[(16, 2), (16, 2), (16, 2), (16, 1)], 12.4),
        (1e7, 64, &[(16, 0); 4], 0.64),
        (1e7, 64, &[(22, 1), (21, 0), (21, 0)], 0.82),
        (1e7, 64, &[(32, 1); 2], 1.43),
        (1e7, 64, &[(17, 1), (17, 1), (17, 1), (13, 0)], 4.38),
        (1e7, 64, &[(24, 1), (20, 2), (20, 1)], 14.1),
        (1e7, 64, &[(32, 3), (32, 2)], 73.0),
        (1e7, 64, &[(18, 2), (15, 1), (15, 1), (16, 1)], 18.0),
        (1e7, 64, &[(24, 2), (20, 2), (20, 2)], 24.9),
        (1e7, 64, &[(32, 4), (32, 3)], 481.0),
        (1e7, 64, &[(17, 2), (17, 2), (16, 2), (14, 1)], 50.2),
    ];
    for (n, bits, keys, microseconds) in measured {
        let collection = Collection::with_rows(n as u64, bits);
        let batch_ns: f64 = keys
            .iter()
            .map(|&(width, radius)| {
                let mismatch = vec![0.5; width as usize];
                key_cost(&collection, &mismatch, 0.0, radius, keys.len()).batch_ns
            })
            .sum();
        let ratio = batch_ns / 1e3 / microseconds;
        assert!((0.5..2.0).contains(&ratio), "{n} {bits} {keys:?}: {ratio}");
    }
}

#[test]
fn bytes_are_those_of_the_tables() {
    // Measured bytes per fingerprint of tables, without ids.
    for (n, bits, keys, measured) in [
        (1e5, 64, vec![16; 4], 34.489),
        (1e6, 64, vec![22, 21, 21], 17.698),
        (1e7, 64, vec![32, 32], 10.839),
        (1e7, 128, vec![32; 4], 53.678),
        (1e8, 64, vec![32, 32], 10.342),
    ] {
        let collection = Collection::with_rows(n as u64, bits);
        let found: f64 = keys
            .iter()
            .map(|&width| {
                let mismatch = vec![0.5; width];
                key_cost(&collection, &mismatch, 0.0, 0, keys.len()).num_bytes
            })
            .sum();
        assert!(
            (found / n / measured - 1.0).abs() < 0.002,
            "{n} {bits}: {}",
            found / n
        );
    }
}

#[test]
fn a_survey_is_a_bounded_number_of_steps_at_any_radius() {
    let skewed = |bits: u32| {
        let ones = (0..bits).map(|bit| 0.1 + 0.8 * f64::from(bit * 7 % 61) / 61.0);
        balanced(ones.collect())
    };
    for bits in [32, 64, 128, 192, 256] {
        for within in [0, 1, 3, 8, 12, 14, 20, 24, 32, 48, 64] {
            for n in [1, 100_000, 10_000_000, 1_000_000_000] {
                for division in [Division::Contiguous, skewed(bits)] {
                    if within > bits {
                        continue;
                    }
                    let found = survey(&SurveyRequest {
                        division,
                        ..request(n, bits, within)
                    })
                    .unwrap();
                    assert!(found.chosen.is_some(), "{n} {bits} {within}");
                    let work = found.work;
                    assert!(
                        work.num_plans_priced <= 60 && work.num_keys_priced <= 3000,
                        "{n} {bits} {within}: {work:?}"
                    );
                }
            }
        }
    }
    // If the scan is the cheapest by far, hardly any other plan is priced.
    let work = survey(&request(1_000_000, 128, 24)).unwrap().work;
    assert!(work.num_plans_priced <= 20, "{work:?}");
}

#[test]
fn a_survey_stops_when_it_is_told_to() {
    let stopped = surveyed(&request(1_000_000, 64, 3), &AtomicBool::new(true));
    assert_eq!(stopped, Err(Error::Canceled));
}
