//! Which similarity must a pair of documents reach, and when are short documents also compared by their features?
//!
//! The short margin is added to the threshold with operations that every processor and language rounds alike. It only
//! raises the threshold: bands find pairs from the plain one on, and the exact join leaves out what cannot match.

/// In a Hamming-only recipe, pairs are also compared by plain features if the smaller document has fewer than this.
pub const SHORT_FEATURES: u32 = 64;

/// The similarity that a pair must reach: `threshold + short_margin / sqrt(n)`, at most 1, with n distinct features in
/// the smaller document. Each step is correctly rounded, so every processor computes the same number.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Required {
    pub threshold: f64,
    /// Addition to the threshold for a document with a single feature, at least 0.
    pub short_margin: f64,
    /// Whether identifiers must not disagree; requests for all similarities (threshold 0) ignore it.
    pub identifiers: bool,
    /// What else a pair needs, if the names of documents are known.
    pub names: NameRules,
}

/// What a pair of similar documents needs besides, by what names them. The default is nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct NameRules {
    /// Documents with different names need a higher similarity.
    pub keep_siblings: bool,
    /// Documents that differ in first tokens or in numbers alone do not match.
    pub keep_unsure: bool,
    /// A document with a passage of so many tokens that the other does not hold does not match; 0: none is too long.
    pub keep_new: u32,
}

impl Required {
    /// Returns the required similarity of a pair whose smaller document has `fewest` distinct features.
    #[inline]
    pub fn of(self, fewest: usize) -> f64 {
        if self.short_margin == 0.0 {
            return self.threshold;
        }
        (self.threshold + self.short_margin / (fewest.max(1) as f64).sqrt()).min(1.0)
    }
}

impl From<f64> for Required {
    /// Requires the same similarity of all pairs.
    fn from(threshold: f64) -> Self {
        Required {
            threshold,
            short_margin: 0.0,
            names: NameRules::default(),
            identifiers: false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_documents_need_more_and_at_most_equality() {
        let required = Required {
            threshold: 0.5,
            short_margin: 0.75,
            names: NameRules::default(),
            identifiers: false,
        };
        assert_eq!(required.of(0), 1.0);
        assert_eq!(required.of(1), 1.0);
        assert_eq!(required.of(4), 0.875);
        assert_eq!(required.of(9), 0.75);
        assert_eq!(required.of(225), 0.55);
        assert_eq!(Required::from(0.5).of(1), 0.5);
        // A threshold of 0 requests the similarities of all pairs, regardless of rounding.
        assert_eq!(Required::from(0.0).of(0), 0.0);
    }
}
