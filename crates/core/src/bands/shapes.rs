//! Are signatures, order and bands consistent?

use crate::error::Error;
use crate::sketch::Signatures;

/// Checks that the bytes are whole rows of slots.
pub(super) fn check_layout(signatures: &Signatures<'_>) -> Result<(), Error> {
    let Signatures {
        bytes,
        num_slots,
        slot_bytes,
    } = *signatures;
    if num_slots == 0 || ![1, 2, 4].contains(&slot_bytes) {
        return Err(Error::invalid(
            "signatures",
            format!(
                "{num_slots} slots of {slot_bytes} bytes; slots are 1 or more, bytes 1, 2 or 4"
            ),
        ));
    }
    let row_bytes = num_slots * slot_bytes;
    if !bytes.len().is_multiple_of(row_bytes) {
        return Err(Error::invalid(
            "signatures",
            format!(
                "{} bytes are not a multiple of the row size, {row_bytes} bytes",
                bytes.len()
            ),
        ));
    }
    Ok(())
}

pub fn check_bands(
    signatures: &Signatures<'_>,
    order: &[u32],
    bands: u32,
    rows: u32,
) -> Result<(), Error> {
    check_layout(signatures)?;
    if u32::try_from(order.len()).is_err() {
        return Err(Error::invalid(
            "order",
            format!("{} positions; at most 4294967295 fit", order.len()),
        ));
    }
    let num_rows = signatures.len();
    if let Some(row) = order.iter().find(|&&row| row as usize >= num_rows) {
        return Err(Error::invalid(
            "order",
            format!("row {row} is outside the {num_rows} rows of the signatures"),
        ));
    }
    let num_slots = signatures.num_slots;
    if bands == 0 || rows == 0 || u64::from(bands) * u64::from(rows) > num_slots as u64 {
        return Err(Error::invalid(
            "bands",
            format!(
                "{bands} bands of {rows} rows; both are 1 or more and bands * rows at most {num_slots}, the slots"
            ),
        ));
    }
    Ok(())
}
