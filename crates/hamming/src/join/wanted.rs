//! What is looked for, and what is kept of all that is compared?

use crate::plan::Key;
use likewise_core::isa::Isa;

/// Sizes at which the way of searching changes. No pair depends on them; tests set them so that few codes take every way.
#[derive(Debug, Clone, Copy)]
pub(super) struct Limits {
    /// Codes up to which one thread is enough.
    pub(super) few_codes: usize,
    /// Codes of a bucket above which all threads share it.
    pub(super) many_codes: usize,
    /// Pairs of two buckets that are compared at once, at most; above, the buckets are split. Inside one bucket it is half as many.
    pub(super) large_pairs: usize,
    /// Rows equal to a row, on the average, from which collapsing them pays.
    pub(super) many_equal: f64,
    /// What comparing every pair is thought to cost, beside what it does.
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

/// What all parts of a join share.
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

/// What is kept of all that is compared.
#[derive(Clone, Copy)]
pub(super) struct Wanted<'a> {
    pub(super) isa: Isa,
    pub(super) num_words: usize,
    pub(super) within: u32,
    /// Keys that were searched before: what they find is theirs.
    pub(super) owners: &'a [Key],
    /// Differing bits allowed in the parts of 32 bits that the tables keep; `None` where they keep none.
    pub(super) part_within: Option<u32>,
    /// Pairs of two buckets above which the caller is told of them instead.
    pub(super) large_pairs: usize,
}

/// Two codes near each other, by the numbers they go by.
#[derive(Debug, Clone, Copy)]
pub(super) struct Hit {
    pub(super) a: u32,
    pub(super) b: u32,
    pub(super) distance: u16,
}
