//! How are codes with the same value of a key grouped?

use likewise_core::isa::Isa;

use crate::kernels::{Kernel, LANES, PART_LANES, run_kernel};
use crate::plan::Key;

/// Codes by the value of some bits of a key.
#[derive(Debug, Default)]
pub(super) struct Table {
    pub(super) codes: Codes,
    /// Bucket of value `v` is `offsets[v]..offsets[v + 1]`; there is one additional entry.
    offsets: Vec<u32>,
    pub(super) num_buckets: usize,
    /// 32 bits of each code, if requested, and padding.
    pub(super) parts: Vec<u32>,
}

/// The bits of a key that determine the value: `width` of them from bit `shift` of the gathered key on.
#[derive(Debug, Clone, Copy)]
pub(super) struct Digit {
    pub(super) mask: [u64; 4],
    pub(super) shift: u32,
    pub(super) width: u32,
}

impl Digit {
    /// All bits of a key.
    pub(super) fn whole(key: &Key) -> Self {
        Digit {
            mask: key.mask,
            shift: 0,
            width: key.width(),
        }
    }

    /// Returns the key's upper `upper` bits, and those below.
    pub(super) fn split(key: &Key, upper: u32) -> (Self, Self) {
        let lower = key.width() - upper;
        let digit = |shift, width| Digit {
            mask: key.mask,
            shift,
            width,
        };
        (digit(lower, upper), digit(0, lower))
    }

    /// Returns the bits themselves as a key.
    pub(super) fn key(&self, radius: u32) -> Key {
        let positions = (0..256).filter(|&bit| self.mask[bit as usize / 64] >> (bit % 64) & 1 == 1);
        Key::of_bits(
            positions
                .skip(self.shift as usize)
                .take(self.width as usize),
            radius,
        )
    }

    /// Safety: the processor must have the kernel's instruction set.
    #[inline(always)]
    pub(super) unsafe fn value<K: Kernel, const W: usize>(&self, code: &[u64; W]) -> usize {
        // SAFETY: guaranteed by the caller, whose processor has the instruction set.
        let mut value = unsafe { K::gather(code[0], self.mask[0]) };
        let mut num_bits = self.mask[0].count_ones();
        for (word, mask) in code.iter().zip(&self.mask).skip(1) {
            // SAFETY: as above. Keys have at most 32 bits, so nothing is shifted out.
            value |= unsafe { K::gather(*word, *mask) } << (num_bits % 64);
            num_bits += mask.count_ones();
        }
        (value >> self.shift) as usize & ((1 << self.width) - 1)
    }
}

impl Table {
    /// Creates a table of codes sorted by value: bucket `v` is `offsets[v]..offsets[v + 1]`, and an entry follows.
    pub(super) fn of(codes: Codes, offsets: Vec<u32>) -> Self {
        Table {
            num_buckets: offsets.len() - 2,
            codes,
            offsets,
            parts: Vec::new(),
        }
    }

    /// Fills the table with `views`, in order within each bucket, and with the bits under `part_mask`, if given.
    pub(super) fn fill(
        &mut self,
        isa: Isa,
        num_words: usize,
        views: &[View<'_>],
        digit: Digit,
        part_mask: Option<[u64; 4]>,
    ) {
        let len = views.iter().map(|view| view.len).sum();
        self.codes.reset(len, num_words);
        self.num_buckets = 1 << digit.width;
        self.offsets.clear();
        self.offsets.resize(self.num_buckets + 2, 0);
        if part_mask.is_some() && self.parts.len() < len + PART_LANES {
            self.parts = vec![0; len + PART_LANES];
        }
        let part = part_mask.map(|mask| Digit {
            mask,
            shift: 0,
            width: 32,
        });
        let (table, digit) = (self, &digit);
        match part {
            None => {
                run_kernel!(isa, num_words, fill_table, (table: &mut Table, views: &[View<'_>], digit: &Digit));
            }
            Some(part) => {
                let part = &part;
                run_kernel!(isa, num_words, fill_table_with_parts,
                    (table: &mut Table, views: &[View<'_>], digit: &Digit, part: &Digit));
            }
        }
    }

    /// Returns the start and end of the bucket of `value`.
    #[inline(always)]
    pub(super) fn bounds(&self, value: usize) -> (usize, usize) {
        (
            self.offsets[value] as usize,
            self.offsets[value + 1] as usize,
        )
    }

    pub(super) fn bucket(&self, value: usize) -> View<'_> {
        let (start, end) = self.bounds(value);
        self.codes.view(start, end)
    }

    pub(super) fn all(&self) -> View<'_> {
        self.codes.view(0, self.codes.len)
    }
}

/// Safety: the processor must have the kernel's instruction set, and the codes must have `W` words.
#[inline(always)]
unsafe fn fill_table<K: Kernel, const W: usize>(
    table: &mut Table,
    views: &[View<'_>],
    digit: &Digit,
) {
    // SAFETY: guaranteed by the caller.
    unsafe { fill_any::<K, W, false>(table, views, digit, digit) };
}

/// Safety: same as [`fill_table`].
#[inline(always)]
unsafe fn fill_table_with_parts<K: Kernel, const W: usize>(
    table: &mut Table,
    views: &[View<'_>],
    digit: &Digit,
    part: &Digit,
) {
    // SAFETY: guaranteed by the caller.
    unsafe { fill_any::<K, W, true>(table, views, digit, part) };
}

/// Safety: same as [`fill_table`].
#[inline(always)]
unsafe fn fill_any<K: Kernel, const W: usize, const WITH_PARTS: bool>(
    table: &mut Table,
    views: &[View<'_>],
    digit: &Digit,
    part: &Digit,
) {
    // Counted two places ahead, so that place `v + 1` is the start of bucket `v` after the sums, and its end after the
    // scatter.
    let offsets = &mut table.offsets[..];
    for view in views {
        for index in 0..view.len {
            // SAFETY: guaranteed by the caller.
            let value = unsafe { digit.value::<K, W>(&view.get::<W>(index)) };
            offsets[value + 2] += 1;
        }
    }
    let mut total = 0;
    for offset in offsets.iter_mut() {
        total += *offset;
        *offset = total;
    }
    let (data, stride, ids) = table.codes.planes_mut();
    let parts = &mut table.parts[..];
    for view in views {
        for index in 0..view.len {
            let code = view.get::<W>(index);
            // SAFETY: guaranteed by the caller.
            let value = unsafe { digit.value::<K, W>(&code) };
            let slot = offsets[value + 1] as usize;
            offsets[value + 1] += 1;
            for (w, &word) in code.iter().enumerate() {
                data[w * stride + slot] = word;
            }
            if WITH_PARTS {
                // SAFETY: guaranteed by the caller.
                parts[slot] = unsafe { part.value::<K, W>(&code) } as u32;
            }
            ids[slot] = match view.ids {
                Ids::From(first) => first + index as u32,
                Ids::Each(ids) => ids[index],
            };
        }
    }
}

/// Codes by word, each with an identifying number; memory is reused.
#[derive(Debug, Default)]
pub(super) struct Codes {
    data: Vec<u64>,
    /// Distance between planes in words, at least [`LANES`], so that a full vector can be read at any index.
    stride: usize,
    pub(super) len: usize,
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
