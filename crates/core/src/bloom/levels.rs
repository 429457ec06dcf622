//! How many bits must filters share, given approximate numbers of set bits?
//!
//! Evaluating a demand takes logarithms. So it is evaluated once for all filters with similar numbers of set bits, for
//! the smallest of them; the few pairs that pass are checked exactly.

use super::demand::Demand;

/// Maximum number of levels: a table of 256 kB.
const MAX_LEVELS: u32 = 256;

/// Minimum numbers of shared bits, by levels of set bits.
#[derive(Debug)]
pub(super) struct Levels {
    first: u32,
    width: u32,
    num_levels: u32,
    /// Row of level i, column of level j: the need with filters of level j and above.
    needs: Vec<u32>,
    /// For each level, the first and last level with which it may pass; first is above last if there is none.
    partners: Vec<(u32, u32)>,
}

impl Levels {
    /// Creates the levels of the numbers from `first` to `last`.
    pub(super) fn new(demand: Demand, num_bits: u32, first: u32, last: u32) -> Self {
        let width = (last - first + 1).div_ceil(MAX_LEVELS).max(1);
        let num_levels = (last - first) / width + 1;
        let place = |i: u32, j: u32| (i * num_levels + j) as usize;
        let mut needs = vec![0; (num_levels * num_levels) as usize];
        let mut partners = vec![(u32::MAX, 0); num_levels as usize];
        for i in 0..num_levels {
            for j in i..num_levels {
                let (a, b) = (first + i * width, first + j * width);
                let ends = [
                    (a, b),
                    (a + width - 1, b),
                    (a, b + width - 1),
                    (a + width - 1, b + width - 1),
                ];
                let need = ends
                    .into_iter()
                    .take(if width == 1 { 1 } else { 4 })
                    .map(|(a, b)| demand.least_shared(num_bits, a.min(num_bits), b.min(num_bits)))
                    .min()
                    .unwrap_or(0);
                needs[place(i, j)] = need;
                needs[place(j, i)] = need;
                if need < a + width {
                    for (level, partner) in [(i, j), (j, i)] {
                        let (low, high) = &mut partners[level as usize];
                        (*low, *high) = ((*low).min(partner), (*high).max(partner));
                    }
                }
            }
        }
        // Needs increase with the numbers of bits, except for almost full filters.
        for row in needs.chunks_mut(num_levels as usize) {
            for j in (1..row.len()).rev() {
                row[j - 1] = row[j - 1].min(row[j]);
            }
        }
        Levels {
            first,
            width,
            num_levels,
            needs,
            partners,
        }
    }

    fn level(&self, num_set: u32) -> u32 {
        (num_set - self.first) / self.width
    }

    /// Returns the first and last number of bits that filters with `num_set` bits can match, and the needs by level.
    pub(super) fn of(&self, num_set: u32) -> Needs<'_> {
        let level = self.level(num_set);
        let (low, high) = self.partners[level as usize];
        let start = (level * self.num_levels) as usize;
        Needs {
            levels: self,
            needs: &self.needs[start..start + self.num_levels as usize],
            first: self.first + low.min(self.num_levels) * self.width,
            last: match low <= high {
                true => self.first + high * self.width + self.width - 1,
                false => 0,
            },
        }
    }
}

/// What filters of one level must share with others.
#[derive(Debug, Clone, Copy)]
pub(super) struct Needs<'a> {
    levels: &'a Levels,
    needs: &'a [u32],
    /// Filters with fewer bits cannot pass.
    pub(super) first: u32,
    /// Filters with more bits cannot pass.
    pub(super) last: u32,
}

impl Needs<'_> {
    /// Returns the need with filters of at least `num_set` bits.
    #[inline]
    pub(super) fn with(&self, num_set: u32) -> u32 {
        self.needs[self.levels.level(num_set) as usize]
    }
}
