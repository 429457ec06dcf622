//! In what does a document differ from the one that it matches?

use super::profile::{Names, of_lead, of_slots};
use crate::hash::{GOLDEN, mix64};

/// Number of tokens of its own in a row that make a section.
pub const SECTION_TOKENS: u32 = 20;
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
    /// Fillings of slots.
    pub const SLOTS: u8 = 8;
    /// A section of its own, of [`SECTION_TOKENS`] or more.
    pub const SECTION: u8 = 16;

    /// Whether a reader could take the document for another one: by its first tokens or its numbers alone.
    pub fn is_unsure(self) -> bool {
        self.0 & (Self::NUMBERS | Self::LEAD) != 0
    }
}

/// Returns in what document `a` differs from `b`. Cost: linear in both, about 30 ns a token.
pub fn differences(a: &Names, b: &Names) -> Differences {
    let (mut tokens_a, mut tokens_b) = (Vec::new(), Vec::new());
    a.unpack(&mut tokens_a);
    b.unpack(&mut tokens_b);
    let mut bits = match tokens_a == tokens_b {
        true => Differences::FORM,
        false => 0,
    };
    let (new_a, new_b) = (
        new_tokens(&tokens_a, &tokens_b),
        new_tokens(&tokens_b, &tokens_a),
    );
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
    if longest_run(&tokens_a, &tokens_b) >= SECTION_TOKENS {
        bits |= Differences::SECTION;
    }
    Differences(bits)
}

/// Returns the number of tokens in the longest passage of `a` that `b` does not hold. Cost: as [`differences`].
pub fn own_run(a: &Names, b: &Names) -> u32 {
    let (mut tokens_a, mut tokens_b) = (Vec::new(), Vec::new());
    a.unpack(&mut tokens_a);
    b.unpack(&mut tokens_b);
    longest_run(&tokens_a, &tokens_b)
}

/// Returns the distinct tokens of `a` that are not in `b`.
fn new_tokens(a: &[u32], b: &[u32]) -> Vec<u32> {
    let sorted = |tokens: &[u32]| {
        let mut sorted = tokens.to_vec();
        sorted.sort_unstable();
        sorted.dedup();
        sorted
    };
    let others = sorted(b);
    let mut new = sorted(a);
    new.retain(|token| others.binary_search(token).is_err());
    new
}

/// Returns the number of tokens in the longest passage of `a` whose windows are not in `b`.
///
/// A passage of n tokens between shared ones has n + WINDOW - 1 windows of its own, so that moved text is not new.
fn longest_run(a: &[u32], b: &[u32]) -> u32 {
    let window = |tokens: &[u32]| {
        tokens.iter().fold(0u64, |sum, &token| {
            mix64(sum.wrapping_mul(GOLDEN) ^ u64::from(token))
        })
    };
    let mut held: Vec<u64> = b.windows(WINDOW).map(window).collect();
    held.sort_unstable();
    let (mut run, mut longest) = (0, 0);
    for tokens in a.windows(WINDOW) {
        run = match held.binary_search(&window(tokens)) {
            Ok(_) => 0,
            Err(_) => run + 1,
        };
        longest = longest.max(run);
    }
    // At an end of the text, fewer windows reach beyond the passage; a text without any shared window is all its own.
    let own = match longest + WINDOW > a.len() {
        true => a.len(),
        false => longest.saturating_sub(WINDOW - 1),
    };
    u32::try_from(if longest == 0 { 0 } else { own }).unwrap_or(u32::MAX)
}
