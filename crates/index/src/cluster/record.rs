//! What do the servers of a cluster keep of one document?

use likewise_core::features::Shape;
use likewise_disk::store::Evidence;

use crate::cluster::bytes::{Pack, Unpack};
use crate::cluster::names::REFERENCE_BYTES;
use crate::error::{Error, Result};
use crate::rules::{Method, Rules};
use crate::state::in_memory::{COLLAPSED, MemoryRow};

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

    pub fn unpack(unpack: &mut Unpack<'_>) -> Result<Self> {
        Ok(Reference::of_entry(unpack.take(REFERENCE_BYTES)?))
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

    pub fn pack(&self, rules: &Rules, out: &mut Vec<u8>) {
        out.raw(&self.leader().bytes());
        if let Some(distance) = self.evidence.distance {
            out.raw(&distance.to_le_bytes());
        }
        if !rules.is_distance_only() {
            out.raw(&self.evidence.similarity.to_le_bytes());
        }
    }

    pub fn unpack(rules: &Rules, unpack: &mut Unpack<'_>) -> Result<Self> {
        let leader = Reference::unpack(unpack)?;
        let distance = match rules.zero_distance() {
            Some(_) => Some(unpack.u16()?),
            None => None,
        };
        let similarity = match rules.similarity_of(distance) {
            Some(similarity) => similarity,
            None => f64::from_bits(unpack.u64()?),
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

pub fn pack_levels(levels: &[(u16, u8)], out: &mut Vec<u8>) {
    out.count(levels.len());
    for (band, level) in levels {
        out.raw(&band.to_le_bytes());
        out.push(*level);
    }
}

pub fn unpack_levels(rules: &Rules, unpack: &mut Unpack<'_>) -> Result<Vec<(u16, u8)>> {
    let num_bands = match rules.method {
        Method::Minhash { bands, .. } => bands,
        Method::Simhash { .. } => 0,
    };
    let num = unpack.size()?;
    (0..num)
        .map(|_| {
            let (band, level) = (unpack.u16()?, unpack.byte()?);
            match u32::from(band) < num_bands {
                true => Ok((band, level)),
                false => Err(Error::Unreadable),
            }
        })
        .collect()
}

pub fn pack_record(
    rules: &Rules,
    row: &MemoryRow<'_>,
    tag: Option<Tag>,
    second: u64,
    out: &mut Vec<u8>,
) {
    // Classes and short documents are compared by it.
    let has_digest = rules.needs_set(row.num_features);
    let flag = |is_set: bool, bit: u8| if is_set { bit } else { 0 };
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
        Verdict { evidence, tag }.pack(rules, out);
    }
    if !row.levels.is_empty() {
        pack_levels(row.levels, out);
    }
    out.raw(row.id.as_bytes());
}

impl Record {
    /// As the tables of memory take it.
    pub fn row(&self, row: u32) -> MemoryRow<'_> {
        MemoryRow {
            row,
            id: &self.id,
            sketch: &self.sketch,
            shape: self.shape,
            num_features: self.num_features,
            text_digest: self.text_digest,
            digest: self.digest,
            verdict: self.verdict.map(|verdict| verdict.evidence),
            levels: &self.levels,
        }
    }

    pub fn pack(&self, rules: &Rules) -> Vec<u8> {
        let mut packed = Vec::new();
        let tag = self.verdict.map(|verdict| verdict.tag);
        pack_record(rules, &self.row(0), tag, self.second, &mut packed);
        packed
    }

    pub fn unpack(rules: &Rules, packed: &[u8]) -> Result<Self> {
        let mut unpack = Unpack(packed);
        let flags = unpack.byte()?;
        let has = |bit: u8| flags & bit != 0;
        let second = u64::from(unpack.u32()?);
        let num_features = unpack.size()? as u32;
        let sketch = unpack.take(rules.sketch_bytes())?.to_vec();
        let text_digest = has(HAS_TEXT).then(|| unpack.u64()).transpose()?;
        let digest = has(HAS_DIGEST).then(|| unpack.u128()).transpose()?;
        let verdict = has(HAS_VERDICT)
            .then(|| Verdict::unpack(rules, &mut unpack))
            .transpose()?;
        let levels = match has(HAS_LEVELS) {
            true => unpack_levels(rules, &mut unpack)?,
            false => Vec::new(),
        };
        let id = std::str::from_utf8(unpack.rest()).map_err(|_| Error::Unreadable)?;
        Ok(Record {
            id: id.to_owned(),
            sketch,
            shape: flags & (3 | COLLAPSED),
            num_features,
            text_digest,
            digest: digest.unwrap_or(0),
            verdict,
            levels,
            second,
        })
    }

    pub fn is_blank(&self) -> bool {
        self.shape & 3 == Shape::Empty as u8
    }

    pub fn is_collapsed(&self) -> bool {
        self.shape & COLLAPSED != 0
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
pub fn unpack_set(
    unpack: &mut Unpack<'_>,
    features: &mut Vec<u64>,
    weights: &mut Vec<u32>,
) -> Result<()> {
    let head = unpack.size()?;
    let num = head >> 1;
    let bytes = unpack.take(num.checked_mul(8).ok_or(Error::Unreadable)?)?;
    let (words, _) = bytes.as_chunks::<8>();
    features.extend(words.iter().map(|word| u64::from_le_bytes(*word)));
    if head & 1 == 1 {
        for _ in 0..num {
            weights.push(unpack.size()? as u32);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::Matching;
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
            let (mut features, mut found) = (Vec::new(), Vec::new());
            unpack_set(&mut Unpack(&packed), &mut features, &mut found).unwrap();
            assert_eq!(features, [3, 1 << 40, u64::MAX]);
            let are_ones = weights.iter().all(|&weight| weight == 1);
            assert_eq!(found, if are_ones { vec![] } else { weights });
        }
    }
}
