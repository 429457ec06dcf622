//! The files of the simulated disk, behind the interface that the product uses.

use std::io::{self, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use likewise_disk::environment::{Entry, Facts, FileLock, Files, OpenFile, SegmentFile};
use likewise_hamming::index::SharedBytes;

use crate::disk::{Disk, Inode, Kind, Named};

/// The files of one process.
#[derive(Debug, Clone)]
pub struct SimulatedFiles {
    /// The disk.
    pub disk: Arc<Disk>,
    /// The process.
    pub process: u64,
}

#[derive(Debug)]
struct Open {
    disk: Arc<Disk>,
    process: u64,
    /// The task that opened it for writing.
    owner: Option<usize>,
    inode: Inode,
    at: usize,
}

#[derive(Debug)]
struct Lock {
    disk: Arc<Disk>,
    process: u64,
    inode: Inode,
}

impl FileLock for Lock {}

impl Drop for Lock {
    fn drop(&mut self) {
        let mut state = self.disk.state();
        if state.process == self.process {
            state.node(self.inode).is_locked = false;
        }
    }
}

impl Open {
    fn write_bytes(&self, bytes: &[u8], offset: usize) -> io::Result<()> {
        let detail = [self.inode, offset, bytes.len()];
        match self
            .disk
            .begin(self.process, self.owner, Kind::Write, "write", detail)
        {
            Ok(mut state) => {
                state.write(self.inode, offset, bytes);
                Ok(())
            }
            Err(error) => {
                let mut state = self.disk.state();
                if state.process == self.process {
                    state.fail_write(self.inode, offset, bytes);
                }
                Err(error)
            }
        }
    }
}

impl Write for Open {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.write_bytes(bytes, self.at)?;
        self.at += bytes.len();
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Seek for Open {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        self.at = match to {
            SeekFrom::Start(at) => at as usize,
            SeekFrom::Current(by) => self.at.saturating_add_signed(by as isize),
            SeekFrom::End(by) => {
                let len = self.disk.state().bytes(self.inode).len();
                len.saturating_add_signed(by as isize)
            }
        };
        Ok(self.at as u64)
    }
}

impl SegmentFile for Open {
    fn sync(&mut self) -> io::Result<()> {
        sync(&self.disk, self.process, self.owner, self.inode)
    }
}

/// Syncs a file.
pub(crate) fn sync(
    disk: &Disk,
    process: u64,
    owner: Option<usize>,
    inode: Inode,
) -> io::Result<()> {
    match disk.begin(process, owner, Kind::Sync, "sync", [inode, 0, 0]) {
        Ok(mut state) => {
            state.sync(inode);
            Ok(())
        }
        Err(error) => {
            let mut state = disk.state();
            if state.process == process && state.death.is_none() {
                state.fail_sync(inode);
            }
            Err(error)
        }
    }
}

/// The bytes of a file, aligned to a page as in a mapping.
struct Mapped {
    bytes: Vec<u8>,
    start: usize,
    len: usize,
}

impl AsRef<[u8]> for Mapped {
    fn as_ref(&self) -> &[u8] {
        &self.bytes[self.start..self.start + self.len]
    }
}

impl OpenFile for Open {
    fn facts(&self) -> io::Result<Facts> {
        let detail = [self.inode, 0, 0];
        let state = self
            .disk
            .begin(self.process, None, Kind::Read, "facts", detail)?;
        Ok(facts(self.inode, state.bytes(self.inode).len()))
    }

    fn read_exact_at(&self, bytes: &mut [u8], offset: u64) -> io::Result<()> {
        let offset = offset as usize;
        let detail = [self.inode, offset, bytes.len()];
        let state = self
            .disk
            .begin(self.process, None, Kind::Read, "read", detail)?;
        let all = state.bytes(self.inode);
        match all.get(offset..offset + bytes.len()) {
            Some(part) => {
                bytes.copy_from_slice(part);
                Ok(())
            }
            None => Err(io::ErrorKind::UnexpectedEof.into()),
        }
    }

    fn write_all_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        self.write_bytes(bytes, offset as usize)
    }

    fn map(&self) -> io::Result<SharedBytes> {
        let detail = [self.inode, 0, 0];
        let state = self
            .disk
            .begin(self.process, None, Kind::Read, "map", detail)?;
        let all = state.bytes(self.inode);
        let mut bytes = vec![0; all.len() + 64];
        let start = bytes.as_ptr().align_offset(64).min(64);
        bytes[start..start + all.len()].copy_from_slice(all);
        Ok(Arc::new(Mapped {
            bytes,
            start,
            len: all.len(),
        }))
    }
}

fn facts(inode: Inode, len: usize) -> Facts {
    Facts {
        device: 1,
        inode: inode as u64,
        num_bytes: len as u64,
        is_dir: false,
    }
}

impl SimulatedFiles {
    fn open_node(&self, inode: Inode, owner: Option<usize>) -> Open {
        Open {
            disk: self.disk.clone(),
            process: self.process,
            owner,
            inode,
            at: 0,
        }
    }

    fn open_or_make(&self, path: &Path) -> io::Result<Inode> {
        let mut state =
            self.disk
                .begin(self.process, None, Kind::Write, "open to write", [0; 3])?;
        match state.file(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                let inode = state.make_node();
                state.make_name(path, Named::File(inode))?;
                Ok(inode)
            }
            found => found,
        }
    }
}

impl Files for SimulatedFiles {
    fn create_dir(&self, path: &Path) -> io::Result<()> {
        let mut state =
            self.disk
                .begin(self.process, None, Kind::Write, "create directory", [0; 3])?;
        match state.named(path) {
            Ok(Named::Directory) => Ok(()),
            _ => state.make_name(path, Named::Directory),
        }
    }

    fn create_dir_all(&self, path: &Path) -> io::Result<()> {
        let mut all: Vec<&Path> = path.ancestors().collect();
        all.reverse();
        all.into_iter().try_for_each(|path| self.create_dir(path))
    }

    fn canonicalize(&self, path: &Path) -> io::Result<PathBuf> {
        self.facts(path)?;
        Ok(path.to_owned())
    }

    fn mounts(&self) -> String {
        String::new()
    }

    fn facts(&self, path: &Path) -> io::Result<Facts> {
        let state = self
            .disk
            .begin(self.process, None, Kind::Read, "facts of", [0; 3])?;
        Ok(match state.named(path)? {
            Named::File(inode) => facts(inode, state.bytes(inode).len()),
            Named::Directory => Facts {
                device: 1,
                inode: 0,
                num_bytes: 0,
                is_dir: true,
            },
        })
    }

    fn list(&self, path: &Path) -> io::Result<Vec<Entry>> {
        let state = self
            .disk
            .begin(self.process, None, Kind::Read, "list", [0; 3])?;
        let entries = state.list(path)?.into_iter().map(|(path, named)| Entry {
            name: path.file_name().unwrap_or_default().to_owned(),
            is_file: named != Named::Directory,
        });
        Ok(entries.collect())
    }

    fn create(&self, path: &Path) -> io::Result<Box<dyn SegmentFile>> {
        let owner = self.disk.scheduler().current();
        let mut state = self
            .disk
            .begin(self.process, owner, Kind::Write, "create", [0; 3])?;
        let inode = state.make_node();
        state.make_name(path, Named::File(inode))?;
        drop(state);
        Ok(Box::new(self.open_node(inode, owner)))
    }

    fn open(&self, path: &Path) -> io::Result<Box<dyn OpenFile>> {
        let state = self
            .disk
            .begin(self.process, None, Kind::Read, "open", [0; 3])?;
        let inode = state.file(path)?;
        drop(state);
        Ok(Box::new(self.open_node(inode, None)))
    }

    fn open_to_write(&self, path: &Path) -> io::Result<Box<dyn OpenFile>> {
        let inode = self.open_or_make(path)?;
        Ok(Box::new(self.open_node(inode, None)))
    }

    fn sync(&self, path: &Path) -> io::Result<()> {
        let inode = self.disk.state().file(path)?;
        sync(&self.disk, self.process, None, inode)
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        let mut state = self
            .disk
            .begin(self.process, None, Kind::Other, "rename", [0; 3])?;
        state.rename(from, to)
    }

    fn unlink(&self, path: &Path) -> io::Result<()> {
        let mut state = self
            .disk
            .begin(self.process, None, Kind::Other, "unlink", [0; 3])?;
        state.unlink(path)
    }

    fn sync_dir(&self, path: &Path) -> io::Result<()> {
        let mut state =
            self.disk
                .begin(self.process, None, Kind::Sync, "sync directory", [0; 3])?;
        state.sync_directory(path)
    }

    fn try_lock(&self, path: &Path) -> io::Result<Option<Box<dyn FileLock>>> {
        let inode = self.open_or_make(path)?;
        let mut state = self.disk.state();
        if state.node(inode).is_locked {
            return Ok(None);
        }
        state.node(inode).is_locked = true;
        Ok(Some(Box::new(Lock {
            disk: self.disk.clone(),
            process: self.process,
            inode,
        })))
    }

    fn name_number(&self) -> u64 {
        self.disk.state().name_number()
    }
}
