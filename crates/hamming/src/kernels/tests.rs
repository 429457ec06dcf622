//! The kernels of all instruction sets must agree with the plain one.

use super::*;
use likewise_core::isa::Isa;
use likewise_core::testing::Random;

const STRIDE: usize = 3 * LANES;
const NUM_QUERIES: usize = 3;

/// Returns a kernel's results for codes of `W` words and for parts, from every place on.
fn describe<K: Kernel, const W: usize>(
    codes: &[u64],
    queries: &[[u64; W]; NUM_QUERIES],
    within: u32,
) -> Vec<(u8, bool, u16, bool)> {
    assert!(codes.len() >= W * STRIDE);
    let parts: Vec<u32> = codes.iter().map(|&code| code as u32).collect();
    let wanted = queries.map(|query| query[0] as u32);
    let places = 0..=STRIDE - PART_LANES;
    // SAFETY: from each place on, there are sixteen codes of each word; the caller checks the processor.
    let describe = |at: usize| unsafe {
        let (code, part) = (codes.as_ptr().add(at), parts.as_ptr().add(at));
        (
            K::within8(code, STRIDE, &queries[0], within),
            K::any_within8(code, STRIDE, queries, within),
            K::parts_within16(part, wanted[0], within),
            K::any_part_within16(part, &wanted, within),
        )
    };
    places.map(describe).collect()
}

fn kernels_agree<const W: usize>(random: &mut Random) {
    let queries: [[u64; W]; NUM_QUERIES] = std::array::from_fn(|i| match i {
        0 => std::array::from_fn(|_| [0, u64::MAX, random.next()][random.below(3)]),
        _ => std::array::from_fn(|_| random.next()),
    });
    // Codes that equal the first query, are its complement, are near it, or are random.
    let kinds: Vec<usize> = (0..STRIDE).map(|_| random.below(4)).collect();
    let codes: Vec<u64> = (0..W * STRIDE)
        .map(|i| {
            let flipped = match kinds[i % STRIDE] {
                0 => 0,
                1 => u64::MAX,
                2 => random.next() & random.next() & random.next(),
                _ => random.next(),
            };
            queries[0][i / STRIDE] ^ flipped
        })
        .collect();
    for within in [
        0,
        1,
        3,
        8,
        31,
        32,
        63,
        64,
        127,
        128,
        191,
        255,
        256,
        257,
        u32::MAX,
    ] {
        let expected = describe::<Plain, W>(&codes, &queries, within);
        if Isa::avx2().is_some() {
            let found = describe::<Avx2, W>(&codes, &queries, within.min(i32::MAX as u32));
            assert_eq!(found, expected, "{W} words within {within}");
        }
        if Isa::avx512().is_some() {
            let found = describe::<Avx512, W>(&codes, &queries, within);
            assert_eq!(found, expected, "{W} words within {within}");
        }
    }
}

#[test]
fn kernels_agree_on_every_distance() {
    let mut random = Random::new(11);
    for _ in 0..300 {
        kernels_agree::<1>(&mut random);
        kernels_agree::<2>(&mut random);
        kernels_agree::<3>(&mut random);
        kernels_agree::<4>(&mut random);
    }
}
