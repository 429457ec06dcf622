//! Any file of JSON lines: pieces of every size give the same rows, each line is a row, a bad row or blank.
#![no_main]

use libfuzzer_sys::fuzz_target;
use likewise_disk::{JsonlRules, read_piece, split_lines};
use likewise_fuzz::temporary;

fuzz_target!(|data: &[u8]| {
    let rules = JsonlRules {
        text_fields: vec!["text".to_owned(), "a.b".to_owned()],
        id_field: Some("id".to_owned()),
        id_required: false,
        fields: vec!["date".to_owned()],
        max_document: 4096,
    };
    let file = temporary("lines", data);
    let length = data.len() as u64;
    let whole = (length > 0).then(|| read_piece(&file, 0, length, &rules).expect("read"));
    let (mut num_rows, mut num_bad, mut num_lines) = (0, 0, 0);
    for (offset, length) in split_lines(&file, 7).expect("split") {
        let piece = read_piece(&file, offset, length, &rules).expect("read");
        num_rows += piece.texts.len();
        num_bad += piece.bad.len();
        num_lines += piece.num_lines;
    }
    let Some(whole) = whole else {
        return assert_eq!(num_lines, 0);
    };
    assert_eq!(num_rows, whole.texts.len());
    assert_eq!(num_bad, whole.bad.len());
    assert_eq!(num_lines, whole.num_lines);
});
