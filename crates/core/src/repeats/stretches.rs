//! What are the longest stretches of windows that repeat consecutive windows?

use super::Pair;

const NONE: u64 = u64::MAX;

/// Stretches of windows that repeat consecutive windows, in order of place. Places count the words of all documents.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Stretches {
    /// Place of the first word of each.
    pub places: Vec<i64>,
    /// Place of the first word of the stretch that each repeats.
    pub firsts: Vec<i64>,
    /// Number of windows of each.
    pub num_windows: Vec<i64>,
}

impl Stretches {
    /// Appends a stretch with a later place, or extends the last one; returns whether it is new.
    fn push(&mut self, place: i64, first: i64, num_windows: i64) -> bool {
        if let (Some(&last_place), Some(&last_first), Some(last_windows)) = (
            self.places.last(),
            self.firsts.last(),
            self.num_windows.last_mut(),
        ) && last_place + *last_windows == place
            && last_first + *last_windows == first
        {
            *last_windows += num_windows;
            return false;
        }
        self.places.push(place);
        self.firsts.push(first);
        self.num_windows.push(num_windows);
        true
    }

    /// Removes all stretches between stretch `first` and the last one.
    fn remove_between(&mut self, first: usize) {
        let last = self.places.len() - 1;
        for column in [&mut self.places, &mut self.firsts, &mut self.num_windows] {
            column.drain(first + 1..last);
        }
    }
}

/// Stretches, few of which begin close to each other: of more than 8 in a block as long as a window (or more than half
/// its words), only the first and the last are kept, which contain the same words.
#[derive(Debug)]
pub struct FewStretches<'a> {
    found: Stretches,
    num_words: i64,
    doc_starts: &'a [i64],
    /// Number of documents that begin up to the last stretch.
    num_docs: usize,
    /// End of the last stretch's block.
    block_end: i64,
    /// Index of the first stretch that begins in that block, and how many do, including removed ones.
    begin: usize,
    num_in_block: usize,
}

/// Maximum number of stretches that begin in a block of many words.
const MOST_IN_BLOCK: usize = 8;

impl<'a> FewStretches<'a> {
    /// Creates an empty list for windows of `num_words` words; `doc_starts` has the end of the last document too.
    pub fn new(num_words: u64, doc_starts: &'a [i64]) -> Self {
        FewStretches {
            found: Stretches::default(),
            num_words: num_words.max(1) as i64,
            doc_starts,
            num_docs: 0,
            block_end: 0,
            begin: 0,
            num_in_block: 0,
        }
    }

    /// Appends stretches with later places; one that continues the last one is merged with it.
    pub fn append(&mut self, other: &Stretches) {
        let others = other.places.iter().zip(&other.firsts);
        for ((&place, &first), &num_windows) in others.zip(&other.num_windows) {
            if self.found.push(place, first, num_windows) {
                self.count(place);
            }
        }
    }

    /// Counts the stretch that was appended last, and removes surplus ones before it.
    fn count(&mut self, place: i64) {
        // A window ends in its document, so a block in which one begins does not extend beyond it.
        if place >= self.block_end {
            let starts = self.doc_starts;
            while starts.get(self.num_docs).is_some_and(|&at| at <= place) {
                self.num_docs += 1;
            }
            let in_document = place - starts[self.num_docs - 1];
            self.block_end = place - in_document % self.num_words + self.num_words;
            self.begin = self.found.places.len() - 1;
            self.num_in_block = 0;
        }
        self.num_in_block += 1;
        let most = MOST_IN_BLOCK.min(self.num_words as usize / 2);
        if self.num_in_block > most.max(2) {
            self.found.remove_between(self.begin);
        }
    }

    /// Returns the stretches, in order of place.
    pub fn finish(self) -> Stretches {
        self.found
    }
}

/// Returns the stretches among windows with places in `start..start + scratch.len()`. `later` has the place of each
/// that equals an earlier one, and the first place; the same document counts if the two do not overlap.
pub fn repeated_stretches(
    later: &[Pair],
    start: u64,
    scratch: &mut [u64],
    doc_starts: &[i64],
    num_words: u64,
) -> Stretches {
    scratch.fill(NONE);
    for &[place, first] in later {
        scratch[(place - start) as usize] = first;
    }
    let mut document = doc_starts.partition_point(|&at| at <= start as i64);
    let mut found = Stretches::default();
    for (place, &first) in (start..).zip(scratch.iter()) {
        if first == NONE {
            continue;
        }
        while doc_starts
            .get(document)
            .is_some_and(|&at| at <= place as i64)
        {
            document += 1;
        }
        let own_start = doc_starts[document - 1] as u64;
        if first < own_start || first + num_words <= place {
            found.push(place as i64, first as i64, 1);
        }
    }
    found
}
