"""Web archives without a record: kept files whose records were all removed, and damaged files."""

import gzip
import io
import json

import pytest

pytest.importorskip("fastwarc", reason="needs likewise[web]")

from tests.command import likewise_command
from tests.io.archives import by_member, members, record

WORDS = b"some words that are the same in both archives"


def pages(*numbers):
    return [record("conversion", WORDS, number=number) for number in numbers]


WRITERS = {
    "plain.warc": b"".join,
    "members.warc.gz": by_member,
    "one-member.warc.gz": lambda records: gzip.compress(b"".join(records)),
}


@pytest.mark.parametrize("name", WRITERS)
def test_what_is_kept_of_an_archive_without_a_record_left_is_read_again(tmp_path, name):
    """A compressed one with no bytes would not be a web archive."""
    (tmp_path / "a.warc").write_bytes(pages(1)[0])
    (tmp_path / name).write_bytes(WRITERS[name](pages(2, 3)))
    out = tmp_path / "out"
    ran = likewise_command("dedup", tmp_path / "a.warc", tmp_path / name, "-o", out)
    assert ran.status == 0, ran.err
    kept = (out / "kept" / name).read_bytes()
    if name.endswith(".gz"):
        # A reader of archives stops at an empty member, and would not read what is appended.
        (only,) = members(kept)
        length = int(only.partition(b"Content-Length: ")[2].partition(b"\r\n")[0])
        head, block = only.split(b"\r\n\r\n", 1)
        assert head.startswith(b"WARC/1.0\r\nWARC-Type: warcinfo\r\n")
        assert len(block) == length + len(b"\r\n\r\n")
        archives = pytest.importorskip("fastwarc.warc").ArchiveIterator
        assert len(list(archives(io.BytesIO(kept + by_member(pages(9)))))) == 2
    else:
        assert kept == b""
    for number, given in enumerate([out / "kept", out / "kept" / name]):
        again = tmp_path / f"again-{number}"
        ran = likewise_command("dedup", given, "-o", again)
        assert ran.status == 0, ran.err
        summary = json.loads((again / "summary.json").read_text())
        assert [entry["num_documents"] for entry in summary["inputs"]] == [1, 0][number:]
        assert (again / "kept" / name).read_bytes() == kept
    (tmp_path / "new.warc").write_bytes(pages(4)[0])
    ran = likewise_command("dedup", tmp_path / "new.warc", "-o", tmp_path / "new", "--against", out)
    assert ran.status == 0, ran.err
    assert f"1 removed as duplicates of documents in {out}" in ran.err
    # An empty archive before or after others changes nothing.
    (tmp_path / "joined.warc.gz").write_bytes(
        b"".join([gzip.compress(b""), *map(gzip.compress, pages(5)), gzip.compress(b"")])
    )
    ran = likewise_command("dedup", tmp_path / "joined.warc.gz", "-o", tmp_path / "joined", "--json")
    assert (json.loads(ran.out)["num_kept"], json.loads(ran.out)["num_bad_rows"]) == (1, 0)
    assert members((tmp_path / "joined" / "kept" / "joined.warc.gz").read_bytes()) == pages(5)


@pytest.mark.parametrize(
    ("data", "told"),
    [
        (b"", "empty file without a gzip header; download it again, or exclude it"),
        (gzip.compress(b"")[:12], "not a web archive"),
        (gzip.compress(b"") + gzip.compress(pages(1)[0])[:12], "not a web archive"),
        (gzip.compress(b"") + b"rest", "not a web archive"),
        (gzip.compress(b"\r\n\r\n"), "not a web archive"),
    ],
    ids=["no bytes", "cut", "another one cut", "rest", "blank"],
)
def test_damage_is_no_empty_archive(tmp_path, data, told):
    path = tmp_path / "in.warc.gz"
    path.write_bytes(data)
    ran = likewise_command("dedup", path, "-o", tmp_path / "out")
    assert (ran.status, ran.out) == (2, b"")
    assert f"in.warc.gz: {told}" in ran.err


def test_a_warcinfo_record_stays(tmp_path):
    info = record("warcinfo", b"software: x", content_type="application/warc-fields")
    (tmp_path / "a.warc.gz").write_bytes(by_member([info, *pages(1)]))
    (tmp_path / "b.warc.gz").write_bytes(by_member([info, *pages(2)]))
    ran = likewise_command("dedup", tmp_path / "a.warc.gz", tmp_path / "b.warc.gz", "-o", tmp_path / "out")
    assert ran.status == 0, ran.err
    assert members((tmp_path / "out" / "kept" / "b.warc.gz").read_bytes()) == [info]
