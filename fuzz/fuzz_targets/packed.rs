//! Any gzip or zstd file: bounded output, an error or all of it, the same on one thread and on several.
#![no_main]

use std::io::Read;

use libfuzzer_sys::fuzz_target;
use likewise_disk::{Codec, UnpackLimits, Unpacker};
use likewise_fuzz::temporary;

const LIMITS: UnpackLimits = UnpackLimits {
    max_bytes: 16 << 20,
    max_ratio: 50,
};

/// What the file holds; `None` where it is refused.
fn unpacked(data: &[u8], codec: Codec, threads: usize) -> Option<Vec<u8>> {
    let spool = temporary("unpacked", b"");
    let mut reader = spool.try_clone().expect("clone");
    let packed = temporary("packed", data);
    let mut expected = 0;
    let mut is_whole = true;
    if let Ok(mut unpacker) = Unpacker::open(packed, spool, codec, LIMITS, threads) {
        loop {
            match unpacker.next_piece(1 << 16) {
                Ok(Some(piece)) => {
                    assert_eq!(piece.offset, expected);
                    expected += piece.length;
                }
                Ok(None) => break,
                Err(_) => {
                    is_whole = false;
                    break;
                }
            }
        }
    } else {
        is_whole = false;
    }
    // A block may be written before the limit is seen.
    assert!(reader.metadata().expect("size").len() <= LIMITS.max_bytes + (8 << 20));
    let mut content = Vec::new();
    // Unpacked files are written and read by position: the reader stands at the start.
    reader.read_to_end(&mut content).expect("read");
    is_whole.then_some(content)
}

fuzz_target!(|data: &[u8]| {
    for codec in [Codec::Gzip, Codec::Zstd] {
        assert_eq!(unpacked(data, codec, 1), unpacked(data, codec, 3));
    }
});
