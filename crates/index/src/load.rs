//! How is the state loaded from the store and its segments?

use likewise_core::parallel::{Cancel, Run, lock};
use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use likewise_disk::segments::{Expected, Segment};
use likewise_disk::store::{Changed, DocumentRow, Event, LiveSegment, Store};

use crate::decide::holder::Holder;
use crate::decide::lookup::Lookup;
use crate::error::Result;
use crate::shared::Shared;
use crate::state::in_memory::{COLLAPSED, MemoryRows, is_blank};
use crate::state::promoted::{PromotedTables, building};
use crate::state::{Layer, State};

/// Name of the attachment of an index that a move filled.
const MOVED: &str = "moved";
/// Number of newest rows from whose fingerprints the plan is chosen.
const NUM_LEARNED: u32 = 10_000;

/// Segments that could be opened, and the names of those that could not.
pub struct Opened {
    /// In order of their rows.
    pub segments: Vec<Arc<Segment>>,
    /// Damaged, missing or stale.
    pub bad: Vec<String>,
}

/// Opens the live segments.
pub fn open_segments(shared: &Shared, store: &Store, cancel: &AtomicBool) -> Result<Opened> {
    let mut opened = Opened {
        segments: Vec::new(),
        bad: Vec::new(),
    };
    let dir = shared.segment_dir();
    let all = store.segments()?;
    // A name that is not live any more never is again.
    lock(&shared.avoided).retain(|name| all.iter().any(|live| live.name == *name));
    for live in all {
        if lock(&shared.avoided).contains(&live.name) {
            opened.bad.push(live.name);
            continue;
        }
        let Some(batch) = last_batch(store, &live)? else {
            opened.bad.push(live.name);
            continue;
        };
        let segment = open_built(shared, store, &dir, &live, batch, cancel);
        let end = opened
            .segments
            .last()
            .map_or(0, |last: &Arc<Segment>| last.rows().end);
        match segment {
            Ok(segment) if segment.rows().start >= end => {
                opened.segments.push(Arc::new(segment));
            }
            Err(error) if error.is_cancelled() => return Err(error),
            _ => opened.bad.push(live.name),
        }
    }
    Ok(opened)
}

/// Opens one segment; `None` if it was built from other rows than the store has.
pub fn open_segment(
    shared: &Shared,
    store: &Store,
    dir: &std::path::Path,
    live: &LiveSegment,
    cancel: &AtomicBool,
) -> Result<Option<Segment>> {
    match last_batch(store, live)? {
        Some(batch) => open_built(shared, store, dir, live, batch, cancel).map(Some),
        None => Ok(None),
    }
}

/// Identity of the batch that a segment ends with; `None` if it was built from other rows than the store has.
fn last_batch(store: &Store, live: &LiveSegment) -> Result<Option<u64>> {
    match live.rows.end <= store.num_rows() {
        true => Ok(store.batch_before(live.rows.end)?),
        false => Ok(None),
    }
}

fn open_built(
    shared: &Shared,
    store: &Store,
    dir: &std::path::Path,
    live: &LiveSegment,
    batch: u64,
    cancel: &AtomicBool,
) -> Result<Segment> {
    let expected = Expected {
        identity: store.identity,
        sketch_id: &store.description().sketch_id,
        batch,
    };
    Ok(Segment::open(
        dir,
        shared.files(),
        live,
        &expected,
        false,
        cancel,
    )?)
}

/// The rows of a range that are not gone, in memory.
pub fn load_rows(
    shared: &Shared,
    store: &Store,
    rows: std::ops::Range<u32>,
    cancel: &AtomicBool,
) -> Result<MemoryRows> {
    let mut tail = MemoryRows::new(shared.rules(), shared.plan().as_ref(), rows.start)?;
    extend_rows(shared, store, &mut tail, rows, cancel)?;
    Ok(tail)
}

/// Appends rows of the store that are not gone to a tail that ends before them.
pub fn extend_rows(
    shared: &Shared,
    store: &Store,
    tail: &mut MemoryRows,
    rows: std::ops::Range<u32>,
    cancel: &AtomicBool,
) -> Result<()> {
    if rows.is_empty() {
        return Ok(());
    }
    let mut keys = shared.keys.clone();
    let rules = *shared.rules();
    // The features of a short document's digest are not in the chunks.
    let mut digests: VecDeque<(u32, u128)> = VecDeque::new();
    if rules.is_distance_only() {
        let mut short = Vec::new();
        store.scan(rows.clone(), |chunk| {
            let found = chunk.documents().filter(|of| !of.is_gone);
            let found = found.map(|of| of.document);
            let found =
                found.filter(|of| rows.contains(&of.row) && rules.is_short(of.num_features));
            short.extend(found.map(|of| of.row));
            Ok(())
        })?;
        let state = State::default();
        let mut lookup = shared.lookup(&state, store);
        for row in short {
            digests.push_back((row, lookup.stored_digest(row)?));
        }
    }
    store.scan(rows.clone(), |chunk| {
        cancel.check()?;
        let found = chunk.documents();
        let found = found.filter(|of| rows.contains(&of.document.row) && !of.is_gone);
        let documents = found.map(|of| {
            let short = digests.pop_front_if(|(row, _)| *row == of.document.row);
            DocumentRow {
                digest: short.map_or(of.document.digest, |(_, digest)| digest),
                ..of.document
            }
        });
        tail.extend(
            &rules,
            &mut keys,
            documents,
            building(shared.isa(), Run::alone(cancel)),
        )
        .map_err(likewise_disk::Error::from)
    })?;
    tail.end_at(rows.end);
    Ok(())
}

pub fn load_state(
    shared: &Shared,
    store: &Store,
    segments: Vec<Arc<Segment>>,
    cancel: &AtomicBool,
) -> Result<State> {
    let mut state = State::default();
    let num_rows = store.num_rows();
    let mut newest = Vec::new();
    if shared.rules().zero_distance().is_some() {
        store.scan(num_rows.saturating_sub(NUM_LEARNED)..num_rows, |chunk| {
            newest.extend_from_slice(&chunk.sketches);
            Ok(())
        })?;
    }
    shared.learn_plan_of(&newest)?;
    let mut end = 0;
    for segment in segments {
        let rows = segment.rows();
        if rows.start > end {
            let tail = load_rows(shared, store, end..rows.start, cancel)?;
            // Between segments all rows may be gone.
            if tail.num_held() > 0 {
                state.layers.push(Layer::Memory(Box::new(tail)));
            }
        }
        end = rows.end;
        state.layers.push(Layer::Segment(segment));
    }
    let tail = load_rows(shared, store, end..num_rows, cancel)?;
    state.layers.push(Layer::Memory(Box::new(tail)));
    state.expired_below = store.position.expired_below;
    state.last_event = store.position.last_event;
    state.is_moved = store.attached(MOVED)?.is_some();
    state.swept = store.swept()?;
    state.droppings = store.droppings();
    note_changes(shared, store, &mut state)?;
    Ok(state)
}

/// Lets a new state know what became of documents since they were added, as far as segments do not.
fn note_changes(shared: &Shared, store: &Store, state: &mut State) -> Result<()> {
    let num_rows = store.num_rows();
    let mut changes = Vec::new();
    store.changes(|changed| {
        if changed.row >= num_rows {
            return Err(likewise_disk::Error::Damaged {
                reason: format!(
                    "the database is damaged: what change {} is of is missing",
                    changed.row
                ),
            });
        }
        changes.push(changed);
        Ok(())
    })?;
    let mut newly_promoted = Vec::new();
    for Changed {
        row,
        is_gone,
        verdict,
    } in changes
    {
        if row < state.expired_below || !state.holds(row)? {
            continue;
        }
        let segment = match state.layer_of(row) {
            Some(Layer::Segment(segment)) => Some(segment),
            // What is in memory was read as it is now.
            _ => None,
        };
        match (is_gone, verdict) {
            (true, _) => {
                state.gone.insert(row);
            }
            (false, Some(Some(evidence))) if segment.is_some() => {
                state.moved.entry(evidence.kept_row).or_default().push(row);
            }
            // A segment that knows that it is kept finds it.
            (false, Some(None)) => {
                let is_known = match segment {
                    Some(segment) => segment.is_kept(row)?,
                    None => false,
                };
                if !is_known {
                    state.promoted.insert(row);
                    newly_promoted.push(row);
                }
            }
            _ => {}
        }
    }
    add_promoted(shared, store, state, &newly_promoted)
}

/// Lets a state know of events, which follow those it knows.
pub fn apply_events(
    shared: &Shared,
    store: &Store,
    state: &mut State,
    events: &[(u64, Event)],
) -> Result<()> {
    let mut newly_promoted = Vec::new();
    for (number, event) in events {
        state.last_event = *number;
        match event {
            Event::Removed {
                row,
                promoted,
                moved,
            } => {
                state.note_removed(*row)?;
                for &row in promoted {
                    if !state.holds(row)? {
                        // Removed, too, and dropped since.
                        continue;
                    }
                    state.promoted.insert(row);
                    if let Some(tail) = state.memory_of_mut(row) {
                        tail.set_verdict(row, None);
                    }
                    newly_promoted.push(row);
                }
                for &(row, evidence) in moved {
                    if let Some(tail) = state.memory_of_mut(row) {
                        tail.set_verdict(row, Some(evidence));
                    }
                    state.note_moved(*number, row, evidence.kept_row)?;
                }
            }
        }
    }
    newly_promoted.retain(|&row| !state.is_gone(row));
    add_promoted(shared, store, state, &newly_promoted)
}

/// Adds promoted rows to tables if no table finds them.
pub fn add_promoted(shared: &Shared, store: &Store, state: &mut State, rows: &[u32]) -> Result<()> {
    for &row in rows {
        let mut promoted_tables = std::mem::take(&mut state.promoted_tables);
        let mut lookup = shared.lookup(state, store);
        let added = match lookup.needs_table(row) {
            Ok(true) => lookup.insert_promoted(&mut promoted_tables, row, shared),
            Ok(false) => Ok(()),
            Err(error) => Err(error),
        };
        drop(lookup);
        state.promoted_tables = promoted_tables;
        added?;
    }
    Ok(())
}

/// Builds the tables of promoted documents again after layers changed, which may contain them now.
pub fn renew_promoted(shared: &Shared, store: &Store, state: &mut State) -> Result<()> {
    if state.promoted_tables.is_empty() {
        return Ok(());
    }
    let promoted_tables = std::mem::take(&mut state.promoted_tables);
    let mut rows = Vec::new();
    for &row in promoted_tables.rows().iter().chain(promoted_tables.blank()) {
        // Of one that was gone before its segment was built nothing else is noted.
        if !state.is_gone(row) && state.holds(row)? {
            rows.push(row);
        }
    }
    add_promoted(shared, store, state, &rows)
}

impl Lookup<'_> {
    /// Whether a promoted row is in no table.
    fn needs_table(&mut self, row: u32) -> Result<bool> {
        let known = self.row(row)?;
        let (collapsed, is_blank) = (known.shape & COLLAPSED != 0, is_blank(known.shape));
        match self.state.layer_of(row) {
            // Empty texts are found by their class alone.
            Some(Layer::Segment(segment)) if !is_blank => Ok(!segment.is_found(row)?),
            _ => Ok(collapsed),
        }
    }

    /// Adds a promoted row to the tables.
    pub fn insert_promoted(
        &mut self,
        promoted_tables: &mut PromotedTables,
        row: u32,
        holder: &dyn Holder,
    ) -> Result<()> {
        let rules = *self.rules();
        let known = self.row(row)?;
        let (sketch, shape) = (known.sketch.to_vec(), known.shape & !COLLAPSED);
        let (is_blank, levels) = (is_blank(known.shape), known.levels.to_vec());
        let digest = match rules.is_distance_only() {
            true => 0,
            false => self.digest_of(row)?,
        };
        let mut keys = self.keys.clone();
        let class = keys.class_hash(&rules, shape, digest);
        let isa = self.sketching.isa;
        if is_blank {
            promoted_tables.insert_blank(row, class);
            return Ok(());
        }
        promoted_tables.insert(
            &rules,
            holder.plan().as_ref(),
            &mut keys,
            row,
            class,
            &sketch,
            &levels,
            isa,
        )?;
        Ok(())
    }
}
