//! Buckets in files must give the same pairs as buckets in memory.

use std::path::PathBuf;

use likewise_core::bands::BandBuckets;
use likewise_core::hash::mix64;
use likewise_core::isa::Isa;

use super::*;

static STOP: AtomicBool = AtomicBool::new(false);

/// Signatures of 8 slots of a byte, of which a third are of one template, a third in small clusters.
fn signatures(len: u64) -> Vec<u8> {
    (0..len * 8)
        .map(|i| {
            let (row, slot) = (i / 8, i % 8);
            let changes = mix64(i).is_multiple_of(10);
            let value = match row % 3 {
                0 if !changes => mix64(slot),
                1 if !changes => mix64(row / 12 * 8 + slot + 1000),
                _ => mix64(i + 77),
            };
            value as u8 % 64
        })
        .collect()
}

fn folder(name: &str) -> PathBuf {
    let folder = std::env::temp_dir().join(format!("likewise-bands-{}-{name}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    folder
}

#[test]
fn little_memory_changes_no_pair() {
    let bytes = signatures(3000);
    let signatures = Signatures {
        bytes: &bytes,
        num_slots: 8,
        slot_bytes: 1,
    };
    let order: Vec<u32> = (0..2900).map(|i| (i * 7) % 3000).collect();
    let states: Vec<u8> = (0..2900).map(|i| if i % 5 == 0 { 2 } else { 1 }).collect();
    let held = BandBuckets::build(signatures, &order, 4, 2, 3, Run::alone(&STOP)).unwrap();
    assert!(held.num_capped > 100);
    assert!(!held.crowded().is_empty());
    let folder = folder("pairs");
    for scratch_bytes in [1 << 30, 100_000, 5_000] {
        for threads in [1, 3] {
            let spilled = SpilledBuckets::build(
                signatures,
                &order,
                4,
                2,
                3,
                &folder,
                scratch_bytes,
                Run {
                    threads,
                    cancel: &STOP,
                },
            )
            .unwrap();
            // Mapped files have no name.
            assert_eq!(std::fs::read_dir(&folder).unwrap().count(), 0);
            assert_eq!(spilled.num_capped(), held.num_capped);
            assert_eq!(spilled.crowded(), held.crowded());
            assert!(spilled.num_bytes() > 0);
            for range in [0..2900_u32, 100..101, 2000..2900, 5..5] {
                for (states, max_pairs) in [(None, usize::MAX), (Some(&states[..]), 50)] {
                    let call = Call {
                        states,
                        max_pairs,
                        min_equal: 3,
                        isa: Isa::best(),
                        ..Call::of(range.clone(), &STOP)
                    };
                    let expected = held.view().candidates(signatures, &order, &call).unwrap();
                    let found = spilled.candidates(signatures, &order, &call).unwrap();
                    assert_eq!(found, expected);
                }
            }
        }
    }
    std::fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn misfits_and_places_that_cannot_be_written_are_refused() {
    let bytes = signatures(50);
    let signatures = Signatures {
        bytes: &bytes,
        num_slots: 8,
        slot_bytes: 1,
    };
    let order: Vec<u32> = (0..50).collect();
    let folder = folder("misfits");
    let nowhere = folder.join("absent");
    let build = |bands, place: &Path, stop: &AtomicBool| {
        SpilledBuckets::build(
            signatures,
            &order,
            bands,
            2,
            3,
            place,
            1 << 20,
            Run {
                threads: 2,
                cancel: stop,
            },
        )
    };
    assert!(matches!(
        build(5, &folder, &STOP),
        Err(Error::InvalidParameter { .. })
    ));
    assert!(matches!(build(4, &nowhere, &STOP), Err(Error::Io { .. })));
    let stopped = AtomicBool::new(true);
    assert!(matches!(build(4, &folder, &stopped), Err(Error::Canceled)));
    assert_eq!(std::fs::read_dir(&folder).unwrap().count(), 0);
    let found = build(4, &folder, &STOP).unwrap();
    let range = 40..51;
    let result = found.candidates(
        signatures,
        &order,
        &Call {
            max_pairs: 9,
            ..Call::of(range, &STOP)
        },
    );
    assert!(matches!(result, Err(Error::InvalidParameter { .. })));
    std::fs::remove_dir_all(&folder).unwrap();
}
