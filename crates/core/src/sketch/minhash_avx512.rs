//! MinHash kernels for AVX-512.

/// See `minhash_classical::least_hash`.
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512dq,avx2,bmi1,bmi2,popcnt")]
pub(super) fn least_hash(block: &[u64], key: u64) -> u64 {
    super::minhash_classical::least_hash_body(block, key)
}
