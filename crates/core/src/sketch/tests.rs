//! Sketches compared with naive implementations of the definitions, for every instruction set.

use crate::hash::{GOLDEN, expand, mix64};
use crate::isa::Isa;

use super::{MinHasher, Scheme, Signatures, simhash};

/// Repeatable random numbers.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(GOLDEN);
        mix64(self.0)
    }

    fn features(&mut self, len: usize) -> Vec<u64> {
        (0..len).map(|_| self.next()).collect()
    }

    fn weights(&mut self, len: usize, limit: u64) -> Vec<u32> {
        (0..len).map(|_| 1 + (self.next() % limit) as u32).collect()
    }
}

/// SimHash by the definitions: one signed sum per bit.
fn naive_simhash(features: &[u64], weights: &[u32], bits: u32) -> Vec<u64> {
    let mut words = vec![0u64; bits.div_ceil(64) as usize];
    for bit in 0..bits {
        let mut sum = 0i64;
        for (i, &feature) in features.iter().enumerate() {
            let word = match bit / 64 {
                0 => feature,
                j => mix64(feature.wrapping_add(u64::from(j).wrapping_mul(0x9E37_79B9_7F4A_7C15))),
            };
            let weight = if weights.is_empty() {
                1
            } else {
                i64::from(weights[i])
            };
            sum += if word & (1 << (bit % 64)) != 0 {
                weight
            } else {
                -weight
            };
        }
        if sum > 0 {
            words[(bit / 64) as usize] |= 1 << (bit % 64);
        }
    }
    words
}

fn assert_simhash(features: &[u64], weights: &[u32], bits: u32) {
    let expected = naive_simhash(features, weights, bits);
    for isa in Isa::available() {
        let mut out = vec![u64::MAX; expected.len()];
        simhash(features, weights, bits, isa, &mut out);
        let len = features.len();
        assert_eq!(
            out,
            expected,
            "{} bits, {len} features, {}",
            bits,
            isa.name()
        );
    }
}

#[test]
fn simhash_is_as_defined_at_every_length() {
    let mut random = Random(1);
    for len in (0..=257).chain([509, 510, 511, 512, 1000, 3000]) {
        let features = random.features(len);
        assert_simhash(&features, &[], 64);
        assert_simhash(&features, &random.weights(len, 15), 64);
        assert_simhash(&features, &random.weights(len, 300), 128);
    }
}

#[test]
fn simhash_is_as_defined_at_every_width() {
    let mut random = Random(2);
    for bits in (32..=256).step_by(32) {
        for len in [0, 1, 2, 17, 256, 257, 700] {
            let features = random.features(len);
            assert_simhash(&features, &[], bits);
            assert_simhash(&features, &random.weights(len, 15), bits);
        }
    }
}

#[test]
fn simhash_counts_huge_weights_and_ties_exactly() {
    let mut random = Random(3);
    for len in [1, 7, 8, 9, 100] {
        let features = random.features(len);
        assert_simhash(&features, &vec![u32::MAX; len], 96);
        assert_simhash(&features, &vec![255; len], 64);
        assert_simhash(&features, &vec![31; len], 64);
        assert_simhash(&features, &vec![0; len], 64);
        let mut weights = random.weights(len, 15);
        weights[len / 2] = 1 << 31;
        assert_simhash(&features, &weights, 128);
    }
    // Equal weight for and against: a tie is 0.
    let feature = random.next();
    assert_simhash(&[feature, !feature], &[], 64);
    assert_simhash(&[feature, !feature, feature], &[7, 300, 293], 64);
}

#[test]
fn simhash_counters_do_not_overflow() {
    // 8 million features that all have bit 0, half of them bit 1, half and one more bit 2.
    let len = 8_000_000usize;
    let features: Vec<u64> = (0..len as u64)
        .map(|i| 1 | (i & 1) << 1 | u64::from(i % 2 == 0 || i == 1) << 2)
        .collect();
    for isa in Isa::available()
        .into_iter()
        .filter(|&isa| isa != Isa::Plain)
    {
        let mut out = [0];
        simhash(&features, &[], 64, isa, &mut out);
        assert_eq!(out, [0b101], "{}", isa.name());
    }
    // Weights that fit in bytes, with sums that fit in 16 bits only for a few thousand features.
    for weight in [15, 31, 32, 255] {
        assert_simhash(&[1 | 1 << 40; 5000], &[weight; 5000], 64);
    }
}

/// Bucket filling by the definitions.
fn naive_bucket(features: &[u64], num_slots: u64, seed: u64) -> Vec<u32> {
    let mut slots: Vec<Option<u64>> = vec![None; num_slots as usize];
    if features.is_empty() {
        return vec![u32::MAX; num_slots as usize];
    }
    for round in 0..2 * num_slots {
        if slots.iter().all(|slot| slot.is_some()) {
            break;
        }
        let key = mix64((round + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ seed);
        let mut least: Vec<Option<u64>> = vec![None; num_slots as usize];
        for &feature in features {
            let x = mix64(feature ^ key);
            let slot = if round < num_slots {
                ((x >> 32) * num_slots) >> 32
            } else {
                round - num_slots
            };
            let value = x % (1 << 32);
            let least = &mut least[slot as usize];
            *least = Some(least.map_or(value, |old| old.min(value)));
        }
        for (slot, least) in slots.iter_mut().zip(least) {
            *slot = slot.or(least);
        }
    }
    slots.into_iter().map(|slot| slot.unwrap() as u32).collect()
}

/// Classical permutations by the definitions.
fn naive_classical(features: &[u64], num_slots: u64, seed: u64) -> Vec<u32> {
    (0..num_slots)
        .map(|slot| {
            let key = mix64((slot + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ seed);
            let least = features.iter().map(|&feature| mix64(feature ^ key)).min();
            least.unwrap_or(u64::MAX) as u32
        })
        .collect()
}

fn assert_minhash(features: &[u64], weights: &[u32], num_slots: u32, seed: u64) {
    let expansion: Vec<u64> = if weights.is_empty() {
        features.to_vec()
    } else {
        let pairs = features.iter().zip(weights);
        pairs
            .flat_map(|(&f, &weight)| (1..=weight).map(move |copy| expand(f, copy)))
            .collect()
    };
    for (scheme, expected) in [
        (
            Scheme::Bucket,
            naive_bucket(&expansion, u64::from(num_slots), seed),
        ),
        (
            Scheme::Classical,
            naive_classical(&expansion, u64::from(num_slots), seed),
        ),
    ] {
        for isa in Isa::available() {
            let mut hasher = MinHasher::new(num_slots, scheme, seed, isa);
            let mut out = vec![0; num_slots as usize];
            // The second pass uses dirty scratch space.
            for _ in 0..2 {
                hasher.sketch(features, weights, &mut out);
                let len = features.len();
                assert_eq!(
                    out,
                    expected,
                    "{num_slots} slots, {len} features, {}",
                    isa.name()
                );
            }
        }
    }
}

#[test]
fn minhash_is_as_defined_at_every_length() {
    let mut random = Random(4);
    for len in (0..=257).chain([511, 512, 513, 1000]) {
        assert_minhash(&random.features(len), &[], 64, random.next());
    }
}

#[test]
fn minhash_is_as_defined_at_every_number_of_slots() {
    let mut random = Random(5);
    for num_slots in [1, 2, 7, 64, 100, 128, 255, 256, 257, 512, 513, 1000] {
        for len in [0, 1, 2, 3, 9, 40, 100, 700] {
            assert_minhash(&random.features(len), &[], num_slots, 0);
        }
    }
}

#[test]
fn minhash_of_weights_is_that_of_the_expansion() {
    let mut random = Random(6);
    for len in [0, 1, 5, 64, 300] {
        let features = random.features(len);
        assert_minhash(&features, &random.weights(len, 15), 128, 3);
        assert_minhash(&features, &vec![1; len], 128, 3);
    }
    // Expansions of more than one block; the first block ends within a feature.
    assert_minhash(&random.features(3), &[40_000, 0, 30_001], 64, 3);
    assert_minhash(&random.features(2), &[65_530, 7], 7, 3);
    assert_minhash(&random.features(2), &[0, 0], 7, 3);
}

#[test]
fn minhash_fills_the_greatest_number_of_slots() {
    let mut random = Random(7);
    let features = random.features(3);
    let mut signatures = Isa::available().into_iter().map(|isa| {
        let mut out = vec![0; 65_535];
        MinHasher::new(65_535, Scheme::Bucket, 0, isa).sketch(&features, &[], &mut out);
        out
    });
    let first = signatures.next().unwrap();
    assert!(first.iter().filter(|&&value| value == u32::MAX).count() < 2);
    assert!(signatures.all(|other| other == first));
}

#[test]
fn equal_slots_are_counted_at_every_width_and_length() {
    let mut random = Random(8);
    for slot_bytes in [1, 2, 4] {
        for num_slots in (1..=70).chain([100, 127, 128, 256, 1000]) {
            let row_bytes = num_slots * slot_bytes;
            // Few values, so that slots are often equal, in whole and in part.
            let bytes: Vec<u8> = (0..3 * row_bytes)
                .map(|_| (random.next() % 2) as u8 * 0xff)
                .collect();
            let signatures = Signatures {
                bytes: &bytes,
                num_slots,
                slot_bytes,
            };
            assert_eq!(signatures.len(), 3);
            for (a, b) in [(0, 1), (1, 2), (2, 2)] {
                let mut expected = 0;
                for slot in 0..num_slots {
                    let at = |row: usize| {
                        let start = row * row_bytes + slot * slot_bytes;
                        &bytes[start..start + slot_bytes]
                    };
                    expected += u32::from(at(a) == at(b));
                }
                for isa in Isa::available() {
                    let num_equal = signatures.num_equal(a, b, isa);
                    assert_eq!(
                        num_equal,
                        expected,
                        "{num_slots} x {slot_bytes}, {}",
                        isa.name()
                    );
                }
            }
        }
    }
    let none = Signatures {
        bytes: &[],
        num_slots: 128,
        slot_bytes: 1,
    };
    assert!(none.is_empty());
}

#[test]
fn names_lead_back_to_the_scheme() {
    for scheme in [Scheme::Bucket, Scheme::Classical] {
        assert_eq!(Scheme::from_name(scheme.name()), Some(scheme));
    }
    assert_eq!(Scheme::from_name("other"), None);
}
