//! Which batch runs added rows, and how many rows were there before?

use super::Store;
use super::bytes::{Cursor, Malformed, put_varint};
use super::database::{meta, set_meta};
use super::types::AddingRun;
use crate::error::Result;

/// Maximum number of remembered runs, the newest ones.
const MOST_RUNS: usize = 1000;
const NAME: &str = "runs";

/// A remembered run, and the end of the last rows that it added.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Remembered {
    run: AddingRun,
    end: u32,
}

impl Store {
    /// Returns the rows that the store had when a run first compared its documents; `None` if unknown or all expired.
    pub fn first_row_of_run(&self, identity: [u8; 16]) -> Result<Option<u32>> {
        let runs = self.remembered()?;
        let found = runs.iter().find(|other| other.run.identity == identity);
        Ok(found.map(|found| found.run.first_row))
    }

    /// Remembers that a run added the rows before `end`. Must be called in the transaction that adds them.
    pub(super) fn remember_run(&self, run: AddingRun, end: u32) -> Result<()> {
        let mut runs = self.remembered()?;
        let same = runs
            .iter_mut()
            .find(|other| other.run.identity == run.identity);
        match same {
            Some(same) => same.end = end,
            None => runs.push(Remembered { run, end }),
        }
        let surplus = runs.len().saturating_sub(MOST_RUNS);
        set_meta(&self.connection, NAME, &encoded(&runs[surplus..]))
    }

    /// Returns the runs whose rows have not all expired, oldest first.
    fn remembered(&self) -> Result<Vec<Remembered>> {
        let mut runs = match meta(&self.connection, NAME)? {
            Some(bytes) => decoded(&bytes)?,
            None => Vec::new(),
        };
        runs.retain(|remembered| remembered.end > self.position.expired_below);
        Ok(runs)
    }
}

fn encoded(runs: &[Remembered]) -> Vec<u8> {
    let mut out = Vec::with_capacity(runs.len() * 24);
    for Remembered { run, end } in runs {
        out.extend_from_slice(&run.identity);
        put_varint(&mut out, u64::from(run.first_row));
        put_varint(&mut out, u64::from(*end));
    }
    out
}

fn decoded(bytes: &[u8]) -> Result<Vec<Remembered>, Malformed> {
    let mut cursor = Cursor(bytes);
    let mut runs = Vec::new();
    while !cursor.0.is_empty() {
        let identity = cursor.take(16)?.try_into().map_err(|_| Malformed)?;
        let first_row = cursor.varint_u32()?;
        let end = cursor.varint_u32()?;
        runs.push(Remembered {
            run: AddingRun {
                identity,
                first_row,
            },
            end,
        });
    }
    Ok(runs)
}
