//! How is one table written to the file?

use std::fs::File;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use likewise_core::parallel::lock;
use likewise_hamming::index::{
    Group, Places, RowsOf, Slice, TableBuilder, TablePiece, TableSection, TableStream, WordsMut,
    waves,
};
use likewise_hamming::plan::Key;

use super::HammingBuild;
use crate::error::{Error, Result};
use crate::fingerprints::{MAX_READ_ROWS, changed};
use crate::hamming_file::layout::{RowsEntry, TableEntry};
use crate::hamming_file::section::{SectionWriter, Spool, section_bytes};

/// Directory words packed at once, unless a cell has more: half a megabyte, as for the entries.
const MAX_LINE_WORDS: usize = 1 << 16;

/// Row numbers that are written after the tables.
pub(super) struct WaitingRows {
    numbers: Spool,
    group_ends: Spool,
    group_rows: Spool,
    width: u32,
    num_rows: usize,
}

impl WaitingRows {
    /// Writes them at byte `at` of the file; returns their entry and the end position.
    pub(super) fn write(
        self,
        file: &File,
        at: u64,
        cancel: &AtomicBool,
    ) -> Result<(RowsEntry, u64)> {
        let (numbers, at) = self.numbers.copy_to(file, at, cancel)?;
        let (group_ends, at) = self.group_ends.copy_to(file, at, cancel)?;
        let (group_rows, at) = self.group_rows.copy_to(file, at, cancel)?;
        let entry = RowsEntry {
            width: self.width,
            num_rows: self.num_rows,
            numbers,
            group_ends,
            group_rows,
        };
        Ok((entry, at))
    }
}

pub(super) struct WrittenTable {
    pub(super) entry: TableEntry,
    pub(super) rows: Option<WaitingRows>,
}

/// The destination of the words of a table.
struct Output<'a> {
    stream: TableStream<'a>,
    sections: Sections<'a>,
}

struct Sections<'a> {
    lines: SectionWriter<'a>,
    residuals: SectionWriter<'a>,
    rest: Spool,
    escapes: Spool,
    rows: Option<[Spool; 3]>,
}

impl Sections<'_> {
    fn put(&mut self, section: TableSection, words: &[u64]) -> Result<()> {
        let spool = match (section, &mut self.rows) {
            (TableSection::Lines, _) => return self.lines.put(words),
            (TableSection::Residuals, _) => return self.residuals.put(words),
            (TableSection::Rest, _) => &mut self.rest,
            (TableSection::Escapes, _) => &mut self.escapes,
            (TableSection::Numbers, Some([numbers, _, _])) => numbers,
            (TableSection::GroupEnds, Some([_, group_ends, _])) => group_ends,
            (TableSection::GroupRows, Some([_, _, group_rows])) => group_rows,
            (_, None) => return Ok(()),
        };
        spool.put(words)
    }
}

impl<'a> Output<'a> {
    /// Prepares to write a table at byte `at` of the file.
    fn new(
        builder: &'a TableBuilder,
        max_row: u32,
        (file, path, at): (&'a File, &Path, u64),
    ) -> Result<Self> {
        let lines = SectionWriter::new(file, at);
        let behind = lines.start() + section_bytes(8 * builder.num_line_words() as u64);
        let spool = |name| Spool::new(path, name);
        Ok(Output {
            stream: TableStream::new(builder, max_row),
            sections: Sections {
                residuals: SectionWriter::new(file, behind),
                lines,
                rest: spool("rest")?,
                escapes: spool("escapes")?,
                rows: match builder.with_rows() {
                    true => Some([
                        spool("numbers")?,
                        spool("group-ends")?,
                        spool("group-rows")?,
                    ]),
                    false => None,
                },
            },
        })
    }

    fn append(&mut self, pieces: Vec<TablePiece>) -> Result<()> {
        for piece in pieces {
            let sections = &mut self.sections;
            self.stream
                .append(piece, &mut |section, words| sections.put(section, words))?;
        }
        Ok(())
    }

    /// Writes what was spooled; returns the entry of the table and the end position.
    fn finish(
        mut self,
        builder: &TableBuilder,
        file: &File,
        cancel: &AtomicBool,
    ) -> Result<(WrittenTable, u64)> {
        let sections = &mut self.sections;
        let table = (self.stream).finish(&mut |section, words| sections.put(section, words))?;
        let sections = self.sections;
        let (lines, _) = sections.lines.finish()?;
        let (residuals, at) = sections.residuals.finish()?;
        let (rest, at) = sections.rest.copy_to(file, at, cancel)?;
        let (escapes, at) = sections.escapes.copy_to(file, at, cancel)?;
        let shape = builder.shape();
        let entry = TableEntry {
            prefix_bits: shape.prefix_bits,
            line_shift: shape.line_shift,
            is_unary: shape.is_unary,
            num_entries: table.num_entries,
            lines,
            escapes,
            residuals,
            rest,
        };
        let rows = sections.rows;
        let rows = rows.map(|[numbers, group_ends, group_rows]| WaitingRows {
            numbers,
            group_ends,
            group_rows,
            width: table.row_width,
            num_rows: table.num_rows,
        });
        Ok((WrittenTable { entry, rows }, at))
    }
}

/// Writes a table at byte `at` of the file; returns its entry and the end position.
pub(super) fn write_table(
    build: &HammingBuild<'_>,
    builder: &TableBuilder,
    schedule: &Schedule,
    (file, path, at): (&File, &Path, u64),
    step: &mut dyn FnMut(),
) -> Result<(WrittenTable, u64)> {
    step();
    let max_row = build.source.last_row().unwrap_or(0);
    let output = Mutex::new(Output::new(builder, max_row, (file, path, at))?);
    let slices = schedule.waves.iter().flatten();
    let largest = slices.map(|slice| slice.num_codes).max();
    let num_words = largest.unwrap_or(0) * builder.entry_words();
    let mut buffers = (0..build.run.threads.max(1))
        .map(|_| Ok(Mutex::new(WordsMut::zeroed(num_words)?)))
        .collect::<Result<Vec<_>>>()?;
    // Cells without entries also have directory lines.
    let most_cells = (MAX_LINE_WORDS * builder.num_cells() / builder.num_line_words()).max(1);
    let (counts, limits) = (&schedule.counts, (MIN_PACKED, most_cells));
    for wave in &schedule.waves {
        let read = build.run.each(wave.len(), |i| {
            let mut buffer = lock(&buffers[i]);
            fill(build, builder, &wave[i], counts, buffer.as_mut_slice())
        })?;
        read.into_iter().collect::<Result<()>>()?;
        step();
        let mut groups = Vec::new();
        for (slice, buffer) in wave.iter().zip(&mut buffers) {
            let buffer = buffer.get_mut().unwrap_or_else(PoisonError::into_inner);
            let entries = &mut buffer.as_mut_slice()[..slice.num_codes * builder.entry_words()];
            groups.extend(builder.groups(slice, counts, entries, limits));
        }
        pack(build, builder, groups, &output)?;
    }
    drop(buffers);
    let output = output.into_inner().unwrap_or_else(PoisonError::into_inner);
    output.finish(builder, file, build.run.cancel)
}

/// Collects the entries of a slice, each in its cell.
fn fill(
    build: &HammingBuild<'_>,
    builder: &TableBuilder,
    slice: &Slice,
    counts: &[u32],
    entries: &mut [u64],
) -> Result<()> {
    let entries = &mut entries[..slice.num_codes * builder.entry_words()];
    let mut places = Places::new(slice, counts, entries);
    let rows = 0..build.source.len;
    let checksum = build.source.each(
        rows,
        &mut Vec::new(),
        build.run.cancel,
        |first_row, codes| {
            builder.spread(codes, RowsOf::From(first_row), &mut places, build.isa);
            Ok(())
        },
    )?;
    match places.are_full() {
        true => build.source.check_pass(checksum),
        false => Err(changed()),
    }
}

/// Packs the groups in order, some at a time, while those packed before are written.
fn pack(
    build: &HammingBuild<'_>,
    builder: &TableBuilder,
    groups: Vec<Group<'_>>,
    output: &Mutex<Output<'_>>,
) -> Result<()> {
    let write = |pieces| {
        let mut output = lock(output);
        output.append(pieces)
    };
    let mut packed: Mutex<Vec<TablePiece>> = Mutex::new(Vec::new());
    let mut groups = groups
        .into_iter()
        .map(|group| Mutex::new(Some(group)))
        .peekable();
    while groups.peek().is_some() {
        let some: Vec<_> = groups
            .by_ref()
            .take(build.run.threads.max(1) * PIECES_A_THREAD)
            .collect();
        let done = build.run.each(some.len() + 1, |i| {
            if i == 0 {
                let mut packed = lock(&packed);
                return write(std::mem::take(&mut *packed)).map(|()| None);
            }
            let mut group = lock(&some[i - 1]);
            Ok(group.take().map(|group| builder.pack(group)))
        })?;
        let pieces: Vec<Option<TablePiece>> = done.into_iter().collect::<Result<_>>()?;
        packed = Mutex::new(pieces.into_iter().flatten().collect());
    }
    write(packed.into_inner().unwrap_or_else(PoisonError::into_inner))
}

/// Bits of the cells by which fingerprints are counted; the number grows if a cell would be too large.
const CELL_BITS: [u32; 3] = [14, 18, 22];
/// Memory that a thread needs for reading and for writing.
const BUFFER_BYTES: usize = 8 << 20;
/// Rows counted by a thread at once: whole reads, so that the checksums are the same in every pass.
const COUNT_ROWS: usize = 1 << 22;
/// Entries packed at once, unless a cell has more.
pub(super) const MIN_PACKED: usize = 1 << 16;
/// Pieces per thread that are packed before they are written.
pub(super) const PIECES_A_THREAD: usize = 4;
const _: () = assert!(COUNT_ROWS.is_multiple_of(MAX_READ_ROWS));

/// The order in which the cells of a table are processed.
pub(super) struct Schedule {
    /// Number of fingerprints of each cell.
    pub(super) counts: Vec<u32>,
    /// A slice for each thread; the slices of one wave are in memory together.
    pub(super) waves: Vec<Vec<Slice>>,
}

impl Schedule {
    /// Number of passes over the fingerprints, including the one that counts them.
    pub(super) fn num_passes(&self) -> usize {
        1 + self.waves.len()
    }

    /// Counts the fingerprints by cell and assigns the cells to waves.
    pub(super) fn make(
        build: &HammingBuild<'_>,
        key: &Key,
        num_expected: usize,
        with_rows: bool,
    ) -> Result<(TableBuilder, Self)> {
        let threads = build.run.threads.max(1);
        let mut least_needed = usize::MAX;
        for cell_bits in CELL_BITS {
            let bits = build.source.bits;
            let builder = TableBuilder::new(bits, key, num_expected, with_rows, cell_bits);
            let counts = count(build, &builder)?;
            let largest = counts.iter().copied().max().unwrap_or(0) as usize;
            let entry_bytes = 8 * builder.entry_words();
            // Entries being packed exist in their original order, sorted, and as a piece, and then wait as a piece.
            let packing =
                6 * PIECES_A_THREAD * MIN_PACKED.min(build.source.len).max(1) + 4 * largest;
            let fixed =
                4 * (threads + 1) * counts.len() + threads * (BUFFER_BYTES + entry_bytes * packing);
            let needed = fixed + threads * entry_bytes * largest;
            if needed <= build.memory_bytes {
                let most = (build.memory_bytes - fixed) / entry_bytes / threads;
                let waves = waves(&counts, (0, most.min(u32::MAX as usize - 1)), threads);
                return Ok((builder, Schedule { counts, waves }));
            }
            least_needed = least_needed.min(needed);
            if !builder.can_be_finer() {
                break;
            }
        }
        Err(Error::invalid(
            "memory",
            format!(
                "{} bytes are too few: so many fingerprints share their first bits that {least_needed} are needed",
                build.memory_bytes
            ),
        ))
    }
}

fn count(build: &HammingBuild<'_>, builder: &TableBuilder) -> Result<Vec<u32>> {
    let source = build.source;
    let total = Mutex::new(vec![0_u32; builder.num_cells()]);
    let checksum = AtomicU64::new(0);
    let make = || (Vec::new(), vec![0_u32; builder.num_cells()]);
    let parts = build
        .run
        .map(source.len, COUNT_ROWS, make, |(words, counts), range| {
            let mut is_wide = Ok(());
            let part = source.each(range, words, build.run.cancel, |_, codes| {
                builder.count(codes, counts, build.isa);
                if is_wide.is_ok() {
                    is_wide = source.check_width(codes);
                }
                Ok(())
            })?;
            checksum.fetch_add(part, Ordering::Relaxed);
            let mut total = lock(&total);
            for (total, count) in total.iter_mut().zip(counts) {
                *total += std::mem::take(count);
            }
            is_wide
        })?;
    parts.into_iter().collect::<Result<()>>()?;
    source.check_pass(checksum.into_inner())?;
    Ok(total.into_inner().unwrap_or_else(PoisonError::into_inner))
}
