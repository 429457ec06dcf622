//! How are codes laid out in memory during a join?

use crate::kernels::LANES;

/// Codes by word, each with an identifying number; memory is reused.
#[derive(Debug, Default)]
pub(super) struct Codes {
    data: Vec<u64>,
    /// Distance between planes in words, at least [`LANES`], so that a full vector can be read at any index.
    stride: usize,
    len: usize,
    ids: Vec<u32>,
}

impl Codes {
    /// Resizes to `len` codes of `num_words` words with unspecified contents.
    pub(super) fn reset(&mut self, len: usize, num_words: usize) {
        self.len = len;
        self.stride = len + LANES;
        let needed = self.stride * num_words;
        if self.data.len() < needed {
            // Not `resize`: old contents need not be moved, and fresh zeros are free.
            self.data = vec![0; needed];
        }
        if self.ids.len() < len {
            self.ids = vec![0; len];
        }
    }

    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// Drops the codes from `len` on.
    pub(super) fn truncate(&mut self, len: usize) {
        self.len = self.len.min(len);
    }

    /// Returns all codes, numbered consecutively from `first`.
    pub(super) fn counted_from(&self, first: u32) -> View<'_> {
        View {
            data: &self.data,
            stride: self.stride,
            len: self.len,
            ids: Ids::From(first),
        }
    }

    /// Returns all planes, their distance in words, and the numbers.
    pub(super) fn planes_mut(&mut self) -> (&mut [u64], usize, &mut [u32]) {
        (&mut self.data, self.stride, &mut self.ids)
    }

    pub(super) fn view(&self, start: usize, end: usize) -> View<'_> {
        View {
            data: &self.data[start..],
            stride: self.stride,
            len: end - start,
            ids: Ids::Each(&self.ids[start..end]),
        }
    }
}

/// The numbers that identify the codes of a view.
#[derive(Debug, Clone, Copy)]
pub(super) enum Ids<'a> {
    /// The number of the first code; the others are consecutive.
    From(u32),
    /// The number of each code.
    Each(&'a [u32]),
}

/// A view of codes: word `w` of code `i` is `data[w * stride + i]`, and [`LANES`] words follow each plane.
#[derive(Debug, Clone, Copy)]
pub(super) struct View<'a> {
    pub(super) data: &'a [u64],
    pub(super) stride: usize,
    pub(super) len: usize,
    pub(super) ids: Ids<'a>,
}

impl<'a> View<'a> {
    /// Returns code `index`, of `W` words.
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
