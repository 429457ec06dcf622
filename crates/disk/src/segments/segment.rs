//! Which lookups does an open segment support?

use std::ops::Range;
use std::path::Path;
use std::sync::atomic::AtomicBool;

use likewise_core::error::Error as CoreError;
use likewise_hamming::Fingerprints;
use likewise_hamming::index::{HammingSet, Matches, Reach, Words};

use super::layout::{Description, HAMMING_ENDING, TABLES_ENDING, TableEntry};
use super::open::{Expected, Opened, open_files};
use super::table::{BadBlock, Table, read, row_hash};
use crate::environment::Files;
use crate::error::Error;
use crate::sections::{Damage, Sections, damaged};
use crate::store::LiveSegment;

/// The reason reported for tables whose blocks are intact but inconsistent.
const CONTRADICTS: &str = "its directories are inconsistent with its lengths";

/// The mapped tables of a range of rows. Lookups return rows in ascending order for each key; keys are compared by some
/// bits of a hash, so the caller must compare.
pub struct Segment {
    live: LiveSegment,
    pub num_rows: u32,
    pub num_found: u32,
    pub num_bytes: u64,
    /// Two rows per word; absent if the rows are consecutive.
    rows: Option<Words>,
    kept: Words,
    found: Words,
    short: Words,
    ids: Table,
    groups: Table,
    classes: Table,
    bands: Vec<Table>,
    hamming: Option<HammingSet>,
    hamming_damage: Damage,
    sections: Sections,
    description: Description,
}

impl std::fmt::Debug for Segment {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "segment {} of rows {:?}", self.live.name, self.live.rows)
    }
}

impl Segment {
    /// Maps the files of a segment. Header, description, lengths and the checksums of blocks are checked, a block of a
    /// table when it is first read, or now with `verify`. [`Error::Damaged`] names what is wrong, also if the segment
    /// belongs to something else.
    pub fn open(
        dir: &Path,
        files: &dyn Files,
        live: &LiveSegment,
        expected: &Expected<'_>,
        verify: bool,
        cancel: &AtomicBool,
    ) -> Result<Self, Error> {
        let Opened {
            sections,
            description,
            hamming,
            num_bytes,
        } = open_files(dir, files, live, expected, verify, cancel)?;
        let table = |name: &str, entry: &TableEntry| table_of(&sections, name, entry);
        let num_rows = description.num_rows as usize;
        let words_of = |name: &str, section, num_words| match sections.guarded(name, section) {
            Ok(words) if words.as_slice().len() == num_words => Ok(words),
            Ok(_) => Err(damaged(format!("{name} has another length than the rows"))),
            Err(error) => Err(error),
        };
        let bits = |name: &str, section| words_of(name, section, num_rows.div_ceil(64));
        let (hamming, hamming_damage) = match hamming {
            Some(opened) => (Some(opened.set), opened.damage),
            None => (None, Damage::default()),
        };
        Ok(Segment {
            live: live.clone(),
            num_rows: description.num_rows,
            num_found: description.num_found,
            num_bytes,
            rows: description
                .rows
                .map(|rows| words_of("rows", rows, num_rows.div_ceil(2)))
                .transpose()?,
            kept: bits("kept", description.kept)?,
            found: bits("found", description.found)?,
            short: bits("short", description.short)?,
            ids: table("ids", &description.ids)?,
            groups: table("groups", &description.groups)?,
            classes: table("classes", &description.classes)?,
            bands: description
                .bands
                .iter()
                .enumerate()
                .map(|(band, entry)| table(&format!("band {band}"), entry))
                .collect::<Result<_, _>>()?,
            hamming,
            hamming_damage,
            sections,
            description,
        })
    }

    pub fn name(&self) -> &str {
        &self.live.name
    }

    /// The range of rows that it covers. It does not hold those that were gone when it was built.
    pub fn rows(&self) -> Range<u32> {
        self.live.rows.clone()
    }

    /// Returns the row at a place among the held rows. [`hamming`](Self::hamming) identifies rows by place.
    pub fn row_at(&self, place: u32) -> Result<u32, Error> {
        match &self.rows {
            None => Ok(self.live.rows.start.saturating_add(place)),
            Some(_) if place >= self.num_rows => Err(self.bad_block()),
            Some(rows) => self.listed(rows, place),
        }
    }

    /// The first row, if all held rows are consecutive from there: [`row_at`](Self::row_at) is then an addition.
    pub fn first_of_all(&self) -> Option<u32> {
        self.rows.is_none().then_some(self.live.rows.start)
    }

    fn listed(&self, rows: &Words, place: u32) -> Result<u32, Error> {
        let word = read(rows, u64::from(place / 2)).map_err(|BadBlock| self.bad_block())?;
        Ok((word >> (32 * (place % 2))) as u32)
    }

    /// Returns how many rows below `row` it holds.
    pub fn num_below(&self, row: u32) -> Result<u32, Error> {
        let Some(rows) = &self.rows else {
            let above = row.saturating_sub(self.live.rows.start);
            return Ok(above.min(self.num_rows));
        };
        let (mut low, mut high) = (0, self.num_rows);
        while low < high {
            let middle = low + (high - low) / 2;
            match self.listed(rows, middle)? < row {
                true => low = middle + 1,
                false => high = middle,
            }
        }
        Ok(low)
    }

    pub fn holds(&self, row: u32) -> Result<bool, Error> {
        Ok(self.place_of(row)?.is_some())
    }

    fn place_of(&self, row: u32) -> Result<Option<u32>, Error> {
        if !self.live.rows.contains(&row) {
            return Ok(None);
        }
        let place = self.num_below(row)?;
        let is_there = place < self.num_rows && self.row_at(place)? == row;
        Ok(is_there.then_some(place))
    }

    pub fn last_event(&self) -> u64 {
        self.live.last_event
    }

    pub fn sizes(&self) -> Vec<(&'static str, u64)> {
        let of = |table: &TableEntry| {
            let sections = [table.starts, table.unary, table.entries];
            sections.iter().map(|section| section.num_bytes).sum()
        };
        let description = &self.description;
        let rows = [
            Some(description.kept),
            Some(description.found),
            Some(description.short),
            description.rows,
        ];
        vec![
            ("ids", of(&description.ids)),
            ("groups", of(&description.groups)),
            ("classes", of(&description.classes)),
            ("bands", description.bands.iter().map(of).sum()),
            (
                "bits",
                rows.iter().flatten().map(|section| section.num_bytes).sum(),
            ),
            (
                "fingerprints",
                description.hamming.map_or(0, |entry| entry.num_bytes),
            ),
        ]
    }

    /// Appends the rows whose id may have this hash (XXH3-64).
    pub fn rows_of_id(&self, hash: u64, out: &mut Vec<u32>) -> Result<(), Error> {
        self.find_one(&self.ids, hash, out)
    }

    /// Same as [`rows_of_id`](Self::rows_of_id) for many hashes, with overlapping cache misses; appends the place of
    /// the hash with each row.
    pub fn rows_of_ids(&self, hashes: &[u64], out: &mut Vec<(u32, u32)>) -> Result<(), Error> {
        self.find(&self.ids, hashes, out)
    }

    /// Appends the first rows of classes whose key may have this hash.
    pub fn rows_of_class(&self, hash: u64, out: &mut Vec<u32>) -> Result<(), Error> {
        self.find_one(&self.classes, hash, out)
    }

    /// Same as [`rows_of_class`](Self::rows_of_class) for many hashes.
    pub fn rows_of_classes(&self, hashes: &[u64], out: &mut Vec<(u32, u32)>) -> Result<(), Error> {
        self.find(&self.classes, hashes, out)
    }

    /// Appends the members of a band whose key may be this one, at the level where they are members.
    pub fn bucket(&self, band: u32, key: u64, out: &mut Vec<u32>) -> Result<(), Error> {
        self.find_one(self.band(band)?, key, out)
    }

    pub fn buckets(&self, band: u32, keys: &[u64], out: &mut Vec<(u32, u32)>) -> Result<(), Error> {
        self.find(self.band(band)?, keys, out)
    }

    /// Returns whether a row was kept when the segment was built; false if it is not held.
    pub fn is_kept(&self, row: u32) -> Result<bool, Error> {
        self.bit(&self.kept, row)
    }

    pub fn is_found(&self, row: u32) -> Result<bool, Error> {
        self.bit(&self.found, row)
    }

    pub fn is_short(&self, row: u32) -> Result<bool, Error> {
        self.bit(&self.short, row)
    }

    /// Appends the rows that were removed because of `leader`, a row of any segment, when this one was built.
    pub fn members(&self, leader: u32, out: &mut Vec<u32>) -> Result<(), Error> {
        self.find_one(&self.groups, row_hash(leader), out)
    }

    /// The fingerprints that can be found by distance, identified by their [places](Self::row_at).
    pub fn hamming(&self) -> Option<&HammingSet> {
        self.hamming.as_ref()
    }

    /// Searches these fingerprints; [`CoreError::Damaged`] is also recorded as [damage](Self::damage).
    pub fn search(
        &self,
        queries: Fingerprints<'_>,
        reach: Reach<'_>,
    ) -> Result<Option<Matches>, CoreError> {
        let Some(set) = &self.hamming else {
            return Ok(None);
        };
        let found = set.search(queries, reach);
        let damage = &self.hamming_damage;
        if matches!(found, Err(CoreError::Damaged)) {
            damage.note(|| CONTRADICTS.to_owned());
        }
        match damage.is_unreadable() {
            true => Err(CoreError::Damaged),
            false => found.map(Some),
        }
    }

    /// The damage found by any lookup since the segment was opened.
    pub fn damage(&self) -> Option<String> {
        let of = |damage: &Damage, ending| {
            let reason = damage.reason()?;
            Some(format!("{}.{ending}: {reason}", self.live.name))
        };
        of(&self.sections.damage, TABLES_ENDING)
            .or_else(|| of(&self.hamming_damage, HAMMING_ENDING))
    }

    /// Checks whether its files have changed since they were mapped, after which every lookup is an error.
    pub fn look(&self) {
        self.sections.damage.look();
        self.hamming_damage.look();
    }

    pub fn verify(&self, cancel: &AtomicBool) -> Result<(), Error> {
        for (name, section) in self.description.sections() {
            self.sections.verify(&name, section, cancel)?;
        }
        let Some(set) = &self.hamming else {
            return Ok(());
        };
        match set.verify(cancel) {
            Err(CoreError::Damaged) => Err(damaged(format!(
                "{}.{HAMMING_ENDING}: {}",
                self.live.name,
                self.hamming_damage.reason().unwrap_or("it is damaged")
            ))),
            other => Ok(other?),
        }
    }

    fn band(&self, band: u32) -> Result<&Table, Error> {
        self.bands.get(band as usize).ok_or_else(|| {
            let bands = self.bands.len();
            Error::invalid("band", format!("{band}; the segment has {bands}"))
        })
    }

    fn find_one(&self, table: &Table, hash: u64, out: &mut Vec<u32>) -> Result<(), Error> {
        let first = out.len();
        let found = table.find(&[hash], |_, place| out.push(place));
        self.proven(found)?;
        for place in &mut out[first..] {
            *place = self.row_at(*place)?;
        }
        Ok(())
    }

    fn find(&self, table: &Table, hashes: &[u64], out: &mut Vec<(u32, u32)>) -> Result<(), Error> {
        let first = out.len();
        let found = table.find(hashes, |of_hash, place| out.push((of_hash, place)));
        self.proven(found)?;
        for (_, place) in &mut out[first..] {
            *place = self.row_at(*place)?;
        }
        Ok(())
    }

    fn bit(&self, bits: &Words, row: u32) -> Result<bool, Error> {
        let Some(place) = self.place_of(row)? else {
            return Ok(false);
        };
        let word = self.proven(read(bits, u64::from(place / 64)))?;
        Ok(word >> (place % 64) & 1 == 1)
    }

    /// Returns the result of a lookup if everything it read is intact.
    fn proven<T>(&self, found: Result<T, BadBlock>) -> Result<T, Error> {
        match found {
            Ok(found) if !self.sections.damage.is_unreadable() => Ok(found),
            _ => Err(self.bad_block()),
        }
    }

    #[cold]
    fn bad_block(&self) -> Error {
        let damage = &self.sections.damage;
        // Recorded, so that a table without a damaged block is also detected.
        if damage.reason().is_none() {
            damage.note(|| CONTRADICTS.to_owned());
        }
        let reason = damage.reason().unwrap_or(CONTRADICTS);
        damaged(format!("{}.{TABLES_ENDING}: {reason}", self.live.name))
    }
}

fn table_of(sections: &Sections, name: &str, entry: &TableEntry) -> Result<Table, Error> {
    let part = |part: &str, section| sections.guarded(&format!("{part} of {name}"), section);
    let table = Table::new(
        entry.shape,
        part("starts", entry.starts)?,
        part("directory", entry.unary)?,
        part("entries", entry.entries)?,
    );
    table.ok_or_else(|| damaged(format!("the lengths of {name} are inconsistent")))
}
