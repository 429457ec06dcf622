//! How similar must documents of a join be that were made from one form, or share what many do?
//!
//! Documents with the same slots and other fillings need a higher similarity, which depends on the number of slots alone.
//! The lists skip such pairs by their bounds. Those that share a filling that few share need less, and are found by it. If
//! the rarest feature that two documents share is common, they need more because of their crowd.

use std::collections::{HashMap, HashSet};

use crate::features::siblings::Form;

/// Stands for documents without slots, and for stretches of several forms.
pub(super) const NO_FORM: u32 = 0;

/// The fillings that tell documents of a form apart are shared by at most one of so many pairs of these, and by at most
/// `MOST_SHARING` pairs for each document, since these pairs are measured. The others are usual: any pair may share them.
const FEWEST_APART: usize = 8;
const MOST_SHARING: usize = 128;

#[derive(Debug, Default)]
pub struct Forms {
    /// By position; empty if no documents have slots.
    of_position: Vec<u32>,
    /// What two documents of each form need in addition if they share usual fillings only; 0 without a form.
    penalties: Vec<f64>,
    /// Form, filling and position of those that are not usual, ascending.
    fillings: Vec<(u32, u64, u32)>,
    /// The same fillings of each position.
    own: HashMap<u32, Box<[u64]>>,
}

impl Forms {
    /// Numbers the forms of some of so many positions.
    pub fn new(mut collected: Vec<(u32, Form)>, num_positions: usize) -> Self {
        let mut forms = Forms::default();
        collected.sort_unstable_by_key(|(position, form)| (form.slots, *position));
        for same in collected.chunk_by_mut(|(_, a), (_, b)| a.slots == b.slots) {
            if same.len() == 1 {
                continue;
            }
            let number = forms.penalties.len().max(1) as u32;
            let entries = same.iter().flat_map(|(position, form)| {
                let entry = |&one: &u64| (number, one, *position);
                form.fillings.iter().map(entry)
            });
            let mut fillings: Vec<_> = entries.collect();
            fillings.sort_unstable();
            let num_pairs = |num: usize| num * (num - 1) / 2;
            let of_each = fillings.chunk_by(|a, b| a.1 == b.1);
            let mut usual: Vec<_> = of_each.map(|some| (some.len(), some[0].1)).collect();
            usual.sort_unstable();
            let most_sharing = num_pairs(same.len()) / FEWEST_APART;
            let most_sharing = most_sharing.min(MOST_SHARING * same.len());
            let mut num_sharing = 0;
            let mut is_rare = |&(num, _): &(usize, u64)| {
                num_sharing += num_pairs(num);
                num_sharing <= most_sharing
            };
            let num_rare = usual.iter().take_while(|one| is_rare(one)).count();
            let usual: HashSet<u64> = usual[num_rare..].iter().map(|&(_, one)| one).collect();
            let penalties = same.iter().map(|(_, form)| form.penalty(&usual));
            let penalty = penalties.fold(f64::INFINITY, f64::min);
            if penalty <= 0.0 {
                continue;
            }
            forms.of_position.resize(num_positions, NO_FORM);
            forms.penalties.resize(number as usize, 0.0);
            forms.penalties.push(penalty);
            fillings.retain(|(_, one, _)| !usual.contains(one));
            forms.fillings.append(&mut fillings);
            for (position, form) in same {
                forms.of_position[*position as usize] = number;
                let own = form.fillings.iter().filter(|one| !usual.contains(one));
                forms.own.insert(*position, own.copied().collect());
            }
        }
        forms
    }

    pub(super) fn is_empty(&self) -> bool {
        self.of_position.is_empty()
    }

    #[inline(always)]
    pub(super) fn of(&self, position: usize) -> u32 {
        self.of_position.get(position).copied().unwrap_or(NO_FORM)
    }

    /// What two documents of a form need in addition if they share usual fillings only.
    pub(super) fn penalty(&self, form: u32) -> f64 {
        self.penalties.get(form as usize).copied().unwrap_or(0.0)
    }

    /// Calls `take` with each earlier document of the same form that shares a filling that is not usual, for each of these.
    pub(super) fn sharing(&self, position: usize, mut take: impl FnMut(u32)) {
        let (form, position) = (self.of(position), position as u32);
        for &filling in self.own.get(&position).iter().copied().flatten() {
            let start = self
                .fillings
                .partition_point(|&one| one < (form, filling, 0));
            let same = self.fillings[start..].iter();
            let earlier = same.take_while(|&&one| one < (form, filling, position));
            earlier.for_each(|&(_, _, other)| take(other));
        }
    }

    pub(super) fn num_bytes(&self) -> usize {
        4 * self.of_position.len() + (size_of::<(u32, u64, u32)>() + 8) * self.fillings.len()
    }
}
