//! Which positions were seen, each once and in ascending order?

/// A set of positions that is drained in ascending order: one bit per position, and one bit per 64 of these.
pub(super) struct PositionSet {
    words: Vec<u64>,
    /// Bit `i` of entry `j` is set if word `64*j + i` is not zero.
    summary: Vec<u64>,
}

impl PositionSet {
    /// Creates an empty set for positions below `len`, with `len / 8` bytes.
    pub(super) fn new(len: usize) -> Self {
        let num_words = len.div_ceil(64);
        PositionSet {
            words: vec![0; num_words],
            summary: vec![0; num_words.div_ceil(64)],
        }
    }

    /// The fixed cost of [`PositionSet::drain_into`], in words read.
    pub(super) fn summary_len(&self) -> usize {
        self.summary.len()
    }

    #[inline(always)]
    pub(super) fn insert(&mut self, position: u32) {
        self.insert_word(position / 64, 1 << (position % 64));
    }

    /// Inserts position `64 * word + i` for every bit `i` set in `bits`, which is not 0.
    #[inline(always)]
    pub(super) fn insert_word(&mut self, word: u32, bits: u64) {
        let word = word as usize;
        self.words[word] |= bits;
        self.summary[word / 64] |= 1 << (word % 64);
    }

    /// Appends the members in ascending order and clears the set.
    pub(super) fn drain_into(&mut self, out: &mut Vec<u32>) {
        for (i, summary) in self.summary.iter_mut().enumerate() {
            let mut live = std::mem::take(summary);
            while live != 0 {
                let word = i * 64 + live.trailing_zeros() as usize;
                live &= live - 1;
                push_bits(word as u32, std::mem::take(&mut self.words[word]), out);
            }
        }
    }
}

/// Appends position `64 * word + i` for every bit `i` set in `bits`.
#[inline(always)]
pub(super) fn push_bits(word: u32, mut bits: u64, out: &mut Vec<u32>) {
    while bits != 0 {
        out.push(word * 64 + bits.trailing_zeros());
        bits &= bits - 1;
    }
}
