//! What is stored about the clock that timestamps arrivals?

use std::time::Duration;

use super::bytes::{Cursor, Malformed};
use super::types::{ArrivalShift, ClockDoubt, ClockRecord, ClockTime};
use super::{Store, database};
use crate::environment::Uptime;
use crate::error::Result;

/// Key in the `meta` table.
const CLOCK: &str = "clock";

const DOUBT: u8 = 1;
const SHIFT: u8 = 2;
const ACCEPTED: u8 = 4;

impl Store {
    pub fn clock_record(&self) -> Result<ClockRecord> {
        Ok(match database::meta(&self.connection, CLOCK)? {
            Some(bytes) => decode(&bytes)?,
            None => ClockRecord::default(),
        })
    }

    pub fn set_clock_record(&mut self, record: &ClockRecord) -> Result<()> {
        self.transact(|store, _| database::set_meta(&store.connection, CLOCK, &encode(record)))?;
        self.shift = record.shift;
        Ok(())
    }

    /// The correction of arrival times, if any.
    pub fn arrival_shift(&self) -> Option<ArrivalShift> {
        self.shift
    }

    /// Applies the correction that another connection of this process uses.
    pub fn correct_arrivals(&mut self, shift: Option<ArrivalShift>) {
        self.shift = shift;
    }

    /// Returns the corrected arrival time of a row, given `arrival_s` from its chunk.
    pub(super) fn corrected(&self, row: u32, arrival_s: u64) -> u64 {
        match self.shift {
            Some(shift) if (shift.first_row..shift.end_row).contains(&row) => {
                arrival_s.saturating_add(shift.add_s)
            }
            _ => arrival_s,
        }
    }
}

pub(super) fn put_time(out: &mut Vec<u8>, time: &ClockTime) {
    out.extend_from_slice(&time.unix_s.to_le_bytes());
    put_uptime(out, &time.uptime);
}

fn put_uptime(out: &mut Vec<u8>, uptime: &Uptime) {
    out.extend_from_slice(&uptime.boot_id.to_le_bytes());
    out.extend_from_slice(&(uptime.elapsed.as_nanos() as u64).to_le_bytes());
}

pub(super) fn take_time(cursor: &mut Cursor<'_>) -> Result<ClockTime, Malformed> {
    Ok(ClockTime {
        unix_s: cursor.u64()?,
        uptime: take_uptime(cursor)?,
    })
}

fn take_uptime(cursor: &mut Cursor<'_>) -> Result<Uptime, Malformed> {
    Ok(Uptime {
        boot_id: cursor.u128()?,
        elapsed: Duration::from_nanos(cursor.u64()?),
    })
}

fn encode(record: &ClockRecord) -> Vec<u8> {
    let mut out = vec![0];
    if let Some(doubt) = &record.doubt {
        out[0] |= DOUBT;
        for number in [u64::from(doubt.first_row), doubt.wall_s, doubt.index_s] {
            out.extend_from_slice(&number.to_le_bytes());
        }
        put_uptime(&mut out, &doubt.uptime);
    }
    if let Some(shift) = &record.shift {
        out[0] |= SHIFT;
        for number in [
            u64::from(shift.first_row),
            u64::from(shift.end_row),
            shift.add_s,
        ] {
            out.extend_from_slice(&number.to_le_bytes());
        }
    }
    if let Some(time) = &record.accepted {
        out[0] |= ACCEPTED;
        put_time(&mut out, time);
    }
    out
}

fn decode(bytes: &[u8]) -> Result<ClockRecord, Malformed> {
    let mut cursor = Cursor(bytes);
    let flags = cursor.byte()?;
    let mut record = ClockRecord::default();
    let row = |cursor: &mut Cursor<'_>| u32::try_from(cursor.u64()?).map_err(|_| Malformed);
    if flags & DOUBT != 0 {
        record.doubt = Some(ClockDoubt {
            first_row: row(&mut cursor)?,
            wall_s: cursor.u64()?,
            index_s: cursor.u64()?,
            uptime: take_uptime(&mut cursor)?,
        });
    }
    if flags & SHIFT != 0 {
        record.shift = Some(ArrivalShift {
            first_row: row(&mut cursor)?,
            end_row: row(&mut cursor)?,
            add_s: cursor.u64()?,
        });
    }
    if flags & ACCEPTED != 0 {
        record.accepted = Some(take_time(&mut cursor)?);
    }
    cursor.end()?;
    Ok(record)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_come_back() {
        let uptime = Uptime {
            boot_id: 1 << 100,
            elapsed: Duration::new(3, 4),
        };
        let whole = ClockRecord {
            doubt: Some(ClockDoubt {
                first_row: 7,
                wall_s: 8,
                index_s: 9,
                uptime,
            }),
            shift: Some(ArrivalShift {
                first_row: 1,
                end_row: u32::MAX,
                add_s: 11,
            }),
            accepted: Some(ClockTime { unix_s: 12, uptime }),
        };
        for record in [
            whole,
            ClockRecord::default(),
            ClockRecord {
                doubt: None,
                ..whole
            },
        ] {
            assert_eq!(decode(&encode(&record)), Ok(record));
        }
    }
}
