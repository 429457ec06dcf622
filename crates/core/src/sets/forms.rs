//! How similar must documents of a join be that were made from one form, or share what many do?
//!
//! Documents with the same slots and other fillings need a higher similarity, which depends on the number of slots alone.
//! The lists skip such pairs by their bounds. Those that share a filling need less, and are found by it. If the rarest
//! feature that two documents share is common, they need more because of their crowd.

use std::collections::HashMap;

use crate::features::siblings::Form;

/// Stands for documents without slots, and for stretches of several forms.
pub(super) const NO_FORM: u32 = 0;

#[derive(Debug, Default)]
pub struct Forms {
    /// By position; empty if no documents have slots.
    of_position: Vec<u32>,
    /// What two documents of each form need in addition if they share no filling; 0 without a form.
    penalties: Vec<f64>,
    /// Form, filling and position, ascending.
    fillings: Vec<(u32, u64, u32)>,
    /// Fillings of each position.
    own: HashMap<u32, Box<[u64]>>,
}

impl Forms {
    /// Numbers the forms of some of so many positions.
    pub fn new(collected: Vec<(u32, Form)>, num_positions: usize) -> Self {
        let mut forms = Forms::default();
        if collected.is_empty() {
            return forms;
        }
        forms.of_position = vec![NO_FORM; num_positions];
        forms.penalties.push(0.0);
        let mut numbers = HashMap::new();
        for (position, form) in collected {
            let number = *numbers.entry(form.slots).or_insert_with(|| {
                forms.penalties.push(form.penalty);
                forms.penalties.len() as u32 - 1
            });
            forms.of_position[position as usize] = number;
            let entries = form.fillings.iter().map(|&one| (number, one, position));
            forms.fillings.extend(entries);
            forms.own.insert(position, form.fillings);
        }
        forms.fillings.sort_unstable();
        forms
    }

    #[inline(always)]
    pub(super) fn of(&self, position: usize) -> u32 {
        self.of_position.get(position).copied().unwrap_or(NO_FORM)
    }

    /// What two documents of a form need in addition if they share no filling.
    pub(super) fn penalty(&self, form: u32) -> f64 {
        self.penalties.get(form as usize).copied().unwrap_or(0.0)
    }

    /// Calls `take` with each earlier document of the same form that shares a filling, for each of these.
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
