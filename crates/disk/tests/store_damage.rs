//! The store when the disk or another program damages its files.
#![allow(missing_docs)]

mod store_common;

use std::fs;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::atomic::AtomicBool;

use likewise_disk::Error;
use likewise_disk::store::{Dropping, Durability, Event, Evidence, Keeps, LiveSegment, Store};
use store_common::{Dice, Model, create, folder};

static NEVER: AtomicBool = AtomicBool::new(false);

/// Creates a small store with every kind of record, and closes it.
fn small(name: &str) -> (std::path::PathBuf, Model) {
    let mut dice = Dice(9);
    let mut model = Model::default();
    let mut store = create(name, 8, Keeps::Shingles);
    for count in [3, 24, 1] {
        model.append(&mut store, &mut dice, count, &[]);
    }
    let evidence = Evidence {
        kept_row: 4,
        similarity: 0.5,
        distance: None,
    };
    let removed = Event::Removed {
        row: 10,
        promoted: vec![11],
        moved: vec![(12, evidence)],
    };
    model.append(&mut store, &mut dice, 0, &[removed]);
    model.expire(&mut store, 2);
    let segment = LiveSegment {
        name: "whole".to_owned(),
        rows: 0..store.num_rows(),
        batch: 1,
        last_event: store.last_event(),
        details: String::new(),
    };
    store.publish(&[segment], &[]).unwrap();
    let dir = store.dir().to_owned();
    drop(store);
    (dir, model)
}

/// Opens the store and reads all of it: the result must be an error, or the right answer.
fn look(dir: &Path, model: &Model) -> Result<(), Error> {
    let store = Store::open_reader(dir)?;
    model.check(&store)
}

#[test]
fn flipped_bytes_are_found_or_harm_nothing() {
    let (dir, model) = small("flipped");
    let path = dir.join("documents.sqlite");
    let good = fs::read(&path).unwrap();
    let copy = folder("flipped-copy");
    fs::create_dir_all(&copy).unwrap();
    let mut dice = Dice(2);
    let mut num_found = 0;
    // Every byte of the first page and of the headers of the others, and a sample of the rest.
    for place in
        (0..good.len()).filter(|place| *place < 200 || place % 4096 < 24 || place % 97 == 0)
    {
        let mut bad = good.clone();
        bad[place] ^= 1 << dice.below(8);
        let _ = fs::remove_file(copy.join("documents.sqlite-wal"));
        let _ = fs::remove_file(copy.join("documents.sqlite-shm"));
        fs::write(copy.join("documents.sqlite"), &bad).unwrap();
        let looked = catch_unwind(AssertUnwindSafe(|| look(&copy, &model)));
        match looked {
            Ok(Ok(())) => {}
            Ok(Err(error)) => {
                assert!(!error.to_string().is_empty());
                num_found += 1;
            }
            Err(_) => panic!("byte {place} of {} was flipped: a wrong answer", good.len()),
        }
    }
    assert!(num_found > 200, "{num_found}");
}

#[test]
fn a_file_that_is_cut_is_found() {
    let (dir, model) = small("cut");
    let path = dir.join("documents.sqlite");
    let good = fs::read(&path).unwrap();
    for length in (1..good.len()).step_by(1531).chain([good.len() - 1]) {
        fs::write(&path, &good[..length]).unwrap();
        assert!(look(&dir, &model).is_err(), "{length}");
    }
    fs::write(
        &path,
        b"no database at all, but long enough to be looked at as one".repeat(20),
    )
    .unwrap();
    assert!(matches!(look(&dir, &model), Err(Error::Damaged { .. })));
    fs::write(&path, &good).unwrap();
    look(&dir, &model).unwrap();
}

#[test]
fn check_names_a_record_that_was_changed() {
    let (dir, _) = small("checked");
    let path = dir.join("documents.sqlite");
    let mut bytes = fs::read(&path).unwrap();
    let id = b"https://example.org/7";
    // Split pages keep bytes of what was moved, so each occurrence is changed.
    for place in 0..bytes.len() - id.len() {
        if bytes[place..].starts_with(id) {
            bytes[place] = b'H';
        }
    }
    fs::write(&path, &bytes).unwrap();
    let store = Store::open_reader(&dir).unwrap();
    assert_eq!(store.check(false, &NEVER).unwrap(), Vec::<String>::new());
    let findings = store.check(true, &NEVER).unwrap();
    assert!(
        findings.iter().any(|finding| finding.contains("malformed")),
        "{findings:?}"
    );
    assert!(matches!(store.row(7), Err(Error::Damaged { .. })));
    assert!(matches!(
        store.check(true, &AtomicBool::new(true)),
        Err(Error::Canceled)
    ));
}

#[test]
fn a_failed_commit_poisons_until_it_is_opened_again() {
    for kind in [io::ErrorKind::StorageFull, io::ErrorKind::Other] {
        let mut dice = Dice(11);
        let mut model = Model::default();
        let mut store = create("poisoned", 8, Keeps::Sketch);
        model.append(&mut store, &mut dice, 10, &[]);
        let mut fails = false;
        store.fail_commits(move || {
            fails = !fails;
            if fails { Err(kind.into()) } else { Ok(()) }
        });
        let failed = catch_unwind(AssertUnwindSafe(|| {
            model.clone().append(&mut store, &mut dice, 5, &[]);
        }));
        assert!(failed.is_err());
        // The fault is over, but what is on disk is unknown.
        match store.expire(3, &[]) {
            Err(error @ Error::Poisoned { .. }) => {
                assert!(error.to_string().contains("open it again"), "{error}");
            }
            other => panic!("{other:?}"),
        }
        model.check(&store).unwrap();
        let dir = store.dir().to_owned();
        drop(store);
        let mut store = Store::open(&dir, Durability::Commit).unwrap();
        model.append(&mut store, &mut dice, 5, &[]);
        model.check(&store).unwrap();
    }
}

#[test]
fn a_killed_writer_loses_nothing() {
    // Not closing simulates a kill: the log exists, and has not been checkpointed.
    let mut dice = Dice(12);
    let mut model = Model::default();
    let mut store = create("killed", 8, Keeps::Sketch);
    model.append(&mut store, &mut dice, 300, &[]);
    let copy = folder("killed-copy");
    fs::create_dir_all(&copy).unwrap();
    let log = fs::read(store.dir().join("documents.sqlite-wal")).unwrap();
    // Reading the file releases the locks of other users in this process: there are none any more.
    let dir = store.dir().to_owned();
    std::mem::forget(store);
    fs::write(
        copy.join("documents.sqlite"),
        fs::read(dir.join("documents.sqlite")).unwrap(),
    )
    .unwrap();
    for length in [log.len(), log.len() - 1, log.len() / 2, 40] {
        fs::write(copy.join("documents.sqlite-wal"), &log[..length]).unwrap();
        let _ = fs::remove_file(copy.join("documents.sqlite-shm"));
        let opened = Store::open_reader(&copy);
        if length == log.len() {
            model.check(&opened.unwrap()).unwrap();
        } else if let Ok(store) = opened {
            assert_eq!(store.num_rows(), 0);
        }
    }
}

#[test]
fn a_chunk_from_before_a_document_was_dropped_is_found_by_whoever_reads_all() {
    let (mut dice, mut model) = (Dice(9), Model::default());
    let mut store = create("older-chunk", 8, Keeps::Sketch);
    model.append(&mut store, &mut dice, 24, &[]);
    let removed = Event::Removed {
        row: 10,
        promoted: Vec::new(),
        moved: Vec::new(),
    };
    store.append(&Default::default(), &[removed]).unwrap();
    let dir = store.dir().to_owned();
    let chunk = |of: Option<&[u8]>| -> Vec<u8> {
        let database = rusqlite::Connection::open(dir.join("documents.sqlite")).unwrap();
        if let Some(bytes) = of {
            let changed = database.execute("UPDATE chunks SET data = ?1", [bytes]);
            assert_eq!(changed.unwrap(), 1);
        }
        let mut statement = database.prepare("SELECT data FROM chunks").unwrap();
        statement.query_row([], |row| row.get(0)).unwrap()
    };
    drop(store);
    let older = chunk(None);
    let mut store = Store::open(&dir, Durability::Commit).unwrap();
    let dropping = Dropping {
        expired_below: 0,
        stays: &|_| false,
        ends: &[],
    };
    let compacted = store.compact_chunks(0, dropping).unwrap();
    assert_eq!(compacted.num_dropped, 1);
    let rows_of = |store: &Store| {
        let mut rows = Vec::new();
        let scanned = store.scan(0..24, |chunk| {
            rows.extend_from_slice(&chunk.rows);
            Ok(())
        });
        scanned.map(|_| rows)
    };
    let left: Vec<u32> = (0..24).filter(|&row| row != 10).collect();
    assert_eq!(rows_of(&store).unwrap(), left);
    drop(store);
    assert_ne!(chunk(Some(&older)), Vec::<u8>::new());
    let store = Store::open_reader(&dir).unwrap();
    let found = rows_of(&store);
    assert!(matches!(found, Err(Error::Damaged { .. })), "{found:?}");
    assert!(!store.check(true, &NEVER).unwrap().is_empty());
}
