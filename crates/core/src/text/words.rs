//! Where does a word begin and end? (UAX #29, default rules)

use super::kernel::{BLOCK, Kernel, Masks, Plain};
use super::tables::properties::{
    CONNECTOR, CR, DOUBLE_QUOTE, EXTEND, FORMAT, HEBREW, KATAKANA, LETTER, LF, MID_LETTER, MID_NUM,
    MID_NUM_LET, NEWLINE, NUMERIC, OTHER, REGIONAL, SINGLE_QUOTE, SPACE, ZWJ,
};
use super::tables::{self, ALPHANUMERIC, WORD_BREAK};
use super::utf8;
use crate::isa::Isa;

// A state is the Word_Break value of the last scalar that counts (WB4 skips those that attach), or one of these.
const START: u8 = 19;
/// A Hebrew letter and a single quote (WB7a), already joined; a letter may follow (WB7).
const HEBREW_QUOTE: u8 = 20;
/// A letter and a scalar that may join it to a following letter (WB6).
const LETTER_MID: u8 = 21;
/// A Hebrew letter and a double quote (WB7b).
const HEBREW_MID: u8 = 22;
/// A digit and a scalar that may join it to a following digit (WB12).
const NUMERIC_MID: u8 = 23;
const NUM_STATES: usize = 24;

// The action before the scalar, in the upper three bits of a transition; the lower five are the next state.
const JOIN: u8 = 0;
const PART: u8 = 1 << 5;
/// Join, but record the position: the word may turn out to have ended here.
const HOLD: u8 = 2 << 5;
/// The held scalar belongs to the word.
const RELEASE: u8 = 3 << 5;
/// The word ended before the held scalar, which is a separate segment.
const PART_TWICE: u8 = 4 << 5;

type Transitions = [[u8; 32]; NUM_STATES];

const fn is_letter(class: u8) -> bool {
    class == LETTER || class == HEBREW
}

const fn is_word(class: u8) -> bool {
    is_letter(class) || class == NUMERIC || class == KATAKANA
}

const fn transition(state: u8, class: u8, part_katakana: bool) -> u8 {
    let attaches = class == EXTEND || class == FORMAT || class == ZWJ;
    if attaches && !(state == START || state == CR || state == LF || state == NEWLINE) {
        // WB3d joins only adjacent spaces.
        return JOIN | if state == SPACE { OTHER } else { state };
    }
    if state == LETTER_MID || state == HEBREW_MID || state == NUMERIC_MID {
        let released = match state {
            LETTER_MID => is_letter(class),
            HEBREW_MID => class == HEBREW,
            _ => class == NUMERIC,
        };
        return if released {
            RELEASE | class
        } else {
            PART_TWICE | class
        };
    }
    if state == HEBREW_QUOTE {
        return if is_letter(class) {
            JOIN | class
        } else {
            PART | class
        };
    }
    if is_letter(state) {
        if state == HEBREW && class == SINGLE_QUOTE {
            return JOIN | HEBREW_QUOTE;
        }
        if state == HEBREW && class == DOUBLE_QUOTE {
            return HOLD | HEBREW_MID;
        }
        if class == MID_LETTER || class == MID_NUM_LET || class == SINGLE_QUOTE {
            return HOLD | LETTER_MID;
        }
    }
    if state == NUMERIC && (class == MID_NUM || class == MID_NUM_LET || class == SINGLE_QUOTE) {
        return HOLD | NUMERIC_MID;
    }
    if state == REGIONAL && class == REGIONAL {
        return JOIN | OTHER;
    }
    let joined = match (state, class) {
        (CR, LF) | (SPACE, SPACE) => true,
        (KATAKANA, KATAKANA) => !part_katakana,
        (CONNECTOR, CONNECTOR) => true,
        (CONNECTOR, _) => is_word(class),
        (_, CONNECTOR) => is_word(state),
        (KATAKANA, _) | (_, KATAKANA) => false,
        _ => is_word(state) && is_word(class),
    };
    if joined { JOIN | class } else { PART | class }
}

const fn transitions(part_katakana: bool) -> Transitions {
    let mut table = [[0; 32]; NUM_STATES];
    let mut state = 0;
    while state < NUM_STATES {
        let mut class = 0;
        while class < 19 {
            table[state][class] = transition(state as u8, class as u8, part_katakana);
            class += 1;
        }
        state += 1;
    }
    table
}

static WORD: Transitions = transitions(false);
static AUTO: Transitions = transitions(true);

/// Passes the byte ranges of the words of `text[..len]` to `take`; `part_katakana` separates Katakana. Safety: the
/// processor must have `isa`, and at least 64 zero bytes follow the text, of less than 2^32 - 64 bytes.
pub(crate) unsafe fn cut(
    text: &[u8],
    len: usize,
    part_katakana: bool,
    isa: Isa,
    spans: &mut Spans,
    take: TakeBatch<'_>,
) {
    assert!(text.len() >= len + BLOCK && u32::try_from(text.len()).is_ok());
    let transitions = if part_katakana { &AUTO } else { &WORD };
    let cutter = Cutter {
        text,
        len,
        transitions,
    };
    spans.clear();
    match isa {
        #[cfg(target_arch = "x86_64")]
        // SAFETY: guaranteed by the caller.
        Isa::Avx512(_) => unsafe { cut_avx512(cutter, spans, take) },
        #[cfg(target_arch = "x86_64")]
        // SAFETY: guaranteed by the caller.
        Isa::Avx2(_) => unsafe { cut_avx2(cutter, spans, take) },
        #[cfg(target_arch = "aarch64")]
        // SAFETY: guaranteed by the caller; every function is compiled for this instruction set.
        Isa::Neon(_) => unsafe { cutter.cut::<super::neon::Neon>(spans, take) },
        // SAFETY: portable.
        _ => unsafe { cutter.cut::<Plain>(spans, take) },
    }
    spans.flush(text, take);
}

#[cfg(target_arch = "x86_64")]
#[target_feature(
    enable = "avx512f,avx512bw,avx512vl,avx512dq,avx512vbmi,avx512vbmi2,avx2,bmi1,bmi2,popcnt,lzcnt"
)]
unsafe fn cut_avx512(cutter: Cutter<'_>, spans: &mut Spans, take: TakeBatch<'_>) {
    // SAFETY: this function is compiled for the instruction set.
    unsafe { cutter.cut::<super::avx512::Avx512>(spans, take) }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,bmi1,bmi2,popcnt")]
unsafe fn cut_avx2(cutter: Cutter<'_>, spans: &mut Spans, take: TakeBatch<'_>) {
    // SAFETY: this function is compiled for the instruction set.
    unsafe { cutter.cut::<super::avx2::Avx2>(spans, take) }
}

#[derive(Clone, Copy)]
struct Cutter<'a> {
    /// The text, followed by at least 64 zero bytes.
    text: &'a [u8],
    len: usize,
    transitions: &'static Transitions,
}

/// Bytes up to this one separate words on both sides, regardless of their neighbors; only marks attach to them (WB4).
const LAST_PARTING_BYTE: u8 = b' ';
/// Mask of the following bytes that must be ASCII for leaving the table-driven path to pay.
const ASCII_AHEAD: u64 = (1 << 24) - 1;

impl Cutter<'_> {
    /// Safety: the processor must have the kernel's instruction set.
    #[inline(always)]
    unsafe fn cut<K: Kernel>(self, spans: &mut Spans, take: TakeBatch<'_>) {
        let mut at = 0;
        while at < self.len {
            // SAFETY: guaranteed by the caller.
            unsafe {
                let end = self.end_of_ascii_words::<K>(at);
                self.ascii::<K>(at, end, spans, take);
                at = if end < self.len {
                    self.mixed::<K>(end, spans, take)
                } else {
                    end
                };
            }
        }
    }

    /// Returns the last position up to which words are pure ASCII. Safety: same as for [`Cutter::cut`].
    #[inline(always)]
    unsafe fn end_of_ascii_words<K: Kernel>(self, from: usize) -> usize {
        let mut at = from;
        while at < self.len {
            // SAFETY: 64 bytes follow every place in the text.
            let others = unsafe { K::non_ascii(self.text.as_ptr().add(at)) };
            if others != 0 {
                let first = at + others.trailing_zeros() as usize;
                let parting = self.text[from..first]
                    .iter()
                    .rposition(|&b| b <= LAST_PARTING_BYTE);
                return from + parting.unwrap_or(0);
            }
            at += BLOCK;
        }
        self.len
    }

    /// Returns the classes of the block at `at`, without bytes from `to` on. Safety: same as for [`Cutter::cut`].
    #[inline(always)]
    unsafe fn classify<K: Kernel>(self, at: usize, to: usize) -> Masks {
        if at >= to {
            return Masks::default();
        }
        // SAFETY: 64 bytes follow every place in the text.
        let masks = unsafe { K::classify(self.text.as_ptr().add(at)) };
        if to - at < BLOCK {
            masks.first(to - at)
        } else {
            masks
        }
    }

    /// Cuts a range of ASCII that begins and ends at word separators. Safety: same as for [`Cutter::cut`].
    #[inline(always)]
    unsafe fn ascii<K: Kernel>(
        self,
        from: usize,
        to: usize,
        spans: &mut Spans,
        take: TakeBatch<'_>,
    ) {
        let mut at = from;
        // SAFETY: guaranteed by the caller.
        let mut block = unsafe { self.classify::<K>(at, to) };
        // Whether the last byte of the previous block was a letter, a digit, or part of a word.
        let (mut after_letter, mut after_digit, mut in_word) = (0, 0, 0);
        while at < to {
            // SAFETY: guaranteed by the caller.
            let next = unsafe { self.classify::<K>(at + BLOCK, to) };
            let letters_around =
                (block.letters << 1 | after_letter) & (block.letters >> 1 | next.letters << 63);
            let digits_around =
                (block.digits << 1 | after_digit) & (block.digits >> 1 | next.digits << 63);
            let words = block.letters
                | block.digits
                | block.connectors
                | block.mid_letters & letters_around
                | block.mid_numbers & digits_around;
            let after_word = words << 1 | in_word;
            let (starts, ends) = (words & !after_word, after_word & !words);
            if starts & block.connectors != 0 {
                spans.note_connectors();
            }
            let (next_starts, next_ends) = spans.next();
            // SAFETY: Spans::next returns at least 64 places each.
            let (num_starts, num_ends) = unsafe {
                (
                    K::positions(starts, at as u32, next_starts.as_mut_ptr()),
                    K::positions(ends, at as u32, next_ends.as_mut_ptr()),
                )
            };
            spans.advance(num_starts, num_ends, self.text, take);
            (after_letter, after_digit, in_word) =
                (block.letters >> 63, block.digits >> 63, words >> 63);
            block = next;
            at += BLOCK;
        }
        if in_word != 0 {
            spans.next().1[0] = to as u32;
            spans.advance(0, 1, self.text, take);
        }
    }

    /// Cuts any text up to a separating byte followed by ASCII; returns where. Safety: same as for [`Cutter::cut`].
    #[inline(always)]
    unsafe fn mixed<K: Kernel>(self, from: usize, spans: &mut Spans, take: TakeBatch<'_>) -> usize {
        let Cutter {
            text,
            len,
            transitions,
        } = self;
        let mut state = START;
        let mut start = from;
        let mut held = from;
        let mut is_word = 0;
        let mut was_word = 0;
        let mut at = from;
        while at < len {
            let first: [u8; 4] = *text[at..].first_chunk().unwrap_or(&[0; 4]);
            let (c, num_bytes) = utf8::decode_first(first);
            let property = tables::property(c);
            let next = transitions[state as usize][(property & WORD_BREAK) as usize];
            state = next & 31;
            if next < PART {
                // JOIN, by far the most frequent.
                is_word |= property & ALPHANUMERIC;
                at += num_bytes;
                continue;
            }
            match next & !31 {
                HOLD => {
                    held = at;
                    was_word = is_word;
                    is_word = 0;
                }
                RELEASE => is_word |= was_word,
                action => {
                    if action == PART_TWICE {
                        if was_word != 0 {
                            spans.push(start, held, text, take);
                        }
                        start = held;
                    }
                    if is_word != 0 {
                        spans.push(start, at, text, take);
                    }
                    start = at;
                    is_word = 0;
                    if num_bytes == 3 && matches!(text[at], 0xE4..=0xE9) {
                        // SAFETY: 64 bytes follow every place in the text.
                        let run_bytes = unsafe { K::ideographs(text.as_ptr().add(at)) };
                        if run_bytes > 3 {
                            // Each except the last is a word; marks may attach to the last.
                            start = at + run_bytes - 3;
                            let (starts, ends) = spans.next();
                            for i in 0..MAX_IDEOGRAPHS {
                                starts[i] = (at + 3 * i) as u32;
                                ends[i] = (at + 3 * i + 3) as u32;
                            }
                            let num_words = run_bytes / 3 - 1;
                            spans.advance(num_words, num_words, text, take);
                            is_word = ALPHANUMERIC;
                            at += run_bytes;
                            continue;
                        }
                    }
                    if c <= u32::from(LAST_PARTING_BYTE) && at > from {
                        // SAFETY: 64 bytes follow every place in the text.
                        let others = unsafe { K::non_ascii(text.as_ptr().add(at)) };
                        if others & ASCII_AHEAD == 0 {
                            return at;
                        }
                    }
                }
            }
            is_word |= property & ALPHANUMERIC;
            at += num_bytes;
        }
        if matches!(state, LETTER_MID | HEBREW_MID | NUMERIC_MID) {
            if was_word != 0 {
                spans.push(start, held, text, take);
            }
            start = held;
        }
        if is_word != 0 {
            spans.push(start, len, text, take);
        }
        len
    }
}

/// Maximum number of ideographs found by [`Kernel::ideographs`], rounded up for whole registers.
const MAX_IDEOGRAPHS: usize = 32;

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
