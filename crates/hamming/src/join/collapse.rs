//! Which rows have equal fingerprints?
//!
//! Equal fingerprints are collapsed before pairs are searched, so that ten thousand copies of one page are one code.
//! Rows are partitioned by a hash of their code into parts that fit in the cache, and each part is collapsed by its own
//! table.

use std::ops::Range;

use likewise_core::error::Result;
use likewise_core::hash::{GOLDEN, mix64};
use likewise_core::parallel::Run;

use super::partition::{Codes, Ids, Table, View};
use super::{JoinOptions, JoinSide};

/// Approximate number of codes per part: their table fits in the L2 cache.
const PART_LEN: usize = 1 << 15;
/// Maximum number of hash bits that select the part.
const MAX_PART_BITS: u32 = 11;
/// Numbers between two entries of the table that maps a number to its part, as a power of two.
const HINT_SHIFT: u32 = 10;

/// Distinct codes, numbered from 0, and the rows of each.
pub(super) struct Collapsed {
    parts: Vec<Part>,
    /// Number of the first code of each part, and the end of the last.
    first_ids: Vec<u32>,
    /// Part of every 1024th number.
    hints: Vec<u32>,
}

/// Codes whose hashes have the same first bits.
struct Part {
    codes: Codes,
    /// Rows, grouped by code and ascending within each.
    rows: Vec<u32>,
    /// Code `i` has `rows[starts[i]..starts[i + 1]]`; empty if each code has one row.
    starts: Vec<u32>,
}

#[inline(always)]
pub(super) fn hash_of<const W: usize>(code: &[u64; W]) -> u64 {
    code.iter()
        .fold(0, |hash, word| mix64((hash ^ word).wrapping_add(GOLDEN)))
}

impl Collapsed {
    /// Collapses one side of codes of `W` words; also returns tables whose memory may be reused.
    pub(super) fn new<const W: usize>(
        side: &JoinSide<'_>,
        run: Run<'_>,
    ) -> Result<(Self, Vec<Table>)> {
        let len = side.fingerprints.len();
        let part_bits = len
            .div_ceil(PART_LEN)
            .next_power_of_two()
            .ilog2()
            .min(MAX_PART_BITS);
        let piece_len = (len / 8).clamp(1 << 13, 1 << 18);
        let pieces = run.ranges(len, piece_len, |range| {
            spread::<W>(side, range.start, range.end, part_bits)
        })?;
        let make_state = Scratch::default;
        let parts = run.map(1 << part_bits, 1, make_state, |scratch, range| {
            collapse::<W>(&pieces, range.start, scratch)
        })?;
        let mut first_ids = vec![0];
        let mut total = 0;
        for part in &parts {
            total += part.codes.len as u32;
            first_ids.push(total);
        }
        let mut hints = Vec::with_capacity((total >> HINT_SHIFT) as usize + 1);
        let mut part = 0;
        for number in (0..=total).step_by(1 << HINT_SHIFT) {
            while part + 1 < parts.len() && first_ids[part + 1] <= number {
                part += 1;
            }
            hints.push(part as u32);
        }
        let codes = Collapsed {
            parts,
            first_ids,
            hints,
        };
        Ok((codes, pieces))
    }

    /// Returns all codes, in contiguous views.
    pub(super) fn views(&self) -> Vec<View<'_>> {
        self.parts
            .iter()
            .zip(&self.first_ids)
            .map(|(part, &first)| part.codes.counted_from(first))
            .collect()
    }

    /// Returns the rows of code `id`, ascending.
    #[inline]
    pub(super) fn rows_of(&self, id: u32) -> &[u32] {
        let mut part = self.hints[(id >> HINT_SHIFT) as usize] as usize;
        while self.first_ids[part + 1] <= id {
            part += 1;
        }
        let index = (id - self.first_ids[part]) as usize;
        let part = &self.parts[part];
        if part.starts.is_empty() {
            &part.rows[index..index + 1]
        } else {
            &part.rows[part.starts[index] as usize..part.starts[index + 1] as usize]
        }
    }

    pub(super) fn shared(&self) -> impl Iterator<Item = &[u32]> {
        self.parts.iter().flat_map(|part| {
            part.starts
                .windows(2)
                .map(|ends| &part.rows[ends[0] as usize..ends[1] as usize])
                .filter(|rows| rows.len() > 1)
        })
    }
}

/// Partitions the fingerprints from `start` to `end`, without empty texts, by the first bits of their hashes.
fn spread<const W: usize>(side: &JoinSide<'_>, start: usize, end: usize, part_bits: u32) -> Table {
    let code = |index: usize| side.code::<W>(index);
    let part_of = |code: &[u64; W]| (u128::from(hash_of(code)) << part_bits >> 64) as usize;
    let mut offsets = vec![0_u32; (1 << part_bits) + 2];
    for index in (start..end).filter(|&index| !side.is_empty_at(index)) {
        offsets[part_of(&code(index)) + 2] += 1;
    }
    let mut total = 0;
    for offset in &mut offsets {
        total += *offset;
        *offset = total;
    }
    let mut codes = Codes::default();
    codes.reset(total as usize, W);
    let (data, stride, ids) = codes.planes_mut();
    for index in (start..end).filter(|&index| !side.is_empty_at(index)) {
        let code = code(index);
        let next = &mut offsets[part_of(&code) + 1];
        let slot = *next as usize;
        *next += 1;
        for (w, word) in code.into_iter().enumerate() {
            data[w * stride + slot] = word;
        }
        ids[slot] = side.row(index);
    }
    Table::of(codes, offsets)
}

#[derive(Default)]
struct Scratch {
    /// Open-addressing hash table: number of a code in its part + 1, or 0.
    slots: Vec<u32>,
    /// Number of each row's code in its part.
    numbers: Vec<u32>,
}

/// Groups the equal codes of one part of all pieces.
fn collapse<const W: usize>(pieces: &[Table], part: usize, scratch: &mut Scratch) -> Part {
    let runs = || pieces.iter().map(|piece| piece.bucket(part));
    let len = runs().map(|run| run.len).sum::<usize>();
    let num_slots = (2 * len).next_power_of_two().max(2);
    scratch.slots.clear();
    scratch.slots.resize(num_slots, 0);
    scratch.numbers.clear();
    let mut codes = Codes::default();
    codes.reset(len, W);
    let (data, stride, _) = codes.planes_mut();
    let mut rows = Vec::with_capacity(len);
    let mut num_codes = 0;
    for run in runs() {
        for index in 0..run.len {
            let code = run.get::<W>(index);
            let mut slot = hash_of(&code) as usize & (num_slots - 1);
            let number = loop {
                match scratch.slots[slot] {
                    0 => {
                        scratch.slots[slot] = num_codes as u32 + 1;
                        for (w, word) in code.into_iter().enumerate() {
                            data[w * stride + num_codes] = word;
                        }
                        num_codes += 1;
                        break num_codes as u32 - 1;
                    }
                    taken => {
                        let other = taken as usize - 1;
                        if (0..W).all(|w| data[w * stride + other] == code[w]) {
                            break taken - 1;
                        }
                        slot = (slot + 1) & (num_slots - 1);
                    }
                }
            };
            scratch.numbers.push(number);
            rows.push(run.id(index));
        }
    }
    codes.truncate(num_codes);
    let (starts, rows) = match num_codes < len {
        true => grouped(&scratch.numbers, &rows, num_codes),
        false => (Vec::new(), rows),
    };
    Part {
        codes,
        rows,
        starts,
    }
}

/// Groups rows by the number of their code; also returns the start of each group, and the end of the last.
fn grouped(numbers: &[u32], rows: &[u32], num_codes: usize) -> (Vec<u32>, Vec<u32>) {
    // One further place: while rows are put in their places, the end of a group is the start of the next.
    let mut starts = vec![0; num_codes + 2];
    for &number in numbers {
        starts[number as usize + 2] += 1;
    }
    let mut total = 0;
    for start in &mut starts {
        total += *start;
        *start = total;
    }
    let mut grouped = vec![0; rows.len()];
    for (&number, &row) in numbers.iter().zip(rows) {
        let next = &mut starts[number as usize + 1];
        grouped[*next as usize] = row;
        *next += 1;
    }
    starts.pop();
    (starts, grouped)
}

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
        let len = side.fingerprints.len();
        let mut empty_rows: Vec<u32> = (0..side.is_empty.map_or(0, <[u8]>::len))
            .filter(|&index| side.is_empty_at(index))
            .map(|index| side.row(index))
            .collect();
        empty_rows.sort_unstable();
        let (codes, spare) = if has_many_equal::<W>(side, many_equal) {
            let (collapsed, spare) = Collapsed::new::<W>(side, options.run)?;
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
            let copy = |(): &mut (), range| copy::<W>(side, range);
            let copied = options.run.map(len, COPY_LEN, || (), copy)?;
            (LaidCodes::Copied(copied), Vec::new())
        };
        Ok((Laid { codes, empty_rows }, spare))
    }

    /// Returns all codes, in contiguous views.
    pub(super) fn views(&self) -> Vec<View<'_>> {
        match &self.codes {
            LaidCodes::Given(view) => vec![*view],
            LaidCodes::Copied(copied) => copied.iter().map(|c| c.view(0, c.len)).collect(),
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
