"""Tar archives of WebDataset samples: the verdicts of their texts, and kept samples byte for byte."""

import gzip
import io
import json
import tarfile

import pyarrow.parquet as pq
import pytest

import likewise
from likewise.batch.files import dedup_files, stream_dedup
from likewise.errors import InvalidInput
from likewise.job.reading import FileRun
from likewise.runs.audit import audit
from likewise.runs.diff import run_differences
from tests.files import jsonl
from tests.golden.texts import made_up

RECIPE = likewise.Recipe.minhash(0.8)
ROWS = [{"id": f"a/{number:04}", "text": made_up(30, number % 40), "n": number} for number in range(100)]
SKIP = FileRun(on_error="skip", max_bad_rows="100%")


def members(row):
    """Return the members of a sample: an image, its text, and what is known about it."""
    about = {
        "caption": row["text"],
        "n": row["n"],
        "more": {"text": row["text"]},
        "parts": [{"value": row["text"]}, {"value": "."}],
        "id": f"own {row['n']}",
    }
    content = json.dumps(about, indent=1).encode()
    return [("seg.PNG", bytes([row["n"]]) * 700), ("txt", b"\xef\xbb\xbf" + row["text"].encode()), ("json", content)]


def member(name, content=b"", kind=tarfile.REGTYPE, **more):
    one = tarfile.TarInfo(name)
    one.type, one.size = kind, len(content)
    for field, value in more.items():
        setattr(one, field, value)
    return one, io.BytesIO(content)


def write_tar(path, files, kind=tarfile.USTAR_FORMAT):
    with tarfile.open(path, "w", format=kind, errors="surrogateescape") as archive:
        for one, content in files:
            content.seek(0)
            archive.addfile(one, content)
    return path


def samples(rows, prefix=""):
    return [member(f"{prefix}{row['id']}.{ending}", body) for row in rows for ending, body in members(row)]


def contents(path):
    with tarfile.open(path) as archive:
        return [(one.name, archive.extractfile(one).read()) for one in archive if one.isfile()]


def texts_of(path):
    return [json.loads(line)["text"] for line in path.read_text().splitlines()]


def evidence(out):
    columns = ["row", "doc_id", "kept_row", "similarity"]
    return pq.ParquetFile(out / "removed.parquet").read(columns).to_pylist()


@pytest.mark.parametrize("kind", [tarfile.USTAR_FORMAT, tarfile.GNU_FORMAT, tarfile.PAX_FORMAT])
@pytest.mark.parametrize("field", ["text", "txt", "caption", "more.text", "parts[].value"])
def test_samples_are_kept_or_removed_as_their_texts(tmp_path, kind, field):
    prefix = "" if kind == tarfile.USTAR_FORMAT else "long/" * 40
    others = [member("a", kind=tarfile.DIRTYPE), member("a/._0000.txt", b"\0 of a Mac"), member("README", b"about")]
    write_tar(tmp_path / "in.tar", [*others, *samples(ROWS, prefix)], kind)
    dedup_files(jsonl(tmp_path / "in.jsonl", ROWS), tmp_path / "plain", RECIPE)
    summary = dedup_files(tmp_path / "in.tar", tmp_path / "out", RECIPE, text_field=field)
    kept = {row["id"] for row in map(json.loads, (tmp_path / "plain/kept/in.jsonl").read_text().splitlines())}
    assert summary["num_kept"] == len(kept) == 40
    rows = [row for row in ROWS if row["id"] in kept]
    expected = [(f"{prefix}{row['id']}.{ending}", body) for row in rows for ending, body in members(row)]
    assert contents(tmp_path / "out/kept/in.tar") == expected
    assert (tmp_path / "out/kept/in.tar").stat().st_size % 10240 == 0
    assert audit(tmp_path / "out").passed
    again = dedup_files(tmp_path / "out/kept", tmp_path / "again", RECIPE, text_field=field)
    assert (again["num_documents"], again["num_kept"]) == (40, 40)
    assert run_differences(tmp_path / "out", tmp_path / "out")[0] == []


def test_fields_of_samples_are_fields_of_rows(tmp_path):
    """Ids, what is kept, where it is compared and lists of tokens: as in JSON Lines."""
    rows = [{**row, "site": str(row["n"] % 2), "words": row["text"].split()} for row in ROWS[:50]]
    jsonl(tmp_path / "in.jsonl", rows)
    plain = [member(f"{row['id']}.json", json.dumps(row).encode()) for row in rows]
    write_tar(tmp_path / "in.tar", plain)
    own = likewise.Recipe.minhash(0.8, tokens="user", tokenizer="own 1")
    for number, (recipe, more) in enumerate(
        [
            (RECIPE, {"id_field": "n"}),
            (likewise.Recipe.minhash(0.8, keep="max:n"), {}),
            (likewise.Recipe.minhash(0.8, only_within="site"), {}),
            (own, {"run": FileRun(tokens_field="words")}),
        ]
    ):
        found = []
        for name in ("in.tar", "in.jsonl"):
            out = tmp_path / f"{number}.{name}"
            dedup_files(tmp_path / name, out, recipe, **more)
            found.append(evidence(out))
        assert found[0] == found[1] != []


GOOD = [member("a.txt", b"one two three four five six"), member("a.cls", b"1")]


@pytest.mark.parametrize(
    ("files", "reason"),
    [
        ([("\udcff", b"text")], r"a.tar:2: the name '\\udcff' is not UTF-8; pack the files again under other names"),
        ([("b", b"\xff no text")], r"a.tar:2: .*UTF-8"),
        ([("b", b"long " * 40)], r"a.tar:2: the document has 200 bytes; the --max-document limit is 100"),
        ([("b.json", b"[1]")], r"a.tar:2: its json is no JSON object"),
        ([("b.json", b'{"text": "damaged}')], r"a.tar:2: bad JSON at byte \d+"),
        ([("b.json", b"{}")], r'a.tar:2: no field "text" \(found: json, id\)'),
        ([("b.png", b"")], r'a.tar:2: no field "text" \(found: png, id\)'),
        ([("b.json", b'{"text": 7}')], r'a.tar:2: field "text" is a number, not a string'),
    ],
)
def test_samples_without_a_text_are_bad_rows(tmp_path, files, reason):
    bad = [member(name if "." in name else f"{name}.txt", body) for name, body in files]
    rest = [member("c.txt", b"another text of six words here"), member("d.txt", b"one two three four five six")]
    write_tar(tmp_path / "a.tar", [*GOOD, *bad, *rest], tarfile.GNU_FORMAT)
    with pytest.raises(InvalidInput, match=reason):
        dedup_files(tmp_path / "a.tar", tmp_path / "out", RECIPE, run=FileRun(max_document_bytes=100))
    run = FileRun(on_error="keep", max_bad_rows="100%", max_document_bytes=100)
    summary = dedup_files(tmp_path / "a.tar", tmp_path / "out", RECIPE, run=run)
    assert (summary["num_documents"], summary["num_kept"], summary["num_bad_rows"]) == (3, 2, 1)
    kept = contents(tmp_path / "out/kept/a.tar")
    assert [name for name, _ in kept] == ["a.txt", "a.cls", bad[0][0].name, "c.txt"]
    assert audit(tmp_path / "out").passed


def changed(data, at, new):
    return data[:at] + new + data[at + len(new) :]


def header(data, at, **fields):
    """Write fields of the header at this byte, as bytes at their places, and its checksum."""
    for place, value in fields.values():
        data = changed(data, at + place, value)
    block = changed(data[at : at + 512], 148, b" " * 8)
    return changed(data, at + 148, b"%06o\0 " % sum(block))


def test_damaged_archives_are_errors(tmp_path):
    """The second sample begins at byte 2048; what precedes the damage can be read."""
    whole = write_tar(tmp_path / "a.tar", [*GOOD, member("b.txt", b"x" * 600), member("c.txt", b"c")]).read_bytes()
    size = 124
    cases = {
        b"": "byte 0: not the header of a member of a tar archive",
        gzip.compress(whole): "byte 0: compressed with gzip; decompress it",
        b"no archive " * 1000: "byte 0: not the header of a member of a tar archive",
        changed(whole, 2060, b"?"): r"byte 2048: not the header of a member of a tar archive \(bad checksum\)",
        whole[:2100]: r"byte 2048: not the header of a member of a tar archive \(truncated header\)",
        whole[:3000]: "byte 2048, member 'b.txt': the header at byte 2048 states 600 bytes, which are not there",
        header(whole, 2048, size=(size, b"\xff" * 12)): "member 'b.txt': the header at byte 2048 states -1 bytes",
        header(
            whole, 2048, size=(size, b"\x80" + b"\x7f" * 11)
        ): "member 'b.txt': the header at byte 2048 states .* bytes",
        header(
            whole, 2048, size=(size, b"7" * 11 + b"\0")
        ): "member 'b.txt': the header at byte 2048 states 8589934591 bytes",
        header(whole, 2048, size=(size, b"99 strange 9")): r"byte 2048: .*\(invalid header\)",
        header(whole, 2048, kind=(156, b"1")): "byte 2048, member 'b.txt': links, sparse files .*--hard-dereference",
        header(whole, 2048, kind=(156, b"2")): "byte 2048, member 'b.txt': links, sparse files .*--hard-dereference",
        header(whole, 2048, kind=(156, b"S")): "byte 2048, member 'b.txt': links, sparse files .*--hard-dereference",
        header(whole, 2048, kind=(156, b"M")): "byte 2048, member 'b.txt': links, sparse files .*--hard-dereference",
        header(whole, 2048, kind=(156, b"x"), size=(size, b"77777777777\0")): "states 8589934591 bytes",
        whole + whole: "byte 4608: data follows the end of the archive",
        write_tar(
            tmp_path / "b", [*GOOD, member("b.txt"), member("b.TXT")]
        ).read_bytes(): "byte 2560: .* two members 'b.TXT'",
        write_tar(tmp_path / "b", [member("README", b"about")]).read_bytes(): "no member has a name such as key.txt",
        write_tar(
            tmp_path / "b", [*GOOD, member("b.txt", b"x", pax_headers={"GNU.sparse.size": "9"})], tarfile.PAX_FORMAT
        ).read_bytes(): "byte 2048, member 'b.txt': links, sparse files",
    }
    for number, (data, reason) in enumerate(cases.items()):
        (tmp_path / "a.tar").write_bytes(data)
        begin = "" if reason[0] == "b" else ".*"
        with pytest.raises(InvalidInput, match=rf"a.tar: {begin}{reason}.*, or read the undamaged part") as error:
            dedup_files(tmp_path / "a.tar", tmp_path / "out", RECIPE)
        assert str(error.value).count("; ") == 1
        summary = dedup_files(tmp_path / "a.tar", tmp_path / f"{number}", RECIPE, run=SKIP)
        assert summary["num_bad_rows"] == 1
        assert summary["num_documents"] <= 1 or "data follows" in reason


def test_archives_without_an_end_are_whole(tmp_path):
    """As for GNU tar, if they end between members."""
    whole = write_tar(tmp_path / "a.tar", [*GOOD, member("b.txt", b"x" * 600)]).read_bytes()
    for size in (3584, 3584 + 512, 3584 + 1024):
        (tmp_path / "a.tar").write_bytes(whole[:size])
        assert dedup_files(tmp_path / "a.tar", tmp_path / f"{size}", RECIPE)["num_documents"] == 2
    write_tar(tmp_path / "a.tar", [])
    assert dedup_files(tmp_path / "a.tar", tmp_path / "none", RECIPE)["num_documents"] == 0


def test_other_uses_of_an_archive(tmp_path, monkeypatch):
    write_tar(tmp_path / "in.tar", samples(ROWS))
    with pytest.raises(likewise.InvalidParameter, match=r"in.tar has another format"):
        dedup_files(tmp_path / "in.tar", tmp_path / "flags", RECIPE, write="annotated")
    with pytest.raises(InvalidInput, match=r"in.tar: only jsonl, csv, tsv can be written to standard output"):
        stream_dedup(tmp_path / "in.tar", io.BytesIO(), RECIPE)
    parts = likewise.Recipe.minhash(0.8, tokens="bytes")
    assert dedup_files(tmp_path / "in.tar", tmp_path / "bytes", parts)["num_documents"] == 1
    (tmp_path / "in").mkdir()
    (tmp_path / "in.tar").rename(tmp_path / "in/in.tar")
    (tmp_path / "in/README.md").write_text("about")
    for number, given in enumerate((tmp_path / "in", f"{tmp_path}/in/*")):
        found = dedup_files(given, tmp_path / f"{number}", RECIPE)
        assert (found["num_documents"], found["skipped_files"]) == (100, ["README.md"])
