//! Eight token hashes at a time, by code that the compiler vectorizes.

use super::keys::{Keys, word};

const TOKENS: usize = 8;
/// Number of groups between two visits to their long tokens.
const GROUPS_AT_ONCE: usize = 32;

/// Same as `TokenHasher::hash`, for whole groups of eight; returns the remaining starts and ends. Every token is hashed
/// as if it had at most eight bytes. Places of longer ones are listed without a branch, and hashed again later.
#[target_feature(enable = "avx2,bmi1,bmi2,popcnt")]
pub(super) fn hash<'a>(
    keys: &Keys,
    text: &[u8],
    starts: &'a [u32],
    ends: &'a [u32],
    hashes: &mut Vec<u64>,
) -> (&'a [u32], &'a [u32]) {
    let num_tokens = starts.len().min(ends.len());
    let (starts, rest_starts) = starts[..num_tokens].as_chunks::<TOKENS>();
    let (ends, rest_ends) = ends[..num_tokens].as_chunks::<TOKENS>();
    let done = hashes.len();
    hashes.resize(done + TOKENS * starts.len(), 0);
    let out = hashes[done..].as_chunks_mut::<TOKENS>().0;
    let mut over_8 = [0; TOKENS * GROUPS_AT_ONCE];
    let groups = starts
        .chunks(GROUPS_AT_ONCE)
        .zip(ends.chunks(GROUPS_AT_ONCE));
    for ((starts, ends), out) in groups.zip(out.chunks_mut(GROUPS_AT_ONCE)) {
        let mut num_over_8 = 0;
        for (group, (starts, ends)) in starts.iter().zip(ends).enumerate() {
            let lens: [u64; TOKENS] = std::array::from_fn(|i| u64::from(ends[i] - starts[i]));
            out[group] = up_to_8(keys, text, starts, &lens);
            for (i, &len) in lens.iter().enumerate() {
                // At most one place per token so far, so the index is in range.
                over_8[num_over_8 % over_8.len()] = TOKENS * group + i;
                num_over_8 += usize::from(len > 8);
            }
        }
        let (starts, ends) = (starts.as_flattened(), ends.as_flattened());
        for &i in &over_8[..num_over_8] {
            out.as_flattened_mut()[i] = keys.over_8(text, starts[i] as usize, ends[i] as usize);
        }
    }
    (rest_starts, rest_ends)
}

/// Returns the hashes of those of eight tokens that have at most eight bytes. The other results are arbitrary.
#[inline(always)]
fn up_to_8(
    keys: &Keys,
    text: &[u8],
    starts: &[u32; TOKENS],
    lens: &[u64; TOKENS],
) -> [u64; TOKENS] {
    let words: [u64; TOKENS] = std::array::from_fn(|i| word(text, starts[i] as usize));
    std::array::from_fn(|i| {
        let is_small = 0u64.wrapping_sub(u64::from(lens[i] < 4));
        let (small, middle) = (
            keys.up_to_3(words[i], lens[i]),
            keys.of_4_to_8(words[i], lens[i]),
        );
        small & is_small | middle & !is_small
    })
}
