//! Tests that need access to internals: settings, a full disk.

use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use rusqlite::Connection;

use super::*;

fn create(name: &str, durability: Durability) -> Store {
    let name = format!("likewise-store-{}-{name}", std::process::id());
    let dir = std::env::temp_dir().join(name);
    let _ = fs::remove_dir_all(&dir);
    let description = Description {
        recipe_json: "{}".to_owned(),
        recipe_id: "r".to_owned(),
        sketch_id: "s".to_owned(),
        sketch_bytes: 8,
        keeps: Keeps::Text,
        attached: Default::default(),
    };
    Store::create(&dir, &description, durability).unwrap()
}

fn append(store: &mut Store, text: &[u8]) -> Result<(), Error> {
    append_in(store, text, None)
}

fn append_in(store: &mut Store, text: &[u8], run: Option<AddingRun>) -> Result<(), Error> {
    let rows = NewRows {
        documents: &[DocumentRow {
            id: "id",
            sketch: &[1; 8],
            num_features: 1,
            content: NewContent::Text(text),
            ..DocumentRow::default()
        }],
        run,
        ..NewRows::default()
    };
    store.append(&rows, &[]).map(|_| ())
}

fn setting(store: &Store, name: &str) -> String {
    store
        .connection
        .pragma_query_value(None, name, |row| {
            row.get_ref(0).map(|value| match value {
                rusqlite::types::ValueRef::Integer(number) => number.to_string(),
                other => other.as_str().unwrap_or_default().to_owned(),
            })
        })
        .unwrap()
}

fn delete(store: Store) {
    let dir: PathBuf = store.dir().to_owned();
    drop(store);
    fs::remove_dir_all(dir).unwrap();
}

#[test]
fn a_database_that_is_written_again_has_no_byte_of_what_was_deleted() {
    const TEXT: &[u8] = b"a text that leaves";
    let mut store = create("rewrite", Durability::Commit);
    append(&mut store, TEXT).unwrap();
    // Otherwise it would be overwritten at once.
    store
        .connection
        .execute_batch("PRAGMA secure_delete = 0; DELETE FROM contents")
        .unwrap();
    assert!(store.cut_log().unwrap());
    let has_text = |store: &Store| {
        let bytes = fs::read(store.dir().join(database::DATABASE_NAME)).unwrap();
        bytes.windows(TEXT.len()).any(|window| window == TEXT)
    };
    assert!(has_text(&store));
    let reader = store.reader().unwrap();
    reader.hold(0).unwrap();
    assert!(!store.rewrite().unwrap());
    reader.release();
    assert!(store.rewrite().unwrap());
    assert!(!has_text(&store));
    let log = store.dir().join("documents.sqlite-wal");
    assert_eq!(fs::metadata(log).unwrap().len(), 0);
    append(&mut store, b"another").unwrap();
    drop(reader);
    delete(store);
}

#[test]
fn each_commit_waits_for_the_disk_or_none_does() {
    let store = create("commit", Durability::Commit);
    assert_eq!(setting(&store, "synchronous"), "2");
    assert_eq!(setting(&store, "journal_mode"), "wal");
    assert_eq!(setting(&store.reader().unwrap(), "journal_mode"), "wal");
    delete(store);
    let mut store = create("interval", Durability::Interval(Duration::from_millis(200)));
    assert_eq!(setting(&store, "synchronous"), "1");
    let num_syncs = |store: &Store| database::meta(&store.connection, "num_syncs").unwrap();
    store.sync().unwrap();
    assert_eq!(num_syncs(&store), None);
    append(&mut store, b"text").unwrap();
    store.sync().unwrap();
    store.sync().unwrap();
    assert_eq!(num_syncs(&store), Some(1u64.to_le_bytes().to_vec()));
    assert_eq!(setting(&store, "synchronous"), "1");
    delete(store);
}

#[test]
fn a_full_disk_poisons_and_loses_nothing_acknowledged() {
    let mut store = create("full", Durability::Commit);
    append(&mut store, b"first").unwrap();
    store
        .connection
        .pragma_update_and_check(None, "max_page_count", 12, |_| Ok(()))
        .unwrap();
    // Incompressible bytes.
    let mut text = vec![0u8; 100_000];
    let mut state = 1u32;
    for byte in &mut text {
        state = state.wrapping_mul(1664525).wrapping_add(1013904223);
        *byte = (state >> 24) as u8;
    }
    let full = append(&mut store, &text);
    assert!(
        matches!(&full, Err(Error::Io { source, .. }) if source.kind() == std::io::ErrorKind::StorageFull),
        "{full:?}"
    );
    for result in [
        append(&mut store, b"small"),
        store.publish(&[], &[]),
        store.compact_chunks(0, Dropping::NOTHING).map(|_| ()),
        store.sync(),
    ] {
        assert!(matches!(result, Err(Error::Poisoned { .. })), "{result:?}");
    }
    assert!(store.poison().is_some());
    assert_eq!(store.num_rows(), 1);
    assert_eq!(store.content(0).unwrap(), Content::Text(b"first".to_vec()));
    let dir = store.dir().to_owned();
    drop(store);
    let mut store = Store::open(&dir, Durability::Commit).unwrap();
    assert_eq!(store.num_rows(), 1);
    append(&mut store, &text).unwrap();
    assert_eq!(store.content(1).unwrap(), Content::Text(text));
    delete(store);
}

#[test]
fn another_database_is_left_alone() {
    let store = create("other", Durability::Commit);
    let dir = store.dir().to_owned();
    drop(store);
    let open = |version: i32, application: i32| {
        let connection = Connection::open(dir.join(database::DATABASE_NAME)).unwrap();
        connection
            .pragma_update(None, "user_version", version)
            .unwrap();
        connection
            .pragma_update(None, "application_id", application)
            .unwrap();
        drop(connection);
        let opened = Store::open(&dir, Durability::Commit);
        opened.map(|_| ()).unwrap_err().to_string()
    };
    assert!(open(2, 0x4c49_4b57).contains("format 2"));
    assert!(open(1, 7).contains("another application"));
    fs::remove_dir_all(dir).unwrap();
}

fn incompressible(num_bytes: u64) -> Vec<u8> {
    let words = (0..num_bytes / 8).map(|i| xxhash_rust::xxh3::xxh3_64(&i.to_le_bytes()));
    words.flat_map(u64::to_le_bytes).collect()
}

#[test]
fn the_log_comes_into_the_database_beside_the_writer() {
    let mut store = create("log", Durability::Commit);
    let database = store.dir().join(database::DATABASE_NAME);
    let num_bytes = || fs::metadata(&database).unwrap().len();
    let before = num_bytes();
    let text = incompressible(40_000);
    // 16 MB of log, during which SQLite would have checkpointed it four times by default.
    while store.new_log_pages() < 4 * 1000 {
        append(&mut store, &text).unwrap();
    }
    assert_eq!(num_bytes(), before);
    let log = store.source().log().unwrap();
    assert_eq!(log.drain().unwrap(), store.log_pages());
    assert!(num_bytes() > 8 << 20);
    append(&mut store, &text).unwrap();
    store.checkpoint_log().unwrap();
    assert_eq!(store.new_log_pages(), 0);
    append(&mut store, &text).unwrap();
    assert!(store.log_pages() < 100, "it did not begin anew");
    delete(store);
}

#[test]
fn the_log_begins_again_once_its_readers_have_ended() {
    let mut store = create("readers", Durability::Interval(Duration::from_secs(1000)));
    append(&mut store, b"first").unwrap();
    let reader = store.reader().unwrap();
    let (is_open, opened) = std::sync::mpsc::channel();
    let (end, ended) = std::sync::mpsc::channel::<()>();
    std::thread::scope(|scope| {
        scope.spawn(move || {
            let held = reader.read_together(|reader| {
                reader.read_position()?;
                is_open.send(()).unwrap();
                let _ = ended.recv();
                Ok::<_, Error>(())
            });
            held.unwrap();
        });
        opened.recv().unwrap();
        append(&mut store, b"second").unwrap();
        let bring_in = |wait| {
            store
                .watch
                .checkpoint(|| log::bring_in(&store.connection, wait))
                .unwrap()
        };
        let without_wait = bring_in(None);
        assert!(matches!(without_wait, log::Outcome::UpTo(_)));
        scope.spawn(move || {
            std::thread::sleep(Duration::from_millis(20));
            drop(end);
        });
        let wait = Some(Duration::from_secs(1000));
        let waited = bring_in(wait);
        assert_eq!(waited, log::Outcome::Restarted);
    });
    append(&mut store, b"third").unwrap();
    assert!(store.log_pages() < 10, "it did not begin again");
    delete(store);
}

#[test]
fn an_older_change_is_found() {
    let mut store = create(
        "older-change",
        Durability::Interval(Duration::from_secs(10)),
    );
    for text in [b"one", b"two", b"six"] {
        append(&mut store, text).unwrap();
    }
    let removed = |row, promoted| Event::Removed {
        row,
        promoted,
        moved: Vec::new(),
    };
    store
        .append(&NewRows::default(), &[removed(1, vec![2])])
        .unwrap();
    let record: Vec<u8> = store
        .connection
        .query_row("SELECT data FROM changes WHERE row = 2", [], |row| {
            row.get(0)
        })
        .unwrap();
    store
        .append(&NewRows::default(), &[removed(2, Vec::new())])
        .unwrap();
    store.check_changes().unwrap();
    store
        .connection
        .execute("UPDATE changes SET data = ?1 WHERE row = 2", [record])
        .unwrap();
    let found = store.check_changes();
    assert!(matches!(found, Err(Error::Damaged { .. })), "{found:?}");
    delete(store);
}

#[test]
fn an_event_without_its_changes_is_found_at_opening() {
    let mut store = create("torn-event", Durability::Commit);
    for text in [b"one", b"two"] {
        append(&mut store, text).unwrap();
    }
    let tally = |store: &Store| store.needed(database::CHANGES_TALLY).unwrap();
    let before = tally(&store);
    let removed = Event::Removed {
        row: 1,
        promoted: Vec::new(),
        moved: Vec::new(),
    };
    store.append(&NewRows::default(), &[removed]).unwrap();
    let dir = store.dir().to_owned();
    // As if only the page of the event had reached the database.
    database::set_meta(&store.connection, database::CHANGES_TALLY, &before).unwrap();
    store.connection.execute("DELETE FROM changes", []).unwrap();
    drop(store);
    for found in [
        Store::open(&dir, Durability::Commit),
        Store::open_reader(&dir),
    ] {
        assert!(matches!(found, Err(Error::Damaged { .. })), "{found:?}");
    }
    std::fs::remove_dir_all(dir).unwrap();
}

#[test]
fn a_log_that_nobody_brings_in_stays_bounded() {
    let mut store = create("long-log", Durability::Interval(Duration::from_secs(1000)));
    let text = incompressible(2_000_000);
    let mut most = 0;
    for _ in 0..40 {
        append(&mut store, &text).unwrap();
        most = most.max(store.log_pages());
    }
    assert!(
        (log::MOST_PAGES / 2..log::MOST_PAGES + 1000).contains(&most),
        "{most}"
    );
    delete(store);
}

#[test]
fn what_is_brought_in_while_it_is_written_is_whole() {
    let mut store = create("both", Durability::Interval(Duration::from_secs(1000)));
    let source = store.source();
    let is_done = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        let drains = scope.spawn(|| {
            let log = source.log().unwrap();
            let mut most = 0;
            // One final check, in case a busy machine did not schedule it before.
            loop {
                let was_done = is_done.load(std::sync::atomic::Ordering::Relaxed);
                most = most.max(log.drain().unwrap());
                if was_done {
                    break most;
                }
            }
        });
        for number in 0..3000u32 {
            append(&mut store, &number.to_le_bytes().repeat(200)).unwrap();
            if number % 500 == 0 {
                store.checkpoint_log().unwrap();
            }
        }
        is_done.store(true, std::sync::atomic::Ordering::Relaxed);
        assert!(drains.join().unwrap() > 0);
    });
    let reader = store.reader().unwrap();
    assert_eq!(reader.num_rows(), 3000);
    let never = std::sync::atomic::AtomicBool::new(false);
    assert_eq!(reader.check(true, &never).unwrap(), Vec::<String>::new());
    drop(reader);
    delete(store);
}

#[test]
fn a_lost_change_is_found_by_whoever_begins_at_the_first_row() {
    let mut store = create("lost-change", Durability::Interval(Duration::from_secs(10)));
    for text in [b"one", b"two", b"six"] {
        append(&mut store, text).unwrap();
    }
    let removed = |row| Event::Removed {
        row,
        promoted: Vec::new(),
        moved: Vec::new(),
    };
    store
        .append(&NewRows::default(), &[removed(1), removed(2)])
        .unwrap();
    assert_eq!(store.scan(0..1, |_| Ok(())).unwrap().last_event, 2);
    store
        .connection
        .execute("DELETE FROM changes WHERE row = 2", [])
        .unwrap();
    // Parts of all rows, as a large build reads them: the lost change is in another part.
    let found = store.scan(0..1, |_| Ok(()));
    assert!(matches!(found, Err(Error::Damaged { .. })), "{found:?}");
    delete(store);
}

/// Appends one row of a run.
fn append_of(store: &mut Store, number: u64) {
    let mut identity = [0; 16];
    identity[..8].copy_from_slice(&number.to_le_bytes());
    let run = AddingRun {
        identity,
        first_row: store.num_rows(),
    };
    append_in(store, b"text", Some(run)).unwrap();
}

#[test]
fn runs_are_remembered_with_what_they_found_until_their_rows_expire() {
    let mut store = create("runs", Durability::Interval(Duration::ZERO));
    let first_row = |store: &Store, number: u64| {
        let mut identity = [0; 16];
        identity[..8].copy_from_slice(&number.to_le_bytes());
        store.first_row_of_run(identity).unwrap()
    };
    append(&mut store, b"of nobody").unwrap();
    assert_eq!(first_row(&store, 7), None);
    append_of(&mut store, 7);
    append_of(&mut store, 8);
    // Further rows of a run do not change what it was compared with.
    append_of(&mut store, 7);
    assert_eq!(
        (first_row(&store, 7), first_row(&store, 8)),
        (Some(1), Some(2))
    );
    let reader = store.reader().unwrap();
    assert_eq!(first_row(&reader, 7), Some(1));
    // An empty batch belongs to no run, and neither does a batch that was not committed.
    store.append(&NewRows::default(), &[]).unwrap();
    store.expire(3, &[]).unwrap();
    assert_eq!(
        (first_row(&store, 7), first_row(&store, 8)),
        (Some(1), None)
    );
    let dir = store.dir().to_owned();
    drop((store, reader));
    let mut store = Store::open(&dir, Durability::Interval(Duration::ZERO)).unwrap();
    assert_eq!(
        (first_row(&store, 7), first_row(&store, 8)),
        (Some(1), None)
    );
    // The newest thousand runs.
    for number in 100..1100 {
        append_of(&mut store, number);
    }
    assert_eq!(first_row(&store, 7), None);
    assert_eq!(
        (first_row(&store, 100), first_row(&store, 1099)),
        (Some(4), Some(1003))
    );
    delete(store);
}

#[test]
fn a_commit_while_a_reader_takes_its_position_is_no_damage() {
    let mut store = create("beside", Durability::Interval(Duration::from_secs(1000)));
    for _ in 0..400 {
        append(&mut store, b"text").unwrap();
    }
    let reader = store.reader().unwrap();
    std::thread::scope(|scope| {
        let looking = scope.spawn(move || {
            let mut position = reader.read_position().unwrap();
            while position.last_event < 400 {
                position = reader.read_position().unwrap();
            }
        });
        for row in 0..400 {
            let removed = Event::Removed {
                row,
                promoted: Vec::new(),
                moved: Vec::new(),
            };
            store.append(&NewRows::default(), &[removed]).unwrap();
        }
        looking.join().unwrap();
    });
    delete(store);
}
