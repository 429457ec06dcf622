//! How are the codes of a side arranged for the search?

use std::ops::Range;

use super::JoinOptions;
use super::codes::{Codes, Ids, View};
use super::collapse::{Collapsed, hash_of};
use super::partition::Table;
use super::side::JoinSide;
use likewise_core::error::Result;
use likewise_core::hash::mix64;
use likewise_core::parallel::map_ranges;

/// Number of rows sampled to detect whether many are equal.
const NUM_SAMPLED: usize = 1 << 14;

/// Number of rows that one task copies.
const COPY_LEN: usize = 1 << 16;

/// The codes of one side as they are searched, and their rows.
pub(super) struct Laid<'a> {
    codes: LaidCodes<'a>,
    /// Rows of empty texts, ascending; their fingerprints are not searched.
    pub(super) empty_rows: Vec<u32>,
}

enum LaidCodes<'a> {
    /// As given by the caller.
    Given(View<'a>),
    /// Copied by word, without those of empty texts.
    Copied(Vec<Codes>),
    Collapsed(Collapsed),
}

impl<'a> Laid<'a> {
    /// Arranges one side; also returns tables whose memory may be reused.
    pub(super) fn new(
        side: &JoinSide<'a>,
        many_equal: f64,
        options: &JoinOptions<'_>,
    ) -> Result<(Self, Vec<Table>)> {
        match side.fingerprints.num_words() {
            1 => Self::of_words::<1>(side, many_equal, options),
            2 => Self::of_words::<2>(side, many_equal, options),
            3 => Self::of_words::<3>(side, many_equal, options),
            _ => Self::of_words::<4>(side, many_equal, options),
        }
    }

    fn of_words<const W: usize>(
        side: &JoinSide<'a>,
        many_equal: f64,
        options: &JoinOptions<'_>,
    ) -> Result<(Self, Vec<Table>)> {
        let (threads, cancel) = (options.threads, options.cancel);
        let len = side.fingerprints.len();
        let mut empty_rows: Vec<u32> = (0..side.is_empty.map_or(0, <[u8]>::len))
            .filter(|&index| side.is_empty_at(index))
            .map(|index| side.row(index))
            .collect();
        empty_rows.sort_unstable();
        let (codes, spare) = if has_many_equal::<W>(side, many_equal) {
            let (collapsed, spare) = Collapsed::new::<W>(side, threads, cancel)?;
            (LaidCodes::Collapsed(collapsed), spare)
        } else if side.fingerprints.bits == 64 && empty_rows.is_empty() {
            let view = View {
                data: side.fingerprints.words,
                stride: 0,
                len,
                ids: side.rows.map_or(Ids::From(0), Ids::Each),
            };
            (LaidCodes::Given(view), Vec::new())
        } else {
            let copy = |(), range: Range<usize>| copy::<W>(side, range);
            let copied = map_ranges(len, COPY_LEN, threads, cancel, || (), |(), r| copy((), r))?;
            (LaidCodes::Copied(copied), Vec::new())
        };
        Ok((Laid { codes, empty_rows }, spare))
    }

    /// Returns all codes, in contiguous views.
    pub(super) fn views(&self) -> Vec<View<'_>> {
        match &self.codes {
            LaidCodes::Given(view) => vec![*view],
            LaidCodes::Copied(copied) => copied.iter().map(|c| c.view(0, c.len())).collect(),
            LaidCodes::Collapsed(collapsed) => collapsed.views(),
        }
    }

    /// Returns the rows of the code with number `id`, ascending.
    #[inline(always)]
    pub(super) fn rows_of<'s>(&'s self, id: &'s u32) -> &'s [u32] {
        match &self.codes {
            LaidCodes::Collapsed(collapsed) => collapsed.rows_of(*id),
            _ => std::slice::from_ref(id),
        }
    }

    /// Returns the rows of each code that was collapsed from several.
    pub(super) fn shared(&self) -> impl Iterator<Item = &[u32]> {
        let collapsed = match &self.codes {
            LaidCodes::Collapsed(collapsed) => Some(collapsed),
            _ => None,
        };
        collapsed.into_iter().flat_map(Collapsed::shared)
    }
}

/// Whether, by a sample, a row has several equal ones on average. If not, equal codes cost no more than near ones.
fn has_many_equal<const W: usize>(side: &JoinSide<'_>, many_equal: f64) -> bool {
    let len = side.fingerprints.len();
    let num_sampled = len.min(NUM_SAMPLED);
    let step = len / num_sampled.max(1);
    let mut hashes: Vec<u64> = (0..num_sampled)
        .map(|i| i * step + mix64(i as u64) as usize % step)
        .filter(|&index| !side.is_empty_at(index))
        .map(|index| hash_of(&side.code::<W>(index)))
        .collect();
    hashes.sort_unstable();
    let equal: usize = hashes
        .chunk_by(|a, b| a == b)
        .map(|group| group.len() * (group.len() - 1))
        .sum();
    // The sample contains the fraction `num_sampled / len` of the rows equal to a row.
    equal as f64 * len as f64 >= many_equal * (num_sampled * num_sampled) as f64 && equal > 0
}

/// Copies the codes of a range of rows by word, without those of empty texts.
fn copy<const W: usize>(side: &JoinSide<'_>, range: Range<usize>) -> Codes {
    let mut codes = Codes::default();
    codes.reset(range.len(), W);
    let (data, stride, ids) = codes.planes_mut();
    let mut len = 0;
    for index in range.filter(|&index| !side.is_empty_at(index)) {
        for (w, word) in side.code::<W>(index).into_iter().enumerate() {
            data[w * stride + len] = word;
        }
        ids[len] = side.row(index);
        len += 1;
    }
    codes.truncate(len);
    codes
}
