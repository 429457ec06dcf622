//! Which plans are chosen?

use super::blocks::Division;
use super::costs::Costs;
use super::families::Family;
use super::layout::{Collection, key_cost};
use super::survey::{PricedPlan, SurveyRequest, choose_plan, survey};

fn request(n: u64, bits: u32, within: u32) -> SurveyRequest {
    SurveyRequest {
        collection: Collection::with_rows(n, bits),
        within,
        memory_bytes: None,
        division: Division::Contiguous,
        costs: Costs::default(),
    }
}

fn chosen(request: &SurveyRequest) -> PricedPlan {
    let found = survey(request).unwrap();
    found.plans[found.chosen.unwrap()].clone()
}

#[test]
fn more_fingerprints_want_fewer_tables() {
    // Four exact blocks while buckets are small, halves at last.
    for (n, num_tables, radii) in [
        (1_000_000, 4, vec![0, 0, 0, 0]),
        (1_000_000_000, 2, vec![1, 1]),
        (17_000_000_000, 2, vec![1, 1]),
    ] {
        let plan = chosen(&request(n, 64, 3));
        let found: Vec<u32> = plan.keys.iter().map(|key| key.radius).collect();
        assert_eq!(
            (plan.num_tables, found),
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
    assert_eq!(chosen(&bounded(8e9)).family, Family::Scan);
    assert_eq!(survey(&bounded(7e9)).unwrap().chosen, None);
    assert_eq!(choose_plan(&bounded(7e9)).unwrap(), None);
    let plan = choose_plan(&request(n, 64, 3)).unwrap().unwrap();
    assert_eq!((plan.keys(), plan.within()), (free.keys.as_slice(), 3));
}

#[test]
fn the_frontier_falls_and_holds_the_searches_of_the_literature() {
    for (n, bits, within) in [
        (10_000, 32, 2),
        (1_000_000, 64, 3),
        (1_000_000, 128, 12),
        (100_000_000, 256, 32),
    ] {
        let found = survey(&request(n, bits, within)).unwrap();
        let mut fastest = f64::INFINITY;
        for plan in found.plans.iter().filter(|plan| plan.is_on_frontier) {
            assert!(plan.cost.batch_ns < fastest);
            fastest = plan.cost.batch_ns;
        }
        assert!(
            found
                .plans
                .is_sorted_by(|a, b| a.cost.num_bytes <= b.cost.num_bytes)
        );
        for family in [
            Family::Scan,
            Family::ProbedNeighbours,
            Family::StoredNeighbours,
            Family::ChosenBlocks,
        ] {
            assert!(
                found
                    .plans
                    .iter()
                    .any(|plan| plan.is_historical && plan.family == family)
            );
        }
    }
    let tables: Vec<usize> = {
        let found = survey(&request(1_000_000, 64, 3)).unwrap();
        found
            .plans
            .iter()
            .filter(|plan| plan.is_historical)
            .map(|plan| plan.num_tables)
            .collect()
    };
    assert_eq!(tables, [0, 1, 4, 10, 16, 20, 1]);
}

#[test]
fn skew_is_priced_and_balanced_blocks_pay() {
    // Every other position is nearly constant in the lower half of the code.
    let ones: Vec<f64> = (0..64)
        .map(|bit| if bit < 32 { 0.02 } else { 0.5 })
        .collect();
    let mut skewed = request(10_000_000, 64, 3);
    let uniform = chosen(&skewed);
    skewed.division = Division::Balanced(ones.clone());
    let balanced = survey(&skewed).unwrap();
    let four = |plans: &[PricedPlan]| {
        plans
            .iter()
            .find(|plan| plan.is_historical && plan.num_tables == 4)
            .unwrap()
            .cost
            .num_compared
    };
    let plain = four(&survey(&request(10_000_000, 64, 3)).unwrap().plans);
    assert!(four(&balanced.plans) > 5.0 * plain);
    assert!(balanced.plans[balanced.chosen.unwrap()].cost.batch_ns > uniform.cost.batch_ns);
    // Contiguous blocks of the same data: two hold next to nothing.
    let contiguous = key_cost(
        &skewed.collection,
        &[2.0 * 0.02 * 0.98; 16],
        0,
        4,
        &skewed.costs,
    );
    assert!(contiguous.num_compared > four(&balanced.plans));
}

#[test]
fn what_makes_no_sense_is_refused() {
    for wrong in [
        request(10, 48, 3),
        request(10, 64, 65),
        request(1 << 49, 64, 3),
        SurveyRequest {
            division: Division::Balanced(vec![0.5; 63]),
            ..request(10, 64, 3)
        },
        SurveyRequest {
            division: Division::Balanced(vec![1.5; 64]),
            ..request(10, 64, 3)
        },
        SurveyRequest {
            costs: Costs {
                sort_ns: f64::NAN,
                ..Costs::default()
            },
            ..request(10, 64, 3)
        },
    ] {
        assert!(survey(&wrong).is_err());
    }
    for (n, within) in [(0, 3), (1, 0), (2, 64), (1 << 48, 3), (1000, 63)] {
        assert!(survey(&request(n, 64, within)).is_ok(), "{n} {within}");
    }
}

/// Fingerprints, bits, (width, radius) of each key, and microseconds of a query of many, measured on the machine of the built-in costs.
type Measured = (f64, u32, &'static [(u32, u32)], f64);

#[test]
fn predictions_lie_within_a_factor_of_two_of_measured_times() {
    let measured: [Measured; 17] = [
        (1e5, 64, &[(16, 0); 4], 0.139),
        (1e5, 64, &[(22, 1), (21, 0), (21, 0)], 0.469),
        (1e5, 64, &[(64, 3)], 14.3),
        (1e6, 64, &[(16, 0); 4], 0.378),
        (1e6, 64, &[(32, 1); 2], 1.36),
        (1e6, 64, &[(26, 0); 10], 0.93),
        (1e6, 64, &[(22, 2), (21, 1), (21, 1)], 5.76),
        (1e7, 64, &[(16, 0); 4], 1.24),
        (1e7, 64, &[(22, 1), (21, 0), (21, 0)], 1.53),
        (1e7, 64, &[(32, 1); 2], 2.33),
        (1e7, 64, &[(17, 1), (17, 1), (17, 1), (13, 0)], 10.2),
        (1e7, 64, &[(22, 3), (21, 3), (21, 2)], 204.0),
        (1e7, 128, &[(32, 0); 4], 1.14),
        (1e7, 128, &[(32, 2), (32, 2), (32, 2), (32, 1)], 37.0),
        (
            1e6,
            256,
            &[
                (32, 1),
                (32, 1),
                (32, 1),
                (32, 0),
                (32, 0),
                (32, 0),
                (32, 0),
                (32, 0),
            ],
            3.86,
        ),
        (1e8, 64, &[(22, 1), (21, 0), (21, 0)], 3.04),
        (1e8, 64, &[(32, 1); 2], 3.01),
    ];
    for (n, bits, keys, microseconds) in measured {
        let collection = Collection::with_rows(n as u64, bits);
        let costs = Costs::default();
        let batch_ns: f64 = keys
            .iter()
            .map(|&(width, radius)| {
                let mismatch = vec![0.5; width as usize];
                key_cost(&collection, &mismatch, radius, keys.len(), &costs).batch_ns
            })
            .sum();
        let ratio = batch_ns / 1e3 / microseconds;
        assert!((0.5..2.0).contains(&ratio), "{n} {bits} {keys:?}: {ratio}");
    }
}

#[test]
fn bytes_are_those_of_the_tables() {
    // Bytes a fingerprint of tables that were built, without ids.
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
                key_cost(&collection, &mismatch, 0, keys.len(), &Costs::default()).num_bytes
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
fn what_cannot_be_checked_is_not_offered() {
    // Balanced bits and many chosen blocks make sets of overlapping keys that no check settles.
    for (bits, within) in [(256, 14), (256, 11), (192, 13), (128, 12)] {
        for division in [
            Division::Contiguous,
            Division::Balanced(vec![0.4; bits as usize]),
        ] {
            let found = survey(&SurveyRequest {
                division,
                ..request(20_000, bits, within)
            });
            assert!(
                found.unwrap().chosen.is_some(),
                "{bits} bits within {within}"
            );
        }
    }
}
