//! Do the servers of a cluster have everything that finds a document?

use std::collections::BTreeMap;
use std::ops::Range;

use crate::cluster::answer::{Answer, Finding};
use crate::cluster::effects::entries_of_record;
use crate::cluster::names::{Name, REFERENCE_BYTES};
use crate::cluster::record::{Record, Reference, Tag};
use crate::cluster::rule::ClusterRule;
use crate::keys::Keys;

/// Records by row, with their tags; nothing of those that servers do not have.
type RecordsByRow = BTreeMap<u32, (Tag, Option<Record>)>;

/// An entry that servers should have of a document.
struct Expected {
    row: u32,
    name: Name,
    /// The entry; of a mark, which another document may have made, its head.
    bytes: Vec<u8>,
    length: usize,
    is_there: bool,
}

/// The entries of some documents, and whether they were found.
#[derive(Default)]
pub struct Audit {
    expected: Vec<Expected>,
}

impl Audit {
    /// The entries that servers should have of some rows.
    pub fn new(
        rule: &ClusterRule,
        keys: &mut Keys,
        records: &RecordsByRow,
        rows: &Range<u32>,
    ) -> Self {
        let mut expected = Vec::new();
        for (&row, (tag, record)) in records.range(rows.clone()) {
            let Some(record) = record else { continue };
            let reference = Reference { row, tag: *tag }.bytes();
            entries_of_record(rule, keys, row, record, |name, head| {
                let is_mark = name.is_band() && head[0] & 1 == 1;
                expected.push(Expected {
                    row,
                    name,
                    bytes: match is_mark {
                        true => head.to_vec(),
                        false => [head, &reference].concat(),
                    },
                    length: head.len() + REFERENCE_BYTES,
                    is_there: false,
                });
            });
        }
        Audit { expected }
    }

    /// The names of the strings with the entries, by number of the entry.
    pub fn names(&self) -> Vec<Name> {
        self.expected.iter().map(|expected| expected.name).collect()
    }

    /// Looks for an entry in its string.
    pub fn scan(&mut self, number: u32, string: &[u8]) {
        let expected = &mut self.expected[number as usize];
        let mut entries = string.chunks_exact(expected.length);
        expected.is_there = entries.any(|entry| entry.starts_with(&expected.bytes));
    }

    /// What the documents lack. `lacks_set` is whether the feature set of a row was read and is missing.
    pub fn answer(
        &self,
        records: &RecordsByRow,
        rows: &Range<u32>,
        lacks_set: impl Fn(u32) -> bool,
    ) -> Answer {
        let (mut num, mut findings) = (0, Vec::new());
        for (&row, (_, record)) in records.range(rows.clone()) {
            let Some(record) = record else { continue };
            num += 1;
            let mut find = |name: Option<Name>| {
                let mut bytes = Vec::new();
                if let Some(name) = name {
                    name.append_to(&mut bytes);
                }
                findings.push(Finding {
                    id: record.id.clone(),
                    name: bytes,
                });
            };
            let from = self.expected.partition_point(|of| of.row < row);
            let of_row = self.expected[from..].iter().take_while(|of| of.row == row);
            of_row
                .filter(|of| !of.is_there)
                .for_each(|of| find(Some(of.name)));
            if lacks_set(row) {
                find(Some(Name::sets(row)));
            }
            // One that an operation of the tail changed was not read.
            let leader = record.verdict.map(|verdict| verdict.evidence.kept_row);
            let leader = leader.and_then(|leader| records.get(&leader));
            if leader.is_some_and(|(_, of)| of.as_ref().is_none_or(|of| of.verdict.is_some())) {
                find(None);
            }
        }
        Answer::Audit(num, findings)
    }
}
