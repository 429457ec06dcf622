//! Are the files of a segment present, complete, and of this database?

use std::ffi::OsStr;
use std::io::ErrorKind;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

use xxhash_rust::xxh3::xxh3_64;

use super::MAX_SEGMENT_ROWS;
use super::layout::{
    Description, Details, END_MAGIC, HAMMING_ENDING, HEADER_BYTES, HammingEntry, MAGIC,
    TABLES_ENDING, VERSION,
};
use crate::environment::Files;
use crate::error::{Doing, Error, Result};
use crate::hamming_file::{OpenedSet, hamming_set_of};
use crate::sections::{Sections, damaged};
use crate::store::LiveSegment;

/// The database state that a segment must match.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Expected<'a> {
    pub identity: [u8; 16],
    /// Identity of everything that determines the bytes of a sketch.
    pub sketch_id: &'a str,
    /// Identity of the last batch of the segment's rows, as recorded in the database.
    pub batch: u64,
}

/// Files that were found to belong to the segment.
pub(super) struct Opened {
    pub(super) sections: Sections,
    pub(super) description: Description,
    pub(super) hamming: Option<OpenedSet>,
    /// Total size of both files.
    pub(super) num_bytes: u64,
}

/// Returns the path of a segment's file with one of the extensions.
pub(super) fn path_of(dir: &Path, name: &str, ending: &str) -> PathBuf {
    dir.join(format!("{name}.{ending}"))
}

/// Returns the header of the file of tables, which identifies its database and rows.
pub(super) fn header(live: &LiveSegment, identity: [u8; 16]) -> [u8; HEADER_BYTES] {
    let mut header = [0; HEADER_BYTES];
    header[..8].copy_from_slice(MAGIC);
    header[8..12].copy_from_slice(&VERSION.to_le_bytes());
    header[16..32].copy_from_slice(&identity);
    header[32..36].copy_from_slice(&live.rows.start.to_le_bytes());
    header[36..40].copy_from_slice(&live.rows.end.to_le_bytes());
    header[40..48].copy_from_slice(&live.batch.to_le_bytes());
    header[48..56].copy_from_slice(&live.last_event.to_le_bytes());
    let checksum = xxh3_64(&header[..56]);
    header[56..].copy_from_slice(&checksum.to_le_bytes());
    header
}

/// Returns the last part of the file of tables, which follows the description.
pub(super) fn ending(header: &[u8; HEADER_BYTES], offset: u64, json: &[u8]) -> [u8; HEADER_BYTES] {
    let mut ending = [0; HEADER_BYTES];
    let num_bytes = offset + json.len() as u64 + HEADER_BYTES as u64;
    ending[..8].copy_from_slice(END_MAGIC);
    ending[8..16].copy_from_slice(&offset.to_le_bytes());
    ending[16..24].copy_from_slice(&(json.len() as u64).to_le_bytes());
    ending[24..32].copy_from_slice(&num_bytes.to_le_bytes());
    ending[32..40].copy_from_slice(&xxh3_64(json).to_le_bytes());
    ending[40..48].copy_from_slice(&header[56..]);
    let checksum = xxh3_64(&ending[..56]);
    ending[56..].copy_from_slice(&checksum.to_le_bytes());
    ending
}

/// Opens the files and checks everything except the blocks of the tables.
pub(super) fn open_files(
    dir: &Path,
    files: &dyn Files,
    live: &LiveSegment,
    expected: &Expected<'_>,
    verify: bool,
    cancel: &AtomicBool,
) -> Result<Opened> {
    let opened = open_tables(dir, files, live, expected, verify, cancel);
    let (sections, description) = opened.map_err(|error| named(error, live, TABLES_ENDING))?;
    let mut num_bytes = sections.all().len() as u64;
    let mut hamming = None;
    if let Some(entry) = description.hamming {
        let num_rows = description.num_rows;
        let opened = open_fingerprints(dir, files, live, (entry, num_rows), verify, cancel);
        hamming = Some(opened.map_err(|error| named(error, live, HAMMING_ENDING))?);
        num_bytes += entry.num_bytes;
    }
    Ok(Opened {
        sections,
        description,
        hamming,
        num_bytes,
    })
}

fn named(error: Error, live: &LiveSegment, ending: &str) -> Error {
    match error {
        Error::Damaged { reason } => damaged(format!("{}.{ending}: {reason}", live.name)),
        other => other,
    }
}

fn open_fingerprints(
    dir: &Path,
    files: &dyn Files,
    live: &LiveSegment,
    (entry, num_rows): (HammingEntry, u32),
    verify: bool,
    cancel: &AtomicBool,
) -> Result<OpenedSet> {
    let path = path_of(dir, &live.name, HAMMING_ENDING);
    let map = files.open(&path).and_then(|file| file.map());
    let map = map.doing("open a segment")?;
    let opened = hamming_set_of(map, verify, cancel)?;
    let found = HammingEntry {
        num_bytes: opened.facts.num_bytes,
        checksum: opened.facts.checksum,
    };
    if found != entry {
        return Err(damaged("it is not the file that the tables belong to"));
    }
    if opened.set.next_row() > u64::from(num_rows) {
        return Err(damaged("it has rows beyond those of the segment"));
    }
    Ok(opened)
}

fn open_tables(
    dir: &Path,
    files: &dyn Files,
    live: &LiveSegment,
    expected: &Expected<'_>,
    verify: bool,
    cancel: &AtomicBool,
) -> Result<(Sections, Description)> {
    let map = files
        .open(&path_of(dir, &live.name, TABLES_ENDING))
        .and_then(|file| file.map())
        .doing("open a segment")?;
    let sections = Sections::new(map, verify);
    let all = sections.all();
    if all.len() < 2 * HEADER_BYTES {
        return Err(damaged("it is too short to be a segment"));
    }
    if &all[..8] != MAGIC {
        return Err(damaged("not a segment"));
    }
    let version = sections.number(8) as u32;
    if version != VERSION {
        return Err(damaged(format!(
            "it has version {version} of the format; this program reads version {VERSION}"
        )));
    }
    if all[..HEADER_BYTES] != header(live, expected.identity) || live.batch != expected.batch {
        return Err(damaged(
            "it is not of this database and these rows, or its header is damaged",
        ));
    }
    let description = description(&sections, live)?;
    if description.num_rows == 0
        || description.num_rows > MAX_SEGMENT_ROWS
        || description.num_rows as usize > live.rows.len()
    {
        return Err(damaged(format!(
            "it cannot have {} of rows {:?}",
            description.num_rows, live.rows
        )));
    }
    if description.sketch_id != expected.sketch_id {
        return Err(damaged(format!(
            "its sketches are those of {}, not of {}",
            description.sketch_id, expected.sketch_id
        )));
    }
    for (name, section) in description.sections() {
        match verify {
            true => sections.verify(&name, section, cancel)?,
            false => sections.checksums(&name, section).map(drop)?,
        }
    }
    Ok((sections, description))
}

fn description(sections: &Sections, live: &LiveSegment) -> Result<Description> {
    let all = sections.all();
    let num_bytes = all.len() as u64;
    let details = serde_json::from_str(&live.details)
        .map_err(|_| damaged("the store does not say which bytes it has"))?;
    let at = all.len() - HEADER_BYTES;
    let found = Details {
        num_bytes,
        checksum: sections.number(at + 56),
    };
    if found != details {
        return Err(damaged(format!(
            "it has {num_bytes} bytes and is not the file that the store names"
        )));
    }
    let (offset, len) = (sections.number(at + 8), sections.number(at + 16));
    let json = sections
        .part(offset, len)
        .filter(|_| offset.checked_add(len) == Some(at as u64));
    let header = std::array::from_fn(|i| all[i]);
    match json {
        Some(json) if all[at..] == ending(&header, offset, json) => serde_json::from_slice(json)
            .map_err(|e| damaged(format!("the description cannot be read: {e}"))),
        _ => Err(damaged("the description is damaged")),
    }
}

const PREFIX: &str = "rows-";
/// Suffix of a file that does not have its final name yet.
const UNFINISHED: &str = ".unfinished";

pub(super) fn fresh_name(files: &dyn Files, rows: &Range<u32>) -> String {
    let number = files.name_number();
    format!("{PREFIX}{}-{}-{number:016x}", rows.start, rows.end)
}

/// Returns the name of a file while it is being written.
pub(super) fn temporary_of(path: &Path) -> PathBuf {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    path.with_file_name(format!(".{name}{UNFINISHED}"))
}

/// Deletes the files of segments that the store no longer lists, as far as possible, and returns the first failure;
/// mapped files on Windows remain for [`delete_orphans`].
pub fn unlink_segments(dir: &Path, files: &dyn Files, names: &[String]) -> Result<()> {
    let mut first = Ok(());
    for name in names {
        // The tables are deleted first: without them, no reader opens the rest.
        for ending in [TABLES_ENDING, HAMMING_ENDING] {
            match files.unlink(&path_of(dir, name, ending)) {
                Err(error) if error.kind() != ErrorKind::NotFound && first.is_ok() => {
                    first = Err(Error::io("delete a segment", error));
                }
                _ => {}
            }
        }
    }
    first
}

/// Deletes the files that a dead writer left, of all segments that are not `live`; returns their number. Only for the
/// writer, while it builds none.
pub fn delete_orphans(dir: &Path, files: &dyn Files, live: &[String]) -> Result<usize> {
    let entries = match files.list(dir) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(0),
        entries => entries.doing("read the directory of segments")?,
    };
    let mut num_deleted = 0;
    for entry in entries {
        if entry.is_file && is_orphan(&entry.name, live) {
            num_deleted += usize::from(files.unlink(&dir.join(&entry.name)).is_ok());
        }
    }
    Ok(num_deleted)
}

pub fn other_names(dir: &Path, files: &dyn Files, live: &[String]) -> Result<Vec<String>> {
    let entries = match files.list(dir) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries.doing("read the directory of segments")?,
    };
    let is_live = |name: &OsStr| {
        let mut paths = live.iter().flat_map(|live| {
            [TABLES_ENDING, HAMMING_ENDING].map(|ending| path_of(dir, live, ending))
        });
        paths.any(|path| path.file_name() == Some(name))
    };
    let others = entries.iter().filter(|entry| !is_live(&entry.name));
    Ok(others
        .map(|entry| entry.name.to_string_lossy().into_owned())
        .collect())
}

fn is_orphan(name: &OsStr, live: &[String]) -> bool {
    let Some(name) = name.to_str() else {
        return false;
    };
    let unfinished = name
        .strip_prefix('.')
        .and_then(|name| name.strip_suffix(UNFINISHED));
    let whole = unfinished.unwrap_or(name);
    let stem = [TABLES_ENDING, HAMMING_ENDING]
        .iter()
        .find_map(|ending| whole.strip_suffix(ending)?.strip_suffix('.'));
    stem.is_some_and(|stem| {
        let is_live = live.iter().any(|live| live == stem);
        stem.starts_with(PREFIX) && (unfinished.is_some() || !is_live)
    })
}

/// Returns the total size of the files of a segment; 0 if they are absent.
pub fn segment_bytes(dir: &Path, files: &dyn Files, name: &str) -> u64 {
    [TABLES_ENDING, HAMMING_ENDING]
        .iter()
        .filter_map(|ending| files.facts(&path_of(dir, name, ending)).ok())
        .map(|found| found.num_bytes)
        .sum()
}
