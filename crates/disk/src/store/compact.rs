//! How are documents that were added singly joined into larger records?
//!
//! A document that was added alone has its own chunk and block. Compaction joins neighboring ones and drops the data of
//! gone documents: first the data stored in addition to sketches and, once nothing refers to the documents, the rest.

use std::ops::Range;

use super::Store;
use super::bytes::put_varint;
use super::contents::{BLOCK_BYTES, Block, Contents};
use super::database::{self, CHANGES_TALLY, DROPPINGS};
use super::decode::View;
use super::encode::{CHUNK_BYTES, MAX_CHUNK_ROWS};
use super::events::{ChangesTally, decode_change};
use super::read::{blob, misplaced, range_of};
use super::state::Droppings;
use super::transact::Writer;
use super::types::{Chunk, Swept};
use crate::error::{Error, Result};

/// Approximate number of bytes that one call reads, so that it takes some milliseconds.
const STEP_BYTES: usize = 4 << 20;
/// Free pages that are kept for the next appends.
const FEW_PAGES: u32 = 64;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Compacted {
    /// Start of the next step; `None` once all rows have been visited.
    pub next_row: Option<u32>,
    /// By how much the number of chunks and blocks decreased.
    pub num_fewer: u64,
    pub num_dropped: u64,
    pub has_dropped: bool,
}

#[derive(Clone, Copy)]
pub struct Dropping<'a> {
    /// Rows below this one have expired.
    pub expired_below: u32,
    /// Whether the record of a gone document is still needed: a table holds its row, or another document refers to it.
    pub stays: &'a dyn Fn(u32) -> bool,
    /// Rows at which batches end that tables will be bound to.
    pub ends: &'a [u32],
}

impl Dropping<'_> {
    /// Drops no records.
    pub const NOTHING: Dropping<'static> = Dropping {
        expired_below: 0,
        stays: &|_| true,
        ends: &[],
    };
}

#[derive(Default)]
struct Neighbors {
    /// First row, number of rows, and record.
    found: Vec<(u32, u32, Vec<u8>)>,
    /// Approximate number of bytes that remain of them.
    num_bytes: usize,
    num_documents: usize,
    num_dropped: usize,
    /// Flags of their digests; `None` if there are no documents.
    flags: Option<u8>,
}

impl Neighbors {
    fn num_rows(&self) -> u32 {
        self.found.iter().map(|(_, num_rows, _)| num_rows).sum()
    }

    fn end(&self) -> Option<u32> {
        self.found
            .last()
            .map(|(first, num_rows, _)| first + num_rows)
    }

    fn fits(&self, view: &View<'_>, num_bytes: usize, num_documents: usize) -> bool {
        self.num_bytes + num_bytes <= CHUNK_BYTES
            && self.num_documents + num_documents <= MAX_CHUNK_ROWS
            && self.end() == Some(view.first_row)
            && (num_documents == 0 || self.flags.is_none_or(|flags| flags == view.flags))
    }

    fn push(&mut self, view: &View<'_>, record: &[u8], num_bytes: usize, num_documents: usize) {
        if num_documents > 0 {
            self.flags = Some(view.flags);
        }
        self.num_bytes += num_bytes;
        self.num_documents += num_documents;
        self.num_dropped += view.num_documents - num_documents;
        self.found
            .push((view.first_row, view.num_rows, record.to_vec()));
    }
}

struct Joined {
    block: Block,
    num_blocks: u64,
    /// Whether gone documents were omitted.
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
    /// Performs one step from a row on, in one transaction of some milliseconds: joins small neighbors, up to 1,000
    /// documents, and drops data of gone ones, but not batches that end a live segment.
    pub fn compact_chunks(&mut self, from_row: u32, dropping: Dropping<'_>) -> Result<Compacted> {
        let num_rows = self.position.num_rows;
        let compacted = self.transact(|store, writer| {
            let rows = store.step(from_row)?;
            let gone = store.gone_rows(&rows)?;
            let mut compacted = Compacted {
                next_row: (rows.end < num_rows).then_some(rows.end),
                ..Compacted::default()
            };
            store.join_chunks(writer, &rows, &gone, dropping, &mut compacted)?;
            compacted.has_dropped = compacted.num_dropped > 0;
            store.join_contents(writer, &rows, &gone, &mut compacted)?;
            if compacted.has_dropped {
                // A reader of an earlier state must not continue reading in this one.
                let before = store.read_droppings()?;
                let droppings = Droppings {
                    num_times: before.num_times + 1,
                    num_records: before.num_records + compacted.num_dropped,
                };
                droppings.encode(&mut writer.record);
                database::set_meta(&store.connection, DROPPINGS, &writer.record)?;
            }
            Ok(compacted)
        })?;
        if compacted.has_dropped {
            self.take_num_droppings()?;
        }
        Ok(compacted)
    }

    /// Records that upkeep has visited all rows of a state, and drops events up to `drop_events`.
    pub fn note_swept(&mut self, swept: Swept, drop_events: u64) -> Result<()> {
        let last = self.position.last_event;
        self.transact(|store, writer| {
            writer.record.clear();
            put_varint(&mut writer.record, swept.last_event);
            put_varint(&mut writer.record, u64::from(swept.expired_below));
            database::set_meta(&store.connection, "swept", &writer.record)?;
            let drop_events = drop_events.min(last);
            if drop_events > store.num_old_events()? {
                database::execute(
                    &store.connection,
                    "DELETE FROM events WHERE seq <= ?1",
                    [drop_events as i64],
                )?;
                writer.record.clear();
                put_varint(&mut writer.record, drop_events);
                database::set_meta(&store.connection, "num_old_events", &writer.record)?;
            }
            Ok(())
        })
    }

    /// Releases up to `most` free pages; returns whether there are more. With `part`, one page in `part` stays free.
    pub fn give_back_pages(&mut self, most: u32, part: Option<u32>) -> Result<bool> {
        let number = |store: &Store, name: &str| -> Result<u32> {
            store
                .connection
                .pragma_query_value(None, name, |row| row.get(0))
                .map_err(Error::from)
        };
        let num_free = number(self, "freelist_count")?;
        let kept = match part {
            Some(part) => number(self, "page_count")? / part + FEW_PAGES,
            None => 0,
        };
        let surplus = num_free.saturating_sub(kept);
        if surplus == 0 {
            return Ok(false);
        }
        self.transact(|store, _| {
            let num = surplus.min(most);
            store
                .connection
                .prepare(&format!("PRAGMA incremental_vacuum({num})"))
                .and_then(|mut statement| {
                    let mut rows = statement.query([])?;
                    while rows.next()?.is_some() {}
                    Ok(())
                })
                .map_err(Error::from)
        })?;
        // A database that was created without this ability keeps its pages.
        Ok(surplus > most && number(self, "freelist_count")? < num_free)
    }

    /// Returns the rows of one step.
    fn step(&self, from_row: u32) -> Result<Range<u32>> {
        let mut end = from_row;
        let mut num_bytes = 0usize;
        let mut statement = self.statement(
                "SELECT first_row, num_rows, length(data) FROM chunks WHERE first_row >= ?1 ORDER BY first_row",
            )?;
        let mut contents = self.statement(
                "SELECT coalesce(sum(length(data)), 0) FROM contents WHERE first_row >= ?1 AND first_row < ?2",
            )?;
        let mut found = statement.query([from_row])?;
        while let Some(row) = found.next()? {
            let (first_row, num_rows) = range_of(row)?;
            let before = end;
            end = first_row + num_rows;
            num_bytes += row.get::<_, u32>(2)? as usize;
            num_bytes += contents.query_row([before, end], |row| row.get::<_, u32>(0))? as usize;
            if num_bytes >= STEP_BYTES {
                return Ok(from_row..end);
            }
        }
        Ok(from_row..end.max(self.position.num_rows))
    }

    fn join_chunks(
        &self,
        writer: &mut Writer,
        rows: &Range<u32>,
        gone: &[u32],
        dropping: Dropping<'_>,
        compacted: &mut Compacted,
    ) -> Result<()> {
        let mut ends: Vec<u32> = self
            .segments()?
            .iter()
            .map(|segment| segment.rows.end)
            .collect();
        ends.extend_from_slice(dropping.ends);
        ends.sort_unstable();
        let is_dropped = |row: u32| {
            let is_gone = row < dropping.expired_below || gone.binary_search(&row).is_ok();
            is_gone && !(dropping.stays)(row)
        };
        let joined = self.neighbors(rows, gone, dropping, &ends, is_dropped)?;
        let mut tally = self.changes_tally()?;
        for neighbors in joined {
            if neighbors.found.len() < 2 && neighbors.num_dropped == 0 {
                continue;
            }
            compacted.num_fewer += neighbors.found.len() as u64 - 1;
            compacted.num_dropped += neighbors.num_dropped as u64;
            self.replace_chunks(writer, &neighbors, is_dropped, &mut tally)?;
        }
        match compacted.num_dropped {
            0 => Ok(()),
            _ => database::set_meta(&self.connection, CHANGES_TALLY, &tally.encode()),
        }
    }

    /// The chunks of rows that are to be joined, in groups; a chunk that stays as it is ends one.
    fn neighbors(
        &self,
        rows: &Range<u32>,
        gone: &[u32],
        dropping: Dropping<'_>,
        ends: &[u32],
        is_dropped: impl Fn(u32) -> bool,
    ) -> Result<Vec<Neighbors>> {
        let sketch_bytes = self.description.sketch_bytes as usize;
        let mut statement = self.statement(
                "SELECT first_row, num_rows, length(data), data FROM chunks WHERE first_row >= ?1 AND first_row < ?2 ORDER BY first_row",
            )?;
        let mut found = statement.query([rows.start, rows.end])?;
        let mut neighbors = Neighbors::default();
        let mut joined = Vec::new();
        while let Some(row) = found.next()? {
            let (first_row, num_rows) = range_of(row)?;
            let num_bytes: u32 = row.get(2)?;
            let has_gone = first_row < dropping.expired_below
                || has_any(gone, first_row..first_row + num_rows);
            if !has_gone && num_bytes as usize > CHUNK_BYTES / 2 {
                // Not read: it has nothing to drop, and its neighbors hardly fit with it.
                joined.push(std::mem::take(&mut neighbors));
                continue;
            }
            let record = blob(row, 3)?;
            let view = View::new(record, first_row, sketch_bytes)?;
            if view.num_rows != num_rows {
                return Err(misplaced("chunk", first_row));
            }
            let num_kept = match has_gone {
                true => (0..view.num_documents)
                    .filter(|&i| !is_dropped(view.row(i)))
                    .count(),
                false => view.num_documents,
            };
            let num_bytes = record.len() * num_kept / view.num_documents.max(1);
            // A segment ends where a batch ends; inside a chunk, the identity of that batch would be lost.
            let is_end = ends.binary_search(&first_row).is_ok();
            if is_end || !neighbors.fits(&view, num_bytes, num_kept) {
                joined.push(std::mem::take(&mut neighbors));
            }
            neighbors.push(&view, record, num_bytes, num_kept);
        }
        joined.push(neighbors);
        Ok(joined)
    }

    /// Replaces several chunks by one, and deletes the changes of dropped documents.
    fn replace_chunks(
        &self,
        writer: &mut Writer,
        neighbors: &Neighbors,
        is_dropped: impl Fn(u32) -> bool,
        tally: &mut ChangesTally,
    ) -> Result<()> {
        let first_row = neighbors.found[0].0;
        let mut joined = Chunk {
            span: first_row..first_row,
            ..Chunk::default()
        };
        for (first_row, _, record) in &neighbors.found {
            let view = View::new(record, *first_row, self.description.sketch_bytes as usize)?;
            view.join(&mut joined, |row| !is_dropped(row))?;
            if neighbors.num_dropped > 0 {
                for row in (0..view.num_documents).map(|i| view.row(i)) {
                    if is_dropped(row) {
                        self.delete_change(tally, row)?;
                    }
                }
            }
        }
        joined.encode(&mut writer.record);
        self.delete("chunks", first_row, neighbors.num_rows())?;
        self.insert("chunks", first_row, neighbors.num_rows(), &writer.record)
    }

    fn delete(&self, table: &str, first_row: u32, num_rows: u32) -> Result<()> {
        let sql = format!("DELETE FROM {table} WHERE first_row >= ?1 AND first_row < ?2");
        database::execute(&self.connection, &sql, [first_row, first_row + num_rows])?;
        Ok(())
    }

    fn join_contents(
        &self,
        writer: &mut Writer,
        rows: &Range<u32>,
        gone: &[u32],
        compacted: &mut Compacted,
    ) -> Result<()> {
        let is_kept =
            |row: u32| row >= self.position.expired_below && gone.binary_search(&row).is_err();
        let mut statement = self.statement(
                "SELECT first_row, num_rows, length(data), data FROM contents WHERE first_row >= ?1 AND first_row < ?2 ORDER BY first_row",
            )?;
        let mut found = statement.query([rows.start, rows.end])?;
        let mut all: Vec<Joined> = Vec::new();
        while let Some(row) = found.next()? {
            let (first_row, num_rows) = range_of(row)?;
            let num_bytes: u32 = row.get(2)?;
            let has_gone = first_row < self.position.expired_below
                || has_any(gone, first_row..first_row + num_rows);
            if !has_gone && num_bytes as usize > BLOCK_BYTES / 2 {
                // Not read, like a chunk that has nothing to drop. Blocks are not joined across it.
                all.push(Joined::begin(first_row));
                continue;
            }
            let contents = Contents::new(blob(row, 3)?, first_row)?;
            if contents.num_rows != num_rows {
                return Err(misplaced("block", first_row));
            }
            let takes = |last: &Joined| last.num_blocks > 0 && last.block.takes(&contents);
            if !all.last().is_some_and(takes) {
                all.push(Joined::begin(first_row));
            }
            if let Some(last) = all.last_mut() {
                last.is_less |= !contents.rows().all(is_kept);
                last.block.join(&contents, is_kept);
                last.num_blocks += 1;
            }
        }
        drop(found);
        for joined in all {
            if joined.num_blocks < 2 && !joined.is_less {
                continue;
            }
            compacted.has_dropped |= joined.is_less;
            let (block, has_content) = (&joined.block, joined.block.has_content());
            self.delete("contents", block.first_row(), block.num_rows)?;
            if has_content {
                block.encode(&mut writer.packer, &mut writer.record)?;
                self.insert(
                    "contents",
                    block.first_row(),
                    block.num_rows,
                    &writer.record,
                )?;
            }
            compacted.num_fewer += joined.num_blocks - u64::from(has_content);
        }
        Ok(())
    }

    /// Returns the rows that the user removed, ascending.
    fn gone_rows(&self, rows: &Range<u32>) -> Result<Vec<u32>> {
        let mut statement = self
            .statement("SELECT row, data FROM changes WHERE row >= ?1 AND row < ?2 ORDER BY row")?;
        let mut found = statement.query([rows.start, rows.end])?;
        let mut gone = Vec::new();
        while let Some(row) = found.next()? {
            let number: u32 = row.get(0)?;
            if decode_change(blob(row, 1)?, number)?.is_gone {
                gone.push(number);
            }
        }
        Ok(gone)
    }
}

/// Whether any of the ascending `rows` is in a range.
fn has_any(rows: &[u32], range: Range<u32>) -> bool {
    let next = rows.partition_point(|&row| row < range.start);
    rows.get(next).is_some_and(|row| range.contains(row))
}
