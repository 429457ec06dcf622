//! The online index: checks, additions, removals.

use std::borrow::Cow;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use likewise_core::parallel::{Cancel, Run};
use likewise_core::text::Document;
use likewise_disk::environment::{Clock, Environment};
use likewise_disk::store::{AddingRun, Durability, Store};
use likewise_index::{
    Among, Documents, Index, Matching, Nearest, Opening, Removed, Rules, Standing, TextOf,
};
use pyo3::prelude::*;

use crate::door::{self, Dict, LONG_BYTES, Object, Str, run};
use crate::errors::{Failure, On, Result};
use crate::features::FeatureRules;
use crate::index_given::{
    Given, RecipeParts, ShownNeighbor, ShownVerdict, StoredText, Taken, check_num_ids,
    export_chunk, list_of, long_if, name_of, shown_facts, shown_neighbors, shown_text,
    shown_verdict, shown_verdicts,
};
use crate::manual_clock::ManualClock;
use crate::moved::{MovedDocuments, RowNumbers};
use crate::texts::{Texts, text_of};

/// A directory of documents, with the verdict on each.
#[pyclass(frozen, module = "likewise._native")]
pub struct OnlineIndex {
    index: Index,
    dir: PathBuf,
    measure: &'static str,
    stored_text: StoredText,
    has_distance: bool,
    clock: Arc<dyn Clock>,
}

#[pymethods]
impl OnlineIndex {
    /// Opens the index in a directory; `mode` is create, write or read. `recipe` determines the verdicts.
    #[new]
    #[pyo3(signature = (path, mode, recipe, rules, *, sync_seconds=None, ttl_seconds=None, is_renewed=false, flush_rows=None, accept_loss=false, accept_clock=false, clock=None))]
    fn new(
        py: Python<'_>,
        path: PathBuf,
        mode: &str,
        recipe: RecipeParts,
        rules: Py<FeatureRules>,
        sync_seconds: Option<f64>,
        ttl_seconds: Option<u64>,
        is_renewed: bool,
        flush_rows: Option<u32>,
        accept_loss: bool,
        accept_clock: bool,
        clock: Option<&ManualClock>,
    ) -> Result<Self> {
        let rules_of_recipe = recipe.rules()?;
        let has_value = rules.get().text_rules.has_value;
        let stored_text = StoredText::new(recipe.takes_tokens, has_value);
        let make = move |isa| rules.get().naming_extractor(isa);
        let sketching = recipe.sketching(rules_of_recipe, make);
        let mut environment = Environment::default();
        if let Some(clock) = clock {
            environment.clock = clock.shared();
        }
        let clock = environment.clock.clone();
        let opening = Opening {
            sketching,
            durability: match sync_seconds {
                None => Durability::Commit,
                Some(seconds) => Durability::Interval(Duration::from_secs_f64(seconds)),
            },
            ttl_s: ttl_seconds,
            is_renewed,
            flush_rows,
            accept_loss,
            accept_clock,
            environment,
        };
        let description = recipe.description(&rules_of_recipe);
        let index = run(py, LONG_BYTES, |cancel| {
            let opened = match mode {
                "create" => Index::create(&path, &description, opening),
                "write" => Index::open(&path, opening, cancel),
                _ => Index::open_reader(&path, opening, cancel),
            };
            opened.on(&path)
        })?;
        Ok(OnlineIndex {
            index,
            dir: path,
            measure: match rules_of_recipe.matching {
                Matching::Verified { measure, .. } => measure.name(),
                Matching::Distance { .. } => "hamming",
            },
            stored_text,
            has_distance: rules_of_recipe.zero_distance().is_some(),
            clock,
        })
    }

    /// Description of an index: recipe as JSON, its id, what is stored; None for an absent index.
    #[staticmethod]
    fn describe(py: Python<'_>, path: PathBuf) -> Result<(String, String, String, &'static str)> {
        run(py, 0, |_| {
            let store =
                Store::open_reader(&path).map_err(|error| Failure::index(error.into(), &path))?;
            let found = store.description().clone();
            let keeps = name_of(found.keeps);
            Ok((found.recipe_json, found.recipe_id, found.sketch_id, keeps))
        })
    }

    fn __len__(&self, py: Python<'_>) -> Result<usize> {
        run(py, 0, |_| self.asked(self.index.num_documents()))
    }

    /// Verdicts on documents, each by itself; with `end`, as if the rows from that one on did not exist.
    #[pyo3(signature = (documents, *, end=None, threads=1))]
    fn check<'py>(
        &self,
        py: Python<'py>,
        documents: Given<'py>,
        end: Option<u32>,
        threads: usize,
    ) -> Result<Dict<'py>> {
        let taken = documents.taken(self.rules())?;
        let verdicts = run(py, taken.num_bytes(), |cancel| {
            let documents = self.sketched(&taken, threads, cancel)?;
            self.asked(self.index.check(&documents, end, Run { threads, cancel }))
        })?;
        shown_verdicts(py, verdicts, self.has_distance)
    }

    /// The verdict on one text: (kept id or None, similarity, distance).
    fn check_text(&self, py: Python<'_>, text: &Str<'_>) -> Result<ShownVerdict> {
        let text = text_of(text)?;
        run(py, text.len(), |cancel| {
            let documents = self.sketched_one(&text)?;
            let verdicts = self.asked(self.index.check(&documents, None, Run::alone(cancel)))?;
            Ok(shown_verdict(verdicts))
        })
    }

    /// Adds one text in a transaction: its verdict, row, and whether this call added it.
    fn add_text(
        &self,
        py: Python<'_>,
        doc_id: &Str<'_>,
        text: &Str<'_>,
    ) -> Result<(ShownVerdict, u32, bool)> {
        let (doc_id, text) = (text_of(doc_id)?, text_of(text)?);
        run(py, text.len(), |cancel| {
            let documents = self.sketched_one(&text)?;
            let text_of = |_: usize| text.as_bytes();
            let (ids, index) = ([doc_id.as_ref()], &self.index);
            let added = index.add(
                &ids,
                &documents,
                Some(&text_of),
                None,
                self.clock.unix_s(),
                Run::alone(cancel),
            );
            let verdicts = self.asked(added)?;
            let (row, is_added) = (verdicts.rows[0], verdicts.added[0]);
            Ok((shown_verdict(verdicts), row, is_added))
        })
    }

    /// Adds documents in one transaction; returns their verdicts. `run` is the identity and the first row of the batch
    /// run that adds them.
    #[pyo3(signature = (ids, documents, *, run=None, threads=1))]
    fn add<'py>(
        &self,
        py: Python<'py>,
        ids: &Texts,
        documents: Given<'py>,
        run: Option<([u8; 16], u32)>,
        threads: usize,
    ) -> Result<Dict<'py>> {
        let taken = documents.taken(self.rules())?;
        check_num_ids(ids, taken.len())?;
        let adding = run.map(|(identity, first_row)| AddingRun {
            identity,
            first_row,
        });
        let verdicts = door::run(py, taken.num_bytes(), |cancel| {
            let documents = self.sketched(&taken, threads, cancel)?;
            let ids = list_of(ids);
            let now_s = self.clock.unix_s();
            let text_of = |i: usize| match &taken {
                Taken::Texts(texts) => texts.get().column.bytes(i),
                Taken::Sketched(_) => &[],
            };
            let text_of: Option<TextOf<'_>> = match &taken {
                Taken::Texts(_) => Some(&text_of),
                Taken::Sketched(_) => None,
            };
            let index = &self.index;
            self.asked(index.add(
                &ids,
                &documents,
                text_of,
                adding,
                now_s,
                Run { threads, cancel },
            ))
        })?;
        shown_verdicts(py, verdicts, self.has_distance)
    }

    /// Whether a document of each id exists.
    fn are_known(&self, py: Python<'_>, ids: &Texts) -> Result<Vec<bool>> {
        run(py, long_if(ids.column.len()), |cancel| {
            self.asked(self.index.are_known(&list_of(ids), cancel))
        })
    }

    /// Position of the first text whose id exists with another text, or None.
    #[pyo3(signature = (ids, texts, *, threads=1))]
    fn first_of_other_text(
        &self,
        py: Python<'_>,
        ids: &Texts,
        texts: Given<'_>,
        threads: usize,
    ) -> Result<Option<usize>> {
        let taken = texts.taken(self.rules())?;
        check_num_ids(ids, taken.len())?;
        run(py, taken.num_bytes(), |cancel| {
            let documents = self.sketched(&taken, threads, cancel)?;
            let found = self
                .index
                .first_of_other_text(&list_of(ids), &documents, cancel);
            self.asked(found)
        })
    }

    /// Ids of the documents of the stored chunk that contains a row, in order of arrival, and the row of the next
    /// chunk; None after the last one.
    fn ids_from(&self, py: Python<'_>, row: u32) -> Result<Option<(Vec<String>, u32)>> {
        self.long(py, |_| self.index.ids_from(row))
    }

    /// Checks that no id of another index names a different text here, one chunk at a time; raises about the first.
    /// Returns the row of the other index's next chunk, or None after the last.
    #[pyo3(signature = (other, row, *, threads=1))]
    fn check_ids_of(
        &self,
        py: Python<'_>,
        other: &OnlineIndex,
        row: u32,
        threads: usize,
    ) -> Result<Option<u32>> {
        run(py, LONG_BYTES, |cancel| {
            let Some((part, next)) =
                other.asked(other.index.stored_from(row, Run { threads, cancel }))?
            else {
                return Ok(None);
            };
            let ids: Vec<&str> = part.ids.iter().map(String::as_str).collect();
            let found = self
                .index
                .first_of_other_text(&ids, &part.documents, cancel);
            match self.asked(found)? {
                Some(place) => self.asked(Err(likewise_index::other_text(place, ids[place]))),
                None => Ok(Some(next)),
            }
        })
    }

    /// Adds the documents of a chunk of another index in one transaction; returns their ids, their kept ids there,
    /// their verdicts here, and the row of the next chunk there. None after the last one.
    #[pyo3(signature = (other, row, *, threads=1))]
    #[allow(clippy::type_complexity)]
    fn add_from<'py>(
        &self,
        py: Python<'py>,
        other: &OnlineIndex,
        row: u32,
        threads: usize,
    ) -> Result<Option<(Vec<String>, Vec<Option<String>>, Dict<'py>, u32)>> {
        let added = run(py, LONG_BYTES, |cancel| {
            let Some((part, next)) =
                other.asked(other.index.stored_from(row, Run { threads, cancel }))?
            else {
                return Ok(None);
            };
            let ids: Vec<&str> = part.ids.iter().map(String::as_str).collect();
            let text_of = |i: usize| part.texts[i].as_slice();
            let text_of: Option<TextOf<'_>> = match part.texts.is_empty() {
                true => None,
                false => Some(&text_of),
            };
            let (documents, now_s) = (&part.documents, self.clock.unix_s());
            let added = self.index.add(
                &ids,
                documents,
                text_of,
                None,
                now_s,
                Run { threads, cancel },
            );
            let verdicts = self.asked(added)?;
            Ok(Some((part.ids, part.kept_ids, verdicts, next)))
        })?;
        let Some((ids, kept_ids, verdicts, next)) = added else {
            return Ok(None);
        };
        let columns = shown_verdicts(py, verdicts, self.has_distance)?;
        Ok(Some((ids, kept_ids, columns, next)))
    }

    /// Identity, number of rows, last event, and the row below which documents have expired: equal for equal documents and
    /// verdicts.
    fn standing(&self, py: Python<'_>) -> Result<(String, u32, u64, u32)> {
        let standing = run(py, 0, |_| self.asked(self.index.standing_now()))?;
        let position = standing.position;
        let identity = u128::from_be_bytes(standing.identity);
        let (rows, event) = (position.num_rows, position.last_event);
        Ok((
            format!("{identity:032x}"),
            rows,
            event,
            position.expired_below,
        ))
    }

    fn moving_rows(&self, py: Python<'_>) -> Result<RowNumbers> {
        let numbers = self.long(py, |cancel| self.index.moving_rows(cancel))?;
        Ok(numbers.into())
    }

    /// Documents that move, from a row on, and the row after them; None after the last one.
    fn moved_from(
        &self,
        py: Python<'_>,
        row: u32,
        numbers: &RowNumbers,
    ) -> Result<Option<(MovedDocuments, u32)>> {
        let found = run(py, LONG_BYTES, |cancel| {
            let numbers = numbers.held();
            self.asked(self.index.moved_from(row, &numbers, cancel))
        })?;
        let rules = *self.rules();
        Ok(found.map(|(all, next)| (MovedDocuments { rules, all }, next)))
    }

    fn restore(&self, py: Python<'_>, documents: &MovedDocuments) -> Result<()> {
        let now_s = self.clock.unix_s();
        self.long(py, |cancel| {
            self.index.restore(&documents.all, now_s, cancel)
        })
    }

    /// Number of rows when a batch run first compared its documents with the index.
    fn first_row_of_run(&self, py: Python<'_>, identity: [u8; 16]) -> Result<u32> {
        run(py, 0, |_| self.asked(self.index.first_row_of_run(identity)))
    }

    /// The document of an id as (row, kept id, similarity, distance, arrival in seconds), or None.
    #[allow(clippy::type_complexity)]
    fn get(
        &self,
        py: Python<'_>,
        doc_id: &Str<'_>,
    ) -> Result<Option<(u32, Option<String>, f64, Option<u16>, u64)>> {
        let doc_id = text_of(doc_id)?;
        let found = run(py, 0, |_| self.asked(self.index.get(&doc_id)))?;
        Ok(found.map(|(row, stored, kept_id)| {
            let evidence = stored.verdict;
            (
                row,
                kept_id,
                evidence.map_or(f64::NAN, |evidence| evidence.similarity),
                evidence.and_then(|evidence| evidence.distance),
                stored.arrival_s,
            )
        }))
    }

    /// The stored text of an id, tokens separated by spaces; None if it is unknown or no texts are stored.
    fn text(&self, py: Python<'_>, doc_id: &Str<'_>) -> Result<Option<String>> {
        let doc_id = text_of(doc_id)?;
        let stored = run(py, 0, |_| self.asked(self.index.text(&doc_id)))?;
        Ok(stored.map(|stored| shown_text(&stored, self.stored_text).1))
    }

    /// Id of the kept document of a group, whether it is gone, ids of the members.
    fn group(&self, py: Python<'_>, doc_id: &Str<'_>) -> Result<(String, bool, Vec<String>)> {
        let doc_id = text_of(doc_id)?;
        let group = run(py, 0, |_| self.asked(self.index.group(&doc_id)))?;
        Ok((group.leader_id, group.is_leader_gone, group.member_ids))
    }

    /// The most similar documents of each document, best first: lists of (id, similarity, distance, whether it matches).
    #[pyo3(signature = (documents, limit, min_similarity, *, among=None, threads=1))]
    fn neighbors(
        &self,
        py: Python<'_>,
        documents: Given<'_>,
        limit: usize,
        min_similarity: f64,
        among: Option<&str>,
        threads: usize,
    ) -> Result<Vec<Vec<ShownNeighbor>>> {
        let nearest = Nearest {
            limit,
            min_similarity,
        };
        let among = among_of(among);
        let taken = documents.taken(self.rules())?;
        let found = run(py, taken.num_bytes(), |cancel| {
            let documents = self.sketched(&taken, threads, cancel)?;
            let index = &self.index;
            self.asked(index.neighbors(&documents, nearest, among, Run { threads, cancel }))
        })?;
        Ok(shown_neighbors(found))
    }

    /// Removes a document: (whether it was kept, promoted ids, pairs of moved id and its new kept id).
    fn remove(&self, py: Python<'_>, doc_id: &Str<'_>) -> Result<ShownRemoval> {
        let doc_id = text_of(doc_id)?;
        // Removing a kept document with many duplicates takes long.
        let removed = self.long(py, |cancel| self.index.remove(&doc_id, cancel))?;
        Ok(shown_removal(removed))
    }

    /// Like `remove`, for the row of an expired document that duplicates still name.
    fn remove_expired(&self, py: Python<'_>, row: u32) -> Result<ShownRemoval> {
        let removed = self.long(py, |cancel| self.index.remove_expired(row, cancel))?;
        Ok(shown_removal(removed))
    }

    /// Database records of ids: position of the id, row, and `present`, `named` (expired, but named by duplicates) or
    /// `gone`.
    fn records_of(&self, py: Python<'_>, ids: &Texts) -> Result<Vec<(usize, u32, &'static str)>> {
        let records = self.long(py, |cancel| self.index.records_of(&list_of(ids), cancel))?;
        let shown = records.iter().map(|record| {
            let standing = match record.standing {
                Standing::Present => "present",
                Standing::Named => "named",
                Standing::Gone => "gone",
            };
            (record.place, record.row, standing)
        });
        Ok(shown.collect())
    }

    /// Compacts and rewrites the database; returns whether the log was truncated, and what could not be deleted in the
    /// directory of segments.
    #[pyo3(signature = (*, threads=1))]
    fn purge(&self, py: Python<'_>, threads: usize) -> Result<(bool, Vec<String>)> {
        let purged = self.long(py, |cancel| self.index.purge(Run { threads, cancel }))?;
        Ok((purged.is_log_cut, purged.left))
    }

    fn facts<'py>(&self, py: Python<'py>) -> Result<Dict<'py>> {
        let facts = run(py, 0, |_| self.asked(self.index.facts()))?;
        shown_facts(py, facts)
    }

    #[pyo3(signature = (full=false))]
    fn verify(&self, py: Python<'_>, full: bool) -> Result<Vec<String>> {
        self.long(py, |cancel| self.index.verify(full, cancel))
    }

    /// Makes one segment of all rows and joins small chunks; returns by how many the chunks decreased.
    #[pyo3(signature = (*, threads=1))]
    fn compact(&self, py: Python<'_>, threads: usize) -> Result<u64> {
        self.long(py, |cancel| self.index.compact(Run { threads, cancel }))
    }

    /// Discards the segments and builds them again.
    #[pyo3(signature = (*, threads=1))]
    fn rebuild(&self, py: Python<'_>, threads: usize) -> Result<()> {
        self.long(py, |cancel| self.index.rebuild(Run { threads, cancel }))
    }

    /// Copies the database to a new directory.
    fn snapshot(&self, py: Python<'_>, path: PathBuf) -> Result<()> {
        self.long(py, |cancel| self.index.snapshot(&path, cancel))
    }

    /// Calls `write` with JSON lines, one for each document that is not gone, in order of arrival.
    fn export(&self, py: Python<'_>, write: &Object<'_>) -> Result<()> {
        let write = write.clone().unbind();
        run(py, LONG_BYTES, |cancel| {
            let mut lines = String::new();
            let result = self.index.scan(|chunk, store| {
                cancel.check()?;
                export_chunk(chunk, store, self.measure, self.stored_text, &mut lines)?;
                let written = Python::attach(|py| write.call1(py, (lines.as_str(),)).map(|_| ()));
                lines.clear();
                written.map_err(|error| {
                    likewise_disk::Error::io("write", std::io::Error::other(error.to_string()))
                })
            });
            self.asked(result)
        })
    }

    /// Closes the index; does nothing if it is closed.
    fn close(&self, py: Python<'_>) -> Result<()> {
        run(py, 0, |_| self.asked(self.index.close()))
    }
}

impl OnlineIndex {
    /// Runs a call that may take long.
    fn long<T: Send>(
        &self,
        py: Python<'_>,
        work: impl FnOnce(&AtomicBool) -> Result<T, likewise_index::Error> + Send,
    ) -> Result<T> {
        run(py, LONG_BYTES, |cancel| self.asked(work(cancel)))
    }

    fn asked<T>(&self, result: Result<T, likewise_index::Error>) -> Result<T> {
        result.on(&self.dir)
    }

    fn rules(&self) -> &Rules {
        &self.index.sketching().rules
    }

    fn sketched_one(&self, text: &str) -> Result<Documents> {
        self.asked(self.index.guard())?;
        Ok(self.index.sketch_one(Document::Text(text)))
    }

    fn sketched<'a>(
        &self,
        taken: &'a Taken,
        threads: usize,
        cancel: &AtomicBool,
    ) -> Result<Cow<'a, Documents>> {
        self.asked(self.index.guard())?;
        taken.sketched(self.index.sketching(), Run { threads, cancel })
    }
}

type ShownRemoval = (bool, Vec<String>, Vec<(String, String)>);

fn shown_removal(removed: Removed) -> ShownRemoval {
    let was_kept = removed.removal.was_kept;
    (was_kept, removed.promoted_ids, removed.moved_ids)
}

/// Among which documents neighbors are searched by their sketches; by the tables of verdicts where nothing is given.
fn among_of(name: Option<&str>) -> Option<Among> {
    name.map(|name| match name {
        "kept" => Among::Kept,
        _ => Among::All,
    })
}
