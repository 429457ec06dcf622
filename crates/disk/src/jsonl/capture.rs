//! How are the requested fields found in one pass over a row?
//!
//! Of a text in a list, only the positions of its strings are taken: those that do not count are never decoded.

use std::fmt;
use std::ops::Range;

use serde::de::{
    Deserialize, DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess,
    Unexpected, Visitor,
};
use serde_json::value::RawValue;

use super::nan::type_of;
use super::rules::{Child, JsonlRules, Node, RoleRules, Step, split_path};

/// Where a requested value was found.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) enum Found {
    #[default]
    Absent,
    /// Strings of a list, in [`TextSlot::parts`].
    Parts,
    /// Any value, such as a string with its quotes: its bytes of the line.
    Raw(Range<usize>),
}

#[derive(Debug, Default)]
pub(super) struct TextSlot {
    pub found: Found,
    /// The strings of a list, with their quotes, as bytes of the line.
    pub parts: Vec<Range<usize>>,
    /// Steps to these strings.
    steps: Vec<Step>,
    roles: RoleRules,
}

impl TextSlot {
    /// Whether the path of the field leads through a list.
    pub fn is_in_list(&self) -> bool {
        !self.steps.is_empty()
    }
}

/// The values of one row. Reused for every row, to reuse its memory.
#[derive(Debug, Default)]
pub(super) struct Captured {
    pub texts: Vec<TextSlot>,
    pub id: Option<Range<usize>>,
    pub fields: Vec<Option<Range<usize>>>,
}

impl Captured {
    pub fn new(rules: &JsonlRules) -> Self {
        let slot = |path: &String| TextSlot {
            steps: split_path(path).1,
            roles: rules.roles.clone(),
            ..TextSlot::default()
        };
        Captured {
            texts: rules.text_fields.iter().map(slot).collect(),
            id: None,
            fields: vec![None; rules.fields.len()],
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
    /// Take every value raw, so that none is rejected because it is not an object.
    pub all_raw: bool,
}

own_seed!(ObjectSeed, deserialize_map);

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
            if all_raw || !child.is_only_nested() {
                let raw: &RawValue = map.next_value()?;
                let start = position_in(line, raw.get().as_bytes());
                take_raw(line, child, start..start + raw.get().len(), out)
                    .map_err(A::Error::custom)?;
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

own_seed!(KeySeed, deserialize_bytes);

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

/// Deserializes the strings of a list.
pub(super) struct TextSeed<'a> {
    pub line: &'a str,
    pub slot: &'a mut TextSlot,
}

impl<'de> DeserializeSeed<'de> for TextSeed<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        if !self.slot.is_in_list() {
            return deserializer.deserialize_seq(self);
        }
        self.slot.parts.clear();
        self.slot.found = Found::Parts;
        Parts {
            line: self.line,
            steps: &self.slot.steps,
            roles: &self.slot.roles,
            is_inner: false,
            is_item: false,
            out: &mut self.slot.parts,
        }
        .deserialize(deserializer)
    }
}

impl<'de> Visitor<'de> for TextSeed<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a string or a list")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<(), A::Error> {
        self.slot.parts.clear();
        self.slot.found = Found::Parts;
        while let Some(raw) = list.next_element::<&RawValue>()? {
            take_item(self.line, raw.get(), &mut self.slot.parts).map_err(A::Error::custom)?;
        }
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

/// Walks from a value to the strings in it, and appends their positions.
struct Parts<'a> {
    line: &'a str,
    steps: &'a [Step],
    roles: &'a RoleRules,
    /// Whether the value is part of a text already, and so cannot be a list of parts.
    is_inner: bool,
    /// Whether the value is an item of the last list on the way, whose role decides.
    is_item: bool,
    out: &'a mut Vec<Range<usize>>,
}

impl Parts<'_> {
    /// The same one step further.
    fn next(&mut self) -> Parts<'_> {
        let steps = &self.steps[1..];
        Parts {
            line: self.line,
            steps,
            roles: self.roles,
            is_inner: self.is_inner,
            is_item: self.steps[0] == Step::Items && !steps.contains(&Step::Items),
            out: self.out,
        }
    }
}

impl<'de> DeserializeSeed<'de> for Parts<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        if !self.steps.is_empty() {
            return deserializer.deserialize_any(self);
        }
        let raw = <&RawValue>::deserialize(deserializer)?.get();
        match raw.as_bytes()[0] {
            b'"' => self.out.push(range_in(self.line, raw)),
            b'n' => {}
            b'[' if !self.is_inner => {
                for item in serde_json::from_str::<Vec<&RawValue>>(raw).map_err(D::Error::custom)? {
                    take_item(self.line, item.get(), self.out).map_err(D::Error::custom)?;
                }
            }
            _ => return Err(not_a_string(raw)),
        }
        Ok(())
    }
}

impl<'de> Visitor<'de> for Parts<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.steps[0] {
            Step::Items => "a list",
            Step::Key(_) => "an object",
        })
    }

    fn visit_unit<E>(self) -> Result<(), E> {
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(mut self, mut list: A) -> Result<(), A::Error> {
        if self.steps[0] != Step::Items {
            return Err(A::Error::invalid_type(Unexpected::Seq, &self));
        }
        while list.next_element_seed(self.next())?.is_some() {}
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(mut self, mut map: A) -> Result<(), A::Error> {
        let Step::Key(key) = &self.steps[0] else {
            return Err(A::Error::invalid_type(Unexpected::Map, &self));
        };
        let mut keys = Node::default();
        for name in [key.as_slice(), b"role", b"from"] {
            keys.children.push(Child {
                key: name.to_vec(),
                ..Child::default()
            });
        }
        let num_before = self.out.len();
        let mut roles: [Option<String>; 2] = [None, None];
        while let Some(found) = map.next_key_seed(KeySeed(&keys))? {
            match found {
                Some(0) => {
                    // Of duplicate keys, the last one counts.
                    self.out.truncate(num_before);
                    map.next_value_seed(self.next())?;
                }
                Some(at) => {
                    let raw: &RawValue = map.next_value()?;
                    roles[at - 1] = serde_json::from_str(raw.get()).ok();
                }
                None => {
                    map.next_value::<IgnoredAny>()?;
                }
            }
        }
        let role = roles.iter().flatten().next().map(String::as_str);
        if self.is_item && !self.roles.count(role) {
            self.out.truncate(num_before);
        }
        Ok(())
    }
}

/// Takes an item of a text that is a list: a string, null, or an object with a `text`. Others, such as images, have none.
fn take_item(line: &str, raw: &str, out: &mut Vec<Range<usize>>) -> Result<(), serde_json::Error> {
    let text = [Step::Key(b"text".to_vec())];
    Parts {
        line,
        steps: if raw.starts_with('{') { &text } else { &[] },
        roles: &RoleRules::default(),
        is_inner: true,
        is_item: false,
        out,
    }
    .deserialize(&mut serde_json::Deserializer::from_str(raw))
}

fn not_a_string<E: Error>(raw: &str) -> E {
    E::custom(format_args!("{} in the list, not a string", type_of(raw)))
}

fn range_in(line: &str, part: &str) -> Range<usize> {
    let start = position_in(line, part.as_bytes());
    start..start + part.len()
}
