//! How are documents added?

use likewise_core::parallel::{Run, lock};
use std::sync::atomic::AtomicBool;

use likewise_disk::store::{AddingRun, DocumentRow, Keeps, NewContent, NewRows, Store};

use crate::decide::batch::StagedBatch;
use crate::decide::decide;
use crate::decide::holder::Holder;
use crate::decide::lookup::Lookup;
use crate::documents::Documents;
use crate::error::{Error, Result};
use crate::index::Index;
use crate::queries::Verdicts;
use crate::shared::Shared;
use crate::state::in_memory::row_of_batch;
use crate::state::promoted::building;

/// The stored bytes of the documents of a batch.
pub type TextOf<'a> = &'a (dyn Fn(usize) -> &'a [u8] + Sync);

impl Index {
    /// Decides documents in order and adds them in one transaction; one whose id exists with the same text changes
    /// nothing and gets its stored verdict, with another text all are refused. `text_of` returns the bytes to store.
    pub fn add(
        &self,
        ids: &[&str],
        documents: &Documents,
        text_of: Option<TextOf<'_>>,
        adding: Option<AddingRun>,
        now_s: u64,
        run: Run<'_>,
    ) -> Result<Verdicts> {
        self.ready(run.cancel)?;
        let verdicts =
            self.repairing(|| self.add_once(ids, documents, text_of, adding, now_s, run))?;
        self.build_when_due();
        self.checkpoint_when_due();
        self.let_build_catch_up(ids.len(), run.cancel);
        Ok(verdicts)
    }

    fn add_once(
        &self,
        ids: &[&str],
        documents: &Documents,
        text_of: Option<TextOf<'_>>,
        adding: Option<AddingRun>,
        now_s: u64,
        run: Run<'_>,
    ) -> Result<Verdicts> {
        let shared: &Shared = &self.shared;
        let mut writer = lock(&shared.writer);
        let store = writer.as_mut().ok_or(Error::ReadOnly)?;
        let now_s = shared.arrival_time(store, now_s)?;
        shared.expire(store, now_s, run.cancel)?;
        let state = shared.state();
        let staged = decide(shared, &state, store, documents, ids, run)?;
        let first_row = state.num_rows();
        let verdicts = verdicts_of(&staged, ids, first_row, &mut shared.lookup(&state, store))?;
        drop(state);
        if staged.places.is_empty() {
            return Ok(verdicts);
        }
        let num_added = staged.places.len();
        let content = |place: usize| match (shared.rules().keeps, text_of, documents.set(place)) {
            (Keeps::Text, Some(text_of), _) => NewContent::Text(text_of(place)),
            (.., Some((features, weights))) => NewContent::Features(features, own_weights(weights)),
            (.., None) => NewContent::Absent,
        };
        let row = |(added, place): (usize, usize)| {
            let about = (place, ids[place], staged.collapsed[added]);
            DocumentRow {
                verdict: staged.verdicts[added],
                levels: &staged.levels[added],
                content: content(place),
                arrival_s: now_s,
                ..row_of_batch(documents, about, first_row + added as u32)
            }
        };
        let places = staged.places.iter().map(|&place| place as usize);
        let rows: Vec<DocumentRow<'_>> = places.enumerate().map(row).collect();
        let threads = if num_added == 1 { 1 } else { run.threads };
        shared.append(store, &rows, adding, threads)?;
        Ok(verdicts)
    }
}

/// Weights as the store takes them: none if all are 1.
pub(crate) fn own_weights(weights: &[u32]) -> &[u32] {
    match weights.iter().all(|&weight| weight == 1) {
        true => &[],
        false => weights,
    }
}

/// Verdicts on all documents of a batch, whose first added one gets row `first_row`.
fn verdicts_of(
    staged: &StagedBatch<'_>,
    ids: &[&str],
    first_row: u32,
    lookup: &mut Lookup<'_>,
) -> Result<Verdicts> {
    let mut verdicts = Verdicts {
        rows: staged.rows.clone(),
        added: vec![false; ids.len()],
        ..Verdicts::default()
    };
    for &place in &staged.places {
        verdicts.added[place as usize] = true;
    }
    for &row in &staged.rows {
        let evidence = staged.evidence(row);
        if let Some(evidence) = evidence {
            let id = match evidence.kept_row.checked_sub(first_row) {
                Some(added) => ids[staged.places[added as usize] as usize].to_owned(),
                None => staged.kept_id(evidence.kept_row, lookup)?,
            };
            verdicts.kept_ids.push(id);
        }
        verdicts.evidence.push(evidence);
    }
    Ok(verdicts)
}

impl Shared {
    /// Appends documents in one transaction, then to the newest rows in memory.
    pub(crate) fn append(
        &self,
        store: &mut Store,
        rows: &[DocumentRow<'_>],
        run: Option<AddingRun>,
        threads: usize,
    ) -> Result<()> {
        let rules = self.rules();
        let new = NewRows {
            documents: rows,
            has_digests: !rules.is_distance_only(),
            run,
        };
        store.append(&new, &[])?;
        self.note_log(store);
        let mut keys = self.keys.clone();
        let mut state = self.state_mut();
        if let Some(tail) = state.newest() {
            // Committed is committed: no signal ends it now.
            let cancel = &AtomicBool::new(false);
            let building = building(self.isa(), Run { threads, cancel });
            let extended = tail.extend(rules, &mut keys, rows.iter().copied(), building);
            drop(state);
            self.changed(store, extended.map_err(Error::from), cancel)?;
        }
        Ok(())
    }
}
