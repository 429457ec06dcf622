//! What must be read to decide on an operation, and what is decided?
//!
//! Reading takes rounds: strings of entries, then records of the rows that they name, then kept documents of these. Feature sets are read for the
//! pairs that the rule comes to measure, so it runs once more when they are there. All that is read is of one low mark: entries of later rows are
//! ignored, and changes of earlier operations are applied to what a partition returned.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex};

use likewise_disk::store::{Content, Row};
use likewise_hamming::plan::SearchPlan;
use xxhash_rust::xxh3::xxh3_64;

use crate::cluster::answer::{Answer, AnsweredNeighbor, Changed, Decided, Listed, RemovedRecord};
use crate::cluster::audit::Audit;
use crate::cluster::bytes::Unpack;
use crate::cluster::effects::has_set;
use crate::cluster::names::{
    HASH_ENTRY, ID_ENTRY, MEMBER_ENTRY, Name, Names, chunks_of, place_in_chunk,
};
use crate::cluster::operation::{Kind, Operation};
use crate::cluster::record::{Record, Reference, Tag, Verdict, unpack_set};
use crate::cluster::rule::ClusterRule;
use crate::decide::holder::Holder;
use crate::decide::lookup::Lookup;
use crate::decide::nearest::neighbors_of;
use crate::decide::records::Records;
use crate::decide::{check_documents, decide};
use crate::documents::{Documents, Sketching};
use crate::error::Error;
use crate::keys::{Keys, distance_of, words_of};
use crate::lock::lock;
use crate::rules::Method;
use crate::state::in_memory::{COLLAPSED, MemoryRow, MemoryRows};
use crate::state::promoted::building;
use crate::state::recent_sets::RecentSets;
use crate::state::{Layer, State};
use likewise_core::features::Shape;

/// An operation that was decided, and whose effects servers may not show yet.
#[derive(Debug, Clone, Copy)]
pub struct Past<'p> {
    /// Its first row.
    pub row: u32,
    /// Its second of arrival.
    pub second: u64,
    /// Its tag.
    pub tag: Tag,
    /// The operation.
    pub payload: &'p [u8],
    /// What was decided.
    pub verdict: &'p [u8],
}

/// When an operation arrived, and what servers show of those before.
#[derive(Debug, Clone, Copy)]
pub struct Arrived<'p> {
    /// Its first row.
    pub row: u32,
    /// Its second of arrival.
    pub second: u64,
    /// Its tag.
    pub tag: Tag,
    /// Rows from this one on are not read from servers.
    pub low_row: u32,
    /// Rows of the operations of the log below that: the first, how many, the tag.
    pub below: &'p [(u32, u32, Tag)],
    /// The operations from there on, in order.
    pub tail: &'p [Past<'p>],
}

/// What to read of one partition.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Wanted {
    /// The partition.
    pub partition: u32,
    /// Names of strings, each behind 16 bits of its length.
    pub tables: Vec<u8>,
    /// Names of hashes and their fields, in turn, each behind 16 bits of its length. An empty field stands for all fields of a hash: its value is all of
    /// them and their values, in turn, each behind 32 bits of its length.
    pub records: Vec<u8>,
}

/// An operation of the tail, read.
struct Earlier {
    row: u32,
    second: u64,
    tag: Tag,
    documents: Documents,
    ids: Vec<String>,
    /// Places of those that were added.
    places: Vec<u32>,
    decided: Vec<Decided>,
}

impl Earlier {
    /// Its row number `added`, as the tables of memory take it.
    fn memory_row(&self, added: usize) -> MemoryRow<'_> {
        let place = self.places[added] as usize;
        let decided = &self.decided[place];
        MemoryRow {
            row: self.row + added as u32,
            id: &self.ids[place],
            sketch: self.documents.sketch(place),
            shape: self.documents.shapes[place] | if decided.collapsed { COLLAPSED } else { 0 },
            num_features: self.documents.num_features[place],
            text_digest: self.documents.text_digests.get(place).copied(),
            digest: self
                .documents
                .feature_digests
                .get(place)
                .copied()
                .unwrap_or(0),
            verdict: decided.verdict.map(|verdict| verdict.evidence),
            levels: &decided.levels,
        }
    }
}

/// Features, and weights where they are not all 1.
type Set = (Vec<u64>, Vec<u32>);

/// What is known of rows.
struct Known {
    rule: Arc<ClusterRule>,
    low_row: u32,
    /// Records that were read, with their tags; nothing of those that servers do not have.
    records: BTreeMap<u32, (Tag, Option<Record>)>,
    /// Feature sets that were read.
    sets: HashMap<u32, Option<Set>>,
    tail: Vec<Earlier>,
    /// Rows that removals of the tail changed: records since, nothing of those that are gone.
    changed: BTreeMap<u32, (Tag, Option<Record>)>,
    /// Tags and ids of kept documents that verdicts of the tail name.
    leaders: HashMap<u32, (Tag, String)>,
    /// Rows whose feature sets are needed.
    missing: Mutex<BTreeSet<u32>>,
}

impl Known {
    fn earlier(&self, row: u32) -> Option<(&Earlier, usize)> {
        let after = self.tail.partition_point(|earlier| earlier.row <= row);
        let earlier = self.tail.get(after.checked_sub(1)?)?;
        let added = (row - earlier.row) as usize;
        (added < earlier.places.len()).then_some((earlier, added))
    }

    /// The record of a row as of now, where it is not one of the tail that nothing changed.
    fn record(&self, row: u32) -> Option<&(Tag, Option<Record>)> {
        self.changed.get(&row).or_else(|| self.records.get(&row))
    }

    fn tag_of(&self, row: u32) -> Tag {
        match (self.record(row), self.earlier(row)) {
            (Some((tag, _)), _) => *tag,
            (None, Some((earlier, _))) => earlier.tag,
            (None, None) => self.leaders.get(&row).map_or(Tag::default(), |of| of.0),
        }
    }

    fn second_of(&self, row: u32) -> u64 {
        match (self.record(row), self.earlier(row)) {
            (Some((_, Some(record))), _) => record.second,
            (_, Some((earlier, _))) => earlier.second,
            _ => 0,
        }
    }

    /// Rows in memory as of now; `second` is that of the operation, `end` its first row.
    fn state(&self, second: u64, end: u32) -> Result<State, Error> {
        let rules = self.rule.rules();
        let plan = self.rule.plan.as_ref();
        let mut keys = self.rule.keys.clone();
        let mut state = State {
            // Documents may be gone anywhere.
            last_event: 1,
            ..State::default()
        };
        let is_expired = |of: u64| self.rule.ttl_s.is_some_and(|ttl| of + ttl < second);
        let cancel = AtomicBool::new(false);
        let isa = self.rule.sketching.isa;
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
        if self.low_row > 0 {
            let mut read = MemoryRows::new(rules, plan, 0)?;
            let of_servers = rows.range(..self.low_row);
            let of_servers =
                of_servers.filter_map(|(&row, record)| Some(record.as_ref()?.row(row)));
            read.extend(rules, &mut keys, of_servers, building(isa, 1, &cancel))?;
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
        newest.extend(rules, &mut keys, added, building(isa, 1, &cancel))?;
        newest.end_at(end);
        state.layers.push(Layer::Memory(Box::new(newest)));
        Ok(state)
    }
}

impl Records for Known {
    fn row(&self, _: &State, row: u32) -> Result<Row, Error> {
        Err(Error::Unread(row))
    }

    fn id(&self, row: u32) -> Result<String, Error> {
        let leader = self.leaders.get(&row);
        leader.map(|(_, id)| id.clone()).ok_or(Error::Unread(row))
    }

    fn content(&self, row: u32) -> Result<Content, Error> {
        let features = |set: Option<(&[u64], &[u32])>| match set {
            Some((features, weights)) => Content::Features(features.to_vec(), weights.to_vec()),
            None => Content::Absent,
        };
        if let Some((earlier, added)) = self.earlier(row) {
            return Ok(features(
                earlier.documents.set(earlier.places[added] as usize),
            ));
        }
        if let Some(set) = self.sets.get(&row) {
            return Ok(features(set.as_ref().map(|(f, w)| (&f[..], &w[..]))));
        }
        if let Some((_, Some(record))) = self.record(row)
            && has_set(&self.rule, record)
        {
            lock(&self.missing).insert(row);
        }
        Ok(Content::Absent)
    }

    fn read_together(
        &self,
        read: &mut dyn FnMut(&dyn Records) -> Result<(), Error>,
    ) -> Result<(), Error> {
        read(self)
    }
}

impl Records for &Known {
    fn row(&self, state: &State, row: u32) -> Result<Row, Error> {
        Known::row(self, state, row)
    }

    fn id(&self, row: u32) -> Result<String, Error> {
        Known::id(self, row)
    }

    fn content(&self, row: u32) -> Result<Content, Error> {
        Known::content(self, row)
    }

    fn read_together(
        &self,
        read: &mut dyn FnMut(&dyn Records) -> Result<(), Error>,
    ) -> Result<(), Error> {
        read(self)
    }
}

/// What is known, for one run of the rule.
struct Held<'k> {
    known: &'k Known,
    recent: RecentSets,
}

impl<'k> Held<'k> {
    fn new(known: &'k Known) -> Self {
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

    fn records(&self, _: &State) -> Result<Box<dyn Records + '_>, Error> {
        Ok(Box::new(self.known))
    }
}

/// Why a string is read, for which document.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Ask {
    Table {
        probe: u32,
    },
    Id {
        hash: [u8; 2],
    },
    Class {
        hash: [u8; 4],
    },
    Band {
        probe: u32,
        band: u32,
        level: u32,
        hash: [u8; 4],
    },
    Members {
        leader: u32,
    },
    Entry {
        number: u32,
    },
}

/// A document whose neighbors are looked for.
struct Probe {
    sketch: Vec<u8>,
    words: [u64; 4],
}

/// What was asked of a partition.
#[derive(Default)]
struct Asking {
    names: Vec<(Name, std::ops::Range<usize>)>,
    asks: Vec<Ask>,
    /// Of a whole chunk no reference.
    fields: Vec<(Name, Option<Reference>)>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    /// The documents, or the id, are looked up.
    First,
    /// The duplicates of a row are looked up, on behalf of a document.
    Members {
        row: u32,
        leader: u32,
    },
    /// Everything that a removal needs was named.
    Removal {
        row: u32,
    },
    /// The entries of documents are looked up.
    Audit,
    Done,
}

/// A decision in progress.
pub struct Decision {
    rule: Arc<ClusterRule>,
    operation: Operation,
    row: u32,
    second: u64,
    tag: Tag,
    below: Vec<(u32, u32, Tag)>,
    known: Known,
    /// Strings of bands that say that there are documents at the next level.
    marks: HashSet<(Name, [u8; 4])>,
    keys: Keys,
    probes: Vec<Probe>,
    audit: Audit,
    queue: Vec<(u32, Name, Ask)>,
    fields: BTreeSet<(Name, Option<Reference>)>,
    /// Rows whose kept documents are needed too.
    leads: HashSet<u32>,
    asking: BTreeMap<u32, Asking>,
    stage: Stage,
    answer: Option<Answer>,
}

impl Decision {
    /// A decision on an operation.
    ///
    /// # Errors
    /// [`Error::Unreadable`].
    pub fn new(
        rule: Arc<ClusterRule>,
        payload: &[u8],
        arrived: &Arrived<'_>,
    ) -> Result<Self, Error> {
        let operation = rule.operation(payload)?;
        let mut decision = Decision {
            operation,
            row: arrived.row,
            second: arrived.second,
            tag: arrived.tag,
            below: arrived.below.to_vec(),
            known: Known {
                rule: rule.clone(),
                low_row: arrived.low_row,
                records: BTreeMap::new(),
                sets: HashMap::new(),
                tail: Vec::new(),
                changed: BTreeMap::new(),
                leaders: HashMap::new(),
                missing: Mutex::default(),
            },
            marks: HashSet::new(),
            keys: rule.keys.clone(),
            probes: Vec::new(),
            audit: Audit::default(),
            queue: Vec::new(),
            fields: BTreeSet::new(),
            leads: HashSet::new(),
            asking: BTreeMap::new(),
            stage: Stage::First,
            answer: None,
            rule,
        };
        decision.below.sort_unstable();
        for past in arrived.tail {
            decision.push_past(past)?;
        }
        decision.ask_first();
        Ok(decision)
    }

    /// Takes in an operation of the tail.
    fn push_past(&mut self, past: &Past<'_>) -> Result<(), Error> {
        match self.rule.answer(past.verdict)? {
            Answer::Documents(mut decided) => {
                let operation = self.rule.operation(past.payload)?;
                if operation.documents.len() != decided.len() {
                    return Err(Error::Unreadable);
                }
                let ids = operation.ids().into_iter().map(str::to_owned).collect();
                let mut places = Vec::new();
                for (place, of) in decided.iter_mut().enumerate() {
                    if let (Some(verdict), Some(id)) = (&of.verdict, of.kept_id.take()) {
                        let leader = verdict.leader();
                        self.known.leaders.insert(leader.row, (leader.tag, id));
                        if self.rule.ttl_s.is_some() {
                            self.want(verdict.leader(), false);
                        }
                    }
                    if of.added {
                        places.push(place as u32);
                    }
                    for (band, level) in &mut of.levels {
                        *level &= 3;
                        for below in 0..u32::from(*level).min(2) {
                            let sketch = operation.documents.sketch(place);
                            let key = self.keys.of(sketch, u32::from(*band), below);
                            self.marks
                                .insert(self.rule.names.band(u32::from(*band), below, key));
                        }
                    }
                }
                self.known.tail.push(Earlier {
                    row: past.row,
                    second: past.second,
                    tag: past.tag,
                    documents: operation.documents,
                    ids,
                    places,
                    decided,
                });
            }
            Answer::Removed(removed) => {
                let (gone, mut leaders) = (removed.reference, Vec::new());
                self.known.changed.insert(gone.row, (gone.tag, None));
                for changed in removed.changed {
                    let of = changed.reference;
                    if let (Some(verdict), Some(id)) = (&changed.record.verdict, changed.kept_id) {
                        let leader = verdict.leader();
                        self.known.leaders.insert(leader.row, (leader.tag, id));
                        leaders.push(leader);
                    }
                    let record = (of.tag, Some(changed.record));
                    self.known.changed.insert(of.row, record);
                }
                if self.rule.ttl_s.is_some() {
                    leaders
                        .into_iter()
                        .for_each(|leader| self.want(leader, false));
                }
            }
            _ => {}
        }
        Ok(())
    }

    /// Names what the documents of the operation need first.
    fn ask_first(&mut self) {
        let num = self.operation.documents.len();
        for i in 0..num {
            let documents = &self.operation.documents;
            let digest = documents.feature_digests.get(i).copied().unwrap_or(0);
            let (sketch, shape) = (documents.sketch(i).to_vec(), documents.shapes[i]);
            self.probe(sketch, shape, digest);
        }
        let of_servers = self.operation.rows.end.min(self.known.low_row);
        for row in chunks_of(&(self.operation.rows.start.min(of_servers)..of_servers)) {
            self.fields.insert((Name::records(row), None));
        }
        let hashes: Vec<u64> = (self.operation.ids().iter())
            .map(|id| xxh3_64(id.as_bytes()))
            .collect();
        for hash in hashes {
            let (name, hash) = self.rule.names.id(hash);
            self.ask(name, Ask::Id { hash });
        }
    }

    /// Names the strings that find what a document meets.
    fn probe(&mut self, sketch: Vec<u8>, shape: u8, digest: u128) {
        let rule = self.rule.clone();
        if let Some(hash) = self.keys.class_hash(rule.rules(), shape, digest) {
            let (name, hash) = rule.names.class(hash);
            self.ask(name, Ask::Class { hash });
        }
        let probe = self.probes.len() as u32;
        let mut words = [0; 4];
        for (word, of) in words.iter_mut().zip(words_of(&sketch)) {
            *word = of;
        }
        if shape & 3 != Shape::Empty as u8 {
            let (partitions, has_rows) = (rule.partitions, self.known.low_row > 0);
            if has_rows {
                rule.names.asked(&sketch, |name| {
                    self.queue
                        .push((name.partition(partitions), name, Ask::Table { probe }));
                });
            }
            for band in 0..self.keys.num_bands() {
                let key = self.keys.of(&sketch, band, 0);
                self.ask_band(probe, band, 0, key);
            }
        }
        self.probes.push(Probe { sketch, words });
    }

    fn ask_band(&mut self, probe: u32, band: u32, level: u32, key: u64) {
        let (name, hash) = self.rule.names.band(band, level, key);
        self.ask(
            name,
            Ask::Band {
                probe,
                band,
                level,
                hash,
            },
        );
    }

    fn ask(&mut self, name: Name, ask: Ask) {
        // Where no row is on servers, nothing is to be read there.
        if self.known.low_row > 0 {
            let partition = name.partition(self.rule.partitions);
            self.queue.push((partition, name, ask));
        }
    }

    /// Wants the record of a row, and that of its kept document too where it `leads` to an answer.
    fn want(&mut self, reference: Reference, leads: bool) {
        let row = reference.row;
        if row >= self.known.low_row && !self.known.changed.contains_key(&row) {
            return;
        }
        let first_lead = leads && self.leads.insert(row);
        match self.known.record(row) {
            Some((_, Some(record))) => {
                if first_lead && let Some(verdict) = record.verdict {
                    self.want(verdict.leader(), false);
                }
            }
            Some((_, None)) => {}
            None => {
                self.fields.insert((Name::records(row), Some(reference)));
            }
        }
    }

    /// Whether an entry of a row counts.
    fn counts(&self, reference: Reference) -> bool {
        if reference.row >= self.known.low_row {
            return false;
        }
        let after = (self.below).partition_point(|&(first, ..)| first <= reference.row);
        // Operations without rows may begin at the same row as the next.
        let mut before = self.below[..after].iter().rev();
        let of = before.find(|&&(_, num, _)| num > 0);
        match of {
            Some(&(first, num, tag)) => reference.row - first >= num || reference.tag == tag,
            None => true,
        }
    }

    /// What must be read now: each partition at most once; nothing once all is known.
    ///
    /// # Errors
    /// [`Error::Unreadable`] where a reply is missing; those of the rule.
    pub fn wanted(&mut self) -> Result<Vec<Wanted>, Error> {
        if !self.asking.is_empty() {
            return Err(Error::Unreadable);
        }
        loop {
            if !self.queue.is_empty() || !self.fields.is_empty() {
                return Ok(self.round());
            }
            if self.stage == Stage::Done {
                return Ok(Vec::new());
            }
            self.step()?;
        }
    }

    fn round(&mut self) -> Vec<Wanted> {
        self.queue.sort_unstable();
        let mut round: BTreeMap<u32, Wanted> = BTreeMap::new();
        let queue = std::mem::take(&mut self.queue);
        for of_partition in queue.chunk_by(|a, b| a.0 == b.0) {
            let partition = of_partition[0].0;
            let mut wanted = Wanted {
                partition,
                ..Wanted::default()
            };
            let mut asking = Asking::default();
            for of_name in of_partition.chunk_by(|a, b| a.1 == b.1) {
                let name = of_name[0].1;
                name.pack(&mut wanted.tables);
                let begin = asking.asks.len();
                asking.asks.extend(of_name.iter().map(|&(.., ask)| ask));
                asking.names.push((name, begin..asking.asks.len()));
            }
            round.insert(partition, wanted);
            self.asking.insert(partition, asking);
        }
        for (name, reference) in std::mem::take(&mut self.fields) {
            let partition = name.partition(self.rule.partitions);
            let wanted = round.entry(partition).or_insert_with(|| Wanted {
                partition,
                ..Wanted::default()
            });
            name.pack(&mut wanted.records);
            match reference {
                Some(reference) => {
                    wanted.records.extend_from_slice(&[6, 0]);
                    wanted.records.extend_from_slice(&reference.bytes());
                }
                None => wanted.records.extend_from_slice(&[0, 0]),
            }
            let asking = self.asking.entry(partition).or_default();
            asking.fields.push((name, reference));
        }
        round.into_values().collect()
    }

    /// Takes what a partition returned: the strings, the values of the fields, and the packed changes of operations below the low mark, in order.
    ///
    /// # Errors
    /// [`Error::Unreadable`].
    pub fn take(
        &mut self,
        partition: u32,
        found: &[&[u8]],
        records: &[Option<&[u8]>],
        changes: &[&[u8]],
    ) -> Result<(), Error> {
        let asking = self.asking.remove(&partition).ok_or(Error::Unreadable)?;
        if found.len() != asking.names.len() || records.len() != asking.fields.len() {
            return Err(Error::Unreadable);
        }
        let changes = Changes::unpack(changes)?;
        for ((name, asks), string) in asking.names.iter().zip(found) {
            let patched = changes.patched(*name, string);
            let string = patched.as_deref().unwrap_or(string);
            for ask in &asking.asks[asks.clone()] {
                self.scan(*name, *ask, string)?;
            }
        }
        for (&(name, reference), value) in asking.fields.iter().zip(records) {
            let value = value.filter(|value| !value.is_empty());
            let Some(reference) = reference else {
                let mut unpack = Unpack::new(value.unwrap_or_default());
                while !unpack.is_empty() {
                    let reference = Reference::of_entry(unpack.string()?);
                    let value = Some(unpack.string()?);
                    if self.counts(reference) {
                        let value = changes.of_field(name, reference).unwrap_or(value);
                        self.take_field(name, reference, value)?;
                    }
                }
                continue;
            };
            let value = match changes.of_field(name, reference) {
                Some(changed) => changed,
                None => value,
            };
            self.take_field(name, reference, value)?;
        }
        Ok(())
    }

    fn take_field(
        &mut self,
        name: Name,
        reference: Reference,
        value: Option<&[u8]>,
    ) -> Result<(), Error> {
        let row = reference.row;
        if name == Name::sets(row) {
            let set = match value {
                None => None,
                Some(value) => {
                    let (mut features, mut weights) = (Vec::new(), Vec::new());
                    unpack_set(&mut Unpack::new(value), &mut features, &mut weights)?;
                    Some((features, weights))
                }
            };
            self.known.sets.insert(row, set);
            return Ok(());
        }
        let rules = self.rule.rules();
        let record = value
            .map(|value| Record::unpack(rules, value))
            .transpose()?;
        let leader = record.as_ref().and_then(|record| record.verdict);
        self.known.records.insert(row, (reference.tag, record));
        let leads = matches!(self.operation.kind, Kind::List | Kind::Audit);
        if let Some(verdict) = leader
            && (leads || self.leads.contains(&row))
        {
            self.want(verdict.leader(), false);
        }
        Ok(())
    }

    /// Looks for rows in a string of entries.
    fn scan(&mut self, name: Name, ask: Ask, string: &[u8]) -> Result<(), Error> {
        match ask {
            Ask::Table { probe } => {
                let Method::Simhash { within, .. } = self.rule.rules().method else {
                    return Err(Error::Unreadable);
                };
                let bytes = self.rule.rules().sketch_bytes();
                let probe = &self.probes[probe as usize];
                let (word, mut near) = (probe.words[0], Vec::new());
                for entry in string.chunks_exact(bytes + 6) {
                    let distance = match (bytes, entry.first_chunk::<8>()) {
                        (8, Some(first)) => (u64::from_le_bytes(*first) ^ word).count_ones(),
                        _ => u32::from(distance_of(&probe.sketch, &entry[..bytes])),
                    };
                    if distance <= within {
                        near.push((Reference::of_entry(entry), distance == 0));
                    }
                }
                for (reference, is_equal) in near {
                    if self.counts(reference) {
                        self.want(reference, is_equal);
                    }
                }
            }
            Ask::Id { hash } => self.scan_hashes::<2, ID_ENTRY>(hash, string, true),
            Ask::Class { hash } => self.scan_hashes::<4, HASH_ENTRY>(hash, string, true),
            Ask::Band {
                probe,
                band,
                level,
                hash,
            } => {
                self.scan_hashes::<4, HASH_ENTRY>(hash, string, false);
                let mark = Names::mark(hash);
                let is_marked = string
                    .chunks_exact(HASH_ENTRY)
                    .any(|entry| entry[..4] == mark && self.counts(Reference::of_entry(entry)));
                if is_marked {
                    self.marks.insert((name, hash));
                    let sketch = &self.probes[probe as usize].sketch;
                    let key = self.keys.of(sketch, band, level + 1);
                    self.ask_band(probe, band, level + 1, key);
                }
            }
            Ask::Members { leader } => {
                let place = place_in_chunk(leader);
                for entry in string.chunks_exact(MEMBER_ENTRY) {
                    let reference = Reference::of_entry(entry);
                    if entry[0] == place && self.counts(reference) {
                        self.want(reference, false);
                    }
                }
            }
            Ask::Entry { number } => self.audit.scan(number, string),
        }
        Ok(())
    }

    fn scan_hashes<const HEAD: usize, const ENTRY: usize>(
        &mut self,
        hash: [u8; HEAD],
        string: &[u8],
        leads: bool,
    ) {
        for entry in string.chunks_exact(ENTRY) {
            if entry[..HEAD] == hash {
                let reference = Reference::of_entry(entry);
                if self.counts(reference) {
                    self.want(reference, leads);
                }
            }
        }
    }

    /// Goes on once everything that was named is there.
    fn step(&mut self) -> Result<(), Error> {
        let state = self.known.state(self.second, self.row)?;
        let held = Held::new(&self.known);
        let mut lookup = held.lookup(&state, &self.known);
        let answer = match (self.stage, self.operation.kind) {
            (Stage::First, Kind::Add) => self.decide_add(&held, &state)?,
            (Stage::First, Kind::Check) => self.decide_check(&held, &state)?,
            (Stage::First, Kind::Neighbors) => self.decide_neighbors(&held, &state)?,
            (Stage::First, Kind::List) => {
                let mut listed = Vec::new();
                for layer in &state.layers {
                    let Layer::Memory(held) = layer else {
                        continue;
                    };
                    for &row in held.held() {
                        if self.operation.rows.contains(&row) && !state.is_gone(row) {
                            let record = self.record_of(&mut lookup, row)?;
                            let kept_id = match record.verdict {
                                Some(verdict) => Some(lookup.id(verdict.evidence.kept_row)?),
                                None => None,
                            };
                            listed.push(Listed {
                                row,
                                record,
                                kept_id,
                            });
                        }
                    }
                }
                Answer::List(listed)
            }
            (Stage::First, Kind::Audit) => {
                drop(lookup);
                let (records, rows) = (&self.known.records, &self.operation.rows);
                self.audit = Audit::new(&self.rule, &mut self.keys, records, rows);
                for (row, (tag, record)) in records.range(rows.clone()) {
                    let record = record.as_ref().filter(|record| record.num_features > 0);
                    if record.is_some_and(|record| has_set(&self.rule, record)) {
                        let (row, tag) = (*row, *tag);
                        self.fields
                            .insert((Name::sets(row), Some(Reference { row, tag })));
                    }
                }
                for (number, name) in (0..).zip(self.audit.names()) {
                    self.ask(name, Ask::Entry { number });
                }
                self.stage = Stage::Audit;
                return Ok(());
            }
            (Stage::Audit, _) => {
                let (records, rows) = (&self.known.records, &self.operation.rows);
                let lacks_set = |row| matches!(self.known.sets.get(&row), Some(None));
                self.audit.answer(records, rows, lacks_set)
            }
            (Stage::First, kind) => match lookup.row_of_id(self.operation.id(0), None)? {
                None => Answer::Unknown,
                Some(row) => {
                    let verdict = lookup.row(row)?.verdict();
                    let leader = verdict.map_or(row, |evidence| evidence.kept_row);
                    match (kind, verdict) {
                        (Kind::Get, None) => {
                            let record = self.record_of(&mut lookup, row)?;
                            Answer::Found(row, Box::new(record), None)
                        }
                        (Kind::Get, Some(_)) => {
                            let record = self.record_of(&mut lookup, row)?;
                            Answer::Found(row, Box::new(record), Some(lookup.id(leader)?))
                        }
                        (Kind::Remove, Some(_)) => {
                            self.stage = Stage::Removal { row };
                            return Ok(());
                        }
                        _ => {
                            self.stage = Stage::Members { row, leader };
                            if leader < self.known.low_row {
                                self.ask(Name::members(leader), Ask::Members { leader });
                            }
                            return Ok(());
                        }
                    }
                }
            },
            (Stage::Members { leader, .. }, Kind::Group) => {
                let mut members = Vec::new();
                for member in lookup.members(leader)? {
                    members.push(lookup.id(member)?);
                }
                Answer::Group(lookup.id(leader)?, lookup.is_gone(leader), members)
            }
            (Stage::Members { row, .. }, _) => {
                let members = lookup.members(row)?;
                let mut probes = Vec::new();
                for member in members {
                    // Its features decide on it again.
                    self.known.content(member)?;
                    let record = self.record_of(&mut lookup, member)?;
                    probes.push((record.sketch, record.shape & 3, record.digest));
                }
                drop(lookup);
                self.want_missing();
                for (sketch, shape, digest) in probes {
                    self.probe(sketch, shape, digest);
                }
                self.stage = Stage::Removal { row };
                return Ok(());
            }
            (Stage::Removal { row }, _) => self.decide_removal(&mut lookup, &held, row)?,
            (Stage::Done, _) => return Ok(()),
        };
        drop(lookup);
        // What was decided without a feature set is decided again.
        if !self.want_missing() {
            self.mark(answer);
            self.stage = Stage::Done;
        }
        Ok(())
    }

    /// Wants the feature sets that the rule asked for; gives whether there are some.
    fn want_missing(&mut self) -> bool {
        let missing = std::mem::take(&mut *lock(&self.known.missing));
        for &row in &missing {
            let tag = self.known.tag_of(row);
            self.fields
                .insert((Name::sets(row), Some(Reference { row, tag })));
        }
        !missing.is_empty()
    }

    fn verdict_of(&self, evidence: likewise_disk::store::Evidence) -> Verdict {
        let tag = match evidence.kept_row >= self.row {
            true => self.tag,
            false => self.known.tag_of(evidence.kept_row),
        };
        Verdict { evidence, tag }
    }

    fn decide_add(&self, held: &Held<'_>, state: &State) -> Result<Answer, Error> {
        let cancel = AtomicBool::new(false);
        let (documents, ids) = (&self.operation.documents, self.operation.ids());
        let staged = match decide(held, state, &self.known, documents, &ids, 1, &cancel) {
            Ok(staged) => staged,
            Err(Error::Input { position, .. }) => return Ok(Answer::OtherText(position as u32)),
            Err(error) => return Err(error),
        };
        let mut lookup = held.lookup(state, &self.known);
        let mut all = Vec::with_capacity(documents.len());
        let mut added = 0;
        for (place, &row) in (0_u32..).zip(&staged.rows) {
            let is_added = staged.places.get(added) == Some(&place);
            let evidence = match row >= self.row {
                true => staged.verdict(row),
                false => staged.known_evidence.get(&row).copied(),
            };
            let kept_id = match evidence {
                Some(evidence) if evidence.kept_row < self.row => {
                    Some(match staged.kept_ids.get(&evidence.kept_row) {
                        Some(id) => id.clone(),
                        None => lookup.id(evidence.kept_row)?,
                    })
                }
                _ => None,
            };
            let tag = match row >= self.row {
                true => self.tag,
                false => self.known.tag_of(row),
            };
            all.push(Decided {
                verdict: evidence.map(|evidence| self.verdict_of(evidence)),
                kept_id,
                reference: match is_added {
                    true => Reference::default(),
                    false => Reference { row, tag },
                },
                added: is_added,
                collapsed: is_added && staged.collapsed[added],
                levels: match is_added {
                    true => staged.levels_of(added as u32),
                    false => Vec::new(),
                },
            });
            added += usize::from(is_added);
        }
        Ok(Answer::Documents(all))
    }

    fn decide_check(&self, held: &Held<'_>, state: &State) -> Result<Answer, Error> {
        let cancel = AtomicBool::new(false);
        let documents = &self.operation.documents;
        let range = 0..documents.len();
        let known = Some(&self.known as &dyn Records);
        let seen = check_documents(
            held,
            state,
            known,
            documents,
            None,
            u32::MAX,
            range,
            1,
            &cancel,
        )?;
        let all = seen.into_iter().map(|seen| Decided {
            verdict: seen.evidence().map(|evidence| self.verdict_of(evidence)),
            kept_id: seen.kept_id,
            reference: Reference::default(),
            added: false,
            collapsed: false,
            levels: Vec::new(),
        });
        Ok(Answer::Documents(all.collect()))
    }

    fn decide_neighbors(&self, held: &Held<'_>, state: &State) -> Result<Answer, Error> {
        let cancel = AtomicBool::new(false);
        let documents = &self.operation.documents;
        let range = 0..documents.len();
        let known = Some(&self.known as &dyn Records);
        let nearest = self.operation.nearest;
        let all = neighbors_of(held, state, known, documents, range, nearest, 1, &cancel)?;
        let answered = |neighbor: crate::decide::nearest::Neighbor| AnsweredNeighbor {
            id: neighbor.id,
            verdict: self.verdict_of(neighbor.evidence),
            matches: neighbor.matches,
        };
        let all = all
            .into_iter()
            .map(|found| found.into_iter().map(answered).collect());
        Ok(Answer::Neighbors(all.collect()))
    }

    fn decide_removal(
        &self,
        lookup: &mut Lookup<'_>,
        held: &Held<'_>,
        row: u32,
    ) -> Result<Answer, Error> {
        let record = self.record_of(lookup, row)?;
        let removal = lookup.removal(row, held, &AtomicBool::new(false))?;
        let reference = |row| Reference {
            row,
            tag: self.known.tag_of(row),
        };
        let mut changed = Vec::new();
        for &row in &removal.promoted {
            let mut record = self.record_of(lookup, row)?;
            let enters = record.is_collapsed();
            record.shape &= !COLLAPSED;
            record.verdict = None;
            changed.push(Changed {
                reference: reference(row),
                record,
                enters,
                kept_id: None,
            });
        }
        for &(row, evidence) in &removal.moved {
            let mut record = self.record_of(lookup, row)?;
            record.verdict = Some(self.verdict_of(evidence));
            changed.push(Changed {
                reference: reference(row),
                record,
                enters: false,
                kept_id: Some(lookup.id(evidence.kept_row)?),
            });
        }
        changed.sort_unstable_by_key(|changed| changed.reference.row);
        Ok(Answer::Removed(Box::new(RemovedRecord {
            reference: reference(row),
            record,
            changed,
        })))
    }

    /// The record of a row that the state holds.
    fn record_of(&self, lookup: &mut Lookup<'_>, row: u32) -> Result<Record, Error> {
        if let Some((_, Some(record))) = self.known.record(row) {
            return Ok(record.clone());
        }
        let digest = lookup.digest_of(row)?;
        let view = lookup.row(row)?;
        Ok(Record {
            id: view.id().to_owned(),
            sketch: view.sketch().to_vec(),
            shape: view.shape(),
            num_features: view.num_features(),
            text_digest: view.text_digest(),
            digest,
            verdict: view.verdict().map(|evidence| self.verdict_of(evidence)),
            levels: view.levels().to_vec(),
            second: self.known.second_of(row),
        })
    }

    /// Keeps an answer. The first document at a level marks the buckets above it, so that others look there too.
    fn mark(&mut self, mut answer: Answer) {
        if let Answer::Documents(all) = &mut answer {
            for (place, decided) in all.iter_mut().enumerate() {
                if decided.collapsed {
                    continue;
                }
                for (band, level) in &mut decided.levels {
                    for below in 0..u32::from(*level).min(2) {
                        let sketch = self.operation.documents.sketch(place);
                        let key = self.keys.of(sketch, u32::from(*band), below);
                        let mark = self.rule.names.band(u32::from(*band), below, key);
                        if self.marks.insert(mark) {
                            *level |= 1 << (4 + below);
                        }
                    }
                }
            }
        }
        self.answer = Some(answer);
    }

    /// What was decided; nothing before all was read.
    pub fn verdict(&self) -> Option<Vec<u8>> {
        let answer = self.answer.as_ref()?;
        Some(answer.pack(self.rule.rules()))
    }
}

/// The name of a hash, and a field.
type Field<'c> = (Vec<u8>, &'c [u8]);

/// Changes that operations below the low mark made in a partition, and that are not in its strings yet.
#[derive(Default)]
struct Changes<'c> {
    /// Entries by name: whether one enters or leaves, in order.
    entries: HashMap<Vec<u8>, Vec<(bool, &'c [u8])>>,
    /// Values by name and field; nothing of those deleted.
    fields: HashMap<Field<'c>, Option<&'c [u8]>>,
}

impl<'c> Changes<'c> {
    fn unpack(all: &[&'c [u8]]) -> Result<Self, Error> {
        let mut changes = Changes::default();
        for packed in all {
            let mut unpack = Unpack::new(packed);
            while !unpack.is_empty() {
                let (kind, name) = unpack.string()?.split_first().ok_or(Error::Unreadable)?;
                let (name, part) = (name.to_vec(), unpack.string()?);
                match kind {
                    b'A' | b'D' => {
                        let entries = changes.entries.entry(name).or_default();
                        entries.push((*kind == b'A', part));
                    }
                    b'S' => {
                        let value = unpack.string()?;
                        changes.fields.insert((name, part), Some(value));
                    }
                    b'X' => {
                        changes.fields.insert((name, part), None);
                    }
                    _ => return Err(Error::Unreadable),
                }
            }
        }
        Ok(changes)
    }

    /// A string with its changes, where there are some.
    fn patched(&self, name: Name, string: &[u8]) -> Option<Vec<u8>> {
        if self.entries.is_empty() {
            return None;
        }
        let mut key = Vec::new();
        name.append_to(&mut key);
        let entries = self.entries.get(&key)?;
        let mut patched = string.to_vec();
        for (enters, entry) in entries {
            let place = patched.chunks_exact(entry.len()).position(|e| e == *entry);
            match (enters, place) {
                (true, None) => patched.extend_from_slice(entry),
                (false, Some(place)) => {
                    patched.drain(place * entry.len()..(place + 1) * entry.len());
                }
                _ => {}
            }
        }
        Some(patched)
    }

    fn of_field(&self, name: Name, reference: Reference) -> Option<Option<&'c [u8]>> {
        if self.fields.is_empty() {
            return None;
        }
        let mut key = Vec::new();
        name.append_to(&mut key);
        let field = reference.bytes();
        let found = self.fields.iter();
        let mut found = found.filter(|((name, of), _)| *name == key && **of == field);
        found.next().map(|(_, value)| *value)
    }
}
