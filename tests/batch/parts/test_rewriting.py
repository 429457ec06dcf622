"""Lines rewritten without stretches of their texts: the rest is unchanged byte for byte, remaining escapes included."""

import json
import random

import numpy as np
import pytest

from likewise import _native
from likewise.batch.parts import PartRules, dedup_parts
from likewise.errors import InvalidInput, InvalidParameter
from likewise.io.source.source import Cut

# As written, and as decoded.
PIECES = [
    *[("a", "a"), ("word ", "word "), ("é", "é"), ("猫", "猫"), ("😀", "😀"), ("\\n", "\n"), ("\\/", "/")],
    *[("\\\\", "\\"), ('\\"', '"'), ("\\u0041", "A"), ("\\u00e9", "é"), ("\\u732B", "猫"), ("\\ud83d\\ude00", "😀")],
    *[("\\ud800", "\ud800"), ("x\\uDC00", "x\udc00"), ("\\t", "\t"), ("\\u2028", "\u2028"), ("\\u001c", "\x1c")],
]


def size(text):
    return len(text.encode("utf-8", "surrogatepass"))


def rewritten(path, rows, gone, rules, threads=1):
    """Return the rewritten lines of rows (offset, length), and the number of bytes removed."""
    offsets, lengths = (np.array(column) for column in zip(*rows, strict=True))
    counts = np.array([len(spans) for spans in gone], np.uint32)
    starts, ends = (np.array([span[i] for spans in gone for span in spans], np.uint32) for i in (0, 1))
    cut = Cut(np.arange(len(gone)), counts, starts, ends, keeps_words_apart=False)
    lines, ends, num_removed = _native.rewrite_jsonl_rows(
        str(path), offsets.astype(np.uint64), lengths.astype(np.uint32), rules, cut, threads=threads
    )
    data, ends = np.asarray(lines).tobytes(), np.asarray(ends).tolist()
    return [data[a:b] for a, b in zip([0, *ends[:-1]], ends, strict=True)], num_removed


@pytest.mark.parametrize("seed", range(4))
def test_what_stays_stays_as_it_is_written(tmp_path, seed):
    rng = random.Random(seed)
    rows, gone, expected, num_gone, at = [], [], [], 0, 0
    with (tmp_path / "in.jsonl").open("wb") as file:
        for _ in range(300):
            pieces = rng.choices(PIECES, k=rng.randint(0, 30))
            places = np.cumsum([0, *(size(meant) for _, meant in pieces)]).tolist()
            spans = sorted(sorted(rng.choices(places, k=2)) for _ in range(rng.randint(0, 4)))
            stays = [
                piece
                for piece, place in zip(pieces, places, strict=False)
                if not any(start <= place < end for start, end in spans)
            ]
            before, after = rng.choice([('{"t": "', '"}'), ('{"x": [1.0, {"t": 2}] , "t":"', '","y":NaN }  ')])
            line = (before + "".join(written for written, _ in pieces) + after).encode()
            rows.append((at, len(line)))
            gone.append(spans)
            num_gone += places[-1] - size("".join(meant for _, meant in stays))
            expected.append((before + "".join(written for written, _ in stays) + after).encode() + b"\n")
            file.write(line + b"\n")
            at += len(line) + 1
    for threads in (1, 3):
        found, num_removed = rewritten(tmp_path / "in.jsonl", rows, gone, _native.JsonlRules(["t"]), threads)
        assert found == expected
        assert num_removed == num_gone
    assert expected.count(b'{"t": ""}\n') > 5


def test_of_a_key_that_comes_twice_the_last_counts(tmp_path):
    """As in every other reader, the last value of a repeated key counts."""
    lines = [b'{"text": "first\\nline", "text": "a\\nb"}', b'{"text": "b\\nc\\n", "text": "b\\nd\\n"}']
    (tmp_path / "in.jsonl").write_bytes(b"\n".join(lines))
    dedup_parts(tmp_path / "in.jsonl", tmp_path / "out", PartRules("line"))
    after = (tmp_path / "out" / "kept" / "in.jsonl").read_bytes().split(b"\n")
    assert after == [lines[0], b'{"text": "b\\nc\\n", "text": "d\\n"}', b""]


def test_marks_and_lone_surrogates_among_letters(tmp_path):
    rows = [
        '\ufeff{"text": "one\\nsame\\n"}',
        '{"text": "same\\ngröße \\ud800 end\\/"}',
        '{"text": "\\u0073ame\\n \\u2003"}',
    ]
    (tmp_path / "in.jsonl").write_bytes("\n".join([rows[0], rows[0][1:], *rows[1:]]).encode())
    dedup_parts(tmp_path / "in.jsonl", tmp_path / "out", PartRules("line"))
    after = (tmp_path / "out" / "kept" / "in.jsonl").read_bytes()
    assert after.decode() == rows[0] + "\n" + rows[1].replace("same\\n", "") + "\n"
    assert len((tmp_path / "out" / "emptied.jsonl").read_text().splitlines()) == 2


def test_what_is_no_row_is_refused(tmp_path):
    path, rules = tmp_path / "in.jsonl", _native.JsonlRules(["a.b"])
    for line in (b"[]", b'{"a": 1}', b'{"a": {"b": 5}}', b'{"a": {"b": "x"}', b'{"a": {"b": "\xff"}}', b'{"a.b": "x"}'):
        path.write_bytes(line)
        with pytest.raises(InvalidInput, match=r"in\.jsonl"):
            rewritten(path, [(0, len(line))], [[(0, 1)]], rules)
    path.write_bytes(b'{"a": {"b": "xyz"}}')
    assert json.loads(rewritten(path, [(0, 19)], [[(1, 2)]], rules)[0][0])["a"]["b"] == "xz"
    with pytest.raises(InvalidInput):
        rewritten(path, [(0, 25)], [[(1, 2)]], rules)
    for gone in ([[(0, 1)], []], []):
        with pytest.raises((InvalidParameter, ValueError)):
            rewritten(path, [(0, 19)], gone, rules)
