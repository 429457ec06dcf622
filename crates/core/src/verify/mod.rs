//! How similar are two documents exactly?
//!
//! [`FeatureSet`] is the sorted feature set of a document. [`FeatureSets`] holds those of the documents of candidate
//! pairs and measures whole lists of pairs. [`aligned_diff`] shows where two texts differ, and [`align_texts`] by how
//! many edits.

mod aligned;
mod alignment;
mod bitmap;
mod bounds;
mod documents;
mod feature_set;
mod intersect;
#[cfg(target_arch = "x86_64")]
mod intersect_avx2;
#[cfg(target_arch = "x86_64")]
mod intersect_avx512;
#[cfg(target_arch = "aarch64")]
mod intersect_neon;
mod pairs;
mod pieces;
mod required;
mod sequences;
mod side;

pub use aligned::{Hunk, aligned_diff};
pub use alignment::Alignment;
pub use documents::{HeldDocuments, MeasuredPairs, distinct_documents};
pub use feature_set::FeatureSet;
pub use pairs::FeatureSets;
pub use required::{NameRules, Required, SHORT_FEATURES};
pub use sequences::{
    MAX_CHARACTER_BYTES, MAX_EXACT_CELLS, MAX_TOKEN_BYTES, TextAlignment, Unit, align_sequences,
    align_texts,
};

/// An exact similarity of two feature sets A and B, from 0 to 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Measure {
    /// Sum of the lesser weights / sum of the greater weights.
    Jaccard,
    /// Sum of the lesser weights / sum of A's weights: the share of A that B contains.
    Containment,
    /// Cosine of the angle between the weight vectors.
    Cosine,
    /// Twice the sum of the lesser weights / sum of all weights of both.
    Dice,
    /// Sum of the lesser weights / smaller sum of weights.
    Overlap,
}

impl Measure {
    pub const ALL: [Measure; 5] = [
        Measure::Jaccard,
        Measure::Containment,
        Measure::Cosine,
        Measure::Dice,
        Measure::Overlap,
    ];

    pub fn name(self) -> &'static str {
        match self {
            Measure::Jaccard => "jaccard",
            Measure::Containment => "containment",
            Measure::Cosine => "cosine",
            Measure::Dice => "dice",
            Measure::Overlap => "overlap",
        }
    }

    pub fn from_name(name: &str) -> Option<Measure> {
        Measure::ALL
            .into_iter()
            .find(|measure| measure.name() == name)
    }
}

#[cfg(test)]
mod tests;
