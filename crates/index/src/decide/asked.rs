//! What does one document look for?

use likewise_core::features::Shape;
use likewise_core::features::siblings::Names;
use likewise_disk::store::Evidence;

use crate::documents::Documents;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Near {
    pub row: u32,
    pub distance: u16,
}

#[derive(Clone, Copy)]
pub struct Asked<'d> {
    pub sketch: &'d [u8],
    pub shape: u8,
    pub num_features: u32,
    /// Digest of the feature set; 0 if unknown.
    pub digest: u128,
    /// Features and weights, if known.
    pub set: Option<(&'d [u64], &'d [u32])>,
    /// What names it, if the rules compare names.
    pub names: Option<&'d Names>,
    /// Rows within the radius, ascending.
    pub near: &'d [Near],
    /// Its place in what was asked of segments ahead.
    pub place: Option<u32>,
}

impl<'d> Asked<'d> {
    /// Document `i` of a batch.
    pub fn of(documents: &'d Documents, i: usize, near: &'d [Near]) -> Self {
        Asked {
            sketch: documents.sketch(i),
            shape: documents.shapes[i],
            num_features: documents.num_features[i],
            digest: documents.feature_digests.get(i).copied().unwrap_or(0),
            set: documents.set(i),
            names: documents.names(i),
            near,
            place: None,
        }
    }

    /// The distance of a row that is near.
    pub fn distance_of(&self, row: u32) -> Option<u16> {
        let place = self.near.binary_search_by_key(&row, |near| near.row).ok()?;
        Some(self.near[place].distance)
    }

    pub fn is_blank(&self) -> bool {
        self.shape & 3 == Shape::Empty as u8
    }
}

/// A document that cannot be distinguished from the one that represents its class.
#[derive(Debug, Clone, Copy)]
pub struct Collapse {
    pub evidence: Evidence,
    /// The row that represents the class. If the document is promoted, it becomes a member of the same buckets.
    pub into: u32,
}
