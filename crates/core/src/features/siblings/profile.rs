//! What names a document, and how do two documents differ?

use std::cmp::Reverse;
use std::collections::HashSet;

use super::{
    DIGIT, FRAME_SHIFT, LEAD, LEAD_WINDOW, NUMBER, NameTable, SLOT_TOKENS, Scratch, append,
    each_frame, filling, places_where,
};
use crate::features::distinct::Distinct;
use crate::features::weights::MAX_WEIGHT;
use crate::hash::{GOLDEN, mix64, xxh3_64_with_seed};
use crate::isa::Isa;
use crate::sort::sort_hashed;

/// What names a document: its first tokens, how it fills the slots of its collection, and all tokens in order.
///
/// In a single allocation: two numbers for the header, one for the numbers of tokens and of repeated ones, then the lists: up
/// to `LEAD_WINDOW` first tokens, 32 bits above the parts of each of the first `LEAD`; the pairs of characters in these;
/// frames of slots, ascending; their fillings, ascending; repeated tokens with how they begin and their rarity, the rarest
/// first; two tokens per number.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Names(Box<[u64]>);

/// The slots of a document.
#[derive(Debug, Clone)]
pub struct Form {
    /// Hash of the frames.
    pub slots: u64,
    num_slots: usize,
    /// The fillings, ascending.
    pub fillings: Box<[u64]>,
}

impl Form {
    /// Returns the least penalty of this document and another with these slots that share some of these fillings only.
    pub fn penalty(&self, some: &HashSet<u64>) -> f64 {
        let slots = self.fillings.iter().filter(|one| some.contains(one));
        let mut slots: Vec<u64> = slots.map(|one| one >> FRAME_SHIFT).collect();
        slots.dedup();
        slot_penalty(self.num_slots, slots.len())
    }
}

/// Bits of the header: four for the rarity of each of the `LEAD` tokens, and one that tells whether the weights of
/// features are their rarity.
const BY_RARITY: u32 = 4 * LEAD as u32;
const HEADER: usize = 3;
/// Bits of the number of tokens; the number of repeated ones is above them.
const TOKENS_BITS: u32 = 40;

/// Reads the names of documents from their tokens, reusing its memory.
#[derive(Debug, Default)]
pub(crate) struct NameReader {
    /// Pairs of characters in each of the first tokens; none if it names nothing.
    pairs: Vec<u64>,
    /// How the parts of each of them begin, see [`parts_of`].
    parts: Vec<u64>,
    /// Whether each token holds a digit or is a number, as flags of its hash, and how it begins, in the lower half.
    flags: Vec<u64>,
    tokens: Vec<u64>,
    scratch: Scratch,
    /// Scratch space of [`places_where`].
    may_be: Vec<u32>,
    frames: Vec<u64>,
    fillings: Vec<u64>,
    /// Scratch space for the distinct tokens.
    distinct: Distinct,
    /// Tokens whose rarity is asked, and the rarities.
    asked: Vec<u64>,
    rarities: Vec<u32>,
}

/// Returns flags of a token, the first `len` bytes of `text`: whether it holds a digit, whether it is a number, that is
/// digits and no letters, and how it begins.
#[inline(always)]
pub(super) fn flags_of(text: &[u8], len: usize) -> u64 {
    // Most tokens are read once, in a word that holds what follows a short one too.
    let (has_digit, beginning) = match text.first_chunk::<8>() {
        Some(word) if len > 0 => {
            let word = u64::from_le_bytes(*word);
            let shift = 64 - 8 * len.min(8);
            let rest = text[..len].get(8..).unwrap_or_default();
            let has_digit = holds_digit(word << shift) || rest.iter().any(u8::is_ascii_digit);
            let first = word << shift >> shift & ((1 << (8 * BEGINNING)) - 1);
            let beginning = match first & 0x80_8080 {
                0 => first << RARITY.count_ones(),
                _ => beginning_of(&text[..len]),
            };
            (has_digit, beginning)
        }
        _ => {
            let token = &text[..len];
            (token.iter().any(u8::is_ascii_digit), beginning_of(token))
        }
    };
    let is_letter = |byte: &u8| byte.is_ascii_alphabetic() || !byte.is_ascii();
    let is_number = has_digit && !text[..len].iter().any(is_letter);
    (u64::from(has_digit) * DIGIT) | (u64::from(is_number) * NUMBER) | beginning
}

/// Whether any of eight bytes is an ASCII digit: less than 10 once the bits of `0` are flipped.
#[inline]
fn holds_digit(bytes: u64) -> bool {
    const ONES: u64 = u64::MAX / 255;
    let flipped = bytes ^ (0x30 * ONES);
    flipped.wrapping_sub(10 * ONES) & !flipped & (0x80 * ONES) != 0
}

impl NameReader {
    /// Begins a document.
    pub(crate) fn clear(&mut self) {
        self.pairs.clear();
        self.parts.clear();
        self.flags.clear();
        self.tokens.clear();
    }

    /// Reads the next tokens, in UTF-8: texts that begin with them, and their lengths in bytes.
    #[inline]
    pub(crate) fn see<'t>(&mut self, tokens: impl Iterator<Item = (&'t [u8], usize)> + Clone) {
        let num_seen = self.flags.len();
        self.flags
            .extend(tokens.clone().map(|(text, len)| flags_of(text, len)));
        for (_, (text, len)) in (num_seen..LEAD).zip(tokens) {
            // A version changes the digits of a name, such as `python3`.
            let stem = text[..len].split(u8::is_ascii_digit).next();
            let stem = String::from_utf8_lossy(stem.unwrap_or_default());
            self.pairs.push(pairs_of(&stem));
            self.parts.push(parts_of(&stem));
        }
    }

    /// Reads the tokens of the document, as hashes.
    pub(crate) fn read(&mut self, tokens: &[u64]) {
        self.flags.resize(tokens.len(), 0);
        let flagged = tokens.iter().zip(&self.flags);
        let flagged = flagged.map(|(token, flags)| token & !FLAGS | flags & FLAGS);
        self.tokens.extend(flagged);
    }

    pub(crate) fn tokens(&self) -> &[u64] {
        &self.tokens
    }

    /// Returns the names of the last document by a table of names, if there is one.
    pub(crate) fn names(&mut self, table: Option<&NameTable>, by_rarity: bool, isa: Isa) -> Names {
        let lead = &self.tokens[..self.tokens.len().min(LEAD_WINDOW)];
        let num_named = lead.len().min(LEAD);
        self.asked.clear();
        self.asked.extend_from_slice(&lead[..num_named]);
        let (asked, rarities) = (&mut self.asked, &mut self.rarities);
        let tokens = &self.tokens[..self.tokens.len().min(SLOT_TOKENS)];
        self.distinct.collect(tokens);
        let mut repeated = Vec::new();
        for (&token, flags) in tokens.iter().zip(&self.flags) {
            let place = self.distinct.place(token).filter(|_| token & DIGIT == 0);
            let count = place.map(|place| std::mem::take(&mut self.distinct.counts[place]));
            if count > Some(1) {
                repeated.push(token & !LOW | flags & LOW);
                asked.push(token);
            }
        }
        match table {
            Some(table) => table.rarities(asked, isa, rarities),
            None => {
                rarities.clear();
                rarities.resize(num_named, u32::from(MAX_WEIGHT));
                rarities.resize(asked.len(), 0);
            }
        }
        let (named, of_repeated) = rarities.split_at(num_named);
        let mut header = u64::from(by_rarity) << BY_RARITY;
        for (place, &rarity) in named.iter().enumerate() {
            header |= u64::from(rarity) << (4 * place);
        }
        for (word, &rarity) in repeated.iter_mut().zip(of_repeated) {
            *word |= u64::from(rarity);
        }
        repeated.sort_by_key(|word| Reverse(word & RARITY));
        self.pairs.resize(num_named, 0);
        self.parts.resize(num_named, 0);
        self.read_slots(table, isa);
        let (frames, fillings) = (&self.frames[..], &self.fillings[..]);
        let lead = &self.tokens[..self.tokens.len().min(LEAD_WINDOW)];
        let lengths =
            lead.len() as u64 | (frames.len() as u64) << 8 | (fillings.len() as u64) << 32;
        let parts = [lead, &self.pairs, frames, fillings, &repeated];
        let num_numbers = parts.iter().map(|part| part.len()).sum::<usize>();
        let mut all = Vec::with_capacity(HEADER + num_numbers + self.tokens.len().div_ceil(2));
        all.extend([
            header,
            lengths,
            self.tokens.len() as u64 | (repeated.len() as u64) << TOKENS_BITS,
        ]);
        parts.iter().for_each(|part| all.extend_from_slice(part));
        for (token, parts) in all[HEADER..].iter_mut().zip(&self.parts) {
            *token = *token & !LOW | parts;
        }
        all.extend(self.tokens.chunks(2).map(|two| {
            let high = two.get(1).map_or(0, |token| token & !LOW);
            two[0] >> 32 | high
        }));
        Names(all.into())
    }

    /// Reads the slots of the last document, if the table has some.
    fn read_slots(&mut self, table: Option<&NameTable>, isa: Isa) {
        let (frames, fillings) = (&mut self.frames, &mut self.fillings);
        frames.clear();
        fillings.clear();
        if let Some(table) = table.filter(|table| table.has_slots()) {
            let may_be = &mut self.may_be;
            each_frame(
                &self.tokens,
                &mut self.scratch,
                isa,
                |some, tokens, length| {
                    for place in places_where(some, may_be, |frame| table.may_be_slot(frame)) {
                        frames.push(some[place]);
                        fillings.push(filling(some[place], &tokens[place..place + length]));
                    }
                },
            );
            table.keep_slots(frames, fillings, isa, &mut self.rarities);
            for list in [&mut *frames, fillings] {
                sort_hashed(list, 0, |hash| hash);
                list.dedup();
            }
        }
    }

    /// Returns the form that the last document was made from, if it has slots.
    pub(crate) fn form(&mut self, table: Option<&NameTable>, isa: Isa) -> Option<Form> {
        self.read_slots(table, isa);
        (!self.frames.is_empty()).then(|| Form {
            slots: self
                .frames
                .iter()
                .fold(0, |all, &frame| mix64(all ^ frame).wrapping_add(frame)),
            num_slots: self.frames.len(),
            fillings: self.fillings[..].into(),
        })
    }
}

/// Rarity of a word that may be the subject of a document if it is repeated.
const FEWEST_RARITY: u64 = 10;
/// Number of first characters by which words are taken for forms of one.
const BEGINNING: usize = 3;

/// Set in how a token begins if that is a hash.
const HASHED: u64 = 1 << 31;
/// Half of a packed number.
const LOW: u64 = u32::MAX as u64;
/// The bits of the rarity of a repeated word.
const RARITY: u64 = 0xF;
const FLAGS: u64 = DIGIT | NUMBER;

/// Whether two repeated words begin with the same characters.
pub(super) fn begin_alike(a: u64, b: u64) -> bool {
    (a ^ b) & LOW & !RARITY == 0
}

/// Returns the first characters of a token, in 28 bits above those of a rarity: a hash, unless they are ASCII.
#[cold]
fn beginning_of(token: &[u8]) -> u64 {
    let is_first = |byte: &&u8| **byte as i8 >= -0x40;
    let firsts = token.iter().enumerate().filter(|(_, byte)| is_first(byte));
    let end = firsts
        .map(|(place, _)| place)
        .nth(BEGINNING)
        .unwrap_or(token.len());
    let first = &token[..end];
    if !first.is_ascii() {
        return (xxh3_64_with_seed(first, 0) & LOW & !RARITY) | HASHED;
    }
    let bytes = first.iter().rev();
    bytes.fold(0, |sum, &byte| sum << 8 | u64::from(byte)) << RARITY.count_ones()
}

/// Returns a bit for each pair of consecutive characters of a token, hashed.
fn pairs_of(token: &str) -> u64 {
    let scalars = || token.chars().map(u64::from);
    let pairs = scalars().zip(scalars().skip(1));
    let pairs = pairs.map(|(a, b)| (a * 0x11_0000 + b).wrapping_mul(GOLDEN) >> 58);
    pairs.fold(0, |all, pair| all | 1 << pair)
}

/// Returns the number of parts of a token such as `get_width`, above a hash of how the first and the last one begin; 0 if
/// it has one part. What is between them is a state or version of the same thing (`tool_alpha_read`, `tool_beta_read`).
fn parts_of(token: &str) -> u64 {
    let parts = token.split(['_', '.']);
    let mut firsts = parts.filter_map(|part| part.chars().next().map(u64::from));
    let num = (firsts.clone().count() as u64).min(MOST_PARTS);
    match (firsts.next(), firsts.next_back()) {
        (Some(a), Some(z)) => {
            (num << PARTS_SHIFT) | mix64(append(a, z)) >> (u64::BITS - PARTS_SHIFT)
        }
        _ => 0,
    }
}

/// Bits of the hash, and the most parts that are counted.
const PARTS_SHIFT: u32 = 24;
const MOST_PARTS: u64 = 255;

impl Names {
    pub fn num_bytes(&self) -> usize {
        size_of::<Names>() + size_of_val::<[u64]>(&self.0)
    }

    /// Whether the weights of the document's features are their rarity.
    pub fn by_rarity(&self) -> bool {
        self.0[0] >> BY_RARITY & 1 == 1
    }

    fn num_lead(&self) -> usize {
        (self.0[1] & 0xFF) as usize
    }

    fn lead(&self) -> &[u64] {
        &self.0[HEADER..HEADER + self.num_lead()]
    }

    fn pairs(&self, place: usize) -> u64 {
        self.0[HEADER + self.num_lead() + place]
    }

    /// Returns the pairs of characters and the parts of one of the first tokens.
    fn named(&self, place: usize) -> (u64, u64) {
        (self.pairs(place), self.lead()[place] & LOW)
    }

    fn rarity(&self, place: usize) -> u64 {
        self.0[0] >> (4 * place) & 0xF
    }

    /// Returns the frames and the fillings of the slots, the repeated tokens, and all tokens.
    fn after_lead(&self) -> (&[u64], &[u64], &[u64], &[u64]) {
        let begin = HEADER + self.num_lead() + self.num_lead().min(LEAD);
        let (frames, rest) = self.0[begin..].split_at((self.0[1] >> 8 & 0xFF_FFFF) as usize);
        let (fillings, rest) = rest.split_at((self.0[1] >> 32) as usize);
        let (repeated, rest) = rest.split_at((self.0[2] >> TOKENS_BITS) as usize);
        (frames, fillings, repeated, rest)
    }

    pub(super) fn num_tokens(&self) -> usize {
        (self.0[2] & ((1 << TOKENS_BITS) - 1)) as usize
    }

    /// Whether a token, 32 bits of it, is one of the first ones at these places.
    pub(super) fn leads_with(&self, bits: u32, token: u32) -> bool {
        places(bits).any(|place| self.lead()[place] >> 32 == u64::from(token))
    }

    /// Returns the tokens without a digit that are repeated: 32 bits of each, how it begins, and its rarity, which
    /// descends.
    pub(super) fn repeated(&self) -> &[u64] {
        self.after_lead().2
    }

    /// Returns the tokens, 32 bits of each, in order; the lowest bit tells whether a token holds a digit.
    pub(super) fn tokens(&self) -> impl DoubleEndedIterator<Item = u32> {
        let packed = self.after_lead().3;
        (0..self.num_tokens()).map(|i| (packed[i / 2] >> (32 * (i % 2))) as u32)
    }

    /// Returns how often the document holds a token.
    fn count(&self, token: u64) -> usize {
        let is_it = |half: u64| usize::from(half == token >> 32);
        let packed = self.after_lead().3.iter();
        packed.map(|two| is_it(two & LOW) + is_it(two >> 32)).sum()
    }

    /// Returns the places, as bits, of the first tokens that may name this document and are new to the other.
    fn new_to(&self, other: &Names) -> u32 {
        let is_new = |&(place, token): &(usize, &u64)| {
            let is_it = |one: &u64| one >> 32 == token >> 32;
            self.pairs(place) != 0 && !other.lead().iter().any(is_it)
        };
        let lead = self.lead().iter().take(LEAD).enumerate();
        lead.filter(is_new)
            .fold(0, |new, (place, _)| new | 1 << place)
    }
}

/// Returns the part of the penalty for different names that is known without all tokens: 0 or more.
///
/// The sum of three parts, for the first tokens, the slots and the subjects; see `docs/developers/definitions.md`.
/// Symmetric. Cost: linear in the slots of both, about 100 ns for a hundred, and in the tokens of both for each subject
/// that only one repeats.
pub fn penalty_of_some(a: &Names, b: &Names) -> f64 {
    parts_of_some(a, b).iter().sum()
}

/// Returns the parts of [`penalty_of_some`].
pub(super) fn parts_of_some(a: &Names, b: &Names) -> [f64; 3] {
    [of_lead(a, b), of_slots(a, b), of_subject(a, b)]
}

/// The places of first tokens, in ascending order.
fn places(bits: u32) -> impl Iterator<Item = usize> {
    (0..LEAD).filter(move |place| bits >> place & 1 == 1)
}

/// Returns the places, as bits, of the first tokens of each document that name it.
pub(super) fn left_of_lead(a: &Names, b: &Names) -> (u32, u32) {
    let (new_a, new_b) = (a.new_to(b), b.new_to(a));
    // A misspelled or inflected word names nothing else.
    let unlike = |one: &Names, bits: u32, other: &Names, others: u32| {
        let is_unlike =
            |i: &usize| places(others).all(|j| !are_alike(one.named(*i), other.named(j)));
        places(bits)
            .filter(is_unlike)
            .fold(0, |left, i| left | 1 << i)
    };
    (unlike(a, new_a, b, new_b), unlike(b, new_b, a, new_a))
}

/// Returns the part of the penalty for first tokens that name the documents.
fn of_lead(a: &Names, b: &Names) -> f64 {
    if a.lead() == b.lead() {
        return 0.0;
    }
    let (left_a, left_b) = left_of_lead(a, b);
    let rarest = |one: &Names, left: u32| places(left).map(|i| one.rarity(i)).max();
    // A part names what it is once more in its text: documentation, headers, data.
    let is_marked = |one: &Names, left: u32, other: &Names| {
        places(left).any(|i| one.count(one.lead()[i]) > 1 && other.count(one.lead()[i]) == 0)
    };
    let found = [rarest(a, left_a), rarest(b, left_b)];
    // A title is all lead: a word more names another thing.
    let is_title = a.num_tokens().min(b.num_tokens()) <= LEAD;
    let of_words = match found.iter().flatten().min() {
        Some(rarity) if is_title || found.iter().all(Option::is_some) => {
            (LEAD_BASE + LEAD_RARITY * rarity) as f64 / LEAD_SCALE
        }
        _ => 0.0,
    };
    let is_part = is_marked(a, left_a, b) || is_marked(b, left_b, a);
    of_words + if is_part { MARK } else { 0.0 }
}

/// The penalty for a first token that one document repeats and the other does not hold.
const MARK: f64 = 0.15;
/// The penalty for the first tokens is `(LEAD_BASE + LEAD_RARITY r) / LEAD_SCALE` for a rarity r of 1 to 15.
const LEAD_BASE: u64 = 15;
const LEAD_RARITY: u64 = 2;
const LEAD_SCALE: f64 = 150.0;

/// Returns the part of the penalty for subjects: rare words that one document repeats and the other does not hold.
fn of_subject(a: &Names, b: &Names) -> f64 {
    let subjects =
        |repeated: &[u64]| repeated.partition_point(|word| word & RARITY >= FEWEST_RARITY);
    let (of_a, of_b) = (a.repeated(), b.repeated());
    let (of_a, of_b) = (&of_a[..subjects(of_a)], &of_b[..subjects(of_b)]);
    if of_a.is_empty() || of_b.is_empty() {
        return 0.0;
    }
    // Most subjects of a copy are subjects of the other too, which spares a look at all tokens.
    let rarest = |own: &[u64], others: &[u64], other: &Names| {
        let mut own = own.iter().filter(|&word| !others.contains(word));
        own.find(|&&word| other.count(word) == 0)
            .map(|word| word & RARITY)
    };
    let found = rarest(of_a, of_b, b).and_then(|first| Some(first.min(rarest(of_b, of_a, a)?)));
    found.map_or(0.0, |rarity| rarity as f64 / SUBJECT_SCALE)
}

/// The penalty for subjects is the lower rarity divided by this.
const SUBJECT_SCALE: f64 = 150.0;

/// Returns the part of the penalty for slots that both documents have and fill differently.
fn of_slots(a: &Names, b: &Names) -> f64 {
    let ((frames_a, fillings_a, ..), (frames_b, fillings_b, ..)) = (a.after_lead(), b.after_lead());
    let num_slots = num_shared(frames_a, frames_b, 0);
    let num_equal = num_shared(fillings_a, fillings_b, FRAME_SHIFT);
    slot_penalty(num_slots, num_equal)
}

/// See [`slot_penalty`].
const EQUAL_SLOTS: usize = 4;

/// Returns the penalty for so many common slots, of which so many are filled alike.
fn slot_penalty(num_slots: usize, num_equal: usize) -> f64 {
    // Few slots tell little, as if there were some more, which are equal.
    num_slots.saturating_sub(num_equal) as f64 / (2 * (num_slots + EQUAL_SLOTS)) as f64
}

/// Whether two tokens, given as pairs and parts, share most of their pairs of characters, with a Dice coefficient of 0.6,
/// and differ in few; the first and the last of equally many parts begin alike.
#[inline]
fn are_alike((a, parts_a): (u64, u64), (b, parts_b): (u64, u64)) -> bool {
    if parts_a != parts_b && parts_a >> PARTS_SHIFT == parts_b >> PARTS_SHIFT {
        return false;
    }
    let is_most = 10 * (a & b).count_ones() >= 3 * (a.count_ones() + b.count_ones());
    is_most && (a ^ b).count_ones() <= MOST_PAIRS
}

/// Two characters that swap their places change so many pairs. Long names with a part of their own differ in more.
const MOST_PAIRS: u32 = 6;

/// Returns the number of elements in both ascending lists; those with the same bits from `bit` on count once.
fn num_shared(a: &[u64], b: &[u64], bit: u32) -> usize {
    let (mut i, mut j, mut num, mut last) = (0, 0, 0, None);
    while i < a.len() && j < b.len() {
        if a[i] == b[j] {
            num += usize::from(last.replace(a[i] >> bit) != Some(a[i] >> bit));
        }
        let (forward, back) = (a[i] <= b[j], b[j] <= a[i]);
        i += usize::from(forward);
        j += usize::from(back);
    }
    num
}
