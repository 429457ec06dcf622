//! How is a segment built?
//!
//! One pass over the rows collects the entries of as many tables as memory can hold. Each thread then sorts and packs
//! one table at a time, and the tables are appended to the file. Both files are synced before they get their final
//! names.

use std::ops::Range;
use std::path::{Path, PathBuf};

use super::MAX_SEGMENT_ROWS;
use super::gather::{Gathered, RowSource};
use super::layout::{
    ALIGNMENT, Description, Details, HAMMING_ENDING, HEADER_BYTES, HammingEntry, TABLES_ENDING,
    TableEntry,
};
use super::open::{ending, fresh_name, header, path_of, temporary_of};
use super::table::PackedTable;
use super::tiers::{Building, Job, Pass, SegmentPlan, passes};
use crate::environment::{Files, SegmentFile};
use crate::error::{Doing, Error, Result};
use crate::sections::{Section, SectionStream};
use crate::store::LiveSegment;
use likewise_core::error::invalid_if;

/// Builds the files of a segment of the rows in `dir`, durable under new names, unless all rows are gone; they are not
/// used before the store lists them. About 50 ns per row and table, and a pass over the source for each `memory_bytes`.
pub fn build_segment(
    dir: &Path,
    files: &dyn Files,
    source: &dyn RowSource,
    rows: Range<u32>,
    plan: &SegmentPlan,
    building: Building<'_>,
) -> Result<Option<LiveSegment>> {
    invalid_if(
        rows.is_empty() || source.most_rows(&rows) > MAX_SEGMENT_ROWS,
        "rows",
        || format!("{rows:?}; a segment has 1 to {MAX_SEGMENT_ROWS}"),
    )?;
    plan.check()?;
    let mut live = LiveSegment {
        name: fresh_name(files, &rows),
        // Read before the first pass: all later events are replayed.
        last_event: source.last_event(),
        batch: source.batch_before(rows.end)?,
        rows,
        details: String::new(),
    };
    create_directory(dir, files)?;
    let mut left = Left {
        files,
        paths: Vec::new(),
    };
    let build = Build {
        dir,
        files,
        source,
        plan,
        building,
    };
    let written = build.write(&mut live, &mut left);
    if let Ok(true) = written {
        left.paths.clear();
    }
    Ok(written?.then_some(live))
}

impl SegmentPlan {
    fn check(&self) -> Result<()> {
        let Some(plan) = self.bands else {
            return Ok(());
        };
        let num_taken = u64::from(plan.bands) * u64::from(plan.rows);
        let is_sound = [1, 2, 4].contains(&plan.slot_bytes)
            && (1..=u64::from(plan.num_slots)).contains(&num_taken)
            && plan.bands <= u32::from(u16::MAX);
        match is_sound {
            true => Ok(()),
            false => Err(Error::invalid("bands", format!("{plan:?} do not fit"))),
        }
    }
}

fn create_directory(dir: &Path, files: &dyn Files) -> Result<()> {
    if files.facts(dir).is_ok_and(|found| found.is_dir) {
        return Ok(());
    }
    let make = || {
        files.create_dir(dir)?;
        match dir.parent() {
            Some(parent) if !parent.as_os_str().is_empty() => files.sync_dir(parent),
            _ => files.sync_dir(Path::new(".")),
        }
    };
    make().doing("make the directory of segments")
}

/// Files that are deleted if a build fails.
struct Left<'a> {
    files: &'a dyn Files,
    paths: Vec<PathBuf>,
}

impl Drop for Left<'_> {
    fn drop(&mut self) {
        for path in &self.paths {
            // A file that cannot be deleted is an orphan, which the next writer deletes.
            let _ = self.files.unlink(path);
        }
    }
}

/// Locations of the tables' sections.
#[derive(Default)]
struct Written {
    ids: Option<TableEntry>,
    groups: Option<TableEntry>,
    classes: Option<TableEntry>,
    bands: Vec<TableEntry>,
    hamming: Option<HammingEntry>,
    rows: Option<Section>,
    bits: Option<[Section; 3]>,
    num_rows: u32,
    num_found: u32,
}

struct Build<'a> {
    dir: &'a Path,
    files: &'a dyn Files,
    source: &'a dyn RowSource,
    plan: &'a SegmentPlan,
    building: Building<'a>,
}

impl Build<'_> {
    /// Writes the files; returns whether there are any rows to hold.
    fn write(&self, live: &mut LiveSegment, left: &mut Left<'_>) -> Result<bool> {
        let tables = path_of(self.dir, &live.name, TABLES_ENDING);
        let temporary = temporary_of(&tables);
        let file = self.files.create(&temporary);
        let file = file.doing("create a segment")?;
        left.paths.push(temporary.clone());
        let mut stream = SectionStream::new(file, 0, ALIGNMENT, self.building.run.cancel)?;
        let header = header(live, self.source.identity());
        stream.put(&header)?;
        let mut written = Written::default();
        let most_rows = self.source.most_rows(&live.rows) as usize;
        let mut held = None;
        for pass in &passes(self.plan, most_rows, self.building.memory_bytes) {
            let is_first = held.is_none();
            let (source, building) = (self.source, self.building);
            let mut gathered = pass.gather(source, self.plan, &live.rows, held.take(), building)?;
            if is_first {
                if gathered.held.len() == 0 {
                    return Ok(false);
                }
                let num_words = (gathered.held.len() as usize).div_ceil(64);
                let bits = &gathered.bits;
                written.num_rows = gathered.held.len();
                written.num_found = bits.num_found();
                written.bits = Some([
                    stream.words(&bits.kept[..num_words])?,
                    stream.words(&bits.found[..num_words])?,
                    stream.words(&bits.short[..num_words])?,
                ]);
                if let Some(words) = gathered.held.words() {
                    written.rows = Some(stream.words(&words)?);
                }
            }
            held = Some(std::mem::take(&mut gathered.held));
            self.append(pass, &mut gathered, live, left, &mut stream, &mut written)?;
        }
        let json = describe(self.source.sketch_id(), self.plan, written)?;
        stream.align()?;
        let offset = stream.at;
        let ending = ending(&header, offset, &json);
        stream.put(&json)?;
        stream.put(&ending)?;
        let details = Details {
            num_bytes: stream.at,
            checksum: u64::from_le_bytes(std::array::from_fn(|i| ending[HEADER_BYTES - 8 + i])),
        };
        let mut file = stream.into_file()?;
        file.sync().doing("sync a segment")?;
        drop(file);
        live.details = serde_json::to_string(&details)
            .map_err(|e| Error::invalid("details", format!("cannot be written: {e}")))?;
        self.name_files(live, left)?;
        Ok(true)
    }

    /// Appends the tables of a pass; fingerprints are written to a separate file.
    fn append(
        &self,
        pass: &Pass,
        gathered: &mut Gathered,
        live: &LiveSegment,
        left: &mut Left<'_>,
        stream: &mut SectionStream<'_, Box<dyn SegmentFile>>,
        written: &mut Written,
    ) -> Result<()> {
        for (job, packed) in gathered.pack(self.building)? {
            let entry = append_table(stream, &packed)?;
            match job {
                Job::Ids => written.ids = Some(entry),
                Job::Groups => written.groups = Some(entry),
                Job::Classes => written.classes = Some(entry),
                // Bands arrive in order, pass by pass.
                Job::Band(_) => written.bands.push(entry),
                Job::Hamming => {}
            }
        }
        if let (true, Some(plan)) = (pass.jobs.contains(&Job::Hamming), self.plan.hamming) {
            let path = temporary_of(&path_of(self.dir, &live.name, HAMMING_ENDING));
            let file = self.files.create(&path);
            let mut file = file.doing("create a segment")?;
            left.paths.push(path);
            let facts = gathered.write_fingerprints(&plan, &mut file, self.building)?;
            file.sync().doing("sync a segment")?;
            written.hamming = Some(HammingEntry {
                num_bytes: facts.num_bytes,
                checksum: facts.checksum,
            });
        }
        Ok(())
    }

    /// Gives the durable files their final names.
    fn name_files(&self, live: &LiveSegment, left: &mut Left<'_>) -> Result<()> {
        // The tables are renamed last: a reader that finds them finds everything.
        let endings = [
            self.plan.hamming.map(|_| HAMMING_ENDING),
            Some(TABLES_ENDING),
        ];
        for ending in endings.into_iter().flatten() {
            let path = path_of(self.dir, &live.name, ending);
            let renamed = self.files.rename(&temporary_of(&path), &path);
            renamed.doing("rename a segment")?;
            left.paths.push(path);
        }
        self.files
            .sync_dir(self.dir)
            .doing("sync the directory of segments")
    }
}

fn append_table(
    stream: &mut SectionStream<'_, Box<dyn SegmentFile>>,
    packed: &PackedTable,
) -> Result<TableEntry> {
    Ok(TableEntry {
        shape: packed.shape,
        starts: stream.words(&packed.starts)?,
        unary: stream.words(&packed.unary)?,
        entries: stream.words(&packed.entries)?,
    })
}

fn describe(sketch_id: &str, plan: &SegmentPlan, written: Written) -> Result<Vec<u8>> {
    let (Some(ids), Some(groups), Some(classes), Some([kept, found, short])) =
        (written.ids, written.groups, written.classes, written.bits)
    else {
        return Err(Error::invalid("plan", "has no pass"));
    };
    let description = Description {
        sketch_id: sketch_id.to_owned(),
        num_rows: written.num_rows,
        num_found: written.num_found,
        rows: written.rows,
        kept,
        found,
        short,
        ids,
        groups,
        classes,
        band_plan: plan.bands,
        bands: written.bands,
        hamming: written.hamming,
    };
    serde_json::to_vec(&description)
        .map_err(|e| Error::invalid("description", format!("cannot be written: {e}")))
}
