//! What does a search of the tables find?

/// Entries found.
#[derive(Default)]
pub(crate) struct Hits {
    /// In the first table.
    pub(crate) first: Vec<FirstHit>,
    /// In the others.
    pub(crate) other: Vec<OtherHit>,
    /// Codes of those, `W` words each.
    pub(crate) codes: Vec<u64>,
    /// Entries compared.
    pub(crate) num_candidates: u64,
    /// Of them, with each query.
    pub(crate) candidates: Vec<u32>,
    /// Whether there are too many to be kept at once.
    pub(crate) is_crowded: bool,
    /// Whether a directory named entries that are not there.
    pub(crate) is_damaged: bool,
}

impl Hits {
    /// Entries found.
    pub(crate) fn len(&self) -> usize {
        self.first.len() + self.other.len()
    }

    /// Forgets all, for the next piece of work.
    pub(crate) fn clear(&mut self) {
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
pub(crate) struct FirstHit {
    pub(crate) query: u32,
    pub(crate) distance: u32,
    pub(crate) rank: u32,
    pub(crate) prefix: u64,
}

/// An entry of another table.
#[derive(Clone, Copy)]
pub(crate) struct OtherHit {
    pub(crate) query: u32,
    pub(crate) distance: u32,
}
