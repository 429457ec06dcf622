//! Segments that were replaced meanwhile: they are no damage of a reader that opens the index, and no error of a query.

use likewise_core::parallel::Run;
use std::cell::Cell;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex};
use std::{fmt, io};

use crate::error::Error;
use crate::{Documents, Index, Matching, Method, Opening, Rules, Sketching, TextKind};
use likewise_core::features::{Extractor, FeatureHash, FeatureRules, Weights};
use likewise_core::isa::Isa;
use likewise_core::text::Tokens;
use likewise_disk::environment::{
    Entry, Environment, Facts, FileLock, Files, OpenFile, PlainFiles, SegmentFile, Stamp,
};
use likewise_disk::store::{Description, Durability, Keeps};

const NUM_ROWS: u32 = 200;
static GO_ON: AtomicBool = AtomicBool::new(false);

type Deed = Box<dyn FnOnce() + Send>;

/// The files of the system; something happens before the first file of a segment is opened.
#[derive(Clone)]
struct Interrupted(Arc<Mutex<Option<Deed>>>);

impl fmt::Debug for Interrupted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Interrupted")
    }
}

impl Files for Interrupted {
    fn open(&self, path: &Path) -> io::Result<Box<dyn OpenFile>> {
        if path.extension().is_some_and(|ending| ending == "lws") {
            let deed = self.0.lock().unwrap().take();
            if let Some(deed) = deed {
                deed();
            }
        }
        PlainFiles.open(path)
    }

    fn create_dir(&self, path: &Path) -> io::Result<()> {
        PlainFiles.create_dir(path)
    }

    fn create_dir_all(&self, path: &Path) -> io::Result<()> {
        PlainFiles.create_dir_all(path)
    }

    fn canonicalize(&self, path: &Path) -> io::Result<PathBuf> {
        PlainFiles.canonicalize(path)
    }

    fn mounts(&self) -> String {
        PlainFiles.mounts()
    }

    fn facts(&self, path: &Path) -> io::Result<Facts> {
        PlainFiles.facts(path)
    }

    fn stamp(&self, path: &Path) -> io::Result<Stamp> {
        PlainFiles.stamp(path)
    }

    fn list(&self, path: &Path) -> io::Result<Vec<Entry>> {
        PlainFiles.list(path)
    }

    fn create(&self, path: &Path) -> io::Result<Box<dyn SegmentFile>> {
        PlainFiles.create(path)
    }

    fn open_to_write(&self, path: &Path) -> io::Result<Box<dyn OpenFile>> {
        PlainFiles.open_to_write(path)
    }

    fn sync(&self, path: &Path) -> io::Result<()> {
        PlainFiles.sync(path)
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        PlainFiles.rename(from, to)
    }

    fn unlink(&self, path: &Path) -> io::Result<()> {
        PlainFiles.unlink(path)
    }

    fn sync_dir(&self, path: &Path) -> io::Result<()> {
        PlainFiles.sync_dir(path)
    }

    fn try_lock(&self, path: &Path) -> io::Result<Option<Box<dyn FileLock>>> {
        PlainFiles.try_lock(path)
    }

    fn name_number(&self) -> u64 {
        PlainFiles.name_number()
    }
}

fn opening(environment: Environment) -> Opening {
    let features = FeatureRules {
        tokens: Tokens::Word,
        shingle: 3,
        weights: Weights::None,
        seed: 0,
        hash: FeatureHash::Xxh3,
    };
    let rules = Rules {
        method: Method::Simhash {
            bits: 64,
            within: 3,
        },
        matching: Matching::Distance {
            short_threshold: 0.8,
        },
        seed: 0,
        keeps: Keeps::Sketch,
    };
    Opening {
        sketching: Sketching {
            rules,
            make_extractor: Arc::new(move |isa: Isa| Extractor::new(features, isa)),
            text_kind: TextKind::Text,
            isa: Isa::best(),
        },
        durability: Durability::Commit,
        ttl_s: None,
        is_renewed: false,
        // Nothing is built in the background.
        flush_rows: Some(u32::MAX),
        accept_loss: false,
        accept_clock: false,
        environment,
    }
}

fn add(index: &Index, rows: std::ops::Range<u32>) {
    let num = rows.len();
    let print = |row: u32| u64::from(row).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let sketches = rows.clone().flat_map(|row| print(row).to_le_bytes());
    let documents = Documents::of_sketches(sketches.collect(), vec![0; num], vec![100; num]);
    let names: Vec<String> = rows.map(|row| format!("d{row}")).collect();
    let ids: Vec<&str> = names.iter().map(String::as_str).collect();
    let added = index.add(&ids, &documents, None, None, 0, Run::alone(&GO_ON));
    added.unwrap();
}

fn created(name: &str) -> (PathBuf, Index) {
    let folder = std::env::temp_dir().join(format!("likewise-{name}-{}", std::process::id()));
    let description = Description {
        recipe_json: "{}".to_owned(),
        recipe_id: name.to_owned(),
        sketch_id: name.to_owned(),
        sketch_bytes: 8,
        keeps: Keeps::Sketch,
        attached: BTreeMap::new(),
    };
    let index = Index::create(&folder, &description, opening(Environment::default()));
    (folder, index.unwrap())
}

#[test]
fn a_segment_that_was_replaced_while_a_reader_opened_it_is_not_taken_for_damaged() {
    let (folder, writer) = created("overtaken");
    let writer = Arc::new(writer);
    add(&writer, 0..NUM_ROWS);
    writer.rebuild(Run::alone(&GO_ON)).unwrap();
    let replacing = writer.clone();
    let deed: Deed = Box::new(move || {
        add(&replacing, NUM_ROWS..2 * NUM_ROWS);
        replacing.rebuild(Run::alone(&GO_ON)).unwrap();
    });
    let files = Interrupted(Arc::new(Mutex::new(Some(deed))));
    let environment = Environment {
        files: Arc::new(files.clone()),
        ..Environment::default()
    };
    let reader = Index::open_reader(&folder, opening(environment), &GO_ON).unwrap();
    assert!(
        files.0.lock().unwrap().is_none(),
        "the segment was replaced"
    );
    let facts = reader.facts().unwrap();
    assert_eq!(facts.num_rebuilt, 0);
    assert_eq!(facts.segment_rows, [2 * NUM_ROWS]);
    drop(reader);
    drop(writer);
    std::fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn damage_of_a_segment_that_was_replaced_meanwhile_is_no_error() {
    let (folder, index) = created("repair");
    add(&index, 0..1);
    index.shared.freeze(&mut index.shared.state_mut()).unwrap();
    let num_tries = Cell::new(0);
    let result = index.repairing(|| {
        num_tries.set(num_tries.get() + 1);
        if num_tries.get() > 1 {
            return Ok(());
        }
        // Damage is found, and before it can be handled, another segment takes the place of the damaged one.
        index.shared.build(0..1, Run::alone(&GO_ON))?;
        Err(Error::Damaged)
    });
    result.unwrap();
    assert_eq!(num_tries.get(), 2);
    drop(index);
    std::fs::remove_dir_all(&folder).unwrap();
}
