//! What are the weights of the distinct features of a text?

use std::sync::Arc;

use super::distinct::Distinct;
use super::rarity::log_count_idf_weight;
use super::shingle::{feature_of, windows};
use super::weight_table::WeightTable;
use super::weights::{MAX_WEIGHT, Weights, log_count_weight};
use crate::isa::Isa;

/// The table read by [`Weights::Idf`], [`Weights::LogCountIdf`] and [`Weights::Lexicon`].
#[derive(Debug, Clone)]
pub struct FeatureWeights {
    /// Weights of features, or of terms by [`term_feature`](super::term_feature).
    pub table: Arc<WeightTable>,
    /// Numbers of tokens of the terms of a lexicon.
    pub term_lengths: Arc<[u32]>,
}

/// Weighs the features of one text after another.
#[derive(Debug, Default)]
pub(super) struct Weigher {
    /// Without a table, every feature weighs 15, like one in no document.
    pub(super) table: Option<FeatureWeights>,
    /// The weights that came with the tokens, for [`Weights::Own`].
    pub(super) of_tokens: Vec<u8>,
    /// For a lexicon or the user's weights: the weight of every occurrence.
    of_occurrences: Vec<u8>,
    weights: Vec<u32>,
}

impl Weigher {
    /// Weighs every shingle of `width` tokens by a lexicon or the user's weights, before tokens become features.
    pub(super) fn weigh_shingles(&mut self, rule: Weights, tokens: &[u64], width: usize) {
        self.of_occurrences.clear();
        if rule == Weights::Own && !tokens.is_empty() {
            let shingles = self.of_tokens.windows(width.max(1));
            self.of_occurrences
                .extend(shingles.map(|weights| weights.iter().copied().max().unwrap_or(0)));
        }
        if rule == Weights::Lexicon
            && !tokens.is_empty()
            && let Some(FeatureWeights {
                table,
                term_lengths,
            }) = &self.table
        {
            weigh(table, term_lengths, tokens, width, &mut self.of_occurrences);
        }
    }

    /// Weighs the distinct features; those of weight 0 are removed.
    pub(super) fn weigh(
        &mut self,
        rule: Weights,
        occurrences: &[u64],
        distinct: &mut Distinct,
        isa: Isa,
    ) {
        self.weights.clear();
        match rule {
            Weights::None | Weights::Count => {}
            Weights::LogCount => {
                let counts = distinct.counts.iter();
                self.weights
                    .extend(counts.map(|&count| log_count_weight(count)));
            }
            Weights::Idf => self.look_up(&distinct.features, isa),
            Weights::LogCountIdf => {
                self.look_up(&distinct.features, isa);
                for (weight, &count) in self.weights.iter_mut().zip(&distinct.counts) {
                    *weight = log_count_idf_weight(count, *weight);
                }
            }
            Weights::Lexicon => self.weigh_by_terms(occurrences, distinct),
            Weights::Own => self.add_up(occurrences, distinct),
        }
    }

    /// Returns the weights; empty if all are 1.
    pub(super) fn weights<'a>(&'a self, rule: Weights, distinct: &'a Distinct) -> &'a [u32] {
        match rule {
            Weights::None => &[],
            Weights::Count => &distinct.counts,
            _ => &self.weights,
        }
    }

    pub(super) fn release(&mut self) {
        self.of_tokens = Vec::new();
        self.of_occurrences = Vec::new();
        self.weights = Vec::new();
    }

    fn look_up(&mut self, features: &[u64], isa: Isa) {
        match &self.table {
            Some(FeatureWeights { table, .. }) => table.weigh(features, isa, &mut self.weights),
            None => self.weights.resize(features.len(), u32::from(MAX_WEIGHT)),
        }
    }

    /// Gives each feature the weight of its first occurrence: equal features have equal tokens, and so equal weights.
    fn weigh_by_terms(&mut self, occurrences: &[u64], distinct: &mut Distinct) {
        // Features are in the order of their first occurrence, so one pass finds them all.
        let mut weighed = occurrences.iter().zip(&self.of_occurrences);
        for feature in &distinct.features {
            let found = weighed.find(|(occurrence, _)| *occurrence == feature);
            let weight = found.map_or(UNLISTED_WEIGHT, |(_, &weight)| weight);
            self.weights.push(u32::from(weight));
        }
        self.leave_out_zeros(distinct);
    }

    /// Adds up the weights of each feature's occurrences.
    fn add_up(&mut self, occurrences: &[u64], distinct: &mut Distinct) {
        self.weights.resize(distinct.features.len(), 0);
        for (&occurrence, &weight) in occurrences.iter().zip(&self.of_occurrences) {
            if let Some(place) = distinct.place(occurrence) {
                self.weights[place] = self.weights[place].saturating_add(u32::from(weight));
            }
        }
        self.leave_out_zeros(distinct);
    }

    /// Removes features of weight 0, unless all have weight 0: then each weighs 1.
    fn leave_out_zeros(&mut self, distinct: &mut Distinct) {
        if self.weights.iter().all(|&weight| weight == 0) {
            self.weights.fill(1);
        } else if self.weights.contains(&0) {
            distinct.retain(|i| self.weights[i] > 0);
            self.weights.retain(|&weight| weight > 0);
        }
    }
}

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
