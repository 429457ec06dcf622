//! What does a decision change on the servers?
//!
//! Everything follows from the operation and its stored verdict, so any client can write it, also again after a loss.

use likewise_disk::store::Content;

use crate::cluster::answer::{Answer, Decided, RemovedRecord};
use crate::cluster::moved::{LEVEL, MovedDocument, restored};
use crate::cluster::names::{Name, Names, place_in_chunk};
use crate::cluster::operation::Operation;
use crate::cluster::record::{Record, Reference, Tag, Verdict, pack_record, pack_set};
use crate::cluster::rule::ClusterRule;
use crate::error::{Error, Result};
use crate::keys::Keys;
use crate::state::in_memory::{COLLAPSED, is_blank, level_of, row_of_batch};
use likewise_disk::store::DocumentRow;

/// The arguments of one partition's `write`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Effects {
    pub partition: u32,
    pub first_row: u32,
    pub num_rows: u32,
    /// Names of strings, each behind a byte that is the length of its entry.
    pub tables: Vec<u8>,
    /// Entries of them, in order.
    pub entries: Vec<u8>,
    pub chunks: Vec<u8>,
    pub fields: Vec<u8>,
    pub records: Vec<u8>,
    /// Changes of what earlier operations wrote.
    pub changes: Vec<u8>,
}

/// A change of what earlier operations wrote.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Change {
    /// Adds an entry.
    Enter = b'A' as isize,
    /// Deletes an entry.
    Leave = b'D' as isize,
    /// Replaces a record.
    Set = b'S' as isize,
    /// Deletes a field.
    Drop = b'X' as isize,
    /// The same for a document that no longer counts.
    Sweep = b'Y' as isize,
}

fn pack16(bytes: &[u8], out: &mut Vec<u8>) {
    out.extend_from_slice(&(bytes.len() as u16).to_le_bytes());
    out.extend_from_slice(bytes);
}

fn pack32(bytes: &[u8], out: &mut Vec<u8>) {
    out.extend_from_slice(&(bytes.len() as u32).to_le_bytes());
    out.extend_from_slice(bytes);
}

/// Effects by partition.
struct Writing<'r> {
    rule: &'r ClusterRule,
    first_row: u32,
    num_rows: u32,
    partitions: Vec<Option<Box<Effects>>>,
}

impl<'r> Writing<'r> {
    fn new(rule: &'r ClusterRule, first_row: u32, num_rows: u32) -> Self {
        Writing {
            rule,
            first_row,
            num_rows,
            partitions: vec![None; rule.partitions as usize],
        }
    }

    fn of(&mut self, name: Name) -> &mut Effects {
        let partition = name.partition(self.rule.partitions);
        let (first_row, num_rows) = (self.first_row, self.num_rows);
        self.partitions[partition as usize].get_or_insert_with(|| {
            Box::new(Effects {
                partition,
                first_row,
                num_rows,
                ..Effects::default()
            })
        })
    }

    fn entry(&mut self, name: Name, head: &[u8], reference: Reference) {
        let effects = self.of(name);
        let at = effects.tables.len();
        effects.tables.extend_from_slice(&[0, 0]);
        effects.tables.push((head.len() + 6) as u8);
        name.append_to(&mut effects.tables);
        let num = (effects.tables.len() - at - 2) as u16;
        effects.tables[at..at + 2].copy_from_slice(&num.to_le_bytes());
        effects.entries.extend_from_slice(head);
        effects.entries.extend_from_slice(&reference.bytes());
    }

    /// Marks the buckets below those of a document for which a bit above the level is set.
    fn marks(
        &mut self,
        keys: &mut Keys,
        sketch: &[u8],
        levels: &[(u16, u8)],
        reference: Reference,
    ) {
        for &(band, level) in levels {
            for below in (0..2).filter(|below| level >> (4 + below) & 1 == 1) {
                let key = keys.of(sketch, u32::from(band), below);
                let (name, head) = self.rule.names.band(u32::from(band), below, key);
                self.entry(name, &Names::mark(head), reference);
            }
        }
    }

    fn field(&mut self, name: Name, reference: Reference, value: &[u8]) {
        let effects = self.of(name);
        name.pack(&mut effects.chunks);
        pack16(&reference.bytes(), &mut effects.fields);
        pack32(value, &mut effects.records);
    }

    fn change(&mut self, change: Change, name: Name, parts: &[&[u8]]) {
        let effects = self.of(name);
        let mut head = vec![change as u8];
        name.append_to(&mut head);
        pack32(&head, &mut effects.changes);
        parts
            .iter()
            .for_each(|part| pack32(part, &mut effects.changes));
    }

    fn finish(self) -> Vec<Effects> {
        let written = self.partitions.into_iter().flatten();
        written.map(|effects| *effects).collect()
    }
}

/// Calls `enter` with the name and the head of each entry that finds a document in the tables.
fn entries_of(
    rule: &ClusterRule,
    keys: &mut Keys,
    row: &DocumentRow<'_>,
    mut enter: impl FnMut(Name, &[u8]),
) {
    let rules = rule.rules();
    let shape = row.shape & !COLLAPSED;
    if let Some(hash) = keys.class_hash(rules, shape, row.digest) {
        let (name, head) = rule.names.class(hash);
        enter(name, &head);
    }
    if is_blank(shape) {
        return;
    }
    rule.names
        .stored(row.sketch)
        .for_each(|name| enter(name, row.sketch));
    for band in 0..keys.num_bands() {
        if let Some(level) = level_of(row.levels, band) {
            let key = keys.of(row.sketch, band, level);
            let (name, head) = rule.names.band(band, level, key);
            enter(name, &head);
        }
    }
}

/// Calls `enter` with the name and the head of each entry that servers have of a document: of tables, its id, its kept document, and marked buckets.
pub fn entries_of_record(
    rule: &ClusterRule,
    keys: &mut Keys,
    row: u32,
    record: &Record,
    mut enter: impl FnMut(Name, &[u8]),
) {
    if !record.is_collapsed() {
        entries_of(rule, keys, &record.row(row), &mut enter);
        for &(band, level) in &record.levels {
            for below in 0..u32::from(level).min(2) {
                let key = keys.of(&record.sketch, u32::from(band), below);
                let (name, head) = rule.names.band(u32::from(band), below, key);
                enter(name, &Names::mark(head));
            }
        }
    }
    rule.id_entry(&record.id, |name, head| enter(name, head));
    if let Some(verdict) = &record.verdict {
        let (name, head) = member_entry(verdict);
        enter(name, &head);
    }
}

impl ClusterRule {
    /// What an operation changes, by partition.
    pub fn effects(
        &self,
        payload: &[u8],
        row: u32,
        second: u64,
        tag: Tag,
        verdict: &[u8],
    ) -> Result<Vec<Effects>> {
        match self.answer(verdict)? {
            Answer::Documents(all) => {
                let operation = self.operation(payload)?;
                if !operation.is_decided_by(&all) {
                    return Err(Error::Unreadable);
                }
                Ok(self.effects_of_add(&operation, row, second, tag, &all))
            }
            Answer::Removed(removed) => Ok(self.effects_of_removal(&removed, row)),
            Answer::Restored(..) => {
                let all = self.operation(payload)?.moved;
                let mut writing = Writing::new(self, row, all.len() as u32);
                write_restored(&mut writing, self, &all, tag);
                Ok(writing.finish())
            }
            Answer::Swept(_, all) => {
                let mut writing = Writing::new(self, row, 0);
                let mut keys = self.keys.clone();
                for (reference, record) in &all {
                    self.leave(&mut writing, &mut keys, record, *reference, Change::Sweep);
                }
                Ok(writing.finish())
            }
            _ => Ok(Vec::new()),
        }
    }

    fn effects_of_add(
        &self,
        operation: &Operation,
        first_row: u32,
        second: u64,
        tag: Tag,
        all: &[Decided],
    ) -> Vec<Effects> {
        let rules = self.rules();
        let documents = &operation.documents;
        let num_added = all.iter().filter(|decided| decided.added).count() as u32;
        let mut writing = Writing::new(self, first_row, num_added);
        let mut keys = self.keys.clone();
        let (mut row, mut packed) = (first_row, Vec::new());
        for (place, decided) in all.iter().enumerate() {
            if !decided.added {
                continue;
            }
            let reference = Reference { row, tag };
            row += 1;
            let sketch = documents.sketch(place);
            writing.marks(&mut keys, sketch, &decided.levels, reference);
            let levels = decided.levels.iter();
            let levels: Vec<_> = levels.map(|&(band, level)| (band, level & LEVEL)).collect();
            let about = (place, operation.id(place), decided.collapsed);
            let known = DocumentRow {
                verdict: decided.verdict.map(|verdict| verdict.evidence),
                levels: &levels,
                ..row_of_batch(documents, about, reference.row)
            };
            if !decided.collapsed {
                entries_of(self, &mut keys, &known, |name, head| {
                    writing.entry(name, head, reference);
                });
            }
            self.id_entry(known.id, |name, head| writing.entry(name, head, reference));
            if let Some(verdict) = decided.verdict {
                let (name, head) = member_entry(&verdict);
                writing.entry(name, &head, reference);
            }
            packed.clear();
            let leader_tag = decided.verdict.map(|verdict| verdict.tag);
            pack_record(rules, &known, leader_tag, second, &mut packed);
            writing.field(Name::records(reference.row), reference, &packed);
            if let Some((features, weights)) = documents.set(place) {
                packed.clear();
                pack_set(features, weights, &mut packed);
                writing.field(Name::sets(reference.row), reference, &packed);
            }
        }
        writing.finish()
    }

    fn id_entry(&self, id: &str, enter: impl FnOnce(Name, &[u8])) {
        let (name, head) = self.names.id(xxhash_rust::xxh3::xxh3_64(id.as_bytes()));
        enter(name, &head);
    }

    fn leave(
        &self,
        writing: &mut Writing<'_>,
        keys: &mut Keys,
        gone: &Record,
        reference: Reference,
        how: Change,
    ) {
        let field = reference.bytes();
        let mut leave = |name: Name, head: &[u8]| {
            writing.change(Change::Leave, name, &[&[head, &field[..]].concat()]);
        };
        if !gone.is_collapsed() {
            entries_of(self, keys, &gone.row(reference.row), &mut leave);
        }
        self.id_entry(&gone.id, &mut leave);
        if let Some(verdict) = &gone.verdict {
            let (name, head) = member_entry(verdict);
            leave(name, &head);
        }
        writing.change(how, Name::records(reference.row), &[&field]);
        if self.rules().keeps_set(gone.num_features) {
            writing.change(how, Name::sets(reference.row), &[&field]);
        }
    }

    fn effects_of_removal(&self, removed: &RemovedRecord, row: u32) -> Vec<Effects> {
        let rules = self.rules();
        let mut writing = Writing::new(self, row, 0);
        let mut keys = self.keys.clone();
        let entry = |head: &[u8], reference: Reference| [head, &reference.bytes()[..]].concat();
        let (gone, reference) = (&removed.record, removed.reference);
        self.leave(&mut writing, &mut keys, gone, reference, Change::Drop);
        for changed in &removed.changed {
            let (member, record) = (changed.reference, &changed.record);
            let head = [place_in_chunk(reference.row)];
            let name = Name::members(reference.row);
            writing.change(Change::Leave, name, &[&entry(&head, member)]);
            if let Some(verdict) = &record.verdict {
                let (name, head) = member_entry(verdict);
                writing.change(Change::Enter, name, &[&entry(&head, member)]);
            }
            if changed.enters {
                entries_of(self, &mut keys, &record.row(member.row), |name, head| {
                    writing.change(Change::Enter, name, &[&entry(head, member)]);
                });
            }
            let packed = record.pack(rules);
            let name = Name::records(member.row);
            writing.change(Change::Set, name, &[&member.bytes(), &packed]);
        }
        writing.finish()
    }
}

/// The entry by which a kept document finds a duplicate.
fn member_entry(verdict: &Verdict) -> (Name, [u8; 1]) {
    let leader = verdict.evidence.kept_row;
    (Name::members(leader), [place_in_chunk(leader)])
}

fn write_restored(writing: &mut Writing<'_>, rule: &ClusterRule, all: &[MovedDocument], tag: Tag) {
    let mut keys = rule.keys.clone();
    let mut packed = Vec::new();
    for document in all {
        let row = document.row;
        let reference = Reference { row, tag };
        let (sketch, levels) = (&document.record.sketch, &document.record.levels);
        writing.marks(&mut keys, sketch, levels, reference);
        let MovedDocument {
            record, content, ..
        } = restored(document, tag);
        entries_of_record(rule, &mut keys, row, &record, |name, head| {
            // Marks were written above, once for each bucket.
            if !(name.is_band() && head[0] & 1 == 1) {
                writing.entry(name, head, reference);
            }
        });
        writing.field(Name::records(row), reference, &record.pack(rule.rules()));
        if let Content::Features(features, weights) = &content {
            packed.clear();
            pack_set(features, weights, &mut packed);
            writing.field(Name::sets(row), reference, &packed);
        }
    }
}
