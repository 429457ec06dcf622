//! What can go wrong with files?

use std::path::PathBuf;
use std::{fmt, io};

pub type Result<T, E = Error> = std::result::Result<T, E>;

/// An error of a file operation. Bad rows are not errors: they are part of a [`Piece`](crate::Piece).
#[derive(Debug)]
#[non_exhaustive]
pub enum Error {
    /// The system reported an error for an operation.
    Io {
        /// The action that failed, such as "read".
        action: &'static str,
        source: io::Error,
    },
    /// The file no longer holds what was there before.
    Changed {
        /// First changed byte in the file.
        offset: u64,
        reason: String,
    },
    /// The name does not refer to a regular file.
    NotRegular,
    /// A compressed file cannot be decompressed to its end, or another file is damaged.
    Damaged {
        /// What is wrong, and how much could be read.
        reason: String,
    },
    InvalidParameter {
        name: &'static str,
        /// The value found and the allowed range.
        message: String,
    },
    /// Another process, or another writer of this process, holds the lock of the store.
    Locked { path: PathBuf },
    /// A write failed, so nothing more is written. Reads continue; reopening the store recovers it.
    Poisoned { reason: String },
    /// The files at the path of an open store are no longer its own; the store is not used any more.
    Replaced {
        /// What happened, and what to do.
        reason: String,
    },
    /// The location, the library or the format version is not supported.
    Unsupported {
        /// What was found and what is required.
        reason: String,
    },
    /// A document was removed or has expired, and its record was dropped after the caller looked up its row.
    Dropped { row: u32 },
    /// This process was forked from one that had a store open.
    Forked,
    /// The caller asked the operation to stop.
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

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Io { action, source } => write!(f, "cannot {action}: {source}"),
            Error::Changed { offset, reason } => {
                write!(
                    f,
                    "the file changed while it was in use: at byte {offset}: {reason}"
                )
            }
            Error::NotRegular => f.write_str("not a regular file; choose another"),
            Error::Damaged { reason } => f.write_str(reason),
            Error::InvalidParameter { name, message } => write!(f, "{name}: {message}"),
            Error::Locked { path } => write!(
                f,
                "{} is locked by another writer; an index can have one writer and any number of readers",
                path.display()
            ),
            Error::Poisoned { reason } => write!(
                f,
                "an earlier write failed ({reason}), so writes are disabled; close the index and open it again"
            ),
            Error::Unsupported { reason } | Error::Replaced { reason } => f.write_str(reason),
            Error::Dropped { row } => {
                write!(f, "the document of row {row} was removed in the meantime; try again")
            }
            Error::Forked => f.write_str(
                "this process was forked while an index was open, so it cannot open an index: close every index before a fork, or start processes \
                 with spawn or forkserver",
            ),
            Error::Canceled => f.write_str("canceled"),
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Error::Io { source, .. } => Some(source),
            _ => None,
        }
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
