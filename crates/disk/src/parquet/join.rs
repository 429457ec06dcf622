//! How do separately encoded row groups become one file?
//!
//! The bytes of the row groups are concatenated, followed by one footer that lists them all: the footer of the first
//! file, with every row group and with offsets adjusted to the new positions. So several encoders can work in parallel,
//! which the single writer of a file cannot. All other fields of a footer are copied unchanged, known or not.
//!
//! Source: Apache Parquet, `parquet.thrift` (FileMetaData, RowGroup, ColumnChunk, ColumnMetaData).

use std::ops::Range;

use super::compact::{Reader, StructWriter, kind, push_list, push_signed};
use super::damage::Damage;
use super::schema::Description;

/// Magic number at both ends of every Parquet file.
pub const MAGIC: &[u8; 4] = b"PAR1";

/// Joins Parquet files with one schema: their row groups, in the order in which they are added.
#[derive(Default)]
pub struct FooterJoin {
    first: Vec<u8>,
    schema: Vec<u8>,
    row_groups: Vec<u8>,
    num_row_groups: usize,
    num_rows: i64,
    /// Total bytes of the row groups joined so far.
    num_bytes: i64,
    /// Column descriptions of the file that the rows were read from.
    description: Option<Description>,
}

impl FooterJoin {
    /// Starts a join that takes column descriptions, where the layout is the same, and key-values from a footer.
    pub fn described_by(footer: &[u8]) -> Result<Self, Damage> {
        Ok(FooterJoin {
            description: Some(Description::of(footer)?),
            ..FooterJoin::default()
        })
    }

    /// Adds a file; returns the range of its bytes to append to the joined file, after the magic number.
    pub fn add(&mut self, file: &[u8]) -> Result<Range<usize>, Damage> {
        let start = MAGIC.len();
        let (rest, end) = file.split_last_chunk::<8>().ok_or(Damage::Short)?;
        let (length, magic) = end.split_at(4);
        if magic != MAGIC || !file.starts_with(MAGIC) {
            return Err(Damage::Malformed);
        }
        let length = u32::from_le_bytes([length[0], length[1], length[2], length[3]]) as usize;
        let stop = rest.len().checked_sub(length).filter(|&stop| stop >= start);
        let stop = stop.ok_or(Damage::Short)?;
        let footer = &rest[stop..];

        let mut moved = Moved {
            shift: self.num_bytes,
            ordinal: self.num_row_groups,
            out: Vec::new(),
        };
        let mut reader = Reader::new(footer);
        let (mut schema, mut num_rows, mut last) = (&footer[..0], 0, 0);
        while let Some((number, kind)) = reader.field(last)? {
            match (number, kind) {
                (2, kind::LIST) => schema = reader.value(kind)?,
                (3, kind::I64) => num_rows = reader.signed()?,
                (4, kind::LIST) => moved.row_groups(&mut reader)?,
                _ => drop(reader.value(kind)?),
            }
            last = number;
        }
        if self.first.is_empty() {
            self.first = footer.to_vec();
            self.schema = schema.to_vec();
        } else if schema != self.schema {
            return Err(Damage::Unlike);
        }
        self.num_rows = self
            .num_rows
            .checked_add(num_rows)
            .ok_or(Damage::Malformed)?;
        self.row_groups.append(&mut moved.out);
        self.num_row_groups = moved.ordinal;
        self.num_bytes += (stop - start) as i64;
        Ok(start..stop)
    }

    /// Returns the end of the joined file: the footer, below 4 GB, its length, and the magic number.
    pub fn finish(&self) -> Result<Vec<u8>, Damage> {
        let mut out = Vec::with_capacity(self.first.len() + self.row_groups.len() + 16);
        let mut reader = Reader::new(&self.first);
        let mut writer = StructWriter::new(&mut out);
        let mut last = 0;
        while let Some((number, kind)) = reader.field(last)? {
            let value = reader.value(kind)?;
            let target = writer.field(number, kind);
            match (number, kind) {
                (3, kind::I64) => push_signed(target, self.num_rows),
                (4, kind::LIST) => {
                    push_list(target, self.num_row_groups, kind::STRUCT);
                    target.extend_from_slice(&self.row_groups);
                }
                _ => target.extend_from_slice(value),
            }
            last = number;
        }
        writer.end();
        if let Some(description) = &self.description
            && let Some(described) = description.put_on(&out)?
        {
            out = described;
        }
        let length = u32::try_from(out.len()).map_err(|_| Damage::Malformed)?;
        out.extend_from_slice(&length.to_le_bytes());
        out.extend_from_slice(MAGIC);
        Ok(out)
    }
}

/// Copies row groups whose bytes moved.
struct Moved {
    /// Number of bytes by which they moved.
    shift: i64,
    /// Number of the next row group in the joined file.
    ordinal: usize,
    out: Vec<u8>,
}

impl Moved {
    fn row_groups(&mut self, reader: &mut Reader<'_>) -> Result<(), Damage> {
        let (length, kind) = reader.list()?;
        if kind != kind::STRUCT && length > 0 {
            return Err(Damage::Malformed);
        }
        for _ in 0..length {
            self.row_group(reader)?;
            self.ordinal += 1;
        }
        Ok(())
    }

    fn row_group(&mut self, reader: &mut Reader<'_>) -> Result<(), Damage> {
        let shift = self.shift;
        let mut writer = StructWriter::new(&mut self.out);
        let mut last = 0;
        while let Some((number, kind)) = reader.field(last)? {
            last = number;
            match (number, kind) {
                (1, kind::LIST) => {
                    let (length, element) = reader.list()?;
                    if element != kind::STRUCT && length > 0 {
                        return Err(Damage::Malformed);
                    }
                    let out = writer.field(number, kind);
                    push_list(out, length, element);
                    for _ in 0..length {
                        column_chunk(reader, shift, out)?;
                    }
                }
                // Offset of the row group; 0 means unknown.
                (5, kind::I64) => move_offset(reader, shift, writer.field(number, kind))?,
                (7, kind::I16) => {
                    reader.signed()?;
                    // The format cannot represent a larger ordinal; the field may be omitted.
                    if let Ok(ordinal) = i16::try_from(self.ordinal) {
                        push_signed(writer.field(number, kind), i64::from(ordinal));
                    }
                }
                _ => copy(reader, number, kind, &mut writer)?,
            }
        }
        writer.end();
        Ok(())
    }
}

fn column_chunk(reader: &mut Reader<'_>, shift: i64, out: &mut Vec<u8>) -> Result<(), Damage> {
    let mut writer = StructWriter::new(out);
    let mut last = 0;
    while let Some((number, kind)) = reader.field(last)? {
        last = number;
        match (number, kind) {
            (2, kind::I64) => move_offset(reader, shift, writer.field(number, kind))?,
            (3, kind::STRUCT) => column_metadata(reader, shift, writer.field(number, kind))?,
            // Offsets and lengths of the offset index and the column index.
            (4..=7, _) => return Err(Damage::Indexed),
            _ => copy(reader, number, kind, &mut writer)?,
        }
    }
    writer.end();
    Ok(())
}

fn column_metadata(reader: &mut Reader<'_>, shift: i64, out: &mut Vec<u8>) -> Result<(), Damage> {
    let mut writer = StructWriter::new(out);
    let mut last = 0;
    while let Some((number, kind)) = reader.field(last)? {
        last = number;
        match (number, kind) {
            // Offsets of the first data page, index page and dictionary page.
            (9..=11, kind::I64) => move_offset(reader, shift, writer.field(number, kind))?,
            (14, _) => return Err(Damage::Indexed),
            _ => copy(reader, number, kind, &mut writer)?,
        }
    }
    writer.end();
    Ok(())
}

/// Copies an offset, moved; 0 is kept, since only the magic number is there.
fn move_offset(reader: &mut Reader<'_>, shift: i64, out: &mut Vec<u8>) -> Result<(), Damage> {
    let offset = reader.signed()?;
    let moved = offset.checked_add(if offset == 0 { 0 } else { shift });
    push_signed(out, moved.ok_or(Damage::Malformed)?);
    Ok(())
}

fn copy(
    reader: &mut Reader<'_>,
    number: i16,
    kind: u8,
    writer: &mut StructWriter<'_>,
) -> Result<(), Damage> {
    let value = reader.value(kind)?;
    writer.field(number, kind).extend_from_slice(value);
    Ok(())
}
