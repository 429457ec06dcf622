//! Which entries does a search of the tables find?

#[derive(Default)]
pub(crate) struct Hits {
    /// Entries of the first table.
    pub(crate) first: Vec<FirstHit>,
    pub(crate) other: Vec<OtherHit>,
    /// Codes of the latter, `W` words each.
    pub(crate) codes: Vec<u64>,
    pub(crate) num_candidates: u64,
    /// The same for each query.
    pub(crate) candidates: Vec<u32>,
    /// Whether there are too many hits to keep at once.
    pub(crate) is_crowded: bool,
    /// Whether a directory referred to entries that do not exist.
    pub(crate) is_damaged: bool,
}

impl Hits {
    pub(crate) fn len(&self) -> usize {
        self.first.len() + self.other.len()
    }

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

#[derive(Clone, Copy)]
pub(crate) struct OtherHit {
    pub(crate) query: u32,
    pub(crate) distance: u32,
}
