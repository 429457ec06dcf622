//! What can go wrong in the core, and what the caller can do about it.

use std::fmt;

pub type Result<T, E = Error> = std::result::Result<T, E>;

#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Error {
    /// A parameter is outside its range. The message names the value and the allowed range.
    InvalidParameter {
        name: &'static str,
        /// The value found and the allowed range.
        message: String,
    },
    Damaged,
    /// The system refuses to allocate memory.
    OutOfMemory {
        num_bytes: usize,
    },
    /// The caller asked the operation to stop.
    Canceled,
}

impl Error {
    /// Builds [`Error::InvalidParameter`].
    pub fn invalid(name: &'static str, message: impl Into<String>) -> Self {
        Error::InvalidParameter {
            name,
            message: message.into(),
        }
    }
}

/// Returns [`Error::InvalidParameter`] if `is_invalid`.
pub fn invalid_if<M: Into<String>>(
    is_invalid: bool,
    name: &'static str,
    message: impl FnOnce() -> M,
) -> Result<()> {
    match is_invalid {
        true => Err(Error::invalid(name, message())),
        false => Ok(()),
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::InvalidParameter { name, message } => write!(f, "{name}: {message}"),
            Error::Damaged => f.write_str("the tables are damaged"),
            Error::OutOfMemory { num_bytes } => {
                write!(f, "cannot allocate {num_bytes} bytes of memory")
            }
            Error::Canceled => f.write_str("canceled"),
        }
    }
}

impl std::error::Error for Error {}
