//! Which documents stay, and which belong together?
//!
//! [`Leaders`] is the decision rule: no chains, every removal measured against a kept document. [`components`] joins whatever is
//! connected, for comparison.

mod components;
mod leaders;

pub use crate::states::{KEPT, REMOVED, UNDECIDED};
pub use components::{Components, components};
pub use leaders::{Leaders, NO_MATCH, RangeVerdicts, decide_range};
