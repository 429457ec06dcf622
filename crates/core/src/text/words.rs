//! Where does a word begin and end? (UAX #29, default rules)

use super::tables::properties::{
    CONNECTOR, CR, DOUBLE_QUOTE, EXTEND, FORMAT, HEBREW, KATAKANA, LETTER, LF, MID_LETTER, MID_NUM,
    MID_NUM_LET, NEWLINE, NUMERIC, OTHER, REGIONAL, SINGLE_QUOTE, SPACE, ZWJ,
};
use super::tables::{self, ALPHANUMERIC, WORD_BREAK};
use super::utf8;

// A state is the Word_Break value of the last scalar that counts (WB4 skips what attaches), or one of these.
const START: u8 = 19;
/// A Hebrew letter and a single quote (WB7a): joined already, a letter may follow (WB7).
const HEBREW_QUOTE: u8 = 20;
/// A letter and what may join it to a next letter (WB6).
const LETTER_MID: u8 = 21;
/// A Hebrew letter and a double quote (WB7b).
const HEBREW_MID: u8 = 22;
/// A digit and what may join it to a next digit (WB12).
const NUMERIC_MID: u8 = 23;
const NUM_STATES: usize = 24;

// What to do before the scalar, in the upper three bits of a transition; the lower five are the next state.
const JOIN: u8 = 0;
const PART: u8 = 1 << 5;
/// Join, but remember the place: the word may turn out to have ended here.
const HOLD: u8 = 2 << 5;
/// The held scalar belongs to the word.
const RELEASE: u8 = 3 << 5;
/// The word ended before the held scalar, which is a segment of its own.
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
        // WB3d joins only spaces that touch.
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

/// Calls `token` with the byte range of each word of the text, in order.
///
/// A segment that holds no alphanumeric scalar is no word. `part_katakana` parts Katakana scalars (tokens `auto`).
pub(crate) fn cut(text: &[u8], part_katakana: bool, mut token: impl FnMut(usize, usize)) {
    let table = if part_katakana { &AUTO } else { &WORD };
    let mut state = START;
    let mut start = 0;
    let mut held = 0;
    let mut is_word = 0;
    let mut was_word = 0;
    let mut at = 0;
    while at < text.len() {
        let (c, len) = utf8::decode(text, at);
        let property = tables::property(c);
        let next = table[state as usize][(property & WORD_BREAK) as usize];
        state = next & 31;
        match next & !31 {
            JOIN => {}
            PART => {
                if is_word != 0 {
                    token(start, at);
                }
                start = at;
                is_word = 0;
            }
            HOLD => {
                held = at;
                was_word = is_word;
                is_word = 0;
            }
            RELEASE => is_word |= was_word,
            _ => {
                if was_word != 0 {
                    token(start, held);
                }
                if is_word != 0 {
                    token(held, at);
                }
                start = at;
                is_word = 0;
            }
        }
        is_word |= property & ALPHANUMERIC;
        at += len;
    }
    if matches!(state, LETTER_MID | HEBREW_MID | NUMERIC_MID) {
        if was_word != 0 {
            token(start, held);
        }
        start = held;
    }
    if is_word != 0 {
        token(start, text.len());
    }
}
