//! What does an operation of the log contain?

use std::ops::Range;

use likewise_core::features::Shape;
use likewise_disk::store::{DocumentRow, NewContent};

use crate::cluster::answer::Decided;
use crate::cluster::bytes::{Pack, Packed, Unpack, last_text};
use crate::cluster::moved::MovedDocument;
use crate::cluster::record::{pack_set, unpack_set};
use crate::decide::nearest::Nearest;
use crate::documents::Documents;
use crate::error::{Error, Result};
use crate::rules::Rules;

/// What is to be done. Only additions, removals and sweeps are in the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Decide documents in their order and add them.
    Add = 0,
    Remove,
    /// Decide documents, each by itself.
    Check,
    /// Find the most similar kept documents.
    Neighbors,
    Get,
    Group,
    List,
    /// Check that the tables contain the documents of some rows.
    Audit,
    /// Give all that is kept of the first documents of some rows, expired ones too: of as many as a reply can contain.
    Records,
    /// Add documents with the verdicts that they have.
    Restore,
    /// Delete those of some rows that expired long ago.
    Sweep,
}

impl Kind {
    const ALL: [Kind; 11] = [
        Kind::Add,
        Kind::Remove,
        Kind::Check,
        Kind::Neighbors,
        Kind::Get,
        Kind::Group,
        Kind::List,
        Kind::Audit,
        Kind::Records,
        Kind::Restore,
        Kind::Sweep,
    ];
}

#[derive(Debug, Clone)]
pub struct Operation {
    pub kind: Kind,
    pub documents: Documents,
    ids: String,
    id_ends: Vec<usize>,
    pub nearest: Nearest,
    /// Rows that are listed, checked, given or swept.
    pub rows: Range<u32>,
    pub moved: Vec<MovedDocument>,
}

const HAS_TEXTS: u8 = 1;
const HAS_DIGESTS: u8 = 2;

/// Packs documents to be added or checked, with their ids if any.
pub fn pack_documents(
    kind: Kind,
    rules: &Rules,
    ids: Option<&[&str]>,
    documents: &Documents,
    nearest: Option<Nearest>,
) -> Vec<u8> {
    let num = documents.len();
    let mut packed = Vec::with_capacity(32 + documents.sketches.len() + num * 48);
    packed.push(kind as u8);
    if let Some(nearest) = nearest {
        packed.count(nearest.limit);
        packed.raw(&nearest.min_similarity.to_le_bytes());
    }
    packed.count(num);
    let has_digests = !documents.feature_digests.is_empty();
    let has_texts = !documents.text_digests.is_empty();
    packed.push((u8::from(has_texts) * HAS_TEXTS) | (u8::from(has_digests) * HAS_DIGESTS));
    for i in 0..num {
        let set = documents.set(i);
        packed.push(documents.shapes[i] << 1 | u8::from(set.is_some()));
        packed.count(documents.num_features[i] as usize);
        packed.raw(documents.sketch(i));
        if has_texts {
            packed.raw(&documents.text_digests[i].to_le_bytes());
        }
        if has_digests && rules.needs_set(documents.num_features[i]) {
            packed.raw(&documents.feature_digests[i].to_le_bytes());
        }
        if let Some((features, weights)) = set {
            pack_set(features, weights, &mut packed);
        }
        if let Some(ids) = ids {
            packed.counted(ids[i].as_bytes());
        }
    }
    packed
}

pub fn pack_id(kind: Kind, id: &str) -> Vec<u8> {
    let mut packed = vec![kind as u8];
    packed.raw(id.as_bytes());
    packed
}

pub fn pack_rows(kind: Kind, rows: &Range<u32>) -> Vec<u8> {
    let mut packed = vec![kind as u8];
    packed.raw(&rows.start.to_le_bytes());
    packed.raw(&rows.end.to_le_bytes());
    packed
}

impl Operation {
    pub fn unpack(rules: &Rules, packed: &[u8]) -> Result<Self> {
        let from = &mut Unpack(packed);
        let kind = Kind::ALL.get(usize::from(from.byte()?));
        let kind = *kind.ok_or(Error::Unreadable)?;
        let mut operation = Operation {
            kind,
            documents: Documents::default(),
            ids: String::new(),
            id_ends: Vec::new(),
            nearest: Nearest {
                limit: 1,
                min_similarity: 0.0,
            },
            rows: 0..0,
            moved: Vec::new(),
        };
        match kind {
            Kind::Remove | Kind::Get | Kind::Group => operation.push_id(last_text(from)?),
            Kind::List | Kind::Audit | Kind::Records | Kind::Sweep => {
                operation.rows = from.u32()?..from.u32()?;
            }
            Kind::Restore => {
                let moved = Vec::<MovedDocument>::take(rules, from)?;
                let ids = moved.iter().map(|document| &document.record.id);
                ids.for_each(|id| operation.push_id(id));
                operation.moved = moved;
            }
            Kind::Neighbors => {
                operation.nearest = Nearest {
                    limit: from.size()?,
                    min_similarity: f64::from_bits(from.u64()?),
                };
                operation.take_documents(rules, from)?;
            }
            Kind::Add | Kind::Check => operation.take_documents(rules, from)?,
        }
        Ok(operation)
    }

    fn take_documents(&mut self, rules: &Rules, from: &mut Unpack<'_>) -> Result<()> {
        let num = from.size()?;
        let flags = from.byte()?;
        for _ in 0..num {
            let head = from.byte()?;
            if head >> 1 > Shape::Empty as u8 {
                return Err(Error::Unreadable);
            }
            let num_features = from.size()? as u32;
            let has_digest = flags & HAS_DIGESTS != 0 && rules.needs_set(num_features);
            let sketch = from.take(rules.sketch_bytes())?;
            let text_digest = Packed::take_if(flags & HAS_TEXTS != 0, rules, from)?;
            let digest = Packed::take_if(has_digest, rules, from)?.unwrap_or(0);
            let set = (head & 1 == 1).then(|| unpack_set(from)).transpose()?;
            let content = set.as_ref().map(|(f, w)| NewContent::Features(f, w));
            self.documents.push_stored(&DocumentRow {
                sketch,
                shape: head >> 1,
                num_features,
                text_digest,
                digest,
                content: content.unwrap_or_default(),
                ..DocumentRow::default()
            });
            if self.kind == Kind::Add {
                self.push_id(from.text()?);
            }
        }
        Ok(())
    }

    fn push_id(&mut self, id: &str) {
        self.ids.push_str(id);
        self.id_ends.push(self.ids.len());
    }

    /// Whether verdicts are on its documents. Only those that are to be added can be.
    pub fn is_decided_by(&self, all: &[Decided]) -> bool {
        let has_added = all.iter().any(|decided| decided.added);
        self.documents.len() == all.len() && (self.kind == Kind::Add || !has_added)
    }

    /// Its ids: of the documents to add, or the one in question.
    pub fn ids(&self) -> Vec<&str> {
        (0..self.id_ends.len()).map(|i| self.id(i)).collect()
    }

    pub fn id(&self, i: usize) -> &str {
        let begin = if i == 0 { 0 } else { self.id_ends[i - 1] };
        &self.ids[begin..self.id_ends[i]]
    }
}
