//! What must be read to decide on an operation?
//!
//! Reading takes rounds: strings of entries, then records of the rows that they name, then kept documents of these. All that is read is of one low
//! mark: entries of later rows are ignored, and changes of earlier operations are applied to what a partition returned.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::ops::Range;
use std::sync::{Arc, Mutex};

use likewise_core::features::Shape;
use likewise_core::parallel::lock;
use likewise_disk::store::Content;

use crate::cluster::answer::{Answer, Decided, Finding, RemovedRecord, Reply};
use crate::cluster::bytes::{Packed, Unpack, take_string};
use crate::cluster::effects::entries_of_record;
use crate::cluster::known::{Earlier, Known};
use crate::cluster::moved::{LEVEL, MovedDocument, restored};
use crate::cluster::names::{
    HASH_ENTRY, ID_ENTRY, MEMBER_ENTRY, Name, Names, REFERENCE_BYTES, chunks_of, place_in_chunk,
};
use crate::cluster::record::{Record, Reference, Tag, Verdict, unpack_set};
use crate::cluster::rule::ClusterRule;
use crate::documents::Documents;
use crate::error::{Error, Result};
use crate::keys::{Keys, distance_of, words_of};
use crate::rules::Method;

const LAST_LEVEL: u32 = 2;

/// An operation that was decided, and whose effects servers may not show yet.
#[derive(Debug, Clone, Copy)]
pub struct Past<'p> {
    /// Its first row.
    pub row: u32,
    pub second: u64,
    pub tag: Tag,
    pub payload: &'p [u8],
    pub verdict: &'p [u8],
}

/// When an operation arrived, and what servers show of those before.
#[derive(Debug, Clone, Copy)]
pub struct Arrived<'p> {
    /// Its first row.
    pub row: u32,
    pub second: u64,
    pub tag: Tag,
    /// Rows from this one on are not read from servers.
    pub low_row: u32,
    /// Rows of the operations of the log below that: the first, how many, the tag.
    pub below: &'p [(u32, u32, Tag)],
    /// The operations from there on, in order.
    pub tail: &'p [Past<'p>],
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Wanted {
    pub partition: u32,
    /// Names of strings, each behind 16 bits of its length.
    pub tables: Vec<u8>,
    /// Names of hashes and fields, in turn, behind 16 bits of length; an empty field stands for all, with values.
    pub records: Vec<u8>,
}

/// Why a string is read, for which document.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Ask {
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

#[derive(Default)]
struct Asking {
    names: Vec<(Name, std::ops::Range<usize>)>,
    asks: Vec<Ask>,
    /// Of a whole chunk no reference.
    fields: Vec<(Name, Option<Reference>)>,
}

pub struct Reading {
    pub rule: Arc<ClusterRule>,
    /// What is known so far.
    pub known: Known,
    /// Rows of the operations of the log below the low mark: the first, how many, the tag.
    below: Vec<(u32, u32, Tag)>,
    /// Strings of bands that say that there are documents at the next level.
    pub marks: HashSet<(Name, [u8; 4])>,
    pub keys: Keys,
    pub audit: Audit,
    /// Whether the kept documents of all records are needed too.
    leads_all: bool,
    probes: Vec<Probe>,
    /// Entries of tables and bands that were read for the probes.
    num_candidates: u64,
    queue: Vec<(u32, Name, Ask)>,
    fields: BTreeSet<(Name, Option<Reference>)>,
    /// Rows whose kept documents are needed too.
    leads: HashSet<u32>,
    asking: BTreeMap<u32, Asking>,
}

impl Reading {
    /// Nothing is read yet, and the tail is known.
    pub fn new(rule: Arc<ClusterRule>, arrived: &Arrived<'_>, leads_all: bool) -> Result<Self> {
        let mut reading = Reading {
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
            below: arrived.below.to_vec(),
            marks: HashSet::new(),
            keys: rule.keys.clone(),
            audit: Audit::default(),
            leads_all,
            probes: Vec::new(),
            num_candidates: 0,
            queue: Vec::new(),
            fields: BTreeSet::new(),
            leads: HashSet::new(),
            asking: BTreeMap::new(),
            rule,
        };
        reading.below.sort_unstable();
        for past in arrived.tail {
            reading.push_past(past)?;
        }
        Ok(reading)
    }

    /// Takes in an operation of the tail.
    fn push_past(&mut self, past: &Past<'_>) -> Result<()> {
        match self.rule.answer(past.verdict)? {
            Answer::Documents(decided) => self.push_added(past, decided),
            Answer::Removed(removed) => {
                self.push_removed(removed);
                Ok(())
            }
            Answer::Restored(num, _) => self.push_restored(past, num),
            Answer::Swept(_, all) => {
                let gone = all
                    .into_iter()
                    .map(|(gone, _)| (gone.row, (gone.tag, None)));
                self.known.changed.extend(gone);
                Ok(())
            }
            _ => Ok(()),
        }
    }

    fn push_added(&mut self, past: &Past<'_>, mut decided: Vec<Decided>) -> Result<()> {
        let operation = self.rule.operation(past.payload)?;
        if !operation.is_decided_by(&decided) {
            return Err(Error::Unreadable);
        }
        let ids = operation.ids().into_iter().map(str::to_owned).collect();
        let mut places = Vec::new();
        for (place, of) in decided.iter_mut().enumerate() {
            if let Some(leader) = self.name_leader(of.verdict, of.kept_id.take()) {
                self.want_leader(leader);
            }
            if of.added {
                places.push(place as u32);
            }
            for (band, level) in &mut of.levels {
                *level &= LEVEL;
                for below in 0..u32::from(*level).min(2) {
                    let sketch = operation.documents.sketch(place);
                    let key = self.keys.of(sketch, u32::from(*band), below);
                    let mark = self.rule.names.band(u32::from(*band), below, key);
                    self.marks.insert(mark);
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
        Ok(())
    }

    fn push_removed(&mut self, removed: RemovedRecord) {
        let (gone, mut leaders) = (removed.reference, Vec::new());
        self.known.changed.insert(gone.row, (gone.tag, None));
        for changed in removed.changed {
            let of = changed.reference;
            leaders.extend(self.name_leader(changed.record.verdict, changed.kept_id));
            let record = (of.tag, Some(changed.record));
            self.known.changed.insert(of.row, record);
        }
        leaders
            .into_iter()
            .for_each(|leader| self.want_leader(leader));
    }

    fn push_restored(&mut self, past: &Past<'_>, num: usize) -> Result<()> {
        let moved = self.rule.operation(past.payload)?.moved;
        let are_next = (past.row..).zip(&moved).all(|(row, of)| of.row == row);
        if moved.len() != num || !are_next {
            return Err(Error::Unreadable);
        }
        for document in moved {
            let MovedDocument {
                row,
                record,
                content,
            } = restored(&document, past.tag);
            if let Content::Features(features, weights) = content {
                self.known.sets.insert(row, Some((features, weights)));
            }
            self.known.changed.insert(row, (past.tag, Some(record)));
        }
        self.known.tail.push(Earlier {
            row: past.row,
            second: past.second,
            tag: past.tag,
            documents: Documents::default(),
            ids: Vec::new(),
            places: (0..num as u32).collect(),
            decided: Vec::new(),
        });
        Ok(())
    }

    /// Takes in the id of the kept document that a verdict of the tail names; gives its reference.
    fn name_leader(&mut self, verdict: Option<Verdict>, id: Option<String>) -> Option<Reference> {
        let (leader, id) = (verdict?.leader(), id?);
        self.known.leaders.insert(leader.row, (leader.tag, id));
        Some(leader)
    }

    /// Requests the record of a kept document that the tail names, where it may have expired.
    fn want_leader(&mut self, leader: Reference) {
        if self.rule.ttl_s.is_some() {
            self.want(leader, false);
        }
    }

    /// Wants what `name_of` names of some rows, chunk by chunk.
    pub fn want_chunks(&mut self, rows: &Range<u32>, name_of: fn(u32) -> Name) {
        let of_servers = rows.end.min(self.known.low_row);
        for row in chunks_of(&(rows.start.min(of_servers)..of_servers)) {
            self.fields.insert((name_of(row), None));
        }
    }

    /// Requests the feature sets of the records of some rows, if stored.
    pub fn want_sets(&mut self, rows: &Range<u32>) {
        for (&row, (tag, record)) in self.known.records.range(rows.clone()) {
            let record = record.as_ref().filter(|record| record.num_features > 0);
            if record.is_some_and(|record| self.rule.rules().keeps_set(record.num_features)) {
                let reference = Reference { row, tag: *tag };
                self.fields.insert((Name::sets(row), Some(reference)));
            }
        }
    }

    /// Names the strings that find what a document meets.
    pub fn probe(&mut self, sketch: Vec<u8>, shape: u8, digest: u128) {
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

    pub fn ask(&mut self, name: Name, ask: Ask) {
        // Where no row is on servers, nothing is to be read there.
        if self.known.low_row > 0 {
            let partition = name.partition(self.rule.partitions);
            self.queue.push((partition, name, ask));
        }
    }

    /// Requests the record of a row, and that of its kept document if it `leads` to an answer.
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

    pub fn is_waiting(&self) -> bool {
        !self.asking.is_empty()
    }

    pub fn is_due(&self) -> bool {
        !self.queue.is_empty() || !self.fields.is_empty()
    }

    /// What is read next: each partition at most once.
    pub fn round(&mut self) -> Vec<Wanted> {
        // Equal names come together. The order of their documents does not matter.
        self.queue
            .sort_unstable_by_key(|&(partition, name, _)| (partition, name));
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
    pub fn take(
        &mut self,
        partition: u32,
        found: &[&[u8]],
        records: &[Option<&[u8]>],
        changes: &[&[u8]],
    ) -> Result<()> {
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
                let mut unpack = Unpack(value.unwrap_or_default());
                while !unpack.0.is_empty() {
                    let mut field = Unpack(take_string(&mut unpack)?);
                    let reference = Reference::take(self.rule.rules(), &mut field)?;
                    let value = Some(take_string(&mut unpack)?);
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

    fn take_field(&mut self, name: Name, reference: Reference, value: Option<&[u8]>) -> Result<()> {
        let row = reference.row;
        if name == Name::sets(row) {
            let set = value.map(|value| unpack_set(&mut Unpack(value)));
            self.known.sets.insert(row, set.transpose()?);
            return Ok(());
        }
        let rules = self.rule.rules();
        let record = value
            .map(|value| Record::unpack(rules, value))
            .transpose()?;
        let leader = record.as_ref().and_then(|record| record.verdict);
        self.known.records.insert(row, (reference.tag, record));
        if let Some(verdict) = leader
            && (self.leads_all || self.leads.contains(&row))
        {
            self.want(verdict.leader(), false);
        }
        Ok(())
    }

    /// How many documents were searched, and how many entries of tables and bands were read for them.
    pub fn searched(&self) -> (usize, u64) {
        (self.probes.len(), self.num_candidates)
    }

    /// Looks for rows in a string of entries.
    fn scan(&mut self, name: Name, ask: Ask, string: &[u8]) -> Result<()> {
        match ask {
            Ask::Table { probe } => {
                let Method::Simhash { within, .. } = self.rule.rules().method else {
                    return Err(Error::Unreadable);
                };
                let bytes = self.rule.rules().sketch_bytes();
                self.num_candidates += (string.len() / (bytes + 6)) as u64;
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
                self.num_candidates += (string.len() / HASH_ENTRY) as u64;
                self.scan_hashes::<4, HASH_ENTRY>(hash, string, false);
                let mark = Names::mark(hash);
                let is_marked = string
                    .chunks_exact(HASH_ENTRY)
                    .any(|entry| entry[..4] == mark && self.counts(Reference::of_entry(entry)));
                if is_marked && level < LAST_LEVEL {
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

    /// Requests the feature sets that the rule needs; returns whether there are any.
    pub fn want_missing(&mut self) -> bool {
        let missing = std::mem::take(&mut *lock(&self.known.missing));
        for &row in &missing {
            let tag = self.known.tag_of(row);
            self.fields
                .insert((Name::sets(row), Some(Reference { row, tag })));
        }
        !missing.is_empty()
    }
}

/// Values by field; nothing of those deleted.
type Fields<'c> = HashMap<&'c [u8], Option<&'c [u8]>>;

/// Changes that operations below the low mark made in a partition, and that are not in its strings yet.
#[derive(Default)]
pub struct Changes<'c> {
    /// Entries by name: whether one enters or leaves, in order.
    entries: HashMap<Vec<u8>, Vec<(bool, &'c [u8])>>,
    /// Values by name and field.
    fields: HashMap<Vec<u8>, Fields<'c>>,
}

impl<'c> Changes<'c> {
    pub fn unpack(all: &[&'c [u8]]) -> Result<Self> {
        let mut changes = Changes::default();
        for packed in all {
            let mut unpack = Unpack(packed);
            while !unpack.0.is_empty() {
                let (kind, name) = take_string(&mut unpack)?
                    .split_first()
                    .ok_or(Error::Unreadable)?;
                let (name, part) = (name.to_vec(), take_string(&mut unpack)?);
                match kind {
                    b'A' | b'D' if part.len() < REFERENCE_BYTES => return Err(Error::Unreadable),
                    b'A' | b'D' => {
                        let entries = changes.entries.entry(name).or_default();
                        entries.push((*kind == b'A', part));
                    }
                    b'S' => {
                        let value = take_string(&mut unpack)?;
                        let fields = changes.fields.entry(name).or_default();
                        fields.insert(part, Some(value));
                    }
                    b'X' | b'Y' => {
                        changes.fields.entry(name).or_default().insert(part, None);
                    }
                    _ => return Err(Error::Unreadable),
                }
            }
        }
        Ok(changes)
    }

    /// A string with its changes, if any.
    pub fn patched(&self, name: Name, string: &[u8]) -> Option<Vec<u8>> {
        if self.entries.is_empty() {
            return None;
        }
        let mut key = Vec::new();
        name.append_to(&mut key);
        let entries = self.entries.get(&key)?;
        // The last change of an entry decides. All entries of a string have one length.
        let mut left: HashMap<&[u8], bool> = HashMap::new();
        for &(enters, entry) in entries {
            left.insert(entry, enters);
        }
        let mut patched = Vec::with_capacity(string.len());
        for entry in string.chunks_exact(entries[0].1.len()) {
            match left.get_mut(entry) {
                None => patched.extend_from_slice(entry),
                Some(enters) => {
                    if std::mem::take(enters) {
                        patched.extend_from_slice(entry);
                    }
                }
            }
        }
        for (_, entry) in entries {
            if left.remove(entry) == Some(true) {
                patched.extend_from_slice(entry);
            }
        }
        Some(patched)
    }

    /// What a field was changed to, if it was: its value, or nothing if it was deleted.
    pub fn of_field(&self, name: Name, reference: Reference) -> Option<Option<&'c [u8]>> {
        if self.fields.is_empty() {
            return None;
        }
        let mut key = Vec::new();
        name.append_to(&mut key);
        self.fields.get(&key)?.get(&reference.bytes()[..]).copied()
    }
}

/// Records by row, with their tags; nothing of those that servers do not have.
type RecordsByRow = BTreeMap<u32, (Tag, Option<Record>)>;

/// An entry that servers should have of a document.
struct Expected {
    row: u32,
    name: Name,
    /// The entry; of a mark, which another document may have made, its head.
    bytes: Vec<u8>,
    length: usize,
    is_there: bool,
}

/// The entries of some documents, and whether they were found.
#[derive(Default)]
pub struct Audit {
    expected: Vec<Expected>,
}

impl Audit {
    /// The entries that servers should have of some rows.
    pub fn new(
        rule: &ClusterRule,
        keys: &mut Keys,
        records: &RecordsByRow,
        rows: &Range<u32>,
    ) -> Self {
        let mut expected = Vec::new();
        for (&row, (tag, record)) in records.range(rows.clone()) {
            let Some(record) = record else { continue };
            let reference = Reference { row, tag: *tag }.bytes();
            entries_of_record(rule, keys, row, record, |name, head| {
                let is_mark = name.is_band() && head[0] & 1 == 1;
                expected.push(Expected {
                    row,
                    name,
                    bytes: match is_mark {
                        true => head.to_vec(),
                        false => [head, &reference].concat(),
                    },
                    length: head.len() + REFERENCE_BYTES,
                    is_there: false,
                });
            });
        }
        Audit { expected }
    }

    /// The names of the strings with the entries, by number of the entry.
    pub fn names(&self) -> Vec<Name> {
        self.expected.iter().map(|expected| expected.name).collect()
    }

    /// Looks for an entry in its string.
    pub fn scan(&mut self, number: u32, string: &[u8]) {
        let expected = &mut self.expected[number as usize];
        let mut entries = string.chunks_exact(expected.length);
        expected.is_there = entries.any(|entry| entry.starts_with(&expected.bytes));
    }

    /// What the documents lack. `lacks_set` is whether the feature set of a row was read and is missing.
    pub fn answer(
        &self,
        records: &RecordsByRow,
        rows: &Range<u32>,
        lacks_set: impl Fn(u32) -> bool,
    ) -> Reply {
        let (mut num, mut findings) = (0, Vec::new());
        for (&row, (_, record)) in records.range(rows.clone()) {
            let Some(record) = record else { continue };
            num += 1;
            let mut find = |name: Option<Name>| {
                let mut bytes = Vec::new();
                if let Some(name) = name {
                    name.append_to(&mut bytes);
                }
                findings.push(Finding {
                    id: record.id.clone(),
                    name: bytes,
                });
            };
            let from = self.expected.partition_point(|of| of.row < row);
            let of_row = self.expected[from..].iter().take_while(|of| of.row == row);
            of_row
                .filter(|of| !of.is_there)
                .for_each(|of| find(Some(of.name)));
            if lacks_set(row) {
                find(Some(Name::sets(row)));
            }
            // One that an operation of the tail changed was not read.
            let leader = record.verdict.map(|verdict| verdict.evidence.kept_row);
            let leader = leader.and_then(|leader| records.get(&leader));
            if leader.is_some_and(|(_, of)| of.as_ref().is_none_or(|of| of.verdict.is_some())) {
                find(None);
            }
        }
        Reply::Audit(num, findings)
    }
}
