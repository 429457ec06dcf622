//! How is a set opened?

use std::fs::File;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use likewise_core::hamming::index::{
    Guard, HammingSet, RowParts, SegmentParts, SetParts, SharedBytes, TableParts, Words,
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
    /// Takes what is wrong with the file when a search comes upon it.
    pub damage: Damage,
}

/// What was first found to be wrong with an open file.
#[derive(Debug, Clone, Default)]
pub struct Damage(Arc<OnceLock<String>>);

impl Damage {
    /// What is wrong, where anything was found to be.
    pub fn reason(&self) -> Option<&str> {
        self.0.get().map(String::as_str)
    }
}

/// Opens a file that [`write_hamming_set`](super::write_hamming_set) wrote. The file must not change as long as the set is used.
///
/// Header, description, lengths and the checksums of all blocks are checked, and the sections that are copied: tail, removals, ids. A
/// block of a table is checked when it is first read: then a search gives [`likewise_core::error::Error::Damaged`], and
/// [`OpenedSet::damage`] says where. With `verify` every block is checked now.
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
        is_verified: verify,
        damage: Damage::default(),
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
    for (name, section) in description.sections() {
        match verify {
            true => reader.verify(&name, section, cancel)?,
            false => reader.checksums(&name, section).map(drop)?,
        }
    }
    reader.open(description)
}

fn damaged(reason: impl Into<String>) -> Error {
    Error::Damaged {
        reason: reason.into(),
    }
}

fn damaged_block(name: &str, section: Section, number: usize) -> String {
    format!(
        "block {number} of {name} is damaged, at byte {}",
        section.offset + (number * BLOCK_BYTES) as u64
    )
}

struct Reader<'a> {
    all: &'a [u8],
    bytes: &'a SharedBytes,
    /// Whether all blocks have been checked.
    is_verified: bool,
    damage: Damage,
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

    /// The checksums of the blocks of a section.
    fn checksums(&self, name: &str, section: Section) -> Result<&[u8], Error> {
        let num_blocks = section.num_bytes.div_ceil(BLOCK_BYTES as u64);
        self.bytes_of(name, section)
            .ok()
            .and_then(|_| self.part(section.checksums_offset(), 8 * num_blocks))
            .filter(|checksums| xxh3_64(checksums) == section.checksum)
            .ok_or_else(|| damaged(format!("the checksums of {name} are damaged")))
    }

    /// Checks every block of a section.
    fn verify(&self, name: &str, section: Section, cancel: &AtomicBool) -> Result<(), Error> {
        let content = self.bytes_of(name, section)?;
        let checksums = self.checksums(name, section)?;
        let blocks = content.chunks(BLOCK_BYTES).zip(checksums.chunks_exact(8));
        for (number, (block, checksum)) in blocks.enumerate() {
            if cancel.load(Ordering::Relaxed) {
                return Err(Error::Cancelled);
            }
            if xxh3_64(block).to_le_bytes() != checksum {
                return Err(damaged(damaged_block(name, section, number)));
            }
        }
        Ok(())
    }

    /// The words of a section, whose blocks are checked when they are first read.
    fn guarded(&self, name: &str, section: Section) -> Result<Words, Error> {
        let words = self.words(section)?;
        if self.is_verified {
            return Ok(words);
        }
        let (bytes, damage, name) = (self.bytes.clone(), self.damage.clone(), name.to_owned());
        let check = move |number: usize| {
            // Both were found to lie in the file.
            let all: &[u8] = bytes.as_ref().as_ref();
            let content = &all[section.offset as usize..][..section.num_bytes as usize];
            let start = number * BLOCK_BYTES;
            let block = &content[start..content.len().min(start + BLOCK_BYTES)];
            let checksum = &all[section.checksums_offset() as usize + 8 * number..][..8];
            let is_good = xxh3_64(block).to_le_bytes() == checksum;
            if !is_good {
                damage
                    .0
                    .get_or_init(|| damaged_block(&name, section, number));
            }
            is_good
        };
        let num_words = (section.num_bytes / 8) as usize;
        let block_shift = (BLOCK_BYTES / 8).ilog2();
        Ok(words.guarded(Guard::new(num_words, block_shift, Box::new(check))))
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
                .enumerate()
                .map(|(number, segment)| self.segment(number, segment))
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
            damage: self.damage.clone(),
        })
    }

    fn segment(&self, number: usize, entry: &SegmentEntry) -> Result<SegmentParts, Error> {
        let tables = entry.tables.iter().enumerate();
        Ok(SegmentParts {
            tables: tables
                .map(|(table, entry)| {
                    self.table(&format!("table {table} of segment {number}"), entry)
                })
                .collect::<Result<_, Error>>()?,
            rows: entry
                .rows
                .as_ref()
                .map(|rows| self.rows(&format!("segment {number}"), rows))
                .transpose()?,
        })
    }

    fn table(&self, of: &str, entry: &TableEntry) -> Result<TableParts, Error> {
        Ok(TableParts {
            prefix_bits: entry.prefix_bits,
            line_shift: entry.line_shift,
            is_unary: entry.is_unary,
            num_entries: entry.num_entries,
            lines: self.guarded(&format!("lines of {of}"), entry.lines)?,
            escapes: self.guarded(&format!("escapes of {of}"), entry.escapes)?,
            residuals: self.guarded(&format!("residuals of {of}"), entry.residuals)?,
            rest: self.guarded(&format!("rest of {of}"), entry.rest)?,
        })
    }

    fn rows(&self, of: &str, entry: &RowsEntry) -> Result<RowParts, Error> {
        Ok(RowParts {
            numbers: self.guarded(&format!("numbers of {of}"), entry.numbers)?,
            width: entry.width,
            group_ends: self.guarded(&format!("group_ends of {of}"), entry.group_ends)?,
            group_rows: self.guarded(&format!("group_rows of {of}"), entry.group_rows)?,
            num_rows: entry.num_rows,
        })
    }
}
