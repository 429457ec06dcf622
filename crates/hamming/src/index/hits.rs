//! What does a search of the tables find?

/// Entries found.
#[derive(Default)]
pub(super) struct Hits {
    /// In the first table.
    pub(super) first: Vec<FirstHit>,
    /// In the others.
    pub(super) other: Vec<OtherHit>,
    /// Codes of those, `W` words each.
    pub(super) codes: Vec<u64>,
    /// Entries compared.
    pub(super) num_candidates: u64,
    /// Of them, with each query.
    pub(super) candidates: Vec<u32>,
    /// Whether there are too many to be kept at once.
    pub(super) is_crowded: bool,
    /// Whether a directory named entries that are not there.
    pub(super) is_damaged: bool,
}

impl Hits {
    /// Entries found.
    pub(super) fn len(&self) -> usize {
        self.first.len() + self.other.len()
    }

    /// Forgets all, for the next piece of work.
    pub(super) fn clear(&mut self) {
        self.first.clear();
        self.other.clear();
        self.codes.clear();
        self.num_candidates = 0;
        self.candidates.clear();
        self.is_crowded = false;
        self.is_damaged = false;
    }
}

/// An entry of the first table.
#[derive(Clone, Copy)]
pub(super) struct FirstHit {
    pub(super) query: u32,
    pub(super) distance: u32,
    pub(super) rank: u32,
    pub(super) prefix: u64,
}

/// An entry of another table.
#[derive(Clone, Copy)]
pub(super) struct OtherHit {
    pub(super) query: u32,
    pub(super) distance: u32,
}
