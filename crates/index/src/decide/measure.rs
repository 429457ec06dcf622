//! Which kept document matches best?

use likewise_core::verify::{FeatureSet, Measure, Required};
use likewise_disk::store::Evidence;

use crate::decide::asked::Asked;
use crate::decide::lookup::Lookup;
use crate::documents::measured_set;
use crate::error::Result;
use crate::rules::{Matching, Method, SHORT_FEATURES};

/// The feature set of a document to decide, made on first use.
pub struct OwnSet<'d> {
    pub asked: Asked<'d>,
    set: Option<FeatureSet>,
}

impl<'d> OwnSet<'d> {
    pub fn new(asked: Asked<'d>) -> Self {
        OwnSet { asked, set: None }
    }

    pub fn get(&mut self, rules: &crate::rules::Rules) -> &FeatureSet {
        let (features, weights) = self.asked.set.unwrap_or((&[], &[]));
        let names = self.asked.names;
        self.set.get_or_insert_with(|| {
            measured_set(rules, features, weights).with_names(names.cloned())
        })
    }
}

pub fn by_distance(row: u32, distance: u16, bits: u32) -> Evidence {
    Evidence {
        kept_row: row,
        similarity: 1.0 - f64::from(distance) / f64::from(bits),
        distance: Some(distance),
    }
}

/// Whether evidence `a` is better than `b`: more similar, among equals of a lower row.
pub fn is_better(a: &Evidence, b: &Evidence) -> bool {
    a.similarity > b.similarity || (a.similarity == b.similarity && a.kept_row < b.kept_row)
}

impl Lookup<'_> {
    pub fn matches(
        &mut self,
        own: &mut OwnSet<'_>,
        row: u32,
        min_equal: u32,
    ) -> Result<Option<Evidence>> {
        let rules = self.rules();
        let (asked, isa) = (own.asked, self.sketching.isa);
        match rules.matching {
            Matching::Distance { short_threshold } => {
                let Method::Simhash { bits, within } = rules.method else {
                    return Ok(None);
                };
                let distance = self.distance(&asked, row)?.unwrap_or(u16::MAX);
                if u32::from(distance) > within {
                    return Ok(None);
                }
                // Whatever is not short has features enough; of most rows that is all that needs be known.
                let row_is_short = self.is_short(row)?;
                let fewest = match row_is_short {
                    true => asked.num_features.min(self.row(row)?.num_features),
                    false => asked.num_features,
                };
                if fewest < SHORT_FEATURES {
                    // A document of more features cannot reach the threshold with a short one.
                    if !rules.is_short(asked.num_features) || !row_is_short {
                        return Ok(None);
                    }
                    let other = self.set_of(row)?;
                    let set = own.get(rules);
                    let jaccard =
                        set.similarity_from(&other, Measure::Jaccard, short_threshold, isa);
                    if jaccard.is_nan() {
                        return Ok(None);
                    }
                }
                Ok(Some(by_distance(row, distance, bits)))
            }
            Matching::Verified { measure, required } => {
                if !self.may_match(&asked, row, min_equal)? {
                    return Ok(None);
                }
                self.measured(own, row, measure, required)
            }
        }
    }

    /// The evidence of a row against a document by their feature sets, if they are as similar as required.
    pub fn measured(
        &mut self,
        own: &mut OwnSet<'_>,
        row: u32,
        measure: Measure,
        required: impl Into<Required>,
    ) -> Result<Option<Evidence>> {
        let other = self.set_of(row)?;
        let set = own.get(self.rules());
        let similarity = set.similarity_from(&other, measure, required, self.sketching.isa);
        if similarity.is_nan() {
            return Ok(None);
        }
        Ok(Some(Evidence {
            kept_row: row,
            similarity,
            distance: self.distance(&own.asked, row)?,
        }))
    }

    /// The best evidence against a document among the rows given, ascending.
    pub fn best(&mut self, own: &mut OwnSet<'_>, seen: &[u32]) -> Result<Option<Evidence>> {
        let rules = self.rules();
        if rules.is_distance_only() {
            return self.best_by_distance(own, seen);
        }
        let min_equal = rules.min_equal();
        let mut best: Option<Evidence> = None;
        for &row in seen {
            if !self.is_kept(row)? {
                continue;
            }
            let found = self.matches(own, row, min_equal)?;
            if let Some(evidence) = found
                && best.is_none_or(|best| is_better(&evidence, &best))
            {
                best = Some(evidence);
                if evidence.similarity >= 1.0 {
                    // None can be better, and rows ascend.
                    break;
                }
            }
        }
        Ok(best)
    }

    /// In Hamming-only recipes the nearest come first, so that the first that matches is the best.
    fn best_by_distance(&mut self, own: &mut OwnSet<'_>, seen: &[u32]) -> Result<Option<Evidence>> {
        let mut order = Vec::new();
        for &row in seen {
            if self.is_kept(row)? {
                order.push((self.distance(&own.asked, row)?.unwrap_or(u16::MAX), row));
            }
        }
        order.sort_unstable();
        for (_, row) in order {
            if let Some(evidence) = self.matches(own, row, 0)? {
                return Ok(Some(evidence));
            }
        }
        Ok(None)
    }
}
