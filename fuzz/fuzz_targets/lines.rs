//! Any file of JSON lines: pieces of every size give the same rows, also of lists of tokens, each line is a row, a bad row or
//! blank; rows whose text loses its first half are the rows of the other half.
#![no_main]

use std::fs::File;
use std::sync::atomic::AtomicBool;

use libfuzzer_sys::fuzz_target;
use likewise_core::parallel::Run;
use likewise_disk::{
    JsonlRules, RoleRules, Rows, Stretches, TokenRules, read_piece, rewrite_rows, split_lines,
};
use likewise_fuzz::temporary;

fuzz_target!(|data: &[u8]| {
    let file = temporary("lines", data);
    let length = data.len() as u64;
    let texts = JsonlRules {
        text_fields: vec!["text".to_owned(), "a.b".to_owned()],
        id_field: Some("id".to_owned()),
        id_required: false,
        fields: vec!["date".to_owned()],
        tokens: None,
        text_without_tokens: None,
        roles: RoleRules::default(),
        max_document: 4096,
    };
    check_pieces(&file, length, &texts);
    let lists = JsonlRules {
        text_fields: vec!["text[].b".to_owned()],
        ..texts.clone()
    };
    check_pieces(&file, length, &lists);
    for (are_weighted, scale) in [(false, None), (true, None), (true, Some(100.0))] {
        let tokens = JsonlRules {
            text_fields: vec!["text".to_owned()],
            tokens: Some(TokenRules {
                are_weighted,
                scale,
            }),
            text_without_tokens: Some(Box::new(texts.clone())),
            ..texts.clone()
        };
        check_pieces(&file, length, &tokens);
    }
    check_rewritten(&file, length);
});

/// Reads the file whole and in pieces.
fn check_pieces(file: &File, length: u64, rules: &JsonlRules) {
    let whole = (length > 0).then(|| read_piece(file, 0, length, rules).expect("read"));
    let (mut num_rows, mut num_bad, mut num_lines) = (0, 0, 0);
    for (offset, length) in split_lines(file, 7).expect("split") {
        let piece = read_piece(file, offset, length, rules).expect("read");
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
}

/// Takes the first half of every text away, and reads what is left.
fn check_rewritten(file: &File, length: u64) {
    let rules = JsonlRules {
        text_fields: vec!["text".to_owned()],
        id_field: None,
        id_required: false,
        fields: Vec::new(),
        tokens: None,
        text_without_tokens: None,
        roles: RoleRules::default(),
        max_document: 4096,
    };
    let before = read_piece(file, 0, length, &rules).expect("read");
    let texts: Vec<&str> = (0..before.texts.len())
        .map(|i| before.texts.get(i))
        .collect();
    let halves: Vec<usize> = texts
        .iter()
        .map(|text| text.floor_char_boundary(text.len() / 2))
        .collect();
    let gone = Stretches {
        counts: &vec![1; texts.len()],
        starts: &vec![0; texts.len()],
        ends: &halves.iter().map(|&half| half as u32).collect::<Vec<_>>(),
        keeps_words_apart: false,
    };
    let never = AtomicBool::new(false);
    let rows = Rows {
        file,
        offsets: &before.offsets,
        lengths: &before.lengths,
        run: Run::alone(&never),
    };
    let made = rewrite_rows(rows, &rules, gone).expect("rewrite");
    assert_eq!(made.num_removed_bytes, halves.iter().sum::<usize>() as u64);
    let expected: Vec<&str> = (0..texts.len()).map(|i| &texts[i][halves[i]..]).collect();
    let file = temporary("rewritten", &made.lines);
    let after = read_piece(&file, 0, made.lines.len() as u64, &rules).expect("read");
    let left: Vec<&str> = (0..after.texts.len()).map(|i| after.texts.get(i)).collect();
    assert_eq!(left, expected);
}
