//! How is an index file built from more fingerprints than memory holds?
//!
//! Tables are built one after another. The fingerprints are counted by cell and then read again, several times if
//! memory cannot hold all of them. In each pass the entries of some cells are collected, sorted, packed and appended.
//! The result is byte for byte the file that a set in memory would be saved as.
//!
//! Partitioning the fingerprints into files first would read less if memory is very small, but would write all of them
//! once more.

mod table;
#[cfg(test)]
mod tests;

use std::fs::File;
use std::path::Path;

use likewise_core::error::invalid_if;
use likewise_core::isa::Isa;
use likewise_core::parallel::Run;
use likewise_hamming::index::TableBuilder;
use likewise_hamming::plan::SearchPlan;

use super::HEADER_BYTES;
use super::layout::{SegmentEntry, TableEntry};
use super::section::section_bytes;
use super::write::{Ending, write_ending};
use crate::error::Error;
use crate::fingerprints::{FlatFingerprints, changed};
use crate::whole::write_whole;
use table::{Schedule, write_table};

/// The parameters of an index file to be built.
pub struct HammingBuild<'a> {
    pub source: &'a FlatFingerprints,
    /// Keys of the tables; at least one.
    pub plan: SearchPlan,
    pub with_rows: bool,
    pub ids: Option<&'a [u8]>,
    pub extra: &'a str,
    /// Approximate limit of anonymous memory, in bytes.
    pub memory_bytes: usize,
    pub run: Run<'a>,
    pub isa: Isa,
}

/// Receives the number of completed passes over the fingerprints, and their total.
pub type Progress<'a> = &'a mut (dyn FnMut(u64, u64) + Send);

impl HammingBuild<'_> {
    /// Returns the approximate size in bytes of the file, and of the temporary files during the build.
    pub fn num_bytes(&self) -> (u64, u64) {
        let num = self.source.num_fingerprints();
        let max_row = self.source.last_row().unwrap_or(0);
        let (mut bytes, mut beside) = (self.ids.map_or(0, <[u8]>::len) as u64 + (1 << 16), 0);
        for (index, key) in self.plan.keys().iter().enumerate() {
            let with_rows = self.with_rows && index == 0;
            let table = TableBuilder::new(self.source.bits, key, num, with_rows, 0);
            let [in_place, spooled] = table.bytes_an_entry(max_row);
            let [in_place, spooled] = [in_place, spooled].map(|bytes| (bytes * num as f64) as u64);
            bytes += section_bytes(8 * table.num_line_words() as u64)
                + section_bytes(in_place)
                + section_bytes(spooled);
            beside = beside.max(spooled);
        }
        (bytes, beside)
    }

    /// Writes the file, which is complete and synced under its name, or absent. Returns [`Error::InvalidParameter`] if
    /// there is too little memory or a fingerprint is too wide. Cost: for each table, one pass over the fingerprints to
    /// count them, and one for each `memory_bytes` of entries.
    pub fn write(&self, path: &Path, progress: Progress<'_>) -> Result<(), Error> {
        invalid_if(
            self.plan.keys().is_empty() || self.plan.bits != self.source.bits,
            "plan",
            || "must have a key, and the width of the fingerprints",
        )?;
        write_whole(path, |file, temporary| {
            self.write_all(file, temporary, progress)
        })
    }

    fn write_all(&self, file: &File, path: &Path, progress: Progress<'_>) -> Result<(), Error> {
        let mut at = HEADER_BYTES as u64;
        let mut tables: Vec<TableEntry> = Vec::new();
        let mut rows = None;
        let (mut done, num_tables) = (0, self.plan.keys().len());
        for index in 0..num_tables {
            let num_expected = tables
                .first()
                .map_or(self.source.num_fingerprints(), |table| table.num_entries);
            let with_rows = self.with_rows && index == 0;
            let key = &self.plan.keys()[index];
            let (builder, schedule) = Schedule::make(self, key, num_expected, with_rows)?;
            let num_rows = self.source.len as u64;
            let left =
                (schedule.waves.len() + (num_tables - index - 1) * schedule.num_passes()) as u64;
            let total = done + num_rows * (left + 1);
            let mut step = || {
                done += num_rows;
                progress(done, total);
            };
            let written;
            (written, at) = write_table(self, &builder, &schedule, (file, path, at), &mut step)?;
            if tables
                .first()
                .is_some_and(|first| first.num_entries != written.entry.num_entries)
            {
                return Err(changed());
            }
            tables.push(written.entry);
            rows = rows.or(written.rows);
        }
        let rows = match rows {
            None => None,
            Some(rows) => {
                let written;
                (written, at) = rows.write(file, at, self.run.cancel)?;
                Some(written)
            }
        };
        self.source.check_unchanged()?;
        let ending = Ending {
            plan: &self.plan,
            next_row: self.source.last_row().map_or(0, |row| u64::from(row) + 1),
            num_removed_present: 0,
            segments: vec![SegmentEntry { tables, rows }],
            tail_codes: &[],
            tail_rows: &[],
            removed: &self.source.missing_rows(),
            ids: self.ids,
            extra: self.extra,
        };
        write_ending(file, at, ending, self.run.cancel)
    }
}
