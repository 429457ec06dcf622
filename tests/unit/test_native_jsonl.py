"""JSON Lines through the native module; the meaning of lines is tested in Rust."""

import json
import os
from pathlib import Path

import numpy as np
import pytest

from likewise import _native
from likewise.errors import InvalidInput, InvalidParameter


def rules(**changes):
    given = {"text_fields": ["text"], "id_field": "id", "fields": ["score"]} | changes
    return _native.JsonlRules(**given)


@pytest.fixture
def lines():
    texts = [f"Zeile {i} é " + "x" * (i * 37 % 300) for i in range(2000)]
    return [
        json.dumps({"id": i, "text": text, "score": i / 2}, ensure_ascii=i % 2 == 0) for i, text in enumerate(texts)
    ]


@pytest.fixture
def path(tmp_path, lines):
    path = tmp_path / "rows.jsonl"
    path.write_text("\n".join(lines), encoding="utf-8")
    return path


def test_pieces_hold_every_row(path, lines):
    pieces = _native.jsonl_pieces(str(path), 10_000)
    assert len(pieces) > 10
    assert sum(length for _, length in pieces) == path.stat().st_size
    read = [_native.read_jsonl_piece(path, offset, length, rules()) for offset, length in pieces]
    rows = [json.loads(line) for line in lines]
    assert [text for piece in read for text in piece.texts.to_list()] == [row["text"] for row in rows]
    assert [id_ for piece in read for id_ in piece.ids.to_list()] == [str(row["id"]) for row in rows]
    assert [score for piece in read for score in piece.fields[0].to_list()] == [str(row["score"]) for row in rows]
    assert all(np.asarray(piece.has_id).all() for piece in read)
    assert sum(piece.num_lines for piece in read) == len(lines)
    assert all(piece.errors == [] for piece in read)
    data = path.read_bytes()
    for piece in read:
        for offset, length, text in zip(
            np.asarray(piece.offsets).tolist(), np.asarray(piece.lengths).tolist(), piece.texts.to_list(), strict=True
        ):
            assert json.loads(data[offset : offset + length])["text"] == text


def test_the_last_of_repeated_fields_counts_as_in_python(tmp_path):
    path = tmp_path / "twice.jsonl"
    line = '{"text": "a", "id": 1, "score": 2, "text": "b", "id": "c", "score": {"x": 1}}'
    path.write_text(f'{line}\n{{"text": "a", "text": null}}\n', encoding="utf-8")
    piece = _native.read_jsonl_piece(path, 0, path.stat().st_size, rules())
    row = json.loads(line)
    assert piece.texts.to_list() == [row["text"]]
    assert piece.ids.to_list() == [row["id"]]
    assert json.loads(piece.fields[0].to_list()[0]) == row["score"]
    assert [error[3] for error in piece.errors] == ['field "text" is null']


def test_bad_rows_are_told_with_their_place(tmp_path):
    path = tmp_path / "bad.jsonl"
    path.write_bytes(b'{"text":"a"}\n\n{"text":null}\nx\n')
    piece = _native.read_jsonl_piece(path, 0, path.stat().st_size, rules())
    assert piece.errors[0] == (2, 14, 13, 'field "text" is null', 1)
    assert piece.errors[1][:3] == (3, 28, 1)
    assert piece.errors[1][3].startswith("bad JSON")
    assert (piece.num_lines, piece.num_blank) == (4, 1)
    assert np.asarray(piece.line_numbers).tolist() == [0]
    assert piece.fields[0].to_list() == [""]


def test_rows_are_read_again(path, lines):
    piece = _native.read_jsonl_piece(path, 0, path.stat().st_size, rules())
    rows = np.array([1999, 3, 4, 5, 1000, 0])
    offsets, lengths = np.asarray(piece.offsets)[rows], np.asarray(piece.lengths)[rows]
    for threads in (1, 2):
        texts = _native.read_jsonl_texts(path, offsets, lengths, rules(), threads=threads)
        assert texts.to_list() == [json.loads(lines[row])["text"] for row in rows]
    with pytest.raises(InvalidInput, match="changed") as caught:
        _native.read_jsonl_texts(path, offsets + np.uint64(1), lengths, rules())
    assert caught.value.file == str(path)


def test_kept_lines_are_copied_byte_for_byte(path, tmp_path):
    data = path.read_bytes()
    piece = _native.read_jsonl_piece(path, 0, len(data), rules())
    keep = np.arange(2000) % 3 != 1
    offsets = np.asarray(piece.offsets)[keep]
    lengths = np.asarray(piece.lengths)[keep].astype(np.uint64) + np.uint64(1)
    expected = b"\n".join(line for line, kept in zip(data.split(b"\n"), keep, strict=True) if kept)
    expected += b"\n" * (not keep[-1])
    for threads in (1, 2):
        target = tmp_path / "kept.jsonl"
        assert _native.copy_lines(path, target, offsets, lengths, threads=threads) == len(expected)
        assert target.read_bytes() == expected


def test_system_errors_stay_system_errors(tmp_path):
    missing = tmp_path / "missing.jsonl"
    with pytest.raises(FileNotFoundError) as caught:
        _native.jsonl_pieces(missing, 1000)
    assert caught.value.filename == str(missing)
    with pytest.raises(IsADirectoryError):
        _native.read_jsonl_piece(tmp_path, 0, 10, rules())
    nothing = np.zeros(0, np.uint64)
    source = tmp_path / "source"
    source.write_bytes(b"")
    with pytest.raises(FileNotFoundError) as caught:
        _native.copy_lines(source, tmp_path / "no" / "target", nothing, nothing)
    assert caught.value.filename == str(tmp_path / "no" / "target")


def test_mistakes_are_named(path):
    with pytest.raises(InvalidParameter, match="text_fields"):
        rules(text_fields=[])
    with pytest.raises(InvalidParameter, match="max_document"):
        rules(max_document=1 << 32)
    with pytest.raises(InvalidParameter, match="piece_bytes"):
        _native.jsonl_pieces(path, 0)


@pytest.mark.skipif(os.name != "posix", reason="names of any bytes")
def test_a_path_that_is_no_unicode(tmp_path):
    path = Path(os.fsdecode(os.fsencode(tmp_path) + b"/\xff.jsonl"))
    path.write_bytes(b'{"text":"a"}')
    assert _native.read_jsonl_piece(path, 0, 12, rules()).texts.to_list() == ["a"]
    assert _native.jsonl_pieces(str(path), 5) == [(0, 12)]
