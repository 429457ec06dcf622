//! What is decided on an operation, once what it needs is read?
//!
//! Feature sets are read for the pairs that the rule comes to measure, so it runs once more when they are there.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use likewise_core::parallel::Run;
use likewise_disk::store::{Content, Evidence};
use xxhash_rust::xxh3::xxh3_64;

use crate::cluster::answer::{Answer, Changed, Decided, Listed, RemovedRecord, Reply};
use crate::cluster::bytes::Packed;
use crate::cluster::known::Held;
use crate::cluster::moved::{LEVEL, MovedDocument};
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

/// What follows when everything that was named was read.
enum Next {
    Reply(Reply),
    /// More is read.
    Stage(Stage),
    /// The duplicates of a row that is removed are decided on again: sketch, shape and digest of each.
    Probes(u32, Vec<(Vec<u8>, u8, u128)>),
}

impl From<Answer> for Next {
    fn from(answer: Answer) -> Self {
        Next::Reply(Reply::Verdict(answer))
    }
}

pub struct Decision {
    pub operation: Operation,
    /// The first row of the operation.
    pub row: u32,
    second: u64,
    tag: Tag,
    reading: Reading,
    stage: Stage,
    reply: Option<Reply>,
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
            reply: None,
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
        let next = match (self.stage, self.operation.kind) {
            (Stage::First, Kind::Add) => self.decide_add(&held, &state)?.into(),
            (Stage::First, Kind::Check) => self.decide_check(&held, &state)?.into(),
            (Stage::First, Kind::Neighbors) => Next::Reply(self.find_neighbors(&held, &state)?),
            (Stage::First, Kind::List) => Next::Reply(self.list(&mut lookup, &state)?),
            (Stage::First, Kind::Records) => Next::Stage(Stage::Sets),
            (Stage::First, Kind::Restore) => {
                let (rule, operation) = (&self.reading.rule, &self.operation);
                decide_restore(rule, operation, self.row, self.second, &mut lookup)?.into()
            }
            (Stage::First, Kind::Audit) => Next::Stage(Stage::Audit),
            (Stage::First, Kind::Sweep) => self.decide_sweep(&mut lookup)?.into(),
            (Stage::First, Kind::Get | Kind::Group | Kind::Remove) => self.look_up(&mut lookup)?,
            (Stage::Sets, _) => Next::Reply(self.records(&mut lookup, &state)?),
            (Stage::Audit, _) => {
                let (known, rows) = (&self.reading.known, &self.operation.rows);
                let lacks_set = |row| matches!(known.sets.get(&row), Some(None));
                Next::Reply(self.reading.audit.answer(&known.records, rows, lacks_set))
            }
            (Stage::Members { leader, .. }, Kind::Group) => {
                Next::Reply(group_of(&mut lookup, leader)?)
            }
            (Stage::Members { row, .. }, _) => Next::Probes(row, self.probes(&mut lookup, row)?),
            (Stage::Removal { row }, _) => self.decide_removal(&mut lookup, &held, row)?.into(),
            (Stage::Done, _) => return Ok(()),
        };
        drop(lookup);
        match next {
            Next::Stage(stage) => self.enter(stage),
            Next::Probes(row, probes) => {
                self.reading.want_missing();
                for (sketch, shape, digest) in probes {
                    self.reading.probe(sketch, shape, digest);
                }
                self.stage = Stage::Removal { row };
            }
            // What was decided without a feature set is decided again.
            Next::Reply(reply) => {
                if !self.reading.want_missing() {
                    self.mark(reply);
                    self.stage = Stage::Done;
                }
            }
        }
        Ok(())
    }

    /// Names what a stage needs.
    fn enter(&mut self, stage: Stage) {
        self.stage = stage;
        let reading = &mut self.reading;
        match stage {
            Stage::Sets => {
                let rows = self.operation.rows.start..self.operation.rows.end.min(self.row);
                self.operation.rows.end = reading.known.end_of_sets(&rows, SETS_BYTES);
                reading.want_sets(&self.operation.rows);
            }
            Stage::Audit => {
                let (rows, records) = (&self.operation.rows, &reading.known.records);
                reading.audit = Audit::new(&reading.rule, &mut reading.keys, records, rows);
                reading.want_sets(rows);
                for (number, name) in (0..).zip(reading.audit.names()) {
                    reading.ask(name, Ask::Entry { number });
                }
            }
            Stage::Members { leader, .. } if leader < reading.known.low_row => {
                reading.ask(Name::members(leader), Ask::Members { leader });
            }
            _ => {}
        }
    }

    /// The rows in question that are known.
    fn known_rows(&self, state: &State) -> Vec<u32> {
        let held = state.layers.iter().flat_map(|layer| match layer {
            Layer::Memory(held) => held.held(),
            _ => &[],
        });
        let held = held.copied();
        held.filter(|row| self.operation.rows.contains(row))
            .collect()
    }

    fn list(&self, lookup: &mut Lookup<'_>, state: &State) -> Result<Reply> {
        let mut rows = self.known_rows(state);
        rows.retain(|&row| !state.is_gone(row));
        let listed = rows.into_iter().map(|row| self.listed(lookup, row));
        Ok(Reply::List(listed.collect::<Result<_>>()?))
    }

    fn listed(&self, lookup: &mut Lookup<'_>, row: u32) -> Result<Listed> {
        let record = self.record_of(lookup, row)?;
        let leader = record.verdict.map(|verdict| verdict.evidence.kept_row);
        let kept_id = leader.map(|leader| lookup.id(leader)).transpose()?;
        Ok(Listed {
            row,
            record,
            kept_id,
        })
    }

    fn records(&self, lookup: &mut Lookup<'_>, state: &State) -> Result<Reply> {
        let moved = |row| {
            Ok(MovedDocument {
                row,
                record: self.record_of(lookup, row)?,
                content: self.reading.known.content(row)?,
            })
        };
        let all = self.known_rows(state).into_iter().map(moved);
        let all = all.collect::<Result<_>>()?;
        Ok(Reply::Records(all, self.operation.rows.end))
    }

    fn decide_sweep(&self, lookup: &mut Lookup<'_>) -> Result<Answer> {
        let (known, rows) = (&self.reading.known, &self.operation.rows);
        let (end, rows) = known.unreferenced(rows, self.second, self.row);
        let mut swept = Vec::with_capacity(rows.len());
        for row in rows {
            swept.push((self.reference(row), self.record_of(lookup, row)?));
        }
        Ok(Answer::Swept(end, swept))
    }

    /// What follows for the id in question.
    fn look_up(&self, lookup: &mut Lookup<'_>) -> Result<Next> {
        let Some(row) = lookup.row_of_id(self.operation.id(0), None)? else {
            return Ok(Answer::Unknown.into());
        };
        let verdict = lookup.row(row)?.verdict;
        Ok(match (self.operation.kind, verdict) {
            (Kind::Get, _) => Next::Reply(Reply::Found(Box::new(self.listed(lookup, row)?))),
            (Kind::Remove, Some(_)) => Next::Stage(Stage::Removal { row }),
            _ => {
                let leader = verdict.map_or(row, |evidence| evidence.kept_row);
                Next::Stage(Stage::Members { row, leader })
            }
        })
    }

    fn probes(&self, lookup: &mut Lookup<'_>, row: u32) -> Result<Vec<(Vec<u8>, u8, u128)>> {
        let mut probes = Vec::new();
        for member in lookup.members(row)? {
            // Its features decide on it again.
            self.reading.known.content(member)?;
            let record = self.record_of(lookup, member)?;
            probes.push((record.sketch, record.shape & 3, record.digest));
        }
        Ok(probes)
    }

    fn reference(&self, row: u32) -> Reference {
        let tag = match row >= self.row {
            true => self.tag,
            false => self.reading.known.tag_of(row),
        };
        Reference { row, tag }
    }

    fn verdict_of(&self, evidence: Evidence) -> Verdict {
        let tag = self.reference(evidence.kept_row).tag;
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
            Err(Error::Input { position, .. }) => return Ok(Answer::OtherText(position)),
            Err(error) => return Err(error),
        };
        let mut lookup = held.lookup(state, &self.reading.known);
        let mut all = Vec::with_capacity(documents.len());
        let mut added = 0;
        for (place, &row) in (0_u32..).zip(&staged.rows) {
            let is_added = staged.places.get(added) == Some(&place);
            let evidence = staged.evidence(row);
            let leader = evidence.map(|evidence| evidence.kept_row);
            let leader = leader.filter(|&leader| leader < self.row);
            let kept_id = leader.map(|leader| staged.kept_id(leader, &mut lookup));
            let kept_id = kept_id.transpose()?;
            all.push(Decided {
                verdict: evidence.map(|evidence| self.verdict_of(evidence)),
                kept_id,
                reference: match is_added {
                    true => Reference::default(),
                    false => self.reference(row),
                },
                added: is_added,
                collapsed: is_added && staged.collapsed[added],
                levels: match is_added {
                    true => staged.levels[added].clone(),
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

    fn find_neighbors(&self, held: &Held<'_>, state: &State) -> Result<Reply> {
        let cancel = AtomicBool::new(false);
        let documents = &self.operation.documents;
        let range = 0..documents.len();
        let known = Some(&self.reading.known as &dyn Records);
        let nearest = self.operation.nearest;
        let committed = Committed::new(held, state, known);
        let all = committed.neighbors(documents, range, nearest, None, Run::alone(&cancel))?;
        Ok(Reply::Neighbors(all))
    }

    fn decide_removal(&self, lookup: &mut Lookup<'_>, held: &Held<'_>, row: u32) -> Result<Answer> {
        let record = self.record_of(lookup, row)?;
        let removal = lookup.removal(row, held, &AtomicBool::new(false))?;
        let mut changed = Vec::new();
        for &row in &removal.promoted {
            let mut record = self.record_of(lookup, row)?;
            let enters = record.is_collapsed();
            record.shape &= !COLLAPSED;
            record.verdict = None;
            changed.push(Changed {
                reference: self.reference(row),
                record,
                enters,
                kept_id: None,
            });
        }
        for &(row, evidence) in &removal.moved {
            let mut record = self.record_of(lookup, row)?;
            record.verdict = Some(self.verdict_of(evidence));
            changed.push(Changed {
                reference: self.reference(row),
                record,
                enters: false,
                kept_id: Some(lookup.id(evidence.kept_row)?),
            });
        }
        changed.sort_unstable_by_key(|changed| changed.reference.row);
        Ok(Answer::Removed(RemovedRecord {
            reference: self.reference(row),
            record,
            changed,
        }))
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

    /// Keeps a reply. The first document at a level marks the buckets above it, so that others look there too.
    fn mark(&mut self, mut reply: Reply) {
        if let Reply::Verdict(Answer::Documents(all)) = &mut reply {
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
        self.reply = Some(reply);
    }

    /// What was decided, as it is stored; nothing before all was read, and for a question that no verdict answers.
    pub fn verdict(&self) -> Option<Vec<u8>> {
        match self.reply.as_ref()? {
            Reply::Verdict(answer) => Some(self.reading.rule.packed(answer)),
            _ => None,
        }
    }

    /// The answer, once; nothing before all was read.
    pub fn take_reply(&mut self) -> Option<Reply> {
        self.reply.take()
    }
}

/// The group of a kept document.
fn group_of(lookup: &mut Lookup<'_>, leader: u32) -> Result<Reply> {
    let mut members = Vec::new();
    for member in lookup.members(leader)? {
        members.push(lookup.id(member)?);
    }
    Ok(Reply::Group(
        lookup.id(leader)?,
        lookup.is_gone(leader),
        members,
    ))
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
        all.put(rule.rules(), &mut packed);
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
            return Ok(Answer::NotRestored(place));
        }
        num_kept += usize::from(record.verdict.is_none());
    }
    Ok(Answer::Restored(operation.moved.len(), num_kept))
}
