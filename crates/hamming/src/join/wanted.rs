//! Which pairs does a join search, and which does it keep?

use crate::plan::Key;
use likewise_core::isa::Isa;

/// Sizes at which the search method changes; pairs do not depend on them, and tests set them low.
#[derive(Debug, Clone, Copy)]
pub(super) struct Limits {
    /// Maximum number of codes for which one thread is enough.
    pub(super) few_codes: usize,
    /// Number of codes of a bucket above which all threads share it.
    pub(super) many_codes: usize,
    /// Pairs of two buckets that are compared at once; above, they are split. Inside one bucket, half as many.
    pub(super) large_pairs: usize,
    /// Average number of rows equal to a row from which collapsing them pays.
    pub(super) many_equal: f64,
    /// Factor by which the estimated cost of comparing every pair is multiplied.
    pub(super) scan_factor: f64,
}

impl Default for Limits {
    fn default() -> Self {
        Limits {
            few_codes: 1 << 13,
            many_codes: 1 << 17,
            large_pairs: 1 << 22,
            many_equal: 2.0,
            scan_factor: 1.0,
        }
    }
}

/// Parameters shared by all parts of a join.
#[derive(Clone, Copy)]
pub(super) struct Search {
    pub(super) isa: Isa,
    pub(super) num_words: usize,
    pub(super) within: u32,
    pub(super) limits: Limits,
}

impl Search {
    pub(super) fn wanted<'a>(&self, owners: &'a [Key]) -> Wanted<'a> {
        Wanted {
            isa: self.isa,
            num_words: self.num_words,
            within: self.within,
            owners,
            part_within: None,
            large_pairs: self.limits.large_pairs,
        }
    }
}

/// The conditions for keeping a pair.
#[derive(Clone, Copy)]
pub(super) struct Wanted<'a> {
    pub(super) isa: Isa,
    pub(super) num_words: usize,
    pub(super) within: u32,
    /// Keys that were searched before: they own the pairs that they find.
    pub(super) owners: &'a [Key],
    /// Number of differing bits allowed in the parts of 32 bits that the tables store; `None` if they store none.
    pub(super) part_within: Option<u32>,
    /// Number of pairs of two buckets above which the buckets are reported to the caller instead.
    pub(super) large_pairs: usize,
}

/// Two codes near each other, by their numbers.
#[derive(Debug, Clone, Copy)]
pub(super) struct Hit {
    pub(super) a: u32,
    pub(super) b: u32,
    pub(super) distance: u16,
}
