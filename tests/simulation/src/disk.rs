//! A disk in memory, below a file system with a cache.
//!
//! Processes see what was written; the platter has what was synced. After a power cut, each sector of a file has any
//! version since its last sync, each file has any of its lengths, and some of the unsynced names exist. A kill loses
//! nothing that was written.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::random::Random;
use crate::scheduler::Scheduler;
use crate::shared_memory::SharedMemory;

/// Bytes that the disk writes atomically.
pub const SECTOR: usize = 512;

/// The number of a file.
pub type Inode = usize;

/// What a name refers to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Named {
    /// A directory.
    Directory,
    /// A file.
    File(Inode),
}

/// An unsynced change of a file.
#[derive(Debug, Clone)]
enum Change {
    Write(usize, Vec<u8>),
    Resize(usize),
}

/// An unsynced change of names; the changes of one step are atomic.
#[derive(Debug, Clone)]
struct NameChange {
    set: Option<(PathBuf, Named)>,
    unset: Option<PathBuf>,
}

impl NameChange {
    fn is_in(&self, directory: &Path) -> bool {
        let set = self.set.as_ref().map(|(path, _)| path);
        set.or(self.unset.as_ref())
            .is_some_and(|path| path.parent() == Some(directory))
    }

    fn apply(&self, names: &mut BTreeMap<PathBuf, Named>) {
        if let Some(path) = &self.unset {
            names.remove(path);
        }
        if let Some((path, named)) = &self.set {
            names.insert(path.clone(), *named);
        }
    }
}

/// A file.
#[derive(Debug, Clone, Default)]
pub struct Node {
    /// The contents that processes read.
    cached: Vec<u8>,
    /// The contents of the platter.
    platter: Vec<u8>,
    /// The changes that lead from the platter to the cache.
    changes: Vec<Change>,
    /// Locks of SQLite on it.
    pub(crate) locks: Locks,
    /// Whether a process holds the lock of the whole file.
    pub(crate) is_locked: bool,
}

/// Locks of a database file.
#[derive(Debug, Clone, Default)]
pub struct Locks {
    pub(crate) shared: u32,
    pub(crate) reserved: bool,
    pub(crate) pending: bool,
    pub(crate) exclusive: bool,
}

/// The kind of an operation, as faults distinguish it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// It reads.
    Read,
    /// It takes space.
    Write,
    /// It makes bytes or names durable.
    Sync,
    /// It changes names or lengths without taking space.
    Other,
}

/// An error that operations return.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Failure {
    /// The device fails.
    Device,
    /// No space is left.
    Full,
    /// The device fails while it makes something durable; other operations are not counted.
    Sync,
}

/// How a process ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Death {
    /// The process is killed.
    Kill,
    /// The power is cut.
    Power,
}

/// How a disk silently corrupts a write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lie {
    /// It never happens.
    Lost,
    /// Some of its sectors are never written.
    Torn,
    /// It is written to another place.
    Misdirected,
}

/// The files that a fault affects.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Target {
    /// Files of segments.
    Derived,
    /// The database.
    Database,
    /// The log of the database.
    Log,
}

impl Target {
    /// Whether a file is one of these.
    pub fn is(self, path: &Path) -> bool {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        match self {
            Target::Derived => name.starts_with("rows-") || name.starts_with(".rows-"),
            Target::Database => name == "documents.sqlite",
            Target::Log => name == "documents.sqlite-wal",
        }
    }
}

/// The planned faults.
#[derive(Debug, Default)]
pub struct Faults {
    /// After this many operations, this many fail.
    pub failure: Option<(u64, u64, Failure)>,
    /// After this many operations, the process dies.
    pub death: Option<(u64, Death)>,
    /// After this many syncs of such a file, one of the writes is corrupted, which is visible at once or after the next
    /// start.
    pub lie: Option<(u64, Target, Lie, bool)>,
}

/// The state of the disk and of the processes that use it.
#[derive(Debug)]
pub struct State {
    nodes: Vec<Node>,
    names: BTreeMap<PathBuf, Named>,
    platter_names: BTreeMap<PathBuf, Named>,
    name_changes: Vec<NameChange>,
    random: Random,
    /// Number of the process; files opened by earlier ones are dead.
    pub process: u64,
    /// How the process died, if it has.
    pub death: Option<Death>,
    /// The planned faults.
    pub faults: Faults,
    /// Number of operations that failed.
    pub num_failures: u64,
    /// Number of corrupted writes.
    pub num_lies: u64,
    /// Number of operations so far.
    pub num_operations: u64,
    /// A hash of all operations so far.
    pub trace: u64,
    /// Moments at which power may be cut, if they are recorded.
    pub points: Option<Vec<PowerPoint>>,
    /// A number of the caller, stored with these moments.
    pub note: usize,
    /// All operations as text, if requested.
    pub log: Option<String>,
    pub(crate) shared_memory: BTreeMap<Inode, Arc<SharedMemory>>,
}

/// The disk.
#[derive(Debug)]
pub struct Disk {
    state: Mutex<State>,
    scheduler: Mutex<Arc<Scheduler>>,
}

/// The contents of a disk at one moment, with nothing unsynced.
#[derive(Debug, Clone)]
pub struct Image {
    nodes: Vec<Node>,
    names: BTreeMap<PathBuf, Named>,
}

/// The platter at one moment, and the changes that the disk has received but not made durable.
#[derive(Debug, Clone)]
pub struct PowerPoint {
    /// The caller's number at that moment.
    pub note: usize,
    platters: Vec<Vec<u8>>,
    changes: Vec<Vec<Change>>,
    names: BTreeMap<PathBuf, Named>,
    name_changes: Vec<NameChange>,
}

/// The changes that the disk has made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Made {
    /// This many from the start.
    First(usize),
    /// This many from the start, and the first or the last half of the sectors of the next.
    Torn(usize, bool),
    /// All except this one.
    AllBut(usize),
}

impl Made {
    fn all(num: usize, may_tear: bool) -> Vec<Made> {
        let mut all: Vec<Made> = (0..=num).map(Made::First).collect();
        if may_tear {
            let torn = |at| [Made::Torn(at, false), Made::Torn(at, true)];
            all.extend((0..num).flat_map(torn));
        }
        // Without the last one, it is a prefix.
        all.extend((0..num.saturating_sub(1)).map(Made::AllBut));
        all
    }

    fn has(self, at: usize) -> bool {
        match self {
            Made::First(num) | Made::Torn(num, _) => at < num,
            Made::AllBut(but) => at != but,
        }
    }
}

impl PowerPoint {
    /// Returns the disks that a machine may find after a power cut at this moment.
    ///
    /// One file, or the names, is in each state within the bound, while the others have none or all of their changes.
    pub fn images(&self) -> Vec<Image> {
        let unsynced: Vec<Inode> = (0..self.changes.len())
            .filter(|&inode| !self.changes[inode].is_empty())
            .collect();
        let mut images = Vec::new();
        for others in [false, true] {
            let names = self.names_with(match others {
                true => Made::First(self.name_changes.len()),
                false => Made::First(0),
            });
            let base: Vec<Vec<u8>> = (0..self.platters.len())
                .map(|inode| match others {
                    true => self.bytes_with(inode, Made::First(self.changes[inode].len())),
                    false => self.platters[inode].clone(),
                })
                .collect();
            for &inode in &unsynced {
                for made in Made::all(self.changes[inode].len(), true) {
                    let mut bytes = base.clone();
                    bytes[inode] = self.bytes_with(inode, made);
                    images.push(Image::of(bytes, names.clone()));
                }
            }
            for made in Made::all(self.name_changes.len(), false) {
                images.push(Image::of(base.clone(), self.names_with(made)));
            }
        }
        images
    }

    fn bytes_with(&self, inode: Inode, made: Made) -> Vec<u8> {
        let mut bytes = self.platters[inode].clone();
        for (at, change) in self.changes[inode].iter().enumerate() {
            if made.has(at) {
                change.apply(&mut bytes);
            }
            if let (Made::Torn(torn, is_last), Change::Write(offset, new)) = (made, change)
                && torn == at
            {
                let middle = (new.len() / 2).next_multiple_of(SECTOR).min(new.len());
                match is_last {
                    true => put(&mut bytes, offset + middle, &new[middle..]),
                    false => put(&mut bytes, *offset, &new[..middle]),
                }
            }
        }
        bytes
    }

    fn names_with(&self, made: Made) -> BTreeMap<PathBuf, Named> {
        let mut names = self.names.clone();
        for (at, change) in self.name_changes.iter().enumerate() {
            if made.has(at) {
                change.apply(&mut names);
            }
        }
        let all = names.clone();
        names.retain(|path, _| path.ancestors().all(|path| all.contains_key(path)));
        names
    }
}

impl Image {
    fn of(bytes: Vec<Vec<u8>>, names: BTreeMap<PathBuf, Named>) -> Self {
        let node = |bytes: Vec<u8>| Node {
            platter: bytes.clone(),
            cached: bytes,
            ..Node::default()
        };
        Image {
            nodes: bytes.into_iter().map(node).collect(),
            names,
        }
    }

    /// A hash of all names and their targets.
    pub fn hash(&self) -> u64 {
        let mut hash = 0_u64;
        for (path, named) in &self.names {
            let of_path = xxhash_rust::xxh3::xxh3_64(path.as_os_str().as_encoded_bytes());
            let of_bytes = match named {
                Named::Directory => 1,
                Named::File(inode) => xxhash_rust::xxh3::xxh3_64(&self.nodes[*inode].cached),
            };
            hash = hash.rotate_left(7) ^ of_path ^ of_bytes.wrapping_mul(3);
        }
        hash
    }
}

fn gone() -> io::Error {
    io::Error::other("the process is dead")
}

impl Failure {
    fn error(self) -> io::Error {
        match self {
            Failure::Device | Failure::Sync => io::Error::from_raw_os_error(5),
            Failure::Full => io::ErrorKind::StorageFull.into(),
        }
    }
}

impl Disk {
    /// Creates an empty disk with a root directory, or a copy of another.
    pub fn new(seed: u64, image: Option<&Image>) -> Arc<Self> {
        let (nodes, names) = match image {
            Some(image) => (image.nodes.clone(), image.names.clone()),
            None => (
                Vec::new(),
                BTreeMap::from([(PathBuf::from("/"), Named::Directory)]),
            ),
        };
        Arc::new(Disk {
            state: Mutex::new(State {
                nodes,
                platter_names: names.clone(),
                names,
                name_changes: Vec::new(),
                random: Random::new(seed, 2),
                process: 0,
                death: None,
                faults: Faults::default(),
                num_failures: 0,
                num_lies: 0,
                num_operations: 0,
                trace: 0,
                points: None,
                note: 0,
                log: None,
                shared_memory: BTreeMap::new(),
            }),
            scheduler: Mutex::new(Scheduler::new(seed, 0)),
        })
    }

    /// Locks the state.
    pub fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The tasks of the current process.
    pub fn scheduler(&self) -> Arc<Scheduler> {
        let scheduler = self.scheduler.lock();
        scheduler.unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Begins an operation of a process on a file that the task `owner` opened.
    ///
    /// # Errors
    /// Returns an error if a fault is due or the process is dead.
    pub fn begin(
        &self,
        process: u64,
        owner: Option<usize>,
        kind: Kind,
        what: &str,
        detail: [usize; 3],
    ) -> io::Result<MutexGuard<'_, State>> {
        if owner.is_some() {
            self.scheduler().at_operation(owner);
        }
        let mut state = self.state();
        state.count(process, kind, what, detail)?;
        Ok(state)
    }

    /// Starts a new process on the machine; everything of the previous one is dead.
    pub fn start_process(&self, scheduler: Arc<Scheduler>) -> u64 {
        *self
            .scheduler
            .lock()
            .unwrap_or_else(PoisonError::into_inner) = scheduler;
        let mut state = self.state();
        state.end_process();
        state.process += 1;
        state.death = None;
        state.faults.death = None;
        state.process
    }

    /// Returns a copy of all files, as processes see them.
    pub fn image(&self) -> Image {
        let state = self.state();
        let nodes = state.nodes.iter().map(|node| Node {
            cached: node.cached.clone(),
            platter: node.cached.clone(),
            ..Node::default()
        });
        Image {
            nodes: nodes.collect(),
            names: state.names.clone(),
        }
    }
}

impl State {
    fn count(
        &mut self,
        process: u64,
        kind: Kind,
        what: &str,
        detail: [usize; 3],
    ) -> io::Result<()> {
        if process != self.process || self.death.is_some() {
            return Err(gone());
        }
        self.num_operations += 1;
        if kind != Kind::Read && self.points.is_some() {
            self.record();
        }
        for part in [xxhash_rust::xxh3::xxh3_64(what.as_bytes()) as usize]
            .iter()
            .chain(&detail)
        {
            self.trace = (self.trace ^ *part as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
            self.trace ^= self.trace >> 29;
        }
        if let Some(log) = &mut self.log {
            let _ = writeln!(log, "    {} {what} {detail:?}", self.num_operations);
        }
        if let Some((after, death)) = &mut self.faults.death {
            if *after == 0 {
                self.death = Some(*death);
                return Err(gone());
            }
            *after -= 1;
        }
        if let Some((after, left, failure)) = &mut self.faults.failure
            && (*failure != Failure::Sync || kind == Kind::Sync)
        {
            if *after > 0 {
                *after -= 1;
            } else if *failure != Failure::Full || kind == Kind::Write {
                let failure = *failure;
                *left -= 1;
                if *left == 0 {
                    self.faults.failure = None;
                }
                self.num_failures += 1;
                if let Some(log) = &mut self.log {
                    let _ = writeln!(log, "      fails: {failure:?}");
                }
                return Err(failure.error());
            }
        }
        Ok(())
    }

    /// Records this moment for a power cut, unless nothing has changed since the last one.
    fn record(&mut self) {
        let point = PowerPoint {
            note: self.note,
            platters: self.nodes.iter().map(|node| node.platter.clone()).collect(),
            changes: self.nodes.iter().map(|node| node.changes.clone()).collect(),
            names: self.platter_names.clone(),
            name_changes: self.name_changes.clone(),
        };
        if let Some(points) = &mut self.points {
            points.push(point);
        }
    }

    /// Returns what a name refers to.
    pub fn named(&self, path: &Path) -> io::Result<Named> {
        let named = self.names.get(path).copied();
        named.ok_or_else(|| io::ErrorKind::NotFound.into())
    }

    /// Returns the file that a name refers to.
    pub fn file(&self, path: &Path) -> io::Result<Inode> {
        match self.named(path)? {
            Named::File(inode) => Ok(inode),
            Named::Directory => Err(io::ErrorKind::IsADirectory.into()),
        }
    }

    /// Returns the names in a directory.
    pub fn list(&self, directory: &Path) -> io::Result<Vec<(PathBuf, Named)>> {
        if self.named(directory)? != Named::Directory {
            return Err(io::ErrorKind::NotADirectory.into());
        }
        let names = self.names.iter();
        let inside = names.filter(|(path, _)| path.parent() == Some(directory));
        Ok(inside.map(|(path, &named)| (path.clone(), named)).collect())
    }

    /// Returns a file.
    pub fn node(&mut self, inode: Inode) -> &mut Node {
        &mut self.nodes[inode]
    }

    /// Returns the bytes of a file as processes see them.
    pub fn bytes(&self, inode: Inode) -> &[u8] {
        &self.nodes[inode].cached
    }

    /// Creates a file without a name.
    pub fn make_node(&mut self) -> Inode {
        self.nodes.push(Node::default());
        self.nodes.len() - 1
    }

    /// Creates a name.
    pub fn make_name(&mut self, path: &Path, named: Named) -> io::Result<()> {
        let parent = path.parent().unwrap_or(Path::new("/"));
        if self.named(parent)? != Named::Directory {
            return Err(io::ErrorKind::NotADirectory.into());
        }
        if self.names.contains_key(path) {
            return Err(io::ErrorKind::AlreadyExists.into());
        }
        self.change_names(NameChange {
            set: Some((path.to_owned(), named)),
            unset: None,
        });
        Ok(())
    }

    /// Renames a file.
    pub fn rename(&mut self, from: &Path, to: &Path) -> io::Result<()> {
        let named = self.named(from)?;
        self.change_names(NameChange {
            set: Some((to.to_owned(), named)),
            unset: Some(from.to_owned()),
        });
        Ok(())
    }

    /// Removes a name.
    pub fn unlink(&mut self, path: &Path) -> io::Result<()> {
        self.file(path)?;
        self.change_names(NameChange {
            set: None,
            unset: Some(path.to_owned()),
        });
        Ok(())
    }

    fn change_names(&mut self, change: NameChange) {
        change.apply(&mut self.names);
        self.name_changes.push(change);
    }

    /// Makes the names of a directory durable.
    pub fn sync_directory(&mut self, path: &Path) -> io::Result<()> {
        self.named(path)?;
        let mut names = std::mem::take(&mut self.platter_names);
        self.name_changes.retain(|change| {
            let is_in = change.is_in(path);
            if is_in {
                change.apply(&mut names);
            }
            !is_in
        });
        self.platter_names = names;
        Ok(())
    }

    /// Writes bytes to a file.
    pub fn write(&mut self, inode: Inode, offset: usize, bytes: &[u8]) {
        let node = &mut self.nodes[inode];
        put(&mut node.cached, offset, bytes);
        node.changes.push(Change::Write(offset, bytes.to_vec()));
    }

    /// Changes the length of a file.
    pub fn resize(&mut self, inode: Inode, len: usize) {
        let node = &mut self.nodes[inode];
        node.cached.resize(len, 0);
        node.changes.push(Change::Resize(len));
    }

    /// Makes the bytes of a file durable.
    pub fn sync(&mut self, inode: Inode) {
        let is_lie = match &mut self.faults.lie {
            Some((after, target, _, _)) => {
                let names = self.names.iter();
                let is_meant = names
                    .filter(|(_, named)| **named == Named::File(inode))
                    .any(|(path, _)| target.is(path));
                let is_due = is_meant && *after == 0 && !self.nodes[inode].changes.is_empty();
                if is_meant && *after > 0 {
                    *after -= 1;
                }
                is_due
            }
            None => false,
        };
        if is_lie && let Some((_, target, lie, shows)) = self.faults.lie.take() {
            self.num_lies += 1;
            if let Some(log) = &mut self.log {
                let _ = writeln!(log, "      {lie:?} write of {target:?}");
            }
            self.lie(inode, lie);
            if shows {
                let node = &mut self.nodes[inode];
                node.cached = node.platter.clone();
            }
            return;
        }
        let node = &mut self.nodes[inode];
        for change in node.changes.drain(..) {
            change.apply(&mut node.platter);
        }
    }

    fn lie(&mut self, inode: Inode, lie: Lie) {
        let (random, node) = (&mut self.random, &mut self.nodes[inode]);
        let changes = std::mem::take(&mut node.changes);
        let writes = changes
            .iter()
            .enumerate()
            .filter(|(_, change)| matches!(change, Change::Write(..)));
        let writes: Vec<usize> = writes.map(|(at, _)| at).collect();
        let chosen = match writes.is_empty() {
            true => None,
            false => Some(*random.pick(&writes)),
        };
        let len = node.cached.len();
        for (at, change) in changes.iter().enumerate() {
            let Change::Write(offset, bytes) = change else {
                change.apply(&mut node.platter);
                continue;
            };
            if Some(at) != chosen {
                change.apply(&mut node.platter);
                continue;
            }
            match lie {
                Lie::Lost => {}
                Lie::Torn => {
                    let kept = random.below(bytes.len().div_ceil(SECTOR).max(1)) * SECTOR;
                    put(
                        &mut node.platter,
                        *offset,
                        &bytes[..kept.min(bytes.len() - 1)],
                    );
                }
                Lie::Misdirected => {
                    let other = random.below(len.max(1)) / SECTOR * SECTOR + offset % SECTOR;
                    put(&mut node.platter, other, bytes);
                }
            }
        }
        node.platter.resize(len, 0);
    }

    /// Simulates a failed sync: unwritten data counts as clean from now on, and may never reach the platter.
    pub fn fail_sync(&mut self, inode: Inode) {
        let random = &mut self.random;
        let changes = &mut self.nodes[inode].changes;
        let is_all = random.percent(50);
        changes.retain(|change| {
            matches!(change, Change::Resize(_)) || (!is_all && random.percent(50))
        });
    }

    /// Simulates a failed write: part of it may be there.
    pub fn fail_write(&mut self, inode: Inode, offset: usize, bytes: &[u8]) {
        if self.random.percent(50) {
            let num = self.random.below(bytes.len() + 1);
            self.write(inode, offset, &bytes[..num]);
        }
    }

    /// Flips a bit of a target file, in the cache and on the platter; returns its position.
    pub fn flip(&mut self, target: Target) -> Option<(PathBuf, usize)> {
        let mut meant = Vec::new();
        for (path, named) in &self.names {
            if let Named::File(inode) = named
                && target.is(path)
                && !self.nodes[*inode].cached.is_empty()
            {
                meant.push((path.clone(), *inode));
            }
        }
        if meant.is_empty() {
            return None;
        }
        let (path, inode) = self.random.pick(&meant).clone();
        let node = &mut self.nodes[inode];
        // Small tables are at the front, and a random byte would hardly ever hit them.
        let num = match self.random.percent(50) {
            true => node.cached.len().min(1024),
            false => node.cached.len(),
        };
        let at = self.random.below(num);
        let bit = 1 << self.random.below(8);
        node.cached[at] ^= bit;
        if let Some(byte) = node.platter.get_mut(at) {
            *byte ^= bit;
        }
        Some((path, at))
    }

    /// Ends the process: its locks and its shared memory disappear.
    fn end_process(&mut self) {
        for node in &mut self.nodes {
            node.locks = Locks::default();
            node.is_locked = false;
        }
        self.shared_memory.clear();
    }

    /// Produces the state after a power cut: of all unsynced changes, those that the disk chose to write.
    pub fn cut_power(&mut self) {
        let mut names = std::mem::take(&mut self.platter_names);
        let changes = std::mem::take(&mut self.name_changes);
        let random = &mut self.random;
        // Journaling file systems keep a prefix of all changes; others keep any subset.
        let is_journal = random.percent(70);
        let num = random.below(changes.len() + 1);
        for (at, change) in changes.iter().enumerate() {
            let is_kept = match is_journal {
                true => at < num,
                false => random.percent(50),
            };
            if is_kept {
                change.apply(&mut names);
            }
        }
        // Entries of missing directories are missing too.
        let all = names.clone();
        names.retain(|path, _| path.ancestors().all(|path| all.contains_key(path)));
        for node in &mut self.nodes {
            node.settle(random);
        }
        self.platter_names = names.clone();
        self.names = names;
        self.end_process();
    }

    /// Produces the state after a power cut if the disk made only synced data durable.
    pub fn lose_unsynced(&mut self) {
        self.names = self.platter_names.clone();
        self.name_changes.clear();
        for node in &mut self.nodes {
            node.changes.clear();
            node.cached = node.platter.clone();
        }
        self.end_process();
    }

    /// Simulates an orderly shutdown and a start: the contents of the platter become visible.
    pub fn restart(&mut self) {
        for node in &mut self.nodes {
            for change in node.changes.drain(..) {
                change.apply(&mut node.platter);
            }
            node.cached = node.platter.clone();
        }
        for change in std::mem::take(&mut self.name_changes) {
            change.apply(&mut self.platter_names);
        }
        self.names = self.platter_names.clone();
        self.end_process();
    }
}

impl Change {
    fn apply(&self, bytes: &mut Vec<u8>) {
        match self {
            Change::Write(offset, new) => put(bytes, *offset, new),
            Change::Resize(len) => bytes.resize(*len, 0),
        }
    }

    /// Returns the sectors that it changes, in a file of at most `len` bytes.
    fn sectors(&self, len: usize) -> std::ops::Range<usize> {
        match self {
            Change::Write(_, bytes) if bytes.is_empty() => 0..0,
            Change::Write(offset, bytes) => {
                offset / SECTOR..(offset + bytes.len()).div_ceil(SECTOR)
            }
            Change::Resize(new) => new / SECTOR..len.div_ceil(SECTOR),
        }
    }

    fn apply_to_sector(&self, sector: usize, bytes: &mut [u8; SECTOR]) {
        let start = sector * SECTOR;
        match self {
            Change::Write(offset, new) => {
                let begin = (*offset).max(start);
                let end = (offset + new.len()).min(start + SECTOR);
                if begin < end {
                    bytes[begin - start..end - start]
                        .copy_from_slice(&new[begin - offset..end - offset]);
                }
            }
            Change::Resize(len) => bytes[len.saturating_sub(start).min(SECTOR)..].fill(0),
        }
    }
}

impl Node {
    /// Chooses the result of a power cut.
    fn settle(&mut self, random: &mut Random) {
        let changes = std::mem::take(&mut self.changes);
        if !changes.is_empty() {
            match random.below(4) {
                0 => {}
                1 => {
                    for change in &changes {
                        change.apply(&mut self.platter);
                    }
                }
                2 => {
                    let num = random.below(changes.len());
                    for change in &changes[..num] {
                        change.apply(&mut self.platter);
                    }
                    self.choose_versions(&changes[num..=num], random);
                }
                _ => self.choose_versions(&changes, random),
            }
        }
        self.cached = self.platter.clone();
    }

    /// Chooses any version for each sector, and any length for the file.
    fn choose_versions(&mut self, changes: &[Change], random: &mut Random) {
        let mut lens = vec![self.platter.len()];
        let mut longest = self.platter.len();
        for change in changes {
            let last = lens[lens.len() - 1];
            let len = match change {
                Change::Write(offset, bytes) => last.max(offset + bytes.len()),
                Change::Resize(len) => *len,
            };
            longest = longest.max(len);
            lens.push(len);
        }
        let mut by_sector: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
        for (at, change) in changes.iter().enumerate() {
            for sector in change.sectors(longest) {
                by_sector.entry(sector).or_default().push(at);
            }
        }
        self.platter.resize(longest.next_multiple_of(SECTOR), 0);
        for (sector, of_sector) in by_sector {
            let version = random.below(of_sector.len() + 1);
            let bytes = &mut self.platter[sector * SECTOR..(sector + 1) * SECTOR];
            let mut new = [0; SECTOR];
            new.copy_from_slice(bytes);
            for &at in &of_sector[..version] {
                changes[at].apply_to_sector(sector, &mut new);
            }
            bytes.copy_from_slice(&new);
        }
        let len = *random.pick(&lens);
        self.platter.resize(len, 0);
    }
}

fn put(to: &mut Vec<u8>, offset: usize, bytes: &[u8]) {
    if bytes.is_empty() {
        return;
    }
    let end = offset + bytes.len();
    if to.len() < end {
        to.resize(end, 0);
    }
    to[offset..end].copy_from_slice(bytes);
}

impl State {
    /// Returns a random number.
    pub fn name_number(&mut self) -> u64 {
        self.random.next()
    }
}
