//! By which rules is a document decided?

use likewise_core::bands::min_equal_slots;
use likewise_core::sketch::Scheme;
pub use likewise_core::verify::SHORT_FEATURES;
use likewise_core::verify::{Measure, Required};
use likewise_disk::store::Keeps;

/// What is sketched, and how candidates are found.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Method {
    /// Fingerprints, within a radius.
    Simhash { bits: u32, within: u32 },
    /// Signatures, by bands.
    Minhash {
        num_slots: u32,
        /// Bytes of a slot: 1, 2 or 4.
        slot_bytes: u32,
        scheme: Scheme,
        bands: u32,
        rows: u32,
    },
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Matching {
    /// By the distance of the fingerprints alone, and by the features of short documents, each counted once.
    Distance {
        /// Least Jaccard similarity where either has fewer than [`SHORT_FEATURES`].
        short_threshold: f64,
    },
    Verified {
        measure: Measure,
        /// Least similarity, by the size of the smaller document.
        required: Required,
    },
}

/// Everything that decides a verdict, but for what makes features of a text.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Rules {
    pub method: Method,
    pub matching: Matching,
    pub seed: u64,
    pub keeps: Keeps,
}

impl Rules {
    /// Bytes of a sketch: of a fingerprint whole 64-bit words.
    pub fn sketch_bytes(&self) -> usize {
        match self.method {
            Method::Simhash { bits, .. } => 8 * bits.div_ceil(64) as usize,
            Method::Minhash {
                num_slots,
                slot_bytes,
                ..
            } => (num_slots * slot_bytes) as usize,
        }
    }

    /// Bands of a signature; none of a fingerprint.
    pub fn num_bands(&self) -> u32 {
        match self.method {
            Method::Minhash { bands, .. } => bands,
            Method::Simhash { .. } => 0,
        }
    }

    pub fn is_distance_only(&self) -> bool {
        matches!(self.matching, Matching::Distance { .. })
    }

    /// Whether a document has so few features that they also decide, identify its class and are stored.
    pub fn is_short(&self, num_features: u32) -> bool {
        match self.matching {
            Matching::Distance { short_threshold } => {
                f64::from(num_features) * short_threshold < f64::from(SHORT_FEATURES)
            }
            Matching::Verified { .. } => false,
        }
    }

    /// Whether the feature set of a document decides, or identifies its class.
    pub fn needs_set(&self, num_features: u32) -> bool {
        !self.is_distance_only() || self.is_short(num_features)
    }

    /// Whether the feature set of a document is stored.
    pub fn keeps_set(&self, num_features: u32) -> bool {
        self.needs_set(num_features) || self.keeps == Keeps::Shingles
    }

    /// Slots that a pair must share to be measured.
    pub fn min_equal(&self) -> u32 {
        match (self.method, self.matching) {
            (
                Method::Minhash { num_slots, .. },
                Matching::Verified {
                    measure: Measure::Jaccard,
                    required,
                },
            ) => min_equal_slots(num_slots, required.threshold),
            _ => 0,
        }
    }

    /// The similarity of documents at a distance, in Hamming-only recipes.
    pub fn similarity_of(&self, distance: Option<u16>) -> Option<f64> {
        match (self.method, self.matching) {
            (Method::Simhash { bits, .. }, Matching::Distance { .. }) => {
                Some(1.0 - f64::from(distance?) / f64::from(bits))
            }
            _ => None,
        }
    }

    /// The distance that goes with equal documents.
    pub fn zero_distance(&self) -> Option<u16> {
        match self.method {
            Method::Simhash { .. } => Some(0),
            Method::Minhash { .. } => None,
        }
    }
}
