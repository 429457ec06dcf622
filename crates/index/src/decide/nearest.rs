//! Which documents are most similar?

use std::ops::Range;

use likewise_core::error::Error;
use likewise_core::isa::Isa;
use likewise_core::parallel::Run;
use likewise_disk::segments::Segment;
use likewise_disk::store::Evidence;
use likewise_hamming::Fingerprints;
use likewise_hamming::index::{Matches, Reach};

use crate::decide::Committed;
use crate::decide::asked::{Asked, Near};
use crate::decide::lookup::Lookup;
use crate::decide::measure::{OwnSet, by_distance, is_better};
use crate::decide::pool::Pool;
use crate::documents::Documents;
use crate::error::Result;
use crate::keys::words_of;
use crate::rules::{Matching, Method, Rules};
use crate::state::{Layer, State};

/// How many neighbors are wanted, and how similar.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Nearest {
    /// Maximum number, at least 1.
    pub limit: usize,
    /// Least similarity. The threshold of the rules plays no part.
    pub min_similarity: f64,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Neighbor {
    pub id: String,
    pub evidence: Evidence,
    /// Whether the two are near-duplicates by the rules.
    pub matches: bool,
}

impl Lookup<'_> {
    /// The most similar documents of a pool, or else the kept ones among those that the tables show, best first, among equals in order of arrival.
    fn nearest(
        &mut self,
        asked: &Asked<'_>,
        nearest: Nearest,
        pool: Option<Pool<'_>>,
    ) -> Result<Vec<(Evidence, bool)>> {
        let of_class = self.kept_of_class(asked, u32::MAX)?;
        if asked.is_blank() {
            return Ok(of_class
                .map(|row| (self.equal(row), true))
                .into_iter()
                .collect());
        }
        let (mut seen, _) = self.seen(asked)?;
        seen.extend(of_class);
        if let Some(pool) = pool {
            seen.extend(self.most_similar(asked, pool, nearest.limit)?);
        }
        let has_duplicates = pool.is_some_and(|pool| pool.has_duplicates);
        seen.sort_unstable();
        seen.dedup();
        let mut own = OwnSet::new(*asked);
        let mut best: Vec<Evidence> = Vec::new();
        for row in seen {
            let is_there = match has_duplicates {
                true => !self.is_gone(row),
                false => self.is_kept(row)?,
            };
            if !is_there {
                continue;
            }
            // Rows ascend, so one that equals the last of those that are wanted comes too late.
            let least = match best.get(nearest.limit - 1) {
                Some(last) => last.similarity.max(nearest.min_similarity),
                None => nearest.min_similarity,
            };
            let Some(evidence) = self.evidence_from(&mut own, row, least)? else {
                continue;
            };
            // Nothing in common, which no table would show.
            if evidence.similarity == 0.0 {
                continue;
            }
            let place = best.partition_point(|other| is_better(other, &evidence));
            best.insert(place, evidence);
            best.truncate(nearest.limit);
        }
        let min_equal = self.rules().min_equal();
        let mut found = Vec::with_capacity(best.len());
        for evidence in best {
            let row = evidence.kept_row;
            let matches = self.matches(&mut own, row, min_equal)?.is_some();
            found.push((evidence, matches));
        }
        Ok(found)
    }

    /// The evidence of a row against a document, if it is at least so similar.
    fn evidence_from(
        &mut self,
        own: &mut OwnSet<'_>,
        row: u32,
        least: f64,
    ) -> Result<Option<Evidence>> {
        let rules = self.rules();
        match (rules.matching, rules.method) {
            (Matching::Verified { measure, .. }, _) => self.measured(own, row, measure, least),
            (Matching::Distance { .. }, Method::Simhash { bits, .. }) => {
                let distance = self.distance(&own.asked, row)?.unwrap_or(u16::MAX);
                let evidence = by_distance(row, distance, bits);
                Ok((evidence.similarity >= least).then_some(evidence))
            }
            (Matching::Distance { .. }, Method::Minhash { .. }) => Ok(None),
        }
    }
}

impl Committed<'_> {
    /// The neighbors of each document of a range, in their order.
    pub fn neighbors(
        self,
        documents: &Documents,
        range: Range<usize>,
        nearest: Nearest,
        pool: Option<Pool<'_>>,
        run: Run<'_>,
    ) -> Result<Vec<Vec<Neighbor>>> {
        let look = |lookup: &mut Lookup<'_>, part: Range<usize>| {
            let near = lookup.prepare(documents, None, part.clone(), run.cancel)?;
            let is_single = part.len() == 1;
            let mut all = Vec::with_capacity(part.len());
            for (at, i) in part.enumerate() {
                let asked = Asked {
                    place: (!is_single).then_some(at as u32),
                    ..Asked::of(documents, i, near.of(at))
                };
                let found = lookup.nearest(&asked, nearest, pool)?;
                let named = found.into_iter().map(|(evidence, matches)| {
                    let id = lookup.id(evidence.kept_row)?;
                    Ok(Neighbor {
                        id,
                        evidence,
                        matches,
                    })
                });
                all.push(named.collect::<Result<Vec<_>>>()?);
            }
            lookup.ahead = None;
            Ok(all)
        };
        self.in_parts(range, run, look)
    }
}

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
    run: Run<'_>,
) -> Result<NearRows, Error> {
    let Method::Simhash { bits, within } = rules.method else {
        return Ok(NearRows::default());
    };
    let words: Vec<u64> = words_of(sketches).collect();
    let queries = Fingerprints::new(&words, bits);
    let reach = Reach::new(within, isa, run);
    let mut parts: Vec<(Matches, RowsOf<'_>)> = Vec::with_capacity(state.layers.len());
    for layer in &state.layers {
        let found = match layer {
            Layer::Memory(tail) => tail.search(queries, reach)?,
            Layer::Segment(segment) => match segment.search(queries, reach)? {
                Some(found) => found,
                None => continue,
            },
        };
        if !found.rows.is_empty() {
            parts.push((found, RowsOf::layer(layer)));
        }
    }
    let promoted = state.promoted_tables.search(queries, reach)?;
    let promoted = promoted.filter(|found| !found.rows.is_empty());
    let has_promoted = promoted.is_some();
    let rows = state.promoted_tables.rows();
    parts.extend(promoted.map(|found| (found, RowsOf::Memory(rows))));
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
        if has_promoted {
            all.near[begin..].sort_unstable_by_key(|near| near.row);
        }
        all.offsets.push(all.near.len());
    }
    Ok(all)
}
