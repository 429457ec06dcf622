//! What can go wrong with files?

use std::io;
use std::path::PathBuf;

pub type Result<T, E = Error> = std::result::Result<T, E>;

/// An error of a file operation. Bad rows are not errors: they are part of a [`Piece`](crate::Piece).
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The system reported an error for an operation.
    #[error("cannot {action}: {source}")]
    Io {
        /// The action that failed, such as "read".
        action: &'static str,
        source: io::Error,
    },
    /// The file no longer holds what was there before.
    #[error("the file changed while it was in use: at byte {offset}: {reason}")]
    Changed {
        /// First changed byte in the file.
        offset: u64,
        reason: String,
    },
    /// The name does not refer to a regular file.
    #[error("not a regular file; choose another")]
    NotRegular,
    /// A compressed file cannot be decompressed to its end, or another file is damaged.
    #[error("{reason}")]
    Damaged {
        /// What is wrong, and how much could be read.
        reason: String,
    },
    #[error("{name}: {message}")]
    InvalidParameter {
        name: &'static str,
        /// The value found and the allowed range.
        message: String,
    },
    /// Another process, or another writer of this process, holds the lock of the store.
    #[error(
        "{} is locked by another writer; an index can have one writer and any number of readers", .path.display()
    )]
    Locked { path: PathBuf },
    /// A write failed, so nothing more is written. Reads continue; reopening the store recovers it.
    #[error(
        "an earlier write failed ({reason}), so writes are disabled; close the index and open it again"
    )]
    Poisoned { reason: String },
    /// The files at the path of an open store are no longer its own; the store is not used any more.
    #[error("{reason}")]
    Replaced {
        /// What happened, and what to do.
        reason: String,
    },
    /// The location, the library or the format version is not supported.
    #[error("{reason}")]
    Unsupported {
        /// What was found and what is required.
        reason: String,
    },
    /// A document was removed or has expired, and its record was dropped after the caller looked up its row.
    #[error("the document of row {row} was removed in the meantime; try again")]
    Dropped { row: u32 },
    /// This process was forked from one that had a store open.
    #[error(
        "this process was forked while an index was open, so it cannot open an index: close every index before a fork, or start processes with spawn or forkserver"
    )]
    Forked,
    /// The caller asked the operation to stop.
    #[error("canceled")]
    Canceled,
}

impl Error {
    /// Builds [`Error::Io`].
    pub fn io(action: &'static str, source: io::Error) -> Self {
        Error::Io { action, source }
    }

    /// Converts the error of a read at `offset`. If the file ends too early it has changed, since its size was known.
    pub fn read(source: io::Error, offset: u64) -> Self {
        match source.kind() {
            io::ErrorKind::UnexpectedEof => Error::Changed {
                offset,
                reason: "the file ends before it".to_owned(),
            },
            _ => Error::io("read", source),
        }
    }

    /// Builds [`Error::InvalidParameter`].
    pub fn invalid(name: &'static str, message: impl Into<String>) -> Self {
        Error::InvalidParameter {
            name,
            message: message.into(),
        }
    }
}

/// Tells which operation an error of the system ended.
pub(crate) trait Doing<T> {
    /// The action, such as "read".
    fn doing(self, action: &'static str) -> Result<T>;

    /// A read at `offset`, by [`Error::read`].
    fn reading(self, offset: u64) -> Result<T>;
}

impl<T> Doing<T> for io::Result<T> {
    fn doing(self, action: &'static str) -> Result<T> {
        self.map_err(|source| Error::io(action, source))
    }

    fn reading(self, offset: u64) -> Result<T> {
        self.map_err(|source| Error::read(source, offset))
    }
}

impl From<likewise_core::error::Error> for Error {
    fn from(error: likewise_core::error::Error) -> Self {
        match error {
            likewise_core::error::Error::InvalidParameter { name, message } => {
                Error::InvalidParameter { name, message }
            }
            likewise_core::error::Error::OutOfMemory { .. } => {
                Error::io("take memory", io::ErrorKind::OutOfMemory.into())
            }
            _ => Error::Canceled,
        }
    }
}
