//! How is a segment searched?

use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};

use super::super::distance::Fingerprints;
use super::super::kernels::run_kernel;
use super::batch::{Pieces, UNSORTED_LEN, most_hits, search_sorted};
use super::hits::Hits;
use super::matches::{Found, Matches, concatenate};
use super::resolve::resolve;
use super::search::{Request, search_range};
use super::segment::Segment;
use super::table::Table;
use likewise_core::error::Error;
use likewise_core::isa::Isa;
use likewise_core::parallel::map_ranges;

/// Parts that a piece of work with too many hits is divided into.
const CROWDED_PARTS: usize = 8;

impl Segment {
    /// All fingerprints at distance `within` or less of each query.
    ///
    /// # Errors
    /// [`Error::InvalidParameter`] where `within` is above the plan's or the widths differ; [`Error::Damaged`] where the tables
    /// contradict themselves; [`Error::Cancelled`].
    pub fn search(
        &self,
        queries: Fingerprints<'_>,
        within: u32,
        isa: Isa,
        threads: usize,
        cancel: &AtomicBool,
    ) -> Result<Matches, Error> {
        let pieces = Pieces::choose(queries.len(), threads, self.largest_table_bytes());
        self.search_in(pieces, queries, within, isa, threads, cancel)
    }

    /// The same in given pieces.
    pub(super) fn search_in(
        &self,
        pieces: Pieces,
        queries: Fingerprints<'_>,
        within: u32,
        isa: Isa,
        threads: usize,
        cancel: &AtomicBool,
    ) -> Result<Matches, Error> {
        self.check_query(&queries, within)?;
        let request = Request {
            tables: &self.tables,
            radii: &self.radii[within as usize],
            within,
            most_hits: most_hits(pieces.len),
            queries: queries.words,
        };
        let parts = map_ranges(
            queries.len(),
            pieces.len,
            threads,
            cancel,
            Hits::default,
            |hits, range| match pieces.are_sorted {
                true => self.search_sorted_part(&request, range, isa, cancel, hits),
                false => vec![self.search_part(&request, range, isa, hits)],
            },
        )?;
        concatenate(parts.into_iter().flatten())
    }

    /// Searches a range in the order of each table, or, where that finds too much to be kept at once, in smaller pieces.
    pub(super) fn search_sorted_part(
        &self,
        request: &Request<'_>,
        range: Range<usize>,
        isa: Isa,
        cancel: &AtomicBool,
        hits: &mut Hits,
    ) -> Vec<Result<Found, Error>> {
        hits.clear();
        let num_words = self.plan.bits().div_ceil(64) as usize;
        let (part, out) = (range.clone(), &mut *hits);
        run_kernel!(isa, num_words, search_sorted,
            (request: &Request<'_>, part: Range<usize>, cancel: &AtomicBool, out: &mut Hits));
        if cancel.load(Ordering::Relaxed) {
            return vec![Err(Error::Cancelled)];
        }
        if !hits.is_crowded {
            return vec![self.found(range.len(), isa, hits)];
        }
        if range.len() <= UNSORTED_LEN {
            return vec![self.search_part(request, range, isa, hits)];
        }
        let len = (range.len() / CROWDED_PARTS).max(UNSORTED_LEN);
        let mut parts = Vec::new();
        for start in range.clone().step_by(len) {
            let piece = start..range.end.min(start + len);
            parts.extend(self.search_sorted_part(request, piece, isa, cancel, hits));
            if matches!(parts.last(), Some(Err(_))) {
                break;
            }
        }
        parts
    }

    fn search_part(
        &self,
        request: &Request<'_>,
        range: Range<usize>,
        isa: Isa,
        hits: &mut Hits,
    ) -> Result<Found, Error> {
        hits.clear();
        let num_queries = range.len();
        let num_words = self.plan.bits().div_ceil(64) as usize;
        let out = &mut *hits;
        run_kernel!(isa, num_words, search_range, (request: &Request<'_>, range: Range<usize>, out: &mut Hits));
        self.found(num_queries, isa, hits)
    }

    /// Rows or codes of what the tables gave.
    fn found(&self, num_queries: usize, isa: Isa, hits: &mut Hits) -> Result<Found, Error> {
        let num_words = self.plan.bits().div_ceil(64) as usize;
        let found = match &self.rows {
            Some(rows) => {
                let (table, out) = (&self.tables[0], &mut *hits);
                run_kernel!(isa, num_words, resolve, (table: &Table, out: &mut Hits));
                Found::of_rows(num_queries, hits, rows)?
            }
            None => match num_words {
                1 => Found::of_codes::<1>(num_queries, hits, &self.tables[0]),
                2 => Found::of_codes::<2>(num_queries, hits, &self.tables[0]),
                3 => Found::of_codes::<3>(num_queries, hits, &self.tables[0]),
                _ => Found::of_codes::<4>(num_queries, hits, &self.tables[0]),
            },
        };
        match hits.is_damaged {
            true => Err(Error::Damaged),
            false => Ok(found),
        }
    }

    fn check_query(&self, queries: &Fingerprints<'_>, within: u32) -> Result<(), Error> {
        queries.check()?;
        if queries.bits != self.plan.bits() {
            return Err(Error::invalid(
                "fingerprints",
                format!(
                    "have {} bits; those searched have {}",
                    queries.bits,
                    self.plan.bits()
                ),
            ));
        }
        if within > self.plan.within() {
            return Err(Error::invalid(
                "within",
                format!(
                    "{within} is above {}, the radius of the plan",
                    self.plan.within()
                ),
            ));
        }
        Ok(())
    }
}
