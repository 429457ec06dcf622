//! What does a build leave behind when files fail or power is lost?

use likewise_disk::Error;
use likewise_disk::environment::PlainFiles;
use likewise_disk::segments::delete_orphans;

use super::layer::{Fault, FaultyFiles, Luck};
use super::model::{FINGERPRINTS, Folder, Model, SIGNATURES, open};

#[test]
fn the_calls_of_a_publication_come_in_this_order() {
    let folder = Folder::new();
    let files = FaultyFiles::default();
    let model = Model::new(FINGERPRINTS, 50);
    model
        .build(&folder.segments(), &files, 0..50, 1 << 20)
        .unwrap();
    let mut log = files.log();
    log.dedup();
    let parent = folder.0.file_name().unwrap().to_string_lossy().into_owned();
    let golden = [
        "create_dir segments".to_owned(),
        format!("sync_dir {parent}"),
        "create .*.lws.unfinished".to_owned(),
        "create .*.hamming.unfinished".to_owned(),
        "write .*.hamming.unfinished".to_owned(),
        "sync .*.hamming.unfinished".to_owned(),
        "write .*.lws.unfinished".to_owned(),
        "sync .*.lws.unfinished".to_owned(),
        "rename .*.hamming.unfinished *.hamming".to_owned(),
        "rename .*.lws.unfinished *.lws".to_owned(),
        "sync_dir segments".to_owned(),
    ];
    assert_eq!(log, golden);
}

#[test]
fn each_operation_may_fail_and_leaves_an_error_and_nothing_else() {
    for plan in [SIGNATURES, FINGERPRINTS] {
        let model = Model::new(plan, 50);
        for fault in [Fault::Device, Fault::Full, Fault::Short] {
            for for_ever in [false, true] {
                let mut at = 0;
                loop {
                    let folder = Folder::new();
                    let files = FaultyFiles::failing(at, fault, for_ever);
                    match model.build(&folder.segments(), &files, 0..50, 1 << 20) {
                        Ok(live) => {
                            assert!(files.log().len() <= at);
                            let segment = open(&folder.segments(), &live, false).unwrap();
                            model.ask(&segment).unwrap();
                            break;
                        }
                        Err(Error::Io { .. }) => {}
                        Err(error) => panic!("{error}"),
                    }
                    if !for_ever {
                        assert!(folder.names().is_empty(), "{at}: {:?}", folder.names());
                    }
                    // The next writer deletes the leftovers and rebuilds the segment.
                    delete_orphans(&folder.segments(), &PlainFiles, &[]).unwrap();
                    assert!(folder.names().is_empty(), "{at}: {:?}", folder.names());
                    let live = model
                        .build(&folder.segments(), &PlainFiles, 0..50, 1 << 20)
                        .unwrap();
                    let segment = open(&folder.segments(), &live, false).unwrap();
                    model.ask(&segment).unwrap();
                    at += 1;
                }
                assert!(at > 5);
            }
        }
    }
}

#[test]
fn a_segment_that_was_built_survives_a_loss_of_power() {
    for plan in [SIGNATURES, FINGERPRINTS] {
        let model = Model::new(plan, 50);
        for luck in [Luck::None, Luck::Names, Luck::Zeros, Luck::All] {
            let folder = Folder::new();
            let files = FaultyFiles::default();
            let dir = folder.segments();
            let live = model.build(&dir, &files, 0..50, 1 << 20).unwrap();
            files.lose_power(&dir, luck);
            let segment = open(&dir, &live, true).unwrap();
            model.ask(&segment).unwrap();
        }
    }
}

#[test]
fn what_a_loss_of_power_leaves_of_a_build_is_deleted_by_the_next() {
    let model = Model::new(FINGERPRINTS, 50);
    let mut at = 0;
    loop {
        let mut was_built = false;
        for luck in [Luck::None, Luck::Names, Luck::Zeros, Luck::All] {
            let folder = Folder::new();
            let dir = folder.segments();
            let first = model.build(&dir, &PlainFiles, 0..20, 1 << 20).unwrap();
            let files = FaultyFiles::default();
            // The previous state is durable.
            likewise_disk::environment::Files::sync_dir(&files, &dir).unwrap();
            let failing = FaultyFiles::failing(at, Fault::Device, true);
            was_built = model.build(&dir, &failing, 20..50, 1 << 20).is_ok();
            failing.lose_power_after(&files, &dir, luck);
            // The repair is interrupted as well.
            let _ = delete_orphans(
                &dir,
                &FaultyFiles::failing(1, Fault::Device, true),
                std::slice::from_ref(&first.name),
            );
            delete_orphans(&dir, &PlainFiles, std::slice::from_ref(&first.name)).unwrap();
            let expected = [
                format!("{}.hamming", first.name),
                format!("{}.lws", first.name),
            ];
            assert_eq!(folder.names(), expected, "{at} {luck:?}");
            model.ask(&open(&dir, &first, true).unwrap()).unwrap();
            let second = model.build(&dir, &PlainFiles, 20..50, 1 << 20).unwrap();
            model.ask(&open(&dir, &second, true).unwrap()).unwrap();
        }
        if was_built {
            break;
        }
        at += 1;
    }
    assert!(at > 5);
}
