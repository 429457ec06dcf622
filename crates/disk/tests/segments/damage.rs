//! Is damage found, wherever it is?

use std::fs;
use std::path::Path;

use likewise_disk::Error;
use likewise_disk::environment::PlainFiles;
use likewise_disk::store::LiveSegment;

use super::model::{FINGERPRINTS, Folder, Model, SIGNATURES, open};

/// Replaces a file, opens the segment and queries everything; returns whether the damage was found. A wrong answer
/// fails the test.
fn is_found(dir: &Path, live: &LiveSegment, model: &Model, name: &str, bytes: &[u8]) -> bool {
    // Never written in place: the previous file may still be mapped.
    let path = dir.join(name);
    fs::remove_file(&path).unwrap();
    fs::write(&path, bytes).unwrap();
    let answer = |verify| open(dir, live, verify).and_then(|segment| model.ask(&segment));
    let lazily = match answer(false) {
        Ok(()) => false,
        Err(Error::Damaged { reason }) => {
            assert!(reason.contains(&live.name), "{reason}");
            true
        }
        Err(error) => panic!("{error}"),
    };
    if !lazily {
        return false;
    }
    // Damage that lookups find is also found on opening with verification.
    assert!(matches!(open(dir, live, true), Err(Error::Damaged { .. })));
    true
}

/// Padding bytes between sections, which may have any value.
fn padding(bytes: &[u8]) -> usize {
    bytes.iter().filter(|&&byte| byte == 0).count()
}

#[test]
fn a_flip_of_any_byte_is_found_or_changes_no_answer() {
    for (plan, num, steps) in [(SIGNATURES, 40, [1, 1]), (FINGERPRINTS, 40, [1, 61])] {
        let folder = Folder::new();
        let dir = folder.segments();
        let model = Model::new(plan, num);
        let live = model.build(&dir, &PlainFiles, 3..num, 0).unwrap();
        for (name, step) in folder.names().iter().rev().zip(steps) {
            let whole = fs::read(dir.join(name)).unwrap();
            let mut num_missed = 0;
            for at in (0..whole.len()).step_by(step) {
                let mut bytes = whole.clone();
                bytes[at] ^= 1 << (at % 8);
                num_missed += usize::from(!is_found(&dir, &live, &model, name, &bytes));
            }
            assert!(num_missed <= padding(&whole), "{name}: {num_missed}");
            assert!(is_whole(&dir, &live, &model, name, &whole));
        }
    }
}

#[test]
fn a_file_that_is_cut_anywhere_is_refused() {
    for (plan, num, steps) in [(SIGNATURES, 40, [1, 1]), (FINGERPRINTS, 40, [1, 211])] {
        let folder = Folder::new();
        let dir = folder.segments();
        let model = Model::new(plan, num);
        let live = model.build(&dir, &PlainFiles, 3..num, 0).unwrap();
        for (name, step) in folder.names().iter().rev().zip(steps) {
            let whole = fs::read(dir.join(name)).unwrap();
            for len in (0..whole.len()).step_by(step) {
                assert!(is_found(&dir, &live, &model, name, &whole[..len]), "{len}");
            }
            // Missing bytes read as zeros, and extra bytes.
            let mut longer = whole.clone();
            longer.extend([0; 64]);
            assert!(is_found(&dir, &live, &model, name, &longer));
            for zeros in [whole.len() / 2, whole.len() - 1, 64, 0] {
                let mut bytes = whole.clone();
                bytes[zeros..].fill(0);
                assert!(is_found(&dir, &live, &model, name, &bytes), "{zeros}");
            }
            assert!(is_whole(&dir, &live, &model, name, &whole));
        }
    }
}

fn is_whole(dir: &Path, live: &LiveSegment, model: &Model, name: &str, bytes: &[u8]) -> bool {
    !is_found(dir, live, model, name, bytes)
}

#[test]
fn damage_is_named_and_told_from_then_on() {
    let folder = Folder::new();
    let dir = folder.segments();
    let model = Model::new(SIGNATURES, 3000);
    let live = model.build(&dir, &PlainFiles, 0..3000, 0).unwrap();
    let path = dir.join(format!("{}.lws", live.name));
    let mut bytes = fs::read(&path).unwrap();
    // The bits of rows come first.
    bytes[64 + 100] ^= 4;
    fs::remove_file(&path).unwrap();
    fs::write(&path, &bytes).unwrap();
    let segment = open(&dir, &live, false).unwrap();
    assert!(segment.rows_of_id(5, &mut Vec::new()).is_ok());
    assert_eq!(segment.damage(), None);
    let row = segment.row_at(0).unwrap();
    let reason = match segment.is_kept(row) {
        Err(Error::Damaged { reason }) => reason,
        other => panic!("{other:?}"),
    };
    let expected = format!("{}.lws: block 0 of kept is damaged, at byte 64", live.name);
    assert_eq!(reason, expected);
    assert_eq!(segment.damage(), Some(expected));
}
