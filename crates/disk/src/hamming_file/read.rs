//! How is a set opened?

use std::fs::File;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use likewise_core::hamming::index::{
    HammingSet, RowParts, SegmentParts, SetParts, SharedBytes, TableParts, Words,
};
use likewise_core::hamming::plan::{Key, SearchPlan};
use memmap2::Mmap;
use xxhash_rust::xxh3::xxh3_64;

use super::layout::{Description, RowsEntry, Section, SegmentEntry, TableEntry};
use super::{BLOCK_BYTES, HEADER_BYTES, MAGIC, VERSION};
use crate::error::Error;

/// A set in a mapped file, and what its writer put beside it.
#[derive(Debug)]
pub struct OpenedSet {
    /// The set; its tables are read from the file when they are used.
    pub set: HammingSet,
    /// Ids as they were given.
    pub ids: Option<Vec<u8>>,
    /// Text as it was given.
    pub extra: String,
}

/// Opens a file that [`write_hamming_set`](super::write_hamming_set) wrote. The file must not change as long as the set is used.
///
/// Header, description and lengths are checked, and the sections that are copied: tail, removals, ids. With `verify` every block of every
/// section is. Without it a damaged table gives an error or wrong matches, and never a wild read.
///
/// # Errors
/// [`Error::Io`]; [`Error::Damaged`] naming what is wrong; [`Error::Cancelled`].
///
/// # Cost
/// Microseconds; with `verify` a reading of the file.
pub fn open_hamming_set(
    path: &Path,
    verify: bool,
    cancel: &AtomicBool,
) -> Result<OpenedSet, Error> {
    let file = File::open(path).map_err(|e| Error::io("open", e))?;
    let num_bytes = file.metadata().map_err(|e| Error::io("open", e))?.len();
    if num_bytes < HEADER_BYTES as u64 {
        return Err(damaged("it is too short to be a Hamming index"));
    }
    // SAFETY: the mapping is read only, and the caller was told that the file must not change; a file that is replaced, as the writer does,
    // stays as it was for whoever has it open.
    let map = unsafe { Mmap::map(&file) }.map_err(|e| Error::io("map", e))?;
    let bytes: SharedBytes = Arc::new(map);
    let reader = Reader {
        all: bytes.as_ref().as_ref(),
        bytes: &bytes,
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
            reader.verify(name, section, cancel)?;
        }
    }
    if verify {
        for (name, section) in description.sections() {
            reader.verify(&name, section, cancel)?;
        }
    }
    reader.open(description)
}

fn damaged(reason: impl Into<String>) -> Error {
    Error::Damaged {
        reason: reason.into(),
    }
}

struct Reader<'a> {
    all: &'a [u8],
    bytes: &'a SharedBytes,
}

impl Reader<'_> {
    fn number(&self, at: usize) -> u64 {
        u64::from_le_bytes(std::array::from_fn(|i| self.all[at + i]))
    }

    fn description(&self) -> Result<Description, Error> {
        if &self.all[..8] != MAGIC {
            return Err(damaged("it is no Hamming index"));
        }
        let version = self.number(8) as u32;
        if version != VERSION {
            return Err(damaged(format!(
                "it has version {version} of the format; this program reads version {VERSION}"
            )));
        }
        if self.number(56) != xxh3_64(&self.all[..56])
            || self.number(8) >> 32 != 0
            || self.number(48) != 0
        {
            return Err(damaged("the header is damaged"));
        }
        let (offset, len, file_bytes) = (self.number(16), self.number(24), self.number(32));
        if file_bytes != self.all.len() as u64 {
            return Err(damaged(format!(
                "it has {} bytes; {file_bytes} were written",
                self.all.len()
            )));
        }
        let json = self
            .part(offset, len)
            .filter(|json| xxh3_64(json) == self.number(40))
            .ok_or_else(|| damaged("the description is damaged"))?;
        serde_json::from_slice(json)
            .map_err(|e| damaged(format!("the description cannot be read: {e}")))
    }

    fn part(&self, offset: u64, len: u64) -> Option<&[u8]> {
        let offset = usize::try_from(offset).ok()?;
        let len = usize::try_from(len).ok()?;
        self.all.get(offset..offset.checked_add(len)?)
    }

    fn bytes_of(&self, name: &str, section: Section) -> Result<&[u8], Error> {
        self.part(section.offset, section.num_bytes)
            .ok_or_else(|| damaged(format!("{name} reaches beyond the end")))
    }

    /// Checks every block of a section.
    fn verify(&self, name: &str, section: Section, cancel: &AtomicBool) -> Result<(), Error> {
        let content = self.bytes_of(name, section)?;
        let num_blocks = content.len().div_ceil(BLOCK_BYTES) as u64;
        let checksums = self
            .part(section.checksums_offset(), 8 * num_blocks)
            .filter(|checksums| xxh3_64(checksums) == section.checksum)
            .ok_or_else(|| damaged(format!("the checksums of {name} are damaged")))?;
        let blocks = content.chunks(BLOCK_BYTES).zip(checksums.chunks_exact(8));
        for (number, (block, checksum)) in blocks.enumerate() {
            if cancel.load(Ordering::Relaxed) {
                return Err(Error::Cancelled);
            }
            if xxh3_64(block).to_le_bytes() != checksum {
                return Err(damaged(format!(
                    "block {number} of {name} is damaged, at byte {}",
                    section.offset + (number * BLOCK_BYTES) as u64
                )));
            }
        }
        Ok(())
    }

    fn words(&self, section: Section) -> Result<Words, Error> {
        let words = usize::try_from(section.offset)
            .ok()
            .filter(|_| section.num_bytes.is_multiple_of(8))
            .and_then(|at| Words::shared(self.bytes, at, (section.num_bytes / 8) as usize));
        words.ok_or_else(|| damaged("a section reaches beyond the end"))
    }

    fn open(&self, description: Description) -> Result<OpenedSet, Error> {
        let keys = description
            .keys
            .iter()
            .map(|key| Key {
                mask: key.mask,
                radius: key.radius,
            })
            .collect();
        let plan = SearchPlan::new(description.bits, description.within, keys)
            .map_err(|e| damaged(format!("its plan is refused: {e}")))?;
        let tail_rows = self.bytes_of("tail_rows", description.tail_rows)?;
        let parts = SetParts {
            plan,
            segments: description
                .segments
                .iter()
                .map(|segment| self.segment(segment))
                .collect::<Result<_, Error>>()?,
            tail_codes: self.words(description.tail_codes)?.as_slice().to_vec(),
            tail_rows: tail_rows
                .chunks_exact(4)
                .map(|b| u32::from_le_bytes([b[0], b[1], b[2], b[3]]))
                .collect(),
            removed: self.words(description.removed)?.as_slice().to_vec(),
            num_removed_present: description.num_removed_present,
            next_row: description.next_row,
        };
        if parts.tail_rows.len() != description.num_tail_rows {
            return Err(damaged("the tail is damaged"));
        }
        let ids = description
            .ids
            .map(|ids| self.bytes_of("ids", ids).map(<[u8]>::to_vec))
            .transpose()?;
        let set = HammingSet::of_parts(parts)
            .map_err(|_| damaged("lengths of its sections contradict each other"))?;
        Ok(OpenedSet {
            set,
            ids,
            extra: description.extra,
        })
    }

    fn segment(&self, entry: &SegmentEntry) -> Result<SegmentParts, Error> {
        Ok(SegmentParts {
            tables: entry
                .tables
                .iter()
                .map(|table| self.table(table))
                .collect::<Result<_, Error>>()?,
            rows: entry
                .rows
                .as_ref()
                .map(|rows| self.rows(rows))
                .transpose()?,
        })
    }

    fn table(&self, entry: &TableEntry) -> Result<TableParts, Error> {
        Ok(TableParts {
            prefix_bits: entry.prefix_bits,
            line_shift: entry.line_shift,
            is_unary: entry.is_unary,
            num_entries: entry.num_entries,
            lines: self.words(entry.lines)?,
            escapes: self.words(entry.escapes)?,
            residuals: self.words(entry.residuals)?,
            rest: self.words(entry.rest)?,
        })
    }

    fn rows(&self, entry: &RowsEntry) -> Result<RowParts, Error> {
        Ok(RowParts {
            numbers: self.words(entry.numbers)?,
            width: entry.width,
            group_ends: self.words(entry.group_ends)?,
            group_rows: self.words(entry.group_rows)?,
            num_rows: entry.num_rows,
        })
    }
}
