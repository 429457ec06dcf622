//! In what does a document differ from the one that it matches?

use super::SLOT_TOKENS;
use super::profile::{Names, begin_alike, left_of_lead, parts_of_some};
use crate::features::distinct::Distinct;
use crate::hash::{GOLDEN, mix64};

/// Number of tokens of its own in a row that make a section.
pub const SECTION_TOKENS: u32 = 20;
/// Number of last tokens in which nearly equal documents may differ.
const END: usize = 6;
/// Documents are nearly equal if less than one of so many distinct tokens is in only one of them.
const FEWEST_ALIKE: usize = 10;
/// Parts of one product differ in the tokens at `TITLE` and at the end, and in less than one of so many distinct tokens.
const FEWEST_PARTS: usize = 4;
const TITLE: u32 = (1 << 10) - 1;
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
    /// Words that each document repeats and the other does not hold, or little but names.
    pub const SUBJECT: u8 = 32;
    /// Last tokens of documents that are nearly equal.
    pub const END: u8 = 64;
    /// All but what many documents share.
    pub const CROWD: u8 = 128;

    /// Whether a reader could take the document for another one: by its first tokens or its numbers alone.
    pub fn is_unsure(self) -> bool {
        self.0 & (Self::NUMBERS | Self::LEAD) != 0
    }
}

/// Returns the additional similarity that two documents need because their names differ: 0 or more. Symmetric.
pub fn penalty(a: &Names, b: &Names) -> f64 {
    Compared::new(a, b).parts(a, b).iter().sum()
}

/// Returns [`penalty`], and in what document `a` differs from `b`. Cost: linear in both, about 10 ns a token.
pub fn difference(a: &Names, b: &Names) -> (f64, Differences) {
    let mut compared = Compared::new(a, b);
    let parts = compared.parts(a, b);
    (parts.iter().sum(), compared.differences(parts))
}

/// The penalty for different ends, and what parts of one product need besides.
const END_PENALTY: f64 = 0.12;
const PART_PENALTY: f64 = 0.3;
/// The penalty for documents that differ in little but names is `SWAP / n` for n tokens, at most `MOST_SWAP`; none for
/// more than `SLOT_TOKENS`.
const SWAP: f64 = 20.0;
const MOST_SWAP: f64 = 0.3;

/// Returns an upper bound of what [`penalty`] adds to `some`, the result of [`penalty_of_some`].
pub fn most_penalty(some: f64, a: &Names, b: &Names) -> f64 {
    let ends_are_equal = a.tokens().rev().take(END).eq(b.tokens().rev().take(END));
    let of_end = if ends_are_equal {
        0.0
    } else {
        END_PENALTY + PART_PENALTY
    };
    some + of_end + swap_penalty(a.num_tokens().min(b.num_tokens()))
}

fn swap_penalty(num_tokens: usize) -> f64 {
    match num_tokens {
        0..=SLOT_TOKENS => (SWAP / num_tokens.max(1) as f64).min(MOST_SWAP),
        _ => 0.0,
    }
}

/// Returns the number of tokens in the longest passage of `a` that `b` does not hold. Cost: as [`difference`].
pub fn own_run(a: &Names, b: &Names) -> u32 {
    Compared::new(a, b).longest_run()
}

/// The tokens of two documents, and how many they share at the beginning and at the end.
struct Compared {
    a: Vec<u32>,
    b: Vec<u32>,
    num_first: usize,
    num_last: usize,
    /// The distinct tokens of each that are not in the other, once they are known, and the number of all distinct ones.
    new: Option<([Vec<u32>; 2], usize)>,
    /// Scratch space of [`new_of`].
    distinct: Distinct,
}

impl Compared {
    fn new(one: &Names, other: &Names) -> Self {
        let (a, b): (Vec<u32>, Vec<u32>) = (one.tokens().collect(), other.tokens().collect());
        let num_first = a.iter().zip(&b).take_while(|(a, b)| a == b).count();
        let rest = a[num_first..].iter().rev().zip(b[num_first..].iter().rev());
        let num_last = rest.take_while(|(a, b)| a == b).count();
        Compared {
            a,
            b,
            num_first,
            num_last,
            new: None,
            distinct: Distinct::default(),
        }
    }

    /// Returns the parts of the penalty: for the lead, the slots, the subject, the end and the swap.
    fn parts(&mut self, a: &Names, b: &Names) -> [f64; 5] {
        let [of_lead, of_slots, of_subject] = parts_of_some(a, b);
        let (of_end, of_swap) = (self.of_end(a, b), self.of_swap(a, b));
        [of_lead, of_slots, of_subject, of_end, of_swap]
    }

    fn differences(&mut self, parts: [f64; 5]) -> Differences {
        if self.a == self.b {
            return Differences(Differences::FORM);
        }
        let mut bits = 0;
        let [new_a, new_b] = self.new_tokens();
        let has_digit = |token: &u32| token & 1 == 1;
        if new_a.len() + new_b.len() > 0 && new_a.iter().chain(new_b).all(has_digit) {
            bits |= Differences::NUMBERS;
        }
        const BITS: [u8; 5] = [
            Differences::LEAD,
            Differences::SLOTS,
            Differences::SUBJECT,
            Differences::END,
            Differences::SUBJECT,
        ];
        for (part, bit) in parts.into_iter().zip(BITS) {
            bits |= u8::from(part > 0.0) * bit;
        }
        if self.longest_run() >= SECTION_TOKENS {
            bits |= Differences::SECTION;
        }
        Differences(bits)
    }

    /// Returns the part of the penalty for different last tokens.
    fn of_end(&mut self, a: &Names, b: &Names) -> f64 {
        if self.num_last >= END {
            return 0.0;
        }
        self.new_tokens();
        self.new.as_ref().map_or(0.0, |([new_a, new_b], num_all)| {
            let differs = |tokens: &[u32], new: &[u32]| {
                let last = &tokens[tokens.len().saturating_sub(END)..];
                let mut last = last.iter().filter(|&token| token & 1 == 0);
                last.any(|token| new.contains(token))
            };
            let ends = [differs(&self.a, new_a), differs(&self.b, new_b)];
            let are_less = |share| share * (new_a.len() + new_b.len()) < *num_all;
            let is_end = ends != [false; 2] && are_less(FEWEST_ALIKE);
            let in_title = |(left_a, left_b): (u32, u32)| (left_a | left_b) & TITLE != 0;
            let is_part = ends == [true; 2] && are_less(FEWEST_PARTS);
            let is_part = is_part && in_title(left_of_lead(a, b));
            let of_parts = if is_part { PART_PENALTY } else { 0.0 };
            of_parts + if is_end { END_PENALTY } else { 0.0 }
        })
    }

    /// Returns the part of the penalty for documents that differ in little but what names them.
    fn of_swap(&mut self, a: &Names, b: &Names) -> f64 {
        let most = swap_penalty(self.a.len().min(self.b.len()));
        let [new_a, new_b] = self.new_tokens();
        if most == 0.0 || new_a.is_empty() || new_b.is_empty() {
            return 0.0;
        }
        let (left_a, left_b) = left_of_lead(a, b);
        let has_lead = left_a != 0 && left_b != 0;
        let own = |one: &Names, new: &[u32]| -> Vec<u64> {
            let repeated = one.repeated().iter().copied();
            repeated
                .filter(|word| new.contains(&((word >> 32) as u32)))
                .collect()
        };
        let (own_a, own_b) = (own(a, new_a), own(b, new_b));
        let is_named = |one: &Names, left: u32, own: &[u64], others: &[u64], new: &[u32]| {
            // Forms of one word name nothing else.
            let begins = |word: &u64| others.iter().any(|other| begin_alike(*word, *other));
            let is_repeated = |token: &u32| {
                let mut found = own.iter().filter(|word| (*word >> 32) as u32 == *token);
                found.any(|word| !begins(word))
            };
            let is_name =
                |token: &&u32| has_lead && one.leads_with(left, **token) || is_repeated(token);
            2 * new.iter().filter(is_name).count() >= new.len()
        };
        let is_swap = is_named(a, left_a, &own_a, &own_b, new_a)
            && is_named(b, left_b, &own_b, &own_a, new_b);
        if is_swap { most } else { 0.0 }
    }

    /// Returns the distinct tokens of each document that are not in the other.
    fn new_tokens(&mut self) -> [&[u32]; 2] {
        let ([new_a, new_b], _) = self.new.get_or_insert_with(|| {
            let distinct = &mut self.distinct;
            distinct.collect(&keys(&self.a));
            let mut own_b = keys(&self.b);
            own_b.retain(|&key| match distinct.place(key) {
                Some(place) => {
                    distinct.counts[place] = 0;
                    false
                }
                None => true,
            });
            let num_of_a = distinct.features.len();
            let counted = distinct.features.iter().zip(&distinct.counts);
            let own_a = counted.filter(|&(_, &count)| count > 0);
            let own_a = own_a.map(|(&key, _)| token_of(key)).collect();
            distinct.collect(&own_b);
            let own_b = distinct.features.iter().map(|&key| token_of(key));
            ([own_a, own_b.collect()], num_of_a + distinct.features.len())
        });
        [new_a, new_b]
    }

    /// Returns the tokens in the longest passage of `a` whose windows are not in `b`; text that only moved is not new.
    fn longest_run(&mut self) -> u32 {
        let windows = |tokens: &[u32]| -> Vec<u64> {
            let windows = tokens.windows(WINDOW);
            let window = windows.map(|tokens| {
                mix64(tokens.iter().fold(0u64, |sum, &token| {
                    sum.wrapping_mul(GOLDEN).wrapping_add(u64::from(token) + 1)
                }))
            });
            window.collect()
        };
        // The other windows of `a` are at the same places of `b`.
        let first = self.num_first.saturating_sub(WINDOW - 1);
        let end = (self.a.len() - self.num_last + WINDOW - 1).min(self.a.len());
        let own = windows(&self.a[first..end]);
        let is_new = new_of(&own, &windows(&self.b), &mut self.distinct);
        let (mut run, mut longest) = (0, 0);
        for one in own {
            let place = self.distinct.place(one);
            run = match place.is_some_and(|place| is_new[place]) {
                true => run + 1,
                false => 0,
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

/// Returns tokens as keys of [`Distinct`], whose low bits are hashed: those of a token are flags.
fn keys(tokens: &[u32]) -> Vec<u64> {
    let key = |&token: &u32| u64::from(token).rotate_right(TOKEN_FLAGS);
    tokens.iter().map(key).collect()
}

fn token_of(key: u64) -> u32 {
    key.rotate_left(TOKEN_FLAGS) as u32
}

const TOKEN_FLAGS: u32 = 2;

/// Collects the distinct values of a list; returns whether each is not among others.
fn new_of(list: &[u64], others: &[u64], distinct: &mut Distinct) -> Vec<bool> {
    distinct.collect(list);
    let mut is_new = vec![true; distinct.features.len()];
    for &other in others.iter().filter(|_| !list.is_empty()) {
        if let Some(place) = distinct.place(other) {
            is_new[place] = false;
        }
    }
    is_new
}
