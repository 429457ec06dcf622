//! The online index: is a document new, and if not, of which is it a near-duplicate?
//!
//! A store ([`likewise_disk::store`]) is the source of truth. What makes answers fast is derived from it: segments on
//! disk ([`likewise_disk::segments`]) and the newest rows in memory. Documents are decided one by one, by the rule of a
//! batch run that keeps the first.
//!
//! Functions that return a `Result` fail with the errors of the store and of segments (`Error::Disk`, also when
//! canceled), methods of [`Index`] also with `Error::Forked`, `Error::Closed`, `Error::ReadOnly` or
//! `Error::UnknownId`, and functions of [`cluster`] with `Error::Unreadable` for malformed bytes. Their documentation
//! names only other causes.

mod add;
mod clock;
pub mod cluster;
mod decide;
mod documents;
mod error;
mod index;
mod keys;
mod load;
mod moving;
mod queries;
mod rules;
mod shared;
mod state;
mod upkeep;

pub use add::TextOf;
pub use decide::nearest::{Nearest, Neighbor};
pub use decide::other_text;
pub use decide::removal::Removal;
pub use documents::{Documents, MakeExtractor, Sketching, TextKind};
pub use error::{Error, Result};
pub use index::{Index, Opening};
pub use moving::Standing as IndexStanding;
pub use queries::StoredPart;
pub use queries::{Among, Group, Removed, Verdicts};
pub use rules::{Matching, Method, Rules, SHORT_FEATURES};
pub use upkeep::Facts;
pub use upkeep::sweep::{Purged, Standing, StoredRecord};
