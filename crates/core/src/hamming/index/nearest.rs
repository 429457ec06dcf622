//! Which fingerprints are nearest?

use std::sync::atomic::AtomicBool;

use super::super::distance::{Fingerprints, distance};
use super::matches::Matches;
use super::set::HammingSet;
use crate::error::Error;
use crate::isa::Isa;

impl HammingSet {
    /// The `num` rows nearest to one query, in ascending order of distance, then row; all rows, where there are no more.
    ///
    /// # Errors
    /// As [`HammingSet::search`].
    ///
    /// # Cost
    /// A search with growing radius up to the plan's; only where it finds too few, one comparison with everything.
    pub fn nearest(
        &self,
        query: Fingerprints<'_>,
        num: usize,
        isa: Isa,
        threads: usize,
        cancel: &AtomicBool,
    ) -> Result<Matches, Error> {
        let mut found = self.search(query, 0, isa, threads, cancel)?;
        for within in 1..=self.plan().within() {
            if found.distances.len() >= num {
                break;
            }
            found = self.search(query, within, isa, threads, cancel)?;
        }
        let num_words = self.plan().bits().div_ceil(64) as usize;
        if found.distances.len() < num && found.distances.len() < self.len() {
            found = self.all_by_distance(query.words, num_words)?;
        }
        let has_rows = !found.rows.is_empty();
        let mut order: Vec<usize> = (0..found.distances.len()).collect();
        // The order of equal distances, that of rows or fingerprints, is kept.
        order.sort_by_key(|&i| found.distances[i]);
        order.truncate(num);
        Ok(Matches {
            offsets: vec![0, order.len() as i64],
            rows: match has_rows {
                true => order.iter().map(|&i| found.rows[i]).collect(),
                false => Vec::new(),
            },
            codes: match has_rows {
                true => Vec::new(),
                false => order
                    .iter()
                    .flat_map(|&i| &found.codes[i * num_words..(i + 1) * num_words])
                    .copied()
                    .collect(),
            },
            distances: order.iter().map(|&i| found.distances[i]).collect(),
            num_candidates: found.num_candidates,
            max_candidates: found.max_candidates,
        })
    }

    /// Everything there is with its distance from a query, in ascending order of row.
    fn all_by_distance(&self, query: &[u64], num_words: usize) -> Result<Matches, Error> {
        let state = self.state();
        let (mut codes, mut rows) = (Vec::new(), Vec::new());
        for segment in &state.segments {
            segment.copy_rows(&mut codes, &mut rows)?;
        }
        for planes in &state.tail {
            planes.copy_codes(&mut codes);
            rows.extend_from_slice(planes.rows());
        }
        let distances: Vec<u16> = codes
            .chunks_exact(num_words)
            .map(|code| distance(query, code) as u16)
            .collect();
        let num_candidates = distances.len() as u64;
        if rows.is_empty() {
            return Ok(Matches {
                codes,
                distances,
                num_candidates,
                ..Matches::default()
            });
        }
        let mut items: Vec<(u32, u16)> = rows
            .into_iter()
            .zip(distances)
            .filter(|&(row, _)| !state.removed.contains(row))
            .collect();
        items.sort_unstable();
        Ok(Matches {
            rows: items.iter().map(|&(row, _)| row).collect(),
            distances: items.iter().map(|&(_, distance)| distance).collect(),
            num_candidates,
            ..Matches::default()
        })
    }
}
