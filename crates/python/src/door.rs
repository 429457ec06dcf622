//! Running work outside the interpreter lock.
//!
//! Every entry point releases the interpreter lock, turns a panic into `LikewiseError`, and, if the work may take long,
//! lets Ctrl-C stop it.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::sync::{Mutex, MutexGuard};
use std::time::Duration;

use likewise_core::isa::Isa;
use likewise_core::parallel::lock;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyString};

use crate::errors::{Failure, Result};

/// What Python gives and gets.
pub type Object<'py> = Bound<'py, PyAny>;
pub type Bytes<'py> = Bound<'py, PyBytes>;
pub type Dict<'py> = Bound<'py, PyDict>;
pub type Str<'py> = Bound<'py, PyString>;

/// How often a waiting caller checks for Ctrl-C.
const SIGNAL_INTERVAL: Duration = Duration::from_millis(50);

/// Work on more bytes than this may take over about 10 ms, so Ctrl-C is checked for. Shorter work starts no thread.
pub const LONG_BYTES: usize = 4 << 20;

/// Runs short work with the interpreter lock released.
pub fn run_short<T, F>(py: Python<'_>, work: F) -> Result<T>
where
    T: Send,
    F: FnOnce(&AtomicBool) -> Result<T> + Send,
{
    py.detach(|| caught(|| work(&AtomicBool::new(false))))
}

/// Runs work with the interpreter lock released; `num_bytes` is its size. Long work runs on a second thread while this
/// one checks for Ctrl-C, which sets the flag passed to the work.
pub fn run<T, F>(py: Python<'_>, num_bytes: usize, work: F) -> Result<T>
where
    T: Send,
    F: FnOnce(&AtomicBool) -> Result<T> + Send,
{
    if num_bytes < LONG_BYTES {
        return run_short(py, work);
    }
    let cancel = AtomicBool::new(false);
    py.detach(|| {
        std::thread::scope(|scope| {
            let (sender, receiver) = channel();
            let cancel = &cancel;
            scope.spawn(move || {
                // The receiver lives until a result has arrived.
                let _ = sender.send(caught(|| work(cancel)));
            });
            let mut interrupt = None;
            let result = loop {
                match receiver.recv_timeout(SIGNAL_INTERVAL) {
                    Ok(result) => break result,
                    Err(RecvTimeoutError::Timeout) => {
                        if interrupt.is_none() {
                            interrupt = Python::attach(|py| py.check_signals()).err();
                            cancel.store(interrupt.is_some(), Ordering::Relaxed);
                        }
                    }
                    Err(RecvTimeoutError::Disconnected) => {
                        break Err(Failure::Internal(
                            "a thread ended without a result".to_owned(),
                        ));
                    }
                }
            };
            match interrupt {
                Some(error) => Err(Failure::Python(error)),
                None => result,
            }
        })
    })
}

/// Runs work and turns a panic into [`Failure::Internal`].
pub fn caught<T>(work: impl FnOnce() -> Result<T>) -> Result<T> {
    catch_unwind(AssertUnwindSafe(work))
        .unwrap_or_else(|panic| Err(Failure::Internal(panic_text(panic.as_ref()))))
}

fn panic_text(panic: &(dyn Any + Send)) -> String {
    if let Some(text) = panic.downcast_ref::<&str>() {
        (*text).to_owned()
    } else if let Some(text) = panic.downcast_ref::<String>() {
        text.clone()
    } else {
        "panic".to_owned()
    }
}

/// Takes the lock of an object that no earlier call left unfinished.
pub fn held<'a, T>(mutex: &'a Mutex<T>, what: &str) -> Result<MutexGuard<'a, T>> {
    let failed = |_| Failure::Internal(format!("a {what} failed before"));
    mutex.lock().map_err(failed)
}

/// A dict of fields of a struct, by their names.
macro_rules! dict_of {
    ($py:expr, $from:expr; $($name:ident),+) => {{
        let dict = pyo3::types::PyDict::new($py);
        $(dict.set_item(stringify!($name), $from.$name)?;)+
        dict
    }};
}
pub(crate) use dict_of;

/// The instruction set of all calls; the best one unless a test chose another.
static CHOSEN_ISA: Mutex<Option<Isa>> = Mutex::new(None);

pub fn chosen_isa() -> Isa {
    lock(&CHOSEN_ISA).unwrap_or_else(Isa::best)
}

/// For tests: the instruction set of all calls from now on, by name; the best one for `None`.
#[pyfunction]
#[pyo3(signature = (name))]
pub fn use_isa(name: Option<&str>) -> Result<()> {
    let available: Vec<&str> = Isa::available().into_iter().map(Isa::name).collect();
    let named = |name| parse("isa", name, Isa::from_name(name), &available);
    *lock(&CHOSEN_ISA) = name.map(named).transpose()?;
    Ok(())
}

/// Measures of sets that candidates are found by.
pub const SET_MEASURES: [&str; 5] = ["jaccard", "dice", "cosine", "containment", "overlap"];

/// What parameter `parameter` names, if it is one of `names`.
pub fn parse<T>(parameter: &str, name: &str, found: Option<T>, names: &[&str]) -> Result<T> {
    found.ok_or_else(|| {
        let names = names.join(", ");
        Failure::parameter(parameter, format!("{name:?} is not one of {names}"))
    })
}

/// Rejects values of `name` that are not below `end`.
pub fn check_below(name: &str, values: &[u32], end: usize) -> Result<()> {
    match values.iter().max() {
        Some(&max) if max as usize >= end => Err(Failure::parameter(
            name,
            format!("{max} is not below {end}"),
        )),
        _ => Ok(()),
    }
}

/// Rejects two arrays of different lengths.
pub fn check_same_length(name: &str, length: usize, other: &str, expected: usize) -> Result<()> {
    match length == expected {
        true => Ok(()),
        false => Err(Failure::parameter(
            name,
            format!("has length {length}, but {other} has {expected}"),
        )),
    }
}

/// Rejects pairs, given as two arrays with their names, of different lengths or with values that are not below `end`.
pub fn check_pairs(a: (&str, &[u32]), b: (&str, &[u32]), end: usize) -> Result<()> {
    check_same_length(b.0, b.1.len(), a.0, a.1.len())?;
    check_below(a.0, a.1, end)?;
    check_below(b.0, b.1, end)
}

/// Rejects a range outside `0..end`.
pub fn check_range(lo: u32, hi: u32, end: usize) -> Result<std::ops::Range<u32>> {
    match lo <= hi && hi as usize <= end {
        true => Ok(lo..hi),
        false => Err(Failure::parameter(
            "hi",
            format!("the range {lo}..{hi} is not inside 0..{end}"),
        )),
    }
}
