//! Which tokens of a normalized text are numbers, model numbers, sizes and colors?

use std::collections::HashMap;

use super::fold::is_digit;
use super::tables::properties::{HEBREW, LETTER};
use super::tables::{self, ALPHANUMERIC, WORD_BREAK};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Kind {
    /// Letters that identify only if they do so in the other text.
    Word = 0,
    /// Letters: a size, part of a model number, a unit.
    Letters = 1,
    /// A number of up to four digits.
    Number = 2,
    Code = 3,
    Color = 4,
    Model = 5,
}

/// A token, and how many equal tokens precede it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Identifier<'a> {
    pub(crate) text: &'a [u8],
    pub(crate) kind: Kind,
    pub(crate) occurrence: u32,
}

/// Letters that always identify, besides single ones: sizes and Roman numerals.
const SIZES: &str = "xxs xs xl xxl xxxl ii iii iv vi vii viii ix xi xii";
const COLORS: &str =
    "black white gray silver gold blue red green yellow orange pink purple brown beige";
/// Short words that identify nothing next to a number.
const WORDS: &str = "an as at by is it of on or to";
/// Names of one unit or color, of which the last is its symbol.
const UNITS: [&str; 15] = [
    "grey gray",
    "inch inches in",
    "gram grams g",
    "kilogram kilograms kilo kilos kg",
    "liter liters litre litres l",
    "meter meters metre metres m",
    "foot feet ft",
    "pound pounds lbs lb",
    "ounce ounces oz",
    "watt watts w",
    "volt volts v",
    "gigabyte gigabytes gig gb",
    "terabyte terabytes tb",
    "packs pk pack",
    "piece pieces pcs pc",
];
/// Most letters of a part of a model number, and of letters next to a number.
const MOST_LETTERS: usize = 4;
const MOST_NEAR: usize = 2;
/// Fewest scalars of a model number, and fewest digits of a long number.
const FEWEST_OF_MODEL: usize = 4;
const FEWEST_OF_CODE: usize = 5;
/// Fewest digits of a model number that has letters: words such as "python3" have one.
const FEWEST_DIGITS: usize = 2;

/// Reads the identifiers of texts, reusing its memory.
#[derive(Debug, Default)]
pub(crate) struct Identifiers {
    runs: Vec<Run>,
    /// Canonical forms of the runs, one after the other.
    forms: String,
    counts: HashMap<String, u32>,
}

/// Consecutive digits or letters.
#[derive(Debug, Clone, Copy)]
struct Run {
    start: usize,
    end: usize,
    is_number: bool,
    /// Number of the chain: of letters and digits that hyphens, slashes and periods join.
    chain: u32,
    num_scalars: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Class {
    Digit,
    Letter,
    Other,
}

fn class(c: char) -> Class {
    let property = tables::property(u32::from(c));
    match property & WORD_BREAK {
        LETTER | HEBREW if property & ALPHANUMERIC != 0 => Class::Letter,
        _ if is_digit(u32::from(c)) => Class::Digit,
        _ => Class::Other,
    }
}

impl Identifiers {
    /// Passes each token of a normalized text to `take`, in order. Cost: linear.
    pub(crate) fn read(&mut self, text: &str, mut take: impl FnMut(Identifier<'_>)) {
        self.cut(text);
        self.counts.clear();
        for i in 0..self.runs.len() {
            let run = self.runs[i];
            let (form, kind) = (&self.forms[run.start..run.end], self.kind(i));
            if run.is_number || run.num_scalars <= MOST_LETTERS || kind == Kind::Color {
                let occurrence = counted(&mut self.counts, form);
                take(Identifier {
                    text: form.as_bytes(),
                    kind,
                    occurrence,
                });
            }
            let begins = i == 0 || self.runs[i - 1].chain != run.chain;
            if begins && let Some(model) = self.model(i) {
                take(Identifier {
                    text: model.as_bytes(),
                    kind: Kind::Model,
                    occurrence: 0,
                });
            }
        }
    }

    /// Finds the runs of a text and their canonical forms.
    fn cut(&mut self, text: &str) {
        self.runs.clear();
        self.forms.clear();
        let scalars: Vec<char> = text.chars().collect();
        let class_at = |i: usize| scalars.get(i).map_or(Class::Other, |&c| class(c));
        let (mut chain, mut at) = (0, 0);
        while at < scalars.len() {
            let class = class_at(at);
            if class == Class::Other {
                let joins = matches!(scalars[at], '-' | '/' | '.')
                    && at > 0
                    && class_at(at - 1) != Class::Other
                    && class_at(at + 1) != Class::Other;
                chain += u32::from(!joins);
                at += 1;
                continue;
            }
            let start = self.forms.len();
            let num_scalars = match class {
                Class::Digit => self.number(&scalars, &mut at, class_at),
                _ => self.letters(&scalars, &mut at, class_at),
            };
            self.runs.push(Run {
                start,
                end: self.forms.len(),
                is_number: class == Class::Digit,
                chain,
                num_scalars,
            });
        }
        self.name_units();
    }

    /// Appends a number without zeros at the start of a part and empty parts at the end; returns its digits.
    fn number(
        &mut self,
        scalars: &[char],
        at: &mut usize,
        class: impl Fn(usize) -> Class,
    ) -> usize {
        let start = self.forms.len();
        let mut num_digits = 0;
        let mut is_first = true;
        while *at < scalars.len() {
            match (class(*at), scalars[*at]) {
                (Class::Digit, '0') if is_first => *at += 1,
                (Class::Digit, digit) => {
                    self.forms.push(digit);
                    (is_first, num_digits, *at) = (false, num_digits + 1, *at + 1);
                }
                (_, '.' | ',') if class(*at + 1) == Class::Digit => {
                    let groups = (1..=3).all(|i| class(*at + i) == Class::Digit);
                    let is_group = scalars[*at] == ',' && groups && class(*at + 4) != Class::Digit;
                    if !is_group {
                        self.forms.push('.');
                        is_first = true;
                    }
                    *at += 1;
                }
                _ => break,
            }
        }
        let kept = self.forms[start..].trim_end_matches('.').len();
        self.forms.truncate(start + kept);
        if kept == 0 {
            self.forms.push('0');
        }
        num_digits
    }

    /// Appends letters, also across marks that join a chain. Returns their number.
    fn letters(
        &mut self,
        scalars: &[char],
        at: &mut usize,
        class: impl Fn(usize) -> Class,
    ) -> usize {
        let mut num_letters = 0;
        loop {
            while class(*at) == Class::Letter {
                self.forms.push(scalars[*at]);
                (num_letters, *at) = (num_letters + 1, *at + 1);
            }
            let joins = matches!(scalars.get(*at), Some('-' | '/' | '.'))
                && class(*at + 1) == Class::Letter;
            if !joins {
                return num_letters;
            }
            *at += 1;
        }
    }

    /// Replaces the names of units by their symbols.
    fn name_units(&mut self) {
        let forms = std::mem::take(&mut self.forms);
        for run in &mut self.runs {
            let form = &forms[run.start..run.end];
            let unit = UNITS
                .iter()
                .find(|names| !run.is_number && is_listed(form, names));
            let symbol = unit.and_then(|names| names.split(' ').next_back());
            run.start = self.forms.len();
            self.forms.push_str(symbol.unwrap_or(form));
            run.end = self.forms.len();
            run.num_scalars = symbol.map_or(run.num_scalars, str::len);
        }
    }

    fn kind(&self, i: usize) -> Kind {
        let run = self.runs[i];
        if run.is_number {
            return match run.num_scalars {
                FEWEST_OF_CODE.. => Kind::Code,
                _ => Kind::Number,
            };
        }
        let form = &self.forms[run.start..run.end];
        if is_listed(form, COLORS) {
            return Kind::Color;
        }
        let neighbors = [i.checked_sub(1), Some(i + 1)];
        let mut numbers = neighbors
            .into_iter()
            .flatten()
            .filter_map(|near| self.runs.get(near))
            .filter(|near| near.is_number);
        let is_near = run.num_scalars <= MOST_NEAR
            && numbers.clone().next().is_some()
            && !is_listed(form, WORDS);
        let identifies = run.num_scalars == 1
            || is_listed(form, SIZES)
            || is_near
            || run.num_scalars <= MOST_LETTERS && numbers.any(|near| near.chain == run.chain);
        if identifies {
            Kind::Letters
        } else {
            Kind::Word
        }
    }

    /// Returns the model number of the chain from a run on: at least four letters and digits, two of them digits.
    fn model(&self, first: usize) -> Option<&str> {
        let chain = self.runs[first].chain;
        let len = self.runs[first..]
            .iter()
            .take_while(|run| run.chain == chain)
            .count();
        let runs = &self.runs[first..first + len];
        let num_scalars: usize = runs.iter().map(|run| run.num_scalars).sum();
        let num_digits: usize = runs
            .iter()
            .filter(|run| run.is_number)
            .map(|run| run.num_scalars)
            .sum();
        let is_mixed = num_digits >= FEWEST_DIGITS && (!runs[0].is_number || len > 2);
        let is_model = num_scalars >= FEWEST_OF_MODEL
            && (num_digits >= FEWEST_OF_CODE || is_mixed && num_digits < num_scalars);
        is_model.then(|| &self.forms[runs[0].start..runs[len - 1].end])
    }
}

/// Whether a word is in a list.
fn is_listed(word: &str, list: &str) -> bool {
    list.split(' ').any(|listed| listed == word)
}

/// Returns the number of earlier calls with this word.
fn counted(counts: &mut HashMap<String, u32>, word: &str) -> u32 {
    match counts.get_mut(word) {
        Some(count) => {
            *count += 1;
            *count
        }
        None => {
            counts.insert(word.to_owned(), 0);
            0
        }
    }
}
