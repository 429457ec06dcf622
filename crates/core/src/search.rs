//! What does every search for candidate pairs take, and what does it return?

use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use crate::isa::Isa;
use crate::parallel::Run;

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

    pub(crate) fn run(&self) -> Run<'a> {
        let (threads, cancel) = (self.threads, self.cancel);
        Run { threads, cancel }
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

/// A limit that the pieces of one call share.
pub struct Bound {
    max: usize,
    /// How much one piece may find before it stops at the end of a position.
    pub a_piece: usize,
    found: AtomicUsize,
}

impl Bound {
    /// Allows at most about twice `max` results at once, on any number of threads.
    pub fn new(max: usize, threads: usize) -> Self {
        Bound {
            max,
            a_piece: (max / threads.max(1)).max(1),
            found: AtomicUsize::new(0),
        }
    }

    /// Whether the piece that starts there should not be started. The first piece always is, regardless of timing.
    pub fn is_reached(&self, start: usize) -> bool {
        start > 0 && self.found.load(Ordering::Relaxed) >= self.max
    }

    pub fn add(&self, num: usize) {
        self.found.fetch_add(num, Ordering::Relaxed);
    }
}

/// Returns the pieces up to the first that stopped early: its result, where it stopped, where it should have.
pub fn unbroken<T>(pieces: Vec<Option<(T, u32, u32)>>) -> Vec<(T, u32)> {
    let mut whole = Vec::with_capacity(pieces.len());
    for (found, end, asked) in pieces.into_iter().map_while(|piece| piece) {
        whole.push((found, end));
        if end < asked {
            break;
        }
    }
    whole
}

pub const UNDECIDED: u8 = 0;
pub const KEPT: u8 = 1;
/// Removed: a kept document of higher priority matches it.
pub const REMOVED: u8 = 2;
