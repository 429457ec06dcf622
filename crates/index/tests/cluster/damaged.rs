//! Bytes from servers that are cut or changed give an error or another value: no panic, and no memory beyond what they can contain.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

use likewise_core::parallel::Run;
use likewise_index::cluster::{Reply, Restoring};

use super::*;

thread_local! {
    /// Bytes that this thread requested since it was set to 0.
    static REQUESTED: Cell<usize> = const { Cell::new(0) };
}

struct Counting;

// SAFETY: every call is passed on unchanged to the allocator of the system.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        REQUESTED.set(REQUESTED.get().saturating_add(layout.size()));
        // SAFETY: the caller keeps the contract of this function, which is the same.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: as above.
        unsafe { System.dealloc(pointer, layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        REQUESTED.set(REQUESTED.get().saturating_add(size));
        // SAFETY: as above.
        unsafe { System.realloc(pointer, layout, size) }
    }
}

#[global_allocator]
static COUNTING: Counting = Counting;

/// A few values of a few hundred bytes may follow from one byte: an empty document, a removed record.
const BYTES_A_BYTE: usize = 2048;
const FIXED_BYTES: usize = 1 << 20;
const CHANGES: usize = 400;

/// Reads bytes that are cut or changed.
fn damaged(what: &str, sound: &[u8], chance: &mut Chance, read: &dyn Fn(&[u8])) {
    for change in 0..CHANGES {
        let mut bytes = sound.to_vec();
        match change % 5 {
            // Each cut of short ones.
            0 => bytes.truncate(chance.below(bytes.len() + 1)),
            1 => bytes = bytes.split_off(chance.below(bytes.len() + 1)),
            // Large counts and lengths.
            2 if !bytes.is_empty() => {
                let begin = chance.below(bytes.len());
                let end = bytes.len().min(begin + 1 + chance.below(9));
                bytes[begin..end].fill([0, 0x7f, 0x80, 0xff][chance.below(4)]);
            }
            3 if !bytes.is_empty() => {
                let place = chance.below(bytes.len());
                bytes.insert(place, chance.below(256) as u8);
            }
            _ => {
                for _ in 0..1 + chance.below(4) {
                    if !bytes.is_empty() {
                        let place = chance.below(bytes.len());
                        bytes[place] ^= 1 << chance.below(8);
                    }
                }
            }
        }
        REQUESTED.set(0);
        read(&bytes);
        let requested = REQUESTED.get();
        let bound = FIXED_BYTES + BYTES_A_BYTE * (bytes.len() + sound.len());
        assert!(
            requested <= bound,
            "{what}: {requested} bytes for {bytes:?}"
        );
    }
}

/// Operations with their verdicts, and questions with that on one on which no decision is possible.
fn samples(views: &mut Views) -> Vec<(Vec<u8>, Vec<u8>)> {
    let sketching = views.rule.sketching.clone();
    let mut chance = Chance(7);
    let mut all = Vec::new();
    let rejected = views.rule.rejected("no decision is possible");
    for num in [1, 12, 3] {
        let texts: Vec<String> = (0..num).map(|_| text(&mut chance)).collect();
        let ids: Vec<String> = (0..num).map(|i| format!("doc-{num}-{i}")).collect();
        let ids: Vec<&str> = ids.iter().map(String::as_str).collect();
        let range = 0..texts.len();
        let documents = sketching.documents(
            std::slice::from_ref(&range),
            |i| Document::Text(&texts[i]),
            Run::alone(&GO_ON),
        );
        let documents = documents.unwrap();
        let payload = views.rule.add(&ids, &documents);
        let (verdict, _) = views.run(payload.clone());
        all.push((payload, verdict));
        let nearest = likewise_index::Nearest {
            limit: 3,
            min_similarity: 0.0,
        };
        let payload = views.rule.check(&documents);
        let verdict = views.decide(&payload, [0, 0]);
        all.push((payload, verdict));
        all.push((views.rule.neighbors(&documents, nearest), rejected.clone()));
    }
    for kind in [Kind::Get, Kind::Group] {
        let payload = views.rule.of_id(kind, "doc-12-3");
        all.push((payload, rejected.clone()));
    }
    for kind in [Kind::List, Kind::Audit, Kind::Records] {
        let payload = views.rule.of_rows(kind, &(0..20));
        all.push((payload, rejected.clone()));
    }
    let mut records = views.decided(&all.last().unwrap().0, [0, 0]);
    let Some(Reply::Records(moved, _)) = records.take_reply() else {
        panic!("another answer");
    };
    let mut swept = Vec::new();
    for document in &moved[..3] {
        swept.push((Default::default(), document.record.clone()));
    }
    let swept = views.rule.packed(&Answer::Swept(3, swept));
    let restoring = Restoring::new(&views.rule).operations(&views.rule, &moved);
    let restored = views.rule.packed(&Answer::Restored(moved.len(), 3));
    all.extend((restoring.into_iter()).map(|(payload, _)| (payload, restored.clone())));
    let sweep = views.rule.of_rows(Kind::Sweep, &(0..20));
    all.push((sweep, swept));
    for id in ["doc-12-0", "doc-12-1", "doc-1-0", "unknown"] {
        let payload = views.rule.of_id(Kind::Remove, id);
        let (verdict, _) = views.run(payload.clone());
        all.push((payload, verdict));
    }
    all
}

/// Decides on an operation, with one string of one reply replaced.
fn decide_on_damaged(views: &Views, payload: &[u8], kind: usize, chance: &mut Chance) {
    let arrived = Arrived {
        row: views.row,
        second: 0,
        tag: [0, 0],
        low_row: views.row,
        below: &[],
        tail: &[],
    };
    let begin = || Decision::new(views.rule.clone(), payload, &arrived).unwrap();
    let mut sound = begin();
    let round = sound.wanted().unwrap();
    for (number, wanted) in round.iter().enumerate() {
        let partition = &views.partitions[wanted.partition as usize];
        let found: Vec<Vec<u8>> = strings(&wanted.tables, 2)
            .iter()
            .map(|name| partition.strings.get(name).cloned().unwrap_or_default())
            .collect();
        let fields = strings(&wanted.records, 2);
        let records: Vec<Vec<u8>> = fields
            .chunks(2)
            .map(|pair| partition.all_of(&pair[0], &pair[1]))
            .collect();
        let changes: Vec<u8> = (partition.changes.values()).flatten().copied().collect();
        let replaced = match kind {
            0 => found.iter().max_by_key(|one| one.len()).cloned(),
            1 => records.iter().max_by_key(|one| one.len()).cloned(),
            _ => Some(changes.clone()),
        };
        let Some(replaced) = replaced else {
            continue;
        };
        damaged("a reply", &replaced, chance, &|bytes| {
            let mut decision = begin();
            decision.wanted().unwrap();
            let of = |one: &Vec<u8>, is_kind: bool| match is_kind && *one == replaced {
                true => bytes.to_vec(),
                false => one.clone(),
            };
            let found: Vec<Vec<u8>> = found.iter().map(|one| of(one, kind == 0)).collect();
            let records: Vec<Vec<u8>> = records.iter().map(|one| of(one, kind == 1)).collect();
            let changes = of(&changes, kind == 2);
            let found: Vec<&[u8]> = found.iter().map(Vec::as_slice).collect();
            let records: Vec<Option<&[u8]>> =
                records.iter().map(|one| Some(one.as_slice())).collect();
            if (decision.take(wanted.partition, &found, &records, &[&changes])).is_ok()
                && number == 0
            {
                // Replies of other partitions are missing.
                let _ = decision.wanted();
            }
        });
    }
}

#[test]
fn damaged_bytes_are_an_error_or_another_value() {
    for (name, rules) in all_rules() {
        let names = Names::for_expected(&rules, 1_000).unwrap();
        let packed_names = names.pack();
        let rule = ClusterRule::new(sketching(rules), names, PARTITIONS, None).unwrap();
        let mut views = Views {
            rule: Arc::new(rule),
            partitions: (0..PARTITIONS).map(|_| Partition::default()).collect(),
            log: Vec::new(),
            row: 0,
            low: 0,
            written: 0,
            chance: Chance(3),
        };
        let mut chance = Chance(11);
        let all = samples(&mut views);
        let rule = views.rule.clone();
        damaged("names", &packed_names, &mut chance, &|bytes| {
            let _ = Names::unpack(&rules, bytes);
        });
        for (payload, verdict) in &all {
            damaged(name, payload, &mut chance, &|bytes| {
                let _ = verdicts(&rule, bytes, 5, verdict);
                let _ = rule.effects(bytes, 5, 0, [1, 2], verdict);
            });
            damaged(name, verdict, &mut chance, &|bytes| {
                let _ = rule.counts(bytes);
                let _ = verdicts(&rule, payload, 5, bytes);
                let _ = rule.effects(payload, 5, 0, [1, 2], bytes);
                let tail = [Past {
                    row: 5,
                    second: 0,
                    tag: [1, 2],
                    payload,
                    verdict: bytes,
                }];
                let arrived = Arrived {
                    row: 40,
                    second: 0,
                    tag: [0, 0],
                    low_row: 5,
                    below: &[],
                    tail: &tail,
                };
                let _ = Decision::new(rule.clone(), payload, &arrived);
            });
        }
        for partition in &views.partitions {
            for (_, record) in partition.hashes.iter().take(3) {
                damaged("record", record, &mut chance, &|bytes| {
                    let _ = rule.id_of_record(bytes);
                });
            }
        }
        for kind in 0..3 {
            for (payload, _) in &all {
                decide_on_damaged(&views, payload, kind, &mut chance);
            }
        }
    }
}
