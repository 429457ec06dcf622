//! How do documents come onto the servers of a cluster with the verdicts that they have?

use std::collections::{HashMap, HashSet};

use likewise_disk::store::Content;

use crate::cluster::answer::Answer;
use crate::cluster::effects::has_set;
use crate::cluster::moved::{LEVEL, MovedDocument, pack_moved};
use crate::cluster::operation::{Kind, Operation};
use crate::cluster::rule::ClusterRule;
use crate::decide::lookup::Lookup;
use crate::error::Result;
use crate::keys::Keys;

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
            if !has_set(rule, record) {
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
