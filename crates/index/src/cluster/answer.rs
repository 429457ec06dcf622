//! What is stored of a decision, and answered?

use crate::cluster::bytes::{Pack, Unpack};
use crate::cluster::moved::{MovedDocument, pack_moved, unpack_moved};
use crate::cluster::record::{Record, Reference, Verdict, pack_levels, unpack_levels};
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
pub struct AnsweredNeighbor {
    pub id: String,
    pub verdict: Verdict,
    pub matches: bool,
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

#[derive(Debug, Clone, PartialEq)]
pub enum Answer {
    Documents(Vec<Decided>),
    /// The index has the id at this place with another text, so nothing was added.
    OtherText(u32),
    Unknown,
    Removed(Box<RemovedRecord>),
    /// Neighbors of each document.
    Neighbors(Vec<Vec<AnsweredNeighbor>>),
    /// A document, and the id of its kept one.
    Found(u32, Box<Record>, Option<String>),
    /// Id of the kept document, whether that is gone, ids of its duplicates.
    Group(String, bool, Vec<String>),
    /// Documents in order of arrival.
    List(Vec<Listed>),
    /// How many documents were checked, and what is wrong.
    Audit(usize, Vec<Finding>),
    /// All that is kept of documents, in order of arrival, and the row that follows them.
    Records(Vec<MovedDocument>, u32),
    /// How many documents were added with their verdicts, and how many of them are kept.
    Restored(usize, usize),
    /// The document at this place cannot be restored, so that nothing was added.
    NotRestored(u32),
    /// The first row that was not swept, and the documents that were.
    Swept(u32, Vec<(Reference, Record)>),
    /// Why no decision was possible; nothing was changed.
    Rejected(String),
}

const HAS_VERDICT: u8 = 1;
const ADDED: u8 = 2;
const COLLAPSED: u8 = 4;
const HAS_KEPT_ID: u8 = 8;
const HAS_LEVELS: u8 = 16;
const HAS_REFERENCE: u8 = 32;

fn flag(is_set: bool, bit: u8) -> u8 {
    if is_set { bit } else { 0 }
}

impl Answer {
    pub fn pack(&self, rules: &Rules) -> Vec<u8> {
        let mut packed = Vec::new();
        match self {
            Answer::Documents(all) => {
                packed.push(0);
                packed.count(all.len());
                for decided in all {
                    pack_decided(rules, decided, &mut packed);
                }
            }
            Answer::OtherText(place) => {
                packed.push(1);
                packed.count(*place as usize);
            }
            Answer::Unknown => packed.push(2),
            Answer::Removed(removed) => {
                packed.push(3);
                packed.raw(&removed.reference.bytes());
                packed.counted(&removed.record.pack(rules));
                packed.count(removed.changed.len());
                for changed in &removed.changed {
                    packed.raw(&changed.reference.bytes());
                    let enters = flag(changed.enters, ADDED);
                    packed.push(enters | flag(changed.kept_id.is_some(), HAS_KEPT_ID));
                    packed.counted(&changed.record.pack(rules));
                    if let Some(id) = &changed.kept_id {
                        packed.counted(id.as_bytes());
                    }
                }
            }
            Answer::Neighbors(all) => {
                packed.push(4);
                packed.count(all.len());
                for found in all {
                    packed.count(found.len());
                    for neighbor in found {
                        packed.push(u8::from(neighbor.matches));
                        let similarity = neighbor.verdict.evidence.similarity;
                        packed.raw(&similarity.to_le_bytes());
                        neighbor.verdict.pack(rules, &mut packed);
                        packed.counted(neighbor.id.as_bytes());
                    }
                }
            }
            Answer::Found(row, record, kept_id) => {
                packed.push(5);
                packed.raw(&row.to_le_bytes());
                packed.counted(&record.pack(rules));
                packed.push(u8::from(kept_id.is_some()));
                packed.raw(kept_id.as_deref().unwrap_or_default().as_bytes());
            }
            Answer::List(all) => {
                packed.push(7);
                packed.count(all.len());
                for listed in all {
                    packed.raw(&listed.row.to_le_bytes());
                    packed.counted(&listed.record.pack(rules));
                    packed.push(u8::from(listed.kept_id.is_some()));
                    packed.counted(listed.kept_id.as_deref().unwrap_or_default().as_bytes());
                }
            }
            Answer::Swept(end, all) => {
                packed.push(13);
                packed.raw(&end.to_le_bytes());
                packed.count(all.len());
                for (reference, record) in all {
                    packed.raw(&reference.bytes());
                    packed.counted(&record.pack(rules));
                }
            }
            Answer::Audit(num, all) => {
                packed.push(8);
                packed.count(*num);
                packed.count(all.len());
                for finding in all {
                    packed.counted(finding.id.as_bytes());
                    packed.counted(&finding.name);
                }
            }
            Answer::Records(all, end) => {
                packed.push(9);
                packed.raw(&end.to_le_bytes());
                pack_moved(rules, all, &mut packed);
            }
            Answer::Restored(num, num_kept) => {
                packed.push(10);
                packed.count(*num);
                packed.count(*num_kept);
            }
            Answer::NotRestored(place) => {
                packed.push(11);
                packed.count(*place as usize);
            }
            Answer::Rejected(reason) => {
                packed.push(12);
                packed.raw(reason.as_bytes());
            }
            Answer::Group(leader, is_gone, members) => {
                packed.push(6);
                packed.push(u8::from(*is_gone));
                packed.counted(leader.as_bytes());
                packed.count(members.len());
                members
                    .iter()
                    .for_each(|member| packed.counted(member.as_bytes()));
            }
        }
        packed
    }

    pub fn unpack(rules: &Rules, packed: &[u8]) -> Result<Self> {
        let mut unpack = Unpack(packed);
        let unpack = &mut unpack;
        Ok(match unpack.byte()? {
            0 => {
                let num = unpack.size()?;
                let all = (0..num).map(|_| unpack_decided(rules, unpack));
                Answer::Documents(all.collect::<Result<_, _>>()?)
            }
            1 => Answer::OtherText(unpack.size()? as u32),
            2 => Answer::Unknown,
            3 => {
                let reference = Reference::unpack(unpack)?;
                let record = Record::unpack(rules, unpack.counted()?)?;
                let num = unpack.size()?;
                let changed = (0..num).map(|_| {
                    let reference = Reference::unpack(unpack)?;
                    let flags = unpack.byte()?;
                    let record = Record::unpack(rules, unpack.counted()?)?;
                    let kept_id = match flags & HAS_KEPT_ID {
                        0 => None,
                        _ => Some(unpack.text()?.to_owned()),
                    };
                    Ok(Changed {
                        reference,
                        record,
                        enters: flags & ADDED != 0,
                        kept_id,
                    })
                });
                let changed = changed.collect::<Result<_>>()?;
                Answer::Removed(Box::new(RemovedRecord {
                    reference,
                    record,
                    changed,
                }))
            }
            4 => {
                let num = unpack.size()?;
                let mut all = Vec::new();
                for _ in 0..num {
                    let mut found = Vec::new();
                    for _ in 0..unpack.size()? {
                        let matches = unpack.byte()? != 0;
                        let similarity = f64::from_bits(unpack.u64()?);
                        let mut verdict = Verdict::unpack(rules, unpack)?;
                        verdict.evidence.similarity = similarity;
                        let id = unpack.text()?.to_owned();
                        found.push(AnsweredNeighbor {
                            id,
                            verdict,
                            matches,
                        });
                    }
                    all.push(found);
                }
                Answer::Neighbors(all)
            }
            5 => {
                let row = unpack.u32()?;
                let record = Box::new(Record::unpack(rules, unpack.counted()?)?);
                let has_kept = unpack.byte()? != 0;
                let kept = std::str::from_utf8(unpack.rest()).map_err(|_| Error::Unreadable)?;
                Answer::Found(row, record, has_kept.then(|| kept.to_owned()))
            }
            6 => {
                let is_gone = unpack.byte()? != 0;
                let leader = unpack.text()?.to_owned();
                let num = unpack.size()?;
                let members = (0..num).map(|_| Ok(unpack.text()?.to_owned()));
                let members = members.collect::<Result<_>>()?;
                Answer::Group(leader, is_gone, members)
            }
            7 => {
                let num = unpack.size()?;
                let all = (0..num).map(|_| {
                    let row = unpack.u32()?;
                    let record = Record::unpack(rules, unpack.counted()?)?;
                    let has_kept = unpack.byte()? != 0;
                    let kept_id = unpack.text()?.to_owned();
                    Ok(Listed {
                        row,
                        record,
                        kept_id: has_kept.then_some(kept_id),
                    })
                });
                Answer::List(all.collect::<Result<_>>()?)
            }
            8 => {
                let (num, num_findings) = (unpack.size()?, unpack.size()?);
                let all = (0..num_findings).map(|_| {
                    let id = unpack.text()?.to_owned();
                    let name = unpack.counted()?.to_vec();
                    Ok(Finding { id, name })
                });
                Answer::Audit(num, all.collect::<Result<_>>()?)
            }
            9 => {
                let end = unpack.u32()?;
                Answer::Records(unpack_moved(rules, unpack)?, end)
            }
            10 => Answer::Restored(unpack.size()?, unpack.size()?),
            11 => Answer::NotRestored(unpack.size()? as u32),
            12 => Answer::Rejected(String::from_utf8_lossy(unpack.rest()).into_owned()),
            13 => {
                let end = unpack.u32()?;
                let num = unpack.size()?;
                let all = (0..num).map(|_| {
                    let reference = Reference::unpack(unpack)?;
                    Ok((reference, Record::unpack(rules, unpack.counted()?)?))
                });
                Answer::Swept(end, all.collect::<Result<_>>()?)
            }
            _ => return Err(Error::Unreadable),
        })
    }
}

fn pack_decided(rules: &Rules, decided: &Decided, out: &mut Vec<u8>) {
    let has_reference = !decided.added && decided.reference != Reference::default();
    out.push(
        flag(decided.verdict.is_some(), HAS_VERDICT)
            | flag(decided.added, ADDED)
            | flag(decided.collapsed, COLLAPSED)
            | flag(decided.kept_id.is_some(), HAS_KEPT_ID)
            | flag(!decided.levels.is_empty(), HAS_LEVELS)
            | flag(has_reference, HAS_REFERENCE),
    );
    if let Some(verdict) = &decided.verdict {
        verdict.pack(rules, out);
    }
    if let Some(id) = &decided.kept_id {
        out.counted(id.as_bytes());
    }
    if !decided.levels.is_empty() {
        pack_levels(&decided.levels, out);
    }
    if has_reference {
        out.raw(&decided.reference.bytes());
    }
}

fn unpack_decided(rules: &Rules, unpack: &mut Unpack<'_>) -> Result<Decided> {
    let flags = unpack.byte()?;
    let has = |bit: u8| flags & bit != 0;
    let verdict = has(HAS_VERDICT)
        .then(|| Verdict::unpack(rules, unpack))
        .transpose()?;
    let kept_id = match has(HAS_KEPT_ID) {
        true => Some(unpack.text()?.to_owned()),
        false => None,
    };
    let levels = match has(HAS_LEVELS) {
        true => unpack_levels(rules, unpack)?,
        false => Vec::new(),
    };
    let reference = match has(HAS_REFERENCE) {
        true => Reference::unpack(unpack)?,
        false => Reference::default(),
    };
    Ok(Decided {
        verdict,
        kept_id,
        reference,
        added: has(ADDED),
        collapsed: has(COLLAPSED),
        levels,
    })
}
