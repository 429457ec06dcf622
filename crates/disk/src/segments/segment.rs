//! What does an open segment answer?

use std::ops::Range;
use std::path::Path;
use std::sync::atomic::AtomicBool;

use likewise_core::hamming::index::HammingSet;

use crate::error::Error;
use crate::store::LiveSegment;

/// What a segment must belong to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Expected<'a> {
    /// The random identity of the database.
    pub identity: [u8; 16],
    /// Identity of what makes the bytes of a sketch.
    pub sketch_id: &'a str,
    /// Identity of the last batch of the segment's rows, as the database has it now.
    pub batch: u64,
}

/// The mapped tables of consecutive rows; answers are rows of the store, ascending for each key.
///
/// Keys are told apart by some bits of a hash only, so that a row that is found may have another key: whoever asks compares. Every row that
/// has the key is found.
#[derive(Debug)]
pub struct Segment {}

impl Segment {
    /// Maps the files of a segment. They must not change as long as it is used.
    ///
    /// Header, description, lengths and the checksums of all blocks are checked; a block of a table is checked when it is first read, with
    /// `verify` now.
    ///
    /// # Errors
    /// [`Error::Damaged`] naming what is wrong, also where it belongs to something else; [`Error::Io`]; [`Error::Cancelled`].
    pub fn open(
        dir: &Path,
        live: &LiveSegment,
        expected: &Expected<'_>,
        verify: bool,
        cancel: &AtomicBool,
    ) -> Result<Self, Error> {
        let _ = (dir, live, expected, verify, cancel);
        todo!()
    }

    /// Its name.
    pub fn name(&self) -> &str {
        todo!()
    }

    /// Its rows.
    pub fn rows(&self) -> Range<u32> {
        todo!()
    }

    /// The last event that it knows of.
    pub fn last_event(&self) -> u64 {
        todo!()
    }

    /// Rows that are found by their sketches.
    pub fn num_found(&self) -> u32 {
        todo!()
    }

    /// Bytes of its files.
    pub fn num_bytes(&self) -> u64 {
        todo!()
    }

    /// Appends the rows whose id may have this hash (XXH3-64), gone ones among them.
    ///
    /// # Errors
    /// [`Error::Damaged`] where a block that is needed is not what was written.
    pub fn rows_of_id(&self, hash: u64, out: &mut Vec<u32>) -> Result<(), Error> {
        let _ = (hash, out);
        todo!()
    }

    /// As [`rows_of_id`](Self::rows_of_id) of many, the misses of one hidden behind those of others: gives the place of each hash with each row.
    ///
    /// # Errors
    /// As [`rows_of_id`](Self::rows_of_id).
    pub fn rows_of_ids(&self, hashes: &[u64], out: &mut Vec<(u32, u32)>) -> Result<(), Error> {
        let _ = (hashes, out);
        todo!()
    }

    /// Appends the first rows of classes whose key may have this hash.
    ///
    /// # Errors
    /// As [`rows_of_id`](Self::rows_of_id); [`Error::InvalidParameter`] where the segment has no classes.
    pub fn rows_of_class(&self, hash: u64, out: &mut Vec<u32>) -> Result<(), Error> {
        let _ = (hash, out);
        todo!()
    }

    /// As [`rows_of_class`](Self::rows_of_class) of many.
    ///
    /// # Errors
    /// As [`rows_of_class`](Self::rows_of_class).
    pub fn rows_of_classes(&self, hashes: &[u64], out: &mut Vec<(u32, u32)>) -> Result<(), Error> {
        let _ = (hashes, out);
        todo!()
    }

    /// Appends the members of a band whose key, of the level where they are members, may be this one.
    ///
    /// # Errors
    /// As [`rows_of_id`](Self::rows_of_id); [`Error::InvalidParameter`] where there is no such band.
    pub fn bucket(&self, band: u32, key: u64, out: &mut Vec<u32>) -> Result<(), Error> {
        let _ = (band, key, out);
        todo!()
    }

    /// As [`bucket`](Self::bucket) of many keys of one band.
    ///
    /// # Errors
    /// As [`bucket`](Self::bucket).
    pub fn buckets(&self, band: u32, keys: &[u64], out: &mut Vec<(u32, u32)>) -> Result<(), Error> {
        let _ = (band, keys, out);
        todo!()
    }

    /// Whether a row was kept when the segment was built.
    ///
    /// # Errors
    /// As [`rows_of_id`](Self::rows_of_id).
    ///
    /// # Panics
    /// When it is not among the rows.
    pub fn is_kept(&self, row: u32) -> Result<bool, Error> {
        let _ = row;
        todo!()
    }

    /// Whether a row was gone when the segment was built.
    ///
    /// # Errors
    /// As [`rows_of_id`](Self::rows_of_id).
    ///
    /// # Panics
    /// When it is not among the rows.
    pub fn is_gone(&self, row: u32) -> Result<bool, Error> {
        let _ = row;
        todo!()
    }

    /// Whether a row is found by its sketch.
    ///
    /// # Errors
    /// As [`rows_of_id`](Self::rows_of_id).
    ///
    /// # Panics
    /// When it is not among the rows.
    pub fn is_found(&self, row: u32) -> Result<bool, Error> {
        let _ = row;
        todo!()
    }

    /// Appends the rows that were removed because of a kept one, which may stand in any segment, when this was built: exactly those.
    ///
    /// # Errors
    /// As [`rows_of_id`](Self::rows_of_id).
    pub fn members(&self, leader: u32, out: &mut Vec<u32>) -> Result<(), Error> {
        let _ = (leader, out);
        todo!()
    }

    /// The fingerprints that are found, where they are searched by distance. Row 0 of the set is the first row of the segment, and so on.
    pub fn hamming(&self) -> Option<&HammingSet> {
        todo!()
    }

    /// What was found to be damaged since it was opened, by whichever question came upon it.
    pub fn damage(&self) -> Option<&str> {
        todo!()
    }

    /// Checks every block now.
    ///
    /// # Errors
    /// [`Error::Damaged`] naming the first block that is not what was written; [`Error::Cancelled`].
    pub fn verify(&self, cancel: &AtomicBool) -> Result<(), Error> {
        let _ = cancel;
        todo!()
    }
}
