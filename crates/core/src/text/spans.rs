//! How are token boundaries passed on in batches?

/// Number of tokens per batch. Small enough that the batch stays in the L1 cache.
const BATCH: usize = 512;
/// Number of entries that a block kernel may write beyond the batch.
const SLACK: usize = 64;

/// Starts and ends of tokens as byte offsets, passed on in batches.
#[derive(Debug)]
pub(crate) struct Spans {
    starts: Box<[u32]>,
    ends: Box<[u32]>,
    /// One more than `num_ends` while a token is open.
    num_starts: usize,
    num_ends: usize,
    /// Whether a token may consist only of connectors, in which case it is not a word.
    has_connectors: bool,
}

/// Receives the batches: starts and ends of the same number of tokens.
pub(crate) type TakeBatch<'a> = &'a mut dyn FnMut(&[u32], &[u32]);

impl Spans {
    pub(crate) fn new() -> Self {
        let entries = || vec![0; BATCH + 2 * SLACK].into_boxed_slice();
        Spans {
            starts: entries(),
            ends: entries(),
            num_starts: 0,
            num_ends: 0,
            has_connectors: false,
        }
    }

    pub(crate) fn clear(&mut self) {
        (self.num_starts, self.num_ends, self.has_connectors) = (0, 0, false);
    }

    /// Returns places for the next starts and the next ends, at least 64 each. Follow with [`Spans::advance`].
    #[inline(always)]
    pub(crate) fn next(&mut self) -> (&mut [u32], &mut [u32]) {
        (
            &mut self.starts[self.num_starts..],
            &mut self.ends[self.num_ends..],
        )
    }

    /// Counts what was written to the places of [`Spans::next`]; passes on a full batch.
    #[inline(always)]
    pub(crate) fn advance(
        &mut self,
        num_starts: usize,
        num_ends: usize,
        text: &[u8],
        take: TakeBatch<'_>,
    ) {
        self.num_starts += num_starts;
        self.num_ends += num_ends;
        if self.num_starts > BATCH {
            self.flush(text, take);
        }
    }

    #[inline(always)]
    pub(crate) fn push(&mut self, start: usize, end: usize, text: &[u8], take: TakeBatch<'_>) {
        self.starts[self.num_starts] = start as u32;
        self.ends[self.num_ends] = end as u32;
        self.advance(1, 1, text, take);
    }

    pub(crate) fn note_connectors(&mut self) {
        self.has_connectors = true;
    }

    /// Passes on the complete tokens; an open one is kept.
    #[cold]
    pub(crate) fn flush(&mut self, text: &[u8], take: TakeBatch<'_>) {
        let num_complete = self.num_ends;
        let open = (self.num_starts > num_complete).then(|| self.starts[num_complete]);
        let mut num_words = num_complete;
        if self.has_connectors {
            num_words = self.drop_connectors(text);
        }
        take(&self.starts[..num_words], &self.ends[..num_words]);
        (self.num_starts, self.num_ends, self.has_connectors) = (0, 0, false);
        if let Some(start) = open {
            self.starts[0] = start;
            self.num_starts = 1;
            self.has_connectors = text[start as usize] == b'_';
        }
    }

    /// Removes the tokens that consist only of connectors; returns how many tokens remain.
    fn drop_connectors(&mut self, text: &[u8]) -> usize {
        let mut kept = 0;
        for i in 0..self.num_ends {
            let (start, end) = (self.starts[i], self.ends[i]);
            if text[start as usize..end as usize]
                .iter()
                .any(|&b| b != b'_')
            {
                (self.starts[kept], self.ends[kept]) = (start, end);
                kept += 1;
            }
        }
        kept
    }
}
