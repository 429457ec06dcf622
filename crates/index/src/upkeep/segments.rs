//! When and how do rows in memory become segments?

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use likewise_core::parallel::{Cancel, Run, lock};
use likewise_disk::Error as DiskError;
use likewise_disk::priority::at_low_priority;
use likewise_disk::segments::{
    BandPlan, Building, HammingPlan, MIN_ROWS, Piece, RowSource, Segment, SegmentPlan, SourceRow,
    build_segment, next_build, next_worn, unlink_segments,
};
use likewise_disk::store::{Event, LiveSegment, Store};

use crate::error::{Error, Result};
use crate::index::Index;
use crate::keys::Keys;
use crate::load::{open_segment, renew_promoted};
use crate::rules::{Method, Rules};
use crate::shared::Shared;
use crate::state::in_memory::{COLLAPSED, MemoryRows, is_blank};
use crate::state::{Layer, State};

/// Bytes that a build takes, about.
const BUILD_BYTES: usize = 256 << 20;
/// Microseconds that an addition waits per row if the build falls behind: about as long as adding a row takes.
const WAIT_US: u64 = 5;
/// How long an addition waits before it checks whether the build still lags.
const MOST_NAP: Duration = Duration::from_millis(20);
/// Rows without a segment that are better built into one before an index is used than held in memory.
const MANY_ROWS: u32 = 1 << 18;

impl Index {
    /// Starts upkeep in the background if enough rows are in memory or gone.
    pub(crate) fn build_when_due(&self) {
        let shared = &self.shared;
        if shared.stop.load(Ordering::Relaxed) || shared.is_building.load(Ordering::Relaxed) {
            return;
        }
        let (in_memory, flush_rows) = shared.in_memory();
        let (is_full, has_gone) = (in_memory >= flush_rows, shared.is_sweep_due(flush_rows));
        if !(is_full || has_gone) || shared.is_building.swap(true, Ordering::AcqRel) {
            return;
        }
        self.in_background(
            "likewise-upkeep",
            |shared| &shared.is_building,
            move |shared| match shared.keep_up(flush_rows, is_full, has_gone) {
                Err(error) if error.is_damage() => match lock(&shared.writer).as_mut() {
                    Some(store) => shared.changed(store, Err(error), &shared.stop),
                    None => Err(error),
                },
                done => done,
            },
        );
    }

    /// After an addition: waits for a build that falls behind, so that memory grows slowly.
    pub(crate) fn let_build_catch_up(&self, num_added: usize, cancel: &AtomicBool) {
        let shared = &self.shared;
        if !shared.is_building.load(Ordering::Relaxed) {
            return;
        }
        let (in_memory, flush_rows) = shared.in_memory();
        let us_a_row = match in_memory / flush_rows {
            0..2 => return,
            2..4 => WAIT_US,
            _ => 4 * WAIT_US,
        };
        let mut rest = Duration::from_micros(us_a_row * num_added as u64);
        // What was added is: the end of the build, of the index, or a signal only ends the wait.
        while !rest.is_zero()
            && shared.is_building.load(Ordering::Relaxed)
            && !shared.stop.load(Ordering::Relaxed)
            && !cancel.load(Ordering::Relaxed)
        {
            let nap = rest.min(MOST_NAP);
            shared.environment.background.pause(nap);
            rest -= nap;
        }
    }
}

impl Shared {
    /// Builds segments from memory if it is full or half of it is gone, and frees the space of what is gone.
    fn keep_up(&self, flush_rows: u32, is_full: bool, has_gone: bool) -> Result<()> {
        let is_worn = has_gone && self.is_newest_worn(flush_rows)?;
        if is_full || is_worn {
            self.learn_plan()?;
            self.freeze(&mut self.state_mut())?;
            let min_rows = if is_full {
                flush_rows
            } else {
                flush_rows.min(MIN_ROWS)
            };
            self.build_due(min_rows)?;
        }
        match has_gone {
            true => self.sweep(),
            false => Ok(()),
        }
    }

    /// Rows that came since the last segment was begun, and how many of them make one due.
    fn in_memory(&self) -> (u32, u32) {
        let state = self.state();
        let in_memory = match state.layers.last() {
            Some(Layer::Memory(tail)) => tail.num_held(),
            _ => 0,
        };
        (in_memory, self.flush_rows(state.num_held()))
    }

    /// Builds segments, while others go first, until none is due of the rows that are not in the newest tail or the index is closed.
    fn build_due(&self, min_rows: u32) -> Result<()> {
        while let Some(rows) = next_build(&self.finished_pieces()?, min_rows) {
            self.build_behind(rows)?;
        }
        Ok(())
    }

    /// Builds segments again half of whose rows are gone, while others go first.
    pub fn build_worn(&self) -> Result<()> {
        while let Some(rows) = next_worn(&self.finished_pieces()?) {
            self.build_behind(rows)?;
        }
        Ok(())
    }

    fn build_behind(&self, rows: Range<u32>) -> Result<()> {
        let live = at_low_priority("likewise-build", || {
            self.build_files_of(rows.clone(), Run::alone(&self.stop))
        })?;
        self.install(live, &rows, &self.stop)
    }

    /// All layers but the newest one in memory, to which rows still come.
    fn finished_pieces(&self) -> Result<Vec<Piece>> {
        let mut pieces = self.state().pieces()?;
        if pieces.last().is_some_and(|last| !last.is_built) {
            pieces.pop();
        }
        Ok(pieces)
    }

    /// Builds one segment of rows, whose ends are ends of layers, and publishes it.
    pub fn build(&self, rows: Range<u32>, run: Run<'_>) -> Result<()> {
        let live = self.build_files_of(rows.clone(), run)?;
        self.install(live, &rows, run.cancel)
    }

    fn build_files_of(&self, rows: Range<u32>, run: Run<'_>) -> Result<Option<LiveSegment>> {
        let most_rows = {
            let pieces = self.state().pieces()?;
            let inside =
                |piece: &&Piece| piece.rows.start >= rows.start && piece.rows.end <= rows.end;
            // Of others all are gone.
            let inside = pieces.iter().filter(inside);
            inside.map(|piece| piece.num_live).sum()
        };
        let store = self.source.reader()?;
        self.build_files(&store, rows, most_rows, run)
    }

    fn install(
        &self,
        live: Option<LiveSegment>,
        rows: &Range<u32>,
        cancel: &AtomicBool,
    ) -> Result<()> {
        let mut writer = lock(&self.writer);
        let store = writer.as_mut().ok_or(Error::Closed)?;
        let (dropped, replaced) = self.publish(store, live, rows, cancel)?;
        self.note_log(store);
        drop(writer);
        // Freeing the memory of many rows takes a while, so it is done without the lock.
        drop(replaced);
        unlink_segments(&self.segment_dir(), self.files(), &dropped)?;
        Ok(())
    }

    fn build_files(
        &self,
        store: &Store,
        rows: Range<u32>,
        most_rows: u32,
        run: Run<'_>,
    ) -> Result<Option<LiveSegment>> {
        let source = TrueRows {
            store,
            rules: self.rules(),
            last_event: store.last_event(),
            most_rows,
            cancel: run.cancel,
        };
        let building = Building {
            isa: self.isa(),
            run,
            memory_bytes: BUILD_BYTES,
        };
        let dir = self.segment_dir();
        let build = |table_bytes| {
            let plan = segment_plan(self.rules(), table_bytes);
            build_segment(&dir, self.files(), &source, rows.clone(), &plan, building)
        };
        match build(table_bytes(most_rows as usize)) {
            // Wide radii take more.
            Err(likewise_disk::Error::InvalidParameter { name: "memory", .. }) => Ok(build(None)?),
            built => Ok(built?),
        }
    }

    /// Names a built segment in the store, in the place of what it holds; gives the names and layers replaced.
    fn publish(
        &self,
        store: &mut Store,
        live: Option<LiveSegment>,
        rows: &Range<u32>,
        cancel: &AtomicBool,
    ) -> Result<(Vec<String>, Vec<Layer>)> {
        let inside = |other: &Range<u32>| other.start >= rows.start && other.end <= rows.end;
        let dropped: Vec<String> = store
            .segments()?
            .into_iter()
            .filter(|other| inside(&other.rows))
            .map(|other| other.name)
            .collect();
        let dir = self.segment_dir();
        let (events, segment) = match &live {
            Some(live) => {
                let events = store.events_after(live.last_event)?;
                let opened = open_segment(self, store, &dir, live, cancel)?;
                (events, Some(opened.ok_or(Error::Damaged)?))
            }
            None => (Vec::new(), None),
        };
        store.publish(live.as_slice(), &dropped)?;
        self.num_built.fetch_add(1, Ordering::Relaxed);
        let mut state = self.state_mut();
        let layers = &state.layers;
        let first = layers.partition_point(|layer| layer.rows().end <= rows.start);
        let last = first
            + layers[first..]
                .iter()
                .take_while(|layer| inside(&layer.rows()) && !layer.rows().is_empty())
                .count();
        // A layer may be followed by one behind it only: those of the state may have been loaded again meanwhile and lie otherwise.
        let is_covered = rows.end <= state.num_rows()
            && layers
                .get(last)
                .is_none_or(|next| next.rows().start >= rows.end);
        if !is_covered {
            drop(state);
            self.load(store, cancel)?;
            return Ok((dropped, Vec::new()));
        }
        let new = segment.map(|segment| Layer::Segment(Arc::new(segment)));
        let replaced = state.layers.splice(first..last, new).collect();
        self.num_replacements.fetch_add(1, Ordering::AcqRel);
        if state.newest().is_none() {
            // The state was loaded again since the newest rows were set apart.
            let tail = MemoryRows::new(self.rules(), self.plan().as_ref(), rows.end)?;
            state.layers.push(Layer::Memory(Box::new(tail)));
        }
        state.forget_noted(rows);
        let noted = note_events(&mut state, rows, &events)
            .and_then(|()| renew_promoted(self, store, &mut state));
        drop(state);
        self.changed(store, noted, cancel)?;
        Ok((dropped, replaced))
    }

    /// Segments for many rows that have none, so that they need not be held in memory.
    pub fn mend(
        &self,
        store: &mut Store,
        segments: Vec<Arc<Segment>>,
        cancel: &AtomicBool,
    ) -> Result<Vec<Arc<Segment>>> {
        let mut mended = Vec::new();
        let mut end = 0;
        let num_rows = store.num_rows();
        let mut rest = segments.into_iter();
        loop {
            let next = rest.next();
            let start = next
                .as_ref()
                .map_or(num_rows, |segment| segment.rows().start);
            let most_rows = match start - end >= MANY_ROWS {
                true => store.num_records(end..start)?,
                false => 0,
            };
            if most_rows >= MANY_ROWS
                && let Some(live) =
                    self.build_files(store, end..start, most_rows, Run::alone(cancel))?
            {
                let dir = self.segment_dir();
                let segment = open_segment(self, store, &dir, &live, cancel)?;
                store.publish(&[live], &[])?;
                mended.extend(segment.map(Arc::new));
            }
            let Some(segment) = next else {
                return Ok(mended);
            };
            end = segment.rows().end;
            mended.push(segment);
        }
    }

    /// Builds a segment from memory if that is worth its files, so that the next opening reads little.
    pub fn build_last(&self, cancel: &AtomicBool) -> Result<()> {
        self.freeze(&mut self.state_mut())?;
        match next_build(&self.finished_pieces()?, MIN_ROWS) {
            Some(rows) => self.build(rows, Run::alone(cancel)),
            None => Ok(()),
        }
    }
}

/// Lets a state know what events made of rows of a segment that was built before them.
fn note_events(state: &mut State, rows: &Range<u32>, events: &[(u64, Event)]) -> Result<()> {
    for (number, event) in events {
        let Event::Removed {
            row,
            promoted,
            moved,
        } = event;
        if rows.contains(row) {
            state.note_removed(*row)?;
        }
        for &row in promoted.iter().filter(|row| rows.contains(row)) {
            if state.holds(row)? {
                state.promoted.insert(row);
            }
        }
        for &(row, evidence) in moved.iter().filter(|(row, _)| rows.contains(row)) {
            if !state.is_gone(evidence.kept_row) {
                state.note_moved(*number, row, evidence.kept_row)?;
            }
        }
    }
    Ok(())
}

/// Bytes of tables for a fingerprint of a large segment: more would be faster, but most rows stand in such segments.
const TABLE_BYTES: u32 = 22;
/// Rows of a large segment. In small ones few bytes would cost much time, as each entry has more bits left.
const LARGE: usize = 1 << 21;

/// Bytes of tables per fingerprint of a segment with this many rows; `None` for the fastest.
pub fn table_bytes(num_rows: usize) -> Option<u32> {
    (num_rows >= LARGE).then_some(TABLE_BYTES)
}

/// Rows that are read in one transaction, a matter of milliseconds: while one is open, the log cannot restart.
const ROWS_A_STATE: u32 = 1 << 10;

/// The contents of segments by these rules; fingerprints with at most this many bytes of tables each.
pub fn segment_plan(rules: &Rules, table_bytes: Option<u32>) -> SegmentPlan {
    match rules.method {
        Method::Simhash { bits, within } => SegmentPlan {
            hamming: Some(HammingPlan {
                bits,
                within,
                table_bytes,
            }),
            bands: None,
        },
        Method::Minhash {
            num_slots,
            slot_bytes,
            bands,
            rows,
            ..
        } => SegmentPlan {
            hamming: None,
            bands: Some(BandPlan {
                num_slots,
                slot_bytes,
                bands,
                rows,
            }),
        },
    }
}

/// The rows of a store as segments take them.
pub struct TrueRows<'a> {
    /// The truth.
    pub store: &'a Store,
    /// Decides which rows are in tables.
    pub rules: &'a Rules,
    pub last_event: u64,
    /// Most rows of any range that are not gone.
    pub most_rows: u32,
    /// Ends the work when set.
    pub cancel: &'a AtomicBool,
}

impl RowSource for TrueRows<'_> {
    fn identity(&self) -> [u8; 16] {
        self.store.identity
    }

    fn sketch_id(&self) -> &str {
        &self.store.description().sketch_id
    }

    fn last_event(&self) -> u64 {
        self.last_event
    }

    fn most_rows(&self, rows: &Range<u32>) -> u32 {
        self.most_rows.min(rows.end - rows.start)
    }

    fn batch_before(&self, end: u32) -> Result<u64, DiskError> {
        self.store
            .batch_before(end)?
            .ok_or_else(|| DiskError::Damaged {
                reason: format!("no batch of the store ends before row {end}"),
            })
    }

    fn each_row(
        &self,
        rows: Range<u32>,
        each: &mut dyn FnMut(&SourceRow<'_>) -> Result<(), DiskError>,
    ) -> Result<(), DiskError> {
        // What happens between the states comes behind `last_event`, and is replayed.
        let (mut start, mut num_live) = (rows.start, 0);
        while start < rows.end {
            let end = rows.end.min(start.saturating_add(ROWS_A_STATE));
            // A chunk may cover many rows that were dropped.
            start = self.each_row_of_a_state(start..end, rows.end, &mut |row| {
                num_live += u32::from(!row.is_gone);
                each(row)
            })?;
        }
        match num_live <= self.most_rows {
            true => Ok(()),
            // A chunk that is older than it should be has documents that were dropped since.
            false => Err(DiskError::Damaged {
                reason: format!(
                    "the database has {num_live} documents of rows {rows:?} where there are at most {}",
                    self.most_rows
                ),
            }),
        }
    }
}

impl TrueRows<'_> {
    fn each_row_of_a_state(
        &self,
        rows: Range<u32>,
        most: u32,
        each: &mut dyn FnMut(&SourceRow<'_>) -> Result<(), DiskError>,
    ) -> Result<u32, DiskError> {
        let mut next = rows.end;
        let keys = Keys::default();
        self.store.scan(rows.clone(), |chunk| {
            self.cancel.check()?;
            next = chunk.span.end.min(most);
            let rows = rows.start..next;
            for found in chunk.documents() {
                let document = found.document;
                let (verdict, shape) = (document.verdict, document.shape);
                if !rows.contains(&document.row) {
                    continue;
                }
                // One that collapsed and is kept was promoted since.
                let stands = shape & COLLAPSED == 0 || verdict.is_none();
                let class = keys.class_hash(self.rules, shape, document.digest);
                each(&SourceRow {
                    row: document.row,
                    id: document.id,
                    sketch: document.sketch,
                    leader: verdict.map(|evidence| evidence.kept_row),
                    is_gone: found.is_gone,
                    is_short: self.rules.is_short(document.num_features),
                    is_found: stands && !is_blank(shape),
                    class: class.filter(|_| stands),
                    levels: document.levels,
                })?;
            }
            Ok(())
        })?;
        Ok(next)
    }
}
