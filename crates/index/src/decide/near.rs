//! Which rows have fingerprints near these?

use std::sync::atomic::AtomicBool;

use likewise_core::error::Error;
use likewise_core::isa::Isa;
use likewise_disk::segments::Segment;
use likewise_hamming::Fingerprints;
use likewise_hamming::index::Matches;

use crate::decide::asked::Near;
use crate::keys::words_of;
use crate::rules::{Method, Rules};
use crate::state::{Layer, State};

/// Rows near each of several fingerprints, ascending.
#[derive(Debug, Default)]
pub struct NearRows {
    offsets: Vec<usize>,
    near: Vec<Near>,
}

impl NearRows {
    /// Those of fingerprint `i`; of an empty search none.
    pub fn of(&self, i: usize) -> &[Near] {
        match self.offsets.get(i + 1) {
            Some(&end) => &self.near[self.offsets[i]..end],
            None => &[],
        }
    }
}

/// The rows at the places that were found in a layer.
enum RowsOf<'a> {
    First(u32),
    Memory(&'a [u32]),
    Segment(&'a Segment),
}

impl<'a> RowsOf<'a> {
    fn layer(layer: &'a Layer) -> Self {
        match layer {
            Layer::Memory(tail) => RowsOf::Memory(tail.held()),
            Layer::Segment(segment) => match segment.first_of_all() {
                Some(first) => RowsOf::First(first),
                None => RowsOf::Segment(segment),
            },
        }
    }

    fn at(&self, place: u32) -> Result<u32, Error> {
        match self {
            RowsOf::First(first) => Ok(first + place),
            RowsOf::Memory(rows) => Ok(rows[place as usize]),
            RowsOf::Segment(segment) => segment.row_at(place).map_err(|_| Error::Damaged),
        }
    }
}

/// Searches all layers for sketches; nothing is found for rules without fingerprints.
pub fn near_rows(
    state: &State,
    rules: &Rules,
    sketches: &[u8],
    isa: Isa,
    threads: usize,
    cancel: &AtomicBool,
) -> Result<NearRows, Error> {
    let Method::Simhash { bits, within } = rules.method else {
        return Ok(NearRows::default());
    };
    let words: Vec<u64> = words_of(sketches).collect();
    let queries = Fingerprints {
        words: &words,
        bits,
    };
    let mut parts: Vec<(Matches, RowsOf<'_>)> = Vec::with_capacity(state.layers.len());
    for layer in &state.layers {
        let found = match layer {
            Layer::Memory(tail) => tail.search(queries, within, isa, threads, cancel)?,
            Layer::Segment(segment) => {
                match segment.search(queries, within, isa, threads, cancel)? {
                    Some(found) => found,
                    None => continue,
                }
            }
        };
        if !found.rows.is_empty() {
            parts.push((found, RowsOf::layer(layer)));
        }
    }
    let promoted_tables = state.promoted_tables.search(queries, within, isa, cancel)?;
    let promoted_tables = promoted_tables.filter(|found| !found.rows.is_empty());
    let num = queries.len();
    let mut all = NearRows {
        offsets: Vec::with_capacity(num + 1),
        near: Vec::new(),
    };
    all.offsets.push(0);
    for i in 0..num {
        let begin = all.near.len();
        for (found, rows) in &parts {
            for at in found.offsets[i] as usize..found.offsets[i + 1] as usize {
                all.near.push(Near {
                    row: rows.at(found.rows[at])?,
                    distance: found.distances[at],
                });
            }
        }
        if let Some(found) = &promoted_tables {
            for at in found.offsets[i] as usize..found.offsets[i + 1] as usize {
                all.near.push(Near {
                    row: state.promoted_tables.rows()[found.rows[at] as usize],
                    distance: found.distances[at],
                });
            }
            all.near[begin..].sort_unstable_by_key(|near| near.row);
        }
        all.offsets.push(all.near.len());
    }
    Ok(all)
}
