//! What are the longest stretches of windows that repeat consecutive ones?

use super::Pair;

/// Stands for no place.
const NONE: u64 = u64::MAX;

/// Stretches of windows that repeat consecutive ones, in order of place. Places count the words of all documents.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Stretches {
    /// Place of the first word of each.
    pub places: Vec<i64>,
    /// Place of the first word of what it repeats.
    pub firsts: Vec<i64>,
    /// How many windows it has.
    pub num_windows: Vec<i64>,
}

impl Stretches {
    fn push(&mut self, place: i64, first: i64, num_windows: i64) {
        if let (Some(&last_place), Some(&last_first), Some(last_windows)) = (
            self.places.last(),
            self.firsts.last(),
            self.num_windows.last_mut(),
        ) && last_place + *last_windows == place
            && last_first + *last_windows == first
        {
            *last_windows += num_windows;
            return;
        }
        self.places.push(place);
        self.firsts.push(first);
        self.num_windows.push(num_windows);
    }

    /// Appends stretches of later places; one that goes on where the last one ends becomes part of it.
    pub fn append(&mut self, other: &Stretches) {
        let others = other.places.iter().zip(&other.firsts);
        for ((&place, &first), &num_windows) in others.zip(&other.num_windows) {
            self.push(place, first, num_windows);
        }
    }
}

/// Returns the stretches among windows that have places in `start..start + scratch.len()`.
///
/// Of each window that equals an earlier one, `later` has its place and that of the first; in any order. A window repeats it if that is of an
/// earlier document, or of the same one and does not overlap. `doc_starts` says where the words of each document begin, and where
/// the last one's end.
///
/// # Cost
/// One write to the scratch a window, and one pass over it.
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
