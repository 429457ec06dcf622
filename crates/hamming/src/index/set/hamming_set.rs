//! How are fingerprints inserted and removed during searches?
//!
//! New fingerprints are collected in a tail that is scanned. A full tail becomes a segment, and segments of about the
//! same size are merged, so there are few of them and a fingerprint is moved a logarithmic number of times (Bentley,
//! Saxe: Decomposable searching problems, 1980). A removal sets a bit; merging drops the marked fingerprints. A search
//! uses the state at its start; changes never wait for searches.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};

use super::segment::Segment;
use super::state::{Removed, SegmentParts, SetParts, State, purge, table_of, table_parts};
use crate::distance::Fingerprints;
use crate::index::search::scanned::{Planes, check_rows};
use crate::index::table::build::Building;
use crate::index::table::table::Table;
use crate::plan::{MAX_INDEXED, SearchPlan};
use likewise_core::error::{Error, Result, invalid_if};
use likewise_core::parallel::lock;

/// Maximum length of the tail: it costs each query at most half a microsecond.
const TAIL: usize = 4096;
/// Fingerprints per piece of a set that is only scanned.
const SCANNED: usize = 1 << 16;
/// A new segment is merged with the previous one unless that is more than this many times larger.
const RATIO: usize = 4;
/// Maximum number of bytes for sorting when segments are merged.
const MERGE_BYTES: usize = 1 << 30;

/// Fingerprints by row, searched by distance. Any thread may insert and remove at any time.
#[derive(Debug)]
pub struct HammingSet {
    pub(crate) plan: SearchPlan,
    state: RwLock<State>,
    /// Held while the set is changed.
    change: Mutex<()>,
    /// Maximum number of fingerprints that a query was compared with so far.
    most_candidates: AtomicU64,
}

#[derive(Debug, Clone, Default, PartialEq)]
pub struct SetFacts {
    pub num_rows: usize,
    /// Number of removed rows that still take space.
    pub num_removed: usize,
    pub segment_rows: Vec<usize>,
    pub segment_distinct: Vec<usize>,
    pub num_scanned: usize,
    /// Size of tables and row numbers, in bytes.
    pub table_bytes: usize,
    /// Size of the row numbers, in bytes.
    pub row_bytes: usize,
    /// One more than the greatest row ever inserted.
    pub next_row: u64,
    pub largest_bucket: usize,
    /// Most fingerprints that one query was compared with so far; for several segments, an upper bound.
    pub most_candidates: u64,
}

impl HammingSet {
    pub fn new(plan: SearchPlan) -> Result<Self> {
        Fingerprints::new(&[], plan.bits).check()?;
        Ok(HammingSet::of_state(
            plan,
            State {
                segments: Vec::new(),
                tail: Vec::new(),
                removed: Arc::default(),
                next_row: 0,
                num_rows: 0,
            },
        ))
    }

    pub(crate) fn of_state(plan: SearchPlan, state: State) -> Self {
        HammingSet {
            plan,
            state: RwLock::new(state),
            change: Mutex::new(()),
            most_candidates: AtomicU64::new(0),
        }
    }

    pub fn plan(&self) -> &SearchPlan {
        &self.plan
    }

    /// Returns the state, which a panic leaves consistent: each change is one assignment.
    pub(crate) fn state(&self) -> State {
        self.state
            .read()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    fn changing(&self) -> MutexGuard<'_, ()> {
        lock(&self.change)
    }

    pub(crate) fn update(&self, change: impl FnOnce(&mut State)) {
        change(&mut self.state.write().unwrap_or_else(PoisonError::into_inner));
        #[cfg(test)]
        crate::index::concurrency_tests::linger();
    }

    pub fn len(&self) -> usize {
        let state = self.state();
        state.num_rows - state.removed.num_present
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// One more than the greatest row ever inserted.
    pub fn next_row(&self) -> u64 {
        self.state().next_row
    }

    /// Returns the sizes of the set. Cost: reads the directories of all tables to find the largest bucket.
    pub fn facts(&self) -> SetFacts {
        let state = self.state();
        let bytes: Vec<(usize, usize)> = state.segments.iter().map(|s| s.num_bytes()).collect();
        SetFacts {
            num_rows: state.num_rows - state.removed.num_present,
            num_removed: state.removed.num_present,
            segment_rows: state.segments.iter().map(|s| s.len()).collect(),
            segment_distinct: state.segments.iter().map(|s| s.num_distinct()).collect(),
            num_scanned: state.tail.iter().map(|planes| planes.len()).sum(),
            table_bytes: bytes.iter().map(|(tables, _)| tables).sum(),
            row_bytes: bytes.iter().map(|(_, rows)| rows).sum(),
            next_row: state.next_row,
            largest_bucket: state
                .segments
                .iter()
                .map(|s| s.largest_bucket())
                .max()
                .unwrap_or(0),
            most_candidates: self.most_candidates.load(Ordering::Relaxed),
        }
    }

    /// Updates the maximum number of candidates after a search.
    pub(crate) fn note_candidates(&self, most: u64) {
        self.most_candidates.fetch_max(most, Ordering::Relaxed);
    }

    /// Inserts fingerprints under `rows` above all earlier ones, or the next ones; returns the last + 1. The caller
    /// that triggers a merge does it: about a microsecond per fingerprint.
    pub fn insert(
        &self,
        fingerprints: Fingerprints<'_>,
        rows: Option<&[u32]>,
        building: Building<'_>,
    ) -> Result<u64> {
        fingerprints.check()?;
        invalid_if(fingerprints.bits != self.plan.bits, "fingerprints", || {
            format!(
                "have {} bits; the set has {}",
                fingerprints.bits, self.plan.bits
            )
        })?;
        let _changing = self.changing();
        let state = self.state();
        invalid_if(
            state.segments.iter().any(|segment| segment.rows.is_none()),
            "fingerprints",
            || "the set was built without rows and stays as it is",
        )?;
        let len = fingerprints.len();
        let end = match rows.and_then(<[u32]>::last) {
            Some(&last) => u64::from(last) + 1,
            None => state.next_row + len as u64,
        };
        if end > u64::from(u32::MAX) {
            return Err(Error::invalid("rows", "reach 4294967295, the limit"));
        }
        let following: Vec<u32>;
        let rows = match rows {
            Some(rows) => rows,
            None => {
                following = (state.next_row as u32..end as u32).collect();
                &following
            }
        };
        check_rows(rows, len, state.next_row)?;
        if self.plan.keys().is_empty() || state.tail_len() + len <= TAIL {
            drop(state);
            self.append(fingerprints, rows, end);
            return Ok(end);
        }
        self.merge(state, fingerprints, rows, end, building)?;
        Ok(end)
    }

    fn append(&self, fingerprints: Fingerprints<'_>, rows: &[u32], end: u64) {
        let num_words = fingerprints.num_words();
        let capacity = match self.plan.keys().is_empty() {
            true => SCANNED,
            false => TAIL,
        };
        self.update(|state| {
            let mut done = 0;
            while done < rows.len() {
                if state.tail.last().is_none_or(|last| last.room() == 0) {
                    let planes = Planes::with_capacity(capacity, num_words);
                    state.tail.push(Arc::new(planes));
                }
                if let Some(last) = state.tail.last_mut() {
                    let upto = rows.len().min(done + last.room());
                    // Copied only while a search holds it.
                    Arc::make_mut(last).extend(
                        &fingerprints.words[done * num_words..upto * num_words],
                        &rows[done..upto],
                    );
                    done = upto;
                }
            }
            state.skip(rows);
            state.num_rows += rows.len();
            state.next_row = end;
        });
    }

    pub(crate) fn restore_tail(&self, codes: &[u64], rows: &[u32]) {
        let state = self.state();
        let fingerprints = Fingerprints::new(codes, self.plan.bits);
        self.append(fingerprints, rows, state.next_row);
        // They were counted before, and the rows between them are marked.
        self.update(|now| {
            now.removed = state.removed;
            now.num_rows = state.num_rows;
        });
    }

    /// Builds a segment from new rows, the tail, and the segments that are not much larger.
    fn merge(
        &self,
        state: State,
        fingerprints: Fingerprints<'_>,
        new_rows: &[u32],
        end: u64,
        building: Building<'_>,
    ) -> Result<()> {
        let mut size = state.tail_len() + new_rows.len();
        let mut kept = state.segments.len();
        while kept > 0 && state.segments[kept - 1].len() < RATIO * size {
            kept -= 1;
            size += state.segments[kept].len();
        }
        let mut codes = Vec::with_capacity(size * fingerprints.num_words());
        let mut rows = Vec::with_capacity(size);
        for segment in &state.segments[kept..] {
            segment.copy_rows(&mut codes, &mut rows)?;
        }
        for planes in &state.tail {
            planes.copy_codes(&mut codes);
            rows.extend_from_slice(planes.rows());
        }
        let num_purged = purge(
            &mut codes,
            &mut rows,
            &state.removed,
            fingerprints.num_words(),
        );
        codes.extend_from_slice(fingerprints.words);
        rows.extend_from_slice(new_rows);
        let all = Fingerprints::new(&codes, fingerprints.bits);
        let building = Building {
            with_rows: true,
            memory_bytes: building.memory_bytes.max(MERGE_BYTES),
            ..building
        };
        let segment = Segment::build(all, Some(&rows), self.plan.clone(), building)?;
        self.update(|state| {
            state.segments.truncate(kept);
            state.segments.push(Arc::new(segment));
            state.tail.clear();
            if num_purged > 0 {
                Arc::make_mut(&mut state.removed).num_present -= num_purged;
            }
            state.skip(new_rows);
            state.num_rows = state.num_rows + new_rows.len() - num_purged;
            state.next_row = end;
        });
        Ok(())
    }

    /// Checks all of the tables now, instead of each block when it is first read.
    pub fn verify(&self, cancel: &AtomicBool) -> Result<()> {
        let state = self.state();
        let mut segments = state.segments.iter();
        segments.try_for_each(|segment| segment.verify(cancel))
    }

    /// Returns 1 for each of these rows that was inserted and not removed since, otherwise 0.
    #[must_use]
    pub fn holds(&self, rows: &[u32]) -> Vec<u8> {
        let state = self.state();
        let is_held = |&row: &u32| u64::from(row) < state.next_row && !state.removed.contains(row);
        rows.iter().map(|row| u8::from(is_held(row))).collect()
    }

    /// Returns the set as plain data; tables are shared, not copied.
    pub fn parts(&self) -> SetParts {
        let state = self.state();
        let mut parts = SetParts {
            plan: self.plan().clone(),
            segments: state
                .segments
                .iter()
                .map(|segment| SegmentParts {
                    tables: segment.tables.iter().map(table_parts).collect(),
                    rows: segment.rows.clone(),
                })
                .collect(),
            tail_codes: Vec::new(),
            tail_rows: Vec::new(),
            removed: state.removed.bits.clone(),
            num_removed_present: state.removed.num_present,
            next_row: state.next_row,
        };
        for planes in &state.tail {
            planes.copy_codes(&mut parts.tail_codes);
            parts.tail_rows.extend_from_slice(planes.rows());
        }
        parts
    }

    pub fn of_parts(parts: SetParts) -> Result<Self> {
        let bits = parts.plan.bits;
        let mut segments = Vec::new();
        let mut num_rows = parts.tail_rows.len();
        for segment in parts.segments {
            if segment.tables.len() != parts.plan.keys().len() {
                return Err(Error::Damaged);
            }
            let tables = parts
                .plan
                .keys()
                .iter()
                .zip(segment.tables)
                .map(|(key, table)| table_of(*key, bits, table))
                .collect::<Result<Vec<Table>>>()?;
            let num_entries = tables.first().map_or(0, |table| table.num_entries);
            if tables.iter().any(|table| table.num_entries != num_entries) {
                return Err(Error::Damaged);
            }
            if segment
                .rows
                .as_ref()
                .is_some_and(|rows| !rows.fit(num_entries))
            {
                return Err(Error::Damaged);
            }
            let segment = Segment::of_parts(parts.plan.clone(), tables, segment.rows);
            num_rows += segment.len();
            segments.push(Arc::new(segment));
        }
        let num_words = bits.div_ceil(64) as usize;
        let tail_fits = parts.tail_codes.len() == parts.tail_rows.len() * num_words
            && check_rows(&parts.tail_rows, parts.tail_rows.len(), 0).is_ok();
        let last_row = parts.tail_rows.last().map_or(0, |&row| u64::from(row) + 1);
        if !tail_fits
            || last_row > parts.next_row
            || parts.next_row > u64::from(u32::MAX)
            || parts.num_removed_present > num_rows
        {
            return Err(Error::Damaged);
        }
        let set = HammingSet::of_state(
            parts.plan,
            State {
                segments,
                tail: Vec::new(),
                removed: Arc::new(Removed {
                    bits: parts.removed,
                    num_present: parts.num_removed_present,
                }),
                next_row: parts.next_row,
                num_rows,
            },
        );
        set.restore_tail(&parts.tail_codes, &parts.tail_rows);
        Ok(set)
    }

    /// Removes rows; returns how many of them were present. Absent and removed rows are ignored.
    pub fn remove(&self, rows: &[u32]) -> Result<usize> {
        let _changing = self.changing();
        let state = self.state();
        if state.segments.iter().any(|segment| segment.rows.is_none()) {
            return Err(Error::invalid("rows", "the set was built without rows"));
        }
        let mut num_removed = 0;
        self.update(|state| {
            let next_row = state.next_row;
            let removed = Arc::make_mut(&mut state.removed);
            for &row in rows.iter().filter(|&&row| u64::from(row) < next_row) {
                num_removed += usize::from(removed.insert(row));
            }
            removed.num_present += num_removed;
        });
        Ok(num_removed)
    }
}

impl HammingSet {
    /// Builds a set as one segment; `rows` must ascend, and without them, rows are the positions.
    pub fn build(
        fingerprints: Fingerprints<'_>,
        rows: Option<&[u32]>,
        plan: SearchPlan,
        building: Building<'_>,
    ) -> Result<Self> {
        let len = fingerprints.len();
        invalid_if(len as u64 > MAX_INDEXED, "fingerprints", || {
            format!("{len} rows; one index holds at most {MAX_INDEXED}")
        })?;
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
        set.update(|state| {
            state.num_rows = segment.len();
            state.next_row = last.map_or(len as u64, |&last| u64::from(last) + 1);
            state.segments.push(Arc::new(segment));
        });
        Ok(set)
    }
}
