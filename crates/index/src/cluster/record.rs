//! What do the servers of a cluster keep of one document?

use likewise_core::features::Shape;
use likewise_disk::store::{DocumentRow, Evidence};

use crate::cluster::bytes::{Pack, Packed, Unpack, last_text};
use crate::cluster::names::REFERENCE_BYTES;
use crate::error::{Error, Result};
use crate::rules::Rules;
use crate::state::in_memory::COLLAPSED;

/// The first bytes of the nonce of an operation: rows that are used again after a failover have another one.
pub type Tag = [u8; 2];

/// A row, and the tag of the operation that added it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct Reference {
    pub row: u32,
    pub tag: Tag,
}

impl Reference {
    /// As it ends an entry, or names a field.
    pub fn bytes(self) -> [u8; REFERENCE_BYTES] {
        let [a, b, c, d] = self.row.to_le_bytes();
        [a, b, c, d, self.tag[0], self.tag[1]]
    }

    pub fn of_entry(entry: &[u8]) -> Self {
        let tail = entry.last_chunk::<REFERENCE_BYTES>().copied();
        let [a, b, c, d, e, f] = tail.unwrap_or_default();
        Reference {
            row: u32::from_le_bytes([a, b, c, d]),
            tag: [e, f],
        }
    }
}

impl Packed for Reference {
    fn put(&self, _: &Rules, out: &mut Vec<u8>) {
        out.raw(&self.bytes());
    }

    fn take(_: &Rules, from: &mut Unpack<'_>) -> Result<Self> {
        Ok(Reference::of_entry(from.take(REFERENCE_BYTES)?))
    }
}

/// Evidence, with the tag of the kept document.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Verdict {
    pub evidence: Evidence,
    pub tag: Tag,
}

impl Verdict {
    pub fn leader(&self) -> Reference {
        Reference {
            row: self.evidence.kept_row,
            tag: self.tag,
        }
    }
}

impl Packed for Verdict {
    fn put(&self, rules: &Rules, out: &mut Vec<u8>) {
        self.leader().put(rules, out);
        if let Some(distance) = self.evidence.distance {
            out.raw(&distance.to_le_bytes());
        }
        if !rules.is_distance_only() {
            out.raw(&self.evidence.similarity.to_le_bytes());
        }
    }

    fn take(rules: &Rules, from: &mut Unpack<'_>) -> Result<Self> {
        let leader = Reference::take(rules, from)?;
        let has_distance = rules.zero_distance().is_some();
        let distance = has_distance.then(|| from.u16()).transpose()?;
        let similarity = match rules.similarity_of(distance) {
            Some(similarity) => similarity,
            None => f64::from_bits(from.u64()?),
        };
        Ok(Verdict {
            evidence: Evidence {
                kept_row: leader.row,
                similarity,
                distance,
            },
            tag: leader.tag,
        })
    }
}

#[derive(Debug, Clone, PartialEq)]
pub struct Record {
    pub id: String,
    pub sketch: Vec<u8>,
    /// Its shape, with [`COLLAPSED`].
    pub shape: u8,
    pub num_features: u32,
    /// XXH3-64 of the text, if it had one.
    pub text_digest: Option<u64>,
    /// Digest of the feature set if it decides; otherwise 0.
    pub digest: u128,
    pub verdict: Option<Verdict>,
    /// Band and level of each bucket that is not of level 0.
    pub levels: Vec<(u16, u8)>,
    pub second: u64,
}

const HAS_TEXT: u8 = 8;
const HAS_DIGEST: u8 = 16;
const HAS_VERDICT: u8 = 32;
const HAS_LEVELS: u8 = 64;

/// A band, and a level in it.
impl Packed for (u16, u8) {
    fn put(&self, _: &Rules, out: &mut Vec<u8>) {
        out.raw(&self.0.to_le_bytes());
        out.push(self.1);
    }

    fn take(rules: &Rules, from: &mut Unpack<'_>) -> Result<Self> {
        let (band, level) = (from.u16()?, from.byte()?);
        match u32::from(band) < rules.num_bands() {
            true => Ok((band, level)),
            false => Err(Error::Unreadable),
        }
    }
}

pub fn pack_record(
    rules: &Rules,
    row: &DocumentRow<'_>,
    tag: Option<Tag>,
    second: u64,
    out: &mut Vec<u8>,
) {
    // Classes and short documents are compared by it.
    let has_digest = rules.needs_set(row.num_features);
    let flag = |is_set: bool, bit: u8| u8::from(is_set) * bit;
    out.push(
        row.shape
            | flag(row.text_digest.is_some(), HAS_TEXT)
            | flag(has_digest, HAS_DIGEST)
            | flag(row.verdict.is_some(), HAS_VERDICT)
            | flag(!row.levels.is_empty(), HAS_LEVELS),
    );
    out.raw(&(second as u32).to_le_bytes());
    out.count(row.num_features as usize);
    out.raw(row.sketch);
    if let Some(digest) = row.text_digest {
        out.raw(&digest.to_le_bytes());
    }
    if has_digest {
        out.raw(&row.digest.to_le_bytes());
    }
    if let (Some(evidence), Some(tag)) = (row.verdict, tag) {
        Verdict { evidence, tag }.put(rules, out);
    }
    if !row.levels.is_empty() {
        out.count(row.levels.len());
        row.levels.iter().for_each(|level| level.put(rules, out));
    }
    out.raw(row.id.as_bytes());
}

impl Record {
    /// As the tables of memory take it.
    pub fn row(&self, row: u32) -> DocumentRow<'_> {
        DocumentRow {
            row,
            id: &self.id,
            sketch: &self.sketch,
            shape: self.shape,
            num_features: self.num_features,
            text_digest: self.text_digest,
            digest: self.digest,
            verdict: self.verdict.map(|verdict| verdict.evidence),
            levels: &self.levels,
            ..DocumentRow::default()
        }
    }

    pub fn pack(&self, rules: &Rules) -> Vec<u8> {
        let mut packed = Vec::new();
        let tag = self.verdict.map(|verdict| verdict.tag);
        pack_record(rules, &self.row(0), tag, self.second, &mut packed);
        packed
    }

    pub fn unpack(rules: &Rules, packed: &[u8]) -> Result<Self> {
        let from = &mut Unpack(packed);
        let flags = from.byte()?;
        let has = |bit: u8| flags & bit != 0;
        let second = u64::from(from.u32()?);
        let num_features = from.size()? as u32;
        Ok(Record {
            sketch: from.take(rules.sketch_bytes())?.to_vec(),
            shape: flags & (3 | COLLAPSED),
            num_features,
            text_digest: Packed::take_if(has(HAS_TEXT), rules, from)?,
            digest: Packed::take_if(has(HAS_DIGEST), rules, from)?.unwrap_or(0),
            verdict: Packed::take_if(has(HAS_VERDICT), rules, from)?,
            levels: Packed::take_if(has(HAS_LEVELS), rules, from)?.unwrap_or_default(),
            second,
            id: last_text(from)?.to_owned(),
        })
    }

    pub fn is_blank(&self) -> bool {
        self.shape & 3 == Shape::Empty as u8
    }

    pub fn is_collapsed(&self) -> bool {
        self.shape & COLLAPSED != 0
    }
}

/// Behind its number of bytes, which its id ends.
impl Packed for Record {
    fn put(&self, rules: &Rules, out: &mut Vec<u8>) {
        out.counted(&self.pack(rules));
    }

    fn take(rules: &Rules, from: &mut Unpack<'_>) -> Result<Self> {
        Record::unpack(rules, from.counted()?)
    }
}

/// Packs features and weights; of no weights all are 1.
pub fn pack_set(features: &[u64], weights: &[u32], out: &mut Vec<u8>) {
    let has_weights = weights.iter().any(|&weight| weight != 1);
    out.count(features.len() << 1 | usize::from(has_weights));
    features
        .iter()
        .for_each(|feature| out.raw(&feature.to_le_bytes()));
    if has_weights {
        weights
            .iter()
            .for_each(|weight| out.count(*weight as usize));
    }
}

/// Takes features and weights; no weights if all are 1.
pub fn unpack_set(from: &mut Unpack<'_>) -> Result<(Vec<u64>, Vec<u32>)> {
    let head = from.size()?;
    let num = head >> 1;
    let bytes = from.take(num.checked_mul(8).ok_or(Error::Unreadable)?)?;
    let features = bytes.as_chunks().0.iter().copied().map(u64::from_le_bytes);
    let num_weights = num * (head & 1);
    let weights = (0..num_weights).map(|_| Ok(from.size()? as u32));
    Ok((features.collect(), weights.collect::<Result<_>>()?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::{Matching, Method};
    use likewise_core::sketch::Scheme;
    use likewise_core::verify::{Measure, NameRules, Required};
    use likewise_disk::store::Keeps;

    fn all_rules() -> [Rules; 2] {
        [
            Rules {
                method: Method::Simhash {
                    bits: 64,
                    within: 3,
                },
                matching: Matching::Distance {
                    short_threshold: 0.5,
                },
                seed: 0,
                keeps: Keeps::Sketch,
            },
            Rules {
                method: Method::Minhash {
                    num_slots: 4,
                    slot_bytes: 2,
                    scheme: Scheme::Bucket,
                    bands: 2,
                    rows: 2,
                },
                matching: Matching::Verified {
                    measure: Measure::Jaccard,
                    required: Required {
                        threshold: 0.5,
                        short_margin: 0.0,
                        names: NameRules::default(),
                        identifiers: false,
                    },
                },
                seed: 0,
                keeps: Keeps::Shingles,
            },
        ]
    }

    #[test]
    fn records_come_back_and_cut_ones_are_errors() {
        for rules in all_rules() {
            let distance = rules.zero_distance().map(|_| 2);
            let verdict = Verdict {
                evidence: Evidence {
                    kept_row: 77,
                    similarity: rules.similarity_of(distance).unwrap_or(0.7),
                    distance,
                },
                tag: [1, 2],
            };
            let levels = match rules.method {
                Method::Minhash { .. } => vec![(0, 1), (1, 3)],
                Method::Simhash { .. } => vec![],
            };
            for (verdict, levels) in [(None, vec![]), (Some(verdict), levels)] {
                let record = Record {
                    id: "Straße 7".to_owned(),
                    sketch: (0..8).collect(),
                    shape: COLLAPSED | 1,
                    num_features: 300,
                    text_digest: Some(1 << 60),
                    digest: if rules.needs_set(300) { 1 << 100 } else { 0 },
                    verdict,
                    levels,
                    second: 1_700_000_000,
                };
                let packed = record.pack(&rules);
                assert_eq!(Record::unpack(&rules, &packed).unwrap(), record);
                assert!(Record::unpack(&rules, &packed[..12]).is_err());
            }
        }
    }

    #[test]
    fn sets_come_back_with_weights_and_without() {
        for weights in [vec![1, 1, 1], vec![1, 300, 2]] {
            let mut packed = Vec::new();
            pack_set(&[3, 1 << 40, u64::MAX], &weights, &mut packed);
            let (features, found) = unpack_set(&mut Unpack(&packed)).unwrap();
            assert_eq!(features, [3, 1 << 40, u64::MAX]);
            let are_ones = weights.iter().all(|&weight| weight == 1);
            assert_eq!(found, if are_ones { vec![] } else { weights });
        }
    }
}
