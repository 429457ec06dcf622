//! How are removals encoded, and how do they change a document?

use super::bytes::{Cursor, Malformed, begin, open, put_varint, seal};
use super::types::{Event, Evidence};

const REMOVED: u8 = 1;

pub(super) fn encode_event(out: &mut Vec<u8>, number: u64, event: &Event) {
    begin(out);
    match event {
        Event::Removed {
            row,
            promoted,
            moved,
        } => {
            out.push(REMOVED);
            put_varint(out, u64::from(*row));
            put_varint(out, promoted.len() as u64);
            for &row in promoted {
                put_varint(out, u64::from(row));
            }
            put_varint(out, moved.len() as u64);
            for (row, evidence) in moved {
                put_varint(out, u64::from(*row));
                put_evidence(out, evidence);
            }
        }
    }
    seal(out, number);
}

pub(super) fn decode_event(record: &[u8], number: u64) -> Result<Event, Malformed> {
    let mut cursor = Cursor(open(record, number)?);
    let event = match cursor.byte()? {
        REMOVED => {
            let row = cursor.varint_u32()?;
            let num_promoted = cursor.count()?;
            let promoted = (0..num_promoted)
                .map(|_| cursor.varint_u32())
                .collect::<Result<_, _>>()?;
            let num_moved = cursor.count()?;
            let moved = (0..num_moved)
                .map(|_| Ok((cursor.varint_u32()?, take_evidence(&mut cursor)?)))
                .collect::<Result<_, _>>()?;
            Event::Removed {
                row,
                promoted,
                moved,
            }
        }
        _ => return Err(Malformed),
    };
    cursor.end()?;
    Ok(event)
}

fn put_evidence(out: &mut Vec<u8>, evidence: &Evidence) {
    put_varint(out, u64::from(evidence.kept_row));
    put_varint(
        out,
        evidence
            .distance
            .map_or(0, |distance| u64::from(distance) + 1),
    );
    out.extend_from_slice(&evidence.similarity.to_bits().to_le_bytes());
}

fn take_evidence(cursor: &mut Cursor<'_>) -> Result<Evidence, Malformed> {
    Ok(Evidence {
        kept_row: cursor.varint_u32()?,
        distance: cursor
            .varint()?
            .checked_sub(1)
            .map(u16::try_from)
            .transpose()
            .map_err(|_| Malformed)?,
        similarity: f64::from_bits(cursor.u64()?),
    })
}

/// How events changed a document since it was committed.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct Change {
    pub(super) is_gone: bool,
    /// Its verdict, if that has changed.
    pub(super) verdict: Option<Option<Evidence>>,
}

/// A tally of all records of changes. It reveals a lost record, an outdated one, and events without their changes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct ChangesTally {
    pub(super) num: u64,
    /// The sum of their checksums, modulo 2^64.
    pub(super) sum: u64,
    /// The last event whose changes were applied; 0 before the first.
    pub(super) last_event: u64,
}

impl ChangesTally {
    pub(super) fn add(&mut self, record: &[u8]) {
        self.num = self.num.wrapping_add(1);
        self.sum = self.sum.wrapping_add(checksum_of(record));
    }

    /// Subtracts a record that is deleted or replaced.
    pub(super) fn remove(&mut self, record: &[u8]) {
        self.num = self.num.wrapping_sub(1);
        self.sum = self.sum.wrapping_sub(checksum_of(record));
    }

    /// Returns the value for `meta`.
    pub(super) fn encode(self) -> Vec<u8> {
        let mut out = Vec::new();
        put_varint(&mut out, self.num);
        out.extend_from_slice(&self.sum.to_le_bytes());
        put_varint(&mut out, self.last_event);
        out
    }

    pub(super) fn decode(bytes: &[u8]) -> Result<Self, Malformed> {
        let mut cursor = Cursor(bytes);
        let tally = ChangesTally {
            num: cursor.varint()?,
            sum: cursor.u64()?,
            last_event: cursor.varint()?,
        };
        cursor.end()?;
        Ok(tally)
    }
}

/// Returns the checksum at the beginning of a record, or 0 if the record is too short.
fn checksum_of(record: &[u8]) -> u64 {
    record
        .first_chunk()
        .map_or(0, |bytes| u64::from_le_bytes(*bytes))
}

const GONE: u8 = 1;
const PROMOTED: u8 = 2;
const MOVED: u8 = 4;

pub(super) fn encode_change(out: &mut Vec<u8>, row: u32, change: &Change) {
    begin(out);
    let verdict = match change.verdict {
        None => 0,
        Some(None) => PROMOTED,
        Some(Some(_)) => MOVED,
    };
    out.push((GONE * u8::from(change.is_gone)) | verdict);
    if let Some(Some(evidence)) = &change.verdict {
        put_evidence(out, evidence);
    }
    seal(out, u64::from(row));
}

pub(super) fn decode_change(record: &[u8], row: u32) -> Result<Change, Malformed> {
    let mut cursor = Cursor(open(record, u64::from(row))?);
    let flags = cursor.byte()?;
    let verdict = match flags & !GONE {
        0 => None,
        PROMOTED => Some(None),
        MOVED => Some(Some(take_evidence(&mut cursor)?)),
        _ => return Err(Malformed),
    };
    cursor.end()?;
    Ok(Change {
        is_gone: flags & GONE != 0,
        verdict,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_and_changes_come_back() {
        let evidence = Evidence {
            kept_row: 5,
            similarity: 0.1 + 0.2,
            distance: Some(0),
        };
        let other = Evidence {
            kept_row: u32::MAX,
            similarity: 1.0,
            distance: None,
        };
        let mut out = Vec::new();
        for event in [
            Event::Removed {
                row: 300,
                promoted: Vec::new(),
                moved: Vec::new(),
            },
            Event::Removed {
                row: 7,
                promoted: vec![9, 1000],
                moved: vec![(8, evidence), (10, other)],
            },
        ] {
            encode_event(&mut out, 12, &event);
            assert_eq!(decode_event(&out, 12), Ok(event));
            assert!(decode_event(&out, 13).is_err());
        }
        for verdict in [None, Some(None), Some(Some(evidence)), Some(Some(other))] {
            for is_gone in [false, true] {
                let change = Change { is_gone, verdict };
                encode_change(&mut out, 3, &change);
                assert_eq!(decode_change(&out, 3), Ok(change));
            }
        }
    }
}
