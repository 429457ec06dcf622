//! A segment with any bytes changed: the right answer or an error.
#![no_main]

use std::fs;
use std::path::PathBuf;
use std::sync::OnceLock;

use libfuzzer_sys::fuzz_target;
use likewise_disk::environment::PlainFiles;
use likewise_disk::store::LiveSegment;

#[allow(dead_code)]
#[path = "../../crates/disk/tests/segments/model.rs"]
mod model;

struct Built {
    dir: PathBuf,
    live: LiveSegment,
    model: model::Model,
    /// Name and content of each file.
    files: Vec<(String, Vec<u8>)>,
}

fn built() -> &'static [Built] {
    static BUILT: OnceLock<Vec<Built>> = OnceLock::new();
    BUILT.get_or_init(|| {
        [model::SIGNATURES, model::FINGERPRINTS]
            .into_iter()
            .map(|plan| {
                let folder = model::Folder::new();
                let dir = folder.segments();
                let model = model::Model::new(plan, 40);
                let live = model.build(&dir, &PlainFiles, 3..40, 0).expect("build");
                let files = folder
                    .names()
                    .into_iter()
                    .map(|name| (name.clone(), fs::read(dir.join(name)).expect("read")))
                    .collect();
                // Left to the end of the process: the directory is used until then.
                std::mem::forget(folder);
                Built {
                    dir,
                    live,
                    model,
                    files,
                }
            })
            .collect()
    })
}

// Which segment, which file, then changes of four bytes: place (two), new value, and whether the file ends there.
fuzz_target!(|data: &[u8]| {
    let [which, file, changes @ ..] = data else {
        return;
    };
    let built = &built()[usize::from(*which) % built().len()];
    let (name, whole) = &built.files[usize::from(*file) % built.files.len()];
    let mut bytes = whole.clone();
    for change in changes.chunks_exact(4).take(16) {
        let place = usize::from(u16::from_le_bytes([change[0], change[1]])) * whole.len() / 65536;
        if place >= bytes.len() {
            continue;
        }
        bytes[place] = change[2];
        if change[3] == 0 {
            bytes.truncate(place);
        }
    }
    let path = built.dir.join(name);
    // Never written in place: the one before may still be mapped.
    fs::remove_file(&path).expect("remove");
    fs::write(&path, &bytes).expect("write");
    for verify in [false, true] {
        let _ = model::open(&built.dir, &built.live, verify)
            .and_then(|segment| built.model.ask(&segment));
    }
    fs::remove_file(&path).expect("remove");
    fs::write(&path, whole).expect("write");
});
