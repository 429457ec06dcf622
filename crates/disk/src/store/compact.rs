//! How do single documents come to stand together?
//!
//! A document that came alone has a chunk and a block of its own; neighbours are joined here, and what is kept of documents that are gone is dropped.

use std::ops::Range;

use super::Store;
use super::contents::{Block, Contents};
use super::database::wrong;
use super::decode::View;
use super::encode::{CHUNK_BYTES, Columns, MAX_CHUNK_ROWS};
use super::events::decode_change;
use super::read::{blob, misplaced, range_of};
use super::transact::Writer;
use crate::error::Error;

/// Bytes that one call reads, about: so that it takes some milliseconds.
const STEP_BYTES: usize = 4 << 20;

/// What one step of compaction did.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Compacted {
    /// Where the next step begins; nothing where all rows have been seen.
    pub next_row: Option<u32>,
    /// Chunks and blocks that there are less.
    pub num_fewer: u64,
}

/// Records of neighbours that become one.
#[derive(Default)]
struct Neighbours {
    /// First row, number of rows, record.
    found: Vec<(u32, u32, Vec<u8>)>,
    num_bytes: usize,
    /// Which columns they have.
    flags: u8,
}

impl Neighbours {
    fn num_rows(&self) -> u32 {
        self.found.iter().map(|(_, num_rows, _)| num_rows).sum()
    }

    fn end(&self) -> Option<u32> {
        self.found
            .last()
            .map(|(first, num_rows, _)| first + num_rows)
    }

    fn push(&mut self, first_row: u32, num_rows: u32, record: &[u8], flags: u8) {
        self.flags = flags;
        self.num_bytes += record.len();
        self.found.push((first_row, num_rows, record.to_vec()));
    }
}

/// Blocks that become one.
struct Joined {
    block: Block,
    num_blocks: u64,
    /// Whether documents were left out that are gone.
    is_less: bool,
}

impl Joined {
    fn begin(first_row: u32) -> Self {
        let mut block = Block::default();
        block.clear(first_row);
        Joined {
            block,
            num_blocks: 0,
            is_less: false,
        }
    }
}

impl Store {
    /// Joins small neighbouring chunks and blocks, up to 1,000 rows, and drops feature sets and texts of documents that are gone: one step, from a
    /// row on, in one transaction of some milliseconds. Rows, verdicts and the identity of every batch that a live segment ends with stay.
    ///
    /// # Errors
    /// Those of [`Store::append`].
    pub fn compact_chunks(&mut self, from_row: u32) -> Result<Compacted, Error> {
        let num_rows = self.position.num_rows;
        self.transact(|store, writer| {
            let rows = store.step(from_row)?;
            let num_fewer =
                store.join_chunks(writer, &rows)? + store.join_contents(writer, &rows)?;
            Ok(Compacted {
                next_row: (rows.end < num_rows).then_some(rows.end),
                num_fewer,
            })
        })
    }

    /// The rows of one step.
    fn step(&self, from_row: u32) -> Result<Range<u32>, Error> {
        let mut end = from_row;
        let mut num_bytes = 0usize;
        let mut statement = self
            .connection
            .prepare_cached(
                "SELECT first_row, num_rows, length(data) FROM chunks WHERE first_row >= ?1 ORDER BY first_row",
            )
            .map_err(wrong)?;
        let mut contents = self
            .connection
            .prepare_cached(
                "SELECT coalesce(sum(length(data)), 0) FROM contents WHERE first_row >= ?1 AND first_row < ?2",
            )
            .map_err(wrong)?;
        let mut found = statement.query([from_row]).map_err(wrong)?;
        while let Some(row) = found.next().map_err(wrong)? {
            let (first_row, num_rows) = range_of(row)?;
            let before = end;
            end = first_row + num_rows;
            num_bytes += row.get::<_, u32>(2).map_err(wrong)? as usize;
            num_bytes += contents
                .query_row([before, end], |row| row.get::<_, u32>(0))
                .map_err(wrong)? as usize;
            if num_bytes >= STEP_BYTES {
                return Ok(from_row..end);
            }
        }
        Ok(from_row..end.max(self.position.num_rows))
    }

    fn join_chunks(&self, writer: &mut Writer, rows: &Range<u32>) -> Result<u64, Error> {
        let ends: Vec<u32> = self
            .segments()?
            .iter()
            .map(|segment| segment.rows.end)
            .collect();
        let sketch_bytes = self.description.sketch_bytes as usize;
        let mut statement = self
            .connection
            .prepare_cached(
                "SELECT first_row, num_rows, data FROM chunks WHERE first_row >= ?1 AND first_row < ?2 ORDER BY first_row",
            )
            .map_err(wrong)?;
        let mut found = statement.query([rows.start, rows.end]).map_err(wrong)?;
        let mut neighbours = Neighbours::default();
        let mut joined = Vec::new();
        while let Some(row) = found.next().map_err(wrong)? {
            let (first_row, num_rows) = range_of(row)?;
            let record = blob(row, 2)?;
            let flags = View::new(record, first_row, sketch_bytes)?.flags;
            let fits = neighbours.num_bytes + record.len() <= CHUNK_BYTES
                && (neighbours.num_rows() + num_rows) as usize <= MAX_CHUNK_ROWS
                && neighbours.end() == Some(first_row)
                && neighbours.flags == flags
                // A segment ends where a batch does; inside a chunk its identity would be lost.
                && !ends.contains(&first_row);
            if !fits {
                joined.push(std::mem::take(&mut neighbours));
            }
            neighbours.push(first_row, num_rows, record, flags);
        }
        joined.push(neighbours);
        drop(found);
        let mut num_fewer = 0;
        for neighbours in joined {
            num_fewer += self.replace_chunks(writer, &neighbours)?;
        }
        Ok(num_fewer)
    }

    fn replace_chunks(&self, writer: &mut Writer, neighbours: &Neighbours) -> Result<u64, Error> {
        let [(first_row, ..), _, ..] = neighbours.found[..] else {
            return Ok(0);
        };
        let views = neighbours
            .found
            .iter()
            .map(|(first_row, _, record)| {
                View::new(record, *first_row, self.description.sketch_bytes as usize)
            })
            .collect::<Result<Vec<_>, _>>()?;
        let mut columns = Columns::begin(first_row);
        for view in &views {
            view.join(&mut columns)?;
        }
        columns.encode(&mut writer.record);
        self.delete("chunks", first_row, neighbours.num_rows())?;
        self.insert("chunks", first_row, neighbours.num_rows(), &writer.record)?;
        Ok(views.len() as u64 - 1)
    }

    fn delete(&self, table: &str, first_row: u32, num_rows: u32) -> Result<(), Error> {
        let sql = match table {
            "chunks" => "DELETE FROM chunks WHERE first_row >= ?1 AND first_row < ?2",
            _ => "DELETE FROM contents WHERE first_row >= ?1 AND first_row < ?2",
        };
        self.connection
            .prepare_cached(sql)
            .and_then(|mut statement| statement.execute([first_row, first_row + num_rows]))
            .map_err(wrong)?;
        Ok(())
    }

    fn join_contents(&self, writer: &mut Writer, rows: &Range<u32>) -> Result<u64, Error> {
        let gone = self.gone_rows(rows)?;
        let is_kept =
            |row: u32| row >= self.position.expired_below && gone.binary_search(&row).is_err();
        let mut statement = self
            .connection
            .prepare_cached(
                "SELECT first_row, num_rows, data FROM contents WHERE first_row >= ?1 AND first_row < ?2 ORDER BY first_row",
            )
            .map_err(wrong)?;
        let mut found = statement.query([rows.start, rows.end]).map_err(wrong)?;
        let mut all: Vec<Joined> = Vec::new();
        while let Some(row) = found.next().map_err(wrong)? {
            let (first_row, num_rows) = range_of(row)?;
            let contents = Contents::new(blob(row, 2)?, first_row)?;
            if contents.num_rows != num_rows {
                return Err(misplaced("block", first_row));
            }
            if !all.last().is_some_and(|last| last.block.takes(&contents)) {
                all.push(Joined::begin(first_row));
            }
            if let Some(last) = all.last_mut() {
                last.is_less |= !contents.rows().all(is_kept);
                last.block.join(&contents, is_kept);
                last.num_blocks += 1;
            }
        }
        drop(found);
        let mut num_fewer = 0;
        for joined in all {
            if joined.num_blocks == 1 && !joined.is_less {
                continue;
            }
            let (block, has_content) = (&joined.block, joined.block.has_content());
            self.delete("contents", block.first_row(), block.num_rows())?;
            if has_content {
                block.encode(&mut writer.packer, &mut writer.record)?;
                self.insert(
                    "contents",
                    block.first_row(),
                    block.num_rows(),
                    &writer.record,
                )?;
            }
            num_fewer += joined.num_blocks - u64::from(has_content);
        }
        Ok(num_fewer)
    }

    /// Rows that the user removed, ascending.
    fn gone_rows(&self, rows: &Range<u32>) -> Result<Vec<u32>, Error> {
        let mut statement = self
            .connection
            .prepare_cached(
                "SELECT row, data FROM changes WHERE row >= ?1 AND row < ?2 ORDER BY row",
            )
            .map_err(wrong)?;
        let mut found = statement.query([rows.start, rows.end]).map_err(wrong)?;
        let mut gone = Vec::new();
        while let Some(row) = found.next().map_err(wrong)? {
            let number: u32 = row.get(0).map_err(wrong)?;
            if decode_change(blob(row, 1)?, number)?.is_gone {
                gone.push(number);
            }
        }
        Ok(gone)
    }
}
