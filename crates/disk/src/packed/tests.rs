//! Does decompression by frames give the same result as the sequential decoder?

use std::fs::File;
use std::io::{Seek, SeekFrom, Write};
use std::sync::atomic::{AtomicU64, Ordering};

use super::unpack::Unpacker;
use super::{Codec, UnpackLimits};

fn file_of(bytes: &[u8]) -> File {
    static NUMBER: AtomicU64 = AtomicU64::new(0);
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    let path =
        std::env::temp_dir().join(format!("likewise-unpack-{}-{number}", std::process::id()));
    let mut file = File::options()
        .read(true)
        .write(true)
        .create_new(true)
        .open(&path)
        .unwrap();
    std::fs::remove_file(&path).unwrap();
    file.write_all(bytes).unwrap();
    file.seek(SeekFrom::Start(0)).unwrap();
    file
}

/// The plain bytes, or why there are none, and whether frames were decompressed as a whole.
fn unpacked(packed: &[u8], threads: usize) -> (Result<Vec<u8>, String>, bool) {
    let limits = UnpackLimits {
        max_bytes: 1 << 40,
        max_ratio: 1 << 20,
    };
    let spool = file_of(b"");
    let opened = Unpacker::open(
        file_of(packed),
        spool.try_clone().unwrap(),
        Codec::Zstd,
        limits,
        threads,
    );
    let mut unpacker = opened.unwrap();
    let by_frames = unpacker.is_by_frames();
    let (mut end, mut lengths) = (0, Vec::new());
    loop {
        match unpacker.next_piece(1000) {
            Ok(Some(piece)) => {
                assert_eq!(piece.offset, end);
                end += piece.length;
                lengths.push(piece.length);
            }
            Ok(None) => break,
            Err(error) => return (Err(error.to_string()), by_frames),
        }
    }
    if let Some((reason, _)) = unpacker.damage() {
        return (Err(reason.to_owned()), by_frames);
    }
    let mut plain = vec![0; end as usize];
    crate::position::read_exact_at(&spool, &mut plain, 0).unwrap();
    // Pieces do not depend on how the file was decompressed: each ends at the first line end that makes it long enough.
    let mut start = 0;
    for (i, &length) in lengths.iter().enumerate() {
        let piece = &plain[start..start + length as usize];
        assert!(i + 1 == lengths.len() || (piece.len() >= 1000 && piece.ends_with(b"\n")));
        let inner = piece.len() - 1;
        assert!(!piece[999.min(inner)..inner].contains(&b'\n'));
        start += length as usize;
    }
    (Ok(plain), by_frames)
}

fn lines(from: u32, to: u32) -> Vec<u8> {
    (from..to)
        .flat_map(|i| format!("line {i} of some {}\n", (i % 97).pow(2) % 89).into_bytes())
        .collect()
}

#[test]
fn frames_give_what_the_stream_gives() {
    // Frames that end inside lines, an empty one, a skippable one, and one that does not state its size.
    let plain = lines(0, 9000);
    let cuts = [0, 5, 40_000, 40_000, 70_001, 150_000, plain.len()];
    let mut packed = Vec::new();
    for (i, cut) in cuts.windows(2).enumerate() {
        let part = &plain[cut[0]..cut[1]];
        let mut compressor = zstd::bulk::Compressor::new(1).unwrap();
        compressor.include_checksum(i % 2 == 0).unwrap();
        match i {
            4 => packed.extend(zstd::stream::encode_all(part, 1).unwrap()),
            _ => packed.extend(compressor.compress(part).unwrap()),
        }
        packed.extend([0x53, 0x2a, 0x4d, 0x18, 3, 0, 0, 0, 1, 2, 3]);
    }
    for threads in [1, 3] {
        assert_eq!(unpacked(&packed, threads), (Ok(plain.clone()), true));
    }
    let one = zstd::bulk::compress(&plain, 1).unwrap();
    assert_eq!(unpacked(&one, 2), (Ok(plain), false));
}

#[test]
fn what_is_no_frame_of_use_is_left_to_the_stream() {
    let plain = lines(0, 3000);
    let frame = zstd::bulk::compress(&plain, 1).unwrap();
    let skipped = [0x50, 0x2a, 0x4d, 0x18, 0, 0, 0, 0];
    // More skippable frames than a wave has, before and after.
    let many = skipped.repeat(9000);
    let packed = [many.as_slice(), &frame, &many, &frame].concat();
    let twice = plain.repeat(2);
    assert_eq!(unpacked(&packed, 2), (Ok(twice.clone()), true));
    // A frame that states two bytes, after thousands of empty blocks.
    let mut padded = vec![0x28, 0xb5, 0x2f, 0xfd, 0x20, 2];
    padded.extend([0, 0, 0].repeat(5000));
    padded.extend([0x11, 0, 0, b'a', b'\n']);
    let packed = [frame.as_slice(), &padded, &frame].concat();
    let expected = [plain.as_slice(), b"a\n", &plain].concat();
    assert_eq!(unpacked(&packed, 2), (Ok(expected), true));
    // Wrong sizes, and a file that is cut inside its first frame.
    let mut liar = zstd::bulk::compress(b"0123456789\n", 1).unwrap();
    assert_eq!(liar[4] & 0xe0, 0x20);
    for size in [10, 12] {
        liar[5] = size;
        let packed = [frame.as_slice(), &liar, &frame].concat();
        assert!(unpacked(&packed, 2).0.unwrap_err().contains("damaged"));
    }
    for end in [5, 8, frame.len() / 2] {
        let (found, by_frames) = unpacked(&frame[..end], 2);
        assert!(!by_frames && found.unwrap_err().contains("the file is cut"));
    }
    // A frame above the maximum size, between others.
    let large = lines(0, 600_000);
    let packed = [
        frame.as_slice(),
        &zstd::bulk::compress(&large, 1).unwrap(),
        &frame,
    ]
    .concat();
    let expected = [plain.as_slice(), &large, &plain].concat();
    assert!(large.len() > 9 << 20);
    assert_eq!(unpacked(&packed, 3), (Ok(expected), true));
}

#[test]
fn cut_and_damaged_frames_are_told_as_by_the_stream() {
    let packed: Vec<u8> = (0..4)
        .flat_map(|i| {
            let mut compressor = zstd::bulk::Compressor::new(1).unwrap();
            compressor.include_checksum(true).unwrap();
            compressor.compress(&lines(i * 999, (i + 1) * 999)).unwrap()
        })
        .collect();
    for end in [packed.len() - 1, packed.len() - 9, packed.len() * 4 / 5] {
        let (found, by_frames) = unpacked(&packed[..end], 2);
        assert!(by_frames);
        assert!(found.unwrap_err().contains("the file is cut"), "{end}");
    }
    let mut damaged = packed.clone();
    let at = damaged.len() * 3 / 5;
    damaged[at] ^= 0x11;
    assert!(unpacked(&damaged, 2).0.unwrap_err().contains("damaged"));
    let behind = [packed.as_slice(), b"something else"].concat();
    assert!(unpacked(&behind, 2).0.unwrap_err().contains("damaged"));
}
