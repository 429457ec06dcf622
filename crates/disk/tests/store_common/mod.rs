//! Documents for the tests of the store, and a plain list of the expected contents.
#![allow(dead_code, missing_docs)]

use std::collections::BTreeSet;
use std::fs;
use std::ops::Range;
use std::path::PathBuf;

use likewise_disk::Error;
use likewise_disk::store::{
    Content, Description, DocumentRow, Durability, Event, Evidence, Keeps, NewRows, Row, Store,
};

/// Creates an empty directory with this name.
pub fn folder(name: &str) -> PathBuf {
    let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("store-{name}"));
    let _ = fs::remove_dir_all(&path);
    path
}

pub fn description(sketch_bytes: u32, keeps: Keeps) -> Description {
    Description {
        recipe_json: "{\"method\":\"simhash\"}".to_owned(),
        recipe_id: "r1".to_owned(),
        sketch_id: "s1".to_owned(),
        sketch_bytes,
        keeps,
        attached: Default::default(),
    }
}

pub fn create(name: &str, sketch_bytes: u32, keeps: Keeps) -> Store {
    let description = description(sketch_bytes, keeps);
    Store::create(
        &folder(name),
        &description,
        Durability::Interval(std::time::Duration::ZERO),
    )
    .unwrap()
}

/// A small generator that yields equal numbers on every system.
pub struct Dice(pub u64);

impl Dice {
    pub fn throw(&mut self) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(6364136223846793005)
            .wrapping_add(1442695040888963407);
        let mixed = (self.0 ^ (self.0 >> 29)).wrapping_mul(0xbf58476d1ce4e5b9);
        mixed ^ (mixed >> 32)
    }

    pub fn below(&mut self, end: u64) -> u64 {
        self.throw() % end
    }
}

/// The expected contents.
#[derive(Debug, Default, Clone)]
pub struct Model {
    pub rows: Vec<Row>,
    pub contents: Vec<Content>,
    pub events: Vec<Event>,
    pub expired_below: u32,
    /// Rows with dropped records.
    pub dropped: BTreeSet<u32>,
    /// Whether texts and feature sets have digests; if `None`, chosen at random for each batch.
    pub digests: Option<(bool, bool)>,
}

impl Model {
    /// Appends `count` random documents to the store and to the list.
    pub fn append(
        &mut self,
        store: &mut Store,
        dice: &mut Dice,
        count: usize,
        events: &[Event],
    ) -> Range<u32> {
        let sketch_bytes = store.description().sketch_bytes as usize;
        let keeps = store.description().keeps;
        let thrown = (dice.below(4) != 0, dice.below(3) == 0);
        let has_digests = self.digests.unwrap_or(thrown);
        let first = self.rows.len();
        let arrival_s = 1_700_000_000 + (first as u64 / 7) * 10;
        for i in first..first + count {
            let row = new_row(dice, i as u32, sketch_bytes, has_digests, arrival_s);
            self.contents.push(match (keeps, dice.below(3)) {
                (Keeps::Text, kind) => {
                    Content::Text("Ein Wörtchen ".repeat(1 + 40 * kind as usize).into_bytes())
                }
                (Keeps::Sketch, 1..) => Content::Absent,
                (_, kind) => new_features(dice, kind as usize),
            });
            self.rows.push(row);
        }
        let all = self.rows[first..].iter().zip(&self.contents[first..]);
        let documents: Vec<DocumentRow<'_>> = (first as u32..)
            .zip(all)
            .map(|(row, (document, stored))| DocumentRow {
                content: stored.as_new(),
                arrival_s,
                ..document.at(row)
            })
            .collect();
        let rows = NewRows {
            documents: &documents,
            has_digests: has_digests.1,
            run: None,
        };
        let range = store.append(&rows, events).unwrap();
        assert_eq!(range, first as u32..(first + count) as u32);
        self.apply(events);
        range
    }

    pub fn expire(&mut self, store: &mut Store, below: u32) {
        store.expire(below, &[]).unwrap();
        self.expired_below = self.expired_below.max(below);
    }

    pub fn apply(&mut self, events: &[Event]) {
        for event in events {
            let Event::Removed {
                row,
                promoted,
                moved,
            } = event;
            self.rows[*row as usize].is_gone = true;
            for &row in promoted {
                self.rows[row as usize].verdict = None;
            }
            for &(row, evidence) in moved {
                self.rows[row as usize].verdict = Some(evidence);
            }
            self.events.push(event.clone());
        }
    }

    pub fn row(&self, row: u32) -> Row {
        let mut found = self.rows[row as usize].clone();
        found.is_gone |= row < self.expired_below;
        found
    }

    /// Checks that the store has all of it, by every way of reading.
    pub fn check(&self, store: &Store) -> Result<(), Error> {
        let num_rows = self.rows.len() as u32;
        assert_eq!(store.num_rows(), num_rows);
        self.check_range(store, 0..num_rows)?;
        for row in 0..num_rows {
            self.check_row(store, row)?;
        }
        let mut events = Vec::new();
        store.events(0, |number, event| {
            events.push(event.clone());
            assert_eq!(number as usize, events.len());
            Ok(())
        })?;
        assert_eq!(events, self.events);
        Ok(())
    }

    pub fn check_row(&self, store: &Store, row: u32) -> Result<(), Error> {
        if self.dropped.contains(&row) {
            assert!(matches!(store.row(row), Err(Error::Dropped { .. })));
            return Ok(());
        }
        assert_eq!(store.row(row)?, self.row(row));
        assert_eq!(store.id(row)?, self.rows[row as usize].id);
        assert_eq!(store.content(row)?, self.contents[row as usize]);
        Ok(())
    }

    pub fn check_range(&self, store: &Store, rows: Range<u32>) -> Result<(), Error> {
        let mut next = rows.start;
        store.scan(rows.clone(), |chunk| {
            assert!(chunk.span.contains(&next) && chunk.span.start < rows.end);
            let left = chunk.span.clone().filter(|row| !self.dropped.contains(row));
            assert!(left.eq(chunk.rows.iter().copied()));
            let sketch_bytes = store.description().sketch_bytes as usize;
            for (i, &row) in chunk.rows.iter().enumerate() {
                let expected = self.row(row);
                let begin = i * sketch_bytes;
                let found = Row {
                    id: chunk.id(i).to_owned(),
                    sketch: chunk.sketches[begin..begin + sketch_bytes].to_vec(),
                    shape: chunk.shapes[i],
                    num_features: chunk.num_features[i],
                    text_digest: chunk.text_digests.as_deref().map(|all| all[i]),
                    feature_digest: chunk.feature_digests.as_deref().map(|all| all[i]),
                    verdict: chunk.verdicts[i],
                    is_gone: chunk.gone[i],
                    levels: chunk.levels[i].clone(),
                    arrival_s: chunk.arrivals_s[i],
                };
                assert_eq!(found, expected);
            }
            next = chunk.span.end;
            Ok(())
        })?;
        assert!(next >= rows.end);
        let mut with_content = rows
            .clone()
            .filter(|&row| self.contents[row as usize] != Content::Absent);
        store.scan_contents(rows, |row, content| {
            assert_eq!(Some(row), with_content.next());
            assert_eq!(content, self.contents[row as usize]);
            Ok(())
        })?;
        assert_eq!(with_content.next(), None);
        Ok(())
    }
}

fn new_row(
    dice: &mut Dice,
    row: u32,
    sketch_bytes: usize,
    has_digests: (bool, bool),
    arrival_s: u64,
) -> Row {
    let id = match dice.below(5) {
        0 => format!("网页-{row}"),
        1 if row.is_multiple_of(50) => "x".repeat(900) + &row.to_string(),
        2 if row == 2 => String::new(),
        _ => format!("https://example.org/{row}"),
    };
    let distance = dice.below(12) as u16;
    let evidence = Evidence {
        kept_row: dice.below(u64::from(row) + 1) as u32,
        similarity: match dice.below(3) {
            0 => 1.0,
            1 => 1.0 - f64::from(distance) / (8 * sketch_bytes) as f64,
            _ => dice.below(1000) as f64 / 1000.0,
        },
        distance: (dice.below(2) == 0).then_some(distance),
    };
    Row {
        id,
        sketch: (0..sketch_bytes).map(|_| dice.throw() as u8).collect(),
        shape: dice.below(4) as u8,
        num_features: dice.below(2000) as u32,
        text_digest: has_digests.0.then(|| dice.throw()),
        feature_digest: has_digests
            .1
            .then(|| (u128::from(dice.throw()) << 64) | u128::from(dice.throw())),
        verdict: (dice.below(3) == 0).then_some(evidence),
        is_gone: false,
        levels: (0..8)
            .filter(|_| dice.below(10) == 0)
            .map(|band| (band, 1 + band as u8 % 3))
            .collect(),
        arrival_s,
    }
}

fn new_features(dice: &mut Dice, kind: usize) -> Content {
    let mut features: Vec<u64> = (0..dice.below(if kind == 0 { 40 } else { 400 }))
        .map(|_| dice.throw())
        .collect();
    features.sort_unstable();
    features.dedup();
    let weights = match kind {
        2 => features
            .iter()
            .map(|feature| 1 + (feature % 15) as u32)
            .collect(),
        _ => Vec::new(),
    };
    Content::Features(features, weights)
}
