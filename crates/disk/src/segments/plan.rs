//! Which tables does a segment need, and which are built in one pass?

use std::sync::atomic::AtomicBool;

use likewise_core::isa::Isa;

use super::layout::{BandPlan, HammingPlan};

/// The tables that a recipe requires.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SegmentPlan {
    /// Whether documents are looked up by their class.
    pub classes: bool,
    /// How fingerprints are searched, if they are.
    pub hamming: Option<HammingPlan>,
    /// How signatures are searched, if they are.
    pub bands: Option<BandPlan>,
}

#[derive(Clone, Copy)]
pub struct Building<'a> {
    pub isa: Isa,
    pub threads: usize,
    /// Approximate memory limit, in bytes. One table (16 bytes per row, about 40 for fingerprints) is always allowed.
    pub memory_bytes: usize,
    pub cancel: &'a AtomicBool,
}

/// Bytes per row of a table while it is sorted and packed.
const TABLE_BYTES: usize = 16;
/// Bytes per fingerprint while its tables are built, in addition to its words.
const HAMMING_BYTES: usize = 40;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Job {
    Ids,
    Groups,
    Classes,
    Hamming,
    Band(u32),
}

/// Tables that are built in one pass.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Pass {
    pub(super) jobs: Vec<Job>,
}

/// Divides the tables into few passes, each with at most `memory_bytes` of tables or a single one, bands in order.
pub(super) fn passes(plan: &SegmentPlan, num_rows: usize, memory_bytes: usize) -> Vec<Pass> {
    let bands = plan.bands.map_or(0, |bands| bands.bands);
    let jobs = [Job::Ids, Job::Groups]
        .into_iter()
        .chain(plan.classes.then_some(Job::Classes))
        .chain(plan.hamming.map(|_| Job::Hamming))
        .chain((0..bands).map(Job::Band));
    let mut passes: Vec<Pass> = Vec::new();
    let mut bytes = 0;
    for job in jobs {
        let more = num_rows
            * match (job, plan.hamming) {
                (Job::Hamming, Some(hamming)) => {
                    HAMMING_BYTES + 8 * hamming.bits.div_ceil(64) as usize
                }
                _ => TABLE_BYTES,
            };
        match passes.last_mut() {
            Some(pass) if bytes + more <= memory_bytes => {
                pass.jobs.push(job);
                bytes += more;
            }
            _ => {
                passes.push(Pass { jobs: vec![job] });
                bytes = more;
            }
        }
    }
    passes
}
