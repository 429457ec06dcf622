//! How are files read and written?
//!
//! A thin layer that lets tests make any operation fail and lose what was not synced.

use std::ffi::OsString;
use std::fmt::Debug;
use std::fs::{self, File, OpenOptions};
use std::hash::{BuildHasher, RandomState};
use std::io::{self, Seek, Write};
use std::path::{Path, PathBuf};
use std::process;
use std::sync::Arc;
use std::time::SystemTime;

use likewise_hamming::index::SharedBytes;

use super::mapping::MappedFile;
use crate::position::{read_exact_at, write_all_at};

pub trait SegmentFile: Write + Seek + Send {
    /// Makes its bytes durable. Do not retry after an error: after a failed sync, unwritten bytes count as clean.
    fn sync(&mut self) -> io::Result<()>;
}

/// An open file, read or written by position.
pub trait OpenFile: Debug + Send + Sync {
    /// Returns the facts of the open file, even if its name refers to another file by now.
    fn facts(&self) -> io::Result<Facts>;

    /// Fills `bytes` from byte `offset` on.
    fn read_exact_at(&self, bytes: &mut [u8], offset: u64) -> io::Result<()>;

    /// Writes all of `bytes` from byte `offset` on, without waiting for the disk.
    fn write_all_at(&self, bytes: &[u8], offset: u64) -> io::Result<()>;

    /// Returns all bytes of the file, mapped. The file must not change while they are in use.
    fn map(&self) -> io::Result<SharedBytes>;
}

/// The identity of a file, and its known properties.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Facts {
    /// The device that holds it; 0 if the system does not report one.
    pub device: u64,
    /// Its inode number on that device; 0 if the system does not report one.
    pub inode: u64,
    pub num_bytes: u64,
    pub is_dir: bool,
}

/// The identity of a file, and when it was last changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stamp {
    pub facts: Facts,
    /// When its bytes were last changed, if known.
    pub modified: Option<SystemTime>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    pub name: OsString,
    /// Whether it is a regular file, not a link to one, for example.
    pub is_file: bool,
}

/// A lock on a file: released when it is dropped, or by the system when the process dies.
pub trait FileLock: Debug + Send {}

pub trait Files: Debug + Send + Sync {
    /// Creates a directory; does nothing if it exists.
    fn create_dir(&self, path: &Path) -> io::Result<()>;

    /// Creates a directory and its parents; does nothing for those that exist.
    fn create_dir_all(&self, path: &Path) -> io::Result<()>;

    /// Returns the absolute path of an existing file or directory, with links resolved.
    fn canonicalize(&self, path: &Path) -> io::Result<PathBuf>;

    /// Returns the mounted file systems, in the format of Linux's `/proc/self/mountinfo`; empty if unknown.
    fn mounts(&self) -> String;

    /// Returns the facts of the file at a path, following links.
    fn facts(&self, path: &Path) -> io::Result<Facts>;

    /// Returns the same facts, with the time of the last change.
    fn stamp(&self, path: &Path) -> io::Result<Stamp> {
        Ok(Stamp {
            facts: self.facts(path)?,
            modified: None,
        })
    }

    /// Returns the names in a directory, in no particular order.
    fn list(&self, path: &Path) -> io::Result<Vec<Entry>>;

    /// Creates a new file, which is written once and then only read.
    fn create(&self, path: &Path) -> io::Result<Box<dyn SegmentFile>>;

    fn open(&self, path: &Path) -> io::Result<Box<dyn OpenFile>>;

    /// Opens a file for reading and for overwriting in place; creates it if it is absent.
    fn open_to_write(&self, path: &Path) -> io::Result<Box<dyn OpenFile>>;

    /// Makes the bytes of a closed file durable.
    fn sync(&self, path: &Path) -> io::Result<()>;

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()>;

    fn unlink(&self, path: &Path) -> io::Result<()>;

    /// Makes the entries of a directory durable.
    fn sync_dir(&self, path: &Path) -> io::Result<()>;

    /// Takes the lock of a file, which is created if it is absent; returns `None` while another holder has it.
    fn try_lock(&self, path: &Path) -> io::Result<Option<Box<dyn FileLock>>>;

    /// Returns a random number for the name of a new file.
    fn name_number(&self) -> u64;
}

#[derive(Debug, Clone, Copy, Default)]
pub struct PlainFiles;

impl SegmentFile for File {
    fn sync(&mut self) -> io::Result<()> {
        self.sync_all()
    }
}

impl OpenFile for File {
    fn facts(&self) -> io::Result<Facts> {
        Ok(facts_of(&self.metadata()?))
    }

    fn read_exact_at(&self, bytes: &mut [u8], offset: u64) -> io::Result<()> {
        read_exact_at(self, bytes, offset)
    }

    fn write_all_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        write_all_at(self, bytes, offset)
    }

    fn map(&self) -> io::Result<SharedBytes> {
        Ok(Arc::new(MappedFile::new(self)?))
    }
}

#[cfg(unix)]
fn facts_of(metadata: &fs::Metadata) -> Facts {
    use std::os::unix::fs::MetadataExt;
    Facts {
        device: metadata.dev(),
        inode: metadata.ino(),
        num_bytes: metadata.len(),
        is_dir: metadata.is_dir(),
    }
}

#[cfg(not(unix))]
fn facts_of(metadata: &fs::Metadata) -> Facts {
    Facts {
        device: 0,
        inode: 0,
        num_bytes: metadata.len(),
        is_dir: metadata.is_dir(),
    }
}

/// The lock of a file. A forked child neither releases it nor holds it.
#[derive(Debug)]
struct PlainLock {
    file: File,
    process: u32,
}

impl FileLock for PlainLock {}

impl Drop for PlainLock {
    fn drop(&mut self) {
        // Closing is not enough: a child has the same file open.
        if process::id() == self.process {
            let _ = self.file.unlock();
        }
    }
}

impl Files for PlainFiles {
    fn create_dir(&self, path: &Path) -> io::Result<()> {
        match fs::create_dir(path) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists && path.is_dir() => Ok(()),
            made => made,
        }
    }

    fn create_dir_all(&self, path: &Path) -> io::Result<()> {
        fs::create_dir_all(path)
    }

    fn canonicalize(&self, path: &Path) -> io::Result<PathBuf> {
        fs::canonicalize(path)
    }

    fn mounts(&self) -> String {
        fs::read_to_string("/proc/self/mountinfo").unwrap_or_default()
    }

    fn facts(&self, path: &Path) -> io::Result<Facts> {
        Ok(facts_of(&fs::metadata(path)?))
    }

    fn stamp(&self, path: &Path) -> io::Result<Stamp> {
        let metadata = fs::metadata(path)?;
        Ok(Stamp {
            facts: facts_of(&metadata),
            modified: metadata.modified().ok(),
        })
    }

    fn list(&self, path: &Path) -> io::Result<Vec<Entry>> {
        let entry = |entry: io::Result<fs::DirEntry>| {
            let entry = entry?;
            Ok(Entry {
                name: entry.file_name(),
                is_file: entry.file_type().is_ok_and(|kind| kind.is_file()),
            })
        };
        fs::read_dir(path)?.map(entry).collect()
    }

    fn create(&self, path: &Path) -> io::Result<Box<dyn SegmentFile>> {
        let mut options = OpenOptions::new();
        options.read(true).write(true).create_new(true);
        #[cfg(unix)]
        {
            use std::os::unix::fs::OpenOptionsExt;
            // The file cannot be opened by its name for writing.
            options.mode(0o444);
        }
        Ok(Box::new(options.open(path)?))
    }

    fn open(&self, path: &Path) -> io::Result<Box<dyn OpenFile>> {
        Ok(Box::new(File::open(path)?))
    }

    fn open_to_write(&self, path: &Path) -> io::Result<Box<dyn OpenFile>> {
        Ok(Box::new(to_write(path)?))
    }

    fn sync(&self, path: &Path) -> io::Result<()> {
        // Windows syncs only files that are open for writing.
        OpenOptions::new().write(true).open(path)?.sync_all()
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        fs::rename(from, to)
    }

    fn unlink(&self, path: &Path) -> io::Result<()> {
        fs::remove_file(path)
    }

    #[cfg(unix)]
    fn sync_dir(&self, path: &Path) -> io::Result<()> {
        File::open(path)?.sync_all()
    }

    #[cfg(not(unix))]
    fn sync_dir(&self, _: &Path) -> io::Result<()> {
        // Windows cannot sync directories.
        Ok(())
    }

    fn try_lock(&self, path: &Path) -> io::Result<Option<Box<dyn FileLock>>> {
        let file = to_write(path)?;
        match file.try_lock() {
            Ok(()) => Ok(Some(Box::new(PlainLock {
                file,
                process: process::id(),
            }))),
            Err(fs::TryLockError::WouldBlock) => Ok(None),
            Err(fs::TryLockError::Error(error)) => Err(error),
        }
    }

    fn name_number(&self) -> u64 {
        // Each hasher of the standard library has new random keys.
        RandomState::new().hash_one(process::id())
    }
}

fn to_write(path: &Path) -> io::Result<File> {
    OpenOptions::new()
        .read(true)
        .write(true)
        .create(true)
        .truncate(false)
        .open(path)
}
