//! Which documents are kept, and which belong together?
//!
//! [`Leaders`] is the decision rule: no chains, and every removal is measured against a kept document. [`components`]
//! joins everything that is connected, for comparison. [`EqualKeys`] finds documents that no comparison could distinguish, and ids used
//! twice.
//!
//! The rule for a range of positions is a function of the states before it ([`decide_range`]). It returns verdicts
//! instead of changing states, so the states of all documents need not be copied for each range, and may be in a file.

mod components;
mod equal_keys;
mod leaders;

pub use crate::states::{KEPT, REMOVED, UNDECIDED};
pub use components::{Components, components};
pub use equal_keys::{EqualKeys, Repeated};
pub use leaders::{Leaders, NO_MATCH, RangeVerdicts, decide_range};
