//! What is stored of a decision, and answered?

use crate::cluster::bytes::{Packed, Unpack, packed_fields};
use crate::cluster::moved::MovedDocument;
use crate::cluster::record::{Record, Reference, Verdict};
use crate::decide::nearest::Neighbor;
use crate::error::{Error, Result};
use crate::rules::Rules;

#[derive(Debug, Clone, PartialEq)]
pub struct Decided {
    pub verdict: Option<Verdict>,
    /// Id of its kept document, unless that is of the same operation.
    pub kept_id: Option<String>,
    /// Its row, added now or before; 0 if it was only checked.
    pub reference: Reference,
    pub added: bool,
    /// Whether it collapsed, so that no table contains it.
    pub collapsed: bool,
    /// Band and level of each bucket not of level 0; above the level, a bit for each level to be marked.
    pub levels: Vec<(u16, u8)>,
}

/// A document that a removal gave another status.
#[derive(Debug, Clone, PartialEq)]
pub struct Changed {
    pub reference: Reference,
    /// Its record from now on.
    pub record: Record,
    /// Whether tables contain it from now on.
    pub enters: bool,
    /// Id of its kept document; none if it is kept now.
    pub kept_id: Option<String>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct RemovedRecord {
    pub reference: Reference,
    /// Its record before.
    pub record: Record,
    /// Its duplicates, in order of arrival.
    pub changed: Vec<Changed>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Listed {
    pub row: u32,
    pub record: Record,
    pub kept_id: Option<String>,
}

/// Something that a document lacks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    pub id: String,
    /// Name of the string or hash that does not contain it; empty if its kept document is not kept.
    pub name: Vec<u8>,
}

/// The verdict on an operation, as the log stores it.
#[derive(Debug, Clone, PartialEq)]
pub enum Answer {
    Documents(Vec<Decided>),
    /// The index has the id at this place with another text, so nothing was added.
    OtherText(usize),
    Unknown,
    Removed(RemovedRecord),
    /// How many documents were added with their verdicts, and how many of them are kept.
    Restored(usize, usize),
    /// The document at this place cannot be restored, so that nothing was added.
    NotRestored(usize),
    /// The first row that was not swept, and the documents that were.
    Swept(u32, Vec<(Reference, Record)>),
    /// Why no decision was possible; nothing was changed.
    Rejected(Reason),
}

/// A text that ends what contains it.
#[derive(Debug, Clone, PartialEq)]
pub struct Reason(pub String);

/// What an operation answers. Only verdicts are stored.
#[derive(Debug, Clone, PartialEq)]
pub enum Reply {
    Verdict(Answer),
    /// Neighbors of each document.
    Neighbors(Vec<Vec<Neighbor>>),
    Found(Box<Listed>),
    /// Id of the kept document, whether that is gone, ids of its duplicates.
    Group(String, bool, Vec<String>),
    /// Documents in order of arrival.
    List(Vec<Listed>),
    /// How many documents were checked, and what is wrong.
    Audit(usize, Vec<Finding>),
    /// All that is kept of documents, in order of arrival, and the row that follows them.
    Records(Vec<MovedDocument>, u32),
}

/// Each verdict behind a byte of its kind.
macro_rules! packed_verdicts {
    ($($kind:literal: $name:ident $(($($part:ident),*))?;)*) => {
        impl Packed for Answer {
            fn put(&self, rules: &Rules, out: &mut Vec<u8>) {
                match self {
                    $(Answer::$name $(($($part),*))? => {
                        out.push($kind);
                        $($($part.put(rules, out);)*)?
                    })*
                }
            }

            fn take(rules: &Rules, from: &mut Unpack<'_>) -> Result<Self> {
                match from.byte()? {
                    $($kind => {
                        $($(let $part = Packed::take(rules, from)?;)*)?
                        Ok(Answer::$name $(($($part),*))?)
                    })*
                    _ => Err(Error::Unreadable),
                }
            }
        }
    };
}

packed_verdicts! {
    0: Documents(all);
    1: OtherText(place);
    2: Unknown;
    3: Removed(removed);
    10: Restored(num, num_kept);
    11: NotRestored(place);
    12: Rejected(reason);
    13: Swept(end, all);
}

packed_fields!(RemovedRecord: reference, record, changed);

impl Packed for (Reference, Record) {
    fn put(&self, rules: &Rules, out: &mut Vec<u8>) {
        self.0.put(rules, out);
        self.1.put(rules, out);
    }

    fn take(rules: &Rules, from: &mut Unpack<'_>) -> Result<Self> {
        Ok((Packed::take(rules, from)?, Packed::take(rules, from)?))
    }
}

impl Packed for Reason {
    fn put(&self, _: &Rules, out: &mut Vec<u8>) {
        out.extend_from_slice(self.0.as_bytes());
    }

    fn take(_: &Rules, from: &mut Unpack<'_>) -> Result<Self> {
        Ok(Reason(String::from_utf8_lossy(from.rest()).into_owned()))
    }
}

const HAS_VERDICT: u8 = 1;
const ADDED: u8 = 2;
const COLLAPSED: u8 = 4;
const HAS_KEPT_ID: u8 = 8;
const HAS_LEVELS: u8 = 16;
const HAS_REFERENCE: u8 = 32;

impl Packed for Changed {
    fn put(&self, rules: &Rules, out: &mut Vec<u8>) {
        self.reference.put(rules, out);
        let has_kept_id = self.kept_id.is_some();
        out.push((u8::from(self.enters) * ADDED) | (u8::from(has_kept_id) * HAS_KEPT_ID));
        self.record.put(rules, out);
        self.kept_id.iter().for_each(|id| id.put(rules, out));
    }

    fn take(rules: &Rules, from: &mut Unpack<'_>) -> Result<Self> {
        let reference = Packed::take(rules, from)?;
        let flags = from.byte()?;
        Ok(Changed {
            reference,
            record: Packed::take(rules, from)?,
            enters: flags & ADDED != 0,
            kept_id: Packed::take_if(flags & HAS_KEPT_ID != 0, rules, from)?,
        })
    }
}

impl Packed for Decided {
    fn put(&self, rules: &Rules, out: &mut Vec<u8>) {
        let reference =
            Some(self.reference).filter(|of| !self.added && *of != Reference::default());
        let levels = Some(&self.levels).filter(|levels| !levels.is_empty());
        let flags = [
            (self.verdict.is_some(), HAS_VERDICT),
            (self.added, ADDED),
            (self.collapsed, COLLAPSED),
            (self.kept_id.is_some(), HAS_KEPT_ID),
            (levels.is_some(), HAS_LEVELS),
            (reference.is_some(), HAS_REFERENCE),
        ];
        out.push(
            flags
                .iter()
                .map(|&(is_set, bit)| u8::from(is_set) * bit)
                .sum(),
        );
        self.verdict
            .iter()
            .for_each(|verdict| verdict.put(rules, out));
        self.kept_id.iter().for_each(|id| id.put(rules, out));
        levels.iter().for_each(|levels| levels.put(rules, out));
        reference
            .iter()
            .for_each(|reference| reference.put(rules, out));
    }

    fn take(rules: &Rules, from: &mut Unpack<'_>) -> Result<Self> {
        let flags = from.byte()?;
        let has = |bit: u8| flags & bit != 0;
        Ok(Decided {
            verdict: Packed::take_if(has(HAS_VERDICT), rules, from)?,
            kept_id: Packed::take_if(has(HAS_KEPT_ID), rules, from)?,
            levels: Packed::take_if(has(HAS_LEVELS), rules, from)?.unwrap_or_default(),
            reference: Packed::take_if(has(HAS_REFERENCE), rules, from)?.unwrap_or_default(),
            added: has(ADDED),
            collapsed: has(COLLAPSED),
        })
    }
}
