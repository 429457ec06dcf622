//! Parquet files assembled from separately encoded row groups.

use std::fmt;
use std::ops::Range;

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

/// Why bytes cannot be joined as a Parquet file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Damage {
    /// The bytes end too early.
    Short,
    /// The bytes are not a Parquet footer.
    Malformed,
    /// The file has a page index or a Bloom filter, whose own offsets would become wrong.
    Indexed,
    /// The schema or the rows differ from those of the first file.
    Unlike,
}

impl fmt::Display for Damage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Damage::Short => "the footer ends too early",
            Damage::Malformed => "not a Parquet footer",
            Damage::Indexed => "a file with a page index or a Bloom filter cannot be joined",
            Damage::Unlike => "the schema is not that of the first file",
        })
    }
}

/// Fields of a SchemaElement that determine the layout: type, type_length, repetition_type, name, num_children.
const LAYOUT: std::ops::RangeInclusive<i16> = 1..=5;
const REPETITION: i16 = 3;
const NAME: i16 = 4;

/// A field: its number, type and bytes.
type Field = (i16, u8, Vec<u8>);

/// The description of a file's columns, and its key-value metadata.
#[derive(Debug)]
pub(super) struct Description {
    elements: Vec<Vec<Field>>,
    /// The list of key-value metadata as in the footer.
    key_values: Option<Vec<u8>>,
}

impl Description {
    /// Reads the description from a footer.
    pub(super) fn of(footer: &[u8]) -> Result<Self, Damage> {
        let (mut elements, mut key_values) = (Vec::new(), None);
        for (number, kind, value) in fields(&mut Reader::new(footer))? {
            match (number, kind) {
                (2, kind::LIST) => elements = read_elements(&value)?,
                (5, kind::LIST) => key_values = Some(value),
                _ => {}
            }
        }
        Ok(Description {
            elements,
            key_values,
        })
    }

    /// Returns the footer `own` with this description where it fits, or `None` if columns are nested differently.
    pub(super) fn put_on(&self, own: &[u8]) -> Result<Option<Vec<u8>>, Damage> {
        let mut fields = fields(&mut Reader::new(own))?;
        for (_, _, value) in fields.iter_mut().filter(|field| field.0 == 2) {
            let elements = read_elements(value)?;
            if elements.len() != self.elements.len() {
                return Ok(None);
            }
            value.clear();
            push_list(value, elements.len(), kind::STRUCT);
            for (place, (own, like)) in elements.iter().zip(&self.elements).enumerate() {
                let fits = layout(own, place == 0) == layout(like, place == 0);
                write_fields(if fits { like } else { own }, value);
            }
        }
        fields.retain(|field| field.0 != 5);
        if let Some(key_values) = &self.key_values {
            let place = fields.iter().take_while(|field| field.0 < 5).count();
            fields.insert(place, (5, kind::LIST, key_values.clone()));
        }
        let mut out = Vec::with_capacity(own.len());
        write_fields(&fields, &mut out);
        Ok(Some(out))
    }
}

/// The fields that must agree. The name and repetition of the root mean nothing, so only its number of columns counts.
fn layout(element: &[Field], is_root: bool) -> Vec<&Field> {
    let counts = |field: &&Field| {
        LAYOUT.contains(&field.0) && !(is_root && matches!(field.0, REPETITION | NAME))
    };
    element.iter().filter(counts).collect()
}

fn read_elements(list: &[u8]) -> Result<Vec<Vec<Field>>, Damage> {
    let mut reader = Reader::new(list);
    let (length, element) = reader.list()?;
    if element != kind::STRUCT && length > 0 {
        return Err(Damage::Malformed);
    }
    (0..length).map(|_| fields(&mut reader)).collect()
}

fn fields(reader: &mut Reader<'_>) -> Result<Vec<Field>, Damage> {
    let (mut found, mut last) = (Vec::new(), 0);
    while let Some((number, kind)) = reader.field(last)? {
        found.push((number, kind, reader.value(kind)?.to_vec()));
        last = number;
    }
    Ok(found)
}

fn write_fields(fields: &[Field], out: &mut Vec<u8>) {
    let mut writer = StructWriter::new(out);
    for (number, kind, value) in fields {
        writer.field(*number, *kind).extend_from_slice(value);
    }
    writer.end();
}

/// Types of the compact protocol, as numbered in its field headers.
pub mod kind {
    pub const TRUE: u8 = 1;
    pub const FALSE: u8 = 2;
    pub const BYTE: u8 = 3;
    pub const I16: u8 = 4;
    pub const I32: u8 = 5;
    pub const I64: u8 = 6;
    pub const DOUBLE: u8 = 7;
    pub const BINARY: u8 = 8;
    pub const LIST: u8 = 9;
    pub const SET: u8 = 10;
    pub const STRUCT: u8 = 12;
}

/// Structs nested more deeply count as damage.
const MAX_DEPTH: usize = 64;

/// Reads values from the front of a footer.
#[derive(Clone)]
pub struct Reader<'a> {
    bytes: &'a [u8],
}

impl<'a> Reader<'a> {
    pub fn new(bytes: &'a [u8]) -> Self {
        Reader { bytes }
    }

    fn take(&mut self, count: usize) -> Result<&'a [u8], Damage> {
        let (front, rest) = self.bytes.split_at_checked(count).ok_or(Damage::Short)?;
        self.bytes = rest;
        Ok(front)
    }

    fn byte(&mut self) -> Result<u8, Damage> {
        Ok(self.take(1)?[0])
    }

    fn varint(&mut self) -> Result<u64, Damage> {
        let mut value = 0;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            value |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Ok(value);
            }
        }
        Err(Damage::Malformed)
    }

    pub fn signed(&mut self) -> Result<i64, Damage> {
        let value = self.varint()?;
        Ok((value >> 1) as i64 ^ -((value & 1) as i64))
    }

    /// Reads the (number, type) of the field after number `last`, or `None` at the end of the struct.
    pub fn field(&mut self, last: i16) -> Result<Option<(i16, u8)>, Damage> {
        let header = self.byte()?;
        match (header >> 4, header & 15) {
            (_, 0) => Ok(None),
            (0, kind) => {
                let number = i16::try_from(self.signed()?).map_err(|_| Damage::Malformed)?;
                Ok(Some((number, kind)))
            }
            (delta, kind) => {
                let number = last.checked_add(i16::from(delta));
                Ok(Some((number.ok_or(Damage::Malformed)?, kind)))
            }
        }
    }

    /// Reads the (length, element type) of the next list.
    pub fn list(&mut self) -> Result<(usize, u8), Damage> {
        let header = self.byte()?;
        let length = match header >> 4 {
            15 => self.varint()?,
            short => u64::from(short),
        };
        // An element takes at least one byte.
        match usize::try_from(length) {
            Ok(length) if length <= self.bytes.len() => Ok((length, header & 15)),
            _ => Err(Damage::Malformed),
        }
    }

    /// Returns the bytes of the next value, which has type `kind`.
    pub fn value(&mut self, kind: u8) -> Result<&'a [u8], Damage> {
        let before = self.bytes;
        self.skip(kind, MAX_DEPTH)?;
        Ok(&before[..before.len() - self.bytes.len()])
    }

    fn skip(&mut self, kind: u8, depth: usize) -> Result<(), Damage> {
        let depth = depth.checked_sub(1).ok_or(Damage::Malformed)?;
        match kind {
            // For Booleans, the type in the field header is the value.
            kind::TRUE | kind::FALSE => Ok(()),
            kind::BYTE => self.take(1).map(drop),
            kind::I16 | kind::I32 | kind::I64 => self.varint().map(drop),
            kind::DOUBLE => self.take(8).map(drop),
            kind::BINARY => {
                let length = usize::try_from(self.varint()?).map_err(|_| Damage::Malformed)?;
                self.take(length).map(drop)
            }
            kind::LIST | kind::SET => {
                let (length, element) = self.list()?;
                if matches!(element, kind::TRUE | kind::FALSE) {
                    return self.take(length).map(drop);
                }
                (0..length).try_for_each(|_| self.skip(element, depth))
            }
            kind::STRUCT => {
                let mut last = 0;
                while let Some((number, kind)) = self.field(last)? {
                    self.skip(kind, depth)?;
                    last = number;
                }
                Ok(())
            }
            _ => Err(Damage::Malformed),
        }
    }
}

/// Writes one struct, field by field.
pub struct StructWriter<'a> {
    out: &'a mut Vec<u8>,
    last: i16,
}

impl<'a> StructWriter<'a> {
    /// Starts a struct at the end of `out`.
    pub fn new(out: &'a mut Vec<u8>) -> Self {
        StructWriter { out, last: 0 }
    }

    /// Writes a field header and returns the buffer that its value is appended to. Field numbers must ascend.
    pub fn field(&mut self, number: i16, kind: u8) -> &mut Vec<u8> {
        match number - self.last {
            delta @ 1..=15 => self.out.push((delta as u8) << 4 | kind),
            _ => {
                self.out.push(kind);
                push_signed(self.out, i64::from(number));
            }
        }
        self.last = number;
        self.out
    }

    pub fn end(self) {
        self.out.push(0);
    }
}

/// Appends a signed number of 16 to 64 bits.
pub fn push_signed(out: &mut Vec<u8>, value: i64) {
    push_varint(out, ((value << 1) ^ (value >> 63)) as u64);
}

pub fn push_list(out: &mut Vec<u8>, length: usize, kind: u8) {
    match length {
        0..15 => out.push((length as u8) << 4 | kind),
        _ => {
            out.push(0xf0 | kind);
            push_varint(out, length as u64);
        }
    }
}

fn push_varint(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}
