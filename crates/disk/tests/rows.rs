//! What lines mean: texts, ids, fields, reasons of bad rows.
#![allow(missing_docs)]

mod common;

use common::{file, rules};
use likewise_disk::{JsonlRules, Piece, RoleRules, TextColumn, read_piece};

fn read(name: &str, bytes: &[u8], rules: &JsonlRules) -> Piece {
    read_piece(&file(name, bytes), 0, bytes.len() as u64, rules).unwrap()
}

fn list(column: &TextColumn) -> Vec<&str> {
    (0..column.len()).map(|i| column.get(i)).collect()
}

/// Returns the text of a file with one line, or the reason why there is none.
fn one(name: &str, line: &[u8], rules: &JsonlRules) -> Result<String, String> {
    let piece = read(name, line, rules);
    assert_eq!(piece.num_lines, 1);
    match piece.bad.first() {
        Some(bad) => {
            assert!(piece.texts.is_empty());
            assert_eq!(
                (bad.offset, bad.length, bad.line_number),
                (0, line.len() as u64, 0)
            );
            Err(bad.reason.clone())
        }
        None => Ok(piece.texts.get(0).to_owned()),
    }
}

#[test]
fn rows_blank_lines_line_ends_and_a_mark() {
    let bytes = b"\xEF\xBB\xBF{\"text\":\"a\"}\r\n\n \t\r\n{\"id\":7,\"text\":\"\xC3\xA9\\n\"}\nnope\n {\"text\":\"last\", \"id\":\"7\"}";
    let piece = read("mark", bytes, &rules());
    assert_eq!(list(&piece.texts), ["a", "é\n", "last"]);
    assert_eq!(list(&piece.ids), ["", "7", "7"]);
    assert_eq!(piece.has_id, [0, 1, 1]);
    assert_eq!(piece.line_numbers, [0, 3, 5]);
    assert_eq!((piece.num_lines, piece.num_blank), (6, 2));
    let lines: Vec<&[u8]> = piece
        .offsets
        .iter()
        .zip(&piece.lengths)
        .map(|(&offset, &length)| &bytes[offset as usize..][..length as usize])
        .collect();
    assert_eq!(lines[0], b"\xEF\xBB\xBF{\"text\":\"a\"}\r");
    assert_eq!(lines[2], b" {\"text\":\"last\", \"id\":\"7\"}");
    assert_eq!(piece.bad.len(), 1);
    assert_eq!((piece.bad[0].line_number, piece.bad[0].length), (4, 4));
}

#[test]
fn a_mark_counts_only_at_the_start_of_the_file() {
    let bytes = b"\n\xEF\xBB\xBF{\"text\":\"a\"}\n";
    let piece = read("late-mark", bytes, &rules());
    assert_eq!((piece.texts.len(), piece.bad.len()), (0, 1));
}

#[test]
fn strings_are_read_as_python_reads_them() {
    for (line, text) in [
        (r#"{"text":"\ud800"}"#, "\u{FFFD}"),
        (r#"{"text":"a\udfffb\ud83d\ude00"}"#, "a\u{FFFD}b😀"),
        (r#"{"text":"\ud800\ud800x"}"#, "\u{FFFD}\u{FFFD}x"),
        (
            r#"{"text":"\u0000\u001f\"\\\/\b\f\n\r\t"}"#,
            "\0\u{1f}\"\\/\u{8}\u{c}\n\r\t",
        ),
        (
            r#"{"\ud800":1,"te\u0078t":"key with escapes"}"#,
            "key with escapes",
        ),
        (r#"{"text":"first","text":"second"}"#, "second"),
        (r#"{"text":null,"text":"second"}"#, "second"),
        (r#"{"text":"","x":[{"text":1}]}"#, ""),
        ("{\"text\":\t\"tab outside\"\t}\r", "tab outside"),
        (r#"{"x":NaN,"y":[-Infinity, Infinity],"text":"NaN"}"#, "NaN"),
        (
            r#"{"x":1e999,"y":123456789012345678901234567890,"text":"big"}"#,
            "big",
        ),
        ("{\"text\":\"\u{7f}\u{2028}\"}", "\u{7f}\u{2028}"),
    ] {
        assert_eq!(
            one("strings", line.as_bytes(), &rules()).as_deref(),
            Ok(text),
            "{line}"
        );
    }
    let deep = format!(
        "{{\"x\":{}{},\"text\":\"deep\"}}",
        "[".repeat(200_000),
        "]".repeat(200_000)
    );
    assert_eq!(
        one("deep", deep.as_bytes(), &rules()).as_deref(),
        Ok("deep")
    );
}

#[test]
fn texts_of_lists_are_joined() {
    let rules = JsonlRules {
        text_fields: vec!["m[].c".into()],
        roles: RoleRules {
            names: vec!["system".into()],
            are_counted: false,
        },
        ..rules()
    };
    for (line, text) in [
        (r#"{"m":[{"c":"a"},{"c":"b\n"},null,{}]}"#, "a\nb\n"),
        (
            r#"{"m":[{"c":"a","role":"System"},{"role":"x","c":""}]}"#,
            "",
        ),
        (
            r#"{"m":[{"role":null,"from":"system","c":"a"},{"c":null},{"c":"é"}]}"#,
            "é",
        ),
        (
            r#"{"m":[{"c":["a",null,{"text":"b"},{"image":[1]}]},{"c":"\ud800"}]}"#,
            "a\nb\n\u{FFFD}",
        ),
        (r#"{"m":[{"c":"a","c":"b","n":NaN}]}"#, "b"),
        (r#"{"m":1,"m":[{"c":"a"}]}"#, "a"),
    ] {
        assert_eq!(
            one("turns", line.as_bytes(), &rules).as_deref(),
            Ok(text),
            "{line}"
        );
    }
    let deep = format!(
        r#"{{"m":[{{"c":"a","x":{0}{1}}}]}}"#,
        "[".repeat(100_000),
        "]".repeat(100_000)
    );
    assert_eq!(one("turns", deep.as_bytes(), &rules).as_deref(), Ok("a"));
    let deep = format!(
        r#"{{"m":[{{"c":{0}{1}}}]}}"#,
        "[".repeat(100_000),
        "]".repeat(100_000)
    );
    assert!(one("turns", deep.as_bytes(), &rules).is_err());
}

#[test]
fn bad_rows_say_why() {
    for (line, reason) in [
        (&br#"{"txt":"a"}"#[..], "no field \"text\""),
        (br#"{"text":null}"#, "field \"text\" is null"),
        (br#"{"text":"a","text":null}"#, "field \"text\" is null"),
        (
            br#"{"text":12}"#,
            "field \"text\" is a number, not a string",
        ),
        (br#"{"text":NaN}"#, "field \"text\" is NaN, not a string"),
        (
            br#"{"text":true}"#,
            "field \"text\" is a boolean, not a string",
        ),
        (
            br#"{"text":[1]}"#,
            "field \"text\": a number in the list, not a string",
        ),
        (br#"{"text":[]}"#, "no text in \"text\""),
        (
            br#"{"text":[["a"]]}"#,
            "field \"text\": a list in the list, not a string",
        ),
        (
            br#"{"text":{"a":1}}"#,
            "field \"text\" is an object, not a string",
        ),
        (br#"["text"]"#, "the line is a list, not a JSON object"),
        (br#" "text""#, "the line is a string, not a JSON object"),
        (
            br#"{"text":"a","id":1.5}"#,
            "id field \"id\" is a number with a fraction or exponent; ids must be strings or whole numbers; use --id-field none to ignore ids",
        ),
        (
            br#"{"text":"a","id":1e2}"#,
            "id field \"id\" is a number with a fraction or exponent; ids must be strings or whole numbers; use --id-field none to ignore ids",
        ),
        (
            br#"{"text":"a","id":true}"#,
            "id field \"id\" is a boolean; ids must be strings or whole numbers; use --id-field none to ignore ids",
        ),
        (
            br#"{"text":"a","id":-Infinity}"#,
            "id field \"id\" is -Infinity; ids must be strings or whole numbers; use --id-field none to ignore ids",
        ),
        (
            b"{\"text\":\"\xff\"}",
            "bad UTF-8: byte 0xff at byte 9 of the line",
        ),
        (
            b"{\"text\":\"\xed\xa0\x80\"}",
            "bad UTF-8: byte 0xed at byte 9 of the line",
        ),
        (
            br#"{"text":"a"} x"#,
            "bad JSON at byte 14 of the line: trailing characters",
        ),
        (
            br#"{"text":"a"#,
            "bad JSON at byte 10 of the line: EOF while parsing a string",
        ),
        (
            br#"{"text":"a","x":01}"#,
            "bad JSON at byte 18 of the line: invalid number",
        ),
        (
            br#"{"text":"a",}"#,
            "bad JSON at byte 13 of the line: trailing comma",
        ),
    ] {
        let shown = String::from_utf8_lossy(line);
        assert_eq!(one("bad", line, &rules()).unwrap_err(), reason, "{shown}");
    }
    for line in [
        &b"{\"text\":\"a\tb\"}"[..],
        b"{\"text\":\"a\\n\x01\"}",
        b"{\"x\":\"\x1f\",\"text\":\"\"}",
        b"{\"\x02\":0,\"text\":\"\"}",
    ] {
        let reason = one("control", line, &rules()).unwrap_err();
        assert!(reason.contains("control character"), "{reason}");
    }
}

#[test]
fn ids_are_strings_and_integers_as_written() {
    for (id, expected) in [
        ("12345678901234567890123", Some("12345678901234567890123")),
        ("-5", Some("-5")),
        ("-0", Some("-0")),
        ("\"\"", Some("")),
        (r#""\ud800\u00e9""#, Some("\u{FFFD}é")),
        ("7.0", Some("7")),
        ("-7.00", Some("-7")),
        ("-0.0", Some("0")),
        ("null", None),
        ("NaN", None),
    ] {
        let line = format!("{{\"id\":{id},\"text\":\"\"}}");
        let piece = read("ids", line.as_bytes(), &rules());
        assert_eq!(piece.has_id, [u8::from(expected.is_some())], "{id}");
        assert_eq!(list(&piece.ids), [expected.unwrap_or_default()]);
    }
    let required = JsonlRules {
        id_required: true,
        ..rules()
    };
    let reason = |line: &str| one("required", line.as_bytes(), &required).unwrap_err();
    assert_eq!(reason(r#"{"text":""}"#), "no id field \"id\"");
    assert_eq!(
        reason(r#"{"text":"","id":null}"#),
        "id field \"id\" is null"
    );
    assert_eq!(reason(r#"{"text":"","id":NaN}"#), "id field \"id\" is NaN");
    assert_eq!(
        reason(r#"{"text":"","id":1,"id":null}"#),
        "id field \"id\" is null"
    );
}

#[test]
fn dotted_paths_several_texts_and_further_fields() {
    let wanted = JsonlRules {
        text_fields: vec!["b.title".into(), "body".into()],
        id_field: Some("b.id".into()),
        fields: vec!["b".into(), "date".into(), "body".into(), "b.x.y".into()],
        ..rules()
    };
    let line = br#"{"body":"B\n","date": NaN,"b":{"title":"T","id":3, "x" : {"y": [1, 2]}}}"#;
    let piece = read("dotted", line, &wanted);
    assert_eq!(piece.bad, []);
    assert_eq!(list(&piece.texts), ["T\nB\n"]);
    assert_eq!(list(&piece.ids), ["3"]);
    let fields: Vec<&str> = piece.fields.iter().map(|field| field.get(0)).collect();
    assert_eq!(
        fields,
        [
            r#"{"title":"T","id":3, "x" : {"y": [1, 2]}}"#,
            "NaN",
            r#""B\n""#,
            "[1, 2]"
        ]
    );
    // The last object of a key counts as a whole: nothing of the earlier one remains.
    for line in [
        r#"{"body":"B","b":{"title":"T"},"b":{}}"#,
        r#"{"body":"B","b":"T"}"#,
        r#"{"body":"B"}"#,
    ] {
        assert_eq!(
            one("dotted-gone", line.as_bytes(), &wanted).unwrap_err(),
            "no field \"b.title\""
        );
    }
    let fast = JsonlRules {
        fields: Vec::new(),
        ..wanted
    };
    for line in [
        r#"{"body":"B","b":{"title":"T"},"b":{}}"#,
        r#"{"body":"B","b":"T"}"#,
        r#"{"body":"B"}"#,
    ] {
        assert_eq!(
            one("dotted-fast", line.as_bytes(), &fast).unwrap_err(),
            "no field \"b.title\""
        );
    }
    assert_eq!(one("dotted-good", line, &fast).as_deref(), Ok("T\nB\n"));
}

#[test]
fn a_line_over_the_limit_is_bad_and_the_rest_is_read() {
    let rules = JsonlRules {
        max_document: 1000,
        ..rules()
    };
    let fits = format!("{{\"text\":\"{}\"}}", "x".repeat(1000 - 11));
    assert_eq!(fits.len(), 1000);
    for long in [1001, 5000, 3 << 20] {
        let long_line = format!("{{\"text\":\"{}\"}}", "y".repeat(long - 11));
        let bytes = format!("{fits}\n{long_line}\n{fits}\n{long_line}");
        let piece = read("long", bytes.as_bytes(), &rules);
        assert_eq!((piece.texts.len(), piece.num_lines), (2, 4));
        assert_eq!(piece.texts.get(1).len(), 989);
        assert_eq!(piece.offsets, [0, 1002 + long as u64]);
        let bad: Vec<(u32, u64, u64)> = piece
            .bad
            .iter()
            .map(|bad| (bad.line_number, bad.offset, bad.length))
            .collect();
        assert_eq!(
            bad,
            [(1, 1001, long as u64), (3, 2003 + long as u64, long as u64)]
        );
        assert_eq!(
            piece.bad[0].reason,
            format!("the line has {long} bytes, more than the 1000 allowed (max_document)")
        );
    }
}

#[test]
fn a_file_that_became_shorter_is_an_error() {
    let file = file("short", b"{\"text\":\"a\"}\n");
    let error = read_piece(&file, 0, 100, &rules()).unwrap_err();
    assert_eq!(
        error.to_string(),
        "the file changed while it was in use: at byte 0: the file ends before it"
    );
}

#[test]
fn impossible_rules_are_refused() {
    let file = file("rules", b"");
    for wrong in [
        JsonlRules {
            text_fields: vec![],
            ..rules()
        },
        JsonlRules {
            max_document: 0,
            ..rules()
        },
        JsonlRules {
            max_document: 1 << 32,
            ..rules()
        },
    ] {
        assert!(read_piece(&file, 0, 0, &wrong).is_err());
    }
}
