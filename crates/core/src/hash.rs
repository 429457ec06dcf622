//! How do bytes and integers become well-mixed 64-bit hashes?

pub use xxhash_rust::xxh3::xxh3_64_with_seed;

/// 2^64 divided by the golden ratio, made odd: the step between derived keys.
pub const GOLDEN: u64 = 0x9E37_79B9_7F4A_7C15;

/// Multiplier of the shingle polynomial: 7 modulo 8, so that exchanged tokens are distinguished.
pub const SHINGLE_MULTIPLIER: u64 = 0xC2B2_AE3D_27D4_EB4F;

/// Step between the copies (f, 2), (f, 3), ... of a weighted feature.
pub const EXPANSION_STEP: u64 = 0xD6E8_FEB8_6659_FD93;

/// The multipliers of [`mix64`].
pub(crate) const MIX_MULTIPLIERS: [u64; 2] = [0xff51_afd7_ed55_8ccd, 0xc4ce_b9fe_1a85_ec53];

/// Mixes all 64 bits with the finalizer of MurmurHash3, a bijection.
#[inline(always)]
pub const fn mix64(mut x: u64) -> u64 {
    x ^= x >> 33;
    x = x.wrapping_mul(MIX_MULTIPLIERS[0]);
    x ^= x >> 33;
    x = x.wrapping_mul(MIX_MULTIPLIERS[1]);
    x ^ (x >> 33)
}

/// Returns the `copy`-th member (from 1) of the expansion of feature `f`. The first copy is `f` itself.
#[inline(always)]
pub const fn expand(f: u64, copy: u32) -> u64 {
    if copy <= 1 {
        f
    } else {
        mix64(f.wrapping_add((copy as u64 - 1).wrapping_mul(EXPANSION_STEP)))
    }
}
