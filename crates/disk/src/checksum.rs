//! Does a range of a file still hold what was written there?

use std::fs::File;
use std::sync::atomic::{AtomicBool, Ordering};

use xxhash_rust::xxh3::Xxh3Default;

use crate::error::{Error, Result};
use crate::position::read_exact_at;

/// Bytes read at a time.
const BLOCK_BYTES: u64 = 1 << 20;

/// Returns the XXH3-64 checksum, with seed 0, of `length` bytes of a file from `offset` on.
pub fn range_checksum(file: &File, offset: u64, length: u64, cancel: &AtomicBool) -> Result<u64> {
    let mut hasher = Xxh3Default::new();
    let mut block = vec![0; BLOCK_BYTES.min(length) as usize];
    let mut done = 0;
    while done < length {
        if cancel.load(Ordering::Relaxed) {
            return Err(Error::Canceled);
        }
        let part = &mut block[..BLOCK_BYTES.min(length - done) as usize];
        read_exact_at(file, part, offset + done).map_err(|e| Error::read(e, offset + done))?;
        hasher.update(part);
        done += part.len() as u64;
    }
    Ok(hasher.digest())
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    #[test]
    fn a_range_of_a_file_has_the_checksum_of_its_bytes() {
        let bytes: Vec<u8> = (0..3_000_001u32)
            .map(|i| (i.wrapping_mul(i) >> 7) as u8)
            .collect();
        let mut file = tempfile().unwrap();
        file.write_all(&bytes).unwrap();
        let cancel = AtomicBool::new(false);
        for (offset, length) in [(0, 0), (5, 1), (3, 241), (0, 3_000_001), (7, 1 << 20)] {
            let expected = likewise_core::hash::xxh3_64_with_seed(
                &bytes[offset as usize..(offset + length) as usize],
                0,
            );
            assert_eq!(
                range_checksum(&file, offset, length, &cancel).unwrap(),
                expected
            );
        }
        let beyond = range_checksum(&file, 3_000_000, 2, &cancel);
        assert!(matches!(
            beyond,
            Err(Error::Changed { .. } | Error::Io { .. })
        ));
        cancel.store(true, Ordering::Relaxed);
        assert!(matches!(
            range_checksum(&file, 0, 9, &cancel),
            Err(Error::Canceled)
        ));
    }

    fn tempfile() -> std::io::Result<File> {
        let path = std::env::temp_dir().join(format!("likewise-checksum-{}", std::process::id()));
        let file = File::options()
            .read(true)
            .write(true)
            .create_new(true)
            .open(&path)?;
        std::fs::remove_file(path)?;
        Ok(file)
    }
}
