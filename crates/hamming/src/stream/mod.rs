//! Which of a small set of queries are near the codes of a huge collection that is read once, in order?
//!
//! The batch problem of Manku, Jain, Das Sarma (Detecting near-duplicates for web crawling, WWW 2007, section 3.3)
//! reversed: tables are built for the small side and stay in the caches while the large side streams past them. A table
//! has one bucket for each value of a key; a bucket holds 32 or 64 bits of each of its codes, which reject nearly every
//! chance match with one vector comparison.

mod choose;
mod kernels;
mod key_value;
mod scan;
mod search;
mod table;
#[cfg(test)]
mod tests;

use std::sync::atomic::AtomicBool;

use super::code_planes::CodePlanes;
use super::distance::Fingerprints;
use super::kernels::run_kernel;
use super::plan::SearchPlan;
use choose::choose_plan;
pub(super) use kernels::CheckKernel as BitKernel;
pub(super) use key_value::KeyValue;
use likewise_core::error::Error;
use likewise_core::isa::Isa;
use likewise_core::parallel::map_ranges;
use scan::scan_block;
use search::{Scratch, search_block};
use table::KeyTable;

/// Number of codes searched at once: enough that each range of a table is read for hundreds of them. At most 2^18, so
/// that a lookup can be packed.
const BLOCK_LEN: usize = 1 << 18;
/// Number of codes in one piece of work of [`StreamTables::search`].
const GRAIN: usize = 1 << 18;

/// A query and a code of the stream within the radius.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct StreamHit {
    /// Row of the code in the stream.
    pub row: u64,
    /// Row of the query.
    pub query: u32,
    /// Number of differing bits.
    pub distance: u32,
}

/// Hits in order of (row, query), and how many codes they cover.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct StreamHits {
    /// Every hit of the codes searched.
    pub hits: Vec<StreamHit>,
    /// Number of codes searched, from the first on: all, or fewer if the hits reached their limit.
    pub num_rows: usize,
}

/// Queries arranged for codes that stream past. Exact for any width and radius.
///
/// Memory: 8 bytes per word of a query, and for each key 8 or 12 bytes per query and a directory of at most 4 buckets
/// per query, with 4 bytes each.
#[derive(Debug)]
pub struct StreamTables {
    /// Bits beyond the width are 0.
    queries: CodePlanes,
    plan: SearchPlan,
    /// One table for each key of the plan; empty for a scan.
    tables: Vec<KeyTable>,
}

impl StreamTables {
    /// Arranges the queries by the cheapest plan for a stream of which `sample` contains some codes; if it is empty,
    /// the queries themselves are used as the sample.
    ///
    /// # Errors
    /// Returns [`Error::InvalidParameter`] if the shapes do not fit, bits beyond the width are set or `within` is above
    /// the width, or [`Error::Canceled`].
    ///
    /// # Cost
    /// About 20 ns per query and key, and a tenth of a second to choose the keys.
    pub fn build(
        queries: Fingerprints<'_>,
        sample: &[u64],
        within: u32,
        threads: usize,
        cancel: &AtomicBool,
    ) -> Result<Self, Error> {
        let codes = lay_out(&queries, within)?;
        let sample = Fingerprints {
            words: if sample.is_empty() {
                queries.words
            } else {
                sample
            },
            bits: queries.bits,
        };
        sample.check()?;
        let plan = choose_plan(&codes, &sample, within)?;
        Self::build_tables(codes, plan, threads, cancel)
    }

    /// Same as [`StreamTables::build`], with a given plan. A key must be at most 64 bits wide.
    ///
    /// # Errors
    /// Returns the errors of [`StreamTables::build`], and [`Error::InvalidParameter`] if the plan is for another width
    /// or a key is wider than 64 bits.
    pub fn build_for(
        queries: Fingerprints<'_>,
        plan: SearchPlan,
        threads: usize,
        cancel: &AtomicBool,
    ) -> Result<Self, Error> {
        let codes = lay_out(&queries, plan.within())?;
        if plan.bits() != queries.bits {
            return Err(Error::invalid(
                "plan",
                format!(
                    "is for {} bits; the queries have {}",
                    plan.bits(),
                    queries.bits
                ),
            ));
        }
        if let Some(key) = plan.keys().iter().find(|key| key.width() > 64) {
            return Err(Error::invalid(
                "plan",
                format!("has a key of {} bits; 64 is the most here", key.width()),
            ));
        }
        Self::build_tables(codes, plan, threads, cancel)
    }

    fn build_tables(
        queries: CodePlanes,
        plan: SearchPlan,
        threads: usize,
        cancel: &AtomicBool,
    ) -> Result<Self, Error> {
        let tables = map_ranges(
            plan.keys().len(),
            1,
            threads,
            cancel,
            || (),
            |(), range| KeyTable::new(&queries, &plan.keys()[range.start], plan.within()),
        )?;
        Ok(StreamTables {
            queries,
            plan,
            tables,
        })
    }

    /// The keys in use; none if every query is compared with every code.
    pub fn plan(&self) -> &SearchPlan {
        &self.plan
    }

    /// Number of queries.
    pub fn num_queries(&self) -> usize {
        self.queries.len()
    }

    /// Number of 64-bit words of a fingerprint.
    pub fn num_words(&self) -> usize {
        self.queries.num_words()
    }

    /// Size in bytes.
    pub fn num_bytes(&self) -> usize {
        let tables: usize = self.tables.iter().map(KeyTable::num_bytes).sum();
        8 * self.queries.data().len() + tables
    }

    /// Returns every hit of the codes, the first of which is row `first_row` of the stream.
    ///
    /// Stops early, after a whole code, if more than `max_hits` are found; the hits of one code are never divided.
    ///
    /// # Errors
    /// Returns [`Error::InvalidParameter`] if the words are not whole codes, or bits beyond the width are set, or
    /// [`Error::Canceled`].
    pub fn search(
        &self,
        words: &[u64],
        first_row: u64,
        max_hits: usize,
        isa: Isa,
        threads: usize,
        cancel: &AtomicBool,
    ) -> Result<StreamHits, Error> {
        let num_words = self.num_words();
        Fingerprints {
            words,
            bits: self.plan.bits(),
        }
        .check()?;
        let num_codes = words.len() / num_words;
        let mut found = StreamHits::default();
        // Pieces after the limit are discarded, so only a few are started at a time.
        let wave_len = 4 * threads.max(1) * GRAIN;
        while found.num_rows < num_codes && found.hits.len() <= max_hits {
            let start = found.num_rows;
            let wave = &words[start * num_words..(start + wave_len).min(num_codes) * num_words];
            let pieces = map_ranges(
                wave.len() / num_words,
                GRAIN,
                threads,
                cancel,
                || (),
                |(), range| {
                    let codes = &wave[range.start * num_words..range.end * num_words];
                    let first_row = first_row + (start + range.start) as u64;
                    let piece = self.search_piece(codes, first_row, max_hits, isa)?;
                    Ok((piece, range.len()))
                },
            )?;
            for piece in pieces {
                let (mut piece, asked) = piece?;
                found.hits.append(&mut piece.hits);
                found.num_rows += piece.num_rows;
                if piece.num_rows < asked {
                    return Ok(found);
                }
            }
        }
        Ok(found)
    }

    /// Same as [`StreamTables::search`], on this thread only.
    ///
    /// # Errors
    /// Returns [`Error::InvalidParameter`] if bits beyond the width are set.
    pub fn search_piece(
        &self,
        words: &[u64],
        first_row: u64,
        max_hits: usize,
        isa: Isa,
    ) -> Result<StreamHits, Error> {
        let num_words = self.num_words();
        check_width("codes", words, self.plan.bits(), first_row)?;
        let num_codes = words.len() / num_words;
        let mut found = StreamHits::default();
        let mut packed: Vec<u64> = Vec::new();
        let mut scratch = Scratch::default();
        let mut block_len = BLOCK_LEN;
        while found.num_rows < num_codes && found.hits.len() <= max_hits {
            let start = found.num_rows;
            let end = (start + block_len).min(num_codes);
            let codes = &words[start * num_words..end * num_words];
            let limit = if end - start == 1 {
                usize::MAX
            } else {
                max_hits
            };
            packed.clear();
            let (tables, out) = (self, &mut packed);
            if self.tables.is_empty() {
                run_kernel!(isa, num_words, scan_block, (tables: &StreamTables, codes: &[u64], limit: usize, out: &mut Vec<u64>));
            } else {
                let scratch = &mut scratch;
                run_kernel!(isa, num_words, search_block, (tables: &StreamTables, codes: &[u64], limit: usize, scratch: &mut Scratch, out: &mut Vec<u64>));
            }
            if packed.len() > limit {
                // Too many to hold: the hits are dropped and fewer codes are searched.
                packed = Vec::new();
                block_len = (end - start) / 2;
                continue;
            }
            packed.sort_unstable();
            let row = first_row + start as u64;
            found
                .hits
                .extend(packed.iter().map(|&hit| unpack_hit(row, hit)));
            found.num_rows = end;
        }
        Ok(found)
    }
}

/// Packs a hit so that hits are ordered by (code, query): code relative to the start of the block (18 bits), query
/// (32), distance (9).
#[inline(always)]
fn pack_hit(code: u32, query: u32, distance: u32) -> u64 {
    u64::from(code) << 41 | u64::from(query) << 9 | u64::from(distance)
}

fn unpack_hit(first_row: u64, hit: u64) -> StreamHit {
    StreamHit {
        row: first_row + (hit >> 41),
        query: (hit >> 9) as u32,
        distance: hit as u32 & 0x1ff,
    }
}

/// Rejects codes with bits beyond the width.
fn check_width(name: &'static str, words: &[u64], bits: u32, first_row: u64) -> Result<(), Error> {
    let num_words = bits.div_ceil(64) as usize;
    if bits.is_multiple_of(64) {
        return Ok(());
    }
    let beyond = u64::MAX << (bits % 64);
    let last_words = words.iter().skip(num_words - 1).step_by(num_words);
    match last_words.enumerate().find(|(_, word)| *word & beyond != 0) {
        None => Ok(()),
        Some((index, _)) => Err(Error::invalid(
            name,
            format!(
                "row {} has bits beyond the {bits} of a fingerprint",
                first_row + index as u64
            ),
        )),
    }
}

fn lay_out(queries: &Fingerprints<'_>, within: u32) -> Result<CodePlanes, Error> {
    queries.check()?;
    check_width("queries", queries.words, queries.bits, 0)?;
    if within > queries.bits {
        return Err(Error::invalid(
            "within",
            format!(
                "{within} is outside 0 to {}, the bits of a fingerprint",
                queries.bits
            ),
        ));
    }
    if u32::try_from(queries.len()).is_err() {
        return Err(Error::invalid(
            "queries",
            format!("{} given; at most 4294967295 fit", queries.len()),
        ));
    }
    let num_words = queries.num_words();
    let mut planes = CodePlanes::new(queries.len(), num_words);
    for word in 0..num_words {
        let source = queries.words.iter().skip(word).step_by(num_words);
        for (target, &value) in planes.plane_mut(word).iter_mut().zip(source) {
            *target = value;
        }
    }
    Ok(planes)
}
