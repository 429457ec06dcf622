//! What does a decision know of the rows that its operation can meet?
//!
//! Records that were read, and what operations decided that no server shows yet. From these follows the state on which the rule works.

use likewise_core::parallel::{Run, lock};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ops::Range;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex};

use likewise_disk::store::{Content, DocumentRow, Row};
use likewise_hamming::plan::SearchPlan;

use crate::cluster::answer::Decided;
use crate::cluster::record::{Record, Tag};
use crate::cluster::rule::ClusterRule;
use crate::decide::holder::Holder;
use crate::decide::lookup::{Lent, Records};
use crate::documents::{Documents, Sketching};
use crate::error::{Error, Result};
use crate::keys::Keys;
use crate::state::bits::RecentSets;
use crate::state::in_memory::{MemoryRows, row_of_batch};
use crate::state::promoted::building;
use crate::state::{Layer, State};

/// An operation of the tail, read.
pub struct Earlier {
    pub row: u32,
    pub second: u64,
    pub tag: Tag,
    pub documents: Documents,
    pub ids: Vec<String>,
    pub places: Vec<u32>,
    pub decided: Vec<Decided>,
}

impl Earlier {
    /// Its row number `added`, as the tables of memory take it.
    pub fn memory_row(&self, added: usize) -> DocumentRow<'_> {
        let place = self.places[added] as usize;
        let decided = &self.decided[place];
        let about = (place, &self.ids[place][..], decided.collapsed);
        DocumentRow {
            verdict: decided.verdict.map(|verdict| verdict.evidence),
            levels: &decided.levels,
            ..row_of_batch(&self.documents, about, self.row + added as u32)
        }
    }
}

/// Features, and weights unless all are 1.
pub type Set = (Vec<u64>, Vec<u32>);

/// What is known of rows.
pub struct Known {
    pub rule: Arc<ClusterRule>,
    pub low_row: u32,
    /// Records that were read, with their tags; nothing of those that servers do not have.
    pub records: BTreeMap<u32, (Tag, Option<Record>)>,
    /// Feature sets that were read, or restored by operations of the tail.
    pub sets: HashMap<u32, Option<Set>>,
    pub tail: Vec<Earlier>,
    /// Rows that operations of the tail restored, or changed by a removal: records since, nothing of those that are gone.
    pub changed: BTreeMap<u32, (Tag, Option<Record>)>,
    /// Tags and ids of kept documents that verdicts of the tail name.
    pub leaders: HashMap<u32, (Tag, String)>,
    pub missing: Mutex<BTreeSet<u32>>,
}

impl Known {
    pub fn earlier(&self, row: u32) -> Option<(&Earlier, usize)> {
        let after = self.tail.partition_point(|earlier| earlier.row <= row);
        let earlier = self.tail.get(after.checked_sub(1)?)?;
        let added = (row - earlier.row) as usize;
        (added < earlier.places.len()).then_some((earlier, added))
    }

    /// The current record of a row, unless it is an unchanged one of the tail.
    pub fn record(&self, row: u32) -> Option<&(Tag, Option<Record>)> {
        self.changed.get(&row).or_else(|| self.records.get(&row))
    }

    pub fn tag_of(&self, row: u32) -> Tag {
        match (self.record(row), self.earlier(row)) {
            (Some((tag, _)), _) => *tag,
            (None, Some((earlier, _))) => earlier.tag,
            (None, None) => self.leaders.get(&row).map_or(Tag::default(), |of| of.0),
        }
    }

    pub fn second_of(&self, row: u32) -> u64 {
        match (self.record(row), self.earlier(row)) {
            (Some((_, Some(record))), _) => record.second,
            (_, Some((earlier, _))) => earlier.second,
            _ => 0,
        }
    }

    /// Rows that expired so long ago that no document that counts refers to them, and the first that did not.
    pub fn unreferenced(&self, rows: &Range<u32>, second: u64, end: u32) -> (u32, Vec<u32>) {
        let Some(ttl) = self.rule.ttl_s else {
            return (rows.start, Vec::new());
        };
        let mut found = Vec::new();
        for row in rows.start..rows.end.min(end) {
            let is_there = match self.record(row) {
                Some((_, record)) => record.is_some(),
                None => self.earlier(row).is_some(),
            };
            if !is_there {
                continue;
            }
            if self.second_of(row).saturating_add(ttl.saturating_mul(2)) >= second {
                return (row, found);
            }
            found.push(row);
        }
        (rows.end.min(end).max(rows.start), found)
    }

    /// The end of the first rows whose feature sets together take at most this many bytes; at least one row.
    pub fn end_of_sets(&self, rows: &Range<u32>, bytes: usize) -> u32 {
        let mut left = bytes;
        for row in rows.clone() {
            let num_features = match (self.record(row), self.earlier(row)) {
                (Some((_, Some(record))), _)
                    if self.rule.rules().keeps_set(record.num_features) =>
                {
                    record.num_features
                }
                (None, Some((earlier, added))) => earlier.memory_row(added).num_features,
                _ => 0,
            };
            let of_row = num_features as usize * size_of::<u64>();
            if of_row > left && row > rows.start {
                return row;
            }
            left = left.saturating_sub(of_row);
        }
        rows.end.max(rows.start)
    }

    /// Notes which rows are gone or expired; gives the records by row, nothing of those that are gone.
    fn note_gone(&self, state: &mut State, second: u64) -> BTreeMap<u32, Option<&Record>> {
        let is_expired = |of: u64| self.rule.ttl_s.is_some_and(|ttl| of + ttl < second);
        let mut rows: BTreeMap<u32, Option<&Record>> = BTreeMap::new();
        for (&row, (_, record)) in self.records.iter().chain(&self.changed) {
            rows.insert(row, record.as_ref());
        }
        for (&row, record) in &rows {
            match record {
                None => state.gone.insert(row),
                Some(record) if is_expired(record.second) => {
                    state.expired_below = state.expired_below.max(row + 1);
                }
                Some(_) => {}
            }
        }
        for earlier in &self.tail {
            if is_expired(earlier.second) {
                let end = earlier.row + earlier.places.len() as u32;
                state.expired_below = state.expired_below.max(end);
            }
        }
        rows
    }

    /// Rows in memory as of now; `second` is that of the operation, `end` its first row.
    pub fn state(&self, second: u64, end: u32) -> Result<State> {
        let rules = self.rule.rules();
        let plan = self.rule.plan.as_ref();
        let mut keys = self.rule.keys.clone();
        let mut state = State {
            // Documents may be gone anywhere.
            last_event: 1,
            ..State::default()
        };
        let cancel = AtomicBool::new(false);
        let isa = self.rule.sketching.isa;
        let rows = self.note_gone(&mut state, second);
        if self.low_row > 0 {
            let mut read = MemoryRows::new(rules, plan, 0)?;
            let of_servers = rows.range(..self.low_row);
            let of_servers =
                of_servers.filter_map(|(&row, record)| Some(record.as_ref()?.row(row)));
            read.extend(
                rules,
                &mut keys,
                of_servers,
                building(isa, Run::alone(&cancel)),
            )?;
            read.end_at(self.low_row);
            state.layers.push(Layer::Memory(Box::new(read)));
        }
        let mut newest = MemoryRows::new(rules, plan, self.low_row)?;
        let added = self
            .tail
            .iter()
            .flat_map(|earlier| (0..earlier.places.len()).map(move |added| (earlier, added)));
        let added = added.filter_map(|(earlier, added)| {
            let row = earlier.row + added as u32;
            match rows.get(&row) {
                Some(changed) => changed.as_ref().map(|record| record.row(row)),
                None => Some(earlier.memory_row(added)),
            }
        });
        newest.extend(rules, &mut keys, added, building(isa, Run::alone(&cancel)))?;
        newest.end_at(end);
        state.layers.push(Layer::Memory(Box::new(newest)));
        Ok(state)
    }
}

impl Records for Known {
    fn row(&self, _: &State, row: u32) -> Result<Row> {
        Err(Error::Unread(row))
    }

    fn id(&self, row: u32) -> Result<String> {
        let leader = self.leaders.get(&row);
        leader.map(|(_, id)| id.clone()).ok_or(Error::Unread(row))
    }

    fn content(&self, row: u32) -> Result<Content> {
        let features = |set: Option<(&[u64], &[u32])>| match set {
            Some((features, weights)) => Content::Features(features.to_vec(), weights.to_vec()),
            None => Content::Absent,
        };
        if let Some(set) = self.sets.get(&row) {
            return Ok(features(set.as_ref().map(|(f, w)| (&f[..], &w[..]))));
        }
        if let Some((earlier, added)) = self.earlier(row) {
            return Ok(features(
                earlier.documents.set(earlier.places[added] as usize),
            ));
        }
        if let Some((_, Some(record))) = self.record(row)
            && self.rule.rules().keeps_set(record.num_features)
        {
            lock(&self.missing).insert(row);
        }
        Ok(Content::Absent)
    }

    fn read_together(&self, read: &mut dyn FnMut(&dyn Records) -> Result<()>) -> Result<()> {
        read(self)
    }
}

/// What is known, for one run of the rule.
pub struct Held<'k> {
    known: &'k Known,
    recent: RecentSets,
}

impl<'k> Held<'k> {
    pub fn new(known: &'k Known) -> Self {
        Held {
            known,
            recent: RecentSets::default(),
        }
    }
}

impl Holder for Held<'_> {
    fn sketching(&self) -> &Sketching {
        &self.known.rule.sketching
    }

    fn recent(&self) -> &RecentSets {
        &self.recent
    }

    fn keys(&self) -> &Keys {
        &self.known.rule.keys
    }

    fn plan(&self) -> Option<SearchPlan> {
        self.known.rule.plan.clone()
    }

    fn records(&self, _: &State) -> Result<Box<dyn Records + '_>> {
        Ok(Box::new(Lent(self.known)))
    }
}
