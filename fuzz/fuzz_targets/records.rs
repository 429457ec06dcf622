//! Any CSV file: the records of pieces of every size are those of the whole.
#![no_main]

use libfuzzer_sys::fuzz_target;
use likewise_disk::{
    CsvDialect, CsvRules, CsvStream, Piece, RecordPiece, RecordSplitter, read_csv_header,
};
use likewise_fuzz::temporary;

/// Where each good and bad row stands, its text or why it is bad, and how many lines there are.
type Rows = (Vec<(u64, u32, String)>, Vec<(u64, u64, String)>, u64);

fn add(rows: &mut Rows, piece: &Piece) {
    for i in 0..piece.texts.len() {
        let text = piece.texts.get(i).to_owned();
        rows.0.push((piece.offsets[i], piece.lengths[i], text));
    }
    for bad in &piece.bad {
        rows.1.push((bad.offset, bad.length, bad.reason.clone()));
    }
    rows.2 += piece.num_lines;
}

// The first byte tells how large pieces are, and how far the file is there when they are cut.
fuzz_target!(|data: &[u8]| {
    let Some((&choice, data)) = data.split_first() else {
        return;
    };
    let file = temporary("records", data);
    let dialect = CsvDialect {
        delimiter: b',',
        has_quotes: true,
    };
    let Ok(header) = read_csv_header(&file, dialect) else {
        return;
    };
    let num_columns = header.names.len();
    if num_columns == 0 {
        return;
    }
    let rules = CsvRules {
        dialect,
        num_columns,
        text_columns: vec![0],
        id_column: (num_columns > 1).then_some(1),
        id_required: false,
        field_columns: vec![None],
        max_document: 4096,
    };
    let read = |piece: RecordPiece| {
        let file = file.try_clone().expect("clone");
        CsvStream::open(
            file,
            rules.clone(),
            piece.offset,
            piece.length,
            piece.stray_lines,
        )
        .and_then(|stream| stream.read(0))
        .expect("read")
    };
    let (start, end) = (header.num_bytes, data.len() as u64);
    let splitter = || RecordSplitter::new(file.try_clone().expect("clone"), dialect, start);
    let mut whole = Rows::default();
    if let Some(piece) = splitter().next_piece(end, end + 1, true).expect("cut") {
        add(&mut whole, &read(piece));
    }
    let (piece_bytes, step) = (u64::from(choice & 15), 1 + u64::from(choice >> 4) * 7);
    let mut splitter = splitter();
    let (mut pieces, mut at, mut limit) = (Rows::default(), start, start);
    while at < end {
        limit = (limit + step).min(end);
        while let Some(piece) = splitter
            .next_piece(limit, piece_bytes, limit == end)
            .expect("cut")
        {
            assert_eq!(piece.offset, at);
            assert!(piece.length > 0);
            at += piece.length;
            add(&mut pieces, &read(piece));
        }
    }
    assert_eq!(pieces, whole);
});
