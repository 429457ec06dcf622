//! Which data are collected from the rows in one pass, and how do they become tables?

use std::ops::Range;
use std::sync::Mutex;
use std::sync::atomic::AtomicBool;

use likewise_core::bands::{BandKey, NUM_LEVELS};
use likewise_core::parallel::{Cancel, lock};
use likewise_core::sketch::Signatures;
use likewise_hamming::Fingerprints;
use likewise_hamming::index::{Building as CoreBuilding, HammingSet, plan_for};
use xxhash_rust::xxh3::xxh3_64;

use super::layout::{BandPlan, HammingPlan};
use super::table::{PackedTable, entry, exact_remainder_bits, pack, row_bits, row_hash};
use super::tiers::{Building, Job, Pass, SegmentPlan};
use crate::environment::SegmentFile;
use crate::error::{Error, Result};
use crate::hamming_file::{FileFacts, write_hamming_to};

/// Bits of a hash that distinguish ids and classes with the same prefix; each false match costs a lookup in the store.
const ID_REMAINDER_BITS: u32 = 10;
/// The same for band keys, of which there are many.
const BAND_REMAINDER_BITS: u32 = 6;
const CANCEL_ROWS: u32 = 4096;

/// The rows that a segment holds: not gone in the first pass. Tables identify a row by its place among them.
#[derive(Debug, Clone, Default)]
pub(super) struct HeldRows {
    first: u32,
    num: u32,
    /// The rows, or empty as long as they are consecutive.
    listed: Vec<u32>,
}

impl HeldRows {
    fn begin(first: u32) -> Self {
        HeldRows {
            first,
            ..HeldRows::default()
        }
    }

    pub(super) fn len(&self) -> u32 {
        self.num
    }

    /// Appends a row; returns its place.
    fn push(&mut self, row: u32) -> u32 {
        let follows = row == self.first + self.num;
        if !follows && self.listed.is_empty() {
            self.listed = (self.first..self.first + self.num).collect();
        }
        if !follows || !self.listed.is_empty() {
            self.listed.push(row);
        }
        self.num += 1;
        self.num - 1
    }

    fn row(&self, place: u32) -> u32 {
        match self.listed.get(place as usize) {
            Some(&row) => row,
            None => self.first + place,
        }
    }

    /// Returns the rows, two per word, or `None` if they are consecutive.
    pub(super) fn words(&self) -> Option<Vec<u64>> {
        let pairs = self.listed.chunks(2);
        let word = |pair: &[u32]| {
            let high = pair.get(1).copied().unwrap_or(0);
            u64::from(pair[0]) | u64::from(high) << 32
        };
        (!self.listed.is_empty()).then(|| pairs.map(word).collect())
    }
}

/// One bit per held row.
pub(super) struct RowBits {
    pub(super) kept: Vec<u64>,
    pub(super) found: Vec<u64>,
    pub(super) short: Vec<u64>,
}

impl RowBits {
    pub(super) fn num_found(&self) -> u32 {
        self.found.iter().map(|word| word.count_ones()).sum()
    }
}

/// The data for the tables, collected from the rows so far.
pub(super) struct Gathered {
    pub(super) bits: RowBits,
    pub(super) held: HeldRows,
    rows: Range<u32>,
    /// Minimum of the next row.
    next_row: u32,
    /// In later passes, the place of the next held row.
    next_place: Option<u32>,
    row_bits: u32,
    ids: Option<Vec<u64>>,
    groups: Option<Vec<(u32, u32)>>,
    classes: Option<Vec<u64>>,
    codes: Option<Codes>,
    bands: Vec<BandEntries>,
    sketch_bytes: Option<usize>,
}

struct Codes {
    num_words: usize,
    words: Vec<u64>,
    rows: Vec<u32>,
}

struct BandEntries {
    band: u32,
    /// Keys of each level.
    keys: [BandKey; NUM_LEVELS as usize],
    entries: Vec<u64>,
}

impl Gathered {
    /// Prepares to collect at most `most` rows of a range; in later passes, those that the first one found.
    pub(super) fn new(
        jobs: &[Job],
        plan: &SegmentPlan,
        rows: &Range<u32>,
        most: u32,
        held: Option<HeldRows>,
    ) -> Self {
        let most = most as usize;
        let num_words = most.div_ceil(64);
        // Unused capacity takes only addresses, not memory.
        let vec_of = |job| jobs.contains(&job).then(|| Vec::with_capacity(most));
        let bands = jobs.iter().filter_map(|job| match (job, plan.bands) {
            (Job::Band(band), Some(plan)) => Some(BandEntries::new(*band, &plan, most)),
            _ => None,
        });
        let hamming = plan.hamming.filter(|_| jobs.contains(&Job::Hamming));
        let sketch_bytes = match (plan.bands, plan.hamming) {
            (Some(bands), _) => Some((bands.num_slots * bands.slot_bytes) as usize),
            (None, Some(hamming)) => Some(hamming.bits.div_ceil(8) as usize),
            (None, None) => None,
        };
        Gathered {
            bits: RowBits {
                kept: vec![0; num_words],
                found: vec![0; num_words],
                short: vec![0; num_words],
            },
            rows: rows.clone(),
            next_row: rows.start,
            next_place: held.is_some().then_some(0),
            held: held.unwrap_or_else(|| HeldRows::begin(rows.start)),
            row_bits: row_bits(most as u32),
            ids: vec_of(Job::Ids),
            groups: jobs.contains(&Job::Groups).then(Vec::new),
            classes: vec_of(Job::Classes),
            codes: hamming.map(|plan| Codes {
                num_words: plan.bits.div_ceil(64) as usize,
                words: Vec::new(),
                rows: Vec::new(),
            }),
            bands: bands.collect(),
            sketch_bytes,
        }
    }

    pub(super) fn take(&mut self, row: &SourceRow<'_>, cancel: &AtomicBool) -> Result<()> {
        if row.row < self.next_row || row.row >= self.rows.end {
            return Err(self.other_rows(row.row));
        }
        self.next_row = row.row + 1;
        if row.row.is_multiple_of(CANCEL_ROWS) {
            cancel.check()?;
        }
        let place = match self.next_place {
            // Held rows must not be skipped before the end.
            Some(next) if next < self.held.len() && row.row > self.held.row(next) => {
                return Err(self.other_rows(row.row));
            }
            Some(next) if next == self.held.len() || row.row < self.held.row(next) => return Ok(()),
            Some(next) => {
                self.next_place = Some(next + 1);
                next
            }
            None if row.is_gone => return Ok(()),
            None => self.held.push(row.row),
        };
        if place as usize >= 64 * self.bits.kept.len() {
            return Err(self.other_rows(row.row));
        }
        let (word, bit) = ((place / 64) as usize, 1 << (place % 64));
        if row.leader.is_none() && !row.is_gone {
            self.bits.kept[word] |= bit;
        }
        if row.is_short {
            self.bits.short[word] |= bit;
        }
        if let Some(ids) = &mut self.ids {
            ids.push(entry(xxh3_64(row.id.as_bytes()), place, self.row_bits));
        }
        if row.is_gone {
            return Ok(());
        }
        if let (Some(groups), Some(leader)) = (&mut self.groups, row.leader) {
            groups.push((leader, place));
        }
        if let (Some(classes), Some(class)) = (&mut self.classes, row.class) {
            classes.push(entry(class, place, self.row_bits));
        }
        if row.is_found {
            self.bits.found[word] |= bit;
            self.take_sketch(row, place)?;
        }
        Ok(())
    }

    fn take_sketch(&mut self, row: &SourceRow<'_>, place: u32) -> Result<()> {
        if self.codes.is_none() && self.bands.is_empty() {
            return Ok(());
        }
        if let Some(codes) = &mut self.codes {
            // Whole words, or only as many bytes as the bits need.
            let is_whole = row.sketch.len() == 8 * codes.num_words;
            if !is_whole && Some(row.sketch.len()) != self.sketch_bytes {
                return Err(other_sketch(row));
            }
            for bytes in row.sketch.chunks(8) {
                let mut word = [0; 8];
                word[..bytes.len()].copy_from_slice(bytes);
                codes.words.push(u64::from_le_bytes(word));
            }
            codes.rows.push(place);
        }
        if self.bands.is_empty() {
            return Ok(());
        }
        if Some(row.sketch.len()) != self.sketch_bytes {
            return Err(other_sketch(row));
        }
        let mut levels = row.levels.iter().peekable();
        for band in &mut self.bands {
            while levels
                .next_if(|(other, _)| u32::from(*other) < band.band)
                .is_some()
            {}
            let of_band = levels
                .peek()
                .filter(|(other, _)| u32::from(*other) == band.band);
            let level = of_band.map_or(0, |&&(_, level)| usize::from(level));
            // Rows that are members of no bucket cannot be found.
            if let Some(key) = band.keys.get_mut(level) {
                let hash = key.of(row.sketch);
                band.entries.push(entry(hash, place, self.row_bits));
            }
        }
        Ok(())
    }

    pub(super) fn check_complete(&self) -> Result<()> {
        match self.next_place.is_none_or(|next| next == self.held.len()) {
            true => Ok(()),
            false => Err(self.other_rows(self.next_row)),
        }
    }

    fn other_rows(&self, row: u32) -> Error {
        Error::invalid(
            "rows",
            format!(
                "the source does not give those of {:?} in order, or not all: row {row}",
                self.rows
            ),
        )
    }

    /// Returns the tables, packed by one thread each; the collected data are dropped.
    pub(super) fn pack(&mut self, building: Building<'_>) -> Result<Vec<(Job, PackedTable)>> {
        let bits = self.row_bits;
        let mut tables: Vec<(Job, u32, Vec<u64>)> = Vec::new();
        if let Some(ids) = self.ids.take() {
            tables.push((Job::Ids, ID_REMAINDER_BITS, ids));
        }
        if let Some(groups) = self.groups.take() {
            let exact = exact_remainder_bits(groups.len());
            let entries = groups
                .into_iter()
                .map(|(leader, place)| entry(row_hash(leader), place, bits))
                .collect();
            tables.push((Job::Groups, exact, entries));
        }
        if let Some(classes) = self.classes.take() {
            tables.push((Job::Classes, ID_REMAINDER_BITS, classes));
        }
        for band in self.bands.drain(..) {
            tables.push((Job::Band(band.band), BAND_REMAINDER_BITS, band.entries));
        }
        let tables: Vec<Mutex<(Job, u32, Vec<u64>)>> = tables.into_iter().map(Mutex::new).collect();
        let packed = building.run.each(tables.len(), |i| {
            let mut table = lock(&tables[i]);
            let (job, remainder_bits, mut entries) =
                (table.0, table.1, std::mem::take(&mut table.2));
            (job, pack(&mut entries, bits, remainder_bits))
        })?;
        Ok(packed)
    }

    /// Writes the tables of the fingerprints to a separate file.
    pub(super) fn write_fingerprints(
        &mut self,
        plan: &HammingPlan,
        file: &mut Box<dyn SegmentFile>,
        building: Building<'_>,
    ) -> Result<FileFacts> {
        let Codes { words, rows, .. } = self.codes.take().unwrap_or(Codes {
            num_words: 1,
            words: Vec::new(),
            rows: Vec::new(),
        });
        let fingerprints = Fingerprints::new(&words, plan.bits);
        let memory = plan
            .table_bytes
            .map(|bytes| f64::from(bytes) * rows.len().max(1) as f64);
        let search = plan_for(fingerprints, plan.within, true, memory, building.run.cancel)?;
        let means = CoreBuilding {
            isa: building.isa,
            run: building.run,
            memory_bytes: building.memory_bytes,
            with_rows: true,
        };
        let set = HammingSet::build(fingerprints, Some(&rows), search, means)?;
        write_hamming_to(&set, file, None, "", building.run.cancel)
    }
}

impl BandEntries {
    fn new(band: u32, plan: &BandPlan, num_rows: usize) -> Self {
        let shape = Signatures {
            bytes: &[],
            num_slots: plan.num_slots as usize,
            slot_bytes: plan.slot_bytes as usize,
        };
        BandEntries {
            band,
            keys: std::array::from_fn(|level| BandKey::new(&shape, band, plan.rows, level as u32)),
            entries: Vec::with_capacity(num_rows),
        }
    }
}

fn other_sketch(row: &SourceRow<'_>) -> Error {
    Error::invalid(
        "sketch",
        format!("that of row {} has {} bytes", row.row, row.sketch.len()),
    )
}

/// One document, as stored.
#[derive(Debug, Clone, Copy)]
pub struct SourceRow<'a> {
    pub row: u32,
    /// The user's id.
    pub id: &'a str,
    /// Its sketch; used if the document can be found by its sketch.
    pub sketch: &'a [u8],
    /// For a removed document, the row of the kept one that it matched; `None` for a kept one.
    pub leader: Option<u32>,
    /// Whether the user removed it or it has expired. Such rows are omitted.
    pub is_gone: bool,
    /// Whether it can be found by its sketch: it is the first of its class, and not empty.
    pub is_found: bool,
    /// Whether it is short: a mark of the caller, one bit per row.
    pub is_short: bool,
    /// Hash of the key of its class, if it is the first of one.
    pub class: Option<u64>,
    /// Bands and levels of the buckets above level 0, by band; above the last level it is not a member.
    pub levels: &'a [(u16, u8)],
}

/// Yields documents in order of row, from the store or from test data. Dropped rows are missing.
pub trait RowSource {
    /// The random identity of the database.
    fn identity(&self) -> [u8; 16];

    /// Identity of everything that determines the bytes of a sketch.
    fn sketch_id(&self) -> &str;

    /// The last event that every later [`each_row`](RowSource::each_row) reflects; replaying later ones sets states.
    fn last_event(&self) -> u64;

    /// Maximum number of rows in a range that [`each_row`](RowSource::each_row) yields and that are not gone.
    fn most_rows(&self, rows: &Range<u32>) -> u32 {
        rows.end - rows.start
    }

    /// Returns the identity of the last batch of the rows below `end`.
    fn batch_before(&self, end: u32) -> Result<u64>;

    /// Passes each row of the range that was not dropped to `each`, in order; a build may read the rows several times.
    fn each_row(
        &self,
        rows: Range<u32>,
        each: &mut dyn FnMut(&SourceRow<'_>) -> Result<()>,
    ) -> Result<()>;
}

impl Pass {
    /// Reads the rows once, collecting the data of one pass.
    pub(super) fn gather(
        &self,
        source: &dyn RowSource,
        plan: &SegmentPlan,
        rows: &Range<u32>,
        held: Option<HeldRows>,
        building: Building<'_>,
    ) -> Result<Gathered> {
        let most = source.most_rows(rows).max(1);
        let mut gathered = Gathered::new(&self.jobs, plan, rows, most, held);
        source.each_row(rows.clone(), &mut |row| {
            gathered.take(row, building.run.cancel)
        })?;
        gathered.check_complete()?;
        Ok(gathered)
    }
}

#[cfg(test)]
mod tests {
    use super::super::layout::{BandPlan, HammingPlan};
    use super::super::tiers::passes;
    use super::*;

    #[test]
    fn passes_hold_what_the_memory_holds_and_one_table_at_least() {
        let plan = SegmentPlan {
            hamming: Some(HammingPlan {
                bits: 96,
                within: 3,
                table_bytes: None,
            }),
            bands: Some(BandPlan {
                num_slots: 8,
                slot_bytes: 2,
                bands: 3,
                rows: 2,
            }),
        };
        use Job::{Band, Classes, Groups, Hamming, Ids};
        let all = vec![Ids, Groups, Classes, Hamming, Band(0), Band(1), Band(2)];
        let jobs = |memory| -> Vec<Vec<Job>> {
            let passes = passes(&plan, 1000, memory);
            passes.into_iter().map(|pass| pass.jobs).collect()
        };
        assert_eq!(jobs(152_000), std::slice::from_ref(&all));
        let single: Vec<Vec<Job>> = all.iter().map(|&job| vec![job]).collect();
        assert_eq!(jobs(0), single);
        let cut = [
            vec![Ids, Groups],
            vec![Classes],
            vec![Hamming],
            vec![Band(0), Band(1)],
            vec![Band(2)],
        ];
        assert_eq!(jobs(40_000), cut);
    }
}
