//! What happens when a segment turns out to be damaged?
//!
//! Segments are derived: one that is damaged is dropped, and its rows come from the database again. This holds wherever the damage is met: while an
//! index is opened, while it follows its writer, after a commit, in a query. Only damage of the database is an error.

use likewise_core::parallel::lock;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use likewise_disk::segments::{Segment, unlink_segments};
use likewise_disk::store::Store;

use crate::error::{Error, Result};
use crate::index::Index;
use crate::load::{load_state, open_segments};
use crate::shared::Shared;
use crate::state::State;

/// How often a reader begins again because the writer dropped documents that it was about to read.
const MOST_OVERTAKEN: u32 = 8;
/// How often the files of segments are looked at: rarely enough to cost nothing.
const LOOK_EVERY: Duration = Duration::from_millis(5);

impl Index {
    /// Does some work, and again after each damaged segment, or refreshed reader, that was the reason.
    pub(crate) fn repairing<T>(&self, work: impl Fn() -> Result<T>) -> Result<T> {
        let mut num_overtaken = 0;
        loop {
            let num_replacements = self.shared.num_replacements.load(Ordering::Acquire);
            match work() {
                Err(error) if error.is_damage() && self.recover(num_replacements)? => {}
                Err(Error::Disk(likewise_disk::Error::Dropped { .. }))
                    if num_overtaken < MOST_OVERTAKEN =>
                {
                    num_overtaken += 1;
                    self.ready(&AtomicBool::new(false))?;
                }
                other => return other,
            }
        }
    }

    /// Drops damaged segments; returns whether there were any, or layers were replaced since `num_replacements`.
    fn recover(&self, num_replacements: u64) -> Result<bool> {
        let shared = &self.shared;
        let mut writer = lock(&shared.writer);
        let mut follower = lock(&shared.follower);
        if shared.num_replacements.load(Ordering::Acquire) != num_replacements {
            return Ok(true);
        }
        let Some(store) = writer.as_mut().or(follower.as_mut()) else {
            return Ok(false);
        };
        if !shared.avoid_damaged() {
            return Ok(false);
        }
        shared.load(store, &AtomicBool::new(false))?;
        Ok(true)
    }

    /// Loads the state again if an error left it half changed.
    pub(crate) fn reload_if_stale(&self, cancel: &AtomicBool) -> Result<()> {
        let shared = &self.shared;
        if !shared.is_stale.load(Ordering::Acquire) {
            return Ok(());
        }
        match lock(&shared.writer).as_mut() {
            Some(store) if shared.is_stale.load(Ordering::Acquire) => shared.load(store, cancel),
            // A reader does it when it follows.
            _ => Ok(()),
        }
    }
}

impl Shared {
    /// Looks whether files of segments were changed, at most once in a while.
    pub fn look_at_segments(&self) {
        let elapsed = self.environment.clock.uptime().elapsed;
        let turn = (elapsed.as_nanos() / LOOK_EVERY.as_nanos()) as u64;
        if self.last_look.swap(turn, Ordering::Relaxed) == turn {
            return;
        }
        self.state().segments().for_each(|segment| segment.look());
    }

    /// Loads the state from the database and the segments that are well, and drops those that are not.
    pub fn load(&self, store: &mut Store, cancel: &AtomicBool) -> Result<()> {
        self.is_stale.store(true, Ordering::Release);
        let state = match store.is_reader() {
            true => self.state_beside_writer(store, cancel)?,
            false => self.mended_state(store, cancel)?,
        };
        *self.state_mut() = state;
        self.num_replacements.fetch_add(1, Ordering::AcqRel);
        self.is_stale.store(false, Ordering::Release);
        Ok(())
    }

    /// The state of a reader. A segment that cannot be opened may be one that the writer has just replaced and deleted: a newer state has another.
    fn state_beside_writer(&self, store: &mut Store, cancel: &AtomicBool) -> Result<State> {
        for _ in 0..MOST_OVERTAKEN {
            let read = store.refresh_and_read(|store| self.read_state(store, false, cancel))?;
            match read {
                Some(state) => return Ok(state),
                None if store.changed()? => {}
                None => break,
            }
        }
        loop {
            let read = store.refresh_and_read(|store| self.read_state(store, true, cancel))?;
            if let Some(state) = read {
                return Ok(state);
            }
        }
    }

    /// The committed state, as one snapshot; `None` if segments cannot be opened, which `avoids` avoids from now on.
    fn read_state(
        &self,
        store: &Store,
        avoids: bool,
        cancel: &AtomicBool,
    ) -> Result<Option<State>> {
        *lock(&self.arrival_shift) = store.arrival_shift();
        let opened = open_segments(self, store, cancel)?;
        let are_known = {
            let avoided = lock(&self.avoided);
            opened.bad.iter().all(|name| avoided.contains(name))
        };
        if !avoids && !are_known {
            return Ok(None);
        }
        self.avoid(&opened.bad);
        self.loaded(store, opened.segments, cancel)
    }

    fn mended_state(&self, store: &mut Store, cancel: &AtomicBool) -> Result<State> {
        loop {
            let opened = open_segments(self, store, cancel)?;
            self.avoid(&opened.bad);
            if !opened.bad.is_empty() {
                store.publish(&[], &opened.bad)?;
                // What cannot be deleted now is deleted when the index is opened again.
                let _ = unlink_segments(&self.segment_dir(), self.files(), &opened.bad);
            }
            let segments = self.mend(store, opened.segments, cancel)?;
            if let Some(state) = self.loaded(store, segments, cancel)? {
                return Ok(state);
            }
        }
    }

    /// The state by these segments; nothing where some of them turned out to be damaged, which are avoided from now on.
    fn loaded(
        &self,
        store: &Store,
        segments: Vec<Arc<Segment>>,
        cancel: &AtomicBool,
    ) -> Result<Option<State>> {
        match load_state(self, store, segments.clone(), cancel) {
            Err(error) if error.is_damage() => match self.avoid(&damaged_names(segments.iter())) {
                true => Ok(None),
                false => Err(error),
            },
            loaded => loaded.map(Some),
        }
    }

    /// After a change of the state: loads it again if the change found a damaged segment. Another error leaves it stale.
    pub fn changed(
        &self,
        store: &mut Store,
        result: Result<()>,
        cancel: &AtomicBool,
    ) -> Result<()> {
        let Err(error) = result else {
            return Ok(());
        };
        self.is_stale.store(true, Ordering::Release);
        match error.is_damage() && self.avoid_damaged() {
            true => self.load(store, cancel),
            false => Err(error),
        }
    }

    /// Avoids the segments of the state that were found to be damaged; whether there are any.
    fn avoid_damaged(&self) -> bool {
        let state = self.state();
        let names = damaged_names(state.segments());
        drop(state);
        self.avoid(&names)
    }

    /// Never opens these segments again; whether any of them is new.
    fn avoid(&self, names: &[String]) -> bool {
        let mut avoided = lock(&self.avoided);
        let before = avoided.len();
        avoided.extend(names.iter().cloned());
        let num = (avoided.len() - before) as u64;
        self.num_rebuilt.fetch_add(num, Ordering::Relaxed);
        num > 0
    }
}

fn damaged_names<'a>(segments: impl Iterator<Item = &'a Arc<Segment>>) -> Vec<String> {
    segments
        .filter(|segment| segment.damage().is_some())
        .map(|segment| segment.name().to_owned())
        .collect()
}

#[cfg(test)]
mod tests;
