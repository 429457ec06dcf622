//! What can go wrong in the core, and what the caller can do about it.

pub type Result<T, E = Error> = std::result::Result<T, E>;

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A parameter is outside its range. The message names the value and the allowed range.
    #[error("{name}: {message}")]
    InvalidParameter {
        name: &'static str,
        /// The value found and the allowed range.
        message: String,
    },
    #[error("the tables are damaged")]
    Damaged,
    /// The system refuses to allocate memory.
    #[error("cannot allocate {num_bytes} bytes of memory")]
    OutOfMemory { num_bytes: usize },
    /// The caller asked the operation to stop.
    #[error("canceled")]
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
