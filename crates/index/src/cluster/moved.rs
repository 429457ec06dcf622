//! What moves with a document from one index to another?

use likewise_disk::store::Content;
use xxhash_rust::xxh3::xxh3_64_with_seed;

use crate::cluster::bytes::{Pack, Packed, Unpack, packed_fields};
use crate::cluster::record::{Record, Tag, pack_set, unpack_set};
use crate::documents::{Documents, Sketcher, Sketching};
use crate::error::Result;
use crate::rules::Rules;

/// A document with its verdict. Its row, and that of its kept document, count the documents that move, from 0.
#[derive(Debug, Clone, PartialEq)]
pub struct MovedDocument {
    pub row: u32,
    /// All but its content. The tag of its kept document is not set.
    pub record: Record,
    /// Its features or its text, if stored.
    pub content: Content,
}

packed_fields!(MovedDocument: row, record, content);

impl Packed for Content {
    fn put(&self, _: &Rules, out: &mut Vec<u8>) {
        match self {
            Content::Features(features, weights) => {
                out.push(1);
                pack_set(features, weights, out);
            }
            // Servers keep no texts.
            Content::Absent | Content::Text(_) => out.push(0),
        }
    }

    fn take(_: &Rules, from: &mut Unpack<'_>) -> Result<Self> {
        Ok(match from.byte()? {
            0 => Content::Absent,
            _ => {
                let (features, weights) = unpack_set(from)?;
                Content::Features(features, weights)
            }
        })
    }
}

impl MovedDocument {
    /// Replaces a text by its feature set, where decisions need that.
    pub fn forget_text(&mut self, sketching: &Sketching, sketcher: &mut Sketcher) {
        let Content::Text(text) = std::mem::replace(&mut self.content, Content::Absent) else {
            return;
        };
        let mut documents = Documents::default();
        sketcher.add(sketching.text_kind.document(&text), &mut documents);
        if sketching.rules.needs_set(self.record.num_features) {
            self.record.digest = documents.feature_digests[0];
        }
        if let Some((features, weights)) = documents.set(0) {
            self.content = Content::Features(features.to_vec(), weights.to_vec());
        }
    }

    /// Continues a checksum over all that verdicts and answers depend on. It does not depend on how documents are divided into batches.
    pub fn checksum(&self, rules: &Rules, before: u64, packed: &mut Vec<u8>) -> u64 {
        let record = &self.record;
        packed.clear();
        packed.counted(record.id.as_bytes());
        packed.raw(&self.row.to_le_bytes());
        packed.raw(&record.second.to_le_bytes());
        packed.counted(&record.sketch);
        packed.push(record.shape);
        packed.count(record.num_features as usize);
        packed.push(u8::from(record.text_digest.is_some()));
        packed.raw(&record.text_digest.unwrap_or(0).to_le_bytes());
        if rules.needs_set(record.num_features) {
            packed.raw(&record.digest.to_le_bytes());
        }
        packed.push(u8::from(record.verdict.is_some()));
        if let Some(verdict) = &record.verdict {
            let evidence = &verdict.evidence;
            packed.raw(&evidence.kept_row.to_le_bytes());
            packed.raw(&evidence.similarity.to_le_bytes());
            packed.raw(&evidence.distance.unwrap_or(u16::MAX).to_le_bytes());
        }
        record.levels.put(rules, packed);
        match &self.content {
            Content::Features(features, weights) if rules.needs_set(record.num_features) => {
                pack_set(features, weights, packed);
            }
            Content::Text(text) => packed.counted(text),
            _ => {}
        }
        xxh3_64_with_seed(packed, before)
    }
}

/// The level of a document in a band, below the bits of the buckets to mark.
pub const LEVEL: u8 = 3;

/// A document as servers keep it, after its operation got a tag.
pub fn restored(document: &MovedDocument, tag: Tag) -> MovedDocument {
    let mut document = document.clone();
    for (_, level) in &mut document.record.levels {
        *level &= LEVEL;
    }
    if let Some(verdict) = &mut document.record.verdict {
        verdict.tag = tag;
    }
    document
}

/// The rows that move, and the number of each among them. Takes a bit and a half for each row up to the last.
#[derive(Debug, Clone, Default)]
pub struct RowNumbers {
    words: Vec<u64>,
    /// Rows before each word; none until they are counted.
    before: Vec<u32>,
}

impl RowNumbers {
    /// The first rows, without gaps.
    pub fn dense(num: u32) -> Self {
        let mut words = vec![u64::MAX; num as usize / 64];
        if !num.is_multiple_of(64) {
            words.push((1 << (num % 64)) - 1);
        }
        let mut numbers = RowNumbers {
            words,
            before: Vec::new(),
        };
        numbers.count();
        numbers
    }

    /// Adds a row. All are added before the first number is used.
    pub fn insert(&mut self, row: u32) {
        let word = (row / 64) as usize;
        if self.words.len() <= word {
            self.words.resize(word + 1, 0);
        }
        self.words[word] |= 1 << (row % 64);
    }

    /// Counts the rows, after all were added.
    pub fn count(&mut self) {
        let mut num = 0;
        self.before.clear();
        for word in &self.words {
            self.before.push(num);
            num += word.count_ones();
        }
    }

    pub fn len(&self) -> usize {
        self.words
            .iter()
            .map(|word| word.count_ones() as usize)
            .sum()
    }

    pub fn is_empty(&self) -> bool {
        self.words.iter().all(|&word| word == 0)
    }

    /// The number of a row, if it moves.
    pub fn number_of(&self, row: u32) -> Option<u32> {
        let (word, bit) = ((row / 64) as usize, 1_u64 << (row % 64));
        let rows = *self.words.get(word)?;
        let before = *self.before.get(word)?;
        (rows & bit != 0).then(|| before + (rows & (bit - 1)).count_ones())
    }

    /// Gives a document its number, and that of its kept document; nothing where either does not move.
    pub fn renumbered(&self, mut document: MovedDocument) -> Option<MovedDocument> {
        document.row = self.number_of(document.row)?;
        if let Some(verdict) = &mut document.record.verdict {
            verdict.evidence.kept_row = self.number_of(verdict.evidence.kept_row)?;
        }
        Some(document)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_numbered_without_gaps() {
        let mut numbers = RowNumbers::default();
        for row in [3, 63, 64, 200, 3] {
            numbers.insert(row);
        }
        numbers.count();
        assert_eq!(numbers.len(), 4);
        let found = [0, 3, 63, 64, 65, 200, 201, u32::MAX].map(|row| numbers.number_of(row));
        let expected = [None, Some(0), Some(1), Some(2), None, Some(3), None, None];
        assert_eq!(found, expected);
        for num in [0, 1, 64, 65, 130] {
            let numbers = RowNumbers::dense(num);
            assert_eq!(numbers.len(), num as usize);
            assert!((0..num).all(|row| numbers.number_of(row) == Some(row)));
            assert_eq!(numbers.number_of(num), None);
        }
    }
}
