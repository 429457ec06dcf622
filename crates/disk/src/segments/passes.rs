//! How are rows read in one pass?

use std::ops::Range;

use super::gather::{Gathered, HeldRows};
use super::plan::{Building, Job, Pass, SegmentPlan};
use super::source::{Needed, RowSource};
use crate::error::Result;

impl Pass {
    /// Reads the rows once, collecting the data of one pass.
    pub(super) fn gather(
        &self,
        source: &dyn RowSource,
        plan: &SegmentPlan,
        rows: &Range<u32>,
        held: Option<HeldRows>,
        building: Building<'_>,
    ) -> Result<Gathered> {
        let is_sketch = |job: &Job| matches!(job, Job::Hamming | Job::Band(_));
        let needed = Needed {
            ids: self.jobs.contains(&Job::Ids),
            sketches: self.jobs.iter().any(is_sketch),
            classes: self.jobs.contains(&Job::Classes),
        };
        let most = source.most_rows(rows).max(1);
        let mut gathered = Gathered::new(&self.jobs, plan, rows, most, held);
        source.each_row(rows.clone(), needed, &mut |row| {
            gathered.take(row, building.cancel)
        })?;
        gathered.check_complete()?;
        Ok(gathered)
    }
}

#[cfg(test)]
mod tests {
    use super::super::layout::{BandPlan, HammingPlan};
    use super::super::plan::passes;
    use super::*;

    #[test]
    fn passes_hold_what_the_memory_holds_and_one_table_at_least() {
        let plan = SegmentPlan {
            classes: true,
            hamming: Some(HammingPlan {
                bits: 96,
                within: 3,
                table_bytes: None,
            }),
            bands: Some(BandPlan {
                num_slots: 8,
                slot_bytes: 2,
                bands: 3,
                rows: 2,
            }),
        };
        use Job::{Band, Classes, Groups, Hamming, Ids};
        let all = vec![Ids, Groups, Classes, Hamming, Band(0), Band(1), Band(2)];
        let jobs = |memory| -> Vec<Vec<Job>> {
            let passes = passes(&plan, 1000, memory);
            passes.into_iter().map(|pass| pass.jobs).collect()
        };
        assert_eq!(jobs(152_000), std::slice::from_ref(&all));
        let single: Vec<Vec<Job>> = all.iter().map(|&job| vec![job]).collect();
        assert_eq!(jobs(0), single);
        let cut = [
            vec![Ids, Groups],
            vec![Classes],
            vec![Hamming],
            vec![Band(0), Band(1)],
            vec![Band(2)],
        ];
        assert_eq!(jobs(40_000), cut);
    }
}
