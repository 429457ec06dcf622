//! How are texts held so that none is copied that came from Arrow?

use std::ops::Range;
use std::sync::Arc;

use arrow_array::{Array as _, LargeStringArray, StringArray, StringViewArray};
use arrow_buffer::{Buffer, OffsetBuffer, ScalarBuffer};
use likewise_disk::TextColumn;

use crate::errors::Failure;

/// Texts in a row, in chunks.
pub struct Column {
    chunks: Vec<Arc<Chunk>>,
    /// Row at which each chunk begins, and the number of rows at the end.
    starts: Vec<usize>,
    /// Bytes of all texts together.
    pub num_bytes: usize,
}

/// Some texts in one layout. None is null.
pub enum Chunk {
    Utf8(StringArray),
    LargeUtf8(LargeStringArray),
    View(StringViewArray),
    /// Texts of another column, by row: selections and dictionaries.
    Picked {
        rows: Vec<u32>,
        base: Arc<Column>,
    },
}

impl Chunk {
    pub fn len(&self) -> usize {
        match self {
            Chunk::Utf8(array) => array.len(),
            Chunk::LargeUtf8(array) => array.len(),
            Chunk::View(array) => array.len(),
            Chunk::Picked { rows, .. } => rows.len(),
        }
    }

    fn get(&self, i: usize) -> &str {
        match self {
            Chunk::Utf8(array) => array.value(i),
            Chunk::LargeUtf8(array) => array.value(i),
            Chunk::View(array) => array.value(i),
            Chunk::Picked { rows, base } => base.get(rows[i] as usize),
        }
    }

    fn num_bytes(&self) -> usize {
        let span = |first: usize, last: usize| last - first;
        match self {
            Chunk::Utf8(array) => {
                let offsets = array.value_offsets();
                span(offsets[0] as usize, offsets[array.len()] as usize)
            }
            Chunk::LargeUtf8(array) => {
                let offsets = array.value_offsets();
                span(offsets[0] as usize, offsets[array.len()] as usize)
            }
            // The low half of a view is the length of its text.
            Chunk::View(array) => array.views().iter().map(|&view| view as u32 as usize).sum(),
            Chunk::Picked { rows, base } => {
                rows.iter().map(|&row| base.get(row as usize).len()).sum()
            }
        }
    }
}

impl Column {
    pub fn new(chunks: Vec<Arc<Chunk>>) -> Self {
        let mut starts = vec![0];
        let mut num_rows = 0;
        for chunk in &chunks {
            num_rows += chunk.len();
            starts.push(num_rows);
        }
        let num_bytes = chunks.iter().map(|chunk| chunk.num_bytes()).sum();
        Column {
            chunks,
            starts,
            num_bytes,
        }
    }

    /// Takes over texts in one buffer.
    pub fn from_texts(texts: TextColumn) -> Self {
        Self::new(vec![Arc::new(Chunk::LargeUtf8(large_array(texts)))])
    }

    pub fn len(&self) -> usize {
        self.starts[self.chunks.len()]
    }

    pub fn get(&self, i: usize) -> &str {
        if self.chunks.len() == 1 {
            return self.chunks[0].get(i);
        }
        // The last chunk that begins at or before i; empty chunks begin where the next one does.
        let chunk = self.starts.partition_point(|&start| start <= i) - 1;
        self.chunks[chunk].get(i - self.starts[chunk])
    }

    /// The texts at `rows`, which must be below the length; nothing is copied but the rows.
    pub fn pick(self: &Arc<Self>, mut rows: Vec<u32>) -> Column {
        let mut base = self.clone();
        // A selection of a selection selects from the first.
        while let [chunk] = base.chunks.as_slice()
            && let Chunk::Picked {
                rows: inner,
                base: next,
            } = chunk.as_ref()
        {
            rows.iter_mut().for_each(|row| *row = inner[*row as usize]);
            let next = next.clone();
            base = next;
        }
        Column::new(vec![Arc::new(Chunk::Picked { rows, base })])
    }

    /// All texts of several columns.
    pub fn concat<'a>(parts: impl Iterator<Item = &'a Column>) -> Column {
        Column::new(parts.flat_map(|part| part.chunks.iter().cloned()).collect())
    }

    /// Consecutive ranges of rows, each with about `grain_bytes` of text (and at most 65,536 rows).
    pub fn ranges(&self, grain_bytes: usize) -> Vec<Range<usize>> {
        let mut ranges = Vec::new();
        let (mut start, mut num_bytes) = (0, 0);
        for i in 0..self.len() {
            num_bytes += self.get(i).len();
            if num_bytes >= grain_bytes || i + 1 - start == 65_536 {
                ranges.push(start..i + 1);
                (start, num_bytes) = (i + 1, 0);
            }
        }
        if start < self.len() {
            ranges.push(start..self.len());
        }
        ranges
    }

    /// The texts as one array of `large_utf8`; shared where they are one already.
    pub fn to_large_array(&self) -> LargeStringArray {
        if let [chunk] = self.chunks.as_slice()
            && let Chunk::LargeUtf8(array) = chunk.as_ref()
        {
            return array.clone();
        }
        let mut texts = TextColumn::with_capacity(self.num_bytes);
        for i in 0..self.len() {
            texts.push(self.get(i));
        }
        large_array(texts)
    }
}

fn large_array(texts: TextColumn) -> LargeStringArray {
    let offsets = OffsetBuffer::new(ScalarBuffer::from(texts.offsets));
    let bytes = Buffer::from_vec(texts.bytes.into_bytes());
    // SAFETY: the bytes are those of a `String`, and `TextColumn` takes whole strs only, so that every offset is a
    // character boundary inside them; `OffsetBuffer::new` has checked that they do not fall.
    unsafe { LargeStringArray::new_unchecked(offsets, bytes, None) }
}

/// Rows as 32 bits, each below `len`.
pub fn checked_rows(rows: impl Iterator<Item = i64>, len: usize) -> Result<Vec<u32>, Failure> {
    rows.map(|row| match u32::try_from(row) {
        Ok(small) if (small as usize) < len => Ok(small),
        _ => Err(Failure::parameter(
            "rows",
            format!("{row} is outside 0..{len}"),
        )),
    })
    .collect()
}
