//! What can go wrong with an index?

pub type Result<T, E = Error> = std::result::Result<T, E>;

#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    #[error(transparent)]
    Disk(#[from] likewise_disk::Error),
    /// A document cannot be taken.
    #[error("{reason}")]
    Input {
        /// Its place in the batch, from 0.
        position: usize,
        /// Why, and how to go on.
        reason: String,
    },
    /// No document that is not gone has this id.
    #[error("no document with id {0:?}")]
    UnknownId(String),
    /// The index was opened by another process, from which this one was forked.
    #[error(
        "the index was opened before this process was forked, and cannot be used here: close every index before a fork and open it afterward, or start processes with spawn or forkserver"
    )]
    Forked,
    /// The index was opened for reading only.
    #[error("the index was opened for reading only")]
    ReadOnly,
    #[error("the index is closed")]
    Closed,
    /// A derived table contradicts itself; it is built again.
    #[error("a search table is damaged")]
    Damaged,
    /// What servers returned is not what this version writes.
    #[error(
        "the servers returned data that this version cannot read; use the version that wrote them"
    )]
    Unreadable,
    /// Servers have no record of a row that others name.
    #[error("the servers have no record of row {0}")]
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
