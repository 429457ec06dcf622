//! What do operations change that are below the low mark, and whose changes a partition has not applied yet?

use std::collections::HashMap;

use crate::cluster::bytes::Unpack;
use crate::cluster::names::{Name, REFERENCE_BYTES};
use crate::cluster::record::Reference;
use crate::error::{Error, Result};

/// Values by field; nothing of those deleted.
type Fields<'c> = HashMap<&'c [u8], Option<&'c [u8]>>;

/// Changes that operations below the low mark made in a partition, and that are not in its strings yet.
#[derive(Default)]
pub struct Changes<'c> {
    /// Entries by name: whether one enters or leaves, in order.
    entries: HashMap<Vec<u8>, Vec<(bool, &'c [u8])>>,
    /// Values by name and field.
    fields: HashMap<Vec<u8>, Fields<'c>>,
}

impl<'c> Changes<'c> {
    pub fn unpack(all: &[&'c [u8]]) -> Result<Self> {
        let mut changes = Changes::default();
        for packed in all {
            let mut unpack = Unpack::new(packed);
            while !unpack.is_empty() {
                let (kind, name) = unpack.string()?.split_first().ok_or(Error::Unreadable)?;
                let (name, part) = (name.to_vec(), unpack.string()?);
                match kind {
                    b'A' | b'D' if part.len() < REFERENCE_BYTES => return Err(Error::Unreadable),
                    b'A' | b'D' => {
                        let entries = changes.entries.entry(name).or_default();
                        entries.push((*kind == b'A', part));
                    }
                    b'S' => {
                        let value = unpack.string()?;
                        let fields = changes.fields.entry(name).or_default();
                        fields.insert(part, Some(value));
                    }
                    b'X' | b'Y' => {
                        changes.fields.entry(name).or_default().insert(part, None);
                    }
                    _ => return Err(Error::Unreadable),
                }
            }
        }
        Ok(changes)
    }

    /// A string with its changes, if any.
    pub fn patched(&self, name: Name, string: &[u8]) -> Option<Vec<u8>> {
        if self.entries.is_empty() {
            return None;
        }
        let mut key = Vec::new();
        name.append_to(&mut key);
        let entries = self.entries.get(&key)?;
        // The last change of an entry decides. All entries of a string have one length.
        let mut left: HashMap<&[u8], bool> = HashMap::new();
        for &(enters, entry) in entries {
            left.insert(entry, enters);
        }
        let mut patched = Vec::with_capacity(string.len());
        for entry in string.chunks_exact(entries[0].1.len()) {
            match left.get_mut(entry) {
                None => patched.extend_from_slice(entry),
                Some(enters) => {
                    if std::mem::take(enters) {
                        patched.extend_from_slice(entry);
                    }
                }
            }
        }
        for (_, entry) in entries {
            if left.remove(entry) == Some(true) {
                patched.extend_from_slice(entry);
            }
        }
        Some(patched)
    }

    /// What a field was changed to, if it was: its value, or nothing if it was deleted.
    pub fn of_field(&self, name: Name, reference: Reference) -> Option<Option<&'c [u8]>> {
        if self.fields.is_empty() {
            return None;
        }
        let mut key = Vec::new();
        name.append_to(&mut key);
        self.fields.get(&key)?.get(&reference.bytes()[..]).copied()
    }
}
