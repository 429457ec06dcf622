//! What does a footer record about the columns, apart from their bytes?
//!
//! An encoder that supports fewer types than the file it read (intervals, times with a zone, texts that are JSON)
//! writes the same bytes with a poorer description. The description of the original file is restored for each column
//! with the same layout.
//!
//! Source: Apache Parquet, `parquet.thrift` (SchemaElement, FileMetaData).

use super::compact::{Reader, StructWriter, kind, push_list};
use super::damage::Damage;

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
