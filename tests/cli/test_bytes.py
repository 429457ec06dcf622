"""Kept lines are written back byte for byte, and bad rows are treated as requested."""

import json

import pytest

from tests.command import likewise_command

ODD = [
    b'\xef\xbb\xbf{"id": "first", "text": "byte order mark"}\n',
    b'{ "text" : "odd   spacing\\u0041" ,\t"id":"b"  }  \n',
    b'{"id":"crlf","text":"carriage return"}\r\n',
    b'{"id":12345678901234567890123,"text":"a big number"}\n',
    b'{"id":"esc","text":"\\u732b \\ud83d\\ude00 \\n\\t","z":[1,{"a":null}],"z2":1e400}\n',
    b'{"id":"nul","text":"nul \\u0000 inside"}\n',
    b'{"id":"lone","text":"lone \\ud800 surrogate"}\n',
    b'{"id":"raw","text":"\xe7\x8c\xab \xf0\x9f\x98\x80 raw"}\n',
    b'{"id":"nan","text":"python writes such numbers","n":NaN,"m":[-Infinity]}\n',
    b'{"id":"dup","text":"byte order mark"}\n',
    b'{"id":"last","text":"no newline at the end"}',
]


@pytest.mark.parametrize("method", ["minhash", "simhash"])
def test_kept_lines_are_the_lines_that_came(tmp_path, method):
    (tmp_path / "in.jsonl").write_bytes(b"".join(ODD))
    ran = likewise_command("dedup", tmp_path / "in.jsonl", "-o", tmp_path / "out", "--method", method)
    assert ran.status == 0, ran.err
    kept = [line for line in ODD if b'"dup"' not in line]
    assert (tmp_path / "out" / "kept" / "in.jsonl").read_bytes() == b"".join(kept)


def test_blank_lines_are_counted_and_not_written(tmp_path):
    ran = likewise_command(
        "dedup", "-", "-o", tmp_path / "out", "--json", stdin=b'\n{"text":"a"}\n\n  \n\r\n{"text":"b"}\n\n'
    )
    assert ran.status == 0, ran.err
    assert json.loads(ran.out)["num_blank_lines"] == 5
    (written,) = (tmp_path / "out" / "kept").iterdir()
    assert written.read_bytes() == b'{"text":"a"}\n{"text":"b"}\n'


def test_removed_last_line_leaves_the_others_as_they_were(tmp_path):
    data = b'{"text":"same"}\r\n{"text":"other"}\n{"text":"same"}'
    ran = likewise_command("dedup", "-", "-o", "-", stdin=data)
    assert (ran.status, ran.out) == (0, b'{"text":"same"}\r\n{"text":"other"}\n')


def test_kept_lines_stream_to_stdout_and_talk_goes_to_stderr(tmp_path):
    for number in (1, 2):
        (tmp_path / f"{number}.jsonl").write_bytes(b'{"id":%d,"text":"number %d"}' % (number, number))
    ran = likewise_command("dedup", tmp_path / "1.jsonl", tmp_path / "2.jsonl", "-o", "-")
    assert ran.status == 0
    # The first file ends without a newline: the next one's line must not run into it.
    assert ran.out == b'{"id":1,"text":"number 1"}\n{"id":2,"text":"number 2"}\n'
    assert "exact jaccard similarity" in ran.err.splitlines()[0]


BAD = {
    "no text": b'{"id":"x"}',
    "null": b'{"id":"x","text":null}',
    "number": b'{"id":"x","text":5}',
    "list": b'{"id":"x","text":[7]}',
    "not an object": b'["text"]',
    "broken": b'{"id":"x","text":"a"',
    "two objects": b'{"text":"a"} {"text":"b"}',
    "bad utf-8": b'{"id":"x","text":"a\xff"}',
    "overlong utf-8": b'{"id":"x","text":"a\xc0\x80"}',
    "control character": b'{"id":"x","text":"a\x01"}',
    "text is nan": b'{"id":"x","text":NaN}',
    "id is infinite": b'{"id":-Infinity,"text":"a"}',
    "no json either": b'{"id":"x","text":"a","n":NaNs}',
    "id is a fraction": b'{"id":1.5,"text":"a"}',
    "id is true": b'{"id":true,"text":"a"}',
    "too long": b'{"id":"x","text":"' + b"long " * 300 + b'"}',
}
ALL_BAD = ("--max-bad-rows", "100%")
GOOD = [b'{"id":"1","text":"one good row"}', b'{"id":"2","text":"another one"}']


@pytest.mark.parametrize("what", BAD)
def test_a_bad_row_stops_the_run(tmp_path, what):
    (tmp_path / "in.jsonl").write_bytes(b"\n".join([GOOD[0], BAD[what], GOOD[1], b""]))
    ran = likewise_command("dedup", tmp_path / "in.jsonl", "-o", tmp_path / "out", "--max-document", "1000")
    assert (ran.status, ran.out) == (2, b"")
    first = ran.err.splitlines()[0]
    assert "in.jsonl:2: " in first
    assert len(first) > len("error: in.jsonl:2: ") + 5
    assert not (tmp_path / "out").exists()


def test_bad_rows_are_skipped_and_listed(tmp_path):
    rows = [GOOD[0], *BAD.values(), b"", GOOD[1]]
    (tmp_path / "in.jsonl").write_bytes(b"\n".join(rows) + b"\n")
    out = tmp_path / "out"
    ran = likewise_command(
        "dedup", tmp_path / "in.jsonl", "-o", out, "--on-error", "skip", "--max-document", "1000", "--json", *ALL_BAD
    )
    assert ran.status == 0, ran.err
    assert (out / "kept" / "in.jsonl").read_bytes() == b"\n".join([*GOOD, b""])
    listed = [json.loads(line) for line in (out / "errors.jsonl").read_text().splitlines()]
    assert [(row["file"], row["row"]) for row in listed] == [("in.jsonl", i + 2) for i in range(len(BAD))]
    assert all(row["reason"] for row in listed)
    summary = json.loads(ran.out)
    assert (summary["num_documents"], summary["num_bad_rows"], summary["num_blank_lines"]) == (2, len(BAD), 1)


def test_bad_rows_are_passed_through_unchanged(tmp_path):
    rows = [GOOD[0], *BAD.values(), GOOD[1], b'{"id":"3","text":"one good row!"}']
    (tmp_path / "in.jsonl").write_bytes(b"\n".join(rows) + b"\n")
    options = ["--on-error", "keep", "--max-document", "1000", *ALL_BAD]
    ran = likewise_command("dedup", tmp_path / "in.jsonl", "-o", "-", *options)
    assert ran.status == 0, ran.err
    assert ran.out == b"\n".join([*rows[:-1], b""])


def test_two_rows_of_one_id_are_named(tmp_path):
    data = b'{"id":1,"text":"a"}\n{"id":"2","text":"b"}\n{"id":"1","text":"c"}\n'
    ran = likewise_command("dedup", "-", "-o", tmp_path / "out", stdin=data)
    assert (ran.status, ran.out) == (2, b"")
    message = ran.err.splitlines()[0]
    assert "'1'" in message or '"1"' in message
    assert ":1" in message
    assert ":3" in message
    ran = likewise_command("dedup", "-", "-o", "-", "--duplicate-ids", "allow", stdin=data)
    assert (ran.status, ran.out) == (0, data)


def test_fields(tmp_path):
    rows = [
        {"page": {"title": "A", "body": "one two three"}, "url": "u1"},
        {"page": {"title": "B", "body": "one two three"}, "url": "u2"},
        {"page": {"title": "A", "body": "one two three"}, "url": "u3"},
    ]
    data = "".join(json.dumps(row) + "\n" for row in rows).encode()
    fields = ["--text-field", "page.title", "--text-field", "page.body", "--id-field", "url"]
    ran = likewise_command("dedup", "-", "-o", tmp_path / "out", *fields, "--json", stdin=data)
    assert ran.status == 0, ran.err
    assert json.loads(ran.out)["num_kept"] == 2
    ran = likewise_command("pairs", "-", "-o", "-", *fields, stdin=data)
    assert ran.out.splitlines()[-1].split(b"\t")[:2] == [b"u1", b"u3"]


def test_without_ids_a_document_is_its_file_and_line(tmp_path):
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "x.jsonl").write_bytes(b'{"text":"same words"}\n\n{"text":"Same words"}\n')
    (tmp_path / "y.jsonl").write_bytes(b'{"text":"same words."}\n')
    ran = likewise_command("pairs", tmp_path, "-o", "-")
    assert ran.status == 0, ran.err
    pairs = {tuple(line.split("\t")[:2]) for line in ran.out.decode().splitlines() if line.startswith(("sub", "y"))}
    assert pairs == {("sub/x.jsonl:1", "sub/x.jsonl:3"), ("sub/x.jsonl:1", "y.jsonl:1"), ("sub/x.jsonl:3", "y.jsonl:1")}


def test_keep_by_field():
    data = b"".join(
        b'{"id":%d,"text":"same words here","day":%s,"n":%s}\n' % (i, day, n)
        for i, (day, n) in enumerate(
            [(b'"2024-05-01"', b"3"), (b'"2025-01-31"', b"null"), (b'"2024-12-31"', b"7"), (b"null", b"1")]
        )
    )
    for keep, stays in (("newest:day", 1), ("max:n", 2), ("min:n", 3), ("min:day", 0), ("first", 0)):
        ran = likewise_command("dedup", "-", "-o", "-", "--keep", keep, stdin=data)
        assert ran.status == 0, ran.err
        assert json.loads(ran.out)["id"] == stays, keep


def test_mixed_types_of_a_keep_field_are_an_error():
    data = b'{"id":1,"text":"same","n":3}\n{"id":2,"text":"same","n":"x"}\n'
    ran = likewise_command("dedup", "-", "-o", "-", "--keep", "max:n", stdin=data)
    assert (ran.status, ran.out) == (2, b"")
    assert "n" in ran.err.splitlines()[0]
