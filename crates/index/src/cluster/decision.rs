//! What is decided on an operation, once what it needs is read?
//!
//! Feature sets are read for the pairs that the rule comes to measure, so it runs once more when they are there.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use likewise_core::parallel::Run;
use likewise_disk::store::Content;
use xxhash_rust::xxh3::xxh3_64;

use crate::cluster::answer::{Answer, AnsweredNeighbor, Changed, Decided, Listed, RemovedRecord};
use crate::cluster::known::Held;
use crate::cluster::moved::{LEVEL, MovedDocument, pack_moved};
use crate::cluster::names::Name;
use crate::cluster::operation::{Kind, Operation};
use crate::cluster::reading::{Arrived, Ask, Audit, Reading, Wanted};
use crate::cluster::record::{Record, Reference, Tag, Verdict};
use crate::cluster::rule::ClusterRule;
use crate::decide::holder::Holder;
use crate::decide::lookup::{Lookup, Records};
use crate::decide::{Committed, decide};
use crate::error::{Error, Result};
use crate::keys::Keys;
use crate::state::in_memory::COLLAPSED;
use crate::state::{Layer, State};

/// Bytes of feature sets after which an answer to [`Kind::Records`] ends.
const SETS_BYTES: usize = 4 << 20;

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
    /// The feature sets of listed documents are looked up.
    Sets,
    Done,
}

pub struct Decision {
    operation: Operation,
    row: u32,
    second: u64,
    tag: Tag,
    reading: Reading,
    stage: Stage,
    answer: Option<Answer>,
}

impl Decision {
    pub fn new(rule: Arc<ClusterRule>, payload: &[u8], arrived: &Arrived<'_>) -> Result<Self> {
        let operation = rule.operation(payload)?;
        let leads_all = matches!(operation.kind, Kind::List | Kind::Audit);
        let mut decision = Decision {
            operation,
            row: arrived.row,
            second: arrived.second,
            tag: arrived.tag,
            reading: Reading::new(rule, arrived, leads_all)?,
            stage: Stage::First,
            answer: None,
        };
        decision.ask_first();
        Ok(decision)
    }

    /// Names what the documents of the operation need first.
    fn ask_first(&mut self) {
        let documents = &self.operation.documents;
        for i in 0..documents.len() {
            let digest = documents.feature_digests.get(i).copied().unwrap_or(0);
            let (sketch, shape) = (documents.sketch(i).to_vec(), documents.shapes[i]);
            self.reading.probe(sketch, shape, digest);
        }
        let rows = &self.operation.rows;
        self.reading.want_chunks(rows, Name::records);
        for id in self.operation.ids() {
            let hash = xxh3_64(id.as_bytes());
            let (name, hash) = self.reading.rule.names.id(hash);
            self.reading.ask(name, Ask::Id { hash });
        }
    }

    /// What must be read now: each partition at most once; nothing once all is known.
    pub fn wanted(&mut self) -> Result<Vec<Wanted>> {
        if self.reading.is_waiting() {
            return Err(Error::Unreadable);
        }
        loop {
            if self.reading.is_due() {
                return Ok(self.reading.round());
            }
            if self.stage == Stage::Done {
                return Ok(Vec::new());
            }
            self.step()?;
        }
    }

    /// Takes what a partition returned: the strings, the values of the fields, and the packed changes of operations below the low mark, in order.
    pub fn take(
        &mut self,
        partition: u32,
        found: &[&[u8]],
        records: &[Option<&[u8]>],
        changes: &[&[u8]],
    ) -> Result<()> {
        self.reading.take(partition, found, records, changes)
    }

    /// How many documents were searched, and how many entries of tables and bands were read for them.
    pub fn searched(&self) -> (usize, u64) {
        self.reading.searched()
    }

    /// Continues when everything that was named was read.
    fn step(&mut self) -> Result<()> {
        let state = self.reading.known.state(self.second, self.row)?;
        let held = Held::new(&self.reading.known);
        let mut lookup = held.lookup(&state, &self.reading.known);
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
            (Stage::First, Kind::Records) => {
                drop(lookup);
                let rows = self.operation.rows.start..self.operation.rows.end.min(self.row);
                self.operation.rows.end = self.reading.known.end_of_sets(&rows, SETS_BYTES);
                self.reading.want_sets(&self.operation.rows);
                self.stage = Stage::Sets;
                return Ok(());
            }
            (Stage::Sets, _) => {
                let mut all = Vec::new();
                for layer in &state.layers {
                    let Layer::Memory(held) = layer else {
                        continue;
                    };
                    for &row in held.held() {
                        if self.operation.rows.contains(&row) {
                            all.push(MovedDocument {
                                row,
                                record: self.record_of(&mut lookup, row)?,
                                content: self.reading.known.content(row)?,
                            });
                        }
                    }
                }
                Answer::Records(all, self.operation.rows.end)
            }
            (Stage::First, Kind::Restore) => {
                let (rule, operation) = (&self.reading.rule, &self.operation);
                decide_restore(rule, operation, self.row, self.second, &mut lookup)?
            }
            (Stage::First, Kind::Audit) => {
                drop(lookup);
                let (reading, rows) = (&mut self.reading, &self.operation.rows);
                let records = &reading.known.records;
                reading.audit = Audit::new(&reading.rule, &mut reading.keys, records, rows);
                reading.want_sets(rows);
                for (number, name) in (0..).zip(reading.audit.names()) {
                    reading.ask(name, Ask::Entry { number });
                }
                self.stage = Stage::Audit;
                return Ok(());
            }
            (Stage::Audit, _) => {
                let (known, rows) = (&self.reading.known, &self.operation.rows);
                let lacks_set = |row| matches!(known.sets.get(&row), Some(None));
                self.reading.audit.answer(&known.records, rows, lacks_set)
            }
            (Stage::First, Kind::Sweep) => {
                let rows = &self.operation.rows;
                let (end, rows) = self.reading.known.unreferenced(rows, self.second, self.row);
                let mut swept = Vec::with_capacity(rows.len());
                for row in rows {
                    let tag = self.reading.known.tag_of(row);
                    swept.push((Reference { row, tag }, self.record_of(&mut lookup, row)?));
                }
                Answer::Swept(end, swept)
            }
            (Stage::First, kind) => match lookup.row_of_id(self.operation.id(0), None)? {
                None => Answer::Unknown,
                Some(row) => {
                    let verdict = lookup.row(row)?.verdict;
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
                            if leader < self.reading.known.low_row {
                                self.reading
                                    .ask(Name::members(leader), Ask::Members { leader });
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
                    self.reading.known.content(member)?;
                    let record = self.record_of(&mut lookup, member)?;
                    probes.push((record.sketch, record.shape & 3, record.digest));
                }
                drop(lookup);
                self.reading.want_missing();
                for (sketch, shape, digest) in probes {
                    self.reading.probe(sketch, shape, digest);
                }
                self.stage = Stage::Removal { row };
                return Ok(());
            }
            (Stage::Removal { row }, _) => self.decide_removal(&mut lookup, &held, row)?,
            (Stage::Done, _) => return Ok(()),
        };
        drop(lookup);
        // What was decided without a feature set is decided again.
        if !self.reading.want_missing() {
            self.mark(answer);
            self.stage = Stage::Done;
        }
        Ok(())
    }

    fn verdict_of(&self, evidence: likewise_disk::store::Evidence) -> Verdict {
        let tag = match evidence.kept_row >= self.row {
            true => self.tag,
            false => self.reading.known.tag_of(evidence.kept_row),
        };
        Verdict { evidence, tag }
    }

    fn decide_add(&self, held: &Held<'_>, state: &State) -> Result<Answer> {
        let cancel = AtomicBool::new(false);
        let (documents, ids) = (&self.operation.documents, self.operation.ids());
        let staged = match decide(
            held,
            state,
            &self.reading.known,
            documents,
            &ids,
            Run::alone(&cancel),
        ) {
            Ok(staged) => staged,
            Err(Error::Input { position, .. }) => return Ok(Answer::OtherText(position as u32)),
            Err(error) => return Err(error),
        };
        let mut lookup = held.lookup(state, &self.reading.known);
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
                false => self.reading.known.tag_of(row),
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

    fn decide_check(&self, held: &Held<'_>, state: &State) -> Result<Answer> {
        let cancel = AtomicBool::new(false);
        let documents = &self.operation.documents;
        let range = 0..documents.len();
        let known = Some(&self.reading.known as &dyn Records);
        let committed = Committed::new(held, state, known);
        let seen = committed.check(documents, None, u32::MAX, range, Run::alone(&cancel))?;
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

    fn decide_neighbors(&self, held: &Held<'_>, state: &State) -> Result<Answer> {
        let cancel = AtomicBool::new(false);
        let documents = &self.operation.documents;
        let range = 0..documents.len();
        let known = Some(&self.reading.known as &dyn Records);
        let nearest = self.operation.nearest;
        let committed = Committed::new(held, state, known);
        let all = committed.neighbors(documents, range, nearest, None, Run::alone(&cancel))?;
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

    fn decide_removal(&self, lookup: &mut Lookup<'_>, held: &Held<'_>, row: u32) -> Result<Answer> {
        let record = self.record_of(lookup, row)?;
        let removal = lookup.removal(row, held, &AtomicBool::new(false))?;
        let reference = |row| Reference {
            row,
            tag: self.reading.known.tag_of(row),
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

    fn record_of(&self, lookup: &mut Lookup<'_>, row: u32) -> Result<Record> {
        if let Some((_, Some(record))) = self.reading.known.record(row) {
            return Ok(record.clone());
        }
        let digest = lookup.digest_of(row)?;
        let view = lookup.row(row)?;
        Ok(Record {
            id: view.id.to_owned(),
            sketch: view.sketch.to_vec(),
            shape: view.shape,
            num_features: view.num_features,
            text_digest: view.text_digest,
            digest,
            verdict: view.verdict.map(|evidence| self.verdict_of(evidence)),
            levels: view.levels.to_vec(),
            second: self.reading.known.second_of(row),
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
                        let key = self.reading.keys.of(sketch, u32::from(*band), below);
                        let mark = self.reading.rule.names.band(u32::from(*band), below, key);
                        if self.reading.marks.insert(mark) {
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
        Some(answer.pack(self.reading.rule.rules()))
    }
}

/// Maximum number of buckets remembered as marked. Any other is marked again, which changes no answer.
const MAX_MARKED: usize = 1 << 20;

/// Bytes at which an operation ends. One with a single document may have more.
const OPERATION_BYTES: usize = 4 << 20;
/// Bytes of a packed document besides its id, sketch and content, at most, without levels.
const FIXED_BYTES: usize = 96;

/// Makes operations that fill an empty index.
pub struct Restoring {
    /// Buckets that operations marked: band, level and key.
    marked: HashSet<(u16, u32, u64)>,
    keys: Keys,
}

impl Restoring {
    /// For an index with this rule.
    pub fn new(rule: &ClusterRule) -> Self {
        Restoring {
            marked: HashSet::new(),
            keys: rule.keys.clone(),
        }
    }

    /// The operations that add documents with their verdicts, each with its last second of arrival. All of one move
    /// need nonces with the same first bytes, since references contain these.
    pub fn operations(
        &mut self,
        rule: &ClusterRule,
        documents: &[MovedDocument],
    ) -> Vec<(Vec<u8>, u64)> {
        let mut bytes = 0;
        // A part ends before the document that would make it too large.
        let parts = documents.chunk_by(|before, next| {
            bytes += packed_bytes(before);
            let goes_on = bytes + packed_bytes(next) <= OPERATION_BYTES;
            if !goes_on {
                bytes = 0;
            }
            goes_on
        });
        let seconds =
            |part: &[MovedDocument]| part.iter().map(|document| document.record.second).max();
        parts
            .map(|part| {
                let last = seconds(part).unwrap_or(0);
                (self.operation(rule, part), last)
            })
            .collect()
    }

    fn operation(&mut self, rule: &ClusterRule, documents: &[MovedDocument]) -> Vec<u8> {
        let mut all = documents.to_vec();
        for document in &mut all {
            let record = &mut document.record;
            for (band, level) in &mut record.levels {
                for below in 0..u32::from(*level & LEVEL).min(2) {
                    let key = self.keys.of(&record.sketch, u32::from(*band), below);
                    if self.marked.len() >= MAX_MARKED {
                        self.marked.clear();
                    }
                    if self.marked.insert((*band, below, key)) {
                        *level |= 1 << (4 + below);
                    }
                }
            }
            if !rule.rules().keeps_set(record.num_features) {
                document.content = Content::Absent;
            }
        }
        let mut packed = vec![Kind::Restore as u8];
        pack_moved(rule.rules(), &all, &mut packed);
        packed
    }
}

/// About how many bytes a document takes in an operation.
fn packed_bytes(document: &MovedDocument) -> usize {
    let record = &document.record;
    let content = match &document.content {
        Content::Features(features, weights) => 8 * features.len() + 5 * weights.len(),
        Content::Absent | Content::Text(_) => 0,
    };
    FIXED_BYTES + record.id.len() + record.sketch.len() + 3 * record.levels.len() + content
}

/// Decides on an operation that begins at a row: whether its documents are the next ones, their ids are new, and none arrived after the operation.
pub fn decide_restore(
    rule: &ClusterRule,
    operation: &Operation,
    row: u32,
    second: u64,
    lookup: &mut Lookup<'_>,
) -> Result<Answer> {
    let is_expired = |of: u64| rule.ttl_s.is_some_and(|ttl_s| of + ttl_s < second);
    let mut num_kept = 0;
    let mut seconds = HashMap::new();
    for (place, (row, document)) in (row..).zip(&operation.moved).enumerate() {
        let record = &document.record;
        let earlier = seconds.insert(record.id.as_str(), record.second);
        let is_new =
            earlier.is_none_or(is_expired) && lookup.row_of_id(&record.id, None)?.is_none();
        if document.row != row || !is_new || record.second > second {
            return Ok(Answer::NotRestored(place as u32));
        }
        num_kept += usize::from(record.verdict.is_none());
    }
    Ok(Answer::Restored(operation.moved.len(), num_kept))
}
