//! Which tables does a segment need, and which of them are built in one pass?

use std::sync::atomic::AtomicBool;

use likewise_core::isa::Isa;

use super::layout::{BandPlan, HammingPlan};

/// What a recipe asks of segments.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SegmentPlan {
    /// Whether documents are looked up by their class.
    pub classes: bool,
    /// How fingerprints are searched.
    pub hamming: Option<HammingPlan>,
    /// How signatures are searched.
    pub bands: Option<BandPlan>,
}

/// Means of a build.
#[derive(Clone, Copy)]
pub struct Building<'a> {
    /// Instruction set.
    pub isa: Isa,
    /// Threads of the call.
    pub threads: usize,
    /// Bytes of memory, about; at least those of one table (16 a row, of fingerprints some 40) are taken all the same.
    pub memory_bytes: usize,
    /// Ends the work when set.
    pub cancel: &'a AtomicBool,
}

/// Bytes of a row in a table while it is sorted and packed.
const TABLE_BYTES: usize = 16;
/// Bytes of a fingerprint in tables to be, beside its words.
const HAMMING_BYTES: usize = 40;

/// A table to build.
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

/// All tables of a plan in few passes, each with at most `memory_bytes` of tables or one table; bands in their order.
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
