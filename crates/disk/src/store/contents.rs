//! How are feature sets and texts stored?
//!
//! They are stored in blocks of about 32 KiB, so that reading one document costs one small read, and texts of one site
//! are compressed together.

use std::borrow::Cow;
use std::cell::RefCell;

use zstd::bulk::Decompressor;

use super::bytes::{
    BitReader, BitWriter, Cursor, Malformed, begin, open, put_packed, put_varint, seal,
};
use super::types::{Content, DocumentRow, NewContent};
use crate::error::{Doing, Error, Result};
use likewise_core::error::invalid_if;

/// A block ends when its uncompressed size reaches this many bytes.
pub(super) const BLOCK_BYTES: usize = 32 << 10;
const MAX_BLOCK_ROWS: usize = 4096;
/// Fast rather than small: texts may arrive at hundreds of megabytes per second.
const ZSTD_LEVEL: i32 = 1;

const FEATURES: u8 = 1;
const TEXTS: u8 = 2;
const PACKED_TEXTS: u8 = 3;

/// The contents of one block, document after document.
#[derive(Debug, Default)]
pub(super) struct Block {
    kind: u8,
    first_row: u32,
    pub(super) num_rows: u32,
    /// For each document with a content, its position in the block and the size of the content.
    positions: Vec<u32>,
    lengths: Vec<u32>,
    bytes: Vec<u8>,
}

impl Block {
    pub(super) fn clear(&mut self, first_row: u32) {
        self.kind = 0;
        self.first_row = first_row;
        self.num_rows = 0;
        self.positions.clear();
        self.lengths.clear();
        self.bytes.clear();
    }

    pub(super) fn first_row(&self) -> u32 {
        self.first_row
    }

    pub(super) fn has_content(&self) -> bool {
        !self.positions.is_empty()
    }

    /// Whether the next document should begin a new block.
    pub(super) fn is_full(&self) -> bool {
        self.bytes.len() >= BLOCK_BYTES || self.num_rows as usize >= MAX_BLOCK_ROWS
    }

    /// Whether the rows of another block, which must follow, can be joined to this one.
    pub(super) fn takes(&self, other: &Contents<'_>) -> bool {
        let num_rows = other.first_row - self.first_row + other.num_rows;
        self.kind == other.plain_kind()
            && self.bytes.len() + other.bytes.len() <= BLOCK_BYTES
            && num_rows as usize <= MAX_BLOCK_ROWS
    }

    /// Appends the rows of another block, which must follow, that `is_kept` selects.
    pub(super) fn join(&mut self, other: &Contents<'_>, is_kept: impl Fn(u32) -> bool) {
        self.kind = other.plain_kind();
        for row in other.rows().filter(|&row| is_kept(row)) {
            let bytes = other.bytes_of(row).unwrap_or_default();
            self.positions.push(row - self.first_row);
            self.lengths.push(bytes.len() as u32);
            self.bytes.extend_from_slice(bytes);
        }
        self.num_rows = other.first_row - self.first_row + other.num_rows;
    }

    pub(super) fn push_nothing(&mut self) {
        self.num_rows += 1;
    }

    pub(super) fn push_text(&mut self, text: &[u8]) -> Result<()> {
        self.kind = TEXTS;
        let begin = self.bytes.len();
        self.bytes.extend_from_slice(text);
        self.end(begin)
    }

    pub(super) fn push_features(&mut self, features: &[u64], weights: &[u32]) -> Result<()> {
        self.kind = FEATURES;
        let begin = self.bytes.len();
        invalid_if(
            !(weights.is_empty() || weights.len() == features.len())
                || !features.is_sorted_by(|a, b| a < b),
            "contents",
            || "features ascend, and have a weight each or none",
        )?;
        put_features(&mut self.bytes, features, weights);
        self.end(begin)
    }

    fn end(&mut self, begin: usize) -> Result<()> {
        let length = u32::try_from(self.bytes.len() - begin).ok();
        let length = length.filter(|&length| length <= 1 << 28).ok_or_else(|| {
            Error::invalid("contents", "one document takes at most 268,435,456 bytes")
        })?;
        self.positions.push(self.num_rows);
        self.lengths.push(length);
        self.num_rows += 1;
        Ok(())
    }

    pub(super) fn encode(&self, packer: &mut Packer, out: &mut Vec<u8>) -> Result<()> {
        begin(out);
        let packed = match self.kind {
            TEXTS => packer.pack(&self.bytes)?,
            _ => None,
        };
        out.push(match packed {
            Some(_) => PACKED_TEXTS,
            None => self.kind,
        });
        put_varint(out, u64::from(self.num_rows));
        put_varint(out, self.positions.len() as u64);
        put_packed(out, self.positions.iter().copied());
        put_packed(out, self.lengths.iter().copied());
        out.extend_from_slice(packed.unwrap_or(&self.bytes));
        seal(out, u64::from(self.first_row));
        Ok(())
    }
}

/// Compresses and decompresses texts with reusable zstd contexts.
#[derive(Default)]
pub(super) struct Packer {
    compressor: Option<zstd::bulk::Compressor<'static>>,
    buffer: Vec<u8>,
}

impl Packer {
    /// Returns the compressed bytes, if they are fewer.
    fn pack(&mut self, bytes: &[u8]) -> Result<Option<&[u8]>> {
        let compressor = match &mut self.compressor {
            Some(compressor) => compressor,
            empty => empty.insert(zstd::bulk::Compressor::new(ZSTD_LEVEL).doing("pack texts")?),
        };
        self.buffer.clear();
        self.buffer
            .reserve(zstd::zstd_safe::compress_bound(bytes.len()));
        compressor
            .compress_to_buffer(bytes, &mut self.buffer)
            .doing("pack texts")?;
        Ok((self.buffer.len() < bytes.len()).then_some(&self.buffer[..]))
    }
}

/// Decompresses a block into at most `most` bytes.
fn unpacked(packed: &[u8], most: usize) -> Result<Vec<u8>, Malformed> {
    thread_local! {
        // Creating one takes longer than decompressing a small block.
        static HELD: RefCell<Option<Decompressor<'static>>> = const { RefCell::new(None) };
    }
    HELD.with_borrow_mut(|held| {
        let decompressor = match held {
            Some(decompressor) => decompressor,
            None => held.insert(Decompressor::new().map_err(|_| Malformed)?),
        };
        decompressor.decompress(packed, most).map_err(|_| Malformed)
    })
}

pub(super) struct Contents<'a> {
    first_row: u32,
    kind: u8,
    pub(super) num_rows: u32,
    positions: Vec<u32>,
    ends: Vec<usize>,
    bytes: Cow<'a, [u8]>,
}

impl<'a> Contents<'a> {
    fn plain_kind(&self) -> u8 {
        match self.kind {
            PACKED_TEXTS => TEXTS,
            kind => kind,
        }
    }

    /// Reads the record of the block that begins at `first_row`.
    pub(super) fn new(record: &'a [u8], first_row: u32) -> Result<Self, Malformed> {
        let mut cursor = Cursor(open(record, u64::from(first_row))?);
        let kind = cursor.byte()?;
        let num_rows = cursor.varint_u32()?;
        let count = usize::try_from(cursor.varint()?).map_err(|_| Malformed)?;
        if count > num_rows as usize || num_rows as usize > 2 * MAX_BLOCK_ROWS {
            return Err(Malformed);
        }
        let positions = cursor.packed(count)?;
        let positions: Vec<u32> = (0..count).map(|i| positions.get(i)).collect();
        if !positions.is_sorted_by(|a, b| a < b)
            || positions.last().is_some_and(|&last| last >= num_rows)
        {
            return Err(Malformed);
        }
        let lengths = cursor.packed(count)?;
        let mut end = 0usize;
        let ends: Vec<usize> = (0..count)
            .map(|i| {
                end = end.saturating_add(lengths.get(i) as usize);
                end
            })
            .collect();
        let bytes: Cow<'a, [u8]> = match kind {
            FEATURES | TEXTS => cursor.0.into(),
            PACKED_TEXTS => unpacked(cursor.0, end)?.into(),
            _ => return Err(Malformed),
        };
        if bytes.len() != end {
            return Err(Malformed);
        }
        Ok(Contents {
            first_row,
            kind,
            num_rows,
            positions,
            ends,
            bytes,
        })
    }

    pub(super) fn rows(&self) -> impl Iterator<Item = u32> {
        self.positions
            .iter()
            .map(|position| self.first_row + position)
    }

    /// Returns the stored bytes of a row, or `None` if this block does not hold the row.
    fn bytes_of(&self, row: u32) -> Option<&[u8]> {
        let position = row.wrapping_sub(self.first_row);
        let i = self.positions.binary_search(&position).ok()?;
        let begin = match i {
            0 => 0,
            _ => self.ends[i - 1],
        };
        Some(&self.bytes[begin..self.ends[i]])
    }

    /// Returns the content of a row, or `None` if this block has none.
    pub(super) fn get(&self, row: u32) -> Result<Option<Content>, Malformed> {
        let Some(bytes) = self.bytes_of(row) else {
            return Ok(None);
        };
        if self.kind != FEATURES {
            return Ok(Some(Content::Text(bytes.to_vec())));
        }
        let (features, weights) = get_features(bytes)?;
        Ok(Some(Content::Features(features, weights)))
    }
}

/// Divides the contents of a batch into blocks and passes each to `write`.
pub(super) fn cut(
    documents: &[DocumentRow<'_>],
    first_row: u32,
    block: &mut Block,
    mut write: impl FnMut(&Block) -> Result<()>,
) -> Result<()> {
    block.clear(first_row);
    for (i, document) in documents.iter().enumerate() {
        match document.content {
            NewContent::Text(text) => block.push_text(text)?,
            NewContent::Features(features, weights) => block.push_features(features, weights)?,
            NewContent::Absent => block.push_nothing(),
        }
        if block.is_full() || i + 1 == documents.len() {
            if block.has_content() {
                write(block)?;
            }
            block.clear(first_row + i as u32 + 1);
        }
    }
    Ok(())
}

/// Flag of a feature set: weights follow. The lower bits are the width of the low part of a gap.
const HAS_WEIGHTS: u8 = 0x80;

/// Writes ascending features and their weights. Empty weights mean that all are 1.
pub(super) fn put_features(out: &mut Vec<u8>, features: &[u64], weights: &[u32]) {
    put_varint(out, features.len() as u64);
    let Some(&last) = features.last() else {
        return;
    };
    let mean = (last / features.len() as u64).max(1);
    let width = mean.ilog2();
    out.push(width as u8 | (HAS_WEIGHTS * u8::from(!weights.is_empty())));
    let mut bits = BitWriter::new(out);
    let mut before = 0;
    for &feature in features {
        let gap = feature - before;
        before = feature;
        // The high parts add up to less than twice the number of features.
        let mut ones = gap >> width;
        while ones > 32 {
            bits.put(u64::from(u32::MAX), 32);
            ones -= 32;
        }
        bits.put((1 << ones) - 1, ones as u32 + 1);
        bits.put(gap & ((1 << width) - 1), width);
    }
    bits.end();
    if !weights.is_empty() {
        put_packed(out, weights.iter().copied());
    }
}

/// Reads features and weights from all of the bytes.
pub(super) fn get_features(bytes: &[u8]) -> Result<(Vec<u64>, Vec<u32>), Malformed> {
    let mut cursor = Cursor(bytes);
    let count = cursor.count()?;
    if count == 0 {
        cursor.end()?;
        return Ok((Vec::new(), Vec::new()));
    }
    let form = cursor.byte()?;
    let width = u32::from(form & !HAS_WEIGHTS);
    if width > 63 {
        return Err(Malformed);
    }
    let mut bits = BitReader::new(cursor.0);
    let mut features = Vec::with_capacity(count);
    let mut before = 0u64;
    for _ in 0..count {
        let ones = bits.ones()?;
        let gap = ones.wrapping_shl(width) | bits.take(width);
        before = before.wrapping_add(gap);
        features.push(before);
    }
    let num_bytes = bits.num_bytes();
    cursor.take(num_bytes)?;
    let weights = match form & HAS_WEIGHTS {
        0 => Vec::new(),
        _ => {
            let weights = cursor.packed(count)?;
            (0..count).map(|i| weights.get(i)).collect()
        }
    };
    cursor.end()?;
    Ok((features, weights))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn features(count: u64, seed: u64) -> Vec<u64> {
        let mut all: Vec<u64> = (0..count)
            .map(|i| xxhash_rust::xxh3::xxh3_64_with_seed(&i.to_le_bytes(), seed))
            .collect();
        all.sort_unstable();
        all
    }

    #[test]
    fn feature_sets_come_back() {
        let mut sets: Vec<(Vec<u64>, Vec<u32>)> = (0..70)
            .map(|count| (features(count, 3), Vec::new()))
            .collect();
        sets.push(((0..1000).collect(), (0..1000).map(|i| i % 15 + 1).collect()));
        sets.push((vec![0], vec![u32::MAX]));
        sets.push((vec![u64::MAX], vec![]));
        sets.push((vec![0, u64::MAX], vec![]));
        sets.push((vec![0, 1, 2, u64::MAX - 1, u64::MAX], vec![1, 2, 3, 4, 5]));
        sets.push(((0..5000).map(|i| i * 3).chain([u64::MAX]).collect(), vec![]));
        for (features, weights) in sets {
            let mut bytes = Vec::new();
            put_features(&mut bytes, &features, &weights);
            assert_eq!(get_features(&bytes), Ok((features, weights)));
        }
    }

    #[test]
    fn four_hundred_features_take_57_bits_each() {
        let mut bytes = Vec::new();
        put_features(&mut bytes, &features(400, 1), &[]);
        assert!(bytes.len() * 8 < 400 * 58, "{}", bytes.len() * 8 / 400);
    }

    #[test]
    fn a_block_that_is_cut_is_refused_or_gives_what_was_there() {
        let mut bytes = Vec::new();
        put_features(&mut bytes, &features(40, 1), &[2; 40]);
        for end in 0..bytes.len() {
            assert!(get_features(&bytes[..end]).is_err(), "{end}");
        }
    }
}
