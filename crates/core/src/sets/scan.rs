//! With which earlier documents does a document share enough of its prefix?

use super::join::PrefixJoin;
use super::limit::{Limit, Limits};
use super::lists::{Bounds, Part};
use super::prefix::SetFacts;
use super::scratch::{APART, Scratch};
use crate::features::siblings::COMMON;
use crate::search::REMOVED;

/// Lists with as many documents are looked at by stretches.
const LONG_LIST: usize = 128;
/// Finding a document in a long list costs as much as looking at so many.
const LOOK_UP: usize = 16;

/// A feature of a document that is looked for in others.
struct Meeting {
    position: usize,
    size: f64,
    /// Of its features from this one on.
    rest: f64,
    weight: u32,
    own_is_prefix: bool,
    other_is_prefix: bool,
    /// The form of the document, and what others of it need, and documents of other forms.
    form: u32,
    of_form: Limits,
    otherwise: Limits,
}

impl Meeting {
    /// What another document of this form needs; more if it was not met at a rarer feature and this one is common.
    #[inline(always)]
    fn limit<const IS_EVEN: bool>(&self, form: u32, is_first: bool) -> Limit {
        if IS_EVEN {
            return self.otherwise[0];
        }
        let limits = match form == self.form {
            true => self.of_form,
            false => self.otherwise,
        };
        limits[usize::from(is_first && self.is_common())]
    }

    #[inline(always)]
    fn is_common(&self) -> bool {
        self.weight as usize <= COMMON
    }
}

impl PrefixJoin {
    /// Adds to `found` the earlier documents that may reach the threshold, ascending.
    pub(super) fn find(
        &self,
        position: usize,
        states: Option<&[u8]>,
        scratch: &mut Scratch,
        found: &mut Vec<u32>,
    ) {
        match self.forms.is_empty() && !self.demand.by_rarity {
            true => self.find_by::<true>(position, states, scratch, found),
            false => self.find_by::<false>(position, states, scratch, found),
        }
    }

    /// Same as [`Self::find`]; `IS_EVEN` if what a document needs is the same for all others.
    fn find_by<const IS_EVEN: bool>(
        &self,
        position: usize,
        states: Option<&[u8]>,
        scratch: &mut Scratch,
        found: &mut Vec<u32>,
    ) {
        let first_found = found.len();
        let own = &self.facts[position];
        let form = self.forms.of(position);
        let limits = |penalty| self.demand.limits(own.num_features as usize, penalty);
        let (of_form, otherwise) = (limits(self.forms.penalty(form)), limits(0.0));
        // Documents met at a feature that is not common come first.
        let mut num_rare = 0;
        for i in self.offsets[position]..self.offsets[position + 1] {
            let is_prefix = self.is_prefix(position, i);
            let mut meeting = Meeting {
                position,
                size: f64::from(self.sizes[position]),
                rest: f64::from(self.entries[i].rest),
                weight: self.weights.get(i).copied().unwrap_or(1),
                own_is_prefix: is_prefix,
                other_is_prefix: true,
                form,
                of_form,
                otherwise,
            };
            self.scan::<IS_EVEN>(&meeting, i, scratch);
            if is_prefix && self.limit.is_one_sided() {
                meeting.other_is_prefix = false;
                self.scan::<IS_EVEN>(&meeting, i, scratch);
            }
            if !meeting.is_common() {
                num_rare = scratch.touched.len();
            }
        }
        let Scratch { shared, touched } = scratch;
        for (i, other) in touched.drain(..).enumerate() {
            let sum = std::mem::take(&mut shared[other as usize]);
            let is_removed = states.is_some_and(|states| states[other as usize] == REMOVED);
            let limits = match self.forms.of(other as usize) == form {
                true => of_form,
                false => otherwise,
            };
            let limit = limits[usize::from(i >= num_rare)];
            if sum != APART && !is_removed && self.may_reach(limit, own, other as usize, sum) {
                found.push(other);
            }
        }
        let num_found = found.len();
        self.forms.sharing(position, |other| {
            if states.is_none_or(|states| states[other as usize] != REMOVED) {
                found.push(other);
            }
        });
        found[first_found..].sort_unstable();
        if found.len() > num_found {
            let mut all = found.split_off(first_found);
            all.dedup();
            found.extend(all);
        }
    }

    /// Adds up what the documents of a list share with this one through its entry `i`. In a stretch of documents too
    /// large for what is left, only those met at a rarer feature are looked up.
    #[inline(always)]
    fn scan<const IS_EVEN: bool>(&self, meeting: &Meeting, i: usize, scratch: &mut Scratch) {
        let part = match meeting.other_is_prefix {
            true => Part::Prefix,
            false => Part::Behind,
        };
        let slots = self.lists.slots(self.entries[i].list, part);
        let num_met = scratch.touched.len();
        if slots.len() < LONG_LIST || num_met * LOOK_UP > slots.len() {
            for slot in slots {
                if !self.meet::<IS_EVEN>(meeting, slot, scratch) {
                    break;
                }
            }
            return;
        }
        for k in 0..num_met {
            if let Some(slot) = self.lists.slot_of(scratch.touched[k], slots.clone()) {
                self.meet::<IS_EVEN>(meeting, slot, scratch);
            }
        }
        let may_reach = |bounds: Bounds| {
            self.limit.most(meeting.rest, f64::from(bounds.most_rest))
                >= meeting
                    .limit::<IS_EVEN>(bounds.form, true)
                    .needed(meeting.size, f64::from(bounds.least_size))
        };
        let mut slot = slots.start;
        while slot < slots.end {
            let stretch = self.lists.next_stretch(slot, slots.end, may_reach);
            slot = stretch.end;
            for slot in stretch {
                let other = self.lists.posting(slot).position as usize;
                if other >= meeting.position {
                    return;
                }
                if scratch.shared[other] == 0.0 {
                    self.meet::<IS_EVEN>(meeting, slot, scratch);
                }
            }
        }
    }

    /// Adds up what the document of a slot shares through a feature; whether it is an earlier one. At the first, rarest
    /// feature the rest of either bounds it (PPJoin's positional filter).
    #[inline(always)]
    fn meet<const IS_EVEN: bool>(
        &self,
        meeting: &Meeting,
        slot: usize,
        scratch: &mut Scratch,
    ) -> bool {
        let limit = self.limit;
        let posting = self.lists.posting(slot);
        let other = posting.position as usize;
        if other >= meeting.position {
            return false;
        }
        let sum = &mut scratch.shared[other];
        if *sum == APART {
            return true;
        }
        let other_size = f64::from(self.sizes[other]);
        if limit.is_one_sided() {
            // Only the prefix of the smaller counts.
            let counts = if meeting.size <= other_size {
                meeting.own_is_prefix
            } else {
                meeting.other_is_prefix
            };
            if !counts {
                return true;
            }
        }
        let most = *sum + limit.most(meeting.rest, f64::from(posting.rest));
        let form = self.forms.of(other);
        if most
            < meeting
                .limit::<IS_EVEN>(form, *sum == 0.0)
                .needed(meeting.size, other_size)
        {
            if *sum > 0.0 {
                *sum = APART;
            }
            return true;
        }
        if *sum == 0.0 {
            scratch.touched.push(posting.position);
        }
        *sum += limit.shared(meeting.weight, self.lists.weight(slot));
        true
    }

    /// Whether what is shared in the prefixes and what may be shared behind them reaches the threshold.
    fn may_reach(&self, limit: Limit, own: &SetFacts, other: usize, sum: f64) -> bool {
        let theirs = &self.facts[other];
        // All that both hold up to the end of the prefix that ends first is in the sum already.
        let is_own = if limit.is_one_sided() {
            own.size <= theirs.size
        } else {
            own.last <= theirs.last
        };
        let (after, size) = if is_own {
            (own.after, theirs.size)
        } else {
            (theirs.after, own.size)
        };
        sum + limit.most(f64::from(after), f64::from(size))
            >= limit.needed(f64::from(own.size), f64::from(theirs.size))
    }
}
