//! How is a set opened from a file?

use std::fs::File;
use std::path::Path;
use std::sync::atomic::AtomicBool;

use likewise_hamming::index::{
    Directory, HammingSet, Rows, SegmentParts, SetParts, Shape, SharedBytes, TableParts,
};
use likewise_hamming::plan::{Key, SearchPlan};
use xxhash_rust::xxh3::xxh3_64;

use super::layout::{Description, RowsEntry, SegmentEntry, TableEntry};
use super::{FileFacts, HEADER_BYTES, MAGIC, VERSION};
use crate::environment::OpenFile;
use crate::error::{Doing, Result};
use crate::sections::{Damage, Sections, damaged};

/// A set in a mapped file, and the caller's data stored with it.
#[derive(Debug)]
pub struct OpenedSet {
    /// The set; its tables are read from the file when they are used.
    pub set: HammingSet,
    pub ids: Option<Vec<u8>>,
    pub extra: String,
    /// Records damage of the file that a search finds.
    pub damage: Damage,
    /// Size of the file, and the checksum of its header, which covers all of it.
    pub facts: FileFacts,
}

/// Opens a file written by [`write_hamming_set`](super::write_hamming_set). Header, description, lengths, the checksums
/// of blocks, and copied sections are checked; a block of a table when it is first read, or now with `verify`. Of
/// damage, the search returns [`likewise_core::error::Error::Damaged`], and [`OpenedSet::damage`] states where.
pub fn open_hamming_set(path: &Path, verify: bool, cancel: &AtomicBool) -> Result<OpenedSet> {
    // The writer replaces files by renaming, so an open file keeps its old contents.
    let map = File::open(path).and_then(|file| file.map());
    hamming_set_of(map.doing("open")?, verify, cancel)
}

/// Same as [`open_hamming_set`], for the bytes of such a file.
pub(crate) fn hamming_set_of(
    bytes: SharedBytes,
    verify: bool,
    cancel: &AtomicBool,
) -> Result<OpenedSet> {
    let all: &[u8] = bytes.as_ref().as_ref();
    if all.len() < HEADER_BYTES {
        return Err(damaged("it is too short to be a Hamming index"));
    }
    let reader = Reader {
        sections: Sections::new(bytes, verify),
    };
    let description = reader.description()?;
    let copied = [
        ("tail_codes", Some(description.tail_codes)),
        ("tail_rows", Some(description.tail_rows)),
        ("removed", Some(description.removed)),
        ("ids", description.ids),
    ];
    for (name, section) in copied {
        if let Some(section) = section {
            reader.sections.verify(name, section, cancel)?;
        }
    }
    for (name, section) in description.sections() {
        match verify {
            true => reader.sections.verify(&name, section, cancel)?,
            false => reader.sections.checksums(&name, section).map(drop)?,
        }
    }
    reader.open(description)
}

struct Reader {
    sections: Sections,
}

impl Reader {
    fn description(&self) -> Result<Description> {
        let (sections, all) = (&self.sections, self.sections.all());
        if &all[..8] != MAGIC {
            return Err(damaged("not a Hamming index"));
        }
        let version = sections.number(8) as u32;
        if version != VERSION {
            return Err(damaged(format!(
                "it has version {version} of the format; this program reads version {VERSION}"
            )));
        }
        if sections.number(56) != xxh3_64(&all[..56])
            || sections.number(8) >> 32 != 0
            || sections.number(48) != 0
        {
            return Err(damaged("the header is damaged"));
        }
        let (offset, len, file_bytes) = (
            sections.number(16),
            sections.number(24),
            sections.number(32),
        );
        if file_bytes != all.len() as u64 {
            return Err(damaged(format!(
                "it has {} bytes; {file_bytes} were written",
                all.len()
            )));
        }
        let json = sections
            .part(offset, len)
            .filter(|json| xxh3_64(json) == sections.number(40))
            .ok_or_else(|| damaged("the description is damaged"))?;
        serde_json::from_slice(json)
            .map_err(|e| damaged(format!("the description cannot be read: {e}")))
    }

    fn open(&self, description: Description) -> Result<OpenedSet> {
        let keys = description
            .keys
            .iter()
            .map(|key| Key {
                mask: key.mask,
                radius: key.radius,
            })
            .collect();
        let plan = SearchPlan::new(description.bits, description.within, keys)
            .map_err(|e| damaged(format!("its plan is not valid: {e}")))?;
        let tail_rows = self.sections.bytes_of("tail_rows", description.tail_rows)?;
        let parts = SetParts {
            plan,
            segments: description
                .segments
                .iter()
                .enumerate()
                .map(|(number, segment)| self.segment(number, segment))
                .collect::<Result<_>>()?,
            tail_codes: self
                .sections
                .words(description.tail_codes)?
                .as_slice()
                .to_vec(),
            tail_rows: tail_rows
                .chunks_exact(4)
                .map(|b| u32::from_le_bytes([b[0], b[1], b[2], b[3]]))
                .collect(),
            removed: self
                .sections
                .words(description.removed)?
                .as_slice()
                .to_vec(),
            num_removed_present: description.num_removed_present,
            next_row: description.next_row,
        };
        if parts.tail_rows.len() != description.num_tail_rows {
            return Err(damaged("the tail is damaged"));
        }
        let ids = description
            .ids
            .map(|ids| self.sections.bytes_of("ids", ids).map(<[u8]>::to_vec))
            .transpose()?;
        let set = HammingSet::of_parts(parts)
            .map_err(|_| damaged("the lengths of its sections are inconsistent"))?;
        Ok(OpenedSet {
            set,
            ids,
            extra: description.extra,
            damage: self.sections.damage.clone(),
            facts: FileFacts {
                num_bytes: self.sections.all().len() as u64,
                checksum: self.sections.number(HEADER_BYTES - 8),
            },
        })
    }

    fn segment(&self, number: usize, entry: &SegmentEntry) -> Result<SegmentParts> {
        let tables = entry.tables.iter().enumerate();
        Ok(SegmentParts {
            tables: tables
                .map(|(table, entry)| {
                    self.table(&format!("table {table} of segment {number}"), entry)
                })
                .collect::<Result<_>>()?,
            rows: entry
                .rows
                .as_ref()
                .map(|rows| self.rows(&format!("segment {number}"), rows))
                .transpose()?,
        })
    }

    fn table(&self, of: &str, entry: &TableEntry) -> Result<TableParts> {
        Ok(TableParts {
            directory: Directory {
                shape: Shape {
                    prefix_bits: entry.prefix_bits,
                    line_shift: entry.line_shift,
                    is_unary: entry.is_unary,
                },
                lines: self
                    .sections
                    .guarded(&format!("lines of {of}"), entry.lines)?,
                escapes: self
                    .sections
                    .guarded(&format!("escapes of {of}"), entry.escapes)?,
            },
            num_entries: entry.num_entries,
            residuals: self
                .sections
                .guarded(&format!("residuals of {of}"), entry.residuals)?,
            rest: self
                .sections
                .guarded(&format!("rest of {of}"), entry.rest)?,
        })
    }

    fn rows(&self, of: &str, entry: &RowsEntry) -> Result<Rows> {
        Ok(Rows {
            numbers: self
                .sections
                .guarded(&format!("numbers of {of}"), entry.numbers)?,
            width: entry.width,
            group_ends: self
                .sections
                .guarded(&format!("group_ends of {of}"), entry.group_ends)?,
            group_rows: self
                .sections
                .guarded(&format!("group_rows of {of}"), entry.group_rows)?,
            num_rows: entry.num_rows,
        })
    }
}
