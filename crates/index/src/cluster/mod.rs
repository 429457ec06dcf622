//! How does the rule decide on documents that are spread over the servers of a cluster?
//!
//! The rule is that of [`crate::decide`]. It works on a state in memory that contains what a client read: all rows that the documents of one operation
//! can meet, and what operations decided that no server shows yet. [`Decision`] names what must be read, takes it, and decides.
//! `docs/developers/cluster.md` specifies the protocol around it.

mod answer;
mod bytes;
mod decision;
mod effects;
mod known;
mod moved;
mod names;
mod operation;
mod reading;
mod record;
mod rule;

pub use answer::{Answer, Changed, Finding, Listed, Reason, RemovedRecord, Reply};
pub use decision::Decision;
pub use decision::Restoring;
pub use effects::Effects;
pub use moved::{MovedDocument, RowNumbers};
pub use names::{Names, NamesCost};
pub use operation::{Kind, Operation};
pub use reading::{Arrived, Past, Wanted};
pub use record::{Record, Reference, Tag, Verdict};
pub use rule::{ClusterRule, Counts};
