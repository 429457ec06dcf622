//! How do codes lie in memory while they are joined?

use crate::kernels::LANES;

/// Codes by word, each with the number it goes by; room is kept from one use to the next.
#[derive(Debug, Default)]
pub(super) struct Codes {
    data: Vec<u64>,
    /// Words from one plane to the next: at least the length and [`LANES`], so that a full vector may be read at any index.
    stride: usize,
    len: usize,
    ids: Vec<u32>,
}

impl Codes {
    /// Makes room for `len` codes of `num_words` words. What stands there is unspecified.
    pub(super) fn reset(&mut self, len: usize, num_words: usize) {
        self.len = len;
        self.stride = len + LANES;
        let needed = self.stride * num_words;
        if self.data.len() < needed {
            // Not `resize`: what was there need not be moved, and fresh zeros cost nothing.
            self.data = vec![0; needed];
        }
        if self.ids.len() < len {
            self.ids = vec![0; len];
        }
    }

    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// Forgets the codes from `len` on.
    pub(super) fn truncate(&mut self, len: usize) {
        self.len = self.len.min(len);
    }

    /// All codes, the first of which goes by `first` and the others by the numbers behind it.
    pub(super) fn counted_from(&self, first: u32) -> View<'_> {
        View {
            data: &self.data,
            stride: self.stride,
            len: self.len,
            ids: Ids::From(first),
        }
    }

    /// All planes, and the words from one to the next.
    pub(super) fn planes_mut(&mut self) -> (&mut [u64], usize, &mut [u32]) {
        (&mut self.data, self.stride, &mut self.ids)
    }

    /// The codes from `start` to `end`.
    pub(super) fn view(&self, start: usize, end: usize) -> View<'_> {
        View {
            data: &self.data[start..],
            stride: self.stride,
            len: end - start,
            ids: Ids::Each(&self.ids[start..end]),
        }
    }
}

/// What the codes of a view go by.
#[derive(Debug, Clone, Copy)]
pub(super) enum Ids<'a> {
    /// The first one's number; the others count on.
    From(u32),
    /// Each one's.
    Each(&'a [u32]),
}

/// Some codes. Word `w` of code `i` is `data[w * stride + i]`, and the [`LANES`] words behind each plane may be read.
#[derive(Debug, Clone, Copy)]
pub(super) struct View<'a> {
    pub(super) data: &'a [u64],
    pub(super) stride: usize,
    pub(super) len: usize,
    pub(super) ids: Ids<'a>,
}

impl<'a> View<'a> {
    /// Code `index`, of `W` words.
    #[inline(always)]
    pub(super) fn get<const W: usize>(&self, index: usize) -> [u64; W] {
        std::array::from_fn(|word| self.data[word * self.stride + index])
    }

    #[inline(always)]
    pub(super) fn id(&self, index: usize) -> u32 {
        match self.ids {
            Ids::From(first) => first + index as u32,
            Ids::Each(ids) => ids[index],
        }
    }

    /// The part from `start` to `end`.
    pub(super) fn part(&self, start: usize, end: usize) -> View<'a> {
        View {
            data: &self.data[start..],
            stride: self.stride,
            len: end - start,
            ids: match self.ids {
                Ids::From(first) => Ids::From(first + start as u32),
                Ids::Each(ids) => Ids::Each(&ids[start..end]),
            },
        }
    }
}
