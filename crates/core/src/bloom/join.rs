//! With which earlier filters does a filter share enough bits?

use std::ops::Range;

use super::demand::Demand;
use super::kernels::{NUM_QUERIES, count_shared};
use super::rows::{LANES, Rows};
use super::{MAX_BITS, num_set};
use crate::error::{Error, invalid_if};
use crate::isa::Isa;
use crate::parallel::Run;
use crate::search::{Bound, Call, Pairs, REMOVED, unbroken};

/// Number of later positions in one piece of work: each is compared with all earlier filters once.
const GRAIN: usize = 64;
/// Size of filters that are sorted together, in bytes: the capacity of a core's L2 cache.
const SEGMENT_BYTES: usize = 1 << 20;
const MAX_SEGMENT: usize = 4096;
const MIN_SEGMENT: usize = 64;

/// Filters in order of priority, arranged for comparing all pairs: their size, 8 bytes per position, and 256 kB.
#[derive(Debug)]
pub struct BloomJoin {
    num_bits: u32,
    demand: Demand,
    levels: Levels,
    /// The positions of a segment precede those of the next.
    segments: Vec<Rows>,
    segment_len: usize,
    /// Place of each position in its segment.
    places: Vec<u32>,
}

#[derive(Default)]
struct Scratch {
    /// Later positions of a piece, by their numbers of bits.
    order: Vec<(u32, u32)>,
    queries: Vec<u64>,
}

impl BloomJoin {
    /// Arranges filters `order[0], order[1], ...` of `num_bits` bits: about 30 ns for each 64 bits.
    pub fn new(
        filters: &[u64],
        num_bits: u32,
        order: &[u32],
        demand: Demand,
    ) -> Result<Self, Error> {
        if !(64..=MAX_BITS).contains(&num_bits) || !num_bits.is_multiple_of(64) {
            let message = format!("{num_bits} is not a multiple of 64 from 64 to {MAX_BITS}");
            return Err(Error::invalid("filter_bits", message));
        }
        let num_words = num_bits as usize / 64;
        let num_filters = filters.len() / num_words;
        invalid_if(!filters.len().is_multiple_of(num_words), "filters", || {
            format!(
                "{} words are not a multiple of {num_words} words per filter",
                filters.len()
            )
        })?;
        if let Some(row) = order.iter().find(|&&row| row as usize >= num_filters) {
            return Err(Error::invalid(
                "order",
                format!("row {row} is outside the {num_filters} filters"),
            ));
        }
        let filter = |position: u32| {
            let start = order[position as usize] as usize * num_words;
            &filters[start..start + num_words]
        };
        let counts: Vec<u32> = (0..order.len() as u32)
            .map(|p| num_set(filter(p)))
            .collect();
        let (first, last) = (counts.iter().min(), counts.iter().max());
        let segment_len = (SEGMENT_BYTES / (8 * num_words)).clamp(MIN_SEGMENT, MAX_SEGMENT);
        let mut places = vec![0; order.len()];
        let segments: Vec<Rows> = (0..order.len())
            .step_by(segment_len)
            .map(|start| {
                let end = (start + segment_len).min(order.len());
                let range = start as u32..end as u32;
                let rows = Rows::new(range, num_words, filter, |p| counts[p as usize]);
                for (place, &position) in rows.positions.iter().enumerate() {
                    places[position as usize] = place as u32;
                }
                rows
            })
            .collect();
        Ok(BloomJoin {
            num_bits,
            demand,
            levels: Levels::new(
                demand,
                num_bits,
                first.copied().unwrap_or(0),
                last.copied().unwrap_or(0),
            ),
            segments,
            segment_len,
            places,
        })
    }

    pub fn len(&self) -> usize {
        self.places.len()
    }

    pub fn is_empty(&self) -> bool {
        self.places.is_empty()
    }

    /// Returns the segment of a position, and its place there.
    fn place(&self, position: u32) -> (&Rows, usize) {
        let segment = position as usize / self.segment_len;
        (
            &self.segments[segment],
            self.places[position as usize] as usize,
        )
    }

    /// Returns the pairs of a call that meet the demand. Cost: for filters of 2,048 bits, about 3 ns per pair with
    /// similar numbers of bits on one core (AVX-512); other pairs are not compared.
    pub fn candidates(&self, call: &Call<'_>) -> Result<Pairs, Error> {
        let range = &call.range;
        if range.start > range.end || range.end as usize > self.len() {
            let message = format!("{range:?} is outside the {} positions", self.len());
            return Err(Error::invalid("range", message));
        }
        invalid_if(
            (call.states).is_some_and(|states| states.len() != self.len()),
            "states",
            || format!("not one for each of the {} positions", self.len()),
        )?;
        let bound = Bound::new(call.max_pairs, call.threads);
        let low = range.start;
        let pieces = call.run().map(
            (range.end - low) as usize,
            GRAIN,
            Scratch::default,
            |scratch, piece| {
                if bound.is_reached(piece.start) {
                    return None;
                }
                let piece = low + piece.start as u32..low + piece.end as u32;
                let mut found = self.piece(piece.clone(), call.states, call.isa, scratch);
                let end = cut(&mut found, piece.clone(), bound.a_piece);
                bound.add(found.len());
                Some((found, end, piece.end))
            },
        )?;
        let mut all = Pairs {
            end: low,
            ..Pairs::default()
        };
        for (found, end) in unbroken(pieces) {
            all.end = end;
            for (later, earlier) in found {
                all.later.push(later);
                all.earlier.push(earlier);
            }
        }
        all.num_considered = all.later.len() as u64;
        Ok(all)
    }

    /// Returns whether each pair of positions meets the demand.
    pub fn passes(&self, later: &[u32], earlier: &[u32], run: Run<'_>) -> Result<Vec<bool>, Error> {
        if later.len() != earlier.len() {
            return Err(Error::invalid("earlier", "not as many as later"));
        }
        invalid_if(
            later
                .iter()
                .chain(earlier)
                .any(|&position| position as usize >= self.len()),
            "later",
            || format!("a position is not below {}", self.len()),
        )?;
        let parts = run.map(later.len(), 4096, Vec::new, |both: &mut Vec<u64>, range| {
            range
                .map(|i| {
                    let [a, b] = [later[i], earlier[i]].map(|position| self.place(position));
                    both.clear();
                    a.0.copy(a.1, both);
                    b.0.copy(b.1, both);
                    let (x, y) = both.split_at(both.len() / 2);
                    let shared: u32 = x.iter().zip(y).map(|(x, y)| (x & y).count_ones()).sum();
                    let counts = (a.0.counts[a.1], b.0.counts[b.1]);
                    shared >= self.demand.least_shared(self.num_bits, counts.0, counts.1)
                })
                .collect::<Vec<bool>>()
        })?;
        Ok(parts.concat())
    }

    /// Returns the pairs `(later, earlier, shared)` of a piece of later positions, sorted.
    fn piece(
        &self,
        piece: Range<u32>,
        states: Option<&[u8]>,
        isa: Isa,
        scratch: &mut Scratch,
    ) -> Vec<(u32, u32)> {
        let Scratch { order, queries } = scratch;
        order.clear();
        order.extend(piece.clone().map(|position| {
            let (rows, place) = self.place(position);
            (rows.counts[place], position)
        }));
        order.sort_unstable();
        let mut found = Vec::new();
        let num_segments = (piece.end as usize).div_ceil(self.segment_len);
        for four in order.chunks(NUM_QUERIES) {
            queries.clear();
            for i in 0..NUM_QUERIES {
                // Places beyond the last one repeat it and are ignored.
                let (rows, place) = self.place(four[i.min(four.len() - 1)].1);
                rows.copy(place, queries);
            }
            for rows in &self.segments[..num_segments] {
                self.compare(four, queries, rows, states, isa, &mut found);
            }
        }
        found.sort_unstable();
        found
    }

    /// Appends the pairs of up to four filters, given as (bits, position), with the earlier filters of a segment.
    fn compare(
        &self,
        four: &[(u32, u32)],
        queries: &[u64],
        rows: &Rows,
        states: Option<&[u8]>,
        isa: Isa,
        found: &mut Vec<(u32, u32)>,
    ) {
        let needs: [_; NUM_QUERIES] =
            std::array::from_fn(|i| self.levels.of(four[i.min(four.len() - 1)].0));
        let first = needs.iter().map(|needs| needs.first).min().unwrap_or(0);
        let last = needs.iter().map(|needs| needs.last).max().unwrap_or(0);
        let start = rows.counts.partition_point(|&count| count < first) / LANES;
        let end = rows
            .counts
            .partition_point(|&count| count <= last)
            .div_ceil(LANES);
        for group in start..end {
            let shared = count_shared(queries, rows.group(group), isa);
            let least_count = rows.counts[group * LANES];
            for ((needs, shared), &(count, later)) in needs.iter().zip(&shared).zip(four) {
                let need = u64::from(needs.with(least_count));
                if shared.iter().any(|&shared| shared >= need) {
                    self.report((count, later), shared, group * LANES, rows, states, found);
                }
            }
        }
    }

    #[inline(never)]
    fn report(
        &self,
        (count, later): (u32, u32),
        shared: &[u64; LANES],
        start: usize,
        rows: &Rows,
        states: Option<&[u8]>,
        found: &mut Vec<(u32, u32)>,
    ) {
        for (place, &shared) in (start..rows.len()).zip(shared) {
            let (earlier, shared) = (rows.positions[place], shared as u32);
            let is_gone = states.is_some_and(|states| states[earlier as usize] == REMOVED);
            if earlier < later
                && !is_gone
                && shared >= self.levels.of(count).with(rows.counts[place])
                && shared
                    >= self
                        .demand
                        .least_shared(self.num_bits, count, rows.counts[place])
            {
                found.push((later, earlier));
            }
        }
    }
}

/// Keeps the pairs up to the end of the later position that reaches `max_pairs`; returns the next position.
fn cut(found: &mut Vec<(u32, u32)>, piece: Range<u32>, max_pairs: usize) -> u32 {
    if found.len() <= max_pairs {
        return piece.end;
    }
    let end = found[max_pairs].0 + 1;
    found.truncate(found.partition_point(|&(later, _)| later < end));
    end
}

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
