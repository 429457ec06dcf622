//! All states that a power cut may leave of a short history, within a bound.

use std::collections::HashSet;
use std::path::Path;
use std::sync::Arc;

use likewise_core::parallel::Run;
use likewise_disk::environment::Environment;
use likewise_disk::store::{Durability, Keeps};
use likewise_index::{Index, Opening};

use crate::clock::SimulatedClock;
use crate::disk::{Death, Disk, Failure, Image, PowerPoint};
use crate::files::SimulatedFiles;
use crate::history::{DIR, Found, GO_ON, documents, name_of, prepared, sketching};
use crate::model::{BITS, Model};
use crate::random::Random;
use crate::scheduler::{Scheduler, Stepped};
use crate::vfs::{Registered, seed_sqlite};

const KEEPS: Keeps = Keeps::Sketch;
/// Number of operations of the history.
const NUM_OPERATIONS: usize = 15;
/// Schedules of background work for each failing sync.
const NUM_SCHEDULES: u64 = 12;
/// One state in this many is opened with another power cut at each moment of the opening.
const EACH_SECOND: usize = 400;

/// What was checked.
#[derive(Debug, Clone, Copy, Default)]
pub struct Counted {
    /// Number of moments at which power was cut.
    pub num_points: usize,
    /// Number of distinct disk states that were opened.
    pub num_states: usize,
}

/// A machine with a disk.
struct Machine {
    disk: Arc<Disk>,
    registered: Registered,
    clock: Arc<SimulatedClock>,
    scheduler: Arc<Scheduler>,
}

impl Machine {
    fn new(image: &Image, clock: Arc<SimulatedClock>, seed: u64, pause_percent: u32) -> Self {
        seed_sqlite(1);
        let disk = Disk::new(seed, Some(image));
        let scheduler = Scheduler::new(seed, pause_percent);
        disk.start_process(scheduler.clone());
        Machine {
            registered: Registered::new(&disk),
            disk,
            clock,
            scheduler,
        }
    }

    fn open(&self) -> Result<Index, String> {
        let environment = Environment {
            files: Arc::new(SimulatedFiles {
                disk: self.disk.clone(),
                process: self.disk.state().process,
            }),
            vfs: Some(self.registered.name()),
            clock: self.clock.clone(),
            background: Arc::new(Stepped(self.scheduler.clone())),
        };
        let opening = Opening {
            sketching: sketching(KEEPS),
            durability: Durability::Commit,
            ttl_s: None,
            is_renewed: false,
            flush_rows: Some(6),
            accept_loss: false,
            accept_clock: false,
            environment,
        };
        Index::open(Path::new(DIR), opening, &GO_ON).map_err(|error| error.to_string())
    }
}

/// Makes each sync of the history fail once. Whatever is done after the index is reopened is safe from power loss, like
/// everything before.
///
/// # Errors
/// Returns the property that did not hold.
pub fn fail_each_sync() -> Result<usize, String> {
    let mut num_syncs = u64::MAX;
    for number in 0.. {
        if number > num_syncs {
            break;
        }
        // How much unsynced data the system forgets is random, and so is where builds pause while others continue.
        for seed in 0..NUM_SCHEDULES {
            let machine = Machine::new(prepared(KEEPS), Arc::default(), seed, 30);
            machine.disk.state().faults.failure = Some((number, 1, Failure::Sync));
            let mut models = vec![Model::default()];
            let worked = work(&machine, &mut models);
            if machine.disk.state().num_failures == 0 {
                worked?;
                num_syncs = number;
                continue;
            }
            machine.disk.state().faults.failure = None;
            let wrong = |reason: String| format!("sync {number} failed, seed {seed}: {reason}");
            let index = machine.open().map_err(wrong)?;
            let found = Found::of(&index, KEEPS).map_err(|error| wrong(error.to_string()))?;
            let Some(model) = models.iter().rev().take(2).find(|model| found.is(model)) else {
                return Err(wrong(found.differs_from(&models[models.len() - 1])));
            };
            let mut after = model.clone();
            after.add(1_000_000, 0, 0);
            let batch = [(1_000_000, 0)];
            index
                .add(
                    &[&name_of(1_000_000)],
                    &documents(KEEPS, &batch),
                    None,
                    None,
                    0,
                    Run::alone(&GO_ON),
                )
                .map_err(|error| wrong(error.to_string()))?;
            machine.disk.state().death = Some(Death::Power);
            drop(index);
            machine.disk.state().lose_unsynced();
            machine.clock.reboot();
            machine.disk.start_process(machine.scheduler.clone());
            let index = machine.open().map_err(wrong)?;
            let found = Found::of(&index, KEEPS).map_err(|error| wrong(error.to_string()))?;
            if !found.is(&after) {
                return Err(wrong(found.differs_from(&after)));
            }
        }
    }
    Ok(num_syncs as usize)
}

/// Runs the history and opens every state.
///
/// # Errors
/// Returns the property that did not hold.
pub fn run() -> Result<Counted, String> {
    let machine = Machine::new(prepared(KEEPS), Arc::default(), 1, 0);
    machine.disk.state().points = Some(Vec::new());
    let mut models = vec![Model::default()];
    work(&machine, &mut models)?;
    let points = machine.disk.state().points.take().unwrap_or_default();
    machine.clock.reboot();
    let mut counted = Counted::default();
    let mut seen = HashSet::new();
    for (number, point) in points.iter().enumerate() {
        counted.num_points += 1;
        let acknowledged = &models[point.note..models.len().min(point.note + 2)];
        for (state, image) in point.images().iter().enumerate() {
            // A state may be allowed at one moment and too old at a later one.
            if !seen.insert((point.note, image.hash())) {
                continue;
            }
            counted.num_states += 1;
            let recovers = counted.num_states % EACH_SECOND == 0;
            look(image, acknowledged, &machine.clock, recovers)
                .map_err(|reason| format!("point {number}, state {state}: {reason}"))?;
        }
    }
    Ok(counted)
}

/// Opens one state; with `recovers`, power is cut again at each moment of the opening.
fn look(
    image: &Image,
    acknowledged: &[Model],
    clock: &Arc<SimulatedClock>,
    recovers: bool,
) -> Result<(), String> {
    let machine = Machine::new(image, clock.clone(), 1, 0);
    if recovers {
        machine.disk.state().points = Some(Vec::new());
    }
    let index = machine.open()?;
    let found = Found::of(&index, KEEPS).map_err(|error| error.to_string())?;
    if !acknowledged.iter().any(|model| found.is(model)) {
        return Err(found.differs_from(&acknowledged[0]));
    }
    let facts = index.facts().map_err(|error| error.to_string())?;
    if facts.num_rebuilt > 0 {
        return Err("a segment was taken for damaged".to_owned());
    }
    let findings = index
        .verify(true, &GO_ON)
        .map_err(|error| error.to_string())?;
    if !findings.is_empty() {
        return Err(format!("verify: {findings:?}"));
    }
    drop(index);
    let points: Vec<PowerPoint> = machine.disk.state().points.take().unwrap_or_default();
    for point in &points {
        for image in point.images() {
            look(&image, acknowledged, clock, false)
                .map_err(|reason| format!("after a second power cut: {reason}"))?;
        }
    }
    Ok(())
}

/// Adds, removes, builds, compacts, closes and opens; appends the acknowledged states in order and, after a failed
/// operation, the state that it may have led to.
fn work(machine: &Machine, models: &mut Vec<Model>) -> Result<(), String> {
    let mut random = Random::new(7, 1);
    let centers: Vec<u64> = (0..4).map(|_| random.next() >> (64 - BITS)).collect();
    let mut model = Model::default();
    let mut index = machine.open()?;
    let mut next_id = 0;
    for step in 0..NUM_OPERATIONS {
        match step % 13 {
            7 => {
                index
                    .compact(Run::alone(&GO_ON))
                    .map_err(|error| error.to_string())?;
            }
            11 => {
                index.close().map_err(|error| error.to_string())?;
                index = machine.open()?;
            }
            4 | 9 => {
                let present: Vec<usize> = (0..model.documents.len())
                    .filter(|&row| !model.documents[row].is_gone)
                    .collect();
                let row = *random.pick(&present);
                let id = name_of(model.documents[row].id);
                model.remove(row);
                models.push(model.clone());
                index
                    .remove(&id, &GO_ON)
                    .map_err(|error| error.to_string())?;
            }
            _ => {
                let batch: Vec<(u32, u64)> = (0..1 + random.below(3))
                    .map(|_| {
                        next_id += 1;
                        (
                            next_id,
                            *random.pick(&centers) ^ (1 << random.below(BITS as usize)),
                        )
                    })
                    .collect();
                for &(id, print) in &batch {
                    model.add(id, print, 0);
                }
                models.push(model.clone());
                let names: Vec<String> = batch.iter().map(|&(id, _)| name_of(id)).collect();
                let ids: Vec<&str> = names.iter().map(String::as_str).collect();
                index
                    .add(
                        &ids,
                        &documents(KEEPS, &batch),
                        None,
                        None,
                        0,
                        Run::alone(&GO_ON),
                    )
                    .map_err(|error| error.to_string())?;
            }
        }
        machine.disk.state().note = models.len() - 1;
        while step % 3 == 0 && machine.scheduler.step() {}
        machine.scheduler.step();
    }
    index.close().map_err(|error| error.to_string())
}
