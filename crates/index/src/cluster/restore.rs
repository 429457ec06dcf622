//! How do documents come onto the servers of a cluster with the verdicts that they have?

use std::collections::{HashMap, HashSet};

use likewise_disk::store::Content;

use crate::cluster::answer::Answer;
use crate::cluster::effects::has_set;
use crate::cluster::moved::{LEVEL, MovedDocument, pack_moved};
use crate::cluster::operation::{Kind, Operation};
use crate::cluster::rule::ClusterRule;
use crate::decide::lookup::Lookup;
use crate::error::Error;
use crate::keys::Keys;

/// Buckets that are remembered as marked. One that is forgotten is marked again, which changes no answer.
const MAX_MARKED: usize = 1 << 20;

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

    /// The operation that adds documents with the verdicts that they have.
    ///
    /// All operations of one move need nonces with the same first bytes, since references contain these.
    pub fn operation(&mut self, rule: &ClusterRule, documents: &[MovedDocument]) -> Vec<u8> {
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
            if !has_set(rule, record) {
                document.content = Content::Absent;
            }
        }
        let mut packed = vec![Kind::Restore as u8];
        pack_moved(rule.rules(), &all, &mut packed);
        packed
    }
}

/// Decides on an operation that begins at a row: whether its documents are the next ones and their ids new.
pub fn decide_restore(
    rule: &ClusterRule,
    operation: &Operation,
    row: u32,
    second: u64,
    lookup: &mut Lookup<'_>,
) -> Result<Answer, Error> {
    let is_expired = |of: u64| rule.ttl_s.is_some_and(|ttl_s| of + ttl_s < second);
    let mut num_kept = 0;
    let mut seconds = HashMap::new();
    for (place, (row, document)) in (row..).zip(&operation.moved).enumerate() {
        let record = &document.record;
        let earlier = seconds.insert(record.id.as_str(), record.second);
        let is_new =
            earlier.is_none_or(is_expired) && lookup.row_of_id(&record.id, None)?.is_none();
        if document.row != row || !is_new {
            return Ok(Answer::NotRestored(place as u32));
        }
        num_kept += usize::from(record.verdict.is_none());
    }
    Ok(Answer::Restored(operation.moved.len(), num_kept))
}
