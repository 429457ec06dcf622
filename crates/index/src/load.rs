//! How does an index come to know what the truth and its segments hold?

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use likewise_disk::segments::{Expected, Segment};
use likewise_disk::store::{Event, LiveSegment, Store};

use crate::error::Error;
use crate::late::{Late, building};
use crate::look::Looker;
use crate::shared::{Shared, lock};
use crate::state::{Layer, State};
use crate::tail::{COLLAPSED, Tail, TailRow};

/// Newest rows whose fingerprints tell how those to come are searched best.
const NUM_LEARNED: u32 = 10_000;

/// Segments that could be opened, and the names of those that could not.
pub struct Opened {
    /// One behind the other where nothing is missing between.
    pub segments: Vec<Arc<Segment>>,
    /// Damaged, missing or stale.
    pub bad: Vec<String>,
}

/// Opens the live segments.
///
/// # Errors
/// Those of the store; [`Error::Disk`] where it was cancelled.
pub fn open_segments(shared: &Shared, store: &Store, cancel: &AtomicBool) -> Result<Opened, Error> {
    let mut opened = Opened {
        segments: Vec::new(),
        bad: Vec::new(),
    };
    let dir = shared.segment_dir();
    for live in store.segments()? {
        if lock(&shared.avoided).contains(&live.name) {
            opened.bad.push(live.name);
            continue;
        }
        let segment = open_segment(shared, store, &dir, &live, cancel);
        let end = opened
            .segments
            .last()
            .map_or(0, |last: &Arc<Segment>| last.rows().end);
        match segment {
            Ok(Some(segment)) if segment.rows().start >= end => {
                opened.segments.push(Arc::new(segment));
            }
            Err(error) if error.is_cancelled() => return Err(error),
            _ => opened.bad.push(live.name),
        }
    }
    Ok(opened)
}

/// Opens one segment; none where the truth has other rows than it was built of.
pub fn open_segment(
    shared: &Shared,
    store: &Store,
    dir: &std::path::Path,
    live: &LiveSegment,
    cancel: &AtomicBool,
) -> Result<Option<Segment>, Error> {
    if live.rows.end > store.num_rows() {
        return Ok(None);
    }
    let Some(batch) = store.batch_before(live.rows.end)? else {
        return Ok(None);
    };
    let expected = Expected {
        identity: store.identity(),
        sketch_id: &store.description().sketch_id,
        batch,
    };
    Ok(Some(Segment::open(
        dir,
        shared.files(),
        live,
        &expected,
        false,
        cancel,
    )?))
}

/// The rows of a range in memory.
///
/// # Errors
/// Those of the store.
pub fn load_tail(
    shared: &Shared,
    store: &Store,
    rows: std::ops::Range<u32>,
    cancel: &AtomicBool,
) -> Result<Tail, Error> {
    let mut tail = Tail::new(shared.rules(), shared.plan().as_ref(), rows.start)?;
    extend_tail(shared, store, &mut tail, rows, cancel)?;
    Ok(tail)
}

/// Appends rows of the store to a tail that ends before them.
///
/// # Errors
/// Those of the store.
pub fn extend_tail(
    shared: &Shared,
    store: &Store,
    tail: &mut Tail,
    rows: std::ops::Range<u32>,
    cancel: &AtomicBool,
) -> Result<(), Error> {
    if rows.is_empty() {
        return Ok(());
    }
    let mut keys = shared.keys.clone();
    let rules = *shared.rules();
    let bytes = rules.sketch_bytes();
    // What a short document's digest is made of stands elsewhere than in the chunks.
    let mut digests: VecDeque<(u32, u128)> = VecDeque::new();
    if rules.is_distance_only() {
        let mut short = Vec::new();
        store.scan(rows.clone(), |chunk| {
            for (row, &num) in chunk.rows().zip(chunk.num_features()) {
                if rows.contains(&row) && rules.is_short(num) {
                    short.push(row);
                }
            }
            Ok(())
        })?;
        let state = State::default();
        let mut looker = shared.looker(&state, store);
        for row in short {
            digests.push_back((row, looker.stored_digest(row)?));
        }
    }
    store.scan(rows.clone(), |chunk| {
        if cancel.load(Ordering::Relaxed) {
            return Err(likewise_disk::Error::Cancelled);
        }
        let mut exceptions: Vec<Vec<(u16, u8)>> = vec![Vec::new(); chunk.shapes().len()];
        for level in chunk.levels() {
            exceptions[level.position as usize].push((level.band, level.level));
        }
        let wanted = chunk
            .rows()
            .enumerate()
            .filter(|(_, row)| rows.contains(row));
        let documents = wanted.map(|(place, row)| {
            let digest = match chunk.feature_digests() {
                Some(all) => all[place],
                None if digests.front().is_some_and(|&(of, _)| of == row) => {
                    digests.pop_front().map_or(0, |(_, digest)| digest)
                }
                None => 0,
            };
            TailRow {
                id: chunk.id(place),
                sketch: &chunk.sketches()[place * bytes..(place + 1) * bytes],
                shape: chunk.shapes()[place],
                num_features: chunk.num_features()[place],
                text_digest: chunk.text_digests().map(|all| all[place]),
                digest,
                verdict: chunk.verdicts()[place],
                levels: &exceptions[place],
            }
        });
        tail.extend(
            &rules,
            &mut keys,
            documents,
            building(shared.isa(), 1, cancel),
        )
        .map_err(likewise_disk::Error::from)
    })?;
    Ok(())
}

/// What is known by the truth and the segments that are well.
///
/// # Errors
/// Those of the store.
pub fn load_state(
    shared: &Shared,
    store: &Store,
    segments: Vec<Arc<Segment>>,
    cancel: &AtomicBool,
) -> Result<State, Error> {
    let mut state = State::default();
    let num_rows = store.num_rows();
    let mut newest = Vec::new();
    if shared.rules().zero_distance().is_some() {
        store.scan(num_rows.saturating_sub(NUM_LEARNED)..num_rows, |chunk| {
            newest.extend_from_slice(chunk.sketches());
            Ok(())
        })?;
    }
    shared.learn_plan_of(&newest)?;
    let mut end = 0;
    for segment in segments {
        let rows = segment.rows();
        if rows.start > end {
            let tail = load_tail(shared, store, end..rows.start, cancel)?;
            state.layers.push(Layer::Tail(Box::new(tail)));
        }
        end = rows.end;
        state.layers.push(Layer::Segment(segment));
    }
    let tail = load_tail(shared, store, end..num_rows, cancel)?;
    state.layers.push(Layer::Tail(Box::new(tail)));
    state.expired_below = store.position().expired_below;
    let mut events = Vec::new();
    store.events(0, |number, event| {
        events.push((number, event.clone()));
        Ok(())
    })?;
    apply_events(shared, store, &mut state, &events)?;
    Ok(state)
}

/// Lets a state know of events, which follow those it knows.
///
/// # Errors
/// Those of the store.
pub fn apply_events(
    shared: &Shared,
    store: &Store,
    state: &mut State,
    events: &[(u64, Event)],
) -> Result<(), Error> {
    let mut come_late = Vec::new();
    for (number, event) in events {
        state.last_event = *number;
        match event {
            Event::Expired { below } => {
                state.expired_below = state.expired_below.max(*below);
            }
            Event::Removed {
                row,
                promoted,
                moved,
            } => {
                state.note_removed(*row);
                for &row in promoted {
                    state.promoted.insert(row);
                    if let Some(tail) = state.tail_of_mut(row) {
                        tail.set_verdict(row, None);
                    }
                    come_late.push(row);
                }
                for &(row, evidence) in moved {
                    if let Some(tail) = state.tail_of_mut(row) {
                        tail.set_verdict(row, Some(evidence));
                    }
                    state.note_moved(*number, row, evidence.kept_row);
                }
            }
        }
    }
    come_late.retain(|&row| !state.is_gone(row));
    add_late(shared, store, state, &come_late)
}

/// Makes promoted rows that no table finds stand.
///
/// # Errors
/// Those of the store.
pub fn add_late(
    shared: &Shared,
    store: &Store,
    state: &mut State,
    rows: &[u32],
) -> Result<(), Error> {
    for &row in rows {
        let mut late = std::mem::take(&mut state.late);
        let mut looker = shared.looker(state, store);
        let added = match looker.needs_to_stand(row) {
            Ok(true) => looker.stand(&mut late, row, shared),
            Ok(false) => Ok(()),
            Err(error) => Err(error),
        };
        drop(looker);
        state.late = late;
        added?;
    }
    Ok(())
}

/// The late ones again, after layers changed that may find them now.
///
/// # Errors
/// Those of the store.
pub fn renew_late(shared: &Shared, store: &Store, state: &mut State) -> Result<(), Error> {
    if state.late.is_empty() {
        return Ok(());
    }
    let late = std::mem::take(&mut state.late);
    let all = late.rows().iter().chain(late.blank()).copied();
    let rows: Vec<u32> = all.filter(|&row| !state.is_gone(row)).collect();
    add_late(shared, store, state, &rows)
}

impl Looker<'_> {
    /// Whether a promoted row stands in no table.
    fn needs_to_stand(&mut self, row: u32) -> Result<bool, Error> {
        let known = self.row(row)?;
        let (collapsed, is_blank) = (known.shape() & COLLAPSED != 0, known.is_blank());
        match self.state.layer_of(row) {
            Layer::Tail(_) => Ok(collapsed),
            // Empty texts are found by their class alone.
            Layer::Segment(segment) if !is_blank => Ok(!segment.is_found(row)?),
            Layer::Segment(_) => Ok(collapsed),
        }
    }

    /// Puts a row among the late ones.
    ///
    /// # Errors
    /// Those of the store.
    pub fn stand(&mut self, late: &mut Late, row: u32, shared: &Shared) -> Result<(), Error> {
        let rules = *self.rules();
        let known = self.row(row)?;
        let (sketch, shape) = (known.sketch().to_vec(), known.shape() & !COLLAPSED);
        let (is_blank, levels) = (known.is_blank(), known.levels().to_vec());
        let digest = match rules.is_distance_only() {
            true => 0,
            false => self.digest_of(row)?,
        };
        let mut keys = self.keys.clone();
        let class = keys.class_hash(&rules, shape, digest);
        let isa = self.sketching.isa;
        if is_blank {
            late.insert_blank(row, class);
            return Ok(());
        }
        late.insert(
            &rules,
            shared.plan().as_ref(),
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
