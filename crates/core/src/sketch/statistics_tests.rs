//! Estimates of the Jaccard similarity and of the angle are unbiased, and have the promised variance.

use crate::hash::{GOLDEN, mix64};
use crate::isa::Isa;

use super::{MinHasher, Scheme, simhash};

/// Returns the mean error, and the mean squared error over J(1-J)/m, of the estimates on many pairs of sets. Pair i is
/// sketched with seed i. Of `num_union` features (made by `feature(pair, number)`), both sets have the first
/// `num_shared`; the rest are assigned to the two sets alternately.
fn errors(
    scheme: Scheme,
    num_slots: u32,
    num_union: u64,
    num_shared: u64,
    num_pairs: u64,
    feature: impl Fn(u64, u64) -> u64,
) -> (f64, f64) {
    let exact = num_shared as f64 / num_union as f64;
    let mut bias = 0.0;
    let mut squared = 0.0;
    for pair in 0..num_pairs {
        let mut hasher = MinHasher::new(num_slots, scheme, mix64(pair + 1), Isa::best());
        let [left, right] = [0, 1].map(|side| {
            let features: Vec<u64> = (0..num_union)
                .filter(|&number| number < num_shared || number % 2 == side)
                .map(|number| feature(pair, number))
                .collect();
            let mut out = vec![0; num_slots as usize];
            hasher.sketch(&features, &[], &mut out);
            out
        });
        let num_equal = left.iter().zip(&right).filter(|(a, b)| a == b).count();
        let error = num_equal as f64 / f64::from(num_slots) - exact;
        bias += error;
        squared += error * error;
    }
    let pairs = num_pairs as f64;
    let classical = exact * (1.0 - exact) / f64::from(num_slots);
    (bias / pairs, squared / pairs / classical)
}

fn random_feature(pair: u64, number: u64) -> u64 {
    mix64(mix64(pair) ^ number.wrapping_mul(GOLDEN))
}

#[test]
fn bucket_filling_has_the_variance_promised() {
    // Unions of 40, 150, 600; limits of the design, at J = 0.8.
    for (num_union, limit) in [(40, 0.55), (150, 0.62), (600, 0.82)] {
        let num_shared = num_union * 4 / 5;
        let (bias, variance) = errors(
            Scheme::Bucket,
            128,
            num_union,
            num_shared,
            20_000,
            random_feature,
        );
        println!("union {num_union}: bias {bias:+.5}, variance {variance:.3} of classical");
        assert!(variance <= limit, "union {num_union}: variance {variance}");
        // Five standard errors: the standard deviation of one estimate is at most 0.036.
        assert!(
            bias.abs() < 5.0 * 0.036 / 20_000f64.sqrt(),
            "union {num_union}: bias {bias}"
        );
    }
}

#[test]
fn estimates_are_unbiased_on_structured_features() {
    // Consecutive integers times an odd constant: weak hashing shows here.
    type Kind = (&'static str, fn(u64, u64) -> u64);
    let kinds: [Kind; 3] = [
        ("consecutive", |pair, number| pair * 10_000 + number),
        ("golden", |pair, number| {
            (pair * 10_000 + number).wrapping_mul(GOLDEN)
        }),
        ("high", |pair, number| (pair * 10_000 + number) << 40),
    ];
    for (name, feature) in kinds {
        for (scheme, num_slots, num_pairs) in [
            (Scheme::Bucket, 128, 10_000),
            (Scheme::Classical, 16, 10_000),
        ] {
            let (bias, variance) = errors(scheme, num_slots, 250, 200, num_pairs, feature);
            println!(
                "{name}, {}: bias {bias:+.5}, variance {variance:.3}",
                scheme.name()
            );
            let standard_error = (0.16 / f64::from(num_slots) / num_pairs as f64).sqrt();
            assert!(bias.abs() < 5.0 * standard_error, "{name}: bias {bias}");
            assert!(variance < 1.1, "{name}: variance {variance}");
        }
    }
}

#[test]
fn simhash_distance_follows_the_angle() {
    // Sets of 300 that share 240: cosine 0.8, expected distance 64 * acos(0.8) / pi.
    let num_pairs = 4000;
    let mut sum = 0;
    for pair in 0..num_pairs {
        let [left, right] = [0, 60].map(|start| {
            let features: Vec<u64> = (start..start + 300)
                .map(|i| random_feature(pair, i))
                .collect();
            let mut out = [0];
            simhash(&features, &[], 64, Isa::best(), &mut out);
            out[0]
        });
        sum += (left ^ right).count_ones();
    }
    let mean = f64::from(sum) / num_pairs as f64;
    let expected = 64.0 * libm::acos(0.8) / std::f64::consts::PI;
    println!("mean distance {mean:.3}, by the angle {expected:.3}");
    // A distance has standard deviation 3.2; the angle law is exact only for many features.
    assert!((mean - expected).abs() < 0.35, "{mean} for {expected}");
}
