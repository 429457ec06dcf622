//! A disk in memory, under a file system with a cache.
//!
//! Processes see what was written; the platter has what was synced. A power cut keeps any version that a sector of a file had since its last sync, any of
//! its lengths, and some of the names that were not synced. A kill loses nothing that was written.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::random::Random;
use crate::scheduler::Scheduler;
use crate::shared_memory::SharedMemory;

/// Bytes that the disk writes whole or not at all.
pub const SECTOR: usize = 512;

/// The number of a file.
pub type Inode = usize;

/// What a name names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Named {
    /// A directory.
    Directory,
    /// A file.
    File(Inode),
}

/// A change of a file that was not synced.
#[derive(Debug, Clone)]
enum Change {
    Write(usize, Vec<u8>),
    Resize(usize),
}

/// A change of names that was not synced; those of one step happen together or not at all.
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
    /// What processes read.
    cached: Vec<u8>,
    /// What the platter has.
    platter: Vec<u8>,
    /// What leads from the platter to the cache.
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

/// What an operation does, as far as faults ask.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// It reads.
    Read,
    /// It takes room.
    Write,
    /// It makes bytes or names durable.
    Sync,
    /// It changes names or lengths without taking room.
    Other,
}

/// An error that operations give.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Failure {
    /// The device fails.
    Device,
    /// No room is left.
    Full,
    /// The device fails when it is to make something durable; other operations are not counted.
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

/// What a disk does to a write without a word.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lie {
    /// It never happens.
    Lost,
    /// Some of its sectors never do.
    Torn,
    /// It goes to another place.
    Misdirected,
}

/// Files that a fault is to hit.
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
    /// Whether a file is meant.
    pub fn is(self, path: &Path) -> bool {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        match self {
            Target::Derived => name.starts_with("rows-") || name.starts_with(".rows-"),
            Target::Database => name == "documents.sqlite",
            Target::Log => name == "documents.sqlite-wal",
        }
    }
}

/// What is to go wrong.
#[derive(Debug, Default)]
pub struct Faults {
    /// After so many operations that many fail.
    pub failure: Option<(u64, u64, Failure)>,
    /// After so many operations the process dies.
    pub death: Option<(u64, Death)>,
    /// After so many syncs of such a file one of the writes is not what it should be, and that shows at once or after the next start.
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
    /// Number of the process; what older ones opened is dead.
    pub process: u64,
    /// How the process died, if so.
    pub death: Option<Death>,
    /// What is to go wrong.
    pub faults: Faults,
    /// Failures that operations were given.
    pub num_failures: u64,
    /// Lies that were told.
    pub num_lies: u64,
    /// Operations so far.
    pub num_operations: u64,
    /// A hash of all operations so far.
    pub trace: u64,
    /// Where the power may go, if that is recorded.
    pub points: Option<Vec<PowerPoint>>,
    /// A number of the caller's, put into those.
    pub note: usize,
    /// All operations as text, where wanted.
    pub log: Option<String>,
    pub(crate) shared_memory: BTreeMap<Inode, Arc<SharedMemory>>,
}

/// The disk.
#[derive(Debug)]
pub struct Disk {
    state: Mutex<State>,
    scheduler: Mutex<Arc<Scheduler>>,
}

/// A disk as it is at one moment, with nothing unsynced.
#[derive(Debug, Clone)]
pub struct Image {
    nodes: Vec<Node>,
    names: BTreeMap<PathBuf, Named>,
}

/// What the platter has at one moment, and what the disk was told and has not made durable.
#[derive(Debug, Clone)]
pub struct PowerPoint {
    /// The caller's number at that moment.
    pub note: usize,
    platters: Vec<Vec<u8>>,
    changes: Vec<Vec<Change>>,
    names: BTreeMap<PathBuf, Named>,
    name_changes: Vec<NameChange>,
}

/// Which of some changes the disk made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Made {
    /// So many from the front.
    First(usize),
    /// So many from the front, and the first or the last half of the sectors of the next.
    Torn(usize, bool),
    /// All but this one.
    AllBut(usize),
}

impl Made {
    fn all(num: usize, may_tear: bool) -> Vec<Made> {
        let mut all: Vec<Made> = (0..=num).map(Made::First).collect();
        if may_tear {
            let torn = |at| [Made::Torn(at, false), Made::Torn(at, true)];
            all.extend((0..num).flat_map(torn));
        }
        // Without the last it is a beginning.
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
    /// The disks that a machine may find after the power went here.
    ///
    /// One file, or the names, is in each state of the bound, while the others have none or all of their changes.
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

    /// A hash of all names and what they name.
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
    /// An empty disk with a root directory, or the copy of another.
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

    /// The state.
    pub fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The tasks of the present process.
    pub fn scheduler(&self) -> Arc<Scheduler> {
        let scheduler = self.scheduler.lock();
        scheduler.unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Begins an operation of a process on a file that the task `owner` opened.
    ///
    /// # Errors
    /// Where a fault is due, or the process is dead.
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

    /// A new process on the machine; everything of the last one is dead.
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

    /// A copy of all files, as processes see them.
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

    /// Remembers that the power may go here, unless nothing changed since the last time.
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

    /// What a name names.
    pub fn named(&self, path: &Path) -> io::Result<Named> {
        let named = self.names.get(path).copied();
        named.ok_or_else(|| io::ErrorKind::NotFound.into())
    }

    /// The file that a name names.
    pub fn file(&self, path: &Path) -> io::Result<Inode> {
        match self.named(path)? {
            Named::File(inode) => Ok(inode),
            Named::Directory => Err(io::ErrorKind::IsADirectory.into()),
        }
    }

    /// Names in a directory.
    pub fn list(&self, directory: &Path) -> io::Result<Vec<(PathBuf, Named)>> {
        if self.named(directory)? != Named::Directory {
            return Err(io::ErrorKind::NotADirectory.into());
        }
        let names = self.names.iter();
        let inside = names.filter(|(path, _)| path.parent() == Some(directory));
        Ok(inside.map(|(path, &named)| (path.clone(), named)).collect())
    }

    /// A file.
    pub fn node(&mut self, inode: Inode) -> &mut Node {
        &mut self.nodes[inode]
    }

    /// The bytes of a file as processes see them.
    pub fn bytes(&self, inode: Inode) -> &[u8] {
        &self.nodes[inode].cached
    }

    /// A new file without a name.
    pub fn make_node(&mut self) -> Inode {
        self.nodes.push(Node::default());
        self.nodes.len() - 1
    }

    /// Makes a name.
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

    /// Gives a file another name.
    pub fn rename(&mut self, from: &Path, to: &Path) -> io::Result<()> {
        let named = self.named(from)?;
        self.change_names(NameChange {
            set: Some((to.to_owned(), named)),
            unset: Some(from.to_owned()),
        });
        Ok(())
    }

    /// Takes a name away.
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

    /// Writes bytes of a file.
    pub fn write(&mut self, inode: Inode, offset: usize, bytes: &[u8]) {
        let node = &mut self.nodes[inode];
        put(&mut node.cached, offset, bytes);
        node.changes.push(Change::Write(offset, bytes.to_vec()));
    }

    /// Gives a file another length.
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

    /// A sync that failed: what was not written counts as clean from now on, and may never reach the platter.
    pub fn fail_sync(&mut self, inode: Inode) {
        let random = &mut self.random;
        let changes = &mut self.nodes[inode].changes;
        let is_all = random.percent(50);
        changes.retain(|change| {
            matches!(change, Change::Resize(_)) || (!is_all && random.percent(50))
        });
    }

    /// A write that failed: some of it may be there.
    pub fn fail_write(&mut self, inode: Inode, offset: usize, bytes: &[u8]) {
        if self.random.percent(50) {
            let num = self.random.below(bytes.len() + 1);
            self.write(inode, offset, &bytes[..num]);
        }
    }

    /// Flips a bit of a file that is meant, in the cache and on the platter; says where.
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
        // Small tables stand at the front, and a random byte would hardly ever hit them.
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

    /// Ends the process: its locks and its shared memory go.
    fn end_process(&mut self) {
        for node in &mut self.nodes {
            node.locks = Locks::default();
            node.is_locked = false;
        }
        self.shared_memory.clear();
    }

    /// What the machine finds when it starts again: of all that was not synced, what the disk chose to write.
    pub fn cut_power(&mut self) {
        let mut names = std::mem::take(&mut self.platter_names);
        let changes = std::mem::take(&mut self.name_changes);
        let random = &mut self.random;
        // Journals keep a beginning of all; other file systems any of them.
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
        // What is in a directory that is not there is not there.
        let all = names.clone();
        names.retain(|path, _| path.ancestors().all(|path| all.contains_key(path)));
        for node in &mut self.nodes {
            node.settle(random);
        }
        self.platter_names = names.clone();
        self.names = names;
        self.end_process();
    }

    /// What the machine finds when it starts again after the power went, if the disk made nothing durable that it was not told to.
    pub fn lose_unsynced(&mut self) {
        self.names = self.platter_names.clone();
        self.name_changes.clear();
        for node in &mut self.nodes {
            node.changes.clear();
            node.cached = node.platter.clone();
        }
        self.end_process();
    }

    /// The machine stops in order and starts again: what the platter has shows from now on.
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

    /// The sectors that it changes, of a file of at most `len` bytes.
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
    /// Chooses what a power cut leaves.
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

    /// Gives each sector any of its versions, and the file any of its lengths.
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
    /// A random number.
    pub fn name_number(&mut self) -> u64 {
        self.random.next()
    }
}
