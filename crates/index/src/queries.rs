//! Checks, additions and removals as calls of a user.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use likewise_core::parallel::{Cancel, Run, lock};
use likewise_core::text::Document;
use likewise_disk::store::{Chunk, ChunkRow, Content, DocumentRow, Evidence, Keeps, Row, Store};

use crate::decide::holder::Holder;
use crate::decide::lookup::{Lookup, Records, stored_row};
use crate::decide::nearest::{Nearest, Neighbor};
use crate::decide::pool::{Pool, Sketched};
use crate::decide::removal::Removal;
use crate::decide::{BLOCK, Committed};
use crate::documents::{Documents, known_digest};
use crate::error::{Error, Result};
use crate::index::Index;
use crate::shared::Shared;
use crate::state::State;

/// Bytes of a document whose scratch space is not kept for the next.
const LARGE_BYTES: usize = 1 << 20;

/// Verdicts of several documents, column by column.
#[derive(Debug, Default, Clone)]
pub struct Verdicts {
    /// Evidence against each; nothing for a new one.
    pub evidence: Vec<Option<Evidence>>,
    /// Id of the kept document of each piece of evidence, in order.
    pub kept_ids: Vec<String>,
    /// The row of each; none of those that were checked only.
    pub rows: Vec<u32>,
    pub added: Vec<bool>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Group {
    pub leader_id: String,
    /// Whether it is gone: it expired, its duplicates did not.
    pub is_leader_gone: bool,
    /// Ids of its duplicates, in order of arrival.
    pub member_ids: Vec<String>,
}

/// What a removal did, by id.
#[derive(Debug, Clone, PartialEq)]
pub struct Removed {
    /// By row.
    pub removal: Removal,
    /// Ids of those that are kept from now on.
    pub promoted_ids: Vec<String>,
    /// Ids of those that have another kept document from now on, and its.
    pub moved_ids: Vec<(String, String)>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Among {
    Kept,
    /// All.
    All,
}

impl Shared {
    /// The sketches of all rows of a state.
    fn sketched(&self, state: &State, store: &Store, cancel: &AtomicBool) -> Result<Arc<Sketched>> {
        let mut sketched = lock(&self.sketched);
        if sketched.num_rows < state.num_rows() {
            let bytes = self.rules().sketch_bytes();
            Arc::make_mut(&mut sketched).extend(store, state.num_rows(), bytes, cancel)?;
        }
        Ok(Arc::clone(&sketched))
    }
}

impl Index {
    /// Sketches one document, with what sketched those before it.
    pub fn sketch_one(&self, document: Document<'_>) -> Documents {
        let sketchers = &self.shared.sketchers;
        let is_large = document.bytes().len() > LARGE_BYTES;
        let held = lock(sketchers).pop();
        let mut sketcher = held.unwrap_or_else(|| self.shared.sketching.sketcher());
        let mut documents = Documents::default();
        sketcher.add(document, &mut documents);
        // What grew with a large one is not worth keeping.
        if !is_large {
            lock(sketchers).push(sketcher);
        }
        documents
    }

    /// The verdict that each document would get now, independently of the others; with `end`, as if the rows from that
    /// one on did not exist. Cost: about 2 us a fingerprint at ten million; a read of the store for each duplicate.
    pub fn check(&self, documents: &Documents, end: Option<u32>, run: Run<'_>) -> Result<Verdicts> {
        self.ready(run.cancel)?;
        let end = end.unwrap_or(u32::MAX);
        self.repairing(|| self.check_once(documents, end, run))
    }

    fn check_once(&self, documents: &Documents, end: u32, run: Run<'_>) -> Result<Verdicts> {
        let shared: &Shared = &self.shared;
        let mut verdicts = Verdicts::default();
        for start in (0..documents.len()).step_by(BLOCK) {
            let range = start..documents.len().min(start + BLOCK);
            let state = shared.state();
            let lease = shared.lease(&state)?;
            let committed = Committed::new(shared, &state, Some(&*lease));
            for seen in committed.check(documents, None, end, range, run)? {
                verdicts.evidence.push(seen.evidence());
                verdicts.kept_ids.extend(seen.kept_id);
            }
        }
        verdicts.added = vec![false; documents.len()];
        Ok(verdicts)
    }

    /// Reads in the current state, by a lookup in it and a store of this state.
    fn reading<T>(
        &self,
        cancel: &AtomicBool,
        read: impl Fn(&mut Lookup<'_>, &State, &Store) -> Result<T>,
    ) -> Result<T> {
        self.ready(cancel)?;
        self.repairing(|| {
            let state = self.shared.state();
            let lease = self.shared.lease(&state)?;
            read(&mut self.shared.lookup(&state, &*lease), &state, &lease)
        })
    }

    /// Whether there is a document of each id.
    pub fn are_known(&self, ids: &[&str], cancel: &AtomicBool) -> Result<Vec<bool>> {
        self.reading(cancel, |lookup, _, _| {
            ids.iter()
                .map(|id| {
                    cancel.check()?;
                    Ok(lookup.row_of_id(id, None)?.is_some())
                })
                .collect()
        })
    }

    /// Place of the first document whose id the index has with another text.
    pub fn first_of_other_text(
        &self,
        ids: &[&str],
        documents: &Documents,
        cancel: &AtomicBool,
    ) -> Result<Option<usize>> {
        self.reading(cancel, |lookup, _, _| {
            for (i, id) in ids.iter().enumerate() {
                if let Some((_, false)) = lookup.known(documents, i, id, None)? {
                    return Ok(Some(i));
                }
            }
            Ok(None)
        })
    }

    /// Number of rows when a batch run that adds rows first compared its documents with the index: the current number if none of its rows exist.
    pub fn first_row_of_run(&self, identity: [u8; 16]) -> Result<u32> {
        self.reading(&AtomicBool::new(false), |_, state, lease| {
            let found = lease.first_row_of_run(identity)?;
            Ok(found.unwrap_or_else(|| state.num_rows()))
        })
    }

    pub fn get(&self, id: &str) -> Result<Option<(u32, Row, Option<String>)>> {
        self.reading(&AtomicBool::new(false), |lookup, state, lease| {
            let Some(row) = lookup.row_of_id(id, None)? else {
                return Ok(None);
            };
            let stored = stored_row(state, lease, row)?;
            let kept_row = stored.verdict.map(|evidence| evidence.kept_row);
            let kept_id = kept_row.map(|row| lookup.id(row)).transpose()?;
            Ok(Some((row, stored, kept_id)))
        })
    }

    /// Returns the stored text of an id; None for an unknown one, and where no texts are stored.
    pub fn text(&self, id: &str) -> Result<Option<Vec<u8>>> {
        self.reading(&AtomicBool::new(false), |lookup, _, store| {
            let found = lookup.row_of_id(id, None)?;
            match found.map(|row| Records::content(store, row)) {
                Some(content) => match content? {
                    Content::Text(text) => Ok(Some(text)),
                    _ => Ok(None),
                },
                None => Ok(None),
            }
        })
    }

    pub fn group(&self, id: &str) -> Result<Group> {
        self.reading(&AtomicBool::new(false), |lookup, _, _| {
            let row = lookup.row_of_id(id, None)?;
            let row = row.ok_or_else(|| Error::UnknownId(id.to_owned()))?;
            let verdict = lookup.row(row)?.verdict;
            let leader = verdict.map_or(row, |evidence| evidence.kept_row);
            let members = lookup.members(leader)?;
            let member_ids = members.iter().map(|&member| lookup.id(member));
            Ok(Group {
                member_ids: member_ids.collect::<Result<_, _>>()?,
                leader_id: lookup.id(leader)?,
                is_leader_gone: lookup.is_gone(leader),
            })
        })
    }

    /// The most similar documents of each document, best first, among equals in order of arrival, whether or not they
    /// match. With `among`, those with the most similar sketches are measured, of all or kept ones, which are kept in
    /// memory; without it, the kept ones that verdicts would be based on.
    pub fn neighbors(
        &self,
        documents: &Documents,
        nearest: Nearest,
        among: Option<Among>,
        run: Run<'_>,
    ) -> Result<Vec<Vec<Neighbor>>> {
        self.ready(run.cancel)?;
        self.repairing(|| {
            let shared: &Shared = &self.shared;
            let mut all = Vec::with_capacity(documents.len());
            for start in (0..documents.len()).step_by(BLOCK) {
                let range = start..documents.len().min(start + BLOCK);
                let state = shared.state();
                let lease = shared.lease(&state)?;
                let sketched = among.map(|_| shared.sketched(&state, &lease, run.cancel));
                let sketched = sketched.transpose()?;
                let pool = sketched.as_deref().map(|sketched| Pool {
                    sketched,
                    has_duplicates: among == Some(Among::All),
                });
                let committed = Committed::new(shared, &state, Some(&*lease));
                all.extend(committed.neighbors(documents, range, nearest, pool, run)?);
            }
            Ok(all)
        })
    }

    /// Removes a document and reassigns or keeps its duplicates, in one transaction; if canceled, nothing changed.
    pub fn remove(&self, id: &str, cancel: &AtomicBool) -> Result<Removed> {
        let row_of = |lookup: &mut Lookup<'_>| {
            let row = lookup.row_of_id(id, None)?;
            row.ok_or_else(|| Error::UnknownId(id.to_owned()))
        };
        self.remove_found(&row_of, cancel)
    }

    /// The same of the row of an expired document that duplicates still name.
    pub fn remove_expired(&self, row: u32, cancel: &AtomicBool) -> Result<Removed> {
        self.remove_found(&|_| Ok(row), cancel)
    }

    fn remove_found(
        &self,
        row_of: &dyn Fn(&mut Lookup<'_>) -> Result<u32>,
        cancel: &AtomicBool,
    ) -> Result<Removed> {
        self.ready(cancel)?;
        let removed = self.repairing(|| {
            let shared: &Shared = &self.shared;
            let mut writer = lock(&shared.writer);
            let store = writer.as_mut().ok_or(Error::ReadOnly)?;
            let state = shared.state();
            let mut lookup = shared.lookup(&state, store);
            let row = row_of(&mut lookup)?;
            let removal = lookup.removal(row, shared, cancel)?;
            let promoted = removal.promoted.iter().map(|&row| lookup.id(row));
            let promoted_ids = promoted.collect::<Result<_, _>>()?;
            let mut moved_ids = Vec::with_capacity(removal.moved.len());
            for &(row, evidence) in &removal.moved {
                moved_ids.push((lookup.id(row)?, lookup.id(evidence.kept_row)?));
            }
            drop(lookup);
            drop(state);
            shared.commit_events(store, &[removal.event()])?;
            shared.note_log(store);
            Ok(Removed {
                removal,
                promoted_ids,
                moved_ids,
            })
        })?;
        self.build_when_due();
        self.checkpoint_when_due();
        Ok(removed)
    }
}

/// Documents of one chunk of the store that are not gone, in order of arrival.
#[derive(Debug, Default)]
pub struct StoredPart {
    pub ids: Vec<String>,
    pub documents: Documents,
    /// Their texts, if the index stores texts.
    pub texts: Vec<Vec<u8>>,
    /// Id of the kept document of each; nothing for a kept one.
    pub kept_ids: Vec<Option<String>>,
}

impl Index {
    /// Ids of the documents from a row to the end of its chunk, and the first row of the next one; `None` after the last.
    pub fn ids_from(&self, row: u32) -> Result<Option<(Vec<String>, u32)>> {
        self.of_chunk(row, |chunk, _| {
            let ids = documents_from(chunk, row).map(|found| found.document.id.to_owned());
            Ok(ids.collect())
        })
    }

    /// The documents from a row to the end of its chunk, and the first row of the next one; `None` after the last.
    pub fn stored_from(&self, row: u32, run: Run<'_>) -> Result<Option<(StoredPart, u32)>> {
        let found = self.of_chunk(row, |chunk, store| stored_part(chunk, row, store))?;
        let Some((mut part, next)) = found else {
            return Ok(None);
        };
        if !part.texts.is_empty() {
            let sketching = self.sketching();
            let all = 0..part.texts.len();
            let document = |i: usize| sketching.text_kind.document(&part.texts[i]);
            part.documents = sketching.documents(std::slice::from_ref(&all), document, run)?;
        }
        Ok(Some((part, next)))
    }

    /// What is made of the chunk that holds a row.
    fn of_chunk<T>(
        &self,
        row: u32,
        make: impl Fn(&Chunk, &Store) -> Result<T, likewise_disk::Error>,
    ) -> Result<Option<(T, u32)>> {
        self.ready(&AtomicBool::new(false))?;
        self.repairing(|| {
            let lease = self.shared.lease(&self.shared.state())?;
            let mut found = None;
            lease.scan(row..row.saturating_add(1), |chunk| {
                found = Some((make(chunk, &lease)?, chunk.span.end));
                Ok(())
            })?;
            Ok(found)
        })
    }
}

/// The documents of a chunk from a row on that are not gone: of those before it, compaction joined the chunk after they
/// were read.
fn documents_from(chunk: &Chunk, row: u32) -> impl Iterator<Item = ChunkRow<'_>> {
    let documents = chunk.documents();
    documents.filter(move |found| found.document.row >= row && !found.is_gone)
}

fn stored_part(chunk: &Chunk, row: u32, store: &Store) -> Result<StoredPart, likewise_disk::Error> {
    let description = store.description();
    let mut part = StoredPart::default();
    for found in documents_from(chunk, row) {
        let document = found.document;
        part.ids.push(document.id.to_owned());
        let kept_row = document.verdict.map(|evidence| evidence.kept_row);
        let kept_id = kept_row.map(|kept_row| store.id(kept_row)).transpose()?;
        part.kept_ids.push(kept_id);
        let content = match store.content(document.row)? {
            Content::Text(text) => {
                part.texts.push(text);
                continue;
            }
            Content::Absent if description.keeps == Keeps::Text => {
                part.texts.push(Vec::new());
                continue;
            }
            content => content,
        };
        part.documents.push_stored(&DocumentRow {
            shape: document.shape & 3,
            digest: known_digest(found.feature_digest, &content),
            content: content.as_new(),
            ..document
        });
    }
    Ok(part)
}
