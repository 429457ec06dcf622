//! Parquet files joined from separately encoded row groups.

use std::sync::Mutex;

use likewise_disk::parquet::damage::Damage;
use likewise_disk::parquet::join;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::array::take;
use crate::door::{Bytes, Object, run_short};
use crate::errors::{Failure, Result};

#[pyclass(frozen, module = "likewise._native")]
pub struct ParquetJoin {
    join: Mutex<join::FooterJoin>,
}

fn failed(damage: Damage) -> Failure {
    Failure::input(damage.to_string())
}

fn broken<T>(_: T) -> Failure {
    Failure::Internal("a join failed before".to_owned())
}

#[pymethods]
impl ParquetJoin {
    #[new]
    #[pyo3(signature = (footer=None))]
    fn new(footer: Option<&[u8]>) -> Result<Self> {
        let join = match footer {
            Some(footer) => join::FooterJoin::described_by(footer).map_err(failed)?,
            None => join::FooterJoin::default(),
        };
        Ok(ParquetJoin {
            join: Mutex::new(join),
        })
    }

    /// Joins one more complete file: returns the range of its bytes to write next.
    fn add(&self, py: Python<'_>, file: &Object<'_>) -> Result<(usize, usize)> {
        take!(file: u8);
        let bytes = file;
        let range = run_short(py, |_| {
            self.join.lock().map_err(broken)?.add(bytes).map_err(failed)
        })?;
        Ok((range.start, range.end))
    }

    /// The last bytes of the joined file.
    fn finish<'py>(&self, py: Python<'py>) -> Result<Bytes<'py>> {
        let footer = run_short(py, |_| {
            self.join.lock().map_err(broken)?.finish().map_err(failed)
        })?;
        Ok(PyBytes::new(py, &footer))
    }
}
