//! Does a segment find what the plain list holds, and does it belong to its database?

use likewise_core::parallel::Run;
use likewise_disk::Error;
use likewise_disk::environment::PlainFiles;
use likewise_disk::segments::{
    Expected, HammingPlan, Piece, Segment, delete_orphans, next_build, next_worn, segment_bytes,
    unlink_segments,
};
use likewise_disk::store::LiveSegment;

use super::model::{
    FINGERPRINTS, Folder, IDENTITY, Model, SIGNATURES, SKETCH_ID, STOP, batch_before, collect, open,
};

#[test]
fn all_that_is_asked_is_answered_as_by_the_plain_list() {
    for plan in [SIGNATURES, FINGERPRINTS] {
        let model = Model::new(plan, 500);
        // Ranges that begin at 0 and later, of one row and of all; in one pass, and in one pass per table.
        for (rows, memory) in [
            (0..500, 0),
            (130..433, 1 << 20),
            (0..1, 0),
            (499..500, 0),
            (64..128, 1 << 20),
        ] {
            let folder = Folder::new();
            let built = model.build_any(&folder.segments(), &PlainFiles, rows.clone(), memory);
            let of_rows = &model.documents[rows.start as usize..rows.end as usize];
            let Some(live) = built.unwrap() else {
                assert!(of_rows.iter().all(|document| document.is_gone));
                continue;
            };
            assert_eq!((live.rows.clone(), live.last_event), (rows.clone(), 7));
            for verify in [false, true] {
                let segment = open(&folder.segments(), &live, verify).unwrap();
                model.ask(&segment).unwrap();
                segment.verify(&STOP).unwrap();
                assert_eq!(segment.damage(), None);
                assert_eq!(
                    segment.num_bytes,
                    segment_bytes(&folder.segments(), &PlainFiles, &live.name)
                );
                let num_found = of_rows
                    .iter()
                    .filter(|document| document.is_found && !document.is_gone)
                    .count();
                assert_eq!(segment.num_found as usize, num_found);
            }
        }
    }
}

#[test]
fn many_are_found_as_one_by_one() {
    let folder = Folder::new();
    let model = Model::new(SIGNATURES, 300);
    let live = model
        .build(&folder.segments(), &PlainFiles, 20..300, 0)
        .unwrap();
    let segment = open(&folder.segments(), &live, false).unwrap();
    let keys: Vec<u64> = (0..300)
        .filter_map(|row| super::model::key_of(&model.documents[row], 1))
        .collect();
    let mut found = Vec::new();
    segment.buckets(1, &keys, &mut found).unwrap();
    let mut expected = Vec::new();
    for (place, &key) in keys.iter().enumerate() {
        let rows = collect(|out| segment.bucket(1, key, out)).unwrap();
        expected.extend(rows.into_iter().map(|row| (place as u32, row)));
    }
    assert!(found.len() > 100);
    assert_eq!(found, expected);
    let outside = segment.bucket(3, 0, &mut Vec::new());
    assert!(matches!(outside, Err(Error::InvalidParameter { .. })));
}

#[test]
fn the_memory_of_a_build_changes_no_byte() {
    for plan in [SIGNATURES, FINGERPRINTS] {
        let model = Model::new(plan, 200);
        let files: Vec<Vec<Vec<u8>>> = [0, 10_000, 1 << 30]
            .into_iter()
            .map(|memory| {
                let folder = Folder::new();
                let dir = folder.segments();
                model.build(&dir, &PlainFiles, 0..200, memory).unwrap();
                let names = folder.names();
                names
                    .iter()
                    .map(|name| std::fs::read(dir.join(name)).unwrap())
                    .collect()
            })
            .collect();
        assert_eq!(files[0], files[1]);
        assert_eq!(files[0], files[2]);
    }
}

#[test]
fn what_belongs_elsewhere_is_refused() {
    let folder = Folder::new();
    let dir = folder.segments();
    let model = Model::new(FINGERPRINTS, 100);
    let live = model.build(&dir, &PlainFiles, 0..50, 0).unwrap();
    let good = Expected {
        identity: IDENTITY,
        sketch_id: SKETCH_ID,
        batch: batch_before(50),
    };
    let open = |live: &LiveSegment, expected| {
        Segment::open(&dir, &PlainFiles, live, &expected, false, &STOP)
    };
    open(&live, good).unwrap();
    let with = |change: &dyn Fn(&mut LiveSegment)| {
        let mut changed = live.clone();
        change(&mut changed);
        open(&changed, good)
    };
    let refused = [
        open(
            &live,
            Expected {
                identity: [0; 16],
                ..good
            },
        ),
        open(
            &live,
            Expected {
                sketch_id: "others",
                ..good
            },
        ),
        open(&live, Expected { batch: 1, ..good }),
        with(&|live| live.rows = 0..49),
        with(&|live| live.rows = 1..50),
        with(&|live| live.rows = 50..50),
        with(&|live| live.batch = 1),
        with(&|live| live.last_event = 8),
        with(&|live| live.details = "{}".to_owned()),
        with(&|live| live.details = live.details.replace(':', ":1")),
    ];
    for (i, result) in refused.into_iter().enumerate() {
        assert!(matches!(result, Err(Error::Damaged { .. })), "{i}");
    }
    // Fingerprints of another segment replace its own.
    let wider = model.build(&dir, &PlainFiles, 0..60, 0).unwrap();
    std::fs::rename(
        dir.join(format!("{}.hamming", wider.name)),
        dir.join(format!("{}.hamming", live.name)),
    )
    .unwrap();
    assert!(matches!(open(&live, good), Err(Error::Damaged { .. })));
    std::fs::remove_file(dir.join(format!("{}.hamming", live.name))).unwrap();
    assert!(matches!(open(&live, good), Err(Error::Io { .. })));
}

#[test]
fn sources_that_do_not_fit_are_refused_and_nothing_is_left() {
    let folder = Folder::new();
    let dir = folder.segments();
    let mut model = Model::new(SIGNATURES, 100);
    model.documents[70].is_found = true;
    model.documents[70].is_gone = false;
    model.documents[70].sketch.pop();
    let refused = [
        model.build(&dir, &PlainFiles, 0..100, 0),
        model.build(&dir, &PlainFiles, 10..10, 0),
    ];
    for result in refused {
        assert!(matches!(result, Err(Error::InvalidParameter { .. })));
    }
    assert!(folder.names().is_empty());
    STOP_HERE.store(true, std::sync::atomic::Ordering::Relaxed);
    let building = likewise_disk::segments::Building {
        isa: likewise_core::isa::Isa::Plain,
        run: Run::alone(&STOP_HERE),
        memory_bytes: 0,
    };
    let stopped = likewise_disk::segments::build_segment(
        &dir,
        &PlainFiles,
        &model,
        0..50,
        &model.plan,
        building,
    );
    assert!(matches!(stopped, Err(Error::Canceled)));
    assert!(folder.names().is_empty());
}

static STOP_HERE: std::sync::atomic::AtomicBool = std::sync::atomic::AtomicBool::new(false);

#[test]
fn files_that_the_store_does_not_name_are_deleted_and_others_stay() {
    let folder = Folder::new();
    let dir = folder.segments();
    assert_eq!(delete_orphans(&dir, &PlainFiles, &[]).unwrap(), 0);
    let model = Model::new(FINGERPRINTS, 60);
    let live = model.build(&dir, &PlainFiles, 0..50, 0).unwrap();
    let old = model.build(&dir, &PlainFiles, 0..40, 0).unwrap();
    let others = [
        format!(".{}.lws.unfinished", live.name),
        ".rows-1-2-0.hamming.unfinished".to_owned(),
        "notes.lws".to_owned(),
        "rows-of-mine.txt".to_owned(),
    ];
    for name in &others {
        std::fs::write(dir.join(name), b"bytes").unwrap();
    }
    let kept = std::slice::from_ref(&live.name);
    assert_eq!(delete_orphans(&dir, &PlainFiles, kept).unwrap(), 4);
    let mut expected = vec![
        "notes.lws".to_owned(),
        format!("{}.hamming", live.name),
        format!("{}.lws", live.name),
        "rows-of-mine.txt".to_owned(),
    ];
    expected.sort();
    assert_eq!(folder.names(), expected);
    // An open segment continues to answer after its files are deleted.
    let segment = open(&dir, &live, false).unwrap();
    unlink_segments(&dir, &PlainFiles, &[old.name, live.name]).unwrap();
    #[cfg(unix)]
    model.ask(&segment).unwrap();
    assert_eq!(folder.names(), ["notes.lws", "rows-of-mine.txt"]);
}

#[test]
fn segments_are_joined_so_that_there_are_few_and_a_row_is_seldom_built_again() {
    let piece = |rows: std::ops::Range<u32>, is_built| Piece {
        num_held: rows.len() as u32,
        num_live: rows.len() as u32,
        rows,
        is_built,
    };
    let mut live: Vec<Piece> = Vec::new();
    let (mut num_built, mut most) = (0, 0);
    let num = 300_000;
    for num_rows in (0..=num).step_by(50) {
        let end = live.last().map_or(0, |piece| piece.rows.end);
        live.push(piece(end..num_rows, false));
        while let Some(rows) = next_build(&live, 100) {
            num_built += rows.len();
            live.retain(|other| other.rows.start < rows.start || other.rows.end > rows.end);
            live.push(piece(rows, true));
            live.sort_by_key(|piece| piece.rows.start);
            let pairs = live.windows(2);
            assert!({ pairs }.all(|pair| pair[0].rows.end == pair[1].rows.start));
            most = most.max(live.len());
        }
        live.retain(|piece| piece.is_built);
        assert!(num_rows - live.last().map_or(0, |piece| piece.rows.end) < 100);
    }
    // Tiers of 100, 400, 1,600, 6,400, 25,600 and 102,400 rows.
    assert!(most <= 3 * 6, "{most}");
    assert!(num_built <= 6 * num as usize, "{num_built}");
    // A lost segment is rebuilt alone; rows at the end wait.
    let (built, open) = (|rows| piece(rows, true), |rows| piece(rows, false));
    let due = |pieces: &[Piece]| next_build(pieces, 100);
    let lost = [
        built(0..800),
        open(800..900),
        built(900..1000),
        open(1000..1050),
    ];
    assert_eq!(due(&lost), Some(800..900));
    assert_eq!(
        due(&[built(0..800), built(800..1000), open(1000..1050)]),
        None
    );
    assert_eq!(due(&[open(0..99)]), None);
    assert_eq!(due(&[open(0..40), open(40..101)]), Some(0..101));
    assert_eq!(due(&[open(0..5), built(5..200)]), Some(0..5));
    // Gone rows do not count: old segments with few remaining rows are joined with small ones.
    let worn = |rows: std::ops::Range<u32>, num_live| Piece {
        num_live,
        ..built(rows)
    };
    let old = [
        worn(0..9000, 90),
        worn(9000..9900, 80),
        worn(9900..9999, 99),
    ];
    let mut pieces = old.to_vec();
    pieces.push(open(20_000..20_100));
    assert_eq!(due(&pieces), Some(0..20_100));
    assert_eq!(next_worn(&old), Some(0..9000));
    assert_eq!(next_worn(&old[2..]), None);
    assert_eq!(next_worn(&[worn(7..9, 1)]), Some(7..9));
}

#[test]
fn rows_that_are_gone_or_were_dropped_are_not_held() {
    for plan in [FINGERPRINTS, SIGNATURES] {
        let mut model = Model::new(plan, 400);
        for (row, document) in model.documents.iter_mut().enumerate() {
            document.is_gone |= row < 30 || (100..350).contains(&row);
        }
        // In one pass, and in as many passes as there are tables.
        for memory_bytes in [1 << 30, 0] {
            let folder = Folder::new();
            let dir = folder.segments();
            for rows in [0..400, 99..351, 360..380] {
                let live = model
                    .build(&dir, &PlainFiles, rows.clone(), memory_bytes)
                    .unwrap();
                let segment = open(&dir, &live, true).unwrap();
                model.ask(&segment).unwrap();
                let held = rows.clone().filter(|&row| segment.holds(row).unwrap());
                for (place, row) in (0..).zip(held) {
                    assert_eq!(segment.row_at(place).unwrap(), row);
                    assert_eq!(segment.num_below(row).unwrap(), place);
                }
                assert!(!segment.holds(rows.end).unwrap());
                assert_eq!(segment.num_below(u32::MAX).unwrap(), segment.num_rows);
            }
            let before = folder.names();
            let none = model.build_any(&dir, &PlainFiles, 100..350, memory_bytes);
            assert!(none.unwrap().is_none());
            assert_eq!(folder.names(), before);
        }
    }
}

#[test]
fn segments_without_sketches_and_sets_that_are_scanned_are_segments_too() {
    let mut model = Model::new(FINGERPRINTS, 70);
    let wide = HammingPlan {
        bits: 64,
        within: 40,
        table_bytes: None,
    };
    for plan in [FINGERPRINTS.hamming, Some(wide)] {
        model.plan.hamming = plan;
        for is_found in [true, false] {
            for document in &mut model.documents {
                document.is_found = is_found;
            }
            let folder = Folder::new();
            let dir = folder.segments();
            let live = model.build(&dir, &PlainFiles, 7..70, 0).unwrap();
            let segment = open(&dir, &live, true).unwrap();
            model.ask(&segment).unwrap();
            assert_eq!(segment.num_found > 0, is_found);
        }
    }
}

#[test]
fn fingerprints_come_in_whole_words_or_in_their_own_bytes() {
    let mut model = Model::new(FINGERPRINTS, 30);
    model.plan.hamming = Some(HammingPlan {
        bits: 96,
        within: 3,
        table_bytes: None,
    });
    let files = [12, 16].map(|num_bytes| {
        for document in &mut model.documents {
            document.sketch.truncate(8);
            document.sketch.extend([1, 2, 3, 4, 0, 0, 0, 0]);
            document.sketch.truncate(num_bytes);
        }
        let folder = Folder::new();
        let dir = folder.segments();
        let live = model.build(&dir, &PlainFiles, 0..30, 0).unwrap();
        std::fs::read(dir.join(format!("{}.hamming", live.name))).unwrap()
    });
    assert_eq!(files[0], files[1]);
    model.documents[4].sketch.pop();
    model.documents[4].is_found = true;
    model.documents[4].is_gone = false;
    let folder = Folder::new();
    let refused = model.build(&folder.segments(), &PlainFiles, 0..30, 0);
    assert!(matches!(refused, Err(Error::InvalidParameter { .. })));
}
