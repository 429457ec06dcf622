//! What does a feature weigh by the terms in it?

use super::shingle::{feature_of, windows};
use super::weight_table::WeightTable;

/// What a token weighs that is no term.
pub const UNLISTED_WEIGHT: u8 = 1;

/// Replaces `weights` by those of the shingles of `width` tokens: the greatest of the weights of their tokens, 1 where a
/// token is not listed, and of the terms of several tokens that stand in them whole.
///
/// The table lists terms of `lengths` tokens by [`term_feature`]. `tokens` holds `width` token hashes or more. Cost: one
/// look-up for each token and length.
pub(super) fn weigh(
    table: &WeightTable,
    lengths: &[u32],
    tokens: &[u64],
    width: usize,
    weights: &mut Vec<u8>,
) {
    weights.clear();
    weights.resize(tokens.len() - width + 1, 0);
    // Every token counts alone, also where no term is a single one.
    let several = lengths
        .iter()
        .map(|&length| length as usize)
        .filter(|&length| length > 1);
    for length in several.chain([1]) {
        if length > width {
            continue;
        }
        windows(tokens, length, |first, sum| {
            let listed = table.listed(feature_of(sum));
            let weight = match length {
                1 => listed.unwrap_or(UNLISTED_WEIGHT),
                _ => listed.unwrap_or(0),
            };
            if weight > 0 {
                let shingles = (first + length).saturating_sub(width)..=first;
                let last = weights.len() - 1;
                for weight_of_shingle in &mut weights[*shingles.start()..=first.min(last)] {
                    *weight_of_shingle = weight.max(*weight_of_shingle);
                }
            }
        });
    }
}

/// The key of a term in a table: what a short text of its tokens has as its feature.
pub fn term_feature(tokens: &[u64]) -> u64 {
    let mut feature = 0;
    if !tokens.is_empty() {
        windows(tokens, tokens.len(), |_, sum| feature = feature_of(sum));
    }
    feature
}
