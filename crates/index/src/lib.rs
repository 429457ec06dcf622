//! The online index: has a document been seen before, and of which is it a near-duplicate?
//!
//! The truth is a store ([`likewise_disk::store`]); what makes answers fast is derived from it: segments on disk
//! ([`likewise_disk::segments`]) and the newest rows in memory. The rule of decision is that of a batch run that keeps the first, document by document.

mod add;
mod clock;
pub mod cluster;
mod decide;
mod documents;
mod error;
mod index;
mod keys;
mod load;
mod lock;
mod moving;
mod queries;
mod rules;
mod shared;
mod state;
mod stored;
mod upkeep;

pub use add::TextOf;
pub use decide::nearest::{Nearest, Neighbor};
pub use decide::other_text;
pub use decide::removal::Removal;
pub use documents::{Documents, MakeExtractor, Sketching, TextKind};
pub use error::Error;
pub use index::{Index, Opening};
pub use moving::Standing as IndexStanding;
pub use queries::{Among, Group, Removed, Verdicts};
pub use rules::{Matching, Method, Rules, SHORT_FEATURES};
pub use stored::StoredPart;
pub use upkeep::Facts;
pub use upkeep::erasing::{Purged, Standing, StoredRecord};
