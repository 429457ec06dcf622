//! How are fingerprints laid out in memory for the kernels?

use super::BLOCK_BITS;
use super::distance::Fingerprints;
use super::kernels::LANES;

/// Fingerprints by word: all words 0, then all words 1, and so on, so that one vector holds the same word of eight
/// fingerprints.
#[derive(Debug)]
pub(super) struct CodePlanes {
    data: Vec<u64>,
    /// Distance between planes in words: the length and [`LANES`] words of padding, so that a full vector can be read
    /// at any index.
    stride: usize,
    len: usize,
    num_words: usize,
}

impl CodePlanes {
    pub(super) fn new(len: usize, num_words: usize) -> Self {
        let stride = len + LANES;
        CodePlanes {
            data: vec![0; stride * num_words],
            stride,
            len,
            num_words,
        }
    }

    /// Resizes to `len` codes with unspecified words.
    pub(super) fn resize(&mut self, len: usize) {
        self.len = len;
        self.stride = len + LANES;
        self.data.resize(self.stride * self.num_words, 0);
    }

    pub(super) fn len(&self) -> usize {
        self.len
    }

    pub(super) fn num_words(&self) -> usize {
        self.num_words
    }

    pub(super) fn stride(&self) -> usize {
        self.stride
    }

    /// All planes, consecutively.
    pub(super) fn data(&self) -> &[u64] {
        &self.data
    }

    /// Word `word` of every code.
    pub(super) fn plane(&self, word: usize) -> &[u64] {
        &self.data[word * self.stride..][..self.len]
    }

    pub(super) fn plane_mut(&mut self, word: usize) -> &mut [u64] {
        &mut self.data[word * self.stride..][..self.len]
    }

    /// Returns the value of block `block` for every code.
    pub(super) fn block_values(&self, block: u32) -> impl Iterator<Item = usize> {
        let blocks_a_word = u64::BITS / BLOCK_BITS;
        let shift = block % blocks_a_word * BLOCK_BITS;
        self.plane((block / blocks_a_word) as usize)
            .iter()
            .map(move |word| usize::from((word >> shift) as u16))
    }

    /// Returns code `index`, of `W` words.
    #[inline(always)]
    pub(super) fn get<const W: usize>(&self, index: usize) -> [u64; W] {
        std::array::from_fn(|word| self.data[word * self.stride + index])
    }
}

/// Copies the fingerprints in order of position, with bits beyond the width cleared.
pub(crate) fn lay_out(fingerprints: &Fingerprints<'_>, order: &[u32]) -> CodePlanes {
    let num_words = fingerprints.num_words();
    let mut codes = CodePlanes::new(order.len(), num_words);
    for word in 0..num_words {
        let live_bits = (fingerprints.bits - 64 * word as u32).min(64);
        let live = u64::MAX >> (64 - live_bits);
        for (code, &row) in codes.plane_mut(word).iter_mut().zip(order) {
            *code = fingerprints.words[row as usize * num_words + word] & live;
        }
    }
    codes
}
