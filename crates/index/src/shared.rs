//! What do all threads of an open index share?

use std::collections::HashSet;
use std::ops::Deref;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64};
use std::sync::{Arc, Mutex, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use likewise_core::isa::Isa;
use likewise_disk::environment::{Environment, Files};
use likewise_disk::segments::MIN_ROWS;
use likewise_disk::store::{ArrivalShift, Content, Loss, Row, Store, StoreSource};
use likewise_hamming::plan::SearchPlan;

use crate::clock::IndexClock;
use crate::decide::holder::Holder;
use crate::decide::lookup::stored_row;
use crate::decide::pool::Sketched;
use crate::decide::records::Records;
use crate::documents::{Sketcher, Sketching};
use crate::error::Error;
use crate::keys::Keys;
use crate::lock::lock;
use crate::rules::{Method, Rules};
use crate::state::plan::{plan_like, sample};
use crate::state::recent_sets::RecentSets;
use crate::state::{Layer, State};

/// Whether segments are built.
pub const HAS_SEGMENTS: bool = true;
/// Least and most rows in memory at which fingerprints become a segment; some 200 bytes each.
const FLUSH_FINGERPRINTS: u32 = 1 << 17;
/// As above.
const MAX_FLUSH: u32 = 1 << 19;
/// Between these, one in so many of all rows.
const FLUSH_PART: u32 = 32;
/// Rows in memory at which signatures become a segment; about a kilobyte each.
const FLUSH_SIGNATURES: u32 = 1 << 16;
/// Name of the directory of segments inside that of the index.
pub const SEGMENTS: &str = "segments";

/// An open index.
pub struct Shared {
    /// Its directory.
    pub dir: PathBuf,
    /// Whether another process may write it meanwhile.
    pub is_reader: bool,
    /// Opens its database once more.
    pub source: StoreSource,
    /// Rules and features.
    pub sketching: Sketching,
    /// How fingerprints in memory are searched; chosen again by those that came last.
    pub plan: RwLock<Option<SearchPlan>>,
    /// Band keys, to be copied.
    pub keys: Keys,
    /// What is known.
    pub state: RwLock<State>,
    /// The truth, for whoever writes; none in a reader, or once closed.
    pub writer: Mutex<Option<Store>>,
    /// In a reader, what follows the writer.
    pub follower: Mutex<Option<Store>>,
    /// The truth for those who read at once.
    pub readers: Mutex<Vec<Store>>,
    /// Feature sets asked for lately.
    pub recent: RecentSets,
    /// Seconds after which a document is gone.
    pub ttl_s: Option<u64>,
    /// Whether the duplicates of a document that is gone take its place.
    pub is_renewed: bool,
    /// The process that opened it.
    pub process: u32,
    /// Ends what goes on in the background.
    pub stop: AtomicBool,
    /// Whether it was closed.
    pub is_closed: AtomicBool,
    /// Whether something builds segments now.
    pub is_building: AtomicBool,
    /// Pages of the log since it was brought into the database last.
    pub new_log_pages: AtomicU32,
    /// Whether something brings the log into the database now.
    pub is_checkpointing: AtomicBool,
    /// Segments that were damaged, missing or stale and were built again.
    pub num_rebuilt: AtomicU64,
    /// Names of those as long as they are live, which are not opened again. A name is never given twice.
    pub avoided: Mutex<HashSet<String>>,
    /// How often layers were replaced: the state was loaded as a whole, or a built segment took the place of some.
    pub num_replacements: AtomicU64,
    /// Whether an error left the state half changed: it is loaded again before it is used.
    pub is_stale: AtomicBool,
    /// In which stretch of time the files of segments were looked at last.
    pub last_look: AtomicU64,
    /// Segments built.
    pub num_built: AtomicU64,
    /// Why the last build in the background failed.
    pub build_error: Mutex<Option<String>>,
    /// The time for documents that are forgotten by age; none where none are, and in a reader.
    pub clock: Mutex<Option<IndexClock>>,
    /// How arrivals are corrected.
    pub arrival_shift: Mutex<Option<ArrivalShift>>,
    /// What was lost, and accepted when the index was opened.
    pub loss: Mutex<Option<Loss>>,
    /// What a copy of the directory lacks of its original, as far as its mark shows when it is opened.
    pub copy_lacks: Mutex<Option<Loss>>,
    /// The sketches of all rows, once neighbors were asked for.
    pub sketched: Mutex<Arc<Sketched>>,
    /// Rows in memory at which a segment is built, where that was given.
    pub flush_rows: Option<u32>,
    /// Files, clock and background work.
    pub environment: Environment,
    /// What made features of single documents.
    pub sketchers: Mutex<Vec<Sketcher>>,
}

impl Shared {
    /// The rules.
    pub fn rules(&self) -> &Rules {
        &self.sketching.rules
    }

    /// The instruction set.
    pub fn isa(&self) -> Isa {
        self.sketching.isa
    }

    /// The files.
    pub fn files(&self) -> &dyn Files {
        self.environment.files.as_ref()
    }

    /// The directory of segments.
    pub fn segment_dir(&self) -> PathBuf {
        self.dir.join(SEGMENTS)
    }

    /// What is known, to look at.
    pub fn state(&self) -> RwLockReadGuard<'_, State> {
        self.state.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// What is known, to change.
    pub fn state_mut(&self) -> RwLockWriteGuard<'_, State> {
        self.state.write().unwrap_or_else(PoisonError::into_inner)
    }

    /// A store to read from that knows all that the state knows. In a reader it stays at one state of the database, in which nothing that the state
    /// knows was dropped; beside a writer that drops nothing while somebody looks at the state there is no need to.
    ///
    /// # Errors
    /// [`likewise_disk::Error::Dropped`] where a reader is to follow first; those of the store.
    pub fn lease(&self, state: &State) -> Result<Lease<'_>, Error> {
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

    /// How fingerprints in memory are searched.
    pub fn plan(&self) -> Option<SearchPlan> {
        let plan = self.plan.read().unwrap_or_else(PoisonError::into_inner);
        plan.clone()
    }

    /// Chooses the plan by the fingerprints in memory, which are like those to come. Of few it stays as it is.
    ///
    /// # Errors
    /// Those of the plan.
    pub fn learn_plan(&self) -> Result<(), Error> {
        let sampled = match self.state().layers.last() {
            Some(Layer::Memory(tail)) => self.sample(tail.sketches()),
            _ => None,
        };
        self.plan_like(sampled)
    }

    /// The same by given ones.
    ///
    /// # Errors
    /// Those of the plan.
    pub fn learn_plan_of(&self, sketches: &[u8]) -> Result<(), Error> {
        self.plan_like(self.sample(sketches))
    }

    fn sample(&self, sketches: &[u8]) -> Option<Vec<u64>> {
        match self.rules().method {
            Method::Simhash { bits, .. } => sample(sketches, bits),
            Method::Minhash { .. } => None,
        }
    }

    fn plan_like(&self, sampled: Option<Vec<u64>>) -> Result<(), Error> {
        if let (Method::Simhash { bits, within }, Some(words)) = (self.rules().method, sampled) {
            let plan = plan_like(&words, bits, within)?;
            *self.plan.write().unwrap_or_else(PoisonError::into_inner) = Some(plan);
        }
        Ok(())
    }

    /// Rows in memory at which a segment is built: a part of all rows that are held, so that there are few segments and little memory. The first segment is
    /// built early; it tells what fingerprints are like.
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

    fn records(&self, state: &State) -> Result<Box<dyn Records + '_>, Error> {
        Ok(Box::new(self.lease(state)?))
    }
}

impl Records for Store {
    fn row(&self, state: &State, row: u32) -> Result<Row, Error> {
        stored_row(state, self, row)
    }

    fn id(&self, row: u32) -> Result<String, Error> {
        Ok(Store::id(self, row)?)
    }

    fn content(&self, row: u32) -> Result<Content, Error> {
        Ok(Store::content(self, row)?)
    }

    fn read_together(
        &self,
        read: &mut dyn FnMut(&dyn Records) -> Result<(), Error>,
    ) -> Result<(), Error> {
        Store::read_together(self, |store| read(store))
    }
}

impl Records for Lease<'_> {
    fn row(&self, state: &State, row: u32) -> Result<Row, Error> {
        Records::row(&**self, state, row)
    }

    fn id(&self, row: u32) -> Result<String, Error> {
        Records::id(&**self, row)
    }

    fn content(&self, row: u32) -> Result<Content, Error> {
        Records::content(&**self, row)
    }

    fn read_together(
        &self,
        read: &mut dyn FnMut(&dyn Records) -> Result<(), Error>,
    ) -> Result<(), Error> {
        Records::read_together(&**self, read)
    }
}

/// A store for one thread; it goes back to the others when dropped.
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
