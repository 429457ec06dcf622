//! The store compared with a plain list.
#![allow(missing_docs)]

mod store_common;

use std::fs;
use std::ops::Range;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use likewise_disk::Error;
use likewise_disk::store::{
    Content, DocumentRow, Dropping, Durability, Event, Evidence, Keeps, LiveSegment, NewContent,
    NewRows, Store, Swept,
};
use store_common::{Dice, Model, create, description, folder};

static NEVER: AtomicBool = AtomicBool::new(false);

#[test]
fn what_was_appended_is_there() {
    for (name, sketch_bytes, keeps) in [
        ("simhash", 8, Keeps::Sketch),
        ("minhash", 256, Keeps::Shingles),
        ("narrow", 4, Keeps::Text),
    ] {
        let mut dice = Dice(sketch_bytes.into());
        let mut model = Model::default();
        let mut store = create(name, sketch_bytes, keeps);
        model.check(&store).unwrap();
        for count in [1, 1, 2, 700, 1, 1500, 3, 1, 1] {
            model.append(&mut store, &mut dice, count, &[]);
        }
        model.check(&store).unwrap();
        for _ in 0..20 {
            let begin = dice.below(2200) as u32;
            model.check_range(&store, begin..begin + 1).unwrap();
        }
        assert!(matches!(
            store.row(2210),
            Err(Error::InvalidParameter { .. })
        ));
        let (dir, identity) = (store.dir().to_owned(), store.identity);
        drop(store);
        let mut store = Store::open(&dir, Durability::Commit).unwrap();
        assert_eq!(store.description(), &description(sketch_bytes, keeps));
        assert_eq!(store.identity, identity);
        model.append(&mut store, &mut dice, 5, &[]);
        model.check(&store).unwrap();
        assert_eq!(store.check(true, &NEVER).unwrap(), Vec::<String>::new());
    }
}

/// Returns removals of random rows, each with promotions and moves.
fn events(dice: &mut Dice, num_rows: u64) -> Vec<Event> {
    (0..3)
        .map(|_| Event::Removed {
            row: dice.below(num_rows) as u32,
            promoted: (0..dice.below(3))
                .map(|_| dice.below(num_rows) as u32)
                .collect(),
            moved: (0..dice.below(4))
                .map(|_| {
                    let evidence = Evidence {
                        kept_row: dice.below(num_rows) as u32,
                        similarity: 0.875,
                        distance: Some(8),
                    };
                    (dice.below(num_rows) as u32, evidence)
                })
                .collect(),
        })
        .collect()
}

/// Runs all steps of a compaction that keeps the records selected by `stays`; returns by how much the numbers of pieces
/// and of records decreased.
fn compact(store: &mut Store, stays: &dyn Fn(u32) -> bool, ends: &[u32]) -> (u64, u64) {
    let dropping = Dropping {
        expired_below: store.position.expired_below,
        stays,
        ends,
    };
    let (mut from_row, mut num_fewer, mut num_dropped) = (Some(0), 0, 0);
    while let Some(row) = from_row {
        let step = store.compact_chunks(row, dropping).unwrap();
        num_fewer += step.num_fewer;
        num_dropped += step.num_dropped;
        from_row = step.next_row;
    }
    (num_fewer, num_dropped)
}

#[test]
fn events_change_what_readers_see() {
    let mut dice = Dice(3);
    let mut model = Model::default();
    let mut store = create("events", 8, Keeps::Sketch);
    model.append(&mut store, &mut dice, 600, &[]);
    let mut reader = store.reader().unwrap();
    let old = model.clone();
    for round in 0..30 {
        assert!(!reader.changed().unwrap());
        let events = events(&mut dice, model.rows.len() as u64);
        model.append(&mut store, &mut dice, round % 3, &events);
        let below = dice.below(model.rows.len() as u64 / 3) as u32;
        model.expire(&mut store, below);
        assert!(reader.changed().unwrap());
        let position = reader.refresh().unwrap();
        assert_eq!(position, store.position);
        assert_eq!(position.last_event as usize, model.events.len());
        assert_eq!(position.expired_below, model.expired_below);
    }
    model.check(&store).unwrap();
    model.check(&reader).unwrap();
    assert_ne!(old.row(5), model.row(5));
    let mut after = Vec::new();
    reader
        .events(80, |number, event| {
            after.push((number, event.clone()));
            Ok(())
        })
        .unwrap();
    assert_eq!(after.len(), 10);
    assert_eq!(after[0], (81, model.events[80].clone()));
    let dir = store.dir().to_owned();
    drop((store, reader));
    model
        .check(&Store::open(&dir, Durability::Commit).unwrap())
        .unwrap();
}

#[test]
fn a_reader_sees_one_state_while_the_writer_goes_on() {
    let mut dice = Dice(4);
    let mut model = Model::default();
    let mut store = create("one-state", 8, Keeps::Sketch);
    model.append(&mut store, &mut dice, 900, &[]);
    let reader = store.reader().unwrap();
    let old = model.clone();
    reader
        .read_together(|reader| {
            reader.row(0)?;
            model.append(&mut store, &mut dice, 40, &[]);
            model.expire(&mut store, 100);
            old.check_range(reader, 0..900)
        })
        .unwrap();
    let position = reader.scan(0..2000, |_| Ok(())).unwrap();
    assert_eq!((position.num_rows, position.expired_below), (940, 100));
    let mut num_chunks = 0;
    let stopped = store.scan(0..900, |_| {
        num_chunks += 1;
        Err(Error::Canceled)
    });
    assert!(matches!(stopped, Err(Error::Canceled)));
    assert_eq!(num_chunks, 1);
    model.append(&mut store, &mut dice, 1, &[]);
}

#[test]
fn compaction_joins_and_changes_no_answer() {
    for (name, keeps) in [("joined", Keeps::Shingles), ("joined-texts", Keeps::Text)] {
        let mut dice = Dice(5);
        let mut model = Model::default();
        let mut store = create(name, 8, keeps);
        for i in 0..400 {
            let count = 1 + dice.below(3) as usize;
            // Chunks with other columns are not joined.
            model.digests = Some((i < 390, i < 300));
            model.append(&mut store, &mut dice, count, &[]);
        }
        let events = events(&mut dice, model.rows.len() as u64);
        model.append(&mut store, &mut dice, 0, &events);
        let end = 300;
        // A chunk may or may not end before row 300; a segment may end only where one does.
        let (end, batch) = (end..)
            .find_map(|end| Some((end, store.batch_before(end).unwrap()?)))
            .unwrap();
        let segment = LiveSegment {
            name: "first".to_owned(),
            rows: 0..end,
            batch,
            last_event: store.last_event(),
            details: "{}".to_owned(),
        };
        store.publish(&[segment], &[]).unwrap();
        let before = store.sizes().unwrap();
        let mut reader = store.reader().unwrap();
        let (num_fewer, num_dropped) = compact(&mut store, &|_| true, &[]);
        assert_eq!(num_dropped, 0);
        let after = store.sizes().unwrap();
        assert!(
            after.num_chunks < 12 && before.num_chunks >= 400,
            "{after:?}"
        );
        assert_eq!(
            before.num_chunks + before.num_content_blocks,
            after.num_chunks + after.num_content_blocks + num_fewer
        );
        for row in 0..model.rows.len() as u32 {
            if model.row(row).is_gone {
                model.contents[row as usize] = likewise_disk::store::Content::Absent;
            }
        }
        reader.refresh().unwrap();
        for store in [&store, &reader] {
            model.check(store).unwrap();
            assert_eq!(store.batch_before(end).unwrap(), Some(batch));
            assert_eq!(store.check(true, &NEVER).unwrap(), Vec::<String>::new());
        }
        // Nothing is left to do.
        assert_eq!(compact(&mut store, &|_| true, &[]), (0, 0));
    }
}

#[test]
fn records_of_documents_that_are_gone_are_dropped_and_all_others_stay() {
    for (name, keeps) in [("dropped", Keeps::Shingles), ("dropped-texts", Keeps::Text)] {
        let mut dice = Dice(21);
        let mut model = Model::default();
        let mut store = create(name, 8, keeps);
        let dir = store.dir().to_owned();
        for round in 0..12 {
            let first = model.rows.len() as u32;
            for _ in 0..60 {
                let count = 1 + dice.below(40) as usize;
                model.append(&mut store, &mut dice, count, &[]);
            }
            let num_rows = model.rows.len() as u32;
            let of_new = |dice: &mut Dice| first + dice.below(u64::from(num_rows - first)) as u32;
            let mut removals: Vec<Event> = (0..800)
                .map(|_| Event::Removed {
                    row: of_new(&mut dice),
                    promoted: Vec::new(),
                    moved: Vec::new(),
                })
                .collect();
            // One of the remaining documents was promoted, and still is.
            let promoted = first + 7;
            removals.retain(|Event::Removed { row, .. }| *row != promoted);
            removals.push(Event::Removed {
                row: of_new(&mut dice).max(promoted + 1),
                promoted: vec![promoted],
                moved: Vec::new(),
            });
            model.append(&mut store, &mut dice, 0, &removals);
            if round == 5 {
                model.expire(&mut store, first / 2);
            }
            let end = model.rows.len() as u32;
            let ends = [end];
            let batch = store.batch_before(end).unwrap();
            // Every 50th record is still needed, although its document is gone.
            let stays = |row: u32| row.is_multiple_of(50);
            let (_, num_dropped) = compact(&mut store, &stays, &ends);
            assert!(num_dropped > 100);
            for row in 0..end {
                if model.row(row).is_gone {
                    model.contents[row as usize] = likewise_disk::store::Content::Absent;
                    if !stays(row) {
                        model.dropped.insert(row);
                    }
                }
            }
            model.check(&store).unwrap();
            model.check(&store.reader().unwrap()).unwrap();
            assert_eq!(store.batch_before(end).unwrap(), batch);
            assert_eq!(store.check(true, &NEVER).unwrap(), Vec::<String>::new());
            assert_eq!(compact(&mut store, &stays, &ends).1, 0);
            if round % 4 == 3 {
                drop(store);
                store = Store::open(&dir, Durability::Commit).unwrap();
            }
        }
        // All gone documents are dropped, in the end everything.
        let (_, num_dropped) = compact(&mut store, &|_| false, &[]);
        assert!(num_dropped > 0);
        model.expire(&mut store, model.rows.len() as u32);
        compact(&mut store, &|_| false, &[]);
        let sizes = store.sizes().unwrap();
        // At most one piece per step.
        assert!(
            sizes.num_chunks <= 4 && sizes.num_content_blocks == 0,
            "{sizes:?}"
        );
        assert_eq!(store.num_rows() as usize, model.rows.len());
        let last_event = store.last_event();
        store.note_swept(Swept::default(), last_event).unwrap();
        while store.give_back_pages(100, None).unwrap() {}
        let sizes = store.sizes().unwrap();
        assert_eq!(sizes.free_bytes, 0);
        drop(store);
        let left = std::fs::metadata(dir.join("documents.sqlite"))
            .unwrap()
            .len();
        assert!(left < 200_000, "{left}");
        let mut store = Store::open(&dir, Durability::Commit).unwrap();
        let rows = model.append(&mut store, &mut dice, 5, &[]);
        model.check_range(&store, rows).unwrap();
        assert_eq!(
            store.first_row_since(0).unwrap() as usize,
            model.rows.len() - 5
        );
    }
}

#[test]
fn old_events_are_dropped_and_the_others_keep_their_numbers() {
    let mut dice = Dice(22);
    let mut model = Model::default();
    let mut store = create("old-events", 8, Keeps::Sketch);
    model.append(&mut store, &mut dice, 600, &[]);
    for _ in 0..30 {
        let events = events(&mut dice, model.rows.len() as u64);
        model.append(&mut store, &mut dice, 0, &events);
    }
    let swept = Swept {
        last_event: 90,
        expired_below: 0,
    };
    for (drop_events, num_left) in [(50, 40), (20, 40), (90, 0)] {
        store.note_swept(swept, drop_events).unwrap();
        let old = store.num_old_events().unwrap();
        let mut num = 0;
        store
            .events(old, |number, event| {
                assert_eq!(*event, model.events[number as usize - 1]);
                num += 1;
                Ok(())
            })
            .unwrap();
        assert_eq!(num, num_left);
        assert_eq!(store.check(true, &NEVER).unwrap(), Vec::<String>::new());
    }
    assert!(store.events(80, |_, _| Ok(())).is_err());
    let dir = store.dir().to_owned();
    drop(store);
    let mut store = Store::open(&dir, Durability::Commit).unwrap();
    assert_eq!((store.last_event(), store.swept().unwrap()), (90, swept));
    let events = events(&mut dice, 600);
    model.append(&mut store, &mut dice, 0, &events);
    assert_eq!(store.last_event(), 93);
}

#[test]
fn segments_are_published_in_one_step() {
    let mut store = create("published", 8, Keeps::Sketch);
    Model::default().append(&mut store, &mut Dice(1), 100, &[]);
    let segment = |name: &str, rows: Range<u32>| LiveSegment {
        name: name.to_owned(),
        batch: 7,
        last_event: 0,
        details: format!("{{\"rows\":{}}}", rows.len()),
        rows,
    };
    let (one, two, both) = (
        segment("one", 0..60),
        segment("two", 60..100),
        segment("both", 0..100),
    );
    store.publish(&[two.clone(), one.clone()], &[]).unwrap();
    assert_eq!(store.segments().unwrap(), [one, two]);
    store
        .publish(
            std::slice::from_ref(&both),
            &["one".to_owned(), "two".to_owned(), "none".to_owned()],
        )
        .unwrap();
    assert_eq!(store.reader().unwrap().segments().unwrap(), [both]);
}

#[test]
fn a_snapshot_is_the_state_of_its_moment() {
    let mut dice = Dice(6);
    let mut model = Model::default();
    let mut store = create("original", 8, Keeps::Text);
    model.append(&mut store, &mut dice, 500, &[]);
    let to = folder("snapshot");
    let reader = store.reader().unwrap();
    reader.snapshot(&to, &NEVER).unwrap();
    model.clone().append(&mut store, &mut dice, 50, &[]);
    let mut copy = Store::open(&to, Durability::Commit).unwrap();
    assert_eq!(copy.identity, store.identity);
    model.check(&copy).unwrap();
    model.append(&mut copy, &mut dice, 3, &[]);
    model.check(&copy).unwrap();
    assert_ne!(
        copy.batch_before(503).unwrap(),
        store.batch_before(550).unwrap()
    );
    let refused = store.snapshot(&to, &NEVER);
    assert!(
        matches!(refused, Err(Error::InvalidParameter { .. })),
        "{refused:?}"
    );
    let stopped = store.snapshot(&folder("snapshot-stopped"), &AtomicBool::new(true));
    assert!(matches!(stopped, Err(Error::Canceled)));
    assert_eq!(
        fs::read_dir(
            folder("snapshot-stopped")
                .parent()
                .unwrap()
                .join("store-snapshot")
        )
        .unwrap()
        .count(),
        5
    );
}

#[test]
fn one_writes_and_any_number_read() {
    let store = create("locked", 8, Keeps::Sketch);
    let dir = store.dir().to_owned();
    match Store::open(&dir, Durability::Commit) {
        Err(error @ Error::Locked { .. }) => {
            assert!(error.to_string().contains("writer.lock"), "{error}");
        }
        other => panic!("{other:?}"),
    }
    let mut reader = Store::open_reader(&dir).unwrap();
    assert!(matches!(
        reader.append(&NewRows::default(), &[]),
        Err(Error::Unsupported { .. })
    ));
    drop(store);
    let again = Store::create(&dir, &description(8, Keeps::Sketch), Durability::Commit);
    assert!(
        matches!(again, Err(Error::InvalidParameter { .. })),
        "{again:?}"
    );
    Store::open(&dir, Durability::Commit).unwrap();
    let none = Store::open_reader(&folder("none"));
    assert!(none.unwrap_err().to_string().contains("contains no index"));
}

#[test]
fn rows_keep_arrival_times_of_their_own() {
    let dir = folder("arrivals");
    let mut store =
        Store::create(&dir, &description(8, Keeps::Sketch), Durability::Commit).unwrap();
    let append_at = |store: &mut Store, ids: &[&'static str], arrivals_s: &[u64]| {
        let document = |(&id, &arrival_s): (&&'static str, &u64)| DocumentRow {
            arrival_s,
            ..document(id)
        };
        let documents: Vec<_> = ids.iter().zip(arrivals_s).map(document).collect();
        append(store, &documents).unwrap();
    };
    append_at(&mut store, &["a", "b", "c", "d"], &[3, 3, 5, 9]);
    // None arrives before those that are there.
    append_at(&mut store, &["e", "f"], &[7, 12]);
    drop(store);
    let store = Store::open_reader(&dir).unwrap();
    let arrivals: Vec<u64> = (0..6)
        .map(|row| store.row(row).unwrap().arrival_s)
        .collect();
    assert_eq!(arrivals, [3, 3, 5, 9, 9, 12]);
    assert_eq!(store.last_arrival_s().unwrap(), Some(12));
    assert_eq!(store.first_row_since(6).unwrap(), 3);
}

fn document(id: &str) -> DocumentRow<'_> {
    DocumentRow {
        id,
        sketch: &[0; 8],
        num_features: 1,
        ..DocumentRow::default()
    }
}

fn append(store: &mut Store, documents: &[DocumentRow<'_>]) -> Result<Range<u32>, Error> {
    let rows = NewRows {
        documents,
        ..NewRows::default()
    };
    store.append(&rows, &[])
}

#[test]
fn rows_that_do_not_fit_change_nothing() {
    let mut store = create("misfits", 8, Keeps::Shingles);
    let good = [document("a"), document("b")];
    let long = "x".repeat(65_536);
    for bad in [
        DocumentRow {
            sketch: &[0; 7],
            ..good[0]
        },
        DocumentRow {
            text_digest: Some(1),
            ..good[0]
        },
        DocumentRow {
            arrival_s: 4,
            ..good[0]
        },
        DocumentRow {
            levels: &[(3, 1), (2, 1)],
            ..good[0]
        },
        document(&long),
        DocumentRow {
            content: NewContent::Features(&[2, 1], &[]),
            ..good[0]
        },
        DocumentRow {
            content: NewContent::Features(&[1, 2], &[1]),
            ..good[0]
        },
    ] {
        let result = append(&mut store, &[bad, good[1]]);
        assert!(
            matches!(result, Err(Error::InvalidParameter { .. })),
            "{result:?}"
        );
    }
    let unknown = Event::Removed {
        row: 2,
        promoted: vec![],
        moved: vec![],
    };
    let rows = NewRows {
        documents: &good,
        ..NewRows::default()
    };
    assert!(matches!(
        store.append(&rows, &[unknown]),
        Err(Error::InvalidParameter { .. })
    ));
    assert_eq!(store.num_rows(), 0);
    assert_eq!(append(&mut store, &good).unwrap(), 0..2);
    assert_eq!(store.reader().unwrap().num_rows(), 2);
}

#[test]
fn time_never_runs_back() {
    let mut store = create("time", 8, Keeps::Sketch);
    for (i, arrival_s) in [100, 90, 100, 200, 150, 300].into_iter().enumerate() {
        let id = i.to_string();
        let late = DocumentRow {
            arrival_s,
            ..document(&id)
        };
        append(&mut store, &[late]).unwrap();
        if i == 3 {
            let dir = store.dir().to_owned();
            drop(store);
            store = Store::open(&dir, Durability::Interval(Duration::from_millis(200))).unwrap();
        }
    }
    store.compact_chunks(0, Dropping::NOTHING).unwrap();
    let arrivals_s: Vec<u64> = (0..6)
        .map(|row| store.row(row).unwrap().arrival_s)
        .collect();
    assert_eq!(arrivals_s, [100, 100, 100, 200, 200, 300]);
    for (since_s, row) in [(0, 0), (100, 0), (101, 3), (200, 3), (201, 5), (301, 6)] {
        assert_eq!(store.first_row_since(since_s).unwrap(), row);
    }
}

#[test]
fn a_reader_of_an_earlier_state_is_told_of_droppings() {
    let mut dice = Dice(11);
    let mut model = Model::default();
    let mut store = create("droppings", 8, Keeps::Text);
    model.append(&mut store, &mut dice, 40, &[]);
    let mut reader = store.reader().unwrap();
    let mut held = store.reader().unwrap();
    let before = reader.droppings();
    // Its chunk is read and cached.
    held.hold(before).unwrap();
    held.row(7).unwrap();
    held.release();
    let removed = Event::Removed {
        row: 7,
        promoted: Vec::new(),
        moved: Vec::new(),
    };
    store.append(&NewRows::default(), &[removed]).unwrap();
    // A state that is held is unaffected.
    held.hold(before).unwrap();
    assert_ne!(held.content(7).unwrap(), Content::Absent);
    compact(&mut store, &|_| true, &[]);
    assert_ne!(held.content(7).unwrap(), Content::Absent);
    held.release();
    // Only the content was dropped: the next read must not mistake it for an empty document.
    assert!(matches!(held.hold(before), Err(Error::Dropped { .. })));
    reader.refresh().unwrap();
    let now = reader.droppings();
    assert_ne!(now, before);
    held.advance(reader.position);
    held.hold(now).unwrap();
    assert!(held.row(7).unwrap().is_gone);
    held.release();
    // Then the record is dropped.
    assert_eq!(compact(&mut store, &|_| false, &[]).1, 1);
    assert!(matches!(held.hold(now), Err(Error::Dropped { .. })));
    reader.refresh().unwrap();
    held.hold(reader.droppings()).unwrap();
    // Not from the chunk that was read before.
    assert!(matches!(held.row(7), Err(Error::Dropped { row: 7 })));
    held.release();
    // If nothing is dropped, no reader is affected.
    let before = reader.droppings();
    model.append(&mut store, &mut dice, 3, &[]);
    compact(&mut store, &|_| false, &[]);
    reader.refresh().unwrap();
    assert_eq!(reader.droppings(), before);
    drop((store, reader, held));
}
