//! Any gzip or zstd file: bounded output, an error or all of it.
#![no_main]

use libfuzzer_sys::fuzz_target;
use likewise_disk::{Codec, UnpackLimits, Unpacker};
use likewise_fuzz::temporary;

const LIMITS: UnpackLimits = UnpackLimits {
    max_bytes: 16 << 20,
    max_ratio: 50,
};

fuzz_target!(|data: &[u8]| {
    for codec in [Codec::Gzip, Codec::Zstd] {
        let spool = temporary("unpacked", b"");
        let reader = spool.try_clone().expect("clone");
        let Ok(mut unpacker) = Unpacker::open(temporary("packed", data), spool, codec, LIMITS)
        else {
            continue;
        };
        let mut expected = 0;
        while let Ok(Some(piece)) = unpacker.next_piece(1 << 16) {
            assert_eq!(piece.offset, expected);
            expected += piece.length;
        }
        // A block may be written before the limit is seen.
        assert!(reader.metadata().expect("size").len() <= LIMITS.max_bytes + (8 << 20));
    }
});
