//! How similar are two documents exactly?
//!
//! [`FeatureSet`] is the sorted feature set of a document. [`FeatureSets`] holds those of the documents of candidate
//! pairs and measures whole lists of pairs. [`aligned_diff`] shows where two texts differ, and [`align_texts`] by how
//! many edits.

mod alignment;
mod bitmap;
mod bounds;
mod documents;
mod feature_set;
mod intersect;
#[cfg(target_arch = "x86_64")]
mod intersect_avx2;
mod pairs;
mod pieces;
mod required;
mod sequences;
mod side;

pub use alignment::Alignment;
pub use alignment::{Hunk, aligned_diff};
pub use bounds::Measure;
pub use documents::{HeldDocuments, MeasuredPairs, distinct_documents};
pub use feature_set::FeatureSet;
pub use pairs::FeatureSets;
pub use required::{NameRules, Required, SHORT_FEATURES};
pub use sequences::{
    MAX_CHARACTER_BYTES, MAX_EXACT_CELLS, MAX_TOKEN_BYTES, TextAlignment, Unit, align_sequences,
    align_texts,
};

#[cfg(test)]
mod tests;
