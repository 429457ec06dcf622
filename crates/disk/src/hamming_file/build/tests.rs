//! A file built with little memory must equal the file that a set in memory is saved as.

use std::fs::{File, OpenOptions};
use std::path::PathBuf;
use std::sync::atomic::AtomicBool;

use likewise_core::hash::mix64;
use likewise_hamming::Fingerprints;
use likewise_hamming::index::{Building, HammingSet};
use likewise_hamming::plan::Key;

use super::*;
use crate::hamming_file::write_hamming_set;

static STOP: AtomicBool = AtomicBool::new(false);

fn folder(name: &str) -> PathBuf {
    let folder = std::env::temp_dir().join(format!("likewise-build-{}-{name}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    folder
}

/// Every third code is one of a few, so that there are groups of rows; skewed codes share their first bits.
fn codes(len: u64, num_words: u64, is_skewed: bool) -> Vec<u64> {
    let code = |row: u64, word: u64| {
        let row = if row.is_multiple_of(3) { row % 50 } else { row };
        let code = mix64(row * 8 + word);
        if is_skewed {
            code & 0x0000_ffff_ff00_01ff
        } else {
            code
        }
    };
    (0..len * num_words)
        .map(|i| code(i / num_words, i % num_words))
        .collect()
}

fn key(low: u32, high: u32, radius: u32) -> Key {
    Key::of_bits(low..high, radius)
}

struct Case {
    bits: u32,
    keys: Vec<Key>,
    words: Vec<u64>,
    empty_rows: Vec<u32>,
    with_rows: bool,
}

impl Case {
    fn num_words(&self) -> usize {
        self.bits.div_ceil(64) as usize
    }

    fn plan(&self) -> SearchPlan {
        SearchPlan::new(self.bits, 1, self.keys.clone()).unwrap()
    }

    /// Returns the file that a set in memory is saved as.
    fn expected(&self, folder: &Path) -> Vec<u8> {
        let num_words = self.num_words();
        let len = (self.words.len() / num_words) as u32;
        let rows: Vec<u32> = (0..len)
            .filter(|row| !self.empty_rows.contains(row))
            .collect();
        let words: Vec<u64> = rows
            .iter()
            .flat_map(|&row| &self.words[row as usize * num_words..][..num_words])
            .copied()
            .collect();
        let building = Building {
            isa: Isa::Plain,
            run: Run::alone(&STOP),
            memory_bytes: 1 << 30,
            with_rows: self.with_rows,
        };
        let fingerprints = Fingerprints::new(&words, self.bits);
        let rows = (!self.empty_rows.is_empty()).then_some(rows.as_slice());
        let set = HammingSet::build(fingerprints, rows, self.plan(), building).unwrap();
        let path = folder.join("expected");
        write_hamming_set(&set, &path, Some(b"some ids"), "some text", &STOP).unwrap();
        std::fs::read(path).unwrap()
    }

    fn build(
        &self,
        source: &FlatFingerprints,
        path: &Path,
        memory_bytes: usize,
        (threads, isa): (usize, Isa),
    ) -> Result<u64, Error> {
        let build = HammingBuild {
            source,
            plan: self.plan(),
            with_rows: self.with_rows,
            ids: Some(b"some ids"),
            extra: "some text",
            memory_bytes,
            run: Run {
                threads,
                cancel: &STOP,
            },
            isa,
        };
        let mut last = (0, 0);
        build.write(path, &mut |done, total| last = (done, total))?;
        assert!(last.0 <= last.1);
        let (about, _) = build.num_bytes();
        assert!(std::fs::metadata(path).unwrap().len() <= about + (1 << 16));
        Ok(last.0 / source.len.max(1) as u64)
    }

    /// Also checks that with little memory the fingerprints are read at least this many times.
    fn check(&self, name: &str, least_passes: u64) {
        let folder = folder(name);
        let expected = self.expected(&folder);
        let flat = folder.join("flat");
        let bytes = self.words.iter().flat_map(|word| word.to_le_bytes());
        std::fs::write(
            &flat,
            b"12345678"
                .iter()
                .copied()
                .chain(bytes)
                .collect::<Vec<u8>>(),
        )
        .unwrap();
        let len = self.words.len() / self.num_words();
        let source = FlatFingerprints::new(
            File::open(&flat).unwrap(),
            8,
            len as u64,
            self.bits,
            self.empty_rows.clone(),
        )
        .unwrap();
        let path = folder.join("built");
        let mut most_passes = 0;
        for (threads, isa) in [(1, Isa::Plain), (3, Isa::best())] {
            // The error for each table states how much memory it needs.
            let mut needed: usize = 1;
            while let Err(error) = self.build(&source, &path, needed, (threads, isa)) {
                let error = error.to_string();
                let number = error.trim_end_matches(" are needed").rsplit(' ').next();
                needed = number
                    .and_then(|number| number.parse().ok())
                    .unwrap_or_else(|| panic!("{error}"));
            }
            let entry_bytes = 8 * (self.num_words() + usize::from(self.with_rows));
            for memory_bytes in [needed, needed + len / 5 * entry_bytes, 1 << 30] {
                if memory_bytes == needed && len > 5000 {
                    continue;
                }
                let passes = self
                    .build(&source, &path, memory_bytes, (threads, isa))
                    .unwrap();
                most_passes = most_passes.max(passes);
                assert!(
                    std::fs::read(&path).unwrap() == expected,
                    "{name} {memory_bytes}"
                );
            }
        }
        assert!(most_passes >= least_passes, "{most_passes}");
        let mut left: Vec<_> = std::fs::read_dir(&folder)
            .unwrap()
            .map(|file| file.unwrap().file_name())
            .collect();
        left.sort();
        assert_eq!(left, ["built", "expected", "flat"]);
        std::fs::remove_dir_all(folder).unwrap();
    }
}

#[test]
fn codes_of_one_word() {
    for (number, with_rows) in [true, false].into_iter().enumerate() {
        for (other, is_skewed) in [true, false].into_iter().enumerate() {
            let case = Case {
                bits: 64,
                keys: vec![key(0, 30, 0), key(30, 64, 0)],
                words: codes(20_000, 1, is_skewed),
                empty_rows: Vec::new(),
                with_rows,
            };
            // Skewed codes fill few cells, which need the memory of nearly all codes.
            let least_passes = if is_skewed { 4 } else { 6 };
            case.check(&format!("one-{number}{other}"), least_passes);
        }
    }
}

#[test]
fn codes_of_several_words_and_empty_texts() {
    for (bits, empty_rows) in [
        (128, vec![]),
        (192, vec![0, 1, 5, 7, 2997, 2999]),
        (256, vec![2998, 2999]),
    ] {
        let case = Case {
            bits,
            keys: vec![key(0, 70, 1)],
            words: codes(3000, u64::from(bits) / 64, true),
            empty_rows,
            with_rows: true,
        };
        case.check(&format!("several-{bits}"), 3);
    }
}

#[test]
fn few_codes() {
    for (len, empty_rows) in [(0, vec![]), (1, vec![]), (2, vec![0, 1]), (5, vec![4])] {
        let case = Case {
            bits: 32,
            keys: vec![key(0, 16, 0), key(16, 32, 0)],
            words: codes(len, 1, false).iter().map(|code| code >> 32).collect(),
            empty_rows,
            with_rows: true,
        };
        case.check(&format!("few-{len}"), 0);
    }
}

#[test]
fn what_cannot_be_built_is_refused() {
    let folder = folder("refused");
    let flat = folder.join("flat");
    std::fs::write(&flat, vec![0xff; 800]).unwrap();
    let open = |len, bits, empty| {
        FlatFingerprints::for_index(File::open(&flat).unwrap(), 0, len, bits, empty)
    };
    assert!(
        open(1 << 32, 64, vec![])
            .unwrap_err()
            .to_string()
            .contains("holds at most 4294967294")
    );
    assert!(matches!(open(101, 64, vec![]), Err(Error::Changed { .. })));
    assert!(open(100, 64, vec![3, 3]).is_err());
    assert!(open(100, 33, vec![]).is_err());
    let case = Case {
        bits: 32,
        keys: vec![key(0, 16, 0), key(16, 32, 0)],
        words: Vec::new(),
        empty_rows: Vec::new(),
        with_rows: true,
    };
    let wide = case.build(
        &open(100, 32, vec![]).unwrap(),
        &folder.join("built"),
        1 << 30,
        (1, Isa::Plain),
    );
    assert!(wide.unwrap_err().to_string().contains("beyond the 32"));
    assert_eq!(std::fs::read_dir(&folder).unwrap().count(), 1);
    std::fs::remove_dir_all(folder).unwrap();
}

/// The size and time of the source do not change either: only the checksum detects changes that keep the counted bits.
#[test]
fn a_source_that_changes_between_passes_is_refused() {
    use std::os::unix::fs::FileExt;
    let folder = folder("changed");
    let flat = folder.join("flat");
    let words = codes(30_000, 1, false);
    let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
    let case = Case {
        bits: 64,
        keys: vec![key(0, 30, 0), key(30, 64, 0)],
        words,
        empty_rows: Vec::new(),
        with_rows: true,
    };
    for change_at in 1..=5 {
        for is_dated in [false, true] {
            std::fs::write(&flat, &bytes).unwrap();
            let file = OpenOptions::new().write(true).open(&flat).unwrap();
            let written = file.metadata().unwrap().modified().unwrap();
            let opened = File::open(&flat).unwrap();
            let source = FlatFingerprints::new(opened, 0, 30_000, 64, Vec::new()).unwrap();
            let build = HammingBuild {
                source: &source,
                plan: case.plan(),
                with_rows: true,
                ids: None,
                extra: "",
                memory_bytes: 1 << 30,
                run: Run {
                    threads: 2,
                    cancel: &STOP,
                },
                isa: Isa::Plain,
            };
            let mut num_steps = 0;
            let built = build.write(&folder.join("built"), &mut |_, _| {
                num_steps += 1;
                if num_steps == change_at {
                    // The row with changed words keeps its first bits under both keys.
                    file.write_all_at(&[bytes[8003] ^ 4], 8003).unwrap();
                    let time = if is_dated {
                        written + std::time::Duration::from_secs(9)
                    } else {
                        written
                    };
                    file.set_modified(time).unwrap();
                }
            });
            match (num_steps < change_at, is_dated || change_at < 4) {
                // Nothing was changed, or only after the last pass and without a trace.
                (true, _) | (false, false) => built.unwrap(),
                (false, true) => assert!(
                    matches!(built, Err(Error::Changed { .. })),
                    "{change_at} {is_dated}"
                ),
            }
        }
    }
    std::fs::remove_dir_all(folder).unwrap();
}

#[test]
fn a_source_that_was_replaced_is_refused() {
    let folder = folder("replaced");
    let flat = folder.join("flat");
    std::fs::write(&flat, vec![1; 800]).unwrap();
    let source = FlatFingerprints::new(File::open(&flat).unwrap(), 0, 100, 64, Vec::new()).unwrap();
    let source = source.named(flat.clone());
    let written = std::fs::metadata(&flat).unwrap().modified().unwrap();
    let other = File::create(folder.join("other")).unwrap();
    other.set_len(800).unwrap();
    other.set_modified(written).unwrap();
    source.check_unchanged().unwrap();
    std::fs::rename(folder.join("other"), &flat).unwrap();
    assert!(matches!(
        source.check_unchanged(),
        Err(Error::Changed { .. })
    ));
    std::fs::remove_dir_all(folder).unwrap();
}
