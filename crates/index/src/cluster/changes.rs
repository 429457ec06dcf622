//! What do operations change that are below the low mark, and whose changes a partition has not applied yet?

use std::collections::HashMap;

use crate::cluster::bytes::Unpack;
use crate::cluster::names::Name;
use crate::cluster::record::Reference;
use crate::error::Error;

/// The name of a hash, and a field.
type Field<'c> = (Vec<u8>, &'c [u8]);

/// Changes that operations below the low mark made in a partition, and that are not in its strings yet.
#[derive(Default)]
pub struct Changes<'c> {
    /// Entries by name: whether one enters or leaves, in order.
    entries: HashMap<Vec<u8>, Vec<(bool, &'c [u8])>>,
    /// Values by name and field; nothing of those deleted.
    fields: HashMap<Field<'c>, Option<&'c [u8]>>,
}

impl<'c> Changes<'c> {
    pub fn unpack(all: &[&'c [u8]]) -> Result<Self, Error> {
        let mut changes = Changes::default();
        for packed in all {
            let mut unpack = Unpack::new(packed);
            while !unpack.is_empty() {
                let (kind, name) = unpack.string()?.split_first().ok_or(Error::Unreadable)?;
                let (name, part) = (name.to_vec(), unpack.string()?);
                match kind {
                    b'A' | b'D' => {
                        let entries = changes.entries.entry(name).or_default();
                        entries.push((*kind == b'A', part));
                    }
                    b'S' => {
                        let value = unpack.string()?;
                        changes.fields.insert((name, part), Some(value));
                    }
                    b'X' => {
                        changes.fields.insert((name, part), None);
                    }
                    _ => return Err(Error::Unreadable),
                }
            }
        }
        Ok(changes)
    }

    /// A string with its changes, where there are some.
    pub fn patched(&self, name: Name, string: &[u8]) -> Option<Vec<u8>> {
        if self.entries.is_empty() {
            return None;
        }
        let mut key = Vec::new();
        name.append_to(&mut key);
        let entries = self.entries.get(&key)?;
        let mut patched = string.to_vec();
        for (enters, entry) in entries {
            let place = patched.chunks_exact(entry.len()).position(|e| e == *entry);
            match (enters, place) {
                (true, None) => patched.extend_from_slice(entry),
                (false, Some(place)) => {
                    patched.drain(place * entry.len()..(place + 1) * entry.len());
                }
                _ => {}
            }
        }
        Some(patched)
    }

    pub fn of_field(&self, name: Name, reference: Reference) -> Option<Option<&'c [u8]>> {
        if self.fields.is_empty() {
            return None;
        }
        let mut key = Vec::new();
        name.append_to(&mut key);
        let field = reference.bytes();
        let found = self.fields.iter();
        let mut found = found.filter(|((name, of), _)| *name == key && **of == field);
        found.next().map(|(_, value)| *value)
    }
}
