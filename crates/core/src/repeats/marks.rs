//! Which marks around removed words are removed with them?
//!
//! The words do not determine to which of them the text between two words belongs. After the last removed word, marks
//! are removed up to whitespace or up to a mark that opens something for the next word. Before the first one, marks are
//! removed from the outermost one that is closed within the removed text.
//!
//! The two sides differ on purpose. A closing mark is always removed with the word before it, since a period or a
//! bracket cannot stand alone. Pairing closing marks as well would need the text before the span, and would leave the
//! `)` of `1)` and of `:)` behind. Where languages disagree on quotation marks (German closes with the mark that opens
//! in English), the whitespace next to the mark decides.

use std::cell::OnceCell;

use super::PlacedWords;
use crate::text::{is_white_space, joins_words};

/// Opening marks (Ps and Pi of Unicode 17.0.0, and the inverted marks of Spanish), ascending, and what closes each:
/// Bidi_Paired_Bracket, or the mark of the same shape.
#[rustfmt::skip]
const PAIRS: [(char, char); 93] = [
    ('(', ')'), ('[', ']'), ('{', '}'), ('\u{A1}', '!'), ('\u{AB}', '\u{BB}'), ('\u{BF}', '?'),
    ('\u{F3A}', '\u{F3B}'), ('\u{F3C}', '\u{F3D}'), ('\u{169B}', '\u{169C}'), ('\u{2018}', '\u{2019}'),
    ('\u{201A}', '\u{2019}'), ('\u{201B}', '\u{2019}'), ('\u{201C}', '\u{201D}'), ('\u{201E}', '\u{201D}'),
    ('\u{201F}', '\u{201D}'), ('\u{2039}', '\u{203A}'), ('\u{2045}', '\u{2046}'), ('\u{207D}', '\u{207E}'),
    ('\u{208D}', '\u{208E}'), ('\u{2308}', '\u{2309}'), ('\u{230A}', '\u{230B}'), ('\u{2329}', '\u{232A}'),
    ('\u{2768}', '\u{2769}'), ('\u{276A}', '\u{276B}'), ('\u{276C}', '\u{276D}'), ('\u{276E}', '\u{276F}'),
    ('\u{2770}', '\u{2771}'), ('\u{2772}', '\u{2773}'), ('\u{2774}', '\u{2775}'), ('\u{27C5}', '\u{27C6}'),
    ('\u{27E6}', '\u{27E7}'), ('\u{27E8}', '\u{27E9}'), ('\u{27EA}', '\u{27EB}'), ('\u{27EC}', '\u{27ED}'),
    ('\u{27EE}', '\u{27EF}'), ('\u{2983}', '\u{2984}'), ('\u{2985}', '\u{2986}'), ('\u{2987}', '\u{2988}'),
    ('\u{2989}', '\u{298A}'), ('\u{298B}', '\u{298C}'), ('\u{298D}', '\u{2990}'), ('\u{298F}', '\u{298E}'),
    ('\u{2991}', '\u{2992}'), ('\u{2993}', '\u{2994}'), ('\u{2995}', '\u{2996}'), ('\u{2997}', '\u{2998}'),
    ('\u{29D8}', '\u{29D9}'), ('\u{29DA}', '\u{29DB}'), ('\u{29FC}', '\u{29FD}'), ('\u{2E02}', '\u{2E03}'),
    ('\u{2E04}', '\u{2E05}'), ('\u{2E09}', '\u{2E0A}'), ('\u{2E0C}', '\u{2E0D}'), ('\u{2E1C}', '\u{2E1D}'),
    ('\u{2E20}', '\u{2E21}'), ('\u{2E22}', '\u{2E23}'), ('\u{2E24}', '\u{2E25}'), ('\u{2E26}', '\u{2E27}'),
    ('\u{2E28}', '\u{2E29}'), ('\u{2E42}', '\u{201D}'), ('\u{2E55}', '\u{2E56}'), ('\u{2E57}', '\u{2E58}'),
    ('\u{2E59}', '\u{2E5A}'), ('\u{2E5B}', '\u{2E5C}'), ('\u{3008}', '\u{3009}'), ('\u{300A}', '\u{300B}'),
    ('\u{300C}', '\u{300D}'), ('\u{300E}', '\u{300F}'), ('\u{3010}', '\u{3011}'), ('\u{3014}', '\u{3015}'),
    ('\u{3016}', '\u{3017}'), ('\u{3018}', '\u{3019}'), ('\u{301A}', '\u{301B}'), ('\u{301D}', '\u{301E}'),
    ('\u{FD3F}', '\u{FD3E}'), ('\u{FE17}', '\u{FE18}'), ('\u{FE35}', '\u{FE36}'), ('\u{FE37}', '\u{FE38}'),
    ('\u{FE39}', '\u{FE3A}'), ('\u{FE3B}', '\u{FE3C}'), ('\u{FE3D}', '\u{FE3E}'), ('\u{FE3F}', '\u{FE40}'),
    ('\u{FE41}', '\u{FE42}'), ('\u{FE43}', '\u{FE44}'), ('\u{FE47}', '\u{FE48}'), ('\u{FE59}', '\u{FE5A}'),
    ('\u{FE5B}', '\u{FE5C}'), ('\u{FE5D}', '\u{FE5E}'), ('\u{FF08}', '\u{FF09}'), ('\u{FF3B}', '\u{FF3D}'),
    ('\u{FF5B}', '\u{FF5D}'), ('\u{FF5F}', '\u{FF60}'), ('\u{FF62}', '\u{FF63}'),
];

/// Marks that open only after whitespace or at the start, and what closes each: the same at both ends, or reversible.
const LOOSE_PAIRS: [(char, char); 8] = [
    ('"', '"'),
    ('\'', '\''),
    ('*', '*'),
    ('`', '`'),
    ('\u{BB}', '\u{AB}'),
    ('\u{2019}', '\u{2019}'),
    ('\u{201D}', '\u{201D}'),
    ('\u{203A}', '\u{2039}'),
];

/// Returns what closes a mark of [`PAIRS`].
fn closing(mark: char) -> Option<char> {
    let at = PAIRS.binary_search_by_key(&mark, |&(open, _)| open).ok()?;
    Some(PAIRS[at].1)
}

fn loose_closing(mark: char) -> Option<char> {
    let found = LOOSE_PAIRS.iter().find(|&&(open, _)| open == mark);
    found.map(|&(_, close)| close)
}

/// Whether a mark closes `open`, whose standard partner is `close`.
fn is_partner(open: char, close: char, mark: char) -> bool {
    mark == close
        || matches!(
            (open, mark),
            ('\u{201A}', '\u{2018}')
                | ('\u{201E}', '\u{201C}')
                | ('\u{2E42}', '\u{201F}')
                | ('\u{301D}', '\u{301F}')
        )
}

/// Whether a mark is a quotation mark of category Pi: some languages close with them.
fn is_initial_quote(mark: char) -> bool {
    matches!(
        mark,
        '\u{AB}' | '\u{2018}' | '\u{201B}' | '\u{201C}' | '\u{201F}' | '\u{2039}'
    ) || matches!(
        mark,
        '\u{2E02}' | '\u{2E04}' | '\u{2E09}' | '\u{2E0C}' | '\u{2E1C}' | '\u{2E20}'
    )
}

/// Whether a character is the whitespace that French puts between a word and its mark.
fn is_no_break(c: char) -> bool {
    matches!(c, '\u{A0}' | '\u{202F}')
}

/// Whether a no-break space before a mark binds it to the previous word: categories Pe and Pf, and ! ? : ;
fn closes(mark: char) -> bool {
    matches!(mark, ':' | ';' | '\u{301F}') || PAIRS.iter().any(|&(_, close)| close == mark)
}

/// Returns the bytes after a word that are removed with it; `gap` extends to the next word, or the end (`is_last`).
pub(super) fn behind(gap: &str, is_last: bool) -> usize {
    // Computed once, so that many marks do not search for it repeatedly.
    let last_break = OnceCell::new();
    let breaks_behind = |at| {
        let last = last_break.get_or_init(|| gap.rfind(|c| is_white_space(c) && !is_no_break(c)));
        last.is_some_and(|last| at < last)
    };
    let mut scalars = gap.char_indices().peekable();
    while let Some((at, c)) = scalars.next() {
        if is_white_space(c) {
            let next = scalars.peek();
            if is_no_break(c) && next.is_some_and(|&(_, next)| closes(next)) {
                continue;
            }
            return gap.len() - gap[at..].trim_start_matches(is_white_space).len();
        }
        if !is_last && closing(c).is_some() && !(is_initial_quote(c) && breaks_behind(at)) {
            return at;
        }
    }
    gap.len()
}

impl PlacedWords<'_> {
    /// Returns the start of what is removed with word `begin`, if `num_going` words go and the previous one is kept.
    pub(super) fn start_of(&self, begin: usize, num_going: usize) -> usize {
        let start = self.starts[begin] as usize;
        let from = begin.checked_sub(1).map_or(0, |i| self.ends[i] as usize);
        let touching = touching_before(&self.text[from..start]);
        let touching_start = start - touching.len();
        let is_loose = begin == 0 || touching_start > from;
        // Otherwise the previous word and the next kept one might be joined, as in "x(y)z" without "(y)".
        let is_needed = !is_loose && self.text[..from].ends_with(joins_words);
        let may_go =
            |at: usize| !(is_needed && self.text[..touching_start + at].ends_with(joins_words));
        let mut first = touching.len();
        let mut met = Vec::new();
        for (at, mark) in touching.char_indices() {
            if at >= first {
                break;
            }
            if met.contains(&mark) || !may_go(at) {
                continue;
            }
            met.push(mark);
            let closed = match (closing(mark), loose_closing(mark)) {
                (Some(close), _) => {
                    let closed = self.closed(mark, close, touching, begin, num_going);
                    closed.into_iter().filter(|&at| may_go(at)).min()
                }
                (None, Some(close)) if is_loose => {
                    let mut gaps = self.gaps(begin, num_going).flat_map(str::chars);
                    gaps.any(|c| c == close).then_some(at)
                }
                _ => None,
            };
            if let Some(closed) = closed {
                first = first.min(closed);
            }
        }
        touching_start + first
    }

    /// Returns the text after each of `num_words` words from `begin` on; for the last word, only what belongs to it.
    fn gaps(&self, begin: usize, num_words: usize) -> impl Iterator<Item = &str> {
        let last = (begin + num_words).min(self.starts.len()) - 1;
        (begin..=last).map(move |i| {
            let (gap, is_last) = self.gap_behind(i);
            match i == last {
                true => &gap[..behind(gap, is_last)],
                false => gap,
            }
        })
    }

    /// Returns the positions in `marks`, before word `begin`, of the `open` marks closed there or after removed words.
    fn closed(
        &self,
        open: char,
        close: char,
        marks: &str,
        begin: usize,
        num_going: usize,
    ) -> Vec<usize> {
        let mut opened = Vec::new();
        let mut closed = Vec::new();
        for (at, c) in marks.char_indices() {
            if is_partner(open, close, c) {
                closed.extend(opened.pop());
            } else if c == open {
                opened.push(at);
            }
        }
        let mut num_inner = 0_usize;
        for c in self.gaps(begin, num_going).flat_map(str::chars) {
            if opened.is_empty() {
                break;
            }
            if is_partner(open, close, c) {
                match num_inner {
                    0 => closed.extend(opened.pop()),
                    _ => num_inner -= 1,
                }
            } else if c == open {
                num_inner += 1;
            }
        }
        closed
    }
}

/// Returns the marks before a word that touch it: back to whitespace, except a no-break space after an opening mark.
fn touching_before(gap: &str) -> &str {
    let mut scalars = gap.char_indices().rev().peekable();
    while let Some((at, c)) = scalars.next() {
        let opens = |mark| closing(mark).is_some() || loose_closing(mark).is_some();
        let is_bound = is_no_break(c) && scalars.peek().is_some_and(|&(_, before)| opens(before));
        if is_white_space(c) && !is_bound {
            return &gap[at + c.len_utf8()..];
        }
    }
    gap
}
