//! Any weight table and any Hamming index: read or refused.
#![no_main]

use std::sync::atomic::AtomicBool;

use libfuzzer_sys::fuzz_target;
use likewise_disk::hamming_file::open_hamming_set;
use likewise_disk::weights_of_bytes;
use likewise_fuzz::{temporary, temporary_path};

fuzz_target!(|data: &[u8]| {
    let _ = weights_of_bytes(data);
    drop(temporary("tables", data));
    let _ = open_hamming_set(&temporary_path("tables"), true, &AtomicBool::new(false));
});
