//! How is an index opened, asked, and added to?

use likewise_core::parallel::lock;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, RwLock, RwLockWriteGuard};
use std::time::Duration;

use likewise_disk::environment::{Environment, Task, process_id};
use likewise_disk::segments::delete_orphans;
use likewise_disk::store::{Description, Durability, Event, NewRows, Position, Store};

use crate::clock::{IndexClock, Known, Moment};
use crate::decide::holder::Holder;
use crate::documents::Sketching;
use crate::error::{Error, Result};
use crate::keys::Keys;
use crate::load::{apply_events, extend_rows};
use crate::rules::Method;
use crate::shared::Shared;
use crate::state::bits::RecentSets;
use crate::state::in_memory::MemoryRows;
use crate::state::plan::plan_of_coins;
use crate::state::{Layer, State};

/// An open index; any number of threads may use it at once.
pub struct Index {
    pub(crate) shared: Arc<Shared>,
    pub(crate) tasks: Mutex<Vec<Box<dyn Task>>>,
}

/// A flag that is cleared when this is dropped, also after a panic or if no thread started: others wait for it.
struct Taken {
    shared: Arc<Shared>,
    flag: fn(&Shared) -> &AtomicBool,
}

impl Drop for Taken {
    fn drop(&mut self) {
        (self.flag)(&self.shared).store(false, Ordering::Release);
    }
}

#[derive(Clone)]
pub struct Opening {
    pub sketching: Sketching,
    /// When an addition is safe from power loss.
    pub durability: Durability,
    /// Seconds after which a document is gone.
    pub ttl_s: Option<u64>,
    /// Whether the duplicates of a document that is gone take its place.
    pub is_renewed: bool,
    /// Rows in memory at which a segment is built; a usual number where `None`.
    pub flush_rows: Option<u32>,
    /// Whether to open an index to write from which acknowledged documents were lost.
    pub accept_loss: bool,
    /// Whether the machine's clock is right, however far it is from what was known before.
    pub accept_clock: bool,
    /// Files, clock and background work; the system's outside tests.
    pub environment: Environment,
}

impl Index {
    /// Makes an index in a directory that holds none, and is not on a network file system.
    pub fn create(dir: &Path, description: &Description, opening: Opening) -> Result<Self> {
        let store = Store::create_in(&opening.environment, dir, description, opening.durability)?;
        Index::of_writer(store, opening, &AtomicBool::new(false))
    }

    /// Opens the index of a directory to write and read, in milliseconds after a clean close, else up to a second.
    pub fn open(dir: &Path, opening: Opening, cancel: &AtomicBool) -> Result<Self> {
        let (environment, durability) = (opening.environment.clone(), opening.durability);
        let (store, loss) = match opening.accept_loss {
            true => Store::open_accepting_loss(&environment, dir, durability)?,
            false => (Store::open_in(&environment, dir, durability)?, None),
        };
        let index = Index::of_writer(store, opening, cancel)?;
        *lock(&index.shared.loss) = loss;
        Ok(index)
    }

    /// Opens the index of a directory to read; it follows what its writer commits.
    pub fn open_reader(dir: &Path, opening: Opening, cancel: &AtomicBool) -> Result<Self> {
        let mut store = Store::open_reader_in(&opening.environment, dir)?;
        store.check_loss()?;
        let shared = Shared::new(&store, opening)?;
        shared.load(&mut store, cancel)?;
        *lock(&shared.follower) = Some(store);
        Ok(Index {
            shared: Arc::new(shared),
            tasks: Mutex::default(),
        })
    }

    fn of_writer(mut store: Store, opening: Opening, cancel: &AtomicBool) -> Result<Self> {
        let (durability, accept_clock) = (opening.durability, opening.accept_clock);
        let shared = Shared::new(&store, opening)?;
        shared.open_clock(&mut store, accept_clock)?;
        let live = store.segment_names()?;
        delete_orphans(&shared.segment_dir(), shared.files(), &live)?;
        shared.load(&mut store, cancel)?;
        *lock(&shared.writer) = Some(store);
        let index = Index {
            shared: Arc::new(shared),
            tasks: Mutex::default(),
        };
        if let Durability::Interval(interval) = durability {
            index.sync_every(interval);
        }
        Ok(index)
    }

    /// Syncs the log this often until the index is closed.
    fn sync_every(&self, interval: Duration) {
        let shared = self.shared.clone();
        let work = move || {
            while !shared.stop.load(Ordering::Relaxed) {
                shared.environment.background.pause(interval);
                if let Some(store) = lock(&shared.writer).as_mut()
                    && let Err(error) = store.sync()
                {
                    *lock(&shared.build_error) = Some(error.to_string());
                }
            }
        };
        self.start("likewise-sync", Box::new(work));
    }

    /// Starts work that closing waits for; the caller has set `flag`, which is cleared at the end.
    pub(crate) fn in_background(
        &self,
        name: &str,
        flag: fn(&Shared) -> &AtomicBool,
        work: impl FnOnce(&Shared) -> Result<()> + Send + 'static,
    ) {
        let taken = Taken {
            shared: self.shared.clone(),
            flag,
        };
        let work = move || {
            if let Err(error) = work(&taken.shared)
                && !error.is_cancelled()
            {
                *lock(&taken.shared.build_error) = Some(error.to_string());
            }
            drop(taken);
        };
        lock(&self.tasks).retain(|task| !task.is_finished());
        self.start(name, Box::new(work));
    }

    /// Starts a task and remembers it, so that it is waited for when the index is closed.
    fn start(&self, name: &str, work: Box<dyn FnOnce() + Send>) {
        match self.shared.environment.background.spawn(name, work) {
            Ok(task) => lock(&self.tasks).push(task),
            Err(error) => *lock(&self.shared.build_error) = Some(error.to_string()),
        }
    }

    /// Refuses a process that was forked from the one that opened the index, and a closed index.
    pub fn guard(&self) -> Result<()> {
        if process_id() != self.shared.process {
            return Err(Error::Forked);
        }
        match self.shared.is_closed.load(Ordering::Relaxed) {
            true => Err(Error::Closed),
            false => Ok(()),
        }
    }

    /// As [`guard`](Self::guard); a reader takes what its writer has committed since.
    pub(crate) fn ready(&self, cancel: &AtomicBool) -> Result<()> {
        self.guard()?;
        self.reload_if_stale(cancel)?;
        self.shared.look_at_segments();
        let mut follower = lock(&self.shared.follower);
        match follower.as_mut() {
            Some(store) => self.shared.follow(store, cancel),
            None => Ok(()),
        }
    }

    pub fn position(&self) -> Position {
        self.shared.state().position()
    }

    pub fn sketching(&self) -> &Sketching {
        &self.shared.sketching
    }

    /// Documents that are not gone.
    pub fn num_documents(&self) -> Result<usize> {
        self.ready(&AtomicBool::new(false))?;
        self.repairing(|| self.shared.state().num_documents())
    }
}

impl Shared {
    fn new(store: &Store, opening: Opening) -> Result<Self> {
        let rules = opening.sketching.rules;
        let plan = match rules.method {
            Method::Simhash { bits, within } => Some(plan_of_coins(bits, within)?),
            Method::Minhash { .. } => None,
        };
        Ok(Shared {
            dir: store.dir().to_owned(),
            is_reader: store.is_reader(),
            source: store.source(),
            keys: Keys::new(&rules),
            sketching: opening.sketching,
            plan: RwLock::new(plan),
            state: RwLock::default(),
            writer: Mutex::new(None),
            follower: Mutex::new(None),
            readers: Mutex::default(),
            recent: RecentSets::default(),
            ttl_s: opening.ttl_s,
            is_renewed: opening.is_renewed,
            process: process_id(),
            stop: AtomicBool::new(false),
            is_closed: AtomicBool::new(false),
            is_building: AtomicBool::new(false),
            new_log_pages: AtomicU32::new(0),
            is_checkpointing: AtomicBool::new(false),
            num_rebuilt: AtomicU64::new(0),
            avoided: Mutex::default(),
            num_replacements: AtomicU64::new(0),
            is_stale: AtomicBool::new(false),
            last_look: AtomicU64::new(0),
            num_built: AtomicU64::new(0),
            build_error: Mutex::default(),
            loss: Mutex::default(),
            copy_lacks: Mutex::new(store.copy_lacks().cloned()),
            sketched: Mutex::default(),
            clock: Mutex::default(),
            arrival_shift: Mutex::default(),
            flush_rows: opening.flush_rows,
            environment: opening.environment,
            sketchers: Mutex::default(),
        })
    }

    /// Takes what the writer has committed since the last look.
    fn follow(&self, store: &mut Store, cancel: &AtomicBool) -> Result<()> {
        store.check_files()?;
        if self.is_stale.load(Ordering::Acquire) {
            return self.load(store, cancel);
        }
        if !store.changed()? {
            return Ok(());
        }
        // One snapshot for all of it, which still contains what the writer drops in the meantime.
        let followed = store.refresh_and_read(|store| self.take_changes(store, cancel));
        match followed {
            Ok(true) => Ok(()),
            Ok(false) => self.load(store, cancel),
            Err(error) => self.changed(store, Err(error), cancel),
        }
    }

    /// Applies what was committed since to the state; returns false if layers changed or events were dropped.
    fn take_changes(&self, store: &Store, cancel: &AtomicBool) -> Result<bool> {
        *lock(&self.arrival_shift) = store.arrival_shift();
        let position = store.position;
        let mut live = store.segments()?;
        {
            let avoided = lock(&self.avoided);
            live.retain(|live| !avoided.contains(&live.name));
        }
        let mut state = self.state_mut();
        let mine = state.segments().map(|segment| segment.name());
        let has_all = state.last_event >= store.num_old_events()?;
        if !has_all || !live.iter().map(|live| live.name.as_str()).eq(mine) {
            return Ok(false);
        }
        let rows = state.num_rows()..position.num_rows;
        if let Some(tail) = state.newest() {
            extend_rows(self, store, tail, rows, cancel)?;
        }
        state.expired_below = position.expired_below;
        state.swept = store.swept()?;
        state.droppings = store.droppings();
        let events = store.events_after(state.last_event)?;
        apply_events(self, store, &mut state, &events)?;
        Ok(true)
    }

    /// Opens the clock if documents expire.
    fn open_clock(&self, store: &mut Store, accept: bool) -> Result<()> {
        *lock(&self.arrival_shift) = store.arrival_shift();
        let Some(ttl_s) = self.ttl_s else {
            return Ok(());
        };
        let clock = self.environment.clock.as_ref();
        let known = Known {
            last_arrival_s: store.last_arrival_s()?,
            marked: store.last_arrival(),
            record: store.clock_record()?,
            num_rows: store.num_rows(),
        };
        let now = Moment {
            wall_s: clock.unix_s(),
            uptime: clock.uptime(),
        };
        *lock(&self.clock) = Some(IndexClock::open(ttl_s, now, known, accept));
        match accept {
            true => self.keep_clock(store),
            // An index without additions does not change.
            false => Ok(()),
        }
    }

    /// The arrival time of documents that are added now; `wall_s` is the clock of the machine.
    pub(crate) fn arrival_time(&self, store: &mut Store, wall_s: u64) -> Result<u64> {
        let now_s = match lock(&self.clock).as_mut() {
            Some(clock) => {
                let uptime = self.environment.clock.uptime();
                clock.now_s(Moment { wall_s, uptime }, store.num_rows())
            }
            None => return Ok(wall_s),
        };
        self.keep_clock(store)?;
        Ok(now_s)
    }

    fn keep_clock(&self, store: &mut Store) -> Result<()> {
        let record = lock(&self.clock).as_mut().and_then(IndexClock::take_record);
        if let Some(record) = record {
            store.set_clock_record(&record)?;
            *lock(&self.arrival_shift) = record.shift;
        }
        Ok(())
    }

    /// Forgets what is too old at a time.
    pub(crate) fn expire(&self, store: &mut Store, now_s: u64, cancel: &AtomicBool) -> Result<()> {
        let Some(ttl_s) = self.ttl_s else {
            return Ok(());
        };
        let below = store.first_row_since(now_s.saturating_sub(ttl_s))?;
        let before = store.position;
        if below <= before.expired_below {
            return Ok(());
        }
        let events = match self.is_renewed {
            true => {
                let state = self.state();
                let mut lookup = self.lookup(&state, store);
                lookup.expiry(before.expired_below..below, self, cancel)?
            }
            false => Vec::new(),
        };
        store.expire(below, &events)?;
        let mut state = self.state_mut();
        state.expired_below = below;
        self.applied(store, state, before.last_event, &events)
    }

    /// Commits events without rows and applies them to the state.
    pub(crate) fn commit_events(&self, store: &mut Store, events: &[Event]) -> Result<()> {
        let before = store.last_event();
        store.append(&NewRows::default(), events)?;
        self.applied(store, self.state_mut(), before, events)
    }

    /// Lets the state know of events that were committed after one.
    fn applied(
        &self,
        store: &mut Store,
        mut state: RwLockWriteGuard<'_, State>,
        before: u64,
        events: &[Event],
    ) -> Result<()> {
        let numbered: Vec<(u64, Event)> = (before + 1..).zip(events.iter().cloned()).collect();
        let applied = apply_events(self, store, &mut state, &numbered);
        drop(state);
        self.changed(store, applied, &AtomicBool::new(false))
    }

    /// Begins a new tail behind the newest rows, so that those before it stay as they are; gives the end of them.
    pub(crate) fn freeze(&self, state: &mut State) -> Result<u32> {
        let end = state.num_rows();
        let is_empty = state.newest().is_none_or(|tail| tail.rows().is_empty());
        if !is_empty {
            let tail = MemoryRows::new(self.rules(), self.plan().as_ref(), end)?;
            state.layers.push(Layer::Memory(Box::new(tail)));
        }
        Ok(end)
    }
}
