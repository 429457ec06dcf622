//! Is a document new, and if not, of which is it a duplicate?

pub mod asked;
pub mod batch;
pub mod buckets;
pub mod holder;
pub mod lookup;
pub mod measure;
pub mod nearest;
pub mod pool;
pub mod removal;

use std::ops::Range;
use std::sync::atomic::AtomicBool;

use likewise_core::parallel::Run;
use likewise_disk::store::Evidence;

use crate::decide::asked::{Asked, Collapse, Near};
use crate::decide::batch::{StagedBatch, Standing};
use crate::decide::buckets::BandEnd;
use crate::decide::holder::Holder;
use crate::decide::lookup::{Lookup, Prefetched, Records};
use crate::decide::measure::OwnSet;
use crate::decide::nearest::{NearRows, near_rows};
use crate::documents::Documents;
use crate::error::Error;
use crate::state::State;
use crate::state::in_memory::is_blank;

pub const BLOCK: usize = 2048;
/// Documents that are worth a thread.
const GRAIN: usize = 128;

#[derive(Debug, Default)]
pub struct Seen {
    /// The row of its id, if it exists, and whether it is the same document.
    pub known: Option<(u32, bool)>,
    /// What it collapses into.
    pub collapse: Option<Collapse>,
    /// The best evidence else.
    pub best: Option<Evidence>,
    /// Where its buckets end.
    pub ends: Vec<BandEnd>,
    /// Id of the kept document of the evidence, or of that of the known row.
    pub kept_id: Option<String>,
    pub known_evidence: Option<Evidence>,
}

impl Seen {
    /// The evidence against the document, were there no others with it.
    pub fn evidence(&self) -> Option<Evidence> {
        self.collapse
            .map(|collapse| collapse.evidence)
            .or(self.best)
    }
}

impl Lookup<'_> {
    pub fn look(&mut self, asked: &Asked<'_>) -> Result<Seen, Error> {
        if let Some(collapse) = self.collapse(asked)? {
            return Ok(Seen {
                collapse: Some(collapse),
                ..Seen::default()
            });
        }
        let (rows, ends) = self.seen(asked)?;
        let best = self.best(&mut OwnSet::new(*asked), &rows)?;
        Ok(Seen {
            best,
            ends,
            ..Seen::default()
        })
    }

    /// Adds the ids of kept documents to the evidence, chunk by chunk.
    fn name_kept(&mut self, all: &mut [Seen]) -> Result<(), Error> {
        let kept_row = |seen: &Seen| Some(seen.evidence().or(seen.known_evidence)?.kept_row);
        let named = all.iter().enumerate();
        let mut named: Vec<(u32, usize)> = named
            .filter_map(|(at, seen)| Some((kept_row(seen)?, at)))
            .collect();
        named.sort_unstable();
        for (row, at) in named {
            all[at].kept_id = Some(self.id(row)?);
        }
        Ok(())
    }

    /// Asks for the documents of a part together: segments ahead of each lookup, and fingerprints near theirs.
    fn prepare(
        &mut self,
        documents: &Documents,
        ids: Option<&[&str]>,
        part: Range<usize>,
        cancel: &AtomicBool,
    ) -> Result<NearRows, Error> {
        let (rules, state) = (self.rules(), self.state);
        if part.len() != 1 {
            let ahead =
                Prefetched::new(state, rules, &mut self.keys, documents, ids, part.clone())?;
            self.ahead = Some(ahead);
        }
        let bytes = rules.sketch_bytes();
        let sketches = &documents.sketches[part.start * bytes..part.end * bytes];
        Ok(near_rows(
            state,
            rules,
            sketches,
            self.sketching.isa,
            Run::alone(cancel),
        )?)
    }

    pub fn known(
        &mut self,
        documents: &Documents,
        i: usize,
        id: &str,
        place: Option<u32>,
    ) -> Result<Option<(u32, bool)>, Error> {
        let Some(row) = self.row_of_id(id, place)? else {
            return Ok(None);
        };
        let known = self.row(row)?;
        let is_same = match (documents.text_digests.get(i), known.text_digest) {
            (Some(digest), Some(of_row)) => *digest == of_row,
            _ => {
                known.sketch == documents.sketch(i)
                    && known.num_features == documents.num_features[i]
                    && is_blank(known.shape) == documents.is_blank(i)
            }
        };
        Ok(Some((row, is_same)))
    }
}

/// The id exists with another text.
pub fn other_text(position: usize, id: &str) -> Error {
    Error::input(
        position,
        format!(
            "the id {id:?} already exists with a different text; remove it first, or use another id"
        ),
    )
}

/// What documents are looked up by: the records are those of the calling thread.
#[derive(Clone, Copy)]
pub struct Committed<'a> {
    holder: &'a dyn Holder,
    state: &'a State,
    records: Option<&'a dyn Records>,
}

impl<'a> Committed<'a> {
    pub fn new(holder: &'a dyn Holder, state: &'a State, records: Option<&'a dyn Records>) -> Self {
        Committed {
            holder,
            state,
            records,
        }
    }

    /// Looks up documents of a range by what is committed before row `end`, in their order. With `ids`, existing ones
    /// are reported.
    pub fn check(
        self,
        documents: &Documents,
        ids: Option<&[&str]>,
        end: u32,
        range: Range<usize>,
        run: Run<'_>,
    ) -> Result<Vec<Seen>, Error> {
        let look = |lookup: &mut Lookup<'_>, part: Range<usize>| -> Result<Vec<Seen>, Error> {
            lookup.end = end;
            let near = lookup.prepare(documents, ids, part.clone(), run.cancel)?;
            let is_single = part.len() == 1;
            let mut all = Vec::with_capacity(part.len());
            for (at, i) in part.enumerate() {
                let place = (!is_single).then_some(at as u32);
                let known = match ids {
                    Some(ids) => lookup.known(documents, i, ids[i], place)?,
                    None => None,
                };
                let seen = match known {
                    Some((row, _)) => Seen {
                        known,
                        known_evidence: lookup.row(row)?.verdict,
                        ..Seen::default()
                    },
                    None => lookup.look(&Asked {
                        place,
                        ..Asked::of(documents, i, near.of(at))
                    })?,
                };
                all.push(seen);
            }
            lookup.ahead = None;
            lookup.name_kept(&mut all)?;
            Ok(all)
        };
        self.in_parts(range, run, look)
    }

    /// What `look` says of each document of a range, in their order: parts of it go to threads, each with a lookup of its
    /// own.
    fn in_parts<T: Send>(
        self,
        range: Range<usize>,
        run: Run<'_>,
        look: impl Fn(&mut Lookup<'_>, Range<usize>) -> Result<Vec<T>, Error> + Sync,
    ) -> Result<Vec<T>, Error> {
        let Committed { holder, state, .. } = self;
        // One state of the store for all that a part reads: asking for its locks at each row takes longer than the row.
        let look = |records: &dyn Records, part: Range<usize>| -> Result<Vec<T>, Error> {
            if part.len() == 1 {
                return look(&mut holder.lookup(state, records), part);
            }
            let mut all = Vec::new();
            records.read_together(&mut |records| {
                all = look(&mut holder.lookup(state, records), part.clone())?;
                Ok(())
            })?;
            Ok(all)
        };
        let grain = range.len().div_ceil(run.threads.max(1)).max(GRAIN);
        if let Some(records) = self.records
            && (run.threads == 1 || range.len() <= GRAIN)
        {
            return look(records, range.clone());
        }
        let parts = run.map(
            range.len(),
            grain,
            || holder.records(state),
            |records, part| -> Result<Vec<T>, Error> {
                let records = match records {
                    Ok(records) => records,
                    // The first part of the thread takes the error, which ends the call.
                    Err(error) => return Err(std::mem::replace(error, Error::Closed)),
                };
                let part = range.start + part.start..range.start + part.end;
                look(&**records, part)
            },
        )?;
        let mut all = Vec::with_capacity(range.len());
        for part in parts {
            all.extend(part?);
        }
        Ok(all)
    }
}

/// Decides documents in order, by the committed rows and those before; [`Error::Input`] for an id with another text.
pub fn decide<'d>(
    holder: &dyn Holder,
    state: &State,
    records: &dyn Records,
    documents: &'d Documents,
    ids: &[&'d str],
    run: Run<'_>,
) -> Result<StagedBatch<'d>, Error> {
    let (rules, isa) = (&holder.sketching().rules, holder.sketching().isa);
    let first_row = state.num_rows();
    let mut staged = StagedBatch::new(documents, rules, holder.plan().as_ref(), first_row)?;
    let mut lookup = holder.lookup(state, records);
    let (mut near, mut scratch) = (Vec::new(), Default::default());
    for start in (0..documents.len()).step_by(BLOCK) {
        let range = start..documents.len().min(start + BLOCK);
        let seen = Committed::new(holder, state, Some(records)).check(
            documents,
            Some(ids),
            u32::MAX,
            range.clone(),
            run,
        )?;
        let matches = staged.near(rules, range.clone(), isa, run)?;
        for (i, mut seen) in range.clone().zip(seen) {
            let id = ids[i];
            if staged.push_if_known(documents, i, id, &seen)? {
                continue;
            }
            if let (Some(evidence), Some(kept_id)) = (seen.evidence(), seen.kept_id.take()) {
                staged.kept_ids.insert(evidence.kept_row, kept_id);
            }
            let asked = Asked::of(documents, i, &[]);
            near.clear();
            if let Some(matches) = &matches {
                staged.near_rows(matches, i - range.start, i as u32, &mut near);
            }
            let collapse = seen
                .collapse
                .or_else(|| staged.collapse(rules, &lookup.keys, &asked, &near));
            let (evidence, standing) = match collapse {
                Some(Collapse { evidence, into }) => {
                    let levels = match into.checked_sub(first_row) {
                        Some(added) => staged.levels[added as usize].clone(),
                        None => lookup.row(into)?.levels.to_vec(),
                    };
                    (Some(evidence), Standing::Collapsed(levels))
                }
                None => staged.member(&mut lookup, &asked, &seen, &mut near, &mut scratch)?,
            };
            staged.push(rules, &mut lookup.keys, id, &asked, evidence, standing);
        }
    }
    Ok(staged)
}

impl StagedBatch<'_> {
    /// Stages a document whose id exists, in the index or earlier in the batch; returns whether it does.
    fn push_if_known(
        &mut self,
        documents: &Documents,
        i: usize,
        id: &str,
        seen: &Seen,
    ) -> Result<bool, Error> {
        let (row, is_same) = match (seen.known, self.place_of_id(id)) {
            (Some(known), _) => known,
            (None, Some(place)) => {
                let place = place as usize;
                let is_same = match documents.text_digests.is_empty() {
                    true => documents.sketch(place) == documents.sketch(i),
                    false => documents.text_digests[place] == documents.text_digests[i],
                };
                (self.rows[place], is_same)
            }
            (None, None) => return Ok(false),
        };
        if !is_same {
            return Err(other_text(i, id));
        }
        if let (Some(evidence), Some(kept_id)) = (seen.known_evidence, &seen.kept_id) {
            self.known_evidence.insert(row, evidence);
            self.kept_ids.insert(evidence.kept_row, kept_id.clone());
        }
        self.push_known(row);
        Ok(true)
    }

    /// The best evidence against a document that does not collapse, and its standing. `near` are the documents of the
    /// batch near it; `scratch` is space for rows of the batch, and committed ones.
    fn member(
        &mut self,
        lookup: &mut Lookup<'_>,
        asked: &Asked<'_>,
        seen: &Seen,
        near: &mut Vec<Near>,
        (of_batch, committed): &mut (Vec<u32>, Vec<u32>),
    ) -> Result<(Option<Evidence>, Standing), Error> {
        let mut own = OwnSet::new(*asked);
        of_batch.clear();
        committed.clear();
        let levels = self.buckets(lookup, asked, &seen.ends, of_batch, committed)?;
        near.extend(of_batch.iter().map(|&row| Near { row, distance: 0 }));
        let mut best = seen.best;
        if !committed.is_empty() {
            committed.sort_unstable();
            committed.dedup();
            let more = lookup.best(&mut own, committed)?;
            best = match (best, more) {
                (Some(a), Some(b)) if crate::decide::measure::is_better(&b, &a) => Some(b),
                (None, more) => more,
                (best, _) => best,
            };
        }
        let best = match asked.is_blank() {
            true => None,
            false => self.best(lookup, &mut own, near, best),
        };
        Ok((best, Standing::Member(levels)))
    }
}
