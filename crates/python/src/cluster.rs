//! The rule of an index on a cluster: what is read, decided and written there.

use likewise_core::error::invalid_if;
use likewise_core::parallel::{Run, lock};
use std::ops::Range;
use std::path::Path;
use std::sync::{Arc, Mutex};

use likewise_disk::store::Content;
use likewise_index::cluster::{
    Answer, Arrived, Kind, Names, Operation, Past, Reason, Record, Reply, Tag,
};
use likewise_index::{Documents, Nearest, cluster};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyInt};

use crate::door::{Bytes, Dict, LONG_BYTES, Object, Str, run};
use crate::errors::{Failure, Result};
use crate::features::FeatureRules;
use crate::index_given::{
    Given, RecipeParts, Taken, check_num_ids, list_of, shown_neighbors, shown_verdicts,
};
use crate::moved::MovedDocuments;
use crate::texts::{Texts, text_of};

/// An operation of the log, decided: position, nonce, kind, first row, number of rows, second, payload, stored verdict.
type TailOperation<'py> = (u64, Bytes<'py>, u8, u32, u32, u64, Bytes<'py>, Bytes<'py>);

/// Partition, first row, number of rows; then tables, entries, chunks, fields, records and changes, as a partition's `write` takes them.
type ShownEffects = (
    u32,
    u32,
    u32,
    Vec<u8>,
    Vec<u8>,
    Vec<u8>,
    Vec<u8>,
    Vec<u8>,
    Vec<u8>,
);

fn asked<T>(result: Result<T, likewise_index::Error>) -> Result<T> {
    result.map_err(|error| Failure::index(error, Path::new("index on a cluster")))
}

fn tag_of(nonce: &[u8]) -> Result<Tag> {
    match nonce {
        [a, b, ..] => Ok([*a, *b]),
        _ => Err(Failure::parameter("nonce", "has fewer than 2 bytes")),
    }
}

/// The rule by which all clients of a cluster decide.
#[pyclass(frozen, module = "likewise._native")]
pub struct ClusterRule {
    rule: Arc<cluster::ClusterRule>,
}

#[pymethods]
impl ClusterRule {
    /// `recipe` and `rules` are those of an index in a directory, `plan` is from `plan_for`.
    #[new]
    #[pyo3(signature = (recipe, rules, plan, *, partitions, ttl_seconds=None))]
    fn new(
        recipe: RecipeParts,
        rules: Py<FeatureRules>,
        plan: &[u8],
        partitions: u32,
        ttl_seconds: Option<u64>,
    ) -> Result<Self> {
        let rules_of_recipe = recipe.rules()?;
        invalid_if(!(1..=1 << 14).contains(&partitions), "partitions", || {
            format!("{partitions} is outside 1..=16384")
        })?;
        let make = move |isa| rules.get().extractor(isa);
        let sketching = recipe.sketching(rules_of_recipe, make);
        let names = asked(Names::unpack(&rules_of_recipe, plan))?;
        let rule = asked(cluster::ClusterRule::new(
            sketching,
            names,
            partitions,
            ttl_seconds,
        ))?;
        Ok(ClusterRule {
            rule: Arc::new(rule),
        })
    }

    /// The plan of keys for so many documents.
    #[staticmethod]
    fn plan_for(recipe: RecipeParts, expected: u64) -> Result<Vec<u8>> {
        Ok(asked(Names::for_expected(&recipe.rules()?, expected))?.pack())
    }

    /// What a document costs by the model of the plan.
    fn plan_facts<'py>(&self, py: Python<'py>) -> Result<Dict<'py>> {
        let cost = self.rule.cost();
        let facts = PyDict::new(py);
        facts.set_item("tables", cost.num_tables)?;
        facts.set_item("probes", cost.num_probes)?;
        facts.set_item("candidates", cost.candidates)?;
        facts.set_item("table_bytes", cost.bytes)?;
        Ok(facts)
    }

    #[pyo3(signature = (ids, documents, *, threads=1))]
    fn add(
        &self,
        py: Python<'_>,
        ids: &Texts,
        documents: Given<'_>,
        threads: usize,
    ) -> Result<Vec<u8>> {
        let taken = documents.taken(self.rule.rules())?;
        check_num_ids(ids, taken.len())?;
        self.payload(py, &taken, threads, |documents| {
            self.rule.add(&list_of(ids), documents)
        })
    }

    fn remove(&self, doc_id: &Str<'_>) -> Result<Vec<u8>> {
        self.of_id(Kind::Remove, doc_id)
    }

    fn get(&self, doc_id: &Str<'_>) -> Result<Vec<u8>> {
        self.of_id(Kind::Get, doc_id)
    }

    fn group(&self, doc_id: &Str<'_>) -> Result<Vec<u8>> {
        self.of_id(Kind::Group, doc_id)
    }

    fn listing(&self, first_row: u32, num_rows: u32) -> Vec<u8> {
        self.rule.of_rows(Kind::List, &rows_of(first_row, num_rows))
    }

    /// The question whether the tables contain the documents of some rows.
    fn audit(&self, first_row: u32, num_rows: u32) -> Vec<u8> {
        self.rule
            .of_rows(Kind::Audit, &rows_of(first_row, num_rows))
    }

    /// The question for all that is kept of the first documents of some rows, expired ones too. The answer has as many as fit in 4 MiB, at least one, and
    /// the row that follows them.
    fn records(&self, first_row: u32, num_rows: u32) -> Vec<u8> {
        self.rule
            .of_rows(Kind::Records, &rows_of(first_row, num_rows))
    }

    /// Documents as servers keep them, with feature sets instead of texts.
    fn without_texts(&self, py: Python<'_>, documents: &MovedDocuments) -> Result<MovedDocuments> {
        run(py, LONG_BYTES, |_| {
            let sketching = &self.rule.sketching;
            let mut sketcher = sketching.sketcher();
            let mut all = documents.all.clone();
            for document in &mut all {
                if let Content::Text(_) = document.content {
                    document.forget_text(sketching, &mut sketcher);
                }
            }
            let rules = sketching.rules;
            Ok(MovedDocuments { rules, all })
        })
    }

    /// The operation that deletes those of some rows that expired long ago; None where documents do not expire.
    fn sweep(&self, first_row: u32, num_rows: u32) -> Option<Vec<u8>> {
        self.rule.sweep(&rows_of(first_row, num_rows))
    }

    /// The question for verdicts on documents, each by itself.
    #[pyo3(signature = (documents, *, threads=1))]
    fn check(&self, py: Python<'_>, documents: Given<'_>, threads: usize) -> Result<Vec<u8>> {
        let taken = documents.taken(self.rule.rules())?;
        self.payload(py, &taken, threads, |documents| self.rule.check(documents))
    }

    /// The question for the kept documents most similar to given ones.
    #[pyo3(signature = (documents, limit, min_similarity, *, threads=1))]
    fn neighbors(
        &self,
        py: Python<'_>,
        documents: Given<'_>,
        limit: usize,
        min_similarity: f64,
        threads: usize,
    ) -> Result<Vec<u8>> {
        let nearest = Nearest {
            limit,
            min_similarity,
        };
        let taken = documents.taken(self.rule.rules())?;
        self.payload(py, &taken, threads, |documents| {
            self.rule.neighbors(documents, nearest)
        })
    }

    /// The largest number of rows that an operation can take.
    fn num_rows(&self, payload: &[u8]) -> Result<usize> {
        let operation = asked(self.rule.operation(payload))?;
        Ok(match operation.kind {
            Kind::Add => operation.documents.len(),
            Kind::Restore => operation.moved.len(),
            _ => 0,
        })
    }

    /// Ids of an operation.
    fn ids(&self, payload: &[u8]) -> Result<Vec<String>> {
        let operation = asked(self.rule.operation(payload))?;
        Ok(operation.ids().into_iter().map(str::to_owned).collect())
    }

    /// Ids of records.
    fn lost_ids(&self, records: Vec<Bytes<'_>>) -> Result<Vec<String>> {
        let ids = records
            .iter()
            .map(|record| asked(self.rule.id_of_record(record.as_bytes())));
        ids.collect()
    }

    /// Begins to decide on an operation. `below` has 16 bytes for each operation of the log below the low mark: nonce, first row, number of rows.
    fn decide(
        &self,
        py: Python<'_>,
        payload: &[u8],
        arrival: (u32, u64, Bytes<'_>),
        tail: Vec<TailOperation<'_>>,
        low_row: u32,
        below: &[u8],
    ) -> Result<ClusterDecision> {
        let (row, second, nonce) = arrival;
        let mut operations = Vec::with_capacity(below.len() / 16);
        for one in below.chunks_exact(16) {
            let number =
                |at: usize| u32::from_le_bytes([one[at], one[at + 1], one[at + 2], one[at + 3]]);
            operations.push((number(8), number(12), tag_of(one)?));
        }
        let mut past = Vec::with_capacity(tail.len());
        for (_, nonce, _, row, _, second, payload, verdict) in &tail {
            past.push(Past {
                row: *row,
                second: *second,
                tag: tag_of(nonce.as_bytes())?,
                payload: payload.as_bytes(),
                verdict: verdict.as_bytes(),
            });
        }
        let arrived = Arrived {
            row,
            second,
            tag: tag_of(nonce.as_bytes())?,
            low_row,
            below: &operations,
            tail: &past,
        };
        let rule = self.rule.clone();
        let decision = run(py, 0, |_| {
            asked(cluster::Decision::new(rule.clone(), payload, &arrived))
        })?;
        Ok(ClusterDecision {
            rule,
            decision: Mutex::new(decision),
        })
    }

    /// What a decided operation changes: for each partition the arguments of `write`.
    fn effects(
        &self,
        py: Python<'_>,
        payload: &[u8],
        arrival: (u32, u64, Bytes<'_>),
        verdict: &[u8],
    ) -> Result<Vec<ShownEffects>> {
        let (row, second, nonce) = arrival;
        let tag = tag_of(nonce.as_bytes())?;
        let all = run(py, 0, |_| {
            asked(self.rule.effects(payload, row, second, tag, verdict))
        })?;
        let shown = all.into_iter().map(|effects| {
            (
                effects.partition,
                effects.first_row,
                effects.num_rows,
                effects.tables,
                effects.entries,
                effects.chunks,
                effects.fields,
                effects.records,
                effects.changes,
            )
        });
        Ok(shown.collect())
    }

    /// A verdict as the index in a directory shows it: columns, the parts of a removal, the number of documents swept or restored; None for an unknown id.
    fn answer<'py>(
        &self,
        py: Python<'py>,
        payload: &[u8],
        row: u32,
        verdict: &[u8],
    ) -> Result<Object<'py>> {
        let operation = asked(self.rule.operation(payload))?;
        let answer = asked(self.rule.answer(verdict))?;
        shown_answer(py, &self.rule, &operation, row, answer)
    }

    /// The verdict on an operation on which no decision is possible.
    fn rejected(&self, reason: &str) -> Vec<u8> {
        self.rule.rejected(reason)
    }

    /// Documents added, by how many more are kept, documents removed, the row below which were swept or 0.
    fn counts(&self, verdict: &[u8]) -> Result<(usize, i64, usize, u32)> {
        let counts = asked(self.rule.counts(verdict))?;
        Ok((counts.added, counts.kept, counts.gone, counts.swept))
    }
}

impl ClusterRule {
    fn of_id(&self, kind: Kind, doc_id: &Str<'_>) -> Result<Vec<u8>> {
        Ok(self.rule.of_id(kind, &text_of(doc_id)?))
    }

    /// The payload about documents, sketched first.
    fn payload(
        &self,
        py: Python<'_>,
        taken: &Taken,
        threads: usize,
        pack: impl Fn(&Documents) -> Vec<u8> + Sync,
    ) -> Result<Vec<u8>> {
        run(py, taken.num_bytes(), |cancel| {
            let sketching = &self.rule.sketching;
            Ok(pack(
                taken.sketched(sketching, Run { threads, cancel })?.as_ref(),
            ))
        })
    }
}

fn rows_of(first_row: u32, num_rows: u32) -> Range<u32> {
    first_row..first_row.saturating_add(num_rows)
}

/// What was decided on an operation that begins at a row.
fn shown_answer<'py>(
    py: Python<'py>,
    rule: &cluster::ClusterRule,
    operation: &Operation,
    row: u32,
    answer: Answer,
) -> Result<Object<'py>> {
    Ok(match answer {
        Answer::Documents(_) | Answer::OtherText(_) => {
            let verdicts = asked(rule.verdicts(operation, row, answer))?;
            let has_distance = rule.rules().zero_distance().is_some();
            shown_verdicts(py, verdicts, has_distance)?.into_any()
        }
        Answer::Unknown => py.None().into_bound(py),
        Answer::Rejected(Reason(message)) => {
            return Err(Failure::Store {
                class: "StoreError",
                message,
            });
        }
        Answer::Swept(end, all) => (end, all.len()).into_pyobject(py)?.into_any(),
        Answer::Removed(removed) => {
            let was_kept = removed.record.verdict.is_none();
            let (mut promoted, mut moved) = (Vec::new(), Vec::new());
            for changed in removed.changed {
                match changed.kept_id {
                    None => promoted.push(changed.record.id),
                    Some(kept_id) => moved.push((changed.record.id, kept_id)),
                }
            }
            (was_kept, promoted, moved).into_pyobject(py)?.into_any()
        }
        Answer::Restored(num, _) => PyInt::new(py, num).into_any(),
        Answer::NotRestored(place) => {
            let id = operation.ids().get(place).copied().unwrap_or_default();
            let reason = format!("the id {id:?} occurs twice, or its document is not the next one");
            return Err(Failure::row(place, reason));
        }
    })
}

/// What a question asked for: neighbors, a document, a group, a list of documents, or the result of an audit.
fn shown_reply<'py>(
    py: Python<'py>,
    rule: &cluster::ClusterRule,
    operation: &Operation,
    row: u32,
    reply: Reply,
) -> Result<Object<'py>> {
    let evidence = |record: &Record| {
        let evidence = record.verdict?.evidence;
        Some((evidence.similarity, evidence.distance))
    };
    Ok(match reply {
        Reply::Verdict(answer) => shown_answer(py, rule, operation, row, answer)?,
        Reply::Neighbors(all) => shown_neighbors(all).into_pyobject(py)?,
        Reply::Found(found) => {
            let (similarity, distance) = evidence(&found.record).unwrap_or((f64::NAN, None));
            let second = found.record.second;
            let shown = (found.row, found.kept_id, similarity, distance, second);
            shown.into_pyobject(py)?.into_any()
        }
        Reply::List(all) => {
            let listed = all.into_iter().map(|listed| {
                let evidence = evidence(&listed.record);
                let record = listed.record;
                (
                    (listed.row, record.id, record.second),
                    (record.sketch, record.num_features),
                    (listed.kept_id, evidence),
                )
            });
            listed.collect::<Vec<_>>().into_pyobject(py)?
        }
        Reply::Records(all, end) => {
            let rules = *rule.rules();
            let documents = Bound::new(py, MovedDocuments { rules, all })?;
            (documents, end).into_pyobject(py)?.into_any()
        }
        Reply::Audit(num, findings) => {
            let found = findings.into_iter().map(|found| (found.id, found.name));
            (num, found.collect::<Vec<_>>())
                .into_pyobject(py)?
                .into_any()
        }
        Reply::Group(leader, is_gone, members) => {
            (leader, is_gone, members).into_pyobject(py)?.into_any()
        }
    })
}

/// Strings that one MGET reads: a command has at most a million arguments.
const STRINGS_A_COMMAND: usize = 1 << 16;

/// The commands that read strings of a partition, as a server reads them, and their number. `tag` precedes each name; `names` is from a decision.
#[pyfunction]
pub fn cluster_gets(tag: &[u8], names: &[u8]) -> Result<(Vec<u8>, usize)> {
    let mut keys = Vec::with_capacity(names.len() / 6);
    let mut rest = names;
    while let Some((length, after)) = rest.split_first_chunk() {
        let length = usize::from(u16::from_le_bytes(*length));
        let (name, after) = after
            .split_at_checked(length)
            .ok_or_else(|| Failure::input("a name is cut"))?;
        keys.push(name);
        rest = after;
    }
    // All names have a few bytes.
    let longest = keys.iter().map(|name| name.len()).max().unwrap_or(0);
    let heads: Vec<String> = (0..=longest)
        .map(|length| format!("${}\r\n", tag.len() + length))
        .collect();
    let mut packed = Vec::with_capacity(names.len() + keys.len() * (tag.len() + 8) + 32);
    for some in keys.chunks(STRINGS_A_COMMAND) {
        packed.extend_from_slice(format!("*{}\r\n$4\r\nMGET\r\n", some.len() + 1).as_bytes());
        for name in some {
            packed.extend_from_slice(heads[name.len()].as_bytes());
            packed.extend_from_slice(tag);
            packed.extend_from_slice(name);
            packed.extend_from_slice(b"\r\n");
        }
    }
    Ok((packed, keys.len().div_ceil(STRINGS_A_COMMAND)))
}

/// Makes the operations that fill a new index with documents that have verdicts.
#[pyclass(frozen, module = "likewise._native")]
pub struct ClusterRestoring {
    rule: Arc<cluster::ClusterRule>,
    restoring: Mutex<cluster::Restoring>,
}

#[pymethods]
impl ClusterRestoring {
    #[new]
    fn new(rule: &ClusterRule) -> Self {
        let rule = rule.rule.clone();
        let restoring = Mutex::new(cluster::Restoring::new(&rule));
        ClusterRestoring { rule, restoring }
    }

    /// The operations that add documents with the verdicts that they have, each with the last second at which one of its documents arrived.
    fn operations(
        &self,
        py: Python<'_>,
        documents: &MovedDocuments,
    ) -> Result<Vec<(Vec<u8>, u64)>> {
        run(py, 0, |_| {
            Ok(lock(&self.restoring).operations(&self.rule, &documents.all))
        })
    }
}

/// A decision in progress: reads what is wanted until nothing is, then has a verdict.
#[pyclass(frozen, module = "likewise._native")]
pub struct ClusterDecision {
    rule: Arc<cluster::ClusterRule>,
    decision: Mutex<cluster::Decision>,
}

#[pymethods]
impl ClusterDecision {
    /// What must be read now: partition, names of strings, names and fields of hashes. Each partition occurs once.
    #[allow(clippy::type_complexity)]
    fn wanted(&self, py: Python<'_>) -> Result<Vec<(u32, Vec<u8>, Vec<u8>)>> {
        let round = run(py, 0, |_| asked(self.held().wanted()))?;
        let shown = round.into_iter();
        let shown = shown.map(|wanted| (wanted.partition, wanted.tables, wanted.records));
        Ok(shown.collect())
    }

    /// Takes what a partition returned, and the changes of its operations below the low mark, in order.
    fn take(
        &self,
        py: Python<'_>,
        partition: u32,
        found: Vec<Option<Bytes<'_>>>,
        records: Vec<Option<Bytes<'_>>>,
        changes: Vec<Bytes<'_>>,
    ) -> Result<()> {
        let strings = found
            .iter()
            .map(|found| bytes_of(found).unwrap_or_default());
        let found: Vec<&[u8]> = strings.collect();
        let records: Vec<Option<&[u8]>> = records.iter().map(bytes_of).collect();
        let changes: Vec<&[u8]> = changes.iter().map(|bytes| bytes.as_bytes()).collect();
        run(py, 0, |_| {
            asked(self.held().take(partition, &found, &records, &changes))
        })
    }

    /// How many documents were searched, and how many entries of tables and bands were read for them.
    fn searched(&self) -> (usize, u64) {
        self.held().searched()
    }

    /// The verdict on an operation of the log, as it is stored.
    fn verdict(&self) -> Result<Vec<u8>> {
        self.held().verdict().ok_or_else(unread)
    }

    /// The answer to a question, once: a verdict as `ClusterRule.answer` shows it, neighbors, a document, a group, a list of documents, or the result of an audit.
    fn answer<'py>(&self, py: Python<'py>) -> Result<Object<'py>> {
        let mut held = self.held();
        let reply = held.take_reply().ok_or_else(unread)?;
        shown_reply(py, &self.rule, &held.operation, held.row, reply)
    }
}

fn bytes_of<'a>(bytes: &'a Option<Bytes<'_>>) -> Option<&'a [u8]> {
    bytes.as_ref().map(|bytes| bytes.as_bytes())
}

fn unread() -> Failure {
    Failure::input("the decision still wants replies")
}

impl ClusterDecision {
    fn held(&self) -> std::sync::MutexGuard<'_, cluster::Decision> {
        lock(&self.decision)
    }
}
