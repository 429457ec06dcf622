//! What is a search asked for, and in which form does it return matches?

use super::pass::Hits;
use super::scanned::NearCode;
use crate::index::table::rows::{Postings, Rows};
use crate::index::table::table::Table;
use likewise_core::error::{Error, Result};
use likewise_core::isa::Isa;
use likewise_core::parallel::Run;

/// The radius of a search, and how it is run.
#[derive(Debug, Clone, Copy)]
pub struct Reach<'a> {
    pub within: u32,
    pub isa: Isa,
    pub run: Run<'a>,
}

impl<'a> Reach<'a> {
    pub fn new(within: u32, isa: Isa, run: Run<'a>) -> Self {
        Reach { within, isa, run }
    }
}

/// Matches of several queries: those of query `i` are at `offsets[i]..offsets[i + 1]`, by row (or code).
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Matches {
    /// Number of queries + 1 offsets.
    pub offsets: Vec<i64>,
    /// Rows; empty if they are not kept.
    pub rows: Vec<u32>,
    /// Fingerprints, row-major; only if rows are not kept.
    pub codes: Vec<u64>,
    pub distances: Vec<u16>,
    pub num_candidates: u64,
    /// Maximum number of entries that were compared with one query.
    pub max_candidates: u64,
}

impl Matches {
    pub(crate) fn of_none() -> Self {
        Matches {
            offsets: vec![0],
            ..Matches::default()
        }
    }

    /// Only the counts of comparisons.
    fn counted(hits: &Hits) -> Self {
        Matches {
            num_candidates: hits.num_candidates,
            max_candidates: hits.candidates.iter().copied().max().unwrap_or(0).into(),
            ..Matches::of_none()
        }
    }

    pub(crate) fn append(&mut self, other: Matches) {
        let base = self.distances.len() as i64;
        self.offsets
            .extend(other.offsets.iter().skip(1).map(|end| base + end));
        self.rows.extend(other.rows);
        self.codes.extend(other.codes);
        self.distances.extend(other.distances);
        self.num_candidates += other.num_candidates;
        self.max_candidates = self.max_candidates.max(other.max_candidates);
    }

    pub(crate) fn of_rows(num_queries: usize, hits: &Hits, rows: &Rows) -> Result<Self> {
        let mut items = Vec::with_capacity(hits.first.len());
        for (i, hit) in hits.first.iter().enumerate() {
            if let Some(later) = hits.first.get(i + NUMBERS_AHEAD) {
                rows.prefetch(later.rank as usize);
            }
            if !rows.is_good(hit.rank as usize) {
                return Err(Error::Damaged);
            }
            let number = rows.number_of(hit.rank as usize);
            items.push((hit.query, (number, hit.distance as u16)));
        }
        let (offsets, numbers) = by_query(num_queries, &items);
        drop(items);
        let mut found = Matches {
            rows: Vec::with_capacity(numbers.len()),
            distances: Vec::with_capacity(numbers.len()),
            ..Matches::counted(hits)
        };
        found.offsets.reserve_exact(num_queries);
        let mut near: Vec<(u32, u16)> = Vec::new();
        for bounds in offsets.windows(2) {
            near.clear();
            for &(number, distance) in &numbers[bounds[0] as usize..bounds[1] as usize] {
                match rows.of_number(number) {
                    Postings::One(row) => near.push((row, distance)),
                    Postings::Many(rows) => near.extend(rows.iter().map(|&row| (row, distance))),
                }
            }
            if near.len() > 1 {
                near.sort_unstable();
            }
            found.rows.extend(near.iter().map(|&(row, _)| row));
            let distances = near.iter().map(|&(_, distance)| distance);
            found.distances.extend(distances);
            found.offsets.push(found.rows.len() as i64);
        }
        Ok(found)
    }

    /// Adds comparisons, in total and with one query.
    pub(crate) fn with_more(mut self, num_candidates: u64, max_candidates: u64) -> Self {
        self.num_candidates += num_candidates;
        self.max_candidates += max_candidates;
        self
    }

    pub(crate) fn of_near(num_queries: usize, near: &[NearCode]) -> Self {
        let items: Vec<(u32, (u32, u16))> = near
            .iter()
            .map(|code| (code.query, (code.row, code.distance as u16)))
            .collect();
        let (offsets, mut sorted) = by_query(num_queries, &items);
        sort_each(&offsets, &mut sorted);
        Matches {
            offsets,
            rows: sorted.iter().map(|&(row, _)| row).collect(),
            distances: sorted.iter().map(|&(_, distance)| distance).collect(),
            ..Matches::default()
        }
    }

    pub(crate) fn of_codes<const W: usize>(num_queries: usize, hits: &Hits, table: &Table) -> Self {
        let (codes, _) = hits.codes.as_chunks::<W>();
        let mut items: Vec<(u32, (Code<W>, u16))> = hits
            .other
            .iter()
            .zip(codes)
            .map(|(hit, code)| (hit.query, (Code(*code), hit.distance as u16)))
            .collect();
        items.extend(hits.first.iter().map(|hit| {
            let entry = table.entry(hit.prefix, hit.rank as usize);
            let code = table.permutation.invert(&entry);
            (hit.query, (Code(code), hit.distance as u16))
        }));
        let (offsets, mut sorted) = by_query(num_queries, &items);
        sort_each(&offsets, &mut sorted);
        Matches {
            offsets,
            codes: sorted.iter().flat_map(|(code, _)| code.0).collect(),
            distances: sorted.iter().map(|&(_, distance)| distance).collect(),
            ..Matches::counted(hits)
        }
    }
}

/// Number of row numbers prefetched ahead of use.
const NUMBERS_AHEAD: usize = 16;

/// Sorts items by query: returns the ends of each query's items after a 0, and the items in that order.
fn by_query<T: Copy + Default>(num_queries: usize, items: &[(u32, T)]) -> (Vec<i64>, Vec<T>) {
    // One further place: while items are put in their places, the end of a query is the start of the next.
    let mut offsets = vec![0_i64; num_queries + 2];
    for (query, _) in items {
        offsets[*query as usize + 2] += 1;
    }
    for i in 2..offsets.len() {
        offsets[i] += offsets[i - 1];
    }
    let mut sorted = vec![T::default(); items.len()];
    for &(query, item) in items {
        let slot = &mut offsets[query as usize + 1];
        sorted[*slot as usize] = item;
        *slot += 1;
    }
    offsets.pop();
    (offsets, sorted)
}

/// A code with a default value.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Code<const W: usize>([u64; W]);

impl<const W: usize> Default for Code<W> {
    fn default() -> Self {
        Code([0; W])
    }
}

fn sort_each<T: Ord>(offsets: &[i64], items: &mut [T]) {
    for bounds in offsets.windows(2) {
        items[bounds[0] as usize..bounds[1] as usize].sort_unstable();
    }
}

/// Concatenates the matches of all pieces.
pub(crate) fn concatenate(parts: impl IntoIterator<Item = Result<Matches>>) -> Result<Matches> {
    let parts = parts.into_iter().collect::<Result<Vec<Matches>>>()?;
    let total = |len: fn(&Matches) -> usize| parts.iter().map(len).sum();
    let mut all = Matches::of_none();
    all.offsets.reserve(total(|part| part.offsets.len()));
    all.rows.reserve(total(|part| part.rows.len()));
    all.codes.reserve(total(|part| part.codes.len()));
    all.distances.reserve(total(|part| part.distances.len()));
    for part in parts {
        all.append(part);
    }
    Ok(all)
}
