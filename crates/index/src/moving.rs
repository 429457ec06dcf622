//! How do documents move out of an index in a directory, and into a new one, with the verdicts that they have?

use std::collections::HashMap;
use std::ops::Range;
use std::sync::atomic::AtomicBool;

use likewise_core::parallel::{Cancel, lock};
use likewise_disk::store::{Chunk, Content, DocumentRow, Keeps, NewContent, Position, Store};

use crate::add::own_weights;
use crate::cluster::{MovedDocument, Record, RowNumbers, Verdict};
use crate::decide::holder::Holder;
use crate::documents::known_digest;
use crate::error::{Error, Result};
use crate::index::Index;
use crate::rules::Rules;
use crate::shared::Shared;
use crate::state::in_memory::COLLAPSED;

/// Documents and bytes of content at which a part ends.
const PART_DOCUMENTS: usize = 2000;
const PART_BYTES: usize = 8 << 20;

/// Identity of an index, and what it knows: equal ones have the same documents and verdicts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Standing {
    pub identity: [u8; 16],
    /// What was added, removed and expired.
    pub position: Position,
}

impl Index {
    pub fn standing_now(&self) -> Result<Standing> {
        self.ready(&AtomicBool::new(false))?;
        self.repairing(|| {
            let lease = self.shared.lease(&self.shared.state())?;
            Ok(Standing {
                identity: lease.identity,
                position: lease.position,
            })
        })
    }

    /// The rows of documents that are not gone, and of expired ones that these name as kept.
    pub fn moving_rows(&self, cancel: &AtomicBool) -> Result<RowNumbers> {
        self.ready(cancel)?;
        let mut numbers = self.repairing(|| {
            let lease = self.shared.lease(&self.shared.state())?;
            let mut numbers = RowNumbers::default();
            let mut next = 0;
            while next < lease.num_rows() {
                cancel.check()?;
                let mut end = next;
                lease.scan(next..next.saturating_add(1 << 16), |chunk| {
                    for place in (0..chunk.rows.len()).filter(|&place| !chunk.gone[place]) {
                        numbers.insert(chunk.rows[place]);
                        if let Some(evidence) = chunk.verdicts[place] {
                            numbers.insert(evidence.kept_row);
                        }
                    }
                    end = chunk.span.end;
                    Ok(())
                })?;
                next = end.max(next + 1);
            }
            Ok(numbers)
        })?;
        numbers.count();
        Ok(numbers)
    }

    /// Documents that move, from the chunk of a row on, and the row of the next chunk; `None` behind the last one.
    pub fn moved_from(
        &self,
        row: u32,
        numbers: &RowNumbers,
        cancel: &AtomicBool,
    ) -> Result<Option<(Vec<MovedDocument>, u32)>> {
        self.ready(cancel)?;
        self.repairing(|| {
            let lease = self.shared.lease(&self.shared.state())?;
            let (mut next, mut num_bytes) = (row, 0);
            let mut found = Vec::new();
            while next < lease.num_rows() && found.len() < PART_DOCUMENTS && num_bytes < PART_BYTES
            {
                cancel.check()?;
                let mut part = Vec::new();
                let begin = next;
                lease.scan(begin..begin + 1, |chunk| {
                    next = end_of_part(chunk, begin, PART_BYTES - num_bytes);
                    part = self.moved_of(chunk, begin..next, &lease, numbers)?;
                    Ok(())
                })?;
                num_bytes += part.iter().map(content_bytes).sum::<usize>();
                found.append(&mut part);
            }
            Ok((next > row).then_some((found, next)))
        })
    }

    fn moved_of(
        &self,
        chunk: &Chunk,
        rows: Range<u32>,
        store: &Store,
        numbers: &RowNumbers,
    ) -> Result<Vec<MovedDocument>, likewise_disk::Error> {
        let mut contents = HashMap::new();
        store.scan_contents(rows.clone(), |row, content| {
            contents.insert(row, content);
            Ok(())
        })?;
        let mut found = Vec::with_capacity(chunk.rows.len());
        for stored in chunk.documents() {
            let document = stored.document;
            let (row, verdict, shape) = (document.row, document.verdict, document.shape);
            if !rows.contains(&row) || numbers.number_of(row).is_none() {
                continue;
            }
            let content = contents.remove(&row).unwrap_or(Content::Absent);
            let record = Record {
                id: document.id.to_owned(),
                sketch: document.sketch.to_vec(),
                // One that collapsed and is kept was promoted since.
                shape: match verdict {
                    None => shape & !COLLAPSED,
                    Some(_) => shape,
                },
                num_features: document.num_features,
                text_digest: document.text_digest,
                digest: known_digest(stored.feature_digest, &content),
                verdict: verdict.map(|evidence| Verdict {
                    evidence,
                    tag: Default::default(),
                }),
                levels: document.levels.to_vec(),
                second: document.arrival_s,
            };
            found.extend(numbers.renumbered(MovedDocument {
                row,
                record,
                content,
            }));
        }
        Ok(found)
    }

    /// Appends documents with their verdicts to an index that is being filled; nothing is decided, nothing expires.
    /// Rows must be the next ones with new ids, or nothing of the transaction is added.
    pub fn restore(
        &self,
        documents: &[MovedDocument],
        now_s: u64,
        cancel: &AtomicBool,
    ) -> Result<()> {
        self.ready(cancel)?;
        // A transaction has either all digests of texts or none.
        let has_text = |document: &MovedDocument| document.record.text_digest.is_some();
        for part in documents.chunk_by(|a, b| has_text(a) == has_text(b)) {
            self.repairing(|| self.restore_part(part, now_s))?;
        }
        self.build_when_due();
        self.checkpoint_when_due();
        self.let_build_catch_up(documents.len(), cancel);
        Ok(())
    }

    fn restore_part(&self, documents: &[MovedDocument], now_s: u64) -> Result<()> {
        let shared: &Shared = &self.shared;
        let rules = shared.rules();
        let mut writer = lock(&shared.writer);
        let store = writer.as_mut().ok_or(Error::ReadOnly)?;
        self.check_new(store, documents, now_s)?;
        let first_row = store.num_rows();
        let rows: Vec<DocumentRow<'_>> = (first_row..)
            .zip(documents)
            .map(|(row, document)| DocumentRow {
                content: content_of(rules, document),
                arrival_s: document.record.second,
                ..document.record.row(row)
            })
            .collect();
        shared.append(store, &rows, None, 1)
    }

    /// Checks that the rows of documents are the next ones, and that no other document that has not expired has their ids.
    fn check_new(&self, store: &Store, documents: &[MovedDocument], now_s: u64) -> Result<()> {
        let shared: &Shared = &self.shared;
        let state = shared.state();
        let mut lookup = shared.lookup(&state, store);
        let is_expired = |second: u64| shared.ttl_s.is_some_and(|ttl_s| second + ttl_s < now_s);
        let mut seconds: HashMap<&str, u64> = HashMap::with_capacity(documents.len());
        for (place, (row, document)) in (store.num_rows()..).zip(documents).enumerate() {
            let id = &document.record.id;
            if document.row != row {
                return Err(Error::input(
                    place,
                    format!(
                        "document {} does not come after {row} documents",
                        document.row
                    ),
                ));
            }
            let mut earlier = seconds.insert(id, document.record.second);
            if let Some(row) = lookup.row_of_id(id, None)? {
                earlier = Some(store.row(row)?.arrival_s.max(earlier.unwrap_or(0)));
            }
            if earlier.is_some_and(|second| !is_expired(second)) {
                return Err(Error::input(place, format!("the id {id:?} occurs twice")));
            }
        }
        Ok(())
    }
}

/// What an index with these rules stores of a document in addition to its sketch.
fn content_of<'a>(rules: &Rules, document: &'a MovedDocument) -> NewContent<'a> {
    match (rules.keeps, &document.content) {
        (Keeps::Text, Content::Text(text)) => NewContent::Text(text),
        (Keeps::Text, _) => NewContent::Text(&[]),
        (_, Content::Features(features, weights))
            if rules.keeps_set(document.record.num_features) =>
        {
            NewContent::Features(features, own_weights(weights))
        }
        _ => NewContent::Absent,
    }
}

/// The end of the rows of a chunk whose contents take about `num_bytes`: 8 for each feature, about as much as its text.
fn end_of_part(chunk: &Chunk, begin: u32, bytes: usize) -> u32 {
    let first = chunk.rows.partition_point(|&row| row < begin);
    let mut left = bytes;
    for place in first..chunk.rows.len() {
        let of_row = 8 * chunk.num_features[place] as usize;
        if of_row > left && place > first {
            return chunk.rows[place];
        }
        left = left.saturating_sub(of_row);
    }
    chunk.span.end
}

fn content_bytes(document: &MovedDocument) -> usize {
    match &document.content {
        Content::Absent => 0,
        Content::Features(features, _) => 8 * features.len(),
        Content::Text(text) => text.len(),
    }
}
