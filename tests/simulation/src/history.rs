//! One history: what a seed does to an index, and what must hold.

use std::fmt::Write as _;
use std::path::Path;
use std::rc::Rc;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use likewise_core::features::{Extractor, FeatureHash, FeatureRules, Weights};
use likewise_core::isa::Isa;
use likewise_core::parallel::Run;
use likewise_core::text::Tokens;
use likewise_disk::Error as DiskError;
use likewise_disk::environment::{Clock, Environment};
use likewise_disk::store::{Description, Durability, Evidence, Keeps};
use likewise_index::{
    Documents, Error, Index, Matching, Method, Opening, Rules, Sketching, TextKind,
};
use xxhash_rust::xxh3::xxh3_64;

use crate::clock::SimulatedClock;
use crate::disk::{Death, Disk, Failure, Image, Lie, Target};
use crate::files::SimulatedFiles;
use crate::model::{BITS, Model, WITHIN};
use crate::random::Random;
use crate::scheduler::{Scheduler, Stepped};
use crate::vfs::{Registered, seed_sqlite};

/// Number of steps of a history.
pub const NUM_STEPS: usize = 200;
/// Directory of the index.
pub const DIR: &str = "/index";
/// Number of features of each document: enough that they are never read.
const NUM_FEATURES: u32 = 100;
pub(crate) static GO_ON: AtomicBool = AtomicBool::new(false);

/// How the disk of a history may fail.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Honesty {
    /// It reports its failures; synced data is durable.
    Honest,
    /// It also damages files that are derived from the database.
    DamagesDerived,
    /// It also damages the database or its log.
    DamagesTruth,
}

/// How a history ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ending {
    /// How the disk was allowed to fail.
    pub honesty: Honesty,
    /// Whether the history ended with detected damage, reported as an error.
    pub is_detected: bool,
    /// A hash of everything that was done.
    pub trace: u64,
    /// Number of acknowledged documents.
    pub num_acknowledged: usize,
    /// Number of kills and power cuts.
    pub num_deaths: usize,
    /// Number of disk operations.
    pub num_operations: u64,
    /// Number of errors that the disk returned.
    pub num_failures: u64,
    /// Number of writes that the disk damaged.
    pub num_lies: u64,
}

/// What is stored of documents, when they are durable, and when they expire.
#[derive(Debug, Clone, Copy)]
struct Settings {
    keeps: Keeps,
    durability: Durability,
    ttl_s: Option<u64>,
    flush_rows: u32,
}

impl Settings {
    /// Whether the duplicates of an expired document take its place.
    fn is_renewed(&self) -> bool {
        self.ttl_s.is_some_and(|ttl_s| ttl_s % 2 == 0)
    }
}

/// A state in which an index may be found.
type Possible = Rc<Model>;

struct History {
    random: Random,
    disk: Arc<Disk>,
    clock: Arc<SimulatedClock>,
    registered: Registered,
    scheduler: Arc<Scheduler>,
    settings: Settings,
    honesty: Honesty,
    index: Option<Index>,
    reader: Option<Index>,
    model: Possible,
    /// States since the last one known to be safe from power loss, including the current one.
    unsynced: Vec<Possible>,
    /// All states so far.
    earlier: Vec<Possible>,
    /// States that a failed write may have left.
    possible: Vec<Possible>,
    /// Whether it is still unknown which of them is present.
    is_opening: bool,
    centers: Vec<u64>,
    next_id: u32,
    num_acknowledged: usize,
    num_deaths: usize,
    num_snapshots: usize,
    /// Number of disk failures when the current process started.
    failures_before: u64,
    /// Whether the database or its log was damaged.
    is_damaged: bool,
    /// Whether power failed since the index was last opened.
    is_after_power: bool,
    is_detected: bool,
    log: Option<String>,
}

/// The rules of every history.
fn rules(keeps: Keeps) -> Rules {
    Rules {
        method: Method::Simhash {
            bits: BITS,
            within: WITHIN,
        },
        matching: Matching::Distance {
            short_threshold: 0.8,
        },
        seed: 0,
        keeps,
    }
}

pub(crate) fn sketching(keeps: Keeps) -> Sketching {
    let features = FeatureRules {
        tokens: Tokens::Word,
        shingle: 3,
        weights: Weights::None,
        seed: 0,
        hash: FeatureHash::Xxh3,
    };
    Sketching {
        rules: rules(keeps),
        make_extractor: Arc::new(move |isa: Isa| Extractor::new(features, isa)),
        text_kind: TextKind::Text,
        isa: Isa::best(),
    }
}

/// The description of the index of every history.
pub fn description(keeps: Keeps) -> Description {
    Description {
        recipe_json: "{}".to_owned(),
        recipe_id: "simulated".to_owned(),
        sketch_id: "simulated".to_owned(),
        sketch_bytes: 8,
        keeps,
        attached: std::collections::BTreeMap::new(),
    }
}

fn text_of(id: u32, fingerprint: u64) -> String {
    format!("document {id} {fingerprint:016x}")
}

/// Returns the documents of a batch.
pub(crate) fn documents(keeps: Keeps, batch: &[(u32, u64)]) -> Documents {
    let sketches = batch.iter().flat_map(|(_, print)| print.to_le_bytes());
    let num = batch.len();
    let mut documents =
        Documents::of_sketches(sketches.collect(), vec![0; num], vec![NUM_FEATURES; num]);
    if keeps == Keeps::Text {
        let digest = |(id, print): &(u32, u64)| xxh3_64(text_of(*id, *print).as_bytes());
        documents.text_digests = batch.iter().map(digest).collect();
    }
    documents
}

pub(crate) fn name_of(id: u32) -> String {
    format!("d{id}")
}

/// Returns a disk with an empty index, which is created once.
pub(crate) fn prepared(keeps: Keeps) -> &'static Image {
    static PREPARED: [OnceLock<Image>; 2] = [const { OnceLock::new() }; 2];
    PREPARED[usize::from(keeps == Keeps::Text)].get_or_init(|| {
        seed_sqlite(1);
        let disk = Disk::new(1, None);
        let registered = Registered::new(&disk);
        let scheduler = Scheduler::new(1, 0);
        let process = disk.start_process(scheduler.clone());
        let environment = Environment {
            files: Arc::new(SimulatedFiles {
                disk: disk.clone(),
                process,
            }),
            vfs: Some(registered.name()),
            clock: Arc::new(SimulatedClock::default()),
            background: Arc::new(Stepped(scheduler)),
        };
        let opening = Opening {
            sketching: sketching(keeps),
            durability: Durability::Commit,
            ttl_s: None,
            is_renewed: false,
            flush_rows: Some(64),
            accept_loss: false,
            accept_clock: false,
            environment,
        };
        let made = Index::create(Path::new(DIR), &description(keeps), opening);
        let closed = made.and_then(|index| index.close());
        assert!(closed.is_ok(), "an index is made: {closed:?}");
        disk.image()
    })
}

/// Runs the history of a seed.
///
/// # Errors
/// Returns the property that did not hold. With `is_told`, it is preceded by everything that was done.
pub fn run(seed: u64, is_told: bool) -> Result<Ending, String> {
    let mut history = History::new(seed, is_told);
    let result = history.run();
    history.end();
    let told = history.log.take().unwrap_or_default();
    let state = history.disk.state();
    result.map_err(|reason| {
        let disk = state.log.clone().unwrap_or_default();
        match is_told {
            true => format!("{told}{reason}\n{disk}"),
            false => format!("{reason} (seed {seed}, {:?})", history.honesty),
        }
    })?;
    Ok(Ending {
        honesty: history.honesty,
        is_detected: history.is_detected,
        trace: state.trace,
        num_acknowledged: history.num_acknowledged,
        num_deaths: history.num_deaths,
        num_operations: state.num_operations,
        num_failures: state.num_failures,
        num_lies: state.num_lies,
    })
}

impl History {
    fn new(seed: u64, is_told: bool) -> Self {
        let mut random = Random::new(seed, 1);
        let settings = Settings {
            keeps: *random.pick(&[Keeps::Sketch, Keeps::Sketch, Keeps::Text]),
            durability: match random.percent(65) {
                true => Durability::Commit,
                false => Durability::Interval(Duration::from_secs(5)),
            },
            ttl_s: random.percent(40).then(|| 20 + random.next() % 200),
            flush_rows: 4 + random.below(60) as u32,
        };
        let honesty = match random.below(100) {
            0..55 => Honesty::Honest,
            55..75 => Honesty::DamagesDerived,
            _ => Honesty::DamagesTruth,
        };
        let image = prepared(settings.keeps);
        seed_sqlite(seed);
        let disk = Disk::new(seed, Some(image));
        if is_told {
            disk.state().log = Some(String::new());
        }
        let centers = (0..2 + random.below(10))
            .map(|_| random.next() >> (64 - BITS))
            .collect();
        let registered = Registered::new(&disk);
        let model = Rc::new(Model::default());
        let mut history = History {
            disk,
            clock: Arc::default(),
            registered,
            scheduler: Scheduler::new(seed, 0),
            settings,
            honesty,
            index: None,
            reader: None,
            unsynced: vec![model.clone()],
            earlier: vec![model.clone()],
            possible: Vec::new(),
            is_opening: false,
            model,
            centers,
            next_id: 0,
            num_acknowledged: 0,
            num_deaths: 0,
            num_snapshots: 0,
            failures_before: 0,
            is_damaged: false,
            is_after_power: false,
            is_detected: false,
            log: is_told.then(String::new),
            random,
        };
        history.tell(|| format!("seed {seed}: {settings:?}, {honesty:?}"));
        history
    }

    fn tell(&mut self, line: impl FnOnce() -> String) {
        let Some(log) = &mut self.log else {
            return;
        };
        let line = line();
        let _ = writeln!(log, "{line}");
        if let Some(log) = &mut self.disk.state().log {
            let _ = writeln!(log, "{line}");
        }
    }

    fn run(&mut self) -> Result<(), String> {
        self.start_process();
        self.open()?;
        for step in 0..NUM_STEPS {
            if self.is_detected {
                break;
            }
            self.tell(|| format!("  {step}"));
            self.step()
                .map_err(|reason| format!("step {step}: {reason}"))?;
        }
        if !self.is_detected {
            self.disk.state().faults.failure = None;
            self.close();
            self.start_process();
            self.open()?;
            self.prove(true)?;
        }
        Ok(())
    }

    /// Releases everything, whatever happened.
    fn end(&mut self) {
        self.disk.state().death = Some(Death::Kill);
        self.reader = None;
        self.index = None;
    }

    fn environment(&self, process: u64) -> Environment {
        Environment {
            files: Arc::new(SimulatedFiles {
                disk: self.disk.clone(),
                process,
            }),
            vfs: Some(self.registered.name()),
            clock: self.clock.clone(),
            background: Arc::new(Stepped(self.scheduler.clone())),
        }
    }

    fn opening(&self) -> Opening {
        Opening {
            sketching: sketching(self.settings.keeps),
            durability: self.settings.durability,
            ttl_s: self.settings.ttl_s,
            is_renewed: self.settings.is_renewed(),
            flush_rows: Some(self.settings.flush_rows),
            accept_loss: false,
            // While a process runs, the clock jumps; when one starts, the clock is correct.
            accept_clock: true,
            environment: self.environment(self.disk.state().process),
        }
    }

    fn start_process(&mut self) {
        let pause_percent = *self.random.pick(&[1, 5, 20]);
        self.scheduler = Scheduler::new(self.random.next(), pause_percent);
        self.disk.start_process(self.scheduler.clone());
        self.failures_before = self.disk.state().num_failures;
    }

    fn has_failed(&self) -> bool {
        self.disk.state().num_failures > self.failures_before
    }

    fn is_dead(&self) -> bool {
        self.disk.state().death.is_some()
    }

    /// Accepts an error that can come from a dead process, a failed disk, or damage; any other error is a failure of
    /// the test.
    fn accept(&mut self, what: &str, error: &Error) -> Result<(), String> {
        self.tell(|| format!("    {what}: {error}"));
        if self.is_dead() {
            return Ok(());
        }
        if self.is_damaged {
            self.is_detected = true;
            return Ok(());
        }
        let is_of_damage = matches!(
            error,
            Error::Damaged | Error::Disk(DiskError::Damaged { .. } | DiskError::Changed { .. })
        );
        match !is_of_damage && self.has_failed() {
            true => Ok(()),
            false => Err(format!("{what}: {error}")),
        }
    }

    /// Same as [`accept`](Self::accept), for a build, whose files may be damaged at once.
    fn accept_build(&mut self, what: &str, error: &Error) -> Result<(), String> {
        match self.honesty == Honesty::DamagesDerived && self.disk.state().num_lies > 0 {
            true => Ok(()),
            false => self.accept(what, error),
        }
    }

    /// Sets the state that is certainly committed.
    fn set_model(&mut self, model: Model) {
        self.model = Rc::new(model);
        match self.settings.durability {
            Durability::Commit => self.unsynced.clear(),
            Durability::Interval(_) => {}
        }
        self.unsynced.push(self.model.clone());
        self.earlier.push(self.model.clone());
    }

    /// Performs a step.
    fn step(&mut self) -> Result<(), String> {
        if self.is_dead() {
            return self.come_back();
        }
        if self.index.is_none() {
            self.disk.state().faults.failure = None;
            return self.open();
        }
        match self.random.below(100) {
            0..34 => self.add()?,
            34..44 => self.remove()?,
            44..52 => self.check()?,
            52..57 => self.ask_reader()?,
            57..60 => self.prove(false)?,
            60..74 => {
                for _ in 0..=self.random.below(8) {
                    self.scheduler.step();
                }
            }
            74..77 => self.compact()?,
            77..78 => self.rebuild()?,
            78..80 => self.snapshot()?,
            80..84 => {
                let seconds = self.random.next() % 40;
                self.tell(|| format!("    {seconds} s pass"));
                self.clock.pass(seconds);
                if self.random.percent(25) {
                    let seconds = *self.random.pick(&[-40_000, -300, 300, 5_000, 300_000_000]);
                    self.tell(|| format!("    the clock jumps by {seconds} s"));
                    self.clock.jump(seconds);
                }
            }
            84..88 => self.close_and_open()?,
            88..92 => self.prepare_death(),
            92..95 => {
                let death = *self.random.pick(&[Death::Kill, Death::Power]);
                self.tell(|| format!("    {death:?} between operations"));
                self.disk.state().death = Some(death);
            }
            95..98 => self.prepare_failure(),
            _ => self.prepare_damage(),
        }
        if self.is_dead() && !self.is_detected {
            self.come_back()?;
        }
        if !self.possible.is_empty() && !self.is_detected {
            // Reopening the index shows which state a failed write left.
            self.close_and_open()?;
        }
        Ok(())
    }

    fn prepare_death(&mut self) {
        let after = match self.random.percent(50) {
            true => self.random.next() % 40,
            false => self.random.next() % 400,
        };
        let death = *self.random.pick(&[Death::Kill, Death::Power]);
        self.tell(|| format!("    {death:?} after {after}"));
        self.disk.state().faults.death = Some((after, death));
    }

    fn prepare_failure(&mut self) {
        let after = self.random.next() % 300;
        let num = *self.random.pick(&[1, 1, 1, 5, 40]);
        let failure = *self.random.pick(&[Failure::Device, Failure::Full]);
        self.tell(|| format!("    {num} of {failure:?} after {after}"));
        self.disk.state().faults.failure = Some((after, num, failure));
    }

    fn prepare_damage(&mut self) {
        let target = match self.honesty {
            Honesty::Honest => return,
            Honesty::DamagesDerived => Target::Derived,
            Honesty::DamagesTruth => *self.random.pick(&[Target::Database, Target::Log]),
        };
        if self.random.percent(50) {
            self.flip(target);
            return;
        }
        let lie = *self.random.pick(&[Lie::Lost, Lie::Torn, Lie::Misdirected]);
        let (after, shows) = (self.random.next() % 4, self.random.percent(50));
        self.tell(|| format!("    {lie:?} write of {target:?} after {after}"));
        self.disk.state().faults.lie = Some((after, target, lie, shows));
        self.is_damaged |= target != Target::Derived;
    }

    fn flip(&mut self, target: Target) {
        let flipped = self.disk.state().flip(target);
        if let Some((path, at)) = flipped {
            self.tell(|| format!("    a bit flips in {} at {at}", path.display()));
            self.is_damaged |= target != Target::Derived;
        }
    }

    /// After a death, restarts the machine and checks what the index finds.
    fn come_back(&mut self) -> Result<(), String> {
        let death = self.disk.state().death;
        self.num_deaths += 1;
        self.reader = None;
        self.index = None;
        // A kill loses nothing that was written: the last acknowledged state is there, or the one in progress. A power
        // cut may also lose unsynced data.
        let mut found = std::mem::take(&mut self.possible);
        if !std::mem::take(&mut self.is_opening) {
            found.push(self.model.clone());
        }
        self.unsynced.extend(found.iter().cloned());
        self.earlier.extend(found.iter().cloned());
        if death == Some(Death::Power) {
            found = self.unsynced.clone();
            self.disk.state().cut_power();
            self.clock.reboot();
        }
        self.is_after_power |= death == Some(Death::Power);
        if self.honesty == Honesty::DamagesTruth && self.random.percent(20) {
            let target = *self
                .random
                .pick(&[Target::Database, Target::Log, Target::Log]);
            self.flip(target);
        }
        if (self.is_after_power || self.has_failed()) && self.is_damaged {
            // After such a power cut, nothing proves that the log is incomplete, so some earlier state is found. There
            // is also no proof if the mark could not be written.
            found = self.earlier.clone();
        }
        self.disk.state().faults.failure = None;
        self.start_process();
        if self.random.percent(15) {
            // Recovery may fail or be interrupted, too.
            match self.random.percent(50) {
                true => self.prepare_failure_soon(),
                false => self.prepare_death_soon(),
            }
        }
        self.possible = found;
        self.open()
    }

    fn prepare_failure_soon(&mut self) {
        let after = self.random.next() % 60;
        let failure = *self.random.pick(&[Failure::Device, Failure::Full]);
        self.tell(|| format!("    1 of {failure:?} after {after} while opening"));
        self.disk.state().faults.failure = Some((after, 1, failure));
    }

    fn prepare_death_soon(&mut self) {
        let after = self.random.next() % 60;
        let death = *self.random.pick(&[Death::Kill, Death::Power]);
        self.tell(|| format!("    {death:?} after {after} while opening"));
        self.disk.state().faults.death = Some((after, death));
    }

    fn open(&mut self) -> Result<(), String> {
        if self.possible.is_empty() {
            self.possible = vec![self.model.clone()];
        }
        self.is_opening = true;
        self.clock.set_right();
        let opened = Index::open(Path::new(DIR), self.opening(), &GO_ON);
        let index = match opened {
            Ok(index) => index,
            Err(error) => {
                return self.accept("open", &error);
            }
        };
        self.index = Some(index);
        let found = match self.read_all(true) {
            Ok(found) => found,
            Err(error) => {
                self.accept("read all", &error)?;
                self.index = None;
                return Ok(());
            }
        };
        self.is_opening = false;
        let is_after_power = std::mem::take(&mut self.is_after_power);
        let possible = std::mem::take(&mut self.possible);
        let matching = possible.iter().rfind(|model| found.is(model));
        let Some(model) = matching else {
            if self.is_damaged && is_after_power && self.disk.state().num_lies > 0 {
                // Excluded: a page that the disk acknowledged and lost, together with the mark that would have proved
                // it.
                self.is_detected = true;
                return Ok(());
            }
            let now = self.model.clone();
            return Err(format!("opened: {}", found.differs_from(&now)));
        };
        if !Rc::ptr_eq(model, &self.model) {
            self.model = model.clone();
            self.earlier.push(self.model.clone());
            self.tell(|| "    another state was found".to_owned());
        }
        // Until a commit syncs everything before it, a power cut may still undo what a failed write left.
        self.unsynced.push(self.model.clone());
        if self.honesty == Honesty::Honest
            && self.settings.durability == Durability::Commit
            && !self.has_failed()
        {
            let num_rebuilt = self.facts().map_or(0, |facts| facts.num_rebuilt);
            if num_rebuilt > 0 {
                return Err(format!("{num_rebuilt} segments were taken for damaged"));
            }
        }
        if self.random.percent(10) {
            self.verify()?;
        }
        if self.random.percent(50) {
            self.prove(false)?;
        }
        Ok(())
    }

    fn facts(&self) -> Option<likewise_index::Facts> {
        self.index.as_ref().and_then(|index| index.facts().ok())
    }

    /// Closes the index, whether it works or not.
    fn close(&mut self) {
        let Some(index) = self.index.take() else {
            return;
        };
        let closed = index.close();
        drop(index);
        let is_clean = closed.is_ok();
        self.tell(|| format!("    closed: {closed:?}"));
        if is_clean && !self.is_dead() && self.possible.is_empty() && !self.has_failed() {
            self.unsynced = vec![self.model.clone()];
        }
    }

    fn close_and_open(&mut self) -> Result<(), String> {
        // While a connection is open, SQLite knows the pages that it wrote to the database, but not that a sync of them
        // failed.
        if self.random.percent(50) || self.has_failed() {
            self.reader = None;
        }
        self.close();
        if self.is_dead() {
            return self.come_back();
        }
        if self.reader.is_none() && self.random.percent(50) {
            if self.random.percent(30) {
                self.tell(|| "    the machine starts again".to_owned());
                self.disk.state().restart();
                self.clock.reboot();
                if self.has_failed() {
                    // What a failed sync left behind is not on the platter.
                    self.possible.extend(self.unsynced.iter().cloned());
                } else {
                    self.unsynced = vec![self.model.clone()];
                    self.unsynced.extend(self.possible.iter().cloned());
                }
            }
            self.start_process();
        }
        if self.random.percent(80) {
            self.disk.state().faults.failure = None;
        }
        if self.is_damaged && self.has_failed() {
            // If the mark could not be written, nothing proves a loss.
            self.possible.extend(self.earlier.iter().cloned());
        }
        self.possible.push(self.model.clone());
        self.open()
    }

    fn fingerprint(&mut self) -> u64 {
        if self.random.percent(10) {
            return self.random.next() >> (64 - BITS);
        }
        let mut fingerprint = *self.random.pick(&self.centers);
        for _ in 0..self.random.below(5) {
            fingerprint ^= 1 << self.random.below(BITS as usize);
        }
        fingerprint
    }

    fn batch(&mut self) -> Vec<(u32, u64)> {
        let num = match self.random.percent(40) {
            true => 1,
            false => 1 + self.random.below(14),
        };
        let mut batch = Vec::new();
        for _ in 0..num {
            let known = self.model.documents.len();
            match self.random.below(20) {
                // The same document again; a gone one is added again.
                0 if known > 0 => {
                    let document = &self.model.documents[self.random.below(known)];
                    let id = document.id;
                    let now = self.model.row_of(id).map(|row| &self.model.documents[row]);
                    let print = now.map_or(document.fingerprint, |now| now.fingerprint);
                    if !batch.iter().any(|&(other, _)| other == id) {
                        batch.push((id, print));
                    }
                }
                _ => {
                    let print = self.fingerprint();
                    batch.push((self.next_id, print));
                    self.next_id += 1;
                }
            }
        }
        batch
    }

    fn add(&mut self) -> Result<(), String> {
        let batch = self.batch();
        // Ages follow the true time, whatever the clock shows.
        let (clock_s, now_s) = (self.clock.unix_s(), self.clock.true_s());
        let mut expired = Model::clone(&self.model);
        let is_news = match self.settings.ttl_s {
            Some(ttl_s) => expired.expire(now_s.saturating_sub(ttl_s), self.settings.is_renewed()),
            None => false,
        };
        let mut after = expired.clone();
        let mut expected = Vec::new();
        for &(id, print) in &batch {
            let (row, is_new) = after.add(id, print, now_s);
            expected.push((row as u32, is_new, after.documents[row].evidence));
        }
        let names: Vec<String> = batch.iter().map(|&(id, _)| name_of(id)).collect();
        let ids: Vec<&str> = names.iter().map(String::as_str).collect();
        let keeps = self.settings.keeps;
        let texts: Vec<String> = batch
            .iter()
            .map(|&(id, print)| text_of(id, print))
            .collect();
        let text_of = |i: usize| texts[i].as_bytes();
        let Some(index) = &self.index else {
            return Ok(());
        };
        let documents = documents(keeps, &batch);
        let text_of: Option<likewise_index::TextOf<'_>> = match keeps {
            Keeps::Text => Some(&text_of),
            _ => None,
        };
        let added = index.add(&ids, &documents, text_of, None, clock_s, Run::alone(&GO_ON));
        self.tell(|| format!("    add {batch:?}"));
        match added {
            Ok(verdicts) => {
                let got = (verdicts.rows.iter())
                    .zip(&verdicts.added)
                    .zip(&verdicts.evidence);
                let got: Vec<(u32, bool, Option<Evidence>)> = got
                    .map(|((&row, &added), &evidence)| (row, added, evidence))
                    .collect();
                if got != expected {
                    return Err(format!("add: got {got:?}, not {expected:?}"));
                }
                let named = verdicts.evidence.iter().flatten().zip(&verdicts.kept_ids);
                for (evidence, kept_id) in named {
                    let kept = &after.documents[evidence.kept_row as usize];
                    if *kept_id != name_of(kept.id) {
                        return Err(format!("add: row {} is not {kept_id}", evidence.kept_row));
                    }
                }
                self.num_acknowledged += batch.len();
                if is_news {
                    // A separate transaction.
                    self.acknowledge(expired);
                }
                self.acknowledge(after);
            }
            Err(error) => {
                self.accept("add", &error)?;
                if is_news {
                    self.possible.push(Rc::new(expired));
                }
                self.possible.push(Rc::new(after));
            }
        }
        Ok(())
    }

    /// Sets the new state, unless the process died between the commit and the mark and the log is damaged: then the
    /// caller received no acknowledgment.
    fn acknowledge(&mut self, after: Model) {
        match self.is_dead() && self.honesty == Honesty::DamagesTruth {
            true => self.possible.push(Rc::new(after)),
            false => self.set_model(after),
        }
    }

    fn remove(&mut self) -> Result<(), String> {
        let present: Vec<usize> = (0..self.model.documents.len())
            .filter(|&row| !self.model.documents[row].is_gone)
            .collect();
        if present.is_empty() {
            return Ok(());
        }
        let row = *self.random.pick(&present);
        let mut after = Model::clone(&self.model);
        let expected = after.remove(row);
        let id = name_of(after.documents[row].id);
        let Some(index) = &self.index else {
            return Ok(());
        };
        let removed = index.remove(&id, &GO_ON);
        self.tell(|| format!("    remove {id}, row {row}: {expected:?}"));
        match removed {
            Ok(removed) => {
                let got = &removed.removal;
                if got.was_kept != expected.was_kept
                    || got.promoted != expected.promoted
                    || got.moved != expected.moved
                {
                    return Err(format!("remove: got {got:?}, not {expected:?}"));
                }
                self.acknowledge(after);
            }
            Err(error) => {
                self.accept("remove", &error)?;
                self.possible.push(Rc::new(after));
            }
        }
        Ok(())
    }

    /// Queries verdicts from an index.
    fn ask(&mut self, of_reader: bool) -> Result<(), String> {
        let batch: Vec<(u32, u64)> = (0..1 + self.random.below(6))
            .map(|_| (u32::MAX, self.fingerprint()))
            .collect();
        let documents = documents(self.settings.keeps, &batch);
        let asked = match of_reader {
            true => self.reader.as_ref(),
            false => self.index.as_ref(),
        };
        let Some(index) = asked else {
            return Ok(());
        };
        match index.check(&documents, None, Run::alone(&GO_ON)) {
            Ok(verdicts) => {
                let expected: Vec<Option<Evidence>> = batch
                    .iter()
                    .map(|&(_, print)| self.model.decide(print).0)
                    .collect();
                if verdicts.evidence != expected {
                    return Err(format!(
                        "check (reader: {of_reader}): got {:?}, not {expected:?}",
                        verdicts.evidence
                    ));
                }
            }
            Err(error) => {
                self.accept("check", &error)?;
                if of_reader {
                    self.reader = None;
                }
            }
        }
        Ok(())
    }

    fn check(&mut self) -> Result<(), String> {
        self.ask(false)?;
        if self.index.is_none() || self.is_dead() || self.is_detected {
            return Ok(());
        }
        let known = self.model.documents.len();
        if known == 0 {
            return Ok(());
        }
        let id = self.model.documents[self.random.below(known)].id;
        let row = self.model.row_of(id);
        let Some(index) = &self.index else {
            return Ok(());
        };
        match index.get(&name_of(id)) {
            Ok(found) => {
                let got = found.as_ref().map(|(row, _, _)| *row as usize);
                if got != row {
                    return Err(format!("get d{id}: got row {got:?}, not {row:?}"));
                }
                if let (Some((_, stored, _)), Some(row)) = (found, row) {
                    let document = &self.model.documents[row];
                    if stored.verdict != document.evidence
                        || stored.sketch != document.fingerprint.to_le_bytes()
                    {
                        return Err(format!("get d{id}: got {stored:?}, not {document:?}"));
                    }
                }
            }
            Err(error) => return self.accept("get", &error),
        }
        let (Some(row), Some(index)) = (row, &self.index) else {
            return Ok(());
        };
        let leader = self.model.documents[row]
            .evidence
            .map_or(row, |evidence| evidence.kept_row as usize);
        let members = self.model.members(leader);
        let expected: Vec<String> = members
            .iter()
            .map(|&member| name_of(self.model.documents[member].id))
            .collect();
        match index.group(&name_of(id)) {
            Ok(group) if group.member_ids == expected => Ok(()),
            Ok(group) => Err(format!("group of d{id}: {group:?}, not {expected:?}")),
            Err(error) => self.accept("group", &error),
        }
    }

    fn ask_reader(&mut self) -> Result<(), String> {
        if self.reader.is_none() {
            match Index::open_reader(Path::new(DIR), self.opening(), &GO_ON) {
                Ok(reader) => self.reader = Some(reader),
                Err(error) => return self.accept("open to read", &error),
            }
        }
        self.ask(true)
    }

    fn compact(&mut self) -> Result<(), String> {
        let Some(index) = &self.index else {
            return Ok(());
        };
        let compacted = index.compact(Run::alone(&GO_ON));
        self.tell(|| format!("    compact: {compacted:?}"));
        match compacted {
            Ok(_) => Ok(()),
            Err(error) => self.accept_build("compact", &error),
        }
    }

    fn rebuild(&mut self) -> Result<(), String> {
        let Some(index) = &self.index else {
            return Ok(());
        };
        let rebuilt = index.rebuild(Run::alone(&GO_ON));
        self.tell(|| format!("    rebuild: {rebuilt:?}"));
        match rebuilt {
            Ok(()) => Ok(()),
            Err(error) => self.accept_build("rebuild", &error),
        }
    }

    fn snapshot(&mut self) -> Result<(), String> {
        self.num_snapshots += 1;
        let to = format!("/snapshot{}", self.num_snapshots);
        let Some(index) = &self.index else {
            return Ok(());
        };
        self.disk.state().faults.lie = None;
        if let Err(error) = index.snapshot(Path::new(&to), &GO_ON) {
            return self.accept("snapshot", &error);
        }
        self.tell(|| format!("    snapshot {to}"));
        let opened = Index::open_reader(Path::new(&to), self.opening(), &GO_ON);
        let found = opened.and_then(|index| Found::of(&index, self.settings.keeps));
        match found {
            Ok(found) if found.is(&self.model) => Ok(()),
            Ok(found) => Err(format!("snapshot: {}", found.differs_from(&self.model))),
            Err(error) => self.accept("snapshot", &error),
        }
    }

    fn verify(&mut self) -> Result<(), String> {
        let Some(index) = &self.index else {
            return Ok(());
        };
        match index.verify(true, &GO_ON) {
            Ok(findings) if findings.is_empty() || self.honesty != Honesty::Honest => Ok(()),
            Ok(findings) if self.has_failed() => {
                // A disk failure during verification is not a finding of damage.
                match findings.iter().any(|finding| finding.contains("damaged")) {
                    true => Err(format!("verify: {findings:?}")),
                    false => Ok(()),
                }
            }
            Ok(findings) => Err(format!("verify: {findings:?}")),
            Err(error) => self.accept("verify", &error),
        }
    }

    fn read_all(&self, of_writer: bool) -> Result<Found, Error> {
        let index = match of_writer {
            true => self.index.as_ref(),
            false => self.reader.as_ref(),
        };
        Found::of(index.ok_or(Error::Closed)?, self.settings.keeps)
    }

    /// Compares everything that can be queried with the model.
    fn prove(&mut self, all: bool) -> Result<(), String> {
        if self.index.is_none() {
            return Ok(());
        }
        if all {
            match self.read_all(true) {
                Ok(found) if found.is(&self.model) => {}
                Ok(found) => return Err(found.differs_from(&self.model)),
                Err(error) => return self.accept("read all", &error),
            }
        }
        let Some(index) = &self.index else {
            return Ok(());
        };
        match index.num_documents() {
            Ok(num) if num == self.model.num_documents() => {}
            Ok(num) => {
                return Err(format!(
                    "{num} documents, not {}",
                    self.model.num_documents()
                ));
            }
            Err(error) => return self.accept("count", &error),
        }
        for _ in 0..3 {
            if self.is_dead() || self.is_detected {
                break;
            }
            self.ask(false)?;
        }
        Ok(())
    }
}

/// All documents of an index that are not gone.
pub(crate) struct Found {
    num_rows: usize,
    documents: Vec<(u32, String, u64, Option<Evidence>)>,
}

impl Found {
    pub(crate) fn of(index: &Index, keeps: Keeps) -> Result<Self, Error> {
        let mut found = Vec::new();
        index.scan(|chunk, store| {
            for (place, &row) in chunk.rows.iter().enumerate() {
                if chunk.gone[place] {
                    continue;
                }
                let mut sketch = [0; 8];
                sketch.copy_from_slice(&chunk.sketches[8 * place..8 * place + 8]);
                let print = u64::from_le_bytes(sketch);
                let id = chunk.id(place).to_owned();
                // Decompressing a block for each row takes longer than everything else.
                if keeps == Keeps::Text && row % 16 == 0 {
                    let number = id.trim_start_matches('d').parse().unwrap_or(0);
                    let text = text_of(number, print).into_bytes();
                    if store.content(row)? != likewise_disk::store::Content::Text(text) {
                        return Err(DiskError::invalid("text", format!("of {id} is another")));
                    }
                }
                found.push((row, id, print, chunk.verdicts[place]));
            }
            Ok(())
        })?;
        Ok(Found {
            num_rows: index.position().num_rows as usize,
            documents: found,
        })
    }

    fn expected(model: &Model) -> Vec<(u32, String, u64, Option<Evidence>)> {
        let all = model.documents.iter().enumerate();
        all.filter(|(_, document)| !document.is_gone)
            .map(|(row, document)| {
                (
                    row as u32,
                    name_of(document.id),
                    document.fingerprint,
                    document.evidence,
                )
            })
            .collect()
    }

    pub(crate) fn is(&self, model: &Model) -> bool {
        self.num_rows == model.documents.len() && self.documents == Found::expected(model)
    }

    pub(crate) fn differs_from(&self, model: &Model) -> String {
        let expected = Found::expected(model);
        let first = self.documents.iter().zip(&expected).find(|(a, b)| a != b);
        format!(
            "{} documents in {} rows where {} in {} are expected; first difference: {first:?}",
            self.documents.len(),
            self.num_rows,
            expected.len(),
            model.documents.len()
        )
    }
}
