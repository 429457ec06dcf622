//! What does every search for candidate pairs take, and what does it return?

use std::ops::Range;
use std::sync::atomic::AtomicBool;

use crate::isa::Isa;

/// One call of a search: the pairs that it wants, and its means.
#[derive(Debug, Clone)]
pub struct Call<'a> {
    /// Later positions.
    pub range: Range<u32>,
    /// Decisions about positions; pairs with `states[earlier] == REMOVED` are omitted.
    pub states: Option<&'a [u8]>,
    /// Number of pairs at which the search stops, after at least one position.
    pub max_pairs: usize,
    /// Minimum number of equal slots of a pair; for signatures only.
    pub min_equal: u32,
    pub isa: Isa,
    /// Number of threads; only [`Pairs::end`] depends on it.
    pub threads: usize,
    pub cancel: &'a AtomicBool,
}

impl<'a> Call<'a> {
    /// A call for all pairs of a range, on one thread.
    pub fn of(range: Range<u32>, cancel: &'a AtomicBool) -> Self {
        Call {
            range,
            states: None,
            max_pairs: usize::MAX,
            min_equal: 0,
            isa: Isa::best(),
            threads: 1,
            cancel,
        }
    }
}

/// Pairs of positions, sorted by (later, earlier), each once.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Pairs {
    /// The document of lower priority of each pair.
    pub later: Vec<u32>,
    /// The document of higher priority of each pair; smaller than its `later`.
    pub earlier: Vec<u32>,
    /// Number of distinct candidate pairs before states and the estimate excluded some.
    pub num_considered: u64,
    /// Later positions from here on were not searched.
    pub end: u32,
}
