//! The kernels of all instruction sets must agree with the plain one.

use super::*;
use crate::testing::Random;

/// All results of a kernel for a block.
#[derive(Debug, PartialEq)]
struct Description {
    non_ascii: u64,
    non_ascii_lower: u64,
    lowered: Vec<u8>,
    white_space: (u64, u64),
    masks: kernel::Masks,
    ideographs: usize,
    positions: Vec<u32>,
}

fn describe<K: kernel::Kernel>(block: &[u8]) -> Description {
    assert!(block.len() >= BLOCK);
    let mut lowered = vec![0; BLOCK];
    let mut positions = vec![0; BLOCK];
    // SAFETY: 64 bytes each; the caller checks the processor.
    unsafe {
        let masks = K::classify(block.as_ptr());
        let num_positions = K::positions(masks.letters, 7, positions.as_mut_ptr());
        positions.truncate(num_positions);
        Description {
            non_ascii: K::non_ascii(block.as_ptr()),
            non_ascii_lower: K::lower(block.as_ptr(), lowered.as_mut_ptr()),
            lowered,
            white_space: K::white_space(block.as_ptr()),
            masks,
            ideographs: K::ideographs(block.as_ptr()),
            positions,
        }
    }
}

#[test]
fn kernels_agree_on_every_block() {
    let mut random = Random::new(7);
    let mut blocks: Vec<Vec<u8>> = (0..=255u8)
        .map(|byte| (0..64).map(|i| byte.wrapping_add(i)).collect())
        .collect();
    blocks.push(vec![b'a'; 64]);
    for _ in 0..2_000 {
        let mut block: Vec<u8> = random.text(64).into_bytes();
        let run = "漢".repeat(random.below(24));
        block.splice(0..0, run.into_bytes());
        block.resize(64.max(block.len()), b'.');
        blocks.push(block);
    }
    for block in &blocks {
        let expected = describe::<kernel::Plain>(block);
        #[cfg(target_arch = "x86_64")]
        if Isa::avx2().is_some() {
            assert_eq!(describe::<avx2::Avx2>(block), expected, "{block:?}");
        }
        #[cfg(target_arch = "x86_64")]
        if Isa::avx512().is_some() {
            assert_eq!(describe::<avx512::Avx512>(block), expected, "{block:?}");
        }
        #[cfg(target_arch = "aarch64")]
        if Isa::neon().is_some() {
            assert_eq!(describe::<neon::Neon>(block), expected, "{block:?}");
        }
    }
}

/// Returns the bytes kept by [`kernel::Kernel::keep`].
fn kept_by<K: kernel::Kernel>(block: &[u8; BLOCK], blanked: u64, kept: u64) -> Vec<u8> {
    let mut bytes = block.to_vec();
    // SAFETY: 64 bytes; the caller checks the processor.
    let num_kept = unsafe { K::keep(bytes.as_mut_ptr(), blanked, kept) };
    bytes.truncate(num_kept);
    bytes
}

#[test]
fn kernels_keep_the_bytes_that_are_named() {
    let mut random = Random::new(9);
    for round in 0..4_000 {
        let block: [u8; BLOCK] = std::array::from_fn(|i| i as u8);
        let mut mask = || match random.below(4) {
            0 => u64::MAX,
            1 => random.next() | random.next() | random.next(),
            2 => random.next(),
            _ => u64::MAX >> random.below(64),
        };
        let (blanked, kept) = (mask() & mask(), if round == 0 { 0 } else { mask() });
        let bytes = (0..64).filter(|i| kept >> i & 1 != 0);
        let expected: Vec<u8> = bytes
            .map(|i| if blanked >> i & 1 != 0 { b' ' } else { i })
            .collect();
        assert_eq!(
            kept_by::<kernel::Plain>(&block, blanked, kept),
            expected,
            "{kept:x}"
        );
        #[cfg(target_arch = "x86_64")]
        if Isa::avx512().is_some() {
            assert_eq!(
                kept_by::<avx512::Avx512>(&block, blanked, kept),
                expected,
                "{kept:x}"
            );
        }
    }
}
