//! What can go wrong with files?

use std::fmt;
use std::io;
use std::path::PathBuf;

/// An error of a file operation. Bad rows are not errors: they are part of a [`Piece`](crate::Piece).
#[derive(Debug)]
#[non_exhaustive]
pub enum Error {
    /// The system refused an operation.
    Io {
        /// What was being done, such as "read".
        action: &'static str,
        /// The system's reason.
        source: io::Error,
    },
    /// What was in the file before is no longer there.
    Changed {
        /// First byte of it in the file.
        offset: u64,
        /// What is wrong there now.
        reason: String,
    },
    /// Something else than a regular file has the name.
    NotRegular,
    /// A packed file cannot be unpacked to its end.
    Damaged {
        /// What is wrong and how far it could be read.
        reason: String,
    },
    /// A parameter is outside its range.
    InvalidParameter {
        /// Name of the parameter as users write it.
        name: &'static str,
        /// Value found and range allowed.
        message: String,
    },
    /// Another process, or another writer of this one, has the store.
    Locked {
        /// The lock that it holds.
        path: PathBuf,
    },
    /// A write failed, so nothing is written any more; reads go on, and opening the store again recovers it.
    Poisoned {
        /// The error of the write that failed.
        reason: String,
    },
    /// The files of an open store are no longer those at its path; nothing more is done with it.
    Replaced {
        /// What happened, and how to go on.
        reason: String,
    },
    /// The place, the library or the version of what is there does not serve.
    Unsupported {
        /// What is found and what is needed.
        reason: String,
    },
    /// A document was removed, or expired, and its record was dropped since whoever asks for it found its row.
    Dropped {
        /// Its row.
        row: u32,
    },
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

    /// The error of a read at `offset`: a file that ends too early has changed, since its size was known.
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
