//! Splitting, rereading and copying.
#![allow(missing_docs)]

mod common;

use likewise_core::parallel::Run;
use std::fs::{self, File};
use std::sync::atomic::AtomicBool;

use common::{file, path, rules};
use likewise_disk::{Error, Rows, copy_ranges, read_piece, read_rows, split_lines};

static NEVER: AtomicBool = AtomicBool::new(false);

/// Lines of many lengths, some longer than a block, the last without a newline.
fn many_lines(num: usize) -> (Vec<String>, Vec<u8>) {
    let lines: Vec<String> = (0..num)
        .map(|i| {
            let long = if i % 97 == 0 { 150_000 } else { i * 37 % 900 };
            format!("{{\"text\":\"{i} {}\"}}", "é".repeat(long))
        })
        .collect();
    let bytes = lines.join("\n").into_bytes();
    (lines, bytes)
}

#[test]
fn pieces_end_at_line_ends_and_hold_every_row() {
    let (lines, bytes) = many_lines(500);
    let file = file("pieces", &bytes);
    for piece_bytes in [1, 1000, 65_536, 300_000, 1 << 30] {
        let pieces = split_lines(&file, piece_bytes).unwrap();
        let mut position = 0;
        let mut texts = Vec::new();
        for &(offset, length) in &pieces {
            assert_eq!(offset, position);
            position += length;
            assert!(position == bytes.len() as u64 || bytes[position as usize - 1] == b'\n');
            let piece = read_piece(&file, offset, length, &rules()).unwrap();
            assert_eq!(piece.bad, []);
            for i in 0..piece.texts.len() {
                let start = piece.offsets[i] as usize;
                let line = &bytes[start..start + piece.lengths[i] as usize];
                texts.push((
                    String::from_utf8(line.to_vec()).unwrap(),
                    piece.texts.get(i).to_owned(),
                ));
            }
        }
        assert_eq!(position, bytes.len() as u64);
        assert_eq!(texts.len(), lines.len());
        for ((line, text), expected) in texts.iter().zip(&lines) {
            assert_eq!(line, expected);
            assert_eq!(text, &expected[9..expected.len() - 2]);
        }
    }
    assert!(split_lines(&file, 0).is_err());
    assert_eq!(split_lines(&common::file("empty", b""), 100).unwrap(), []);
}

#[test]
fn rows_are_read_again_in_any_order() {
    let (lines, bytes) = many_lines(700);
    let file = file("again", &bytes);
    let piece = read_piece(&file, 0, bytes.len() as u64, &rules()).unwrap();
    let mut rows: Vec<usize> = (0..lines.len()).step_by(2).collect();
    rows.extend((0..lines.len()).rev().step_by(5));
    let offsets: Vec<u64> = rows.iter().map(|&i| piece.offsets[i]).collect();
    let lengths: Vec<u32> = rows.iter().map(|&i| piece.lengths[i]).collect();
    let again = |offsets: &[u64], lengths: &[u32], threads, cancel: &AtomicBool| {
        let rows = Rows {
            file: &file,
            offsets,
            lengths,
            run: Run { threads, cancel },
        };
        read_rows(rows, &rules())
    };
    for threads in [1, 3] {
        let columns = again(&offsets, &lengths, threads, &NEVER).unwrap();
        let texts: Vec<&str> = columns
            .iter()
            .flat_map(|c| (0..c.len()).map(|i| c.get(i)))
            .collect();
        let expected: Vec<&str> = rows.iter().map(|&i| piece.texts.get(i)).collect();
        assert_eq!(texts, expected);
    }
    let shifted: Vec<u64> = offsets.iter().map(|offset| offset + 1).collect();
    let error = again(&shifted, &lengths, 1, &NEVER).unwrap_err();
    assert!(matches!(error, Error::Changed { offset: 1, .. }), "{error}");
    assert!(again(&offsets, &lengths[1..], 1, &NEVER).is_err());
    assert!(matches!(
        again(&offsets, &lengths, 2, &AtomicBool::new(true)),
        Err(Error::Canceled)
    ));
}

#[test]
fn copied_ranges_are_the_bytes_of_the_source() {
    // 40 MB, so that there are several tasks, and ranges longer than a window.
    let bytes: Vec<u8> = (0..40_000_000u32)
        .map(|i| (i.wrapping_mul(2_654_435_761) >> 24) as u8)
        .collect();
    let source = file("source", &bytes);
    let size = bytes.len() as u64;
    let plans: Vec<Vec<(u64, u64)>> = vec![
        vec![],
        vec![(0, size)],
        vec![(0, size + 1)],
        vec![(5, 0), (7, 1)],
        (0..size / 2000)
            .filter(|i| i % 3 > 0)
            .map(|i| (i * 2000, 2000))
            .collect(),
        (0..size / 100_000).map(|i| (i * 100_000, 700)).collect(),
        (0..8).rev().map(|i| (i * 5_000_000, 4_999_999)).collect(),
        vec![
            (10, 9_000_000),
            (9_000_011, 3),
            (9_000_014, 20_000_000),
            (size - 1, 2),
        ],
    ];
    for ranges in plans {
        let expected: Vec<u8> = ranges
            .iter()
            .flat_map(|&(offset, length)| {
                &bytes[offset as usize..((offset + length) as usize).min(bytes.len())]
            })
            .copied()
            .collect();
        for threads in [1, 2] {
            let target = File::create(path("target")).unwrap();
            let num_bytes = copy_ranges(
                &source,
                &target,
                ranges.iter().copied(),
                Run {
                    threads,
                    cancel: &NEVER,
                },
            )
            .unwrap();
            assert_eq!(num_bytes, expected.len() as u64);
            assert!(fs::read(path("target")).unwrap() == expected);
        }
    }
    let target = File::create(path("target")).unwrap();
    let beyond = [(size, 2)].into_iter();
    assert!(matches!(
        copy_ranges(&source, &target, beyond, Run::alone(&NEVER)),
        Err(Error::Changed { .. })
    ));
}
