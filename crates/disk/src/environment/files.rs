//! Through what are files read and written?
//!
//! One small layer, so that tests can make any operation fail and lose what was not synced.

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

/// A file that is being written from front to back.
pub trait SegmentFile: Write + Seek + Send {
    /// Makes its bytes durable.
    ///
    /// # Errors
    /// The system's. It is not tried again: what was not written then counts as clean.
    fn sync(&mut self) -> io::Result<()>;
}

/// An open file, read or written by position.
pub trait OpenFile: Debug + Send + Sync {
    /// What it is now, whatever its name names by now.
    ///
    /// # Errors
    /// The system's.
    fn facts(&self) -> io::Result<Facts>;

    /// Fills `bytes` from byte `offset` on.
    ///
    /// # Errors
    /// `UnexpectedEof` if the file ends before the buffer is full; the system's.
    fn read_exact_at(&self, bytes: &mut [u8], offset: u64) -> io::Result<()>;

    /// Writes all of `bytes` from byte `offset` on, without waiting for the disk.
    ///
    /// # Errors
    /// The system's.
    fn write_all_at(&self, bytes: &[u8], offset: u64) -> io::Result<()>;

    /// All of its bytes, to look at; it must not change as long as they are used.
    ///
    /// # Errors
    /// The system's.
    fn map(&self) -> io::Result<SharedBytes>;
}

/// Which file a name names, and what is known of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Facts {
    /// The device that holds it; 0 where the system does not say.
    pub device: u64,
    /// Its number on that device; 0 where the system does not say.
    pub inode: u64,
    /// Its bytes.
    pub num_bytes: u64,
    /// Whether it is a directory.
    pub is_dir: bool,
}

/// Which file a name names, and when it was changed last.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stamp {
    /// Which file.
    pub facts: Facts,
    /// When its bytes were changed, where that is known.
    pub modified: Option<SystemTime>,
}

/// A name in a directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// The name.
    pub name: OsString,
    /// Whether it is a regular file and not, say, a link to one.
    pub is_file: bool,
}

/// A lock on a file: released when it is dropped, or by the system when the process dies.
pub trait FileLock: Debug + Send {}

/// The operations on files and directories.
pub trait Files: Debug + Send + Sync {
    /// Makes a directory; one that exists is fine.
    ///
    /// # Errors
    /// The system's.
    fn create_dir(&self, path: &Path) -> io::Result<()>;

    /// Makes a directory and those above it; existing ones are fine.
    ///
    /// # Errors
    /// The system's.
    fn create_dir_all(&self, path: &Path) -> io::Result<()>;

    /// The absolute path of something that exists, without links.
    ///
    /// # Errors
    /// The system's.
    fn canonicalize(&self, path: &Path) -> io::Result<PathBuf>;

    /// The mounted file systems, in the format of Linux's `/proc/self/mountinfo`; empty where that is not known.
    fn mounts(&self) -> String;

    /// What a name names, links followed.
    ///
    /// # Errors
    /// The system's.
    fn facts(&self, path: &Path) -> io::Result<Facts>;

    /// The same, with the time of the last change.
    ///
    /// # Errors
    /// The system's.
    fn stamp(&self, path: &Path) -> io::Result<Stamp> {
        Ok(Stamp {
            facts: self.facts(path)?,
            modified: None,
        })
    }

    /// The names in a directory, in no order.
    ///
    /// # Errors
    /// The system's.
    fn list(&self, path: &Path) -> io::Result<Vec<Entry>>;

    /// Makes a new file, to be written and then only read.
    ///
    /// # Errors
    /// The system's, also where the name is taken.
    fn create(&self, path: &Path) -> io::Result<Box<dyn SegmentFile>>;

    /// Opens a file to read.
    ///
    /// # Errors
    /// The system's.
    fn open(&self, path: &Path) -> io::Result<Box<dyn OpenFile>>;

    /// Opens a file to read and to overwrite in place; makes it where it is absent.
    ///
    /// # Errors
    /// The system's.
    fn open_to_write(&self, path: &Path) -> io::Result<Box<dyn OpenFile>>;

    /// Makes the bytes of a closed file durable.
    ///
    /// # Errors
    /// The system's.
    fn sync(&self, path: &Path) -> io::Result<()>;

    /// Gives a file another name.
    ///
    /// # Errors
    /// The system's.
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()>;

    /// Takes a name away.
    ///
    /// # Errors
    /// The system's.
    fn unlink(&self, path: &Path) -> io::Result<()>;

    /// Makes the names of a directory durable.
    ///
    /// # Errors
    /// The system's.
    fn sync_dir(&self, path: &Path) -> io::Result<()>;

    /// Takes the lock of a file, which is made where it is absent; none while another holder has it.
    ///
    /// # Errors
    /// The system's.
    fn try_lock(&self, path: &Path) -> io::Result<Option<Box<dyn FileLock>>>;

    /// A random number for the name of a new file.
    fn name_number(&self) -> u64;
}

/// The files of the system.
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

/// The lock of a file of the system. A child that was forked meanwhile neither gives it back nor holds it any longer.
#[derive(Debug)]
struct PlainLock {
    file: File,
    process: u32,
}

impl FileLock for PlainLock {}

impl Drop for PlainLock {
    fn drop(&mut self) {
        // Closing would not do: a child has the same file open.
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
            // Whoever opens it by its name cannot write it.
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
        // Windows syncs only what may be written.
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
        // Windows has no such thing.
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
        // The standard library's hasher has new random keys each time.
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
