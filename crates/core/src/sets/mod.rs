//! Which feature sets share so many of their rarest features that they may reach a threshold?
//!
//! An exact join by prefix filter (Bayardo, Ma, Srikant: Scaling Up All Pairs Similarity Search, WWW 2007; Xiao, Wang, Lin, Yu:
//! Efficient Similarity Joins for Near Duplicate Detection, WWW 2008). With the features of every set in one order, rare
//! ones first, two sets that reach the threshold share a feature among the first few of each, the *prefix*. [`Rarity`]
//! counts how many documents hold a feature, [`Prefixes`] gathers the prefixes, [`PrefixJoin`] lists for each document the earlier
//! ones that may match. No pair that reaches what it needs ([`Demand`]) is missing; the module `verify` measures those
//! listed.
//!
//! [`References`] answer another question by lists of all features: which of some references does a set carry? [`Rarest`]
//! finds the pairs of a sample for audits.
//!
//! The join nominates pairs and never decides: its bounds are slightly wider than the threshold (rounded to 24 bits),
//! and `verify` has the last word. Feature sets are not stored. Texts are counted when they are first read, and read
//! again for their prefixes, so memory follows what documents share. Removed documents are dropped from the lists.

mod forms;
mod gather;
mod join;
mod limit;
mod lists;
mod prefix;
mod rarest;
mod rarity;
mod references;
mod scan;
mod scratch;
#[cfg(test)]
mod tests;

pub use forms::Forms;
pub(crate) use gather::MixHasher;
pub use gather::{Parted, Prefixes};
pub use join::PrefixJoin;
pub use limit::{Demand, Limit, SetMeasure};
pub use prefix::{Batch, Chooser};
pub use rarest::{Judge, Rarest};
pub use rarity::{Rarity, Wanted};
pub use references::{Answer, Matcher, References, score, size_of};
