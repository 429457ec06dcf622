//! How is a set written to a file?

use std::fs::File;
use std::io::{Seek, Write};
use std::path::Path;
use std::sync::atomic::AtomicBool;

use likewise_hamming::index::{HammingSet, Rows, SegmentParts, TableParts, Words};
use likewise_hamming::plan::{Key, SearchPlan};
use xxhash_rust::xxh3::xxh3_64;
use zerocopy::IntoBytes;

use super::layout::{Description, KeyEntry, RowsEntry, SegmentEntry, TableEntry};
use super::{ALIGNMENT, FileFacts, HEADER_BYTES, MAGIC, VERSION};
use crate::environment::Fault;
use crate::error::{Doing, Error, Result};
use crate::sections::{Section, SectionStream};
use crate::whole::write_whole;

/// Writes a set to `path`, with the caller's ids and text. The file is complete and synced under its name, or absent.
pub fn write_hamming_set(
    set: &HammingSet,
    path: &Path,
    ids: Option<&[u8]>,
    extra: &str,
    cancel: &AtomicBool,
) -> Result<()> {
    write_whole(path, |file, _| {
        write_hamming_to(set, file, ids, extra, cancel)?;
        file.sync_all().doing("write")
    })
}

/// Writes a set from the start of an empty file, without syncing it.
pub(crate) fn write_hamming_to(
    set: &HammingSet,
    file: impl Write + Seek,
    ids: Option<&[u8]>,
    extra: &str,
    cancel: &AtomicBool,
) -> Result<FileFacts> {
    let mut writer = Writer {
        stream: SectionStream::new(file, 0, ALIGNMENT, cancel)?,
    };
    // The header is written last: a file without it is not valid.
    writer.stream.put(&[0; HEADER_BYTES])?;
    let parts = set.parts();
    let segments = parts
        .segments
        .iter()
        .map(|segment| writer.segment(segment))
        .collect::<Result<_>>()?;
    let ending = Ending {
        plan: &parts.plan,
        next_row: parts.next_row,
        num_removed_present: parts.num_removed_present,
        segments,
        tail_codes: &parts.tail_codes,
        tail_rows: &parts.tail_rows,
        removed: &parts.removed,
        ids,
        extra,
    };
    writer.finish(ending)
}

/// The parts of the file after the tables.
pub(super) struct Ending<'a> {
    pub(super) plan: &'a SearchPlan,
    pub(super) next_row: u64,
    pub(super) num_removed_present: usize,
    pub(super) segments: Vec<SegmentEntry>,
    pub(super) tail_codes: &'a [u64],
    pub(super) tail_rows: &'a [u32],
    pub(super) removed: &'a [u64],
    pub(super) ids: Option<&'a [u8]>,
    pub(super) extra: &'a str,
}

/// Writes the parts after the tables, from byte `at` on, and the header.
pub(super) fn write_ending(
    file: &File,
    at: u64,
    ending: Ending<'_>,
    cancel: &AtomicBool,
) -> Result<()> {
    let writer = Writer {
        stream: SectionStream::new(file, at, ALIGNMENT, cancel)?,
    };
    writer.finish(ending)?;
    file.sync_all().doing("write")
}

fn header(offset: u64, json: &[u8], file_bytes: u64) -> [u8; HEADER_BYTES] {
    let mut header = [0; HEADER_BYTES];
    header[..8].copy_from_slice(MAGIC);
    header[8..12].copy_from_slice(&VERSION.to_le_bytes());
    header[16..24].copy_from_slice(&offset.to_le_bytes());
    header[24..32].copy_from_slice(&(json.len() as u64).to_le_bytes());
    header[32..40].copy_from_slice(&file_bytes.to_le_bytes());
    header[40..48].copy_from_slice(&xxh3_64(json).to_le_bytes());
    let checksum = xxh3_64(&header[..56]);
    header[56..].copy_from_slice(&checksum.to_le_bytes());
    header
}

struct Writer<'a, W: Write> {
    stream: SectionStream<'a, W>,
}

impl<W: Write + Seek> Writer<'_, W> {
    fn finish(mut self, ending: Ending<'_>) -> Result<FileFacts> {
        let key_entry = |key: &Key| KeyEntry {
            mask: key.mask,
            radius: key.radius,
        };
        let tail_rows: Vec<u8> = ending
            .tail_rows
            .iter()
            .flat_map(|r| r.to_le_bytes())
            .collect();
        let description = Description {
            bits: ending.plan.bits,
            within: ending.plan.within,
            keys: ending.plan.keys().iter().map(key_entry).collect(),
            next_row: ending.next_row,
            num_removed_present: ending.num_removed_present,
            segments: ending.segments,
            tail_codes: self.stream.words(ending.tail_codes)?,
            num_tail_rows: ending.tail_rows.len(),
            tail_rows: self.stream.section(&tail_rows)?,
            removed: self.stream.words(ending.removed)?,
            ids: ending.ids.map(|ids| self.stream.section(ids)).transpose()?,
            extra: ending.extra.to_owned(),
        };
        let json = serde_json::to_vec(&description)
            .map_err(|e| Error::invalid("extra", format!("cannot be written: {e}")))?;
        self.stream.align()?;
        let offset = self.stream.at;
        self.stream.put(&json)?;
        let num_bytes = self.stream.at;
        let header = header(offset, &json, num_bytes);
        let mut file = self.stream.into_file()?;
        file.rewind()
            .and_then(|()| file.write_all(&header))
            .doing("write")?;
        Ok(FileFacts {
            num_bytes,
            checksum: xxh3_64(&header[..HEADER_BYTES - 8]),
        })
    }

    fn shared(&mut self, words: &Words) -> Result<Section> {
        // New checksums must not validate damaged data.
        let bad = || Error::Damaged {
            reason: "the tables are damaged".to_owned(),
        };
        if !words.all_good() {
            return Err(bad());
        }
        let section = self.stream.words(words.as_slice())?;
        // If the file was truncated meanwhile, zeros were copied.
        match Fault::of(words.as_slice().as_bytes()).is_set() {
            true => Err(bad()),
            false => Ok(section),
        }
    }

    fn segment(&mut self, segment: &SegmentParts) -> Result<SegmentEntry> {
        Ok(SegmentEntry {
            tables: segment
                .tables
                .iter()
                .map(|table| self.table(table))
                .collect::<Result<_>>()?,
            rows: segment
                .rows
                .as_ref()
                .map(|rows| self.rows(rows))
                .transpose()?,
        })
    }

    fn table(&mut self, table: &TableParts) -> Result<TableEntry> {
        let shape = table.directory.shape;
        Ok(TableEntry {
            prefix_bits: shape.prefix_bits,
            line_shift: shape.line_shift,
            is_unary: shape.is_unary,
            num_entries: table.num_entries,
            lines: self.shared(&table.directory.lines)?,
            residuals: self.shared(&table.residuals)?,
            rest: self.shared(&table.rest)?,
            escapes: self.shared(&table.directory.escapes)?,
        })
    }

    fn rows(&mut self, rows: &Rows) -> Result<RowsEntry> {
        Ok(RowsEntry {
            width: rows.width,
            num_rows: rows.num_rows,
            numbers: self.shared(&rows.numbers)?,
            group_ends: self.shared(&rows.group_ends)?,
            group_rows: self.shared(&rows.group_rows)?,
        })
    }
}
