//! How is a set of several segments and a tail searched?

use std::sync::atomic::AtomicBool;

use super::super::distance::Fingerprints;
use super::matches::{Found, Matches, concatenate};
use super::planes::NearCode;
use super::set::{HammingSet, State};
use crate::error::Error;
use crate::isa::Isa;
use crate::parallel::map_ranges;

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
        if let [segment] = state.segments.as_slice()
            && state.tail.is_empty()
            && state.removed.num_present == 0
        {
            return segment.search(queries, within, isa, threads, cancel);
        }
        let num_words = queries.num_words();
        let grain = queries.len().div_ceil(4 * threads.max(1)).clamp(16, GRAIN);
        let parts = map_ranges(
            queries.len(),
            grain,
            threads,
            cancel,
            || (),
            |(), range| {
                let part = Fingerprints {
                    words: &queries.words[range.start * num_words..range.end * num_words],
                    bits: queries.bits,
                };
                state.search_part(part, within, isa, cancel)
            },
        )?;
        concatenate(parts)
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

impl State {
    fn search_part(
        &self,
        queries: Fingerprints<'_>,
        within: u32,
        isa: Isa,
        cancel: &AtomicBool,
    ) -> Result<Found, Error> {
        let mut near = Vec::new();
        let mut num_candidates = 0;
        for segment in &self.segments {
            let matches = segment.search(queries, within, isa, 1, cancel)?;
            num_candidates += matches.num_candidates;
            for (query, bounds) in (0..).zip(matches.offsets.windows(2)) {
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
            planes.search(queries.words, within, isa, &mut near);
            num_candidates += (planes.len() * queries.len()) as u64;
        }
        if self.removed.num_present > 0 {
            near.retain(|code| !self.removed.contains(code.row));
        }
        Ok(Found::of_near(queries.len(), &near, num_candidates))
    }
}
