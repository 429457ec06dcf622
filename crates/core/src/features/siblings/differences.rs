//! In what does a document differ from the one that it matches?

use super::profile::{Names, of_lead, of_slots, penalty_before_end};
use crate::hash::{GOLDEN, mix64};

/// Number of tokens of its own in a row that make a section.
pub const SECTION_TOKENS: u32 = 20;
/// Number of last tokens in which nearly equal documents may differ.
const END: usize = 6;
/// Documents are nearly equal if less than one of so many distinct tokens is in only one of them.
const FEWEST_ALIKE: usize = 10;
/// Number of tokens in a window: text that the other document does not hold has windows that it does not hold.
const WINDOW: usize = 3;

/// In what a document differs from another, as bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Differences(pub u8);

impl Differences {
    /// Nothing but case, space, punctuation and what the recipe folds.
    pub const FORM: u8 = 1;
    /// Tokens with digits, and no others.
    pub const NUMBERS: u8 = 2;
    /// First tokens that name each document.
    pub const LEAD: u8 = 4;
    pub const SLOTS: u8 = 8;
    /// A section of its own, of [`SECTION_TOKENS`] or more.
    pub const SECTION: u8 = 16;

    /// Whether a reader could take the document for another one: by its first tokens or its numbers alone.
    pub fn is_unsure(self) -> bool {
        self.0 & (Self::NUMBERS | Self::LEAD) != 0
    }
}

/// Returns in what document `a` differs from `b`. Cost: linear in both, about 10 ns a token.
pub fn differences(a: &Names, b: &Names) -> Differences {
    let (mut tokens_a, mut tokens_b) = (Vec::new(), Vec::new());
    a.unpack(&mut tokens_a);
    b.unpack(&mut tokens_b);
    if tokens_a == tokens_b {
        return Differences(Differences::FORM);
    }
    let mut bits = 0;
    let changed = Changed::new(&tokens_a, &tokens_b);
    let [new_a, new_b] = changed.new_tokens();
    let has_digit = |token: &u32| token & 1 == 1;
    if new_a.len() + new_b.len() > 0 && new_a.iter().chain(&new_b).all(has_digit) {
        bits |= Differences::NUMBERS;
    }
    if of_lead(a, b) > 0.0 {
        bits |= Differences::LEAD;
    }
    if of_slots(a, b) > 0.0 {
        bits |= Differences::SLOTS;
    }
    if changed.longest_run() >= SECTION_TOKENS {
        bits |= Differences::SECTION;
    }
    Differences(bits)
}

/// Returns the additional similarity that two documents need because their names differ: 0 or more. Symmetric.
pub fn penalty(a: &Names, b: &Names) -> f64 {
    match ends_differ(a, b) {
        true => penalty_before_end(a, b) + END_PENALTY,
        false => penalty_before_end(a, b),
    }
}

/// The penalty for different ends.
pub const END_PENALTY: f64 = 0.12;

/// Whether nearly equal documents end differently; see `docs/developers/definitions.md`. Cost: as [`differences`], and
/// less if the last tokens are equal.
pub fn ends_differ(a: &Names, b: &Names) -> bool {
    let (mut tokens_a, mut tokens_b) = (Vec::new(), Vec::new());
    a.unpack(&mut tokens_a);
    b.unpack(&mut tokens_b);
    let changed = Changed::new(&tokens_a, &tokens_b);
    if changed.num_last >= END {
        return false;
    }
    let new = changed.new_tokens();
    let num_new = new[0].len() + new[1].len();
    let ends = |tokens: &[u32], new: &[u32]| {
        let last = &tokens[tokens.len().saturating_sub(END)..];
        last.iter()
            .any(|token| token & 1 == 0 && new.binary_search(token).is_ok())
    };
    (ends(&tokens_a, &new[0]) || ends(&tokens_b, &new[1]))
        && FEWEST_ALIKE * num_new < without(&tokens_b, std::iter::empty()).len() + new[0].len()
}

/// Returns the number of tokens in the longest passage of `a` that `b` does not hold. Cost: as [`differences`].
pub fn own_run(a: &Names, b: &Names) -> u32 {
    let (mut tokens_a, mut tokens_b) = (Vec::new(), Vec::new());
    a.unpack(&mut tokens_a);
    b.unpack(&mut tokens_b);
    Changed::new(&tokens_a, &tokens_b).longest_run()
}

/// Two lists of tokens, and how many they share at the beginning and at the end.
struct Changed<'t> {
    a: &'t [u32],
    b: &'t [u32],
    num_first: usize,
    num_last: usize,
}

impl<'t> Changed<'t> {
    fn new(a: &'t [u32], b: &'t [u32]) -> Self {
        let num_first = a.iter().zip(b).take_while(|(a, b)| a == b).count();
        let rest = a[num_first..].iter().rev().zip(b[num_first..].iter().rev());
        let num_last = rest.take_while(|(a, b)| a == b).count();
        Changed {
            a,
            b,
            num_first,
            num_last,
        }
    }

    /// Returns the distinct tokens of each list that are not in the other, ascending.
    fn new_tokens(&self) -> [Vec<u32>; 2] {
        let middle = |tokens: &'t [u32]| &tokens[self.num_first..tokens.len() - self.num_last];
        [(self.a, self.b), (self.b, self.a)]
            .map(|(one, other)| without(middle(one), other.iter().copied()))
    }

    /// Returns the tokens in the longest passage of `a` whose windows are not in `b`; text that only moved is not new.
    fn longest_run(&self) -> u32 {
        let window = |tokens: &[u32]| {
            tokens.iter().fold(0u64, |sum, &token| {
                mix64(sum.wrapping_mul(GOLDEN) ^ u64::from(token))
            })
        };
        // The other windows of `a` are at the same places of `b`.
        let first = self.num_first.saturating_sub(WINDOW - 1);
        let end = (self.a.len() - self.num_last + WINDOW - 1).min(self.a.len());
        let own: Vec<u64> = self.a[first..end].windows(WINDOW).map(window).collect();
        let new = without(&own, self.b.windows(WINDOW).map(window));
        let (mut run, mut longest) = (0, 0);
        for one in own {
            run = if new.binary_search(&one).is_ok() {
                run + 1
            } else {
                0
            };
            longest = longest.max(run);
        }
        // At an end of the text, fewer windows reach beyond the passage; a text without any shared window is all its own.
        let own = match longest + WINDOW > self.a.len() {
            true => self.a.len(),
            false => longest.saturating_sub(WINDOW - 1),
        };
        u32::try_from(if longest == 0 { 0 } else { own }).unwrap_or(u32::MAX)
    }
}

/// Returns the distinct values of a list that are not among others, ascending.
fn without<T: Copy + Ord>(list: &[T], others: impl Iterator<Item = T>) -> Vec<T> {
    let mut sorted = list.to_vec();
    sorted.sort_unstable();
    sorted.dedup();
    let mut is_other = vec![false; sorted.len()];
    for other in others.take_while(|_| !sorted.is_empty()) {
        if let Ok(place) = sorted.binary_search(&other) {
            is_other[place] = true;
        }
    }
    let mut is_other = is_other.into_iter();
    sorted.retain(|_| !is_other.next().unwrap_or(true));
    sorted
}
