//! How are the requested fields found in one pass over a row?

use std::fmt;
use std::ops::Range;

use serde::de::{DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, Visitor};
use serde_json::value::RawValue;

use super::rules::{Child, Node};

/// Where a requested value was found.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) enum Found {
    /// The row has no such field.
    #[default]
    Absent,
    /// A string without escapes: its bytes of the line, without quotes.
    Plain(Range<usize>),
    /// A string with escapes: it is decoded in [`TextSlot::decoded`].
    Decoded,
    /// Any value, unparsed: its bytes of the line.
    Raw(Range<usize>),
}

/// One of the text fields.
#[derive(Debug, Default)]
pub(super) struct TextSlot {
    pub found: Found,
    pub decoded: String,
}

/// The values of one row. Reused for every row, to reuse its memory.
#[derive(Debug, Default)]
pub(super) struct Captured {
    pub texts: Vec<TextSlot>,
    pub id: Option<Range<usize>>,
    pub fields: Vec<Option<Range<usize>>>,
}

impl Captured {
    pub fn new(num_texts: usize, num_fields: usize) -> Self {
        Captured {
            texts: (0..num_texts).map(|_| TextSlot::default()).collect(),
            id: None,
            fields: vec![None; num_fields],
        }
    }

    /// Clears the values of a child and everything below it: of duplicate keys, the last one counts.
    fn forget(&mut self, child: &Child) {
        for &i in &child.texts {
            self.texts[i].found = Found::Absent;
        }
        if child.is_id {
            self.id = None;
        }
        for &i in &child.fields {
            self.fields[i] = None;
        }
        self.forget_all(&child.nested);
    }

    /// Clears everything below a node.
    pub fn forget_all(&mut self, node: &Node) {
        for child in &node.children {
            self.forget(child);
        }
    }
}

/// Position at which `part`, a slice of `line`, begins.
fn position_in(line: &str, part: &[u8]) -> usize {
    part.as_ptr() as usize - line.as_ptr() as usize
}

/// Fills `out` from an object.
pub(super) struct ObjectSeed<'a> {
    pub line: &'a str,
    pub node: &'a Node,
    pub out: &'a mut Captured,
    /// Take every value raw, so that none is rejected because of its type.
    pub all_raw: bool,
}

impl<'de> DeserializeSeed<'de> for ObjectSeed<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for ObjectSeed<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        let ObjectSeed {
            line,
            node,
            out,
            all_raw,
        } = self;
        while let Some(found) = map.next_key_seed(KeySeed(node))? {
            let Some(at) = found else {
                map.next_value::<IgnoredAny>()?;
                continue;
            };
            let child = &node.children[at];
            out.forget(child);
            if all_raw || !(child.is_only_text() || child.is_only_nested()) {
                let raw: &RawValue = map.next_value()?;
                let start = position_in(line, raw.get().as_bytes());
                take_raw(line, child, start..start + raw.get().len(), out)
                    .map_err(A::Error::custom)?;
            } else if child.is_only_text() {
                let slot = &mut out.texts[child.texts[0]];
                map.next_value_seed(TextSeed { line, slot })?;
            } else {
                map.next_value_seed(ObjectSeed {
                    line,
                    node: &child.nested,
                    out,
                    all_raw,
                })?;
            }
        }
        Ok(())
    }
}

/// Records a raw value wherever it is requested.
fn take_raw(
    line: &str,
    child: &Child,
    range: Range<usize>,
    out: &mut Captured,
) -> Result<(), serde_json::Error> {
    for &i in &child.texts {
        out.texts[i].found = Found::Raw(range.clone());
    }
    for &i in &child.fields {
        out.fields[i] = Some(range.clone());
    }
    if child.is_id {
        out.id = Some(range.clone());
    }
    if !child.nested.children.is_empty() && line.as_bytes()[range.start] == b'{' {
        let mut deserializer = serde_json::Deserializer::from_str(&line[range]);
        ObjectSeed {
            line,
            node: &child.nested,
            out,
            all_raw: true,
        }
        .deserialize(&mut deserializer)?;
    }
    Ok(())
}

/// Deserializes a key and returns its child. Keys are read as bytes, since they may hold lone surrogates.
struct KeySeed<'a>(&'a Node);

impl<'de> DeserializeSeed<'de> for KeySeed<'_> {
    type Value = Option<usize>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_bytes(self)
    }
}

impl Visitor<'_> for KeySeed<'_> {
    type Value = Option<usize>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a key")
    }

    fn visit_bytes<E>(self, key: &[u8]) -> Result<Self::Value, E> {
        Ok(self.0.find(key))
    }

    fn visit_str<E>(self, key: &str) -> Result<Self::Value, E> {
        Ok(self.0.find(key.as_bytes()))
    }
}

/// Deserializes a string. It is read as bytes, since a lone surrogate would be rejected in a str.
pub(super) struct TextSeed<'a> {
    pub line: &'a str,
    pub slot: &'a mut TextSlot,
}

impl<'de> DeserializeSeed<'de> for TextSeed<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_bytes(self)
    }
}

impl<'de> Visitor<'de> for TextSeed<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a string")
    }

    fn visit_borrowed_bytes<E>(self, bytes: &'de [u8]) -> Result<(), E> {
        let start = position_in(self.line, bytes);
        self.slot.found = Found::Plain(start..start + bytes.len());
        Ok(())
    }

    fn visit_bytes<E>(self, bytes: &[u8]) -> Result<(), E> {
        self.slot.decoded.clear();
        push_lossy(bytes, &mut self.slot.decoded);
        self.slot.found = Found::Decoded;
        Ok(())
    }
}

/// Appends UTF-8 in which surrogates may be encoded as three bytes; each becomes U+FFFD.
pub fn push_lossy(mut bytes: &[u8], out: &mut String) {
    loop {
        match std::str::from_utf8(bytes) {
            Ok(text) => return out.push_str(text),
            Err(error) => {
                let (valid, rest) = bytes.split_at(error.valid_up_to());
                out.push_str(&String::from_utf8_lossy(valid));
                out.push('\u{FFFD}');
                let is_surrogate =
                    rest.len() >= 3 && rest[0] == 0xED && (0xA0..=0xBF).contains(&rest[1]);
                bytes = &rest[if is_surrogate { 3 } else { 1 }..];
            }
        }
    }
}
