//! What is the weight of a feature, given the terms in it?

use super::shingle::{feature_of, windows};
use super::weight_table::WeightTable;

/// Weight of a token that is not a term.
pub const UNLISTED_WEIGHT: u8 = 1;

/// Replaces `weights` by those of the shingles of `width` tokens: the maximum over their tokens (1 if not listed) and
/// the listed terms of `lengths` tokens that they contain as a whole.
pub(super) fn weigh(
    table: &WeightTable,
    lengths: &[u32],
    tokens: &[u64],
    width: usize,
    weights: &mut Vec<u8>,
) {
    weights.clear();
    weights.resize(tokens.len() - width + 1, 0);
    // Every token is looked up, even if no term is a single token.
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

/// Returns the key of a term in a table: the feature of a short text with its tokens.
pub fn term_feature(tokens: &[u64]) -> u64 {
    let mut feature = 0;
    if !tokens.is_empty() {
        windows(tokens, tokens.len(), |_, sum| feature = feature_of(sum));
    }
    feature
}
