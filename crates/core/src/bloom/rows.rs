//! How are filters laid out in memory, so that eight are compared at once?

/// Number of filters that one step compares.
pub(super) const LANES: usize = 8;

/// Filters in order of their numbers of set bits; word `w` of eight filters is stored together.
#[derive(Debug)]
pub(super) struct Rows {
    num_words: usize,
    words: Vec<u64>,
    /// Number of set bits of each filter, ascending, and its position.
    pub(super) counts: Vec<u32>,
    pub(super) positions: Vec<u32>,
}

impl Rows {
    /// Arranges the filters of some positions; `filter(position)` returns each, `num_set(position)` its number of bits.
    pub(super) fn new<'a>(
        positions: std::ops::Range<u32>,
        num_words: usize,
        filter: impl Fn(u32) -> &'a [u64],
        num_set: impl Fn(u32) -> u32,
    ) -> Self {
        let mut order: Vec<(u32, u32)> = positions
            .map(|position| (num_set(position), position))
            .collect();
        order.sort_unstable();
        let mut words = vec![0; order.len().next_multiple_of(LANES) * num_words];
        for (i, &(_, position)) in order.iter().enumerate() {
            let start = i / LANES * LANES * num_words + i % LANES;
            for (w, &word) in filter(position).iter().enumerate() {
                words[start + w * LANES] = word;
            }
        }
        Rows {
            num_words,
            words,
            counts: order.iter().map(|&(count, _)| count).collect(),
            positions: order.iter().map(|&(_, position)| position).collect(),
        }
    }

    pub(super) fn len(&self) -> usize {
        self.counts.len()
    }

    /// Returns the words of the eight filters from place `8 * group` on.
    #[inline]
    pub(super) fn group(&self, group: usize) -> &[u64] {
        let size = LANES * self.num_words;
        &self.words[group * size..(group + 1) * size]
    }

    pub(super) fn copy(&self, place: usize, out: &mut Vec<u64>) {
        let group = self.group(place / LANES);
        out.extend(group.iter().skip(place % LANES).step_by(LANES));
    }
}
