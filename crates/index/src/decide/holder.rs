//! What does the rule need from an index, embedded or on a cluster?
//!
//! The rule works on a [`State`], which finds rows, and on [`Records`] of rows that the state does not hold itself. An index in a directory takes both
//! from its files; an index on a cluster takes them from what a client read of the servers.

use likewise_hamming::plan::SearchPlan;

use crate::decide::lookup::{Lookup, Records};
use crate::documents::Sketching;
use crate::error::Result;
use crate::keys::Keys;
use crate::state::State;
use crate::state::bits::RecentSets;

pub trait Holder: Sync {
    fn sketching(&self) -> &Sketching;

    fn recent(&self) -> &RecentSets;

    /// Band keys, to be copied.
    fn keys(&self) -> &Keys;

    fn plan(&self) -> Option<SearchPlan>;

    /// Records for one more thread, of all rows that the state knows.
    fn records(&self, state: &State) -> Result<Box<dyn Records + '_>>;

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
