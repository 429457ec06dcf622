//! In which form does a search return matches?

use super::pass::Hits;
use super::scanned::NearCode;
use crate::index::table::rows::{Postings, Rows};
use crate::index::table::table::Table;
use likewise_core::error::{Error, Result};

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
}

/// Matches of one piece of work.
pub(crate) struct Found {
    counts: Vec<u32>,
    rows: Vec<u32>,
    codes: Vec<u64>,
    distances: Vec<u16>,
    num_candidates: u64,
    max_candidates: u64,
}

/// Number of row numbers prefetched ahead of use.
const NUMBERS_AHEAD: usize = 16;

/// Sorts items by query: returns the start of each query's items, and the items in that order.
fn by_query<T: Copy + Default>(num_queries: usize, items: &[(u32, T)]) -> (Vec<u32>, Vec<T>) {
    let mut counts = vec![0_u32; num_queries];
    for (query, _) in items {
        counts[*query as usize] += 1;
    }
    let mut next = Vec::with_capacity(num_queries);
    let mut total = 0;
    for &count in &counts {
        next.push(total);
        total += count as usize;
    }
    let mut sorted = vec![T::default(); items.len()];
    for &(query, item) in items {
        let slot = &mut next[query as usize];
        sorted[*slot] = item;
        *slot += 1;
    }
    (counts, sorted)
}

impl Found {
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
        let (counts, numbers) = by_query(num_queries, &items);
        drop(items);
        let mut found = Found {
            counts: Vec::with_capacity(num_queries),
            rows: Vec::with_capacity(numbers.len()),
            distances: Vec::with_capacity(numbers.len()),
            ..Found::counted(hits)
        };
        let mut numbers = numbers.as_slice();
        let mut near: Vec<(u32, u16)> = Vec::new();
        for count in counts {
            let (of_query, others) = numbers.split_at(count as usize);
            numbers = others;
            near.clear();
            for &(number, distance) in of_query {
                match rows.of_number(number) {
                    Postings::One(row) => near.push((row, distance)),
                    Postings::Many(rows) => near.extend(rows.iter().map(|&row| (row, distance))),
                }
            }
            if near.len() > 1 {
                near.sort_unstable();
            }
            found.counts.push(near.len() as u32);
            found.rows.extend(near.iter().map(|&(row, _)| row));
            found
                .distances
                .extend(near.iter().map(|&(_, distance)| distance));
        }
        Ok(found)
    }

    /// Adds comparisons, in total and with one query.
    pub(crate) fn with_more(mut self, num_candidates: u64, max_candidates: u64) -> Self {
        self.num_candidates += num_candidates;
        self.max_candidates += max_candidates;
        self
    }

    /// Only the counts of comparisons.
    fn counted(hits: &Hits) -> Self {
        Found {
            counts: Vec::new(),
            rows: Vec::new(),
            codes: Vec::new(),
            distances: Vec::new(),
            num_candidates: hits.num_candidates,
            max_candidates: hits.candidates.iter().copied().max().unwrap_or(0).into(),
        }
    }

    pub(crate) fn of_near(num_queries: usize, near: &[NearCode]) -> Self {
        let items: Vec<(u32, (u32, u16))> = near
            .iter()
            .map(|code| (code.query, (code.row, code.distance as u16)))
            .collect();
        let (counts, mut sorted) = by_query(num_queries, &items);
        sort_each(&counts, &mut sorted);
        Found {
            counts,
            rows: sorted.iter().map(|&(row, _)| row).collect(),
            codes: Vec::new(),
            distances: sorted.iter().map(|&(_, distance)| distance).collect(),
            num_candidates: 0,
            max_candidates: 0,
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
        let (counts, mut sorted) = by_query(num_queries, &items);
        sort_each(&counts, &mut sorted);
        Found {
            counts,
            codes: sorted.iter().flat_map(|(code, _)| code.0).collect(),
            distances: sorted.iter().map(|&(_, distance)| distance).collect(),
            ..Found::counted(hits)
        }
    }
}

/// A code with a default value.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Code<const W: usize>([u64; W]);

impl<const W: usize> Default for Code<W> {
    fn default() -> Self {
        Code([0; W])
    }
}

fn sort_each<T: Ord>(counts: &[u32], mut items: &mut [T]) {
    for &count in counts {
        let (one, others) = items.split_at_mut(count as usize);
        if count > 1 {
            one.sort_unstable();
        }
        items = others;
    }
}

/// Concatenates the matches of all pieces.
pub(crate) fn concatenate(parts: impl IntoIterator<Item = Result<Found>>) -> Result<Matches> {
    let parts = parts.into_iter().collect::<Result<Vec<Found>>>()?;
    let num_matches = parts.iter().map(|part| part.distances.len()).sum();
    let num_queries: usize = parts.iter().map(|part| part.counts.len()).sum();
    let mut matches = Matches {
        offsets: Vec::with_capacity(num_queries + 1),
        rows: Vec::with_capacity(parts.iter().map(|part| part.rows.len()).sum()),
        codes: Vec::with_capacity(parts.iter().map(|part| part.codes.len()).sum()),
        distances: Vec::with_capacity(num_matches),
        ..Matches::default()
    };
    let mut total = 0;
    matches.offsets.push(0);
    for part in parts {
        for count in part.counts {
            total += i64::from(count);
            matches.offsets.push(total);
        }
        matches.rows.extend(part.rows);
        matches.codes.extend(part.codes);
        matches.distances.extend(part.distances);
        matches.num_candidates += part.num_candidates;
        matches.max_candidates = matches.max_candidates.max(part.max_candidates);
    }
    Ok(matches)
}
