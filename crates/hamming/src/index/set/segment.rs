//! How is an immutable set of fingerprints built and searched?

use std::ops::{ControlFlow, Range};
use std::sync::atomic::AtomicBool;

use crate::distance::Fingerprints;
use crate::index::search::batch::{Pieces, UNSORTED_LEN, most_hits, search_sorted};
use crate::index::search::matches::{Matches, Reach, concatenate};
use crate::index::search::pass::{Hits, Request, search_range};
use crate::index::search::resolve::resolve;
use crate::index::table::build::{Building, Source, build_table};
use crate::index::table::rows::{Postings, Rows};
use crate::index::table::table::Table;
use crate::index::table::words::Words;
use crate::kernels::run_kernel;
use crate::plan::SearchPlan;
use likewise_core::error::{Error, Result, invalid_if};
use likewise_core::isa::Isa;
use likewise_core::parallel::Cancel;

const CHECKED_WORDS: usize = 1 << 20;

/// Tables of the distinct fingerprints of a set, and the rows of each.
#[derive(Debug)]
pub struct Segment {
    pub(crate) plan: SearchPlan,
    pub(crate) tables: Vec<Table>,
    pub(crate) rows: Option<Rows>,
    /// Radii of the tables for each query radius up to the plan's.
    pub(crate) radii: Vec<Vec<Option<u32>>>,
}

impl Segment {
    /// Builds tables for the keys of a plan, about 40 ns per fingerprint; without `rows`, rows are positions.
    pub fn build(
        fingerprints: Fingerprints<'_>,
        rows: Option<&[u32]>,
        plan: SearchPlan,
        building: Building<'_>,
    ) -> Result<Self> {
        fingerprints.check()?;
        check(fingerprints, rows, &plan)?;
        let source = Source { fingerprints, rows };
        let mut tables: Vec<Table> = Vec::new();
        let mut kept_rows = None;
        for (index, key) in plan.keys().iter().enumerate() {
            let num_expected = tables
                .first()
                .map_or(fingerprints.len(), |table| table.num_entries);
            let building = Building {
                with_rows: building.with_rows && index == 0,
                ..building
            };
            let (table, rows) = build_table(source, *key, num_expected, building)?;
            if num_expected != table.num_entries && index > 0 {
                // These are not the codes that the first table was built from.
                return Err(Error::Damaged);
            }
            tables.push(table);
            kept_rows = kept_rows.or(rows);
        }
        Ok(Segment::of_parts(plan, tables, kept_rows))
    }

    pub(crate) fn of_parts(plan: SearchPlan, tables: Vec<Table>, rows: Option<Rows>) -> Self {
        Segment {
            radii: (0..=plan.within)
                .map(|within| plan.radii_at(within))
                .collect(),
            plan,
            tables,
            rows,
        }
    }

    pub fn plan(&self) -> &SearchPlan {
        &self.plan
    }

    pub fn num_distinct(&self) -> usize {
        self.tables.first().map_or(0, |table| table.num_entries)
    }

    /// Number of rows if they are kept, otherwise of distinct fingerprints.
    pub fn len(&self) -> usize {
        self.rows
            .as_ref()
            .map_or(self.num_distinct(), |rows| rows.num_rows)
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Size of the tables and of the rows, in bytes.
    pub fn num_bytes(&self) -> (usize, usize) {
        (
            self.tables.iter().map(Table::num_bytes).sum(),
            self.rows.as_ref().map_or(0, Rows::num_bytes),
        )
    }

    pub(crate) fn largest_table_bytes(&self) -> usize {
        self.tables.iter().map(Table::num_bytes).max().unwrap_or(0)
    }

    /// Appends every fingerprint, row-major, and its row.
    pub(crate) fn copy_rows(&self, codes: &mut Vec<u64>, rows: &mut Vec<u32>) -> Result<()> {
        self.for_each_code(&AtomicBool::new(false), |code, row| {
            codes.extend_from_slice(code);
            rows.extend(row);
        })
    }

    /// Passes every fingerprint to `visit`, in the order of the first table, with each of its rows if they are kept.
    pub(crate) fn for_each_code(
        &self,
        cancel: &AtomicBool,
        visit: impl FnMut(&[u64], Option<u32>),
    ) -> Result<()> {
        match self.plan.bits.div_ceil(64) {
            1 => self.for_each::<1>(cancel, visit),
            2 => self.for_each::<2>(cancel, visit),
            3 => self.for_each::<3>(cancel, visit),
            _ => self.for_each::<4>(cancel, visit),
        }
    }

    fn for_each<const W: usize>(
        &self,
        cancel: &AtomicBool,
        mut visit: impl FnMut(&[u64], Option<u32>),
    ) -> Result<()> {
        let Some(table) = self.tables.first() else {
            return Ok(());
        };
        let row_parts = self.rows.iter().flat_map(Rows::parts);
        for words in table.parts().into_iter().chain(row_parts) {
            check_good(words, cancel)?;
        }
        let mut result = Ok(());
        table.directory.for_each_bucket(|prefix, start, len| {
            result = cancel.check();
            if result.is_err() {
                return ControlFlow::Break(());
            }
            if start + len > table.num_entries {
                result = Err(Error::Damaged);
                return ControlFlow::Break(());
            }
            for rank in start..start + len {
                let code: [u64; W] = table.permutation.invert(&table.entry(prefix, rank));
                match self.rows.as_ref().map(|rows| rows.of_rank(rank)) {
                    None => visit(&code, None),
                    Some(Postings::One(row)) => visit(&code, Some(row)),
                    Some(Postings::Many(all)) => {
                        for &row in all {
                            visit(&code, Some(row));
                        }
                    }
                }
            }
            ControlFlow::Continue(())
        });
        result
    }

    /// Checks all words that are read when they are needed.
    pub(crate) fn verify(&self, cancel: &AtomicBool) -> Result<()> {
        let of_tables = self.tables.iter().flat_map(Table::parts);
        let mut all = of_tables.chain(self.rows.iter().flat_map(Rows::parts));
        all.try_for_each(|words| check_good(words, cancel))
    }

    pub fn largest_bucket(&self) -> usize {
        let mut largest = 0;
        for table in &self.tables {
            table.directory.for_each_bucket(|_, _, len| {
                largest = largest.max(len);
                ControlFlow::Continue(())
            });
        }
        largest
    }
}

fn check(fingerprints: Fingerprints<'_>, rows: Option<&[u32]>, plan: &SearchPlan) -> Result<()> {
    let (bits, len) = (fingerprints.bits, fingerprints.len());
    invalid_if(plan.bits != bits, "plan", || {
        format!("is for {} bits; the fingerprints have {}", plan.bits, bits)
    })?;
    invalid_if(u32::try_from(len).is_err(), "fingerprints", || {
        format!("{len}; at most 4294967295 fit")
    })?;
    if rows.is_some_and(|rows| rows.len() != len) {
        return Err(Error::invalid("rows", "must be one per fingerprint"));
    }
    Ok(())
}

/// Rejects words that have been altered.
fn check_good(words: &Words, cancel: &AtomicBool) -> Result<()> {
    let len = words.as_slice().len();
    for start in (0..len).step_by(CHECKED_WORDS) {
        cancel.check()?;
        if !words.are_good(start..(start + CHECKED_WORDS).min(len)) {
            return Err(Error::Damaged);
        }
    }
    Ok(())
}

/// Number of parts into which a piece of work with too many hits is divided.
const CROWDED_PARTS: usize = 8;

impl Segment {
    /// Returns all fingerprints at distance `within` or less of each query.
    pub fn search(&self, queries: Fingerprints<'_>, reach: Reach<'_>) -> Result<Matches> {
        let threads = reach.run.threads;
        let pieces = Pieces::choose(queries.len(), threads, self.largest_table_bytes());
        self.search_in(pieces, queries, reach)
    }

    pub(crate) fn search_in(
        &self,
        pieces: Pieces,
        queries: Fingerprints<'_>,
        reach: Reach<'_>,
    ) -> Result<Matches> {
        let Reach { within, isa, run } = reach;
        self.plan.check_query(&queries, within)?;
        let request = Request {
            tables: &self.tables,
            radii: &self.radii[within as usize],
            within,
            most_hits: most_hits(pieces.len),
            queries: queries.words,
        };
        let parts = run.map(
            queries.len(),
            pieces.len,
            Hits::default,
            |hits, range| match pieces.are_sorted {
                true => self.search_sorted_part(&request, range, isa, run.cancel, hits),
                false => vec![self.search_part(&request, range, isa, hits)],
            },
        )?;
        concatenate(parts.into_iter().flatten())
    }

    /// Searches a range in the order of each table or, if that finds too much to keep at once, in smaller pieces.
    pub(crate) fn search_sorted_part(
        &self,
        request: &Request<'_>,
        range: Range<usize>,
        isa: Isa,
        cancel: &AtomicBool,
        hits: &mut Hits,
    ) -> Vec<Result<Matches>> {
        hits.clear();
        let num_words = self.plan.bits.div_ceil(64) as usize;
        let (part, out) = (range.clone(), &mut *hits);
        run_kernel!(isa, num_words, search_sorted,
            (request: &Request<'_>, part: Range<usize>, cancel: &AtomicBool, out: &mut Hits));
        if let Err(canceled) = cancel.check() {
            return vec![Err(canceled)];
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
    ) -> Result<Matches> {
        hits.clear();
        let num_queries = range.len();
        let num_words = self.plan.bits.div_ceil(64) as usize;
        let out = &mut *hits;
        run_kernel!(isa, num_words, search_range, (request: &Request<'_>, range: Range<usize>, out: &mut Hits));
        self.found(num_queries, isa, hits)
    }

    fn found(&self, num_queries: usize, isa: Isa, hits: &mut Hits) -> Result<Matches> {
        let num_words = self.plan.bits.div_ceil(64) as usize;
        let found = match &self.rows {
            Some(rows) => {
                let (table, out) = (&self.tables[0], &mut *hits);
                run_kernel!(isa, num_words, resolve, (table: &Table, out: &mut Hits));
                Matches::of_rows(num_queries, hits, rows)?
            }
            None => match num_words {
                1 => Matches::of_codes::<1>(num_queries, hits, &self.tables[0]),
                2 => Matches::of_codes::<2>(num_queries, hits, &self.tables[0]),
                3 => Matches::of_codes::<3>(num_queries, hits, &self.tables[0]),
                _ => Matches::of_codes::<4>(num_queries, hits, &self.tables[0]),
            },
        };
        match hits.is_damaged {
            true => Err(Error::Damaged),
            false => Ok(found),
        }
    }
}
