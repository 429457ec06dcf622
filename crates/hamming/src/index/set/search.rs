//! How is a set of several segments and a tail searched?

use std::collections::BinaryHeap;
use std::ops::Range;
use std::sync::atomic::AtomicBool;

use super::hamming_set::HammingSet;
use super::state::State;
use crate::distance::{Fingerprints, distance};
use crate::index::search::batch::Pieces;
use crate::index::search::matches::{Matches, Reach, concatenate};
use crate::index::search::scanned::NearCode;
use likewise_core::error::Result;
use likewise_core::isa::Isa;
use likewise_core::parallel::{Cancel, Run};

/// Queries that a thread takes at a time.
const GRAIN: usize = 1024;

impl HammingSet {
    /// Returns all rows (or fingerprints) at distance `within` or less of each query, in ascending order.
    pub fn search(&self, queries: Fingerprints<'_>, reach: Reach<'_>) -> Result<Matches> {
        self.plan().check_query(&queries, reach.within)?;
        let state = self.state();
        let found = match state.segments.as_slice() {
            [segment] if state.tail.is_empty() && state.removed.num_present == 0 => {
                segment.search(queries, reach)?
            }
            _ => state.search(queries, reach)?,
        };
        self.note_candidates(found.max_candidates);
        Ok(found)
    }
}

impl State {
    fn search(&self, queries: Fingerprints<'_>, search: Reach<'_>) -> Result<Matches> {
        let threads = search.run.threads.max(1);
        let run = Run {
            threads,
            ..search.run
        };
        let search = Reach { run, ..search };
        let table_bytes = self.segments.iter().map(|s| s.largest_table_bytes());
        let pieces = Pieces::choose(queries.len(), threads, table_bytes.max().unwrap_or(0));
        if pieces.are_sorted {
            return self.search_sorted(queries, pieces.len * threads, search);
        }
        let num_parts = if threads == 1 { 1 } else { 4 * threads };
        let grain = queries.len().div_ceil(num_parts).clamp(16, GRAIN);
        let one = Reach {
            run: Run { threads: 1, ..run },
            ..search
        };
        let parts = run.ranges(queries.len(), grain, |range| {
            let part = part_of(queries, &range);
            let of_segments = self.search_segments(part, one)?;
            let (all, most) = candidates(&of_segments);
            Ok(self
                .merge(part, &of_segments, 0, search)?
                .with_more(all, most))
        })?;
        concatenate(parts)
    }

    /// Searches the segments one after another for many queries at once.
    fn search_sorted(
        &self,
        queries: Fingerprints<'_>,
        len: usize,
        search: Reach<'_>,
    ) -> Result<Matches> {
        let mut parts = Vec::new();
        for start in (0..queries.len()).step_by(len) {
            let part = part_of(queries, &(start..queries.len().min(start + len)));
            let of_segments = self.search_segments(part, search)?;
            let (mut all, most) = candidates(&of_segments);
            let merged = search.run.ranges(part.len(), GRAIN, |range| {
                let first = range.start;
                self.merge(part_of(part, &range), &of_segments, first, search)
            })?;
            for found in merged {
                parts.push(found.map(|found| found.with_more(std::mem::take(&mut all), most)));
            }
        }
        concatenate(parts)
    }

    fn search_segments(
        &self,
        queries: Fingerprints<'_>,
        search: Reach<'_>,
    ) -> Result<Vec<Matches>> {
        self.segments
            .iter()
            .map(|segment| segment.search(queries, search))
            .collect()
    }

    /// Merges the matches of segments, for queries from `first` on, with those of the tail, without removed rows.
    fn merge(
        &self,
        queries: Fingerprints<'_>,
        of_segments: &[Matches],
        first: usize,
        search: Reach<'_>,
    ) -> Result<Matches> {
        let mut near = Vec::new();
        for matches in of_segments {
            let offsets = &matches.offsets[first..=first + queries.len()];
            for (query, bounds) in (0..).zip(offsets.windows(2)) {
                for i in bounds[0] as usize..bounds[1] as usize {
                    near.push(NearCode {
                        query,
                        row: matches.rows[i],
                        distance: u32::from(matches.distances[i]),
                    });
                }
            }
        }
        for planes in &self.tail {
            planes.search(queries.words, search.within, search.isa, &mut near);
        }
        if self.removed.num_present > 0 {
            near.retain(|code| !self.removed.contains(code.row));
        }
        let scanned: usize = self.tail.iter().map(|planes| planes.len()).sum();
        let found = Matches::of_near(queries.len(), &near);
        Ok(found.with_more((scanned * queries.len()) as u64, scanned as u64))
    }
}

fn part_of<'a>(queries: Fingerprints<'a>, range: &Range<usize>) -> Fingerprints<'a> {
    let num_words = queries.num_words();
    Fingerprints::new(
        &queries.words[range.start * num_words..range.end * num_words],
        queries.bits,
    )
}

/// Number of entries compared in all segments, and the maximum for one query.
fn candidates(of_segments: &[Matches]) -> (u64, u64) {
    let all = of_segments.iter().map(|found| found.num_candidates).sum();
    let most = of_segments.iter().map(|found| found.max_candidates).sum();
    (all, most)
}

impl HammingSet {
    /// Returns the `num` rows nearest to each query, by distance, then row: by [`nearest_within`](Self::nearest_within)
    /// and, if that finds too few, [`nearest_of_all`](Self::nearest_of_all).
    pub fn nearest(
        &self,
        queries: Fingerprints<'_>,
        num: usize,
        isa: Isa,
        run: Run<'_>,
    ) -> Result<Matches> {
        let grain = queries
            .len()
            .div_ceil(4 * run.threads.max(1))
            .clamp(1, GRAIN);
        let one = Run { threads: 1, ..run };
        let parts = run.ranges(queries.len(), grain, |range| {
            concatenate(range.map(|i| {
                let query = part_of(queries, &(i..i + 1));
                match self.nearest_within(query, num, isa, one)? {
                    Some(found) => Ok(found),
                    None => self.nearest_of_all(query, num, run.cancel),
                }
            }))
        })?;
        concatenate(parts)
    }

    /// [`nearest`](Self::nearest) for one query by growing radius; `None` if not all are within that of the plan.
    pub fn nearest_within(
        &self,
        query: Fingerprints<'_>,
        num: usize,
        isa: Isa,
        run: Run<'_>,
    ) -> Result<Option<Matches>> {
        let mut found = self.search(query, Reach::new(0, isa, run))?;
        for within in 1..=self.plan().within {
            if found.distances.len() >= num {
                break;
            }
            found = self.search(query, Reach::new(within, isa, run))?;
        }
        if found.distances.len() < num && found.distances.len() < self.len() {
            return Ok(None);
        }
        let num_words = self.plan().bits.div_ceil(64) as usize;
        let mut order: Vec<usize> = (0..found.distances.len()).collect();
        // The order within equal distances, by row or fingerprint, is kept.
        order.sort_by_key(|&i| found.distances[i]);
        order.truncate(num);
        let has_rows = !found.rows.is_empty();
        let (mut rows, mut codes) = (Vec::new(), Vec::new());
        for &i in &order {
            match has_rows {
                true => rows.push(found.rows[i]),
                false => codes.extend_from_slice(&found.codes[i * num_words..(i + 1) * num_words]),
            }
        }
        Ok(Some(Matches {
            offsets: vec![0, order.len() as i64],
            rows,
            codes,
            distances: order.iter().map(|&i| found.distances[i]).collect(),
            num_candidates: found.num_candidates,
            max_candidates: found.max_candidates,
        }))
    }

    /// [`nearest`](Self::nearest) for one query, by comparing it with everything.
    pub fn nearest_of_all(
        &self,
        query: Fingerprints<'_>,
        num: usize,
        cancel: &AtomicBool,
    ) -> Result<Matches> {
        let num_words = self.plan().bits.div_ceil(64) as usize;
        let state = self.state();
        let mut nearest = Nearest {
            query: query.words,
            num,
            num_compared: 0,
            heap: BinaryHeap::new(),
        };
        let mut has_rows = false;
        for segment in &state.segments {
            segment.for_each_code(cancel, |code, row| {
                has_rows |= row.is_some();
                if row.is_none_or(|row| !state.removed.contains(row)) {
                    nearest.push(code, row);
                }
            })?;
        }
        let mut codes = Vec::new();
        for planes in &state.tail {
            cancel.check()?;
            has_rows = true;
            codes.clear();
            planes.copy_codes(&mut codes);
            for (code, &row) in codes.chunks_exact(num_words).zip(planes.rows()) {
                if !state.removed.contains(row) {
                    nearest.push(code, Some(row));
                }
            }
        }
        let num_candidates = nearest.num_compared;
        let found = nearest.heap.into_sorted_vec();
        Ok(Matches {
            offsets: vec![0, found.len() as i64],
            distances: found.iter().map(|near| near.distance).collect(),
            rows: match has_rows {
                true => found.iter().map(|near| near.order as u32).collect(),
                false => Vec::new(),
            },
            codes: match has_rows {
                true => Vec::new(),
                false => found
                    .iter()
                    .flat_map(|near| &near.code[..num_words])
                    .copied()
                    .collect(),
            },
            num_candidates,
            max_candidates: num_candidates,
        })
    }
}

/// One of the nearest so far; the farthest compares greatest.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Near {
    distance: u16,
    /// Its row; without rows, its place in the order of the first table.
    order: u64,
    code: [u64; 4],
}

struct Nearest<'a> {
    query: &'a [u64],
    num: usize,
    num_compared: u64,
    heap: BinaryHeap<Near>,
}

impl Nearest<'_> {
    fn push(&mut self, code: &[u64], row: Option<u32>) {
        let distance = distance(self.query, code) as u16;
        let order = row.map_or(self.num_compared, u64::from);
        self.num_compared += 1;
        if self.heap.len() == self.num {
            let is_nearer = |last: &Near| (distance, order) < (last.distance, last.order);
            if !self.heap.peek().is_some_and(is_nearer) {
                return;
            }
            self.heap.pop();
        }
        let mut near = Near {
            distance,
            order,
            code: [0; 4],
        };
        near.code[..code.len()].copy_from_slice(code);
        self.heap.push(near);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::index::Building;
    use crate::plan::{Key, SearchPlan};
    use likewise_core::hash::mix64;

    const LEN: u64 = 3000;

    fn codes() -> Vec<u64> {
        (0..LEN).map(|row| mix64(row / 2 + 1)).collect()
    }

    fn set(with_rows: bool) -> HammingSet {
        let words = codes();
        let keys = vec![Key::of_bits(0..32, 0), Key::of_bits(32..64, 0)];
        let never = AtomicBool::new(false);
        let building = Building {
            isa: Isa::Plain,
            run: Run::alone(&never),
            memory_bytes: 1 << 30,
            with_rows,
        };
        let fingerprints = Fingerprints::new(&words, 64);
        let plan = SearchPlan::new(64, 1, keys).unwrap();
        HammingSet::build(fingerprints, None, plan, building).unwrap()
    }

    fn query(words: &[u64]) -> Fingerprints<'_> {
        Fingerprints { words, bits: 64 }
    }

    #[test]
    fn beyond_the_radius_they_are_those_of_a_sorted_scan() {
        let stop = AtomicBool::new(false);
        let words = [mix64(17)];
        let mut expected: Vec<(u16, u32)> = (0..)
            .zip(codes())
            .map(|(row, code)| ((code ^ words[0]).count_ones() as u16, row))
            .collect();
        expected.sort_unstable();
        for num in [1, 3, 10, LEN as usize, 1 << 20] {
            let nearest =
                |set: &HammingSet| set.nearest(query(&words), num, Isa::Plain, Run::alone(&stop));
            let found = nearest(&set(true)).unwrap();
            let found: Vec<_> = found.distances.into_iter().zip(found.rows).collect();
            assert_eq!(found, expected[..num.min(LEN as usize)]);
            // Each fingerprint is in two rows.
            let found = nearest(&set(false)).unwrap();
            let distances: Vec<u16> = expected.iter().step_by(2).map(|&(d, _)| d).collect();
            assert_eq!(found.distances, distances[..num.min(LEN as usize / 2)]);
            for (code, distance) in found.codes.iter().zip(found.distances) {
                assert_eq!((code ^ words[0]).count_ones() as u16, distance);
            }
        }
    }

    #[test]
    fn comparing_with_everything_can_be_cancelled() {
        let found = set(true).nearest_of_all(query(&[5]), 3, &AtomicBool::new(true));
        assert!(matches!(found, Err(likewise_core::error::Error::Canceled)));
    }
}
