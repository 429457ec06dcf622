//! What does the rule ask of whatever holds an index?
//!
//! The rule works on a [`State`], which finds rows, and on records of rows that the state does not hold itself. An index in a directory takes both
//! from its files; an index on a cluster takes them from what a client read of the servers.

use likewise_disk::store::{Content, Row, Store};
use likewise_hamming::plan::SearchPlan;

use crate::decide::lookup::{Lookup, stored_row};
use crate::documents::Sketching;
use crate::error::Error;
use crate::keys::Keys;
use crate::shared::Lease;
use crate::state::State;
use crate::state::recent_sets::RecentSets;

/// What is kept of each document, by row.
pub trait Records {
    /// A row that no layer of the state holds in memory.
    ///
    /// # Errors
    /// Those of the store.
    fn row(&self, state: &State, row: u32) -> Result<Row, Error>;

    /// The user's id of such a row.
    ///
    /// # Errors
    /// Those of the store.
    fn id(&self, row: u32) -> Result<String, Error>;

    /// What is kept of any row beside its sketch.
    ///
    /// # Errors
    /// Those of the store.
    fn content(&self, row: u32) -> Result<Content, Error>;

    /// Runs `read` on one state of the records.
    ///
    /// # Errors
    /// Those of `read` and of the store.
    fn read_together(
        &self,
        read: &mut dyn FnMut(&dyn Records) -> Result<(), Error>,
    ) -> Result<(), Error>;
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

/// Whatever holds an index.
pub trait Holder: Sync {
    /// Rules and features.
    fn sketching(&self) -> &Sketching;

    /// Feature sets asked for lately.
    fn recent(&self) -> &RecentSets;

    /// Band keys, to be copied.
    fn keys(&self) -> &Keys;

    /// How fingerprints in memory are searched.
    fn plan(&self) -> Option<SearchPlan>;

    /// Records for one more thread, of all rows that the state knows.
    ///
    /// # Errors
    /// Those of the store.
    fn records(&self, state: &State) -> Result<Box<dyn Records + '_>, Error>;

    /// A lookup at a state.
    fn lookup<'a>(&'a self, state: &'a State, records: &'a dyn Records) -> Lookup<'a> {
        Lookup::new(
            state,
            records,
            self.sketching(),
            self.recent(),
            self.keys().clone(),
        )
    }
}
