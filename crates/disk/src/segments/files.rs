//! Through what are segments written?
//!
//! One small layer, so that tests can make any operation fail and lose what was not synced.

use std::fmt::Debug;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Seek, Write};
use std::path::Path;

/// A file that is being written.
pub trait SegmentFile: Write + Seek + Send {
    /// Makes its bytes durable.
    ///
    /// # Errors
    /// The system's. It is not tried again: what was not written then counts as clean.
    fn sync(&mut self) -> io::Result<()>;
}

/// The operations on the directory of segments.
pub trait Files: Debug + Send + Sync {
    /// Makes a directory; one that is there already is well.
    ///
    /// # Errors
    /// The system's.
    fn create_dir(&self, path: &Path) -> io::Result<()>;

    /// Makes a new file, to be written and then only read.
    ///
    /// # Errors
    /// The system's, also where the name is taken.
    fn create(&self, path: &Path) -> io::Result<Box<dyn SegmentFile>>;

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
}

/// The files of the system.
#[derive(Debug, Clone, Copy, Default)]
pub struct PlainFiles;

impl SegmentFile for File {
    fn sync(&mut self) -> io::Result<()> {
        self.sync_all()
    }
}

impl Files for PlainFiles {
    fn create_dir(&self, path: &Path) -> io::Result<()> {
        match fs::create_dir(path) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists && path.is_dir() => Ok(()),
            made => made,
        }
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
        Ok(())
    }
}
