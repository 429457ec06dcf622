//! What decides on a cluster?

use std::ops::Range;

use likewise_disk::store::Evidence;
use likewise_hamming::plan::SearchPlan;

use crate::cluster::answer::{Answer, Reason};
use crate::cluster::bytes::{Packed, Unpack};
use crate::cluster::names::{Names, NamesCost};
use crate::cluster::operation::{Kind, Operation, pack_documents, pack_id, pack_rows};
use crate::cluster::record::Record;
use crate::decide::nearest::Nearest;
use crate::decide::other_text;
use crate::documents::{Documents, Sketching};
use crate::error::{Error, Result};
use crate::keys::Keys;
use crate::queries::Verdicts;
use crate::rules::{Method, Rules};
use crate::state::plan::plan_of_coins;

/// The rule of an index on a cluster: recipe, keys, number of partitions, age limit.
#[derive(Clone)]
pub struct ClusterRule {
    pub sketching: Sketching,
    pub names: Names,
    pub partitions: u32,
    pub ttl_s: Option<u64>,
    /// Band keys, to be copied.
    pub(crate) keys: Keys,
    pub(crate) plan: Option<SearchPlan>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Counts {
    pub added: usize,
    /// Documents that are kept since; with a removal that of a kept one taken off.
    pub kept: i64,
    pub gone: usize,
    /// Rows below it were swept; 0 if none were.
    pub swept: u32,
}

impl ClusterRule {
    pub fn new(
        sketching: Sketching,
        names: Names,
        partitions: u32,
        ttl_s: Option<u64>,
    ) -> Result<Self> {
        let rules = &sketching.rules;
        let plan = match rules.method {
            Method::Simhash { bits, within } => Some(plan_of_coins(bits, within)?),
            Method::Minhash { .. } => None,
        };
        Ok(ClusterRule {
            keys: Keys::new(rules),
            plan,
            sketching,
            names,
            partitions: partitions.max(1),
            ttl_s,
        })
    }

    pub fn rules(&self) -> &Rules {
        &self.sketching.rules
    }

    /// What reading costs, by its model.
    pub fn cost(&self) -> NamesCost {
        self.names.cost(self.rules())
    }

    pub fn add(&self, ids: &[&str], documents: &Documents) -> Vec<u8> {
        pack_documents(Kind::Add, self.rules(), Some(ids), documents, None)
    }

    pub fn check(&self, documents: &Documents) -> Vec<u8> {
        pack_documents(Kind::Check, self.rules(), None, documents, None)
    }

    pub fn neighbors(&self, documents: &Documents, nearest: Nearest) -> Vec<u8> {
        let kind = Kind::Neighbors;
        pack_documents(kind, self.rules(), None, documents, Some(nearest))
    }

    /// An operation on an id: a removal, or a question.
    pub fn of_id(&self, kind: Kind, id: &str) -> Vec<u8> {
        pack_id(kind, id)
    }

    /// A question for the documents of some rows: a list, or an audit.
    pub fn of_rows(&self, kind: Kind, rows: &Range<u32>) -> Vec<u8> {
        pack_rows(kind, rows)
    }

    /// The operation that deletes those of some rows that expired long ago; none where documents do not expire.
    pub fn sweep(&self, rows: &Range<u32>) -> Option<Vec<u8>> {
        self.ttl_s.map(|_| pack_rows(Kind::Sweep, rows))
    }

    /// The verdict on an operation on which no decision is possible.
    pub fn rejected(&self, reason: &str) -> Vec<u8> {
        self.packed(&Answer::Rejected(Reason(reason.to_owned())))
    }

    pub fn packed(&self, answer: &Answer) -> Vec<u8> {
        let mut packed = Vec::new();
        answer.put(self.rules(), &mut packed);
        packed
    }

    pub fn operation(&self, payload: &[u8]) -> Result<Operation> {
        Operation::unpack(self.rules(), payload)
    }

    pub fn answer(&self, verdict: &[u8]) -> Result<Answer> {
        Answer::take(self.rules(), &mut Unpack(verdict))
    }

    pub fn id_of_record(&self, record: &[u8]) -> Result<String> {
        Ok(Record::unpack(self.rules(), record)?.id)
    }

    /// Verdicts on the documents of an operation that begins at a row; [`Error::Input`] for an id with another text.
    pub fn verdicts(&self, operation: &Operation, row: u32, answer: Answer) -> Result<Verdicts> {
        let all = match answer {
            Answer::Documents(all) if operation.is_decided_by(&all) => all,
            Answer::OtherText(place) => {
                let id = operation.ids().get(place).copied().unwrap_or_default();
                return Err(other_text(place, id));
            }
            _ => return Err(Error::Unreadable),
        };
        let mut verdicts = Verdicts::default();
        let mut added: Vec<usize> = Vec::new();
        for (place, decided) in all.into_iter().enumerate() {
            if operation.kind == Kind::Add {
                verdicts.rows.push(match decided.added {
                    true => row + added.len() as u32,
                    false => decided.reference.row,
                });
            }
            verdicts.added.push(decided.added);
            if decided.added {
                added.push(place);
            }
            let evidence: Option<Evidence> = decided.verdict.map(|verdict| verdict.evidence);
            if let Some(evidence) = evidence {
                let of_batch = || {
                    let added_there = evidence.kept_row.checked_sub(row)? as usize;
                    Some(operation.id(*added.get(added_there)?).to_owned())
                };
                let id = decided.kept_id.or_else(of_batch);
                verdicts.kept_ids.push(id.ok_or(Error::Unreadable)?);
            }
            verdicts.evidence.push(evidence);
        }
        Ok(verdicts)
    }

    pub fn counts(&self, verdict: &[u8]) -> Result<Counts> {
        let mut counts = Counts {
            added: 0,
            kept: 0,
            gone: 0,
            swept: 0,
        };
        match self.answer(verdict)? {
            Answer::Documents(all) => {
                for decided in all.iter().filter(|decided| decided.added) {
                    counts.added += 1;
                    counts.kept += i64::from(decided.verdict.is_none());
                }
            }
            Answer::Removed(removed) => {
                counts.gone = 1;
                counts.kept -= i64::from(removed.record.verdict.is_none());
                let promoted = removed.changed.iter();
                let promoted = promoted.filter(|changed| changed.kept_id.is_none());
                counts.kept += promoted.count() as i64;
            }
            Answer::Restored(num, num_kept) => {
                counts.added = num;
                counts.kept = num_kept as i64;
            }
            Answer::Swept(end, all) => {
                counts.gone = all.len();
                counts.swept = end;
                let kept = all.iter().filter(|(_, record)| record.verdict.is_none());
                counts.kept -= kept.count() as i64;
            }
            _ => {}
        }
        Ok(counts)
    }
}
