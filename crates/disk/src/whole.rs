//! How does a file get its name only when it is complete?
//!
//! It is created under a unique name, `.NAME.PID-NUMBER.unfinished`, and locked while its writer lives. So writers of
//! one target, whether processes or threads, never share a file, and a leftover of a killed writer can be recognized
//! because it is not locked.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use xxhash_rust::xxh3::xxh3_64;

use crate::error::{Doing, Error, Result};

/// Bytes of a target's name in temporary names, which have at most 255, and spools add to theirs.
const MAX_STEM_BYTES: usize = 150;
const SUFFIX: &str = ".unfinished";
const MAX_LINKS: usize = 40;
const MAX_NAMES: usize = 100;

/// Calls `write` to fill and sync a new file next to `path`, or to the target of a link there, then renames it and
/// syncs the directory. Leftovers of dead writers are deleted; after an error, no file remains.
pub(crate) fn write_whole(
    path: &Path,
    write: impl FnOnce(&File, &Path) -> Result<()>,
) -> Result<()> {
    let target = target_of(path)?;
    if fs::metadata(&target).is_ok_and(|found| !found.is_file()) {
        return Err(Error::NotRegular);
    }
    delete_left(&target);
    let (file, temporary) = create(&target).doing("create")?;
    let result = write(&file, &temporary)
        .and_then(|()| fs::rename(&temporary, &target).doing("rename"))
        .and_then(|()| sync_directory(&target));
    if result.is_err() {
        // The first error is more informative than an error of the cleanup.
        let _ = fs::remove_file(&temporary);
    }
    result
}

/// Returns the path itself, or the target of the link there.
fn target_of(path: &Path) -> Result<PathBuf> {
    let mut target = path.to_owned();
    for _ in 0..MAX_LINKS {
        match fs::read_link(&target) {
            Ok(named) => target = target.parent().unwrap_or(Path::new("")).join(named),
            Err(_) => return Ok(target),
        }
    }
    Err(Error::NotRegular)
}

/// Creates a file and takes its lock.
fn create(target: &Path) -> io::Result<(File, PathBuf)> {
    static NUMBER: AtomicU32 = AtomicU32::new(0);
    let mut refused = io::ErrorKind::AlreadyExists.into();
    for _ in 0..MAX_NAMES {
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        // Processes of different machines or containers may have the same number.
        let time = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .map_or(0, |time| time.subsec_nanos());
        let process = std::process::id();
        let name = format!("{}{process}-{number:x}{time:08x}{SUFFIX}", prefix(target));
        let temporary = target.with_file_name(name);
        let made = OpenOptions::new()
            .read(true)
            .write(true)
            .create_new(true)
            .open(&temporary);
        let file = match made {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                refused = error;
                continue;
            }
            Err(error) => return Err(error),
        };
        // On systems without locks, nothing is ever deleted as a leftover.
        let _ = file.lock();
        // Otherwise another writer took it for a leftover before it was locked. Names are never reused.
        if temporary.exists() {
            return Ok((file, temporary));
        }
    }
    Err(refused)
}

/// Prefix of the names of a target's temporary files.
fn prefix(target: &Path) -> String {
    let name = target.file_name().unwrap_or_default().to_string_lossy();
    if name.len() <= MAX_STEM_BYTES {
        return format!(".{name}.");
    }
    let end = name.floor_char_boundary(MAX_STEM_BYTES - 17);
    format!(".{}~{:016x}.", &name[..end], xxh3_64(name.as_bytes()))
}

/// Deletes temporary files of the target whose writers are dead; those that cannot be checked or deleted remain.
fn delete_left(target: &Path) {
    let prefix = prefix(target);
    let is_temporary = |name: &str| {
        let number = name.strip_prefix(&prefix)?.strip_suffix(SUFFIX)?;
        let (process, number) = number.split_once('-')?;
        let is_ours = !process.is_empty()
            && process.bytes().all(|byte| byte.is_ascii_digit())
            && number.len() > 8
            && number.bytes().all(|byte| byte.is_ascii_hexdigit());
        is_ours.then_some(())
    };
    let Ok(entries) = fs::read_dir(directory_of(target)) else {
        return;
    };
    for entry in entries.flatten() {
        let is_file = entry.file_type().is_ok_and(|kind| kind.is_file());
        if !is_file || is_temporary(&entry.file_name().to_string_lossy()).is_none() {
            continue;
        }
        if let Ok(file) = OpenOptions::new().write(true).open(entry.path())
            && file.try_lock().is_ok()
        {
            let _ = fs::remove_file(entry.path());
        }
    }
}

fn directory_of(path: &Path) -> &Path {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    }
}

#[cfg(unix)]
fn sync_directory(path: &Path) -> Result<()> {
    File::open(directory_of(path))
        .and_then(|directory| directory.sync_all())
        .doing("sync the directory")
}

#[cfg(not(unix))]
fn sync_directory(_: &Path) -> Result<()> {
    Ok(())
}

/// Distinguishes the files of one process.
static NEXT: AtomicU64 = AtomicU64::new(0);

/// An open file that disappears when it is dropped; on Unix, also when the process is killed.
#[derive(Debug)]
pub(crate) struct TemporaryFile {
    /// Open for reading and writing.
    pub(crate) file: File,
    /// Its path, on systems that keep the name of an open file.
    path: Option<PathBuf>,
}

impl Drop for TemporaryFile {
    fn drop(&mut self) {
        if let Some(path) = &self.path {
            // A file that cannot be deleted remains in the caller's folder, which the caller deletes.
            let _ = std::fs::remove_file(path);
        }
    }
}

impl TemporaryFile {
    /// Creates an empty file in the folder; its name begins with `kind`.
    pub(crate) fn create(folder: &Path, kind: &str) -> Result<Self> {
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let path = folder.join(format!("{kind}-{}-{number}", std::process::id()));
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .create_new(true)
            .open(&path)
            .doing("create a temporary file")?;
        // Without a name, nothing remains of it, however the process ends.
        let is_nameless = cfg!(unix) && std::fs::remove_file(&path).is_ok();
        Ok(TemporaryFile {
            file,
            path: (!is_nameless).then_some(path),
        })
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    fn folder(name: &str) -> PathBuf {
        let name = format!("likewise-whole-{}-{name}", std::process::id());
        let folder = std::env::temp_dir().join(name);
        fs::create_dir_all(&folder).unwrap();
        folder
    }

    fn names(folder: &Path) -> Vec<String> {
        let mut names: Vec<_> = fs::read_dir(folder)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned())
            .collect();
        names.sort();
        names
    }

    fn put(path: &Path, bytes: &[u8]) -> Result<(), Error> {
        write_whole(path, |mut file, _| file.write_all(bytes).doing("write"))
    }

    #[test]
    fn writers_of_one_target_have_files_of_their_own() {
        let folder = folder("two");
        let target = folder.join("target");
        write_whole(&target, |mut first, one| {
            put(&target, b"second")?;
            write_whole(&target, |_, other| {
                assert_ne!(one, other);
                Ok(())
            })?;
            first.write_all(b"first").doing("write")
        })
        .unwrap();
        assert_eq!(fs::read(&target).unwrap(), b"first");
        assert_eq!(names(&folder), ["target"]);
        fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn what_a_dead_writer_left_is_deleted_and_nothing_else() {
        let folder = folder("left");
        let others = [
            ".target.unfinished",
            ".target.1-0.unfinished",
            ".target.two.7-012345678.unfinished",
        ];
        for name in others.iter().chain(&[".target.7-012345678.unfinished"]) {
            fs::write(folder.join(name), b"left").unwrap();
        }
        put(&folder.join("target"), b"whole").unwrap();
        let mut expected = others.map(str::to_owned).to_vec();
        expected.push("target".to_owned());
        expected.sort();
        assert_eq!(names(&folder), expected);
        fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn long_names_fit() {
        let folder = folder("long");
        let target = folder.join("é".repeat(122) + "n");
        let mut longest = 0;
        write_whole(&target, |_, temporary| {
            longest = temporary.file_name().unwrap().len();
            Ok(())
        })
        .unwrap();
        let spool = format!(".group-rows-{}-{}", u32::MAX, u64::MAX);
        assert!(longest + spool.len() <= 255, "{longest}");
        assert_eq!(names(&folder).len(), 1);
        fs::remove_dir_all(folder).unwrap();
    }

    #[cfg(unix)]
    #[test]
    fn links_are_followed_and_no_other_file_is_replaced() {
        let folder = folder("kinds");
        std::os::unix::fs::symlink("real", folder.join("link")).unwrap();
        put(&folder.join("link"), b"whole").unwrap();
        assert_eq!(fs::read(folder.join("real")).unwrap(), b"whole");
        assert!(folder.join("link").is_symlink());
        std::os::unix::fs::symlink("loop", folder.join("loop")).unwrap();
        let socket = folder.join("socket");
        let _listener = std::os::unix::net::UnixListener::bind(&socket).unwrap();
        for path in [&folder, &socket, &folder.join("loop")] {
            assert!(matches!(put(path, b""), Err(Error::NotRegular)));
        }
        assert_eq!(names(&folder), ["link", "loop", "real", "socket"]);
        fs::remove_dir_all(folder).unwrap();
    }
}

#[cfg(test)]
mod temporary_tests {
    use std::io::{Read, Seek, Write};

    use super::*;

    #[test]
    fn nothing_is_left_of_it() {
        let folder = std::env::temp_dir().join(format!("likewise-kinds-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let count = || folder.read_dir().unwrap().count();
        let mut files: Vec<TemporaryFile> = (0..3)
            .map(|_| TemporaryFile::create(&folder, "kind").unwrap())
            .collect();
        assert_eq!(count(), if cfg!(unix) { 0 } else { 3 });
        for (number, of) in (0_u8..).zip(&mut files) {
            of.file.write_all(&[number; 9]).unwrap();
        }
        for (number, of) in (0_u8..).zip(&mut files) {
            let mut bytes = Vec::new();
            of.file.rewind().unwrap();
            of.file.read_to_end(&mut bytes).unwrap();
            assert_eq!(bytes, [number; 9]);
        }
        drop(files);
        assert_eq!(count(), 0);
        std::fs::remove_dir(&folder).unwrap();
    }
}
