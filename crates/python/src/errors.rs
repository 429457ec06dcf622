//! Rust errors converted to errors of `likewise.errors`.

use std::io;
use std::path::Path;

use pyo3::exceptions::{PyKeyboardInterrupt, PyMemoryError, PyOSError};
use pyo3::prelude::*;

pub type Result<T, E = Failure> = std::result::Result<T, E>;

/// Any reason that ends a call. Becomes a Python error only while attached to the interpreter.
#[derive(Debug)]
pub enum Failure {
    /// `InvalidParameter(name, message)`.
    Parameter { name: String, message: String },
    /// `InvalidInput(message, file, row)`.
    Input {
        message: String,
        file: Option<String>,
        row: Option<u64>,
    },
    /// `OSError`, or the subclass for its number.
    System { source: io::Error, file: String },
    /// `LikewiseError("internal error: ...")`.
    Internal(String),
    /// `MemoryError`.
    Memory(String),
    /// `StoreError` or a subclass.
    Store {
        class: &'static str,
        message: String,
    },
    /// The work was asked to stop.
    Canceled,
    /// Raised by Python itself.
    Python(PyErr),
}

impl Failure {
    /// Builds [`Failure::Parameter`].
    pub fn parameter(name: &str, message: impl Into<String>) -> Self {
        Failure::Parameter {
            name: name.to_owned(),
            message: message.into(),
        }
    }

    /// Builds [`Failure::Input`] about a row, counted from 0.
    pub fn row(row: usize, message: impl Into<String>) -> Self {
        Failure::Input {
            message: message.into(),
            file: None,
            row: Some(row as u64),
        }
    }

    /// Builds [`Failure::Input`] about the whole input.
    pub fn input(message: impl Into<String>) -> Self {
        Failure::Input {
            message: message.into(),
            file: None,
            row: None,
        }
    }

    /// A system error on `file`.
    pub fn system(source: io::Error, file: &Path) -> Self {
        Failure::System {
            source,
            file: file.display().to_string(),
        }
    }

    /// A file error on `file`.
    pub fn disk(error: likewise_disk::Error, file: &Path) -> Self {
        use likewise_disk::Error;
        match error {
            Error::Io { source, .. } => Failure::system(source, file),
            Error::Changed { .. } | Error::Damaged { .. } | Error::NotRegular => Failure::Input {
                message: error.to_string(),
                file: Some(file.display().to_string()),
                row: None,
            },
            Error::InvalidParameter { name, message } => Failure::parameter(name, message),
            Error::Canceled => Failure::Canceled,
            other => Failure::Internal(other.to_string()),
        }
    }
}

impl Failure {
    /// An error of the index in a directory.
    pub fn index(error: likewise_index::Error, dir: &Path) -> Self {
        use likewise_disk::Error as Disk;
        use likewise_index::Error;
        let store = |class, error: &dyn std::fmt::Display| Failure::Store {
            class,
            message: format!("{}: {error}", dir.display()),
        };
        match error {
            Error::Input { position, reason } => Failure::row(position, reason),
            Error::UnknownId(_) => Failure::input(error.to_string()),
            Error::Forked => store("ForkedError", &error),
            Error::Disk(disk) => match disk {
                Disk::Forked => store("ForkedError", &disk),
                Disk::Locked { .. } => store("IndexLocked", &disk),
                Disk::Poisoned { .. } | Disk::Replaced { .. } => store("IndexPoisoned", &disk),
                Disk::Canceled | Disk::InvalidParameter { .. } => Failure::disk(disk, dir),
                Disk::Io { ref source, .. } if source.raw_os_error().is_some() => {
                    Failure::disk(disk, dir)
                }
                other => store("StoreError", &other),
            },
            other => store("StoreError", &other),
        }
    }
}

/// Names the file or directory of an error.
pub trait On<T> {
    fn on(self, file: &Path) -> Result<T>;
}

macro_rules! on {
    ($($error:ty: $failure:ident),*) => {$(
        impl<T> On<T> for Result<T, $error> {
            fn on(self, file: &Path) -> Result<T> {
                self.map_err(|error| Failure::$failure(error, file))
            }
        }
    )*};
}
on!(io::Error: system, likewise_disk::Error: disk, likewise_index::Error: index);

impl From<PyErr> for Failure {
    fn from(error: PyErr) -> Self {
        Failure::Python(error)
    }
}

impl From<likewise_core::error::Error> for Failure {
    fn from(error: likewise_core::error::Error) -> Self {
        use likewise_core::error::Error;
        match error {
            Error::InvalidParameter { name, message } => Failure::parameter(name, message),
            Error::Canceled => Failure::Canceled,
            Error::Damaged => Failure::input(error.to_string()),
            Error::OutOfMemory { .. } => Failure::Memory(error.to_string()),
            other => Failure::Internal(other.to_string()),
        }
    }
}

impl From<Failure> for PyErr {
    fn from(failure: Failure) -> Self {
        Python::attach(|py| match failure {
            Failure::Parameter { name, message } => raise(py, "InvalidParameter", (name, message)),
            Failure::Input { message, file, row } => {
                raise(py, "InvalidInput", (message, file, row))
            }
            Failure::System { source, file } => system_error(source, file),
            Failure::Store { class, message } => raise(py, class, (message,)),
            Failure::Internal(message) => {
                raise(py, "LikewiseError", (format!("internal error: {message}"),))
            }
            Failure::Memory(message) => PyMemoryError::new_err(message),
            Failure::Canceled => PyKeyboardInterrupt::new_err(()),
            Failure::Python(error) => error,
        })
    }
}

/// An instance of a class of `likewise.errors`.
fn raise<'py, A>(py: Python<'py>, class: &str, arguments: A) -> PyErr
where
    A: pyo3::call::PyCallArgs<'py>,
{
    let made = py
        .import("likewise.errors")
        .and_then(|module| module.getattr(class))
        .and_then(|class| class.call1(arguments));
    match made {
        Ok(value) => PyErr::from_value(value),
        Err(error) => error,
    }
}

fn system_error(source: io::Error, file: String) -> PyErr {
    match source.raw_os_error() {
        // If there is a number, Python picks the subclass, such as FileNotFoundError.
        Some(number) => {
            let text = source.to_string();
            let text = text
                .split(" (os error")
                .next()
                .unwrap_or_default()
                .to_owned();
            PyOSError::new_err((number, text, file))
        }
        None => PyOSError::new_err(format!("{file}: {source}")),
    }
}
