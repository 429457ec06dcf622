//! What do all threads of an open index share?

use std::collections::HashSet;
use std::ops::Deref;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64};
use std::sync::{Arc, Mutex, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use likewise_core::isa::Isa;
use likewise_core::parallel::lock;
use likewise_disk::environment::{Environment, Files};
use likewise_disk::segments::MIN_ROWS;
use likewise_disk::store::{ArrivalShift, Content, Loss, Row, Store, StoreSource};
use likewise_hamming::plan::SearchPlan;

use crate::clock::IndexClock;
use crate::decide::holder::Holder;
use crate::decide::lookup::{Lent, Records, stored_row};
use crate::decide::pool::Sketched;
use crate::documents::{Sketcher, Sketching};
use crate::error::Result;
use crate::keys::Keys;
use crate::rules::{Method, Rules};
use crate::state::bits::RecentSets;
use crate::state::plan::{plan_like, sample};
use crate::state::{Layer, State};

/// Minimum and maximum of rows in memory at which fingerprints become a segment; about 200 bytes each.
const FLUSH_FINGERPRINTS: u32 = 1 << 17;
const MAX_FLUSH: u32 = 1 << 19;
/// Between these, one of this many rows of the index.
const FLUSH_PART: u32 = 32;
/// Rows in memory at which signatures become a segment; about a kilobyte each.
const FLUSH_SIGNATURES: u32 = 1 << 16;
pub const SEGMENTS: &str = "segments";

/// An open index. Locks are taken in this order: `writer`, `follower`, `state`, `sketched`; all others for a statement.
pub struct Shared {
    pub dir: PathBuf,
    /// Whether another process may be writing to it.
    pub is_reader: bool,
    /// Opens its database again.
    pub source: StoreSource,
    pub sketching: Sketching,
    /// How fingerprints in memory are searched; chosen again from the most recent ones.
    pub plan: RwLock<Option<SearchPlan>>,
    pub keys: Keys,
    /// Everything derived from the store.
    pub state: RwLock<State>,
    /// The store, open for writing; `None` in a reader or after close.
    pub writer: Mutex<Option<Store>>,
    /// In a reader, the connection that follows the writer.
    pub follower: Mutex<Option<Store>>,
    /// Idle connections for reading.
    pub readers: Mutex<Vec<Store>>,
    /// Recently used feature sets.
    pub recent: RecentSets,
    /// Seconds after which a document expires.
    pub ttl_s: Option<u64>,
    /// Whether the duplicates of a document that is gone take its place.
    pub is_renewed: bool,
    pub process: u32,
    pub stop: AtomicBool,
    /// Whether it was closed.
    pub is_closed: AtomicBool,
    pub is_building: AtomicBool,
    pub new_log_pages: AtomicU32,
    /// Whether a checkpoint is running.
    pub is_checkpointing: AtomicBool,
    /// Segments that were damaged, missing or stale and were built again.
    pub num_rebuilt: AtomicU64,
    /// Names of those while they are live; they are not opened again. Names are never reused.
    pub avoided: Mutex<HashSet<String>>,
    /// How often layers were replaced: by loading the state, or by a segment that was built.
    pub num_replacements: AtomicU64,
    /// Whether an error left the state half changed, so that it must be loaded before it is used.
    pub is_stale: AtomicBool,
    /// The interval of time in which the files of segments were last checked.
    pub last_look: AtomicU64,
    pub num_built: AtomicU64,
    /// Why the last background build failed.
    pub build_error: Mutex<Option<String>>,
    /// The clock for documents that expire; `None` without a `ttl`, and in a reader.
    pub clock: Mutex<Option<IndexClock>>,
    /// How arrival times are corrected.
    pub arrival_shift: Mutex<Option<ArrivalShift>>,
    /// The loss that was accepted when the index was opened.
    pub loss: Mutex<Option<Loss>>,
    /// What a copy of the directory lacks of its original, according to its mark when it was opened.
    pub copy_lacks: Mutex<Option<Loss>>,
    /// The sketches of all rows, after the first search for neighbors.
    pub sketched: Mutex<Arc<Sketched>>,
    /// Rows in memory at which a segment is built, if given.
    pub flush_rows: Option<u32>,
    /// Files, clock and background work.
    pub environment: Environment,
    pub sketchers: Mutex<Vec<Sketcher>>,
}

impl Shared {
    pub fn rules(&self) -> &Rules {
        &self.sketching.rules
    }

    pub fn isa(&self) -> Isa {
        self.sketching.isa
    }

    pub fn files(&self) -> &dyn Files {
        self.environment.files.as_ref()
    }

    pub fn segment_dir(&self) -> PathBuf {
        self.dir.join(SEGMENTS)
    }

    pub fn state(&self) -> RwLockReadGuard<'_, State> {
        self.state.read().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn state_mut(&self) -> RwLockWriteGuard<'_, State> {
        self.state.write().unwrap_or_else(PoisonError::into_inner)
    }

    /// A connection that can read all rows of the state: in a reader one snapshot, in which none was dropped
    /// ([`likewise_disk::Error::Dropped`] if it must refresh); a writer drops nothing meanwhile.
    pub fn lease(&self, state: &State) -> Result<Lease<'_>> {
        let idle = lock(&self.readers).pop();
        let mut store = match idle {
            Some(store) => store,
            None => self.source.reader()?,
        };
        store.advance(state.position());
        store.correct_arrivals(*lock(&self.arrival_shift));
        let lease = Lease {
            readers: &self.readers,
            store: Some(store),
        };
        if self.is_reader {
            lease.hold(state.droppings)?;
        }
        Ok(lease)
    }

    pub fn plan(&self) -> Option<SearchPlan> {
        let plan = self.plan.read().unwrap_or_else(PoisonError::into_inner);
        plan.clone()
    }

    /// Chooses the plan from the fingerprints in memory, which resemble those to come. If they are few, it is kept.
    pub fn learn_plan(&self) -> Result<()> {
        let sampled = match self.state().layers.last() {
            Some(Layer::Memory(tail)) => self.sample(tail.sketches()),
            _ => None,
        };
        self.plan_like(sampled)
    }

    /// The same from given fingerprints.
    pub fn learn_plan_of(&self, sketches: &[u8]) -> Result<()> {
        self.plan_like(self.sample(sketches))
    }

    fn sample(&self, sketches: &[u8]) -> Option<Vec<u64>> {
        match self.rules().method {
            Method::Simhash { bits, .. } => sample(sketches, bits),
            Method::Minhash { .. } => None,
        }
    }

    fn plan_like(&self, sampled: Option<Vec<u64>>) -> Result<()> {
        if let (Method::Simhash { bits, within }, Some(words)) = (self.rules().method, sampled) {
            let plan = plan_like(&words, bits, within)?;
            *self.plan.write().unwrap_or_else(PoisonError::into_inner) = Some(plan);
        }
        Ok(())
    }

    /// Rows in memory at which a segment is built: a share of all rows, and early the first, for the plan.
    pub fn flush_rows(&self, num_rows: u32) -> u32 {
        let least = match self.rules().method {
            Method::Simhash { .. } => FLUSH_FINGERPRINTS,
            Method::Minhash { .. } => return self.flush_rows.unwrap_or(FLUSH_SIGNATURES).max(1),
        };
        let usual = match num_rows < least {
            true => MIN_ROWS,
            false => (num_rows / FLUSH_PART).clamp(least, MAX_FLUSH),
        };
        self.flush_rows.unwrap_or(usual).max(1)
    }
}

impl Holder for Shared {
    fn sketching(&self) -> &Sketching {
        &self.sketching
    }

    fn recent(&self) -> &RecentSets {
        &self.recent
    }

    fn keys(&self) -> &Keys {
        &self.keys
    }

    fn plan(&self) -> Option<SearchPlan> {
        Shared::plan(self)
    }

    fn records(&self, state: &State) -> Result<Box<dyn Records + '_>> {
        Ok(Box::new(Lent(self.lease(state)?)))
    }
}

impl Records for Store {
    fn row(&self, state: &State, row: u32) -> Result<Row> {
        stored_row(state, self, row)
    }

    fn id(&self, row: u32) -> Result<String> {
        Ok(Store::id(self, row)?)
    }

    fn content(&self, row: u32) -> Result<Content> {
        Ok(Store::content(self, row)?)
    }

    fn read_together(&self, read: &mut dyn FnMut(&dyn Records) -> Result<()>) -> Result<()> {
        Store::read_together(self, |store| read(store))
    }
}

/// A connection for one thread, which is idle again when this is dropped.
pub struct Lease<'a> {
    readers: &'a Mutex<Vec<Store>>,
    store: Option<Store>,
}

impl Deref for Lease<'_> {
    type Target = Store;

    fn deref(&self) -> &Store {
        match &self.store {
            Some(store) => store,
            None => unreachable!("taken when dropped only"),
        }
    }
}

impl Drop for Lease<'_> {
    fn drop(&mut self) {
        if let Some(store) = self.store.take() {
            store.release();
            lock(self.readers).push(store);
        }
    }
}
