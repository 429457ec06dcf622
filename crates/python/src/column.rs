//! Columns of documents that share the buffers of Arrow.

use std::ops::Range;
use std::sync::Arc;

use arrow_array::{Array as _, LargeBinaryArray, LargeStringArray, StringArray, StringViewArray};
use arrow_buffer::{Buffer, OffsetBuffer, ScalarBuffer};
use likewise_core::parallel::Run;
use likewise_core::text::{Document, OwnTokens};
use likewise_disk::{TextColumn, TokenColumn};

use crate::errors::{Failure, Result};

/// Bytes of text that one thread takes at a time.
pub const GRAIN_BYTES: usize = 256 << 10;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Text,
    /// Any bytes.
    Bytes,
    /// Encoded tokens, cut by the user.
    Tokens,
}

/// Consecutive documents of one kind, in chunks.
pub struct Column {
    pub kind: Kind,
    chunks: Vec<Arc<Chunk>>,
    /// Row at which each chunk begins, followed by the number of rows.
    starts: Vec<usize>,
    /// Total bytes of all texts.
    pub num_bytes: usize,
}

/// Texts in one layout, none of them null.
pub enum Chunk {
    Utf8(StringArray),
    LargeUtf8(LargeStringArray),
    View(StringViewArray),
    Binary(LargeBinaryArray),
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
            Chunk::Binary(array) => array.len(),
            Chunk::Picked { rows, .. } => rows.len(),
        }
    }

    /// Text `i`; empty for other kinds.
    fn get(&self, i: usize) -> &str {
        match self {
            Chunk::Utf8(array) => array.value(i),
            Chunk::LargeUtf8(array) => array.value(i),
            Chunk::View(array) => array.value(i),
            Chunk::Binary(_) => "",
            Chunk::Picked { rows, base } => base.get(rows[i] as usize),
        }
    }

    fn bytes(&self, i: usize) -> &[u8] {
        match self {
            Chunk::Binary(array) => array.value(i),
            Chunk::Picked { rows, base } => base.bytes(rows[i] as usize),
            texts => texts.get(i).as_bytes(),
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
                rows.iter().map(|&row| base.bytes(row as usize).len()).sum()
            }
            Chunk::Binary(array) => {
                let offsets = array.value_offsets();
                span(offsets[0] as usize, offsets[array.len()] as usize)
            }
        }
    }
}

impl Column {
    pub fn new(chunks: Vec<Arc<Chunk>>) -> Self {
        Self::of_kind(Kind::Text, chunks)
    }

    pub fn of_kind(kind: Kind, chunks: Vec<Arc<Chunk>>) -> Self {
        let mut starts = vec![0];
        let mut num_rows = 0;
        for chunk in &chunks {
            num_rows += chunk.len();
            starts.push(num_rows);
        }
        let num_bytes = chunks.iter().map(|chunk| chunk.num_bytes()).sum();
        Column {
            kind,
            chunks,
            starts,
            num_bytes,
        }
    }

    /// Takes over documents: document i is `bytes[offsets[i]..offsets[i + 1]]`.
    pub fn from_bytes(kind: Kind, bytes: Vec<u8>, offsets: Vec<i64>) -> Result<Self> {
        let offsets = OffsetBuffer::new(ScalarBuffer::from(offsets));
        if kind == Kind::Text {
            let array = LargeStringArray::try_new(offsets, Buffer::from_vec(bytes), None)
                .map_err(|error| Failure::Internal(error.to_string()))?;
            return Ok(Self::new(vec![Arc::new(Chunk::LargeUtf8(array))]));
        }
        let array = LargeBinaryArray::try_new(offsets, Buffer::from_vec(bytes), None)
            .map_err(|error| Failure::Internal(error.to_string()))?;
        Ok(Self::of_kind(kind, vec![Arc::new(Chunk::Binary(array))]))
    }

    /// Takes over encoded tokens in one buffer.
    pub fn from_tokens(tokens: TokenColumn) -> Result<Self> {
        Self::from_bytes(Kind::Tokens, tokens.bytes, tokens.offsets)
    }

    /// Takes over texts in one buffer.
    pub fn from_texts(texts: TextColumn) -> Self {
        Self::new(vec![Arc::new(Chunk::LargeUtf8(large_array(texts)))])
    }

    pub fn len(&self) -> usize {
        self.starts[self.chunks.len()]
    }

    pub fn get(&self, i: usize) -> &str {
        let (chunk, i) = self.place(i);
        chunk.get(i)
    }

    /// The bytes of document `i`; UTF-8 for a text.
    pub fn bytes(&self, i: usize) -> &[u8] {
        let (chunk, i) = self.place(i);
        chunk.bytes(i)
    }

    /// Document `i`.
    pub fn document(&self, i: usize) -> Document<'_> {
        match self.kind {
            Kind::Text => Document::Text(self.get(i)),
            Kind::Bytes => Document::Bytes(self.bytes(i)),
            Kind::Tokens => Document::Tokens(OwnTokens::new(self.bytes(i))),
        }
    }

    #[inline]
    fn place(&self, i: usize) -> (&Chunk, usize) {
        if self.chunks.len() == 1 {
            return (&self.chunks[0], i);
        }
        // The last chunk that begins at or before i; empty chunks begin where the next one does.
        let chunk = self.starts.partition_point(|&start| start <= i) - 1;
        (&self.chunks[chunk], i - self.starts[chunk])
    }

    /// The texts at `rows`, which must be below the length; only the rows are copied.
    pub fn pick(self: &Arc<Self>, mut rows: Vec<u32>) -> Column {
        let mut base = self.clone();
        // A selection of a selection selects from the original column.
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
        let kind = self.kind;
        Column::of_kind(kind, vec![Arc::new(Chunk::Picked { rows, base })])
    }

    /// All documents of several columns, which must be of one kind, except empty ones.
    pub fn concat<'a>(parts: impl Iterator<Item = &'a Column> + Clone) -> Result<Column> {
        let mut kinds = parts
            .clone()
            .filter(|part| part.len() > 0)
            .map(|part| part.kind);
        let kind = kinds.next().unwrap_or(Kind::Text);
        if kinds.any(|other| other != kind) {
            return Err(Failure::input(
                "texts, bytes and lists of tokens cannot be mixed in one batch",
            ));
        }
        let chunks = parts.flat_map(|part| part.chunks.iter().cloned());
        Ok(Column::of_kind(kind, chunks.collect()))
    }

    /// Consecutive ranges of rows, each with about `grain_bytes` of text (and at most 65,536 rows).
    pub fn ranges(&self, grain_bytes: usize) -> Vec<Range<usize>> {
        let mut ranges = Vec::new();
        let (mut start, mut num_bytes) = (0, 0);
        for i in 0..self.len() {
            num_bytes += self.bytes(i).len();
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

    /// Goes through the rows in parts on several threads, each with a state; `add` takes the state, the part so far, and
    /// the next row of it.
    pub fn in_parts<S, T: Default + Send>(
        &self,
        run: Run<'_>,
        make_state: impl Fn() -> S + Sync,
        add: impl Fn(&mut S, &mut T, usize) + Sync,
    ) -> Result<Vec<T>> {
        let ranges = self.ranges(GRAIN_BYTES);
        let work = |state: &mut S, which: Range<usize>| {
            let mut part = T::default();
            for row in ranges[which.start].clone() {
                add(state, &mut part, row);
            }
            part
        };
        Ok(run.map(ranges.len(), 1, make_state, work)?)
    }

    /// The texts as one array of `large_utf8`; shared if they are one already.
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

/// Encoded documents as one array of `large_binary`; shared if they are one already.
pub fn to_binary_array(column: &Column) -> Result<LargeBinaryArray> {
    if let [chunk] = column.chunks.as_slice()
        && let Chunk::Binary(array) = chunk.as_ref()
    {
        return Ok(array.clone());
    }
    Ok(LargeBinaryArray::from_iter_values(
        (0..column.len()).map(|i| column.bytes(i)),
    ))
}

fn large_array(texts: TextColumn) -> LargeStringArray {
    let offsets = OffsetBuffer::new(ScalarBuffer::from(texts.offsets));
    let bytes = Buffer::from_vec(texts.bytes.into_bytes());
    // SAFETY: the bytes are those of a `String`, and `TextColumn` takes whole strs only, so every offset is a
    // character boundary inside them; `OffsetBuffer::new` has checked that they do not decrease.
    unsafe { LargeStringArray::new_unchecked(offsets, bytes, None) }
}

/// Converts rows to 32 bits, each checked to be below `len`.
pub fn checked_rows(rows: impl Iterator<Item = i64>, len: usize) -> Result<Vec<u32>> {
    rows.map(|row| match u32::try_from(row) {
        Ok(small) if (small as usize) < len => Ok(small),
        _ => Err(Failure::parameter(
            "rows",
            format!("{row} is outside 0..{len}"),
        )),
    })
    .collect()
}
