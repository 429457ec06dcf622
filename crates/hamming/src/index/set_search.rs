//! How is a set of several segments and a tail searched?

use std::ops::Range;
use std::sync::atomic::AtomicBool;

use super::super::distance::Fingerprints;
use super::batch::Pieces;
use super::matches::{Found, Matches, concatenate};
use super::planes::NearCode;
use super::set::HammingSet;
use super::set_state::State;
use likewise_core::error::Error;
use likewise_core::isa::Isa;
use likewise_core::parallel::map_ranges;

/// Queries that a thread takes at once.
const GRAIN: usize = 1024;

impl HammingSet {
    /// All rows at distance `within` or less of each query, in ascending order of row; of a set without rows, all fingerprints.
    ///
    /// # Errors
    /// [`Error::InvalidParameter`] where `within` is above the plan's or the widths differ; [`Error::Damaged`]; [`Error::Cancelled`].
    pub fn search(
        &self,
        queries: Fingerprints<'_>,
        within: u32,
        isa: Isa,
        threads: usize,
        cancel: &AtomicBool,
    ) -> Result<Matches, Error> {
        queries.check()?;
        self.check_query(&queries, within)?;
        let state = self.state();
        let found = match state.segments.as_slice() {
            [segment] if state.tail.is_empty() && state.removed.num_present == 0 => {
                segment.search(queries, within, isa, threads, cancel)?
            }
            _ => state.search(queries, within, isa, threads, cancel)?,
        };
        self.note_candidates(found.max_candidates);
        Ok(found)
    }

    fn check_query(&self, queries: &Fingerprints<'_>, within: u32) -> Result<(), Error> {
        let (bits, most) = (self.plan().bits(), self.plan().within());
        if queries.bits != bits {
            return Err(Error::invalid(
                "fingerprints",
                format!("have {} bits; those searched have {bits}", queries.bits),
            ));
        }
        let most = if self.plan().keys().is_empty() {
            bits
        } else {
            most
        };
        if within > most {
            return Err(Error::invalid(
                "within",
                format!("{within} is above {most}, the radius this was built for"),
            ));
        }
        Ok(())
    }
}

/// A radius, and how a search is done.
#[derive(Clone, Copy)]
struct Search<'a> {
    within: u32,
    isa: Isa,
    threads: usize,
    cancel: &'a AtomicBool,
}

impl State {
    fn search(
        &self,
        queries: Fingerprints<'_>,
        within: u32,
        isa: Isa,
        threads: usize,
        cancel: &AtomicBool,
    ) -> Result<Matches, Error> {
        let threads = threads.max(1);
        let search = Search {
            within,
            isa,
            threads,
            cancel,
        };
        let table_bytes = self.segments.iter().map(|s| s.largest_table_bytes());
        let pieces = Pieces::choose(queries.len(), threads, table_bytes.max().unwrap_or(0));
        if pieces.are_sorted {
            return self.search_sorted(queries, pieces.len * threads, search);
        }
        let num_parts = if threads == 1 { 1 } else { 4 * threads };
        let grain = queries.len().div_ceil(num_parts).clamp(16, GRAIN);
        let one = Search {
            threads: 1,
            ..search
        };
        let parts = map_ranges(
            queries.len(),
            grain,
            threads,
            cancel,
            || (),
            |(), range| {
                let part = part_of(queries, &range);
                let of_segments = self.search_segments(part, one)?;
                let (all, most) = candidates(&of_segments);
                Ok(self
                    .merge(part, &of_segments, 0, search)?
                    .with_more(all, most))
            },
        )?;
        concatenate(parts)
    }

    /// Searches the segments one after the other for many queries at once.
    fn search_sorted(
        &self,
        queries: Fingerprints<'_>,
        len: usize,
        search: Search<'_>,
    ) -> Result<Matches, Error> {
        let mut parts = Vec::new();
        for start in (0..queries.len()).step_by(len) {
            let part = part_of(queries, &(start..queries.len().min(start + len)));
            let of_segments = self.search_segments(part, search)?;
            let (mut all, most) = candidates(&of_segments);
            let merged = map_ranges(
                part.len(),
                GRAIN,
                search.threads,
                search.cancel,
                || (),
                |(), range| {
                    let first = range.start;
                    self.merge(part_of(part, &range), &of_segments, first, search)
                },
            )?;
            for found in merged {
                parts.push(found.map(|found| found.with_more(std::mem::take(&mut all), most)));
            }
        }
        concatenate(parts)
    }

    fn search_segments(
        &self,
        queries: Fingerprints<'_>,
        search: Search<'_>,
    ) -> Result<Vec<Matches>, Error> {
        let Search {
            within,
            isa,
            threads,
            cancel,
        } = search;
        self.segments
            .iter()
            .map(|segment| segment.search(queries, within, isa, threads, cancel))
            .collect()
    }

    /// What the segments gave for the queries from `first` on, and what the tail holds, without what was removed.
    fn merge(
        &self,
        queries: Fingerprints<'_>,
        of_segments: &[Matches],
        first: usize,
        search: Search<'_>,
    ) -> Result<Found, Error> {
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
        let found = Found::of_near(queries.len(), &near);
        Ok(found.with_more((scanned * queries.len()) as u64, scanned as u64))
    }
}

fn part_of<'a>(queries: Fingerprints<'a>, range: &Range<usize>) -> Fingerprints<'a> {
    let num_words = queries.num_words();
    Fingerprints {
        words: &queries.words[range.start * num_words..range.end * num_words],
        bits: queries.bits,
    }
}

/// Entries compared in all segments, and at most with one query.
fn candidates(of_segments: &[Matches]) -> (u64, u64) {
    let all = of_segments.iter().map(|found| found.num_candidates).sum();
    let most = of_segments.iter().map(|found| found.max_candidates).sum();
    (all, most)
}
