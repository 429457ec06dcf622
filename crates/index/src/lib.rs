//! The online index: has a document been seen before, and of which is it a near-duplicate?
//!
//! The truth is a store ([`likewise_disk::store`]); what makes answers fast is derived from it: segments on disk
//! ([`likewise_disk::segments`]) and a tail in memory. The rule of decision is that of a batch run that keeps the first, document by document.

mod add;
mod ahead;
mod asks;
mod bits;
mod buckets;
mod build;
mod clock;
mod decide;
mod documents;
mod drain;
mod error;
mod heal;
mod index;
mod keys;
mod known;
mod late;
mod load;
mod look;
mod measure;
mod near;
mod plan;
mod removal;
mod rows_by_hash;
mod rules;
mod sets;
mod shared;
mod source;
mod staged;
mod state;
mod sweep;
mod tail;
mod upkeep;

pub use add::TextOf;
pub use asks::{Group, Neighbour, Removed, Verdicts};
pub use documents::{Documents, MakeExtractor, Sketching, TextKind};
pub use error::Error;
pub use index::{Index, Opening};
pub use removal::Removal;
pub use rules::{Matching, Method, Rules, SHORT_FEATURES};
pub use upkeep::Facts;
