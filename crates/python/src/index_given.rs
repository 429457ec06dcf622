//! Arguments of an index other than documents.

use crate::door::LONG_BYTES;
use crate::errors::Failure;
use crate::texts::Texts;

/// Number of documents from which a call is long enough to check for Ctrl-C.
const LONG_DOCUMENTS: usize = 4096;

/// The ids one by one.
pub fn list_of(ids: &Texts) -> Vec<&str> {
    (0..ids.column.len()).map(|i| ids.column.get(i)).collect()
}

/// Rejects ids unless there is one per document.
pub fn check_num_ids(ids: &Texts, num: usize) -> Result<(), Failure> {
    match ids.column.len() == num {
        true => Ok(()),
        false => Err(Failure::input(format!(
            "{} ids for {num} documents",
            ids.column.len()
        ))),
    }
}

/// The size, in bytes, that represents the work on `num` sketches.
pub fn long_if(num: usize) -> usize {
    if num >= LONG_DOCUMENTS { LONG_BYTES } else { 0 }
}
