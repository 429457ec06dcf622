//! Any CSV file: records of pieces of every size are the same.
#![no_main]

use libfuzzer_sys::fuzz_target;
use likewise_disk::{CsvRules, CsvStream, read_csv_header};
use likewise_fuzz::temporary;

fuzz_target!(|data: &[u8]| {
    let file = temporary("records", data);
    let Ok(header) = read_csv_header(&file, b',') else {
        return;
    };
    let num_columns = header.names.len();
    let rules = CsvRules {
        delimiter: b',',
        num_columns,
        text_columns: vec![0],
        id_column: (num_columns > 1).then_some(1),
        id_required: false,
        field_columns: vec![None],
        max_document: 4096,
    };
    let count = |piece_bytes: u64| -> Option<(usize, usize)> {
        let again = temporary("records", data);
        let mut stream = CsvStream::open(again, &header, rules.clone()).ok()?;
        let (mut num_rows, mut num_bad) = (0, 0);
        while let Some(piece) = stream.next_piece(piece_bytes).ok()? {
            num_rows += piece.texts.len();
            num_bad += piece.bad.len();
        }
        Some((num_rows, num_bad))
    };
    assert_eq!(count(5), count(1 << 20));
});
