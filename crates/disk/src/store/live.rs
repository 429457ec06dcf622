//! Which segments may be searched?

use rusqlite::OptionalExtension;
use xxhash_rust::xxh3::xxh3_64;

use super::bytes::{Cursor, Malformed, begin, open, put_varint, seal};
use super::read::{blob, misplaced};
use super::types::LiveSegment;
use super::{Store, database};
use crate::error::Result;

impl Store {
    /// Adds and drops live segments in one transaction. Names that are not listed are ignored.
    pub fn publish(&mut self, added: &[LiveSegment], dropped: &[String]) -> Result<()> {
        self.transact(|store, writer| {
            for name in dropped {
                database::execute(
                    &store.connection,
                    "DELETE FROM segments WHERE name = ?1",
                    [name],
                )?;
            }
            for segment in added {
                encode_segment(&mut writer.record, segment);
                database::execute(
                    &store.connection,
                    "INSERT OR REPLACE INTO segments (name, data) VALUES (?1, ?2)",
                    (&segment.name, &writer.record),
                )?;
            }
            Ok(())
        })
    }

    pub fn segments(&self) -> Result<Vec<LiveSegment>> {
        let mut statement = self.statement("SELECT name, data FROM segments")?;
        let mut rows = statement.query([])?;
        let mut segments = Vec::new();
        while let Some(row) = rows.next()? {
            let name: String = row.get(0)?;
            segments.push(decode_segment(blob(row, 1)?, name)?);
        }
        segments.sort_by_key(|segment| (segment.rows.start, segment.rows.end));
        Ok(segments)
    }

    pub fn segment_names(&self) -> Result<Vec<String>> {
        let segments = self.segments()?.into_iter();
        Ok(segments.map(|segment| segment.name).collect())
    }

    /// Checks that all rows exist to which segments, contents or changes belong, which detects a truncated table.
    pub(super) fn check_ends(&self) -> Result<()> {
        self.read_together(|store| {
            let position = store.read_position()?;
            for segment in store.segments()? {
                if segment.rows.end > position.num_rows || segment.last_event > position.last_event
                {
                    return Err(misplaced("what is of segment", &segment.name));
                }
            }
            for sql in [
                "SELECT first_row + num_rows FROM contents ORDER BY first_row DESC LIMIT 1",
                "SELECT row + 1 FROM changes ORDER BY row DESC LIMIT 1",
            ] {
                let end: Option<i64> = database::value(&store.connection, sql, []).optional()?;
                if let Some(end) = end.filter(|&end| end > i64::from(position.num_rows)) {
                    return Err(misplaced("row", end - 1));
                }
            }
            Ok(())
        })
    }
}

fn encode_segment(out: &mut Vec<u8>, segment: &LiveSegment) {
    begin(out);
    put_varint(out, u64::from(segment.rows.start));
    put_varint(out, u64::from(segment.rows.end));
    out.extend_from_slice(&segment.batch.to_le_bytes());
    put_varint(out, segment.last_event);
    out.extend_from_slice(segment.details.as_bytes());
    seal(out, place_of(&segment.name));
}

fn decode_segment(record: &[u8], name: String) -> Result<LiveSegment, Malformed> {
    let mut cursor = Cursor(open(record, place_of(&name))?);
    let rows = cursor.varint_u32()?..cursor.varint_u32()?;
    let batch = cursor.u64()?;
    let last_event = cursor.varint()?;
    let details = str::from_utf8(cursor.0).map_err(|_| Malformed)?.to_owned();
    Ok(LiveSegment {
        name,
        rows,
        batch,
        last_event,
        details,
    })
}

fn place_of(name: &str) -> u64 {
    xxh3_64(name.as_bytes())
}
