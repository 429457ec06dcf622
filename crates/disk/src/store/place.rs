//! Can a store be kept in this directory?

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::{io, process};

use crate::environment::{FileLock, Files};
use crate::error::{Doing, Error, Result};

const LOCK_NAME: &str = "writer.lock";

/// Network file systems, as Linux names them, whose locks and shared memory do not work between machines; those of
/// virtual machines and containers (9p, virtiofs) do.
const NETWORK_FILE_SYSTEMS: &[&str] = &[
    "afs",
    "beegfs",
    "ceph",
    "cifs",
    "coda",
    "davfs",
    "fuse.ceph",
    "fuse.davfs",
    "fuse.davfs2",
    "fuse.gcsfuse",
    "fuse.glusterfs",
    "fuse.goofys",
    "fuse.juicefs",
    "fuse.mount-s3",
    "fuse.rclone",
    "fuse.s3fs",
    "fuse.sshfs",
    "glusterfs",
    "gpfs",
    "lustre",
    "ncpfs",
    "nfs",
    "nfs4",
    "ocfs2",
    "orangefs",
    "pvfs2",
    "smb3",
    "smbfs",
];

/// Returns the absolute path, with links resolved; [`Error::Unsupported`] on a network file system (on Linux).
pub(super) fn settle(files: &dyn Files, dir: &Path) -> Result<PathBuf> {
    let dir = files.canonicalize(dir).doing("open the directory")?;
    match file_system_of(&files.mounts(), &dir) {
        Some(kind) if NETWORK_FILE_SYSTEMS.contains(&kind) => Err(Error::Unsupported {
            reason: format!(
                "{} is on a network file system ({kind}); an index requires a local file system, because locks and shared memory do \
                 not work across machines",
                dir.display()
            ),
        }),
        _ => Ok(dir),
    }
}

/// Returns the type of the file system that holds a path, from the lines of `/proc/self/mountinfo`.
fn file_system_of<'a>(mounts: &'a str, path: &Path) -> Option<&'a str> {
    mounts
        .lines()
        .filter_map(|line| {
            let (front, back) = line.split_once(" - ")?;
            let mounted = unescape(front.split(' ').nth(4)?);
            path.starts_with(&mounted)
                .then_some((mounted.len(), back.split(' ').next()?))
        })
        // Of several file systems mounted at one place, the last hides the others.
        .max_by_key(|&(length, _)| length)
        .map(|(_, kind)| kind)
}

/// Decodes whitespace and backslashes, which are written as three octal digits.
fn unescape(name: &str) -> String {
    ["\\040", "\\011", "\\012", "\\134"]
        .iter()
        .zip([" ", "\t", "\n", "\\"])
        .fold(name.to_owned(), |name, (code, sign)| {
            name.replace(code, sign)
        })
}

/// Takes the lock of the single writer; it is released on drop, or by the system if the process dies.
pub(super) fn lock(files: &dyn Files, dir: &Path) -> Result<Box<dyn FileLock>> {
    let path = dir.join(LOCK_NAME);
    match files.try_lock(&path) {
        Ok(Some(lock)) => Ok(lock),
        Ok(None) => Err(Error::Locked { path }),
        Err(error) => Err(Error::io("lock the directory", error)),
    }
}

/// Bytes of a log that are rewritten at a time.
const REWRITE_BYTES: usize = 1 << 20;

/// Rewrites and syncs what a killed writer left of the log; returns whether there is one. A commit whose sync failed
/// may exist only in the cache of the system, and a later one would be lost with it.
pub(super) fn harden_log(files: &dyn Files, dir: &Path, name: &str) -> Result<bool> {
    let path = dir.join(format!("{name}-wal"));
    let num_bytes = match files.facts(&path) {
        Ok(found) => found.num_bytes,
        Err(error) if error.kind() == io::ErrorKind::NotFound => 0,
        Err(error) => return Err(Error::io("read the log", error)),
    };
    if num_bytes == 0 {
        return Ok(false);
    }
    let rewrite = || {
        let log = files.open_to_write(&path)?;
        let mut bytes = vec![0; REWRITE_BYTES.min(num_bytes as usize)];
        for offset in (0..num_bytes).step_by(REWRITE_BYTES) {
            let bytes = &mut bytes[..REWRITE_BYTES.min((num_bytes - offset) as usize)];
            log.read_exact_at(bytes, offset)?;
            log.write_all_at(bytes, offset)?;
        }
        drop(log);
        files.sync(&path)?;
        files.sync_dir(dir)
    };
    match rewrite() {
        Ok(()) => Ok(true),
        Err(error) => Err(Error::io("write the log", error)),
    }
}

/// Whether frames of the current log follow its first `num_frames`, by their salts (SQLite, file format, 4.2).
pub(super) fn has_frames_behind(
    files: &dyn Files,
    dir: &Path,
    name: &str,
    num_frames: u32,
) -> bool {
    let path = dir.join(format!("{name}-wal"));
    let read = || -> io::Result<bool> {
        let num_bytes = files.facts(&path)?.num_bytes;
        let log = files.open(&path)?;
        let mut header = [0; 32];
        log.read_exact_at(&mut header, 0)?;
        let page_bytes = u32::from_be_bytes([header[8], header[9], header[10], header[11]]);
        let frame_bytes = 24 + u64::from(page_bytes);
        let mut offset = 32 + u64::from(num_frames) * frame_bytes;
        let mut frame = [0; 24];
        while offset + frame_bytes <= num_bytes {
            log.read_exact_at(&mut frame, offset)?;
            if frame[8..16] == header[16..24] {
                return Ok(true);
            }
            offset += frame_bytes;
        }
        Ok(false)
    };
    read().unwrap_or(false)
}

/// Returns the URI for reading a database with a log on a read-only file system, where not even its writer can create
/// files, or `None`; [`Error::Unsupported`] without permission, or with an open log.
pub(super) fn unchanging(files: &dyn Files, dir: &Path, name: &str) -> Result<Option<PathBuf>> {
    let refused = |reason: &str| {
        Err(Error::Unsupported {
            reason: format!("{} cannot be read: {reason}", dir.display()),
        })
    };
    let probe = dir.join(".writable");
    match files.create(&probe) {
        Err(error) if error.kind() == io::ErrorKind::ReadOnlyFilesystem => {}
        Ok(_) => {
            let _ = files.unlink(&probe);
            return Ok(None);
        }
        Err(error) if error.kind() != io::ErrorKind::PermissionDenied => return Ok(None),
        Err(_) => {
            return refused(
                "reading an index creates small files next to its database, and they cannot be created or opened here; grant this \
                 user write access, or read a snapshot",
            );
        }
    }
    let log = dir.join(format!("{name}-wal"));
    if files.facts(&log).is_ok_and(|log| log.num_bytes > 0) {
        return refused(
            "it was not closed after the last write, and its log cannot be applied on a read-only file system",
        );
    }
    match without_log(&dir.join(name)) {
        Some(uri) => Ok(Some(uri)),
        None => refused("on a read-only file system, its path must be valid UTF-8"),
    }
}

/// Returns the URI that makes SQLite open a database as immutable and without a log; `None` if not UTF-8.
pub(super) fn without_log(database: &Path) -> Option<PathBuf> {
    let path = database
        .to_str()?
        .replace('%', "%25")
        .replace('?', "%3f")
        .replace('#', "%23");
    Some(format!("file:{path}?immutable=1").into())
}

/// Makes the entries of a directory safe from power loss.
pub(super) fn sync_directory(files: &dyn Files, dir: &Path) -> Result<()> {
    files.sync_dir(dir).doing("sync the directory")
}

/// The process that last opened connections and, in the low bits, how many of them are open.
static OPEN: AtomicU64 = AtomicU64::new(0);

fn of(state: u64) -> (u32, u32) {
    ((state >> 32) as u32, state as u32)
}

/// Returns the state after one more connection is opened in a process, or `None` if it inherited open ones.
fn one_more(state: u64, process: u32) -> Option<u64> {
    match of(state) {
        (owner, _) if owner == process => Some(state + 1),
        (_, 0) => Some((u64::from(process) << 32) + 1),
        _ => None,
    }
}

/// Returns the state after one connection is closed. Inherited connections remain counted after a process closes them.
fn one_less(state: u64, process: u32) -> u64 {
    match of(state) {
        (owner, num) if owner == process && num > 0 => state - 1,
        _ => state,
    }
}

/// Represents a connection: created before it is opened, dropped after it is closed.
#[derive(Debug)]
pub(super) struct OpenMark;

impl OpenMark {
    /// Returns [`Error::Forked`] if the process inherited open connections.
    pub(super) fn new() -> Result<Self> {
        let process = process::id();
        OPEN.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |state| {
            one_more(state, process)
        })
        .map(|_| OpenMark)
        .map_err(|_| Error::Forked)
    }
}

impl Drop for OpenMark {
    fn drop(&mut self) {
        let process = process::id();
        let _ = OPEN.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |state| {
            Some(one_less(state, process))
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_mount_tells_the_file_system() {
        let mounts = "22 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw\n\
                      30 22 0:40 / /mnt/far rw - nfs4 server:/home rw\n\
                      31 30 0:41 / /mnt/far/near rw - tmpfs tmpfs rw\n\
                      32 22 0:42 / /mnt/two\\040words rw master:3 - fuse.sshfs me@there: rw\n\
                      33 22 8:2 / /over rw - cifs //there rw\n\
                      34 22 8:2 / /over rw - ext4 /dev/sdb rw\n\
                      broken\n";
        for (path, kind) in [
            ("/home/me", Some("ext4")),
            ("/mnt/far/index", Some("nfs4")),
            ("/mnt/farther", Some("ext4")),
            ("/mnt/far/near/index", Some("tmpfs")),
            ("/mnt/two words/index", Some("fuse.sshfs")),
            ("/over/index", Some("ext4")),
        ] {
            assert_eq!(file_system_of(mounts, Path::new(path)), kind, "{path}");
        }
        assert_eq!(file_system_of("", Path::new("/home")), None);
    }

    #[test]
    fn the_list_is_sorted() {
        assert!(NETWORK_FILE_SYSTEMS.is_sorted());
    }
}

#[cfg(test)]
mod process_tests {
    use super::*;

    #[test]
    fn a_child_opens_what_it_likes_unless_its_parent_had_something_open() {
        let (parent, child) = (70, 71);
        let two = one_more(one_more(0, parent).unwrap(), parent).unwrap();
        assert_eq!(of(two), (parent, 2));
        assert_eq!(one_more(two, child), None);
        // Closing inherited connections changes nothing: they are open in the parent.
        assert_eq!(one_less(two, child), two);
        let none = one_less(one_less(two, parent), parent);
        assert_eq!(of(none), (parent, 0));
        assert_eq!(one_less(none, parent), none);
        assert_eq!(one_more(none, child).map(of), Some((child, 1)));
        assert_eq!(one_more(none, parent).map(of), Some((parent, 1)));
    }
}
