//! Stretches of words that repeat.

use std::path::PathBuf;
use std::sync::atomic::AtomicBool;

use likewise_core::error::invalid_if;
use likewise_core::parallel::{Cancel, Run};
use likewise_core::repeats::{self, PlacedWords, WindowReader, WordStretch};
use likewise_core::text::{PartCutter, PartUnit, Parts};
use likewise_disk::{TextColumn, windows};
use pyo3::prelude::*;

use crate::array::{Array, take};
use crate::column::Column;
use crate::door::{Object, check_below, check_same_length, chosen_isa, parse, run};
use crate::errors::{On, Result};
use crate::texts::Texts;

/// Number of texts or stretches processed between two checks for an interrupt.
const LOOK_TEXTS: usize = 256;
/// Assumed bytes of a word.
const BYTES_A_WORD: usize = 6;

/// Which smallest hashes of windows occurred more than once.
#[pyclass(frozen, module = "likewise._native")]
pub struct SeenTwice {
    seen: repeats::SeenTwice,
    num_words: usize,
}

#[pymethods]
impl SeenTwice {
    #[new]
    fn new(num_words: usize, num_expected: usize) -> Result<Self> {
        invalid_if(num_words < 2, "num_words", || {
            format!("{num_words} is under 2")
        })?;
        Ok(SeenTwice {
            seen: repeats::SeenTwice::new(num_expected),
            num_words,
        })
    }

    /// Counts the windows of texts; returns how many words each has.
    fn count(&self, py: Python<'_>, texts: &Texts) -> Result<Array> {
        let column = texts.column.as_ref();
        run(py, column.num_bytes, |cancel| {
            let mut reader = WindowReader::new(chosen_isa(), self.num_words);
            Ok(each_text(column, cancel, |text| reader.count(text, &self.seen))?.into())
        })
    }
}

/// Windows that may repeat another, in memory as long as it suffices and then in a file.
#[pyclass(frozen, module = "likewise._native")]
pub struct RepeatedWindows {
    windows: windows::RepeatedWindows,
    folder: PathBuf,
}

#[pymethods]
impl RepeatedWindows {
    #[new]
    #[pyo3(signature = (folder, num_words, num_all_words, *, memory_bytes))]
    fn new(folder: PathBuf, num_words: u64, num_all_words: u64, memory_bytes: usize) -> Self {
        RepeatedWindows {
            windows: windows::RepeatedWindows::new(&folder, num_words, num_all_words, memory_bytes),
            folder,
        }
    }

    /// Stores the windows of texts that may occur twice; the first word has position `first` among all.
    fn add(&self, py: Python<'_>, texts: &Texts, seen: &SeenTwice, first: u64) -> Result<()> {
        let column = texts.column.as_ref();
        run(py, column.num_bytes, |cancel| {
            let mut reader = WindowReader::new(chosen_isa(), seen.num_words);
            let (mut place, mut found) = (first, Vec::new());
            each_text(column, cancel, |text| {
                place += u64::from(reader.put_aside(text, &seen.seen, place, &mut found));
            })?;
            self.windows.add(&found).on(&self.folder)
        })
    }

    /// The longest stretches of windows that repeat consecutive ones: position, position of the first, number of
    /// windows.
    #[pyo3(signature = (doc_starts, *, threads=1))]
    fn stretches(
        &self,
        py: Python<'_>,
        doc_starts: &Object<'_>,
        threads: usize,
    ) -> Result<(Array, Array, Array)> {
        take!(doc_starts: i64);
        run(py, usize::MAX, |cancel| {
            let found = self.windows.stretches(doc_starts, Run { threads, cancel });
            let found = found.on(&self.folder)?;
            let counts = found.num_windows.into();
            Ok((found.places.into(), found.firsts.into(), counts))
        })
    }
}

/// Locations of stretches of words that equal others: the number of each, and the bytes of both.
#[pyfunction]
#[allow(clippy::type_complexity)]
pub fn equal_stretches(
    py: Python<'_>,
    texts: &Texts,
    places: (Object<'_>, Object<'_>),
    kept_places: (Object<'_>, Object<'_>),
    num_words: &Object<'_>,
    is_followed: &Object<'_>,
    num_going: &Object<'_>,
) -> Result<(Array, Array, Array, Array, Array)> {
    let (owners, begins) = (&places.0, &places.1);
    let (kept_owners, kept_begins) = (&kept_places.0, &kept_places.1);
    take!(owners: u32, begins: u32, kept_owners: u32, kept_begins: u32, num_words: u32, is_followed: u8, num_going: u32);
    let column = texts.column.as_ref();
    let count = owners.len();
    for (name, length) in [
        ("begins", begins.len()),
        ("kept_owners", kept_owners.len()),
        ("kept_begins", kept_begins.len()),
        ("num_words", num_words.len()),
        ("is_followed", is_followed.len()),
        ("num_going", num_going.len()),
    ] {
        check_same_length(name, length, "owners", count)?;
    }
    check_below("owners", owners, column.len())?;
    check_below("kept_owners", kept_owners, column.len())?;
    let (numbers, repeats) = run(py, column.num_bytes, |cancel| {
        let mut cutter = PartCutter::new(chosen_isa());
        let placed = Placed::new(column, &mut cutter, cancel)?;
        let (mut numbers, mut repeats) = (Vec::new(), Vec::new());
        for i in 0..count {
            if i % LOOK_TEXTS == 0 {
                cancel.check()?;
            }
            let stretch = WordStretch {
                begin: begins[i] as usize,
                other_begin: kept_begins[i] as usize,
                num_words: num_words[i] as usize,
                is_followed: is_followed[i] != 0,
                num_going: num_going[i] as usize,
            };
            let kept = placed.words(kept_owners[i]);
            let found = (placed.words(owners[i])).repeat(stretch, &kept, &mut cutter);
            if let Some(repeat) = found {
                numbers.push(i as u32);
                repeats.push(repeat);
            }
        }
        Ok((numbers, repeats))
    })?;
    let column_of =
        |of: fn(&repeats::Repeat) -> u32| Array::from(repeats.iter().map(of).collect::<Vec<u32>>());
    Ok((
        numbers.into(),
        column_of(|repeat| repeat.start),
        column_of(|repeat| repeat.end),
        column_of(|repeat| repeat.kept_start),
        column_of(|repeat| repeat.kept_end),
    ))
}

/// Where the words of texts begin and end.
struct Placed<'a> {
    column: &'a Column,
    parts: Parts,
    /// Number of the first word of each text, and of all words.
    first_words: Vec<usize>,
}

impl<'a> Placed<'a> {
    fn new(column: &'a Column, cutter: &mut PartCutter, cancel: &AtomicBool) -> Result<Self> {
        let mut parts = Parts::default();
        parts.starts.reserve(column.num_bytes / BYTES_A_WORD);
        parts.ends.reserve(column.num_bytes / BYTES_A_WORD);
        let mut first_words = vec![0];
        each_text(column, cancel, |text| {
            cutter.place_words(text, &mut parts);
            first_words.push(parts.starts.len());
        })?;
        Ok(Placed {
            column,
            parts,
            first_words,
        })
    }

    fn words(&self, i: u32) -> PlacedWords<'_> {
        let i = i as usize;
        let words = self.first_words[i]..self.first_words[i + 1];
        PlacedWords {
            text: self.column.get(i),
            starts: &self.parts.starts[words.clone()],
            ends: &self.parts.ends[words],
        }
    }
}

/// The result of `take` for each text.
fn each_text<T>(
    column: &Column,
    cancel: &AtomicBool,
    mut take: impl FnMut(&str) -> T,
) -> Result<Vec<T>> {
    let mut found = Vec::with_capacity(column.len());
    for i in 0..column.len() {
        if i % LOOK_TEXTS == 0 {
            cancel.check()?;
        }
        found.push(take(column.get(i)));
    }
    Ok(found)
}

/// Lines, paragraphs or sentences of texts: the parts as texts, the number in each text, and their starts and ends.
#[pyfunction]
pub fn cut_parts(
    py: Python<'_>,
    texts: &Texts,
    unit: &str,
) -> Result<(Texts, Array, Array, Array)> {
    let names = PartUnit::ALL.map(PartUnit::name);
    let unit = parse("unit", unit, PartUnit::from_name(unit), &names)?;
    let column = texts.column.as_ref();
    let found = cut(py, column, |cutter, text, found| {
        cutter.cut(text, unit, found);
    })?;
    let mut parts = TextColumn::default();
    let mut at = 0;
    for (i, &count) in found.counts.iter().enumerate() {
        let text = column.get(i);
        for _ in 0..count {
            parts.push(&text[found.starts[at] as usize..found.ends[at] as usize]);
            at += 1;
        }
    }
    Ok((
        Column::from_texts(parts).into(),
        found.counts.into(),
        found.starts.into(),
        found.ends.into(),
    ))
}

/// Words of texts: the number in each text, their starts and ends, and the hash of each.
#[pyfunction]
pub fn cut_words(py: Python<'_>, texts: &Texts) -> Result<(Array, Array, Array, Array)> {
    let found = cut(py, texts.column.as_ref(), PartCutter::cut_words)?;
    Ok((
        found.counts.into(),
        found.starts.into(),
        found.ends.into(),
        found.hashes.into(),
    ))
}

fn cut(
    py: Python<'_>,
    column: &Column,
    mut cut_one: impl FnMut(&mut PartCutter, &str, &mut Parts) + Send,
) -> Result<Parts> {
    run(py, column.num_bytes, |cancel| {
        let mut cutter = PartCutter::new(chosen_isa());
        let mut found = Parts::default();
        each_text(column, cancel, |text| {
            cut_one(&mut cutter, text, &mut found)
        })?;
        Ok(found)
    })
}
