//! What can go wrong with an index?

use std::fmt;

pub type Result<T, E = Error> = std::result::Result<T, E>;

#[derive(Debug)]
#[non_exhaustive]
pub enum Error {
    Disk(likewise_disk::Error),
    /// A document cannot be taken.
    Input {
        /// Its place in the batch, from 0.
        position: usize,
        /// Why, and how to go on.
        reason: String,
    },
    /// No document that is not gone has this id.
    UnknownId(String),
    /// The index was opened by another process, from which this one was forked.
    Forked,
    /// The index was opened for reading only.
    ReadOnly,
    Closed,
    /// A derived table contradicts itself; it is built again.
    Damaged,
    /// What servers returned is not what this version writes.
    Unreadable,
    /// Servers have no record of a row that others name.
    Unread(u32),
}

impl Error {
    /// Builds [`Error::Input`].
    pub fn input(position: usize, reason: impl Into<String>) -> Self {
        Error::Input {
            position,
            reason: reason.into(),
        }
    }

    /// Whether data on disk are not what was written: those of a segment, which are derived, or those of the database.
    pub fn is_damage(&self) -> bool {
        matches!(
            self,
            Error::Damaged | Error::Disk(likewise_disk::Error::Damaged { .. })
        )
    }

    /// Whether the caller asked the operation to stop.
    pub fn is_cancelled(&self) -> bool {
        matches!(self, Error::Disk(likewise_disk::Error::Canceled))
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Disk(error) => error.fmt(f),
            Error::Input { reason, .. } => f.write_str(reason),
            Error::UnknownId(id) => write!(f, "no document with id {id:?}"),
            Error::Forked => f.write_str(
                "the index was opened before this process was forked, and cannot be used here: close every index before a fork and open it \
                 afterward, or start processes with spawn or forkserver",
            ),
            Error::ReadOnly => f.write_str("the index was opened for reading only"),
            Error::Closed => f.write_str("the index is closed"),
            Error::Damaged => f.write_str("a search table is damaged"),
            Error::Unreadable => f.write_str(
                "the servers returned data that this version cannot read; use the version that wrote them",
            ),
            Error::Unread(row) => write!(f, "the servers have no record of row {row}"),
        }
    }
}

impl std::error::Error for Error {}

impl From<likewise_disk::Error> for Error {
    fn from(error: likewise_disk::Error) -> Self {
        Error::Disk(error)
    }
}

impl From<likewise_disk::store::Malformed> for Error {
    fn from(_: likewise_disk::store::Malformed) -> Self {
        Error::Unreadable
    }
}

impl From<likewise_core::error::Error> for Error {
    fn from(error: likewise_core::error::Error) -> Self {
        match error {
            likewise_core::error::Error::Damaged => Error::Damaged,
            other => Error::Disk(other.into()),
        }
    }
}
