//! Files that fail on demand, and lose what was not synced at a power loss.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::{self, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use likewise_disk::environment::{
    Entry, Facts, FileLock, Files, OpenFile, PlainFiles, SegmentFile,
};

/// How an operation fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// The device: EIO.
    Device,
    /// The disk is full: ENOSPC.
    Full,
    /// Half is written, then the disk is full.
    Short,
}

impl Fault {
    fn error(self) -> io::Error {
        io::Error::from_raw_os_error(match self {
            Fault::Device => 5,
            Fault::Full | Fault::Short => 28,
        })
    }
}

/// What survives a power loss in addition to what was synced.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Luck {
    /// Nothing.
    None,
    /// Names, but no unsynced bytes of files.
    Names,
    /// Names, and unsynced bytes of files as zeros.
    Zeros,
    /// Everything.
    All,
}

#[derive(Debug, Default)]
struct State {
    /// Operations so far, by name.
    log: Vec<String>,
    /// The operation that fails, and whether all later ones fail too.
    fault: Option<(usize, Fault, bool)>,
    /// Files with unsynced bytes.
    dirty: BTreeSet<PathBuf>,
    /// Names at the last sync of their directory, and the contents of each file.
    durable: BTreeMap<PathBuf, Vec<u8>>,
}

/// The system's files, with a record of all operations.
#[derive(Debug, Clone, Default)]
pub struct FaultyFiles(Arc<Mutex<State>>);

impl FaultyFiles {
    /// Makes operation number `at`, from 0, fail; with `for_ever`, all later ones too.
    pub fn failing(at: usize, fault: Fault, for_ever: bool) -> Self {
        let files = FaultyFiles::default();
        files.0.lock().unwrap().fault = Some((at, fault, for_ever));
        files
    }

    /// Operations so far.
    pub fn log(&self) -> Vec<String> {
        self.0.lock().unwrap().log.clone()
    }

    fn count(&self, operation: String) -> Result<(), Fault> {
        let mut state = self.0.lock().unwrap();
        let number = state.log.len();
        state.log.push(operation);
        match state.fault {
            Some((at, fault, for_ever)) if number == at || for_ever && number > at => Err(fault),
            _ => Ok(()),
        }
    }

    /// Same as [`lose_power`](Self::lose_power), including what another layer made durable before.
    pub fn lose_power_after(&self, before: &FaultyFiles, dir: &Path, luck: Luck) {
        let durable = before.0.lock().unwrap().durable.clone();
        let mut state = self.0.lock().unwrap();
        if state.durable.is_empty() {
            state.durable = durable;
        }
        drop(state);
        self.lose_power(dir, luck);
    }

    /// Reduces a directory to what a power loss leaves of it.
    pub fn lose_power(&self, dir: &Path, luck: Luck) {
        let state = self.0.lock().unwrap();
        let now: Vec<PathBuf> = match fs::read_dir(dir) {
            Ok(entries) => entries.map(|entry| entry.unwrap().path()).collect(),
            Err(_) => return,
        };
        for path in &now {
            if luck == Luck::All {
                continue;
            }
            if luck == Luck::None && !state.durable.contains_key(path) {
                fs::remove_file(path).unwrap();
            } else if state.dirty.contains(path) {
                let len = fs::metadata(path).unwrap().len() as usize;
                let bytes = match luck {
                    Luck::Zeros => vec![0; len],
                    _ => Vec::new(),
                };
                fs::remove_file(path).unwrap();
                fs::write(path, bytes).unwrap();
            }
        }
        if luck == Luck::None {
            // Names that were removed or reused are restored.
            for (path, bytes) in &state.durable {
                if !path.exists() {
                    fs::write(path, bytes).unwrap();
                }
            }
        }
    }
}

/// Returns the name that tests compare: without the random part.
fn name_of(path: &Path) -> String {
    let name = path.file_name().unwrap().to_string_lossy();
    let hidden = if name.starts_with('.') { "." } else { "" };
    let ending: Vec<&str> = name.trim_start_matches('.').split('.').skip(1).collect();
    match ending.is_empty() {
        true => name.into_owned(),
        false => format!("{hidden}*.{}", ending.join(".")),
    }
}

struct FaultyFile {
    inner: Box<dyn SegmentFile>,
    path: PathBuf,
    files: FaultyFiles,
}

impl Write for FaultyFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let operation = format!("write {}", name_of(&self.path));
        self.files.0.lock().unwrap().dirty.insert(self.path.clone());
        match self.files.count(operation) {
            Ok(()) => self.inner.write_all(bytes).map(|()| bytes.len()),
            Err(fault) => {
                if fault == Fault::Short {
                    self.inner.write_all(&bytes[..bytes.len() / 2])?;
                }
                Err(fault.error())
            }
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        self.inner.flush()
    }
}

impl Seek for FaultyFile {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        self.inner.seek(to)
    }
}

impl SegmentFile for FaultyFile {
    fn sync(&mut self) -> io::Result<()> {
        self.files
            .count(format!("sync {}", name_of(&self.path)))
            .map_err(Fault::error)?;
        self.files.0.lock().unwrap().dirty.remove(&self.path);
        Ok(())
    }
}

impl Files for FaultyFiles {
    fn create_dir(&self, path: &Path) -> io::Result<()> {
        self.count(format!("create_dir {}", name_of(path)))
            .map_err(Fault::error)?;
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

    fn list(&self, path: &Path) -> io::Result<Vec<Entry>> {
        PlainFiles.list(path)
    }

    fn open(&self, path: &Path) -> io::Result<Box<dyn OpenFile>> {
        PlainFiles.open(path)
    }

    fn open_to_write(&self, path: &Path) -> io::Result<Box<dyn OpenFile>> {
        PlainFiles.open_to_write(path)
    }

    fn sync(&self, path: &Path) -> io::Result<()> {
        PlainFiles.sync(path)
    }

    fn try_lock(&self, path: &Path) -> io::Result<Option<Box<dyn FileLock>>> {
        PlainFiles.try_lock(path)
    }

    fn name_number(&self) -> u64 {
        PlainFiles.name_number()
    }

    fn create(&self, path: &Path) -> io::Result<Box<dyn SegmentFile>> {
        self.count(format!("create {}", name_of(path)))
            .map_err(Fault::error)?;
        Ok(Box::new(FaultyFile {
            inner: PlainFiles.create(path)?,
            path: path.to_owned(),
            files: self.clone(),
        }))
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.count(format!("rename {} {}", name_of(from), name_of(to)))
            .map_err(Fault::error)?;
        PlainFiles.rename(from, to)?;
        let mut state = self.0.lock().unwrap();
        if state.dirty.remove(from) {
            state.dirty.insert(to.to_owned());
        }
        Ok(())
    }

    fn unlink(&self, path: &Path) -> io::Result<()> {
        self.count(format!("unlink {}", name_of(path)))
            .map_err(Fault::error)?;
        PlainFiles.unlink(path)
    }

    fn sync_dir(&self, path: &Path) -> io::Result<()> {
        self.count(format!("sync_dir {}", name_of(path)))
            .map_err(Fault::error)?;
        let mut state = self.0.lock().unwrap();
        state.durable.retain(|name, _| name.parent() != Some(path));
        for entry in fs::read_dir(path)? {
            let path = entry?.path();
            if path.is_file() {
                let bytes = fs::read(&path)?;
                state.durable.insert(path, bytes);
            }
        }
        Ok(())
    }
}
