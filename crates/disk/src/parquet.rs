//! Parquet files assembled from separately encoded row groups.
//!
//! A footer is a struct of Thrift's compact protocol, which is read as a tree, changed and written again.

use std::ops::{Range, RangeInclusive};

use crate::store::put_varint;

/// Magic number at both ends of every Parquet file.
pub const MAGIC: &[u8; 4] = b"PAR1";

// Fields of the footer.
const SCHEMA: i16 = 2;
const NUM_ROWS: i16 = 3;
const ROW_GROUPS: i16 = 4;
const KEY_VALUES: i16 = 5;

/// Joins Parquet files with one schema: their row groups, in the order in which they are added.
#[derive(Default)]
pub struct FooterJoin {
    /// The footer of the first file.
    first: Option<Struct>,
    /// The row groups joined so far, as they are written.
    row_groups: Vec<u8>,
    num_row_groups: usize,
    num_rows: i64,
    /// Total bytes of these row groups.
    num_bytes: i64,
    /// The footer of the file that the rows were read from.
    description: Option<Struct>,
}

impl FooterJoin {
    /// Starts a join that takes column descriptions, where the layout is the same, and key-values from a footer.
    pub fn described_by(mut footer: &[u8]) -> Result<Self, Damage> {
        Ok(FooterJoin {
            description: Some(read_struct(&mut footer, MAX_DEPTH)?),
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

        let mut footer = read_struct(&mut &rest[stop..], MAX_DEPTH)?;
        let mut row_groups = Vec::new();
        let mut ordinal = self.num_row_groups;
        for group in structs(&mut footer, ROW_GROUPS)? {
            move_row_group(group, self.num_bytes, ordinal)?;
            write_struct(group, &mut row_groups);
            ordinal += 1;
        }
        let num_rows = match value(&mut footer, NUM_ROWS) {
            Some(Value::Number(num_rows)) => *num_rows,
            _ => 0,
        };
        let first = self.first.get_or_insert_with(|| footer.clone());
        if value(first, SCHEMA) != value(&mut footer, SCHEMA) {
            return Err(Damage::Unlike);
        }
        let num_rows = self.num_rows.checked_add(num_rows);
        self.num_rows = num_rows.ok_or(Damage::Malformed)?;
        self.row_groups.append(&mut row_groups);
        self.num_row_groups = ordinal;
        self.num_bytes += (stop - start) as i64;
        Ok(start..stop)
    }

    /// Returns the end of the joined file: the footer, below 4 GB, its length, and the magic number.
    pub fn finish(&self) -> Result<Vec<u8>, Damage> {
        let mut footer = self.first.clone().ok_or(Damage::Short)?;
        if let Some(num_rows) = value(&mut footer, NUM_ROWS) {
            *num_rows = Value::Number(self.num_rows);
        }
        if let Some(row_groups) = value(&mut footer, ROW_GROUPS) {
            let mut bytes = Vec::with_capacity(self.row_groups.len() + 6);
            push_list(&mut bytes, self.num_row_groups, kind::STRUCT);
            bytes.extend_from_slice(&self.row_groups);
            *row_groups = Value::Bytes(bytes);
        }
        if let Some(description) = &self.description {
            describe(&mut footer, description.clone())?;
        }
        let mut out = Vec::with_capacity(self.row_groups.len() + 4096);
        write_struct(&footer, &mut out);
        let length = u32::try_from(out.len()).map_err(|_| Damage::Malformed)?;
        out.extend_from_slice(&length.to_le_bytes());
        out.extend_from_slice(MAGIC);
        Ok(out)
    }
}

/// Changes a row group whose bytes moved by so many, and which has this number in the joined file.
fn move_row_group(group: &mut Struct, by: i64, ordinal: usize) -> Result<(), Damage> {
    let holds = |fields: &Struct, numbers: RangeInclusive<i16>| {
        fields.iter().any(|field| numbers.contains(&field.number))
    };
    for chunk in structs(group, 1)? {
        // Offsets and lengths of the offset index and the column index.
        if holds(chunk, 4..=7) {
            return Err(Damage::Indexed);
        }
        move_offsets(chunk, 2..=2, by)?;
        if let Some(Value::Struct(metadata)) = value(chunk, 3) {
            // The Bloom filter.
            if holds(metadata, 14..=14) {
                return Err(Damage::Indexed);
            }
            // Offsets of the first data page, index page and dictionary page.
            move_offsets(metadata, 9..=11, by)?;
        }
    }
    move_offsets(group, 5..=5, by)?;
    // The format cannot represent a larger ordinal; the field may be omitted.
    let ordinal = i16::try_from(ordinal).map(|ordinal| Value::Number(i64::from(ordinal)));
    match (value(group, 7), ordinal) {
        (Some(own), Ok(ordinal)) => *own = ordinal,
        (Some(_), Err(_)) => group.retain(|field| field.number != 7),
        (None, _) => {}
    }
    Ok(())
}

/// Moves the offsets in these fields; 0 is kept, since only the magic number is there.
fn move_offsets(fields: &mut Struct, numbers: RangeInclusive<i16>, by: i64) -> Result<(), Damage> {
    for field in fields {
        if let Value::Number(offset) = &mut field.value
            && numbers.contains(&field.number)
            && *offset != 0
        {
            *offset = offset.checked_add(by).ok_or(Damage::Malformed)?;
        }
    }
    Ok(())
}

/// Takes key-values and, where they fit, column descriptions; nothing if columns are nested differently.
fn describe(footer: &mut Struct, mut description: Struct) -> Result<(), Damage> {
    let mut own = structs(footer, SCHEMA)?;
    let like = structs(&mut description, SCHEMA)?;
    if own.len() != like.len() {
        return Ok(());
    }
    for (place, (own, like)) in own.iter_mut().zip(like).enumerate() {
        if layout(own, place == 0) == layout(like, place == 0) {
            **own = std::mem::take(like);
        }
    }
    footer.retain(|field| field.number != KEY_VALUES);
    let is_of_them = |field: &Field| (field.number, field.kind) == (KEY_VALUES, kind::LIST);
    let place = footer.partition_point(|field| field.number < KEY_VALUES);
    footer.splice(place..place, description.into_iter().filter(is_of_them));
    Ok(())
}

/// The fields that must agree: type, type_length, repetition_type, name, num_children. The repetition and name of the root
/// mean nothing, so only its number of columns counts.
fn layout(element: &Struct, is_root: bool) -> Vec<&Field> {
    let counts = |field: &&Field| match field.number {
        3 | 4 => !is_root,
        number => (1..=5).contains(&number),
    };
    element.iter().filter(counts).collect()
}

/// Why bytes cannot be joined as a Parquet file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Damage {
    /// The bytes end too early.
    #[error("the footer ends too early")]
    Short,
    /// The bytes are not a Parquet footer.
    #[error("not a Parquet footer")]
    Malformed,
    /// The file has a page index or a Bloom filter, whose own offsets would become wrong.
    #[error("a file with a page index or a Bloom filter cannot be joined")]
    Indexed,
    /// The schema or the rows differ from those of the first file.
    #[error("the schema is not that of the first file")]
    Unlike,
}

/// Types of the compact protocol, as numbered in its field headers.
mod kind {
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

/// Values nested more deeply count as damage.
const MAX_DEPTH: usize = 64;

type Struct = Vec<Field>;

#[derive(Debug, Clone, PartialEq)]
struct Field {
    number: i16,
    kind: u8,
    value: Value,
}

#[derive(Debug, Clone, PartialEq)]
enum Value {
    /// Of 16 to 64 bits.
    Number(i64),
    Struct(Struct),
    /// A list or a set, and the type of its elements.
    List(u8, Vec<Value>),
    /// Any other value, as it is written; of Booleans, the type is the value.
    Bytes(Vec<u8>),
}

/// The value of a field, if it is present.
fn value(fields: &mut Struct, number: i16) -> Option<&mut Value> {
    let field = fields.iter_mut().find(|field| field.number == number)?;
    Some(&mut field.value)
}

/// The structs of a list, which is a field.
fn structs(fields: &mut Struct, number: i16) -> Result<Vec<&mut Struct>, Damage> {
    let Some(Value::List(_, all)) = value(fields, number) else {
        return Ok(Vec::new());
    };
    let of_struct = |value| match value {
        &mut Value::Struct(ref mut fields) => Ok(fields),
        _ => Err(Damage::Malformed),
    };
    all.iter_mut().map(of_struct).collect()
}

fn take<'a>(bytes: &mut &'a [u8], count: usize) -> Result<&'a [u8], Damage> {
    let (front, rest) = bytes.split_at_checked(count).ok_or(Damage::Short)?;
    *bytes = rest;
    Ok(front)
}

fn read_varint(bytes: &mut &[u8]) -> Result<u64, Damage> {
    let mut value = 0;
    for shift in (0..64).step_by(7) {
        let byte = take(bytes, 1)?[0];
        value |= u64::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            return Ok(value);
        }
    }
    Err(Damage::Malformed)
}

fn read_signed(bytes: &mut &[u8]) -> Result<i64, Damage> {
    let value = read_varint(bytes)?;
    Ok((value >> 1) as i64 ^ -((value & 1) as i64))
}

fn read_struct(bytes: &mut &[u8], depth: usize) -> Result<Struct, Damage> {
    let mut fields = Struct::new();
    loop {
        let header = take(bytes, 1)?[0];
        let (delta, kind) = (i16::from(header >> 4), header & 15);
        let number = match (delta, kind) {
            (_, 0) => return Ok(fields),
            (0, _) => i16::try_from(read_signed(bytes)?).ok(),
            _ => fields
                .last()
                .map_or(0, |last| last.number)
                .checked_add(delta),
        };
        fields.push(Field {
            number: number.ok_or(Damage::Malformed)?,
            kind,
            value: read_value(bytes, kind, depth)?,
        });
    }
}

fn read_value(bytes: &mut &[u8], kind: u8, depth: usize) -> Result<Value, Damage> {
    let depth = depth.checked_sub(1).ok_or(Damage::Malformed)?;
    let before = *bytes;
    let num_bytes = match kind {
        kind::TRUE | kind::FALSE => 0,
        kind::BYTE => 1,
        kind::DOUBLE => 8,
        kind::BINARY => usize::try_from(read_varint(bytes)?).map_err(|_| Damage::Malformed)?,
        kind::I16 | kind::I32 | kind::I64 => return Ok(Value::Number(read_signed(bytes)?)),
        kind::STRUCT => return Ok(Value::Struct(read_struct(bytes, depth)?)),
        kind::LIST | kind::SET => {
            let header = take(bytes, 1)?[0];
            let (length, element) = (header >> 4, header & 15);
            let length = match length {
                15 => read_varint(bytes)?,
                _ => u64::from(length),
            };
            // An element takes at least one byte.
            if length > bytes.len() as u64 {
                return Err(Damage::Malformed);
            }
            let one = |_| match element {
                kind::TRUE | kind::FALSE => Ok(Value::Bytes(take(bytes, 1)?.to_vec())),
                _ => read_value(bytes, element, depth),
            };
            let all: Result<Vec<Value>, Damage> = (0..length).map(one).collect();
            return Ok(Value::List(element, all?));
        }
        _ => return Err(Damage::Malformed),
    };
    take(bytes, num_bytes)?;
    Ok(Value::Bytes(before[..before.len() - bytes.len()].to_vec()))
}

fn write_struct(fields: &Struct, out: &mut Vec<u8>) {
    let mut last = 0;
    for field in fields {
        match i32::from(field.number) - last {
            delta @ 1..=15 => out.push((delta as u8) << 4 | field.kind),
            _ => {
                out.push(field.kind);
                push_signed(out, i64::from(field.number));
            }
        }
        last = i32::from(field.number);
        write_value(&field.value, out);
    }
    out.push(0);
}

fn write_value(value: &Value, out: &mut Vec<u8>) {
    match value {
        Value::Number(number) => push_signed(out, *number),
        Value::Struct(fields) => write_struct(fields, out),
        Value::Bytes(bytes) => out.extend_from_slice(bytes),
        Value::List(kind, all) => {
            push_list(out, all.len(), *kind);
            all.iter().for_each(|value| write_value(value, out));
        }
    }
}

fn push_signed(out: &mut Vec<u8>, value: i64) {
    put_varint(out, ((value << 1) ^ (value >> 63)) as u64);
}

/// Writes the header of a list.
fn push_list(out: &mut Vec<u8>, length: usize, kind: u8) {
    match length {
        0..15 => out.push((length as u8) << 4 | kind),
        _ => {
            out.push(0xf0 | kind);
            put_varint(out, length as u64);
        }
    }
}
