//! What time is it for documents that expire?
//!
//! The clock of the machine can be set, wrongly too, and whatever is forgotten by it is gone for good. So ages follow the time since the machine
//! started, which cannot be set, as long as that is known: in a process, and from one to the next of the same start. After a start of the
//! machine the clock is believed where it is at most one age limit ahead of the last document. If it is further ahead, by a long rest
//! or because it is wrong, nothing is forgotten for that until the clock has held for an hour, or the user accepts it.

use std::time::Duration;

use likewise_disk::environment::Uptime;
use likewise_disk::store::{ArrivalShift, ClockDoubt, ClockRecord, ClockTime};

/// How long a clock that was in doubt must hold until it is believed.
const HOLD: Duration = Duration::from_secs(3600);
/// Greatest difference between the two clocks that is none.
const MOST_SLACK_S: u64 = 60;
/// Least one: seconds are cut off.
const LEAST_SLACK_S: u64 = 2;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Moment {
    /// Seconds since 1970, as the clock that can be set has it.
    pub wall_s: u64,
    /// Time since the machine started.
    pub uptime: Uptime,
}

/// What is known of the time when an index is opened.
#[derive(Debug, Clone, Copy)]
pub struct Known {
    /// Arrival of the last row, if any.
    pub last_arrival_s: Option<u64>,
    /// When the store was last written to, if known.
    pub marked: Option<ClockTime>,
    /// What earlier openings left.
    pub record: ClockRecord,
    pub num_rows: u32,
}

/// The time by which documents arrive and grow old.
#[derive(Debug)]
pub struct IndexClock {
    ttl_s: u64,
    base: ClockTime,
    record: ClockRecord,
    /// Whether the store does not have the record yet.
    is_new: bool,
    /// Seconds that the wall clock is ahead at the last look, beyond the slack.
    ahead_s: i64,
}

impl IndexClock {
    /// The clock of an index that is opened now; with `accept` the wall clock is right.
    pub fn open(ttl_s: u64, now: Moment, known: Known, accept: bool) -> Self {
        let mut clock = IndexClock {
            ttl_s,
            base: ClockTime {
                unix_s: now.wall_s,
                uptime: now.uptime,
            },
            record: known.record,
            is_new: false,
            ahead_s: 0,
        };
        if accept {
            clock.accept(now, known.num_rows);
            return clock;
        }
        let accepted = known.record.accepted;
        let same_start = [known.marked, accepted]
            .into_iter()
            .flatten()
            .filter(|time| elapsed(time.uptime, now.uptime).is_some())
            .max_by_key(|time| time.uptime.elapsed);
        if let Some(time) = same_start {
            clock.base = time;
            return clock;
        }
        let last_s = known
            .last_arrival_s
            .max(accepted.map(|accepted| accepted.unix_s));
        let Some(last_s) = last_s else {
            return clock;
        };
        match known.record.doubt {
            Some(doubt) if now.wall_s >= doubt.wall_s => {
                let ahead_s = doubt.wall_s - doubt.index_s;
                clock.base.unix_s = last_s.max(now.wall_s - ahead_s);
                if now.wall_s - doubt.wall_s >= HOLD.as_secs() {
                    clock.accept(now, known.num_rows);
                }
            }
            _ => {
                clock.base.unix_s = last_s;
                clock.consider(now, known.num_rows);
            }
        }
        clock
    }

    /// The current time, in seconds since 1970, for an index with `num_rows` rows.
    pub fn now_s(&mut self, now: Moment, num_rows: u32) -> u64 {
        let expected_s = self.expected_s(now);
        let is_near = self.is_near(now.wall_s, expected_s);
        match self.record.doubt {
            // A clock that is only read to the second, and set by some seconds now and then.
            None if is_near => {
                self.base = ClockTime {
                    unix_s: now.wall_s,
                    uptime: now.uptime,
                };
            }
            None => {}
            Some(doubt) => match elapsed(doubt.uptime, now.uptime) {
                Some(passed) if self.is_near(doubt.wall_s + passed.as_secs(), now.wall_s) => {
                    if passed >= HOLD {
                        self.accept(now, num_rows);
                    }
                }
                // After another start of the machine it was looked at when the index was opened.
                None if now.wall_s >= doubt.wall_s => {
                    if now.wall_s - doubt.wall_s >= HOLD.as_secs() {
                        self.accept(now, num_rows);
                    }
                }
                _ => {
                    self.base = ClockTime {
                        unix_s: expected_s,
                        uptime: now.uptime,
                    };
                    self.consider(now, num_rows);
                }
            },
        }
        let now_s = self.expected_s(now);
        self.ahead_s = match self.is_near(now.wall_s, now_s) {
            true => 0,
            false => now.wall_s.cast_signed() - now_s.cast_signed(),
        };
        now_s
    }

    /// What the store is to keep, once after each change.
    pub fn take_record(&mut self) -> Option<ClockRecord> {
        std::mem::take(&mut self.is_new).then_some(self.record)
    }

    /// What the user should know, in words.
    pub fn warning(&self) -> Option<String> {
        if let Some(doubt) = self.record.doubt {
            return Some(format!(
                "the clock is {} s ahead of the last document, more than the age limit: no document expires because of this difference until \
                 the clock has been consistent for {} s, or you accept it with accept_clock=True (likewise index verify --accept-clock)",
                doubt.wall_s - doubt.index_s,
                HOLD.as_secs()
            ));
        }
        let direction = match self.ahead_s {
            0 => return None,
            1.. => "ahead of",
            _ => "behind",
        };
        Some(format!(
            "the clock was set: it is {} s {direction} the time since the machine started, which determines ages; accept it with accept_clock=True \
             (likewise index verify --accept-clock)",
            self.ahead_s.unsigned_abs()
        ))
    }

    fn slack_s(&self) -> u64 {
        (self.ttl_s / 10).clamp(LEAST_SLACK_S, MOST_SLACK_S)
    }

    fn is_near(&self, one_s: u64, other_s: u64) -> bool {
        one_s.abs_diff(other_s) <= self.slack_s()
    }

    /// The time that passed since the base, by the clock that cannot be set.
    fn expected_s(&self, now: Moment) -> u64 {
        let passed = elapsed(self.base.uptime, now.uptime).unwrap_or_default();
        self.base.unix_s + passed.as_secs()
    }

    /// Accepts the wall clock if it is at most one age limit ahead of the base, and not before it.
    fn consider(&mut self, now: Moment, num_rows: u32) {
        let before = self.record.doubt.take();
        let base_s = self.base.unix_s;
        if now.wall_s > base_s.saturating_add(self.ttl_s) {
            self.record.doubt = Some(ClockDoubt {
                first_row: num_rows,
                wall_s: now.wall_s,
                index_s: base_s,
                uptime: now.uptime,
            });
        } else {
            self.base.unix_s = base_s.max(now.wall_s);
        }
        self.is_new |= self.record.doubt != before;
    }

    /// Takes the wall clock for the time. What arrived since it was in doubt was dated too early by as much as that was ahead.
    fn accept(&mut self, now: Moment, num_rows: u32) {
        if let Some(doubt) = self.record.doubt.take() {
            self.record.shift = Some(ArrivalShift {
                first_row: doubt.first_row,
                end_row: num_rows,
                add_s: doubt.wall_s - doubt.index_s,
            });
        }
        self.base = ClockTime {
            unix_s: now.wall_s,
            uptime: now.uptime,
        };
        self.record.accepted = Some(self.base);
        self.is_new = true;
    }
}

/// The time between two moments of one run of the machine.
fn elapsed(from: Uptime, to: Uptime) -> Option<Duration> {
    match from.boot_id == to.boot_id {
        true => to.elapsed.checked_sub(from.elapsed),
        false => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DAY: u64 = 86_400;
    const TTL: u64 = 90 * DAY;
    const YEARS: u64 = 3650 * DAY;
    const T: u64 = 1_700_000_000;

    fn at(wall_s: u64, boot_id: u128, elapsed_s: u64) -> Moment {
        let elapsed = Duration::from_secs(elapsed_s);
        let uptime = Uptime { boot_id, elapsed };
        Moment { wall_s, uptime }
    }

    fn known(last_arrival_s: Option<u64>, marked: Option<Moment>, record: ClockRecord) -> Known {
        Known {
            last_arrival_s,
            marked: marked.map(|now| ClockTime {
                unix_s: now.wall_s,
                uptime: now.uptime,
            }),
            record,
            num_rows: 5,
        }
    }

    const NONE: ClockRecord = ClockRecord {
        doubt: None,
        shift: None,
        accepted: None,
    };

    #[test]
    fn a_clock_that_is_set_in_a_process_changes_no_age() {
        let mut clock = IndexClock::open(TTL, at(T, 1, 10), known(None, None, NONE), false);
        assert_eq!(clock.now_s(at(T + 7, 1, 17), 5), T + 7);
        for (set_s, direction) in [(T + YEARS, "ahead of"), (T - YEARS, "behind")] {
            assert_eq!(clock.now_s(at(set_s, 1, 20), 5), T + 10);
            assert!(clock.warning().unwrap().contains(direction));
            assert_eq!(clock.now_s(at(set_s + DAY, 1, 20 + DAY), 5), T + 10 + DAY);
            assert_eq!(clock.now_s(at(T + 10, 1, 20), 5), T + 10);
            assert_eq!(clock.warning(), None);
        }
        // A second or two is no matter.
        assert_eq!(clock.now_s(at(T + 12, 1, 20), 5), T + 12);
        assert_eq!(clock.take_record(), None);
    }

    #[test]
    fn the_next_process_of_the_same_start_goes_on() {
        for wall_s in [T + YEARS, T - YEARS, T + 20 * YEARS] {
            let marked = Some(at(T, 1, 100));
            let mut clock =
                IndexClock::open(TTL, at(wall_s, 1, 200), known(Some(T), marked, NONE), false);
            assert_eq!(clock.now_s(at(wall_s, 1, 300), 5), T + 200);
        }
        // Long ago, but in the same start of the machine, asleep perhaps: that is a rest.
        let marked = Some(at(T, 1, 100));
        let rested = at(T + YEARS, 1, 100 + YEARS);
        let mut clock = IndexClock::open(TTL, rested, known(Some(T), marked, NONE), false);
        assert_eq!(clock.now_s(rested, 5), T + YEARS);
    }

    #[test]
    fn after_a_start_of_the_machine_one_age_limit_is_believed() {
        for rest_s in [0, 100, DAY, TTL] {
            let marked = Some(at(T, 1, 100));
            let now = at(T + rest_s, 2, 5);
            let mut clock = IndexClock::open(TTL, now, known(Some(T), marked, NONE), false);
            assert_eq!(clock.now_s(now, 5), T + rest_s);
            assert_eq!(clock.warning(), None);
        }
        // A clock behind the last document: time goes on from that.
        let now = at(T - YEARS, 2, 5);
        let mut clock = IndexClock::open(TTL, now, known(Some(T), None, NONE), false);
        assert_eq!(clock.now_s(at(T - YEARS + 50, 2, 55), 5), T + 50);
    }

    #[test]
    fn a_clock_in_doubt_must_hold() {
        let far = T + YEARS;
        let open = |now, record| IndexClock::open(TTL, now, known(Some(T), None, record), false);
        let mut clock = open(at(far, 2, 5), NONE);
        assert!(clock.warning().unwrap().contains("accept_clock"));
        assert_eq!(clock.now_s(at(far + 60, 2, 65), 5), T + 60);
        let record = clock.take_record().unwrap();
        let doubt = record.doubt.unwrap();
        assert_eq!((doubt.first_row, doubt.wall_s, doubt.index_s), (5, far, T));
        // It goes back: nothing was lost, and nothing is left of it.
        assert_eq!(clock.now_s(at(T + 3 * DAY, 2, 70), 6), T + 3 * DAY);
        assert_eq!(clock.take_record().unwrap().doubt, None);
        assert_eq!(clock.warning(), None);
        // It holds: in one process,
        let mut clock = open(at(far, 2, 5), NONE);
        assert_eq!(clock.now_s(at(far + 3599, 2, 3604), 9), T + 3599);
        assert_eq!(clock.now_s(at(far + 3600, 2, 3605), 9), far + 3600);
        let held = clock.take_record().unwrap();
        let shift = ArrivalShift {
            first_row: 5,
            end_row: 9,
            add_s: YEARS,
        };
        assert_eq!((held.doubt, held.shift), (None, Some(shift)));
        assert_eq!(clock.warning(), None);
        // in another one, and after another start of the machine.
        for now in [at(far + 4000, 2, 4005), at(far + 4000, 3, 1)] {
            let mut clock = open(now, record);
            assert_eq!(clock.now_s(now, 9), far + 4000);
        }
        for now in [at(far + 100, 2, 105), at(far + 100, 3, 1)] {
            let mut clock = open(now, record);
            assert_eq!(clock.now_s(now, 9), T + 100);
        }
        // In between it was set: it has not held.
        let mut clock = open(at(far, 2, 5), NONE);
        clock.now_s(at(far + DAY, 2, 3000), 5);
        assert!(clock.now_s(at(far + DAY + 1000, 2, 4000), 5) < T + DAY);
    }

    #[test]
    fn a_clock_that_is_accepted_is_right() {
        let now = at(T + YEARS, 2, 5);
        let mut clock = IndexClock::open(TTL, now, known(Some(T), None, NONE), true);
        assert_eq!(clock.now_s(now, 5), T + YEARS);
        let record = clock.take_record().unwrap();
        // For the next process too, though nothing was added, and after another start.
        for now in [at(T + YEARS + 10, 2, 15), at(T + YEARS + 10, 3, 1)] {
            let mut clock = IndexClock::open(TTL, now, known(Some(T), None, record), false);
            assert_eq!(clock.now_s(now, 5), T + YEARS + 10);
            assert_eq!(clock.warning(), None);
        }
    }
}
