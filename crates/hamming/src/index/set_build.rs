//! How does a set begin that is known from the start?

use std::sync::Arc;

use super::super::distance::Fingerprints;
use super::super::plan::{MAX_INDEXED, SearchPlan};
use super::build::Codes;
use super::planes::check_rows;
use super::segment::{Building, Segment};
use super::set::HammingSet;
use likewise_core::error::Error;

impl HammingSet {
    /// A set of fingerprints known from the start, in one segment. `rows`, where given, ascend; else they are the positions.
    ///
    /// # Errors
    /// As [`Segment::build`]; [`Error::InvalidParameter`] where rows do not ascend or are more than [`MAX_INDEXED`].
    pub fn build(
        fingerprints: Fingerprints<'_>,
        rows: Option<&[u32]>,
        plan: SearchPlan,
        building: Building<'_>,
    ) -> Result<Self, Error> {
        let len = fingerprints.len();
        if len as u64 > MAX_INDEXED {
            return Err(Error::invalid(
                "fingerprints",
                format!("{len} rows; one index holds at most {MAX_INDEXED}"),
            ));
        }
        let set = HammingSet::new(plan.clone())?;
        if plan.keys().is_empty() {
            set.insert(fingerprints, rows, building)?;
            return Ok(set);
        }
        if let Some(rows) = rows {
            check_rows(rows, fingerprints.len(), 0)?;
        }
        let segment = Segment::build(fingerprints, rows, plan, building)?;
        if let Some(rows) = rows {
            set.update(|state| state.skip(rows));
        }
        let last = rows.and_then(<[u32]>::last);
        set.begin_with(
            segment,
            last.map_or(len as u64, |&last| u64::from(last) + 1),
        );
        Ok(set)
    }

    /// As [`build`](Self::build) of fingerprints that are read for each table of the plan, which has one at least, and never held as a whole.
    ///
    /// # Errors
    /// As [`build`](Self::build), and those of `codes`; [`Error::Damaged`] where they are not the same each time.
    pub fn build_of(
        codes: &dyn Codes,
        plan: SearchPlan,
        building: Building<'_>,
    ) -> Result<Self, Error> {
        let len = codes.len() as u64;
        if plan.keys().is_empty() || len > MAX_INDEXED {
            return Err(Error::invalid(
                "plan",
                "must have a key, and rows fit an index",
            ));
        }
        let segment = Segment::build_of(codes, plan.bits(), None, plan.clone(), building)?;
        let set = HammingSet::new(plan)?;
        set.begin_with(segment, len);
        Ok(set)
    }

    fn begin_with(&self, segment: Segment, next_row: u64) {
        self.update(|state| {
            state.num_rows = segment.len();
            state.next_row = next_row;
            state.segments.push(Arc::new(segment));
        });
    }
}
