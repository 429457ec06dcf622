"""Web archives: which records are documents, which are copied unread, and what counts as damage."""

import gzip
import hashlib
import json
import random
import threading
import zlib
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import likewise
from likewise.batch.files import dedup_files
from likewise.errors import InvalidInput
from likewise.job.reading import FileRun
from tests.command import likewise_command
from tests.io.archives import by_member, http, members, page, record, record_id
from tests.io.files import zstd as zstd_bytes

pytest.importorskip("fastwarc", reason="web archives need the extra likewise[web]")
pytest.importorskip("resiliparse", reason="web archives need the extra likewise[web]")

from likewise.io.archives.html_text import HtmlReaders
from likewise.io.archives.warc import WarcFile
from likewise.io.archives.warc_documents import body_of, opened_record, record_bytes
from likewise.io.source.source import Kept, ReadRules

REAL = Path(__file__).parents[2].parent / "shared" / "data" / "warc-real"
TEXT = "the council met on {} and agreed to mend the old bridge over the river before the winter comes"
RECORDS = [
    record("warcinfo", b"software: a test\r\n", number=0, content_type="application/warc-fields"),
    record("request", b"GET / HTTP/1.1\r\n\r\n", number=1, content_type="application/http; msgtype=request"),
    page(2, TEXT.format("Monday")),
    page(3, "nothing of that kind was ever said by the gardener who planted nine tall poplars behind the mill"),
    record("response", http(b"\x89PNG" + bytes(3000), "image/png"), number=4, url="http://example.org/4"),
    page(5, TEXT.format("Monday").upper()),
    page(6, "not found: the page has gone away and nobody knows where to", status="404 Not Found"),
    record("conversion", b"a text that a crawler converted, of which there is one in this archive", number=7),
    record("revisit", http(b""), number=8, url="http://example.org/8"),
]
REMOVED = {record_id(5): record_id(2)}


def evidence(out):
    found = pq.read_table(out / "removed.parquet")
    return dict(zip(found["doc_id"].to_pylist(), found["kept_id"].to_pylist(), strict=True))


def read(path, **rules):
    """Return texts by id, bad rows by record number from 0, and the file."""
    data = path.read_bytes()
    file = WarcFile(path, path.name, len(data), ReadRules(**rules), "gzip" if data[:2] == b"\x1f\x8b" else None)
    texts, bad, first = {}, {}, 0
    for job in file.jobs(1 << 12, path.parent):
        for piece in job.read():
            texts |= dict(zip(piece.ids.to_list(), piece.texts.to_list(), strict=True))
            bad |= {first + row.line: row.reason for row in piece.bad_rows}
            first += piece.num_lines
    return texts, bad, file


PACKINGS = {
    "plain.warc": b"".join,
    "members.warc.gz": by_member,
    "whole.warc.gz": lambda records: gzip.compress(b"".join(records)),
    "texts.warc.wet.gz": by_member,
}


@pytest.mark.parametrize("name", PACKINGS)
def test_records_but_the_removed_come_back(tmp_path, name):
    (tmp_path / name).write_bytes(PACKINGS[name](RECORDS))
    summary = dedup_files(tmp_path / name, tmp_path / "out", likewise.Recipe.minhash(0.8))
    assert evidence(tmp_path / "out") == REMOVED
    assert (summary["num_documents"], summary["num_kept"]) == (4, 3)
    kept = (tmp_path / "out" / "kept" / name).read_bytes()
    expected = [data for number, data in enumerate(RECORDS) if number != 5]
    if name == "plain.warc":
        assert kept == b"".join(expected)
    elif name == "whole.warc.gz":
        assert members(kept) == expected
    else:
        assert kept == by_member(expected)
    (of_one,) = summary["inputs"]
    assert of_one["num_records"] == {"conversion": 1, "request": 1, "response": 5, "revisit": 1, "warcinfo": 1}
    assert (of_one["num_cut"], of_one["num_marked_cut"]) == (0, 0)
    html = summary["extractors"]["html"]
    assert (html["name"], html["main_content"]) == ("resiliparse", False)
    assert html["version"][0].isdigit()


def test_only_what_a_reader_sees(tmp_path):
    (tmp_path / "a.warc").write_bytes(b"".join(RECORDS))
    texts, bad, _ = read(tmp_path / "a.warc")
    assert list(texts) == [record_id(number) for number in (2, 3, 5, 7)]
    assert texts[record_id(2)].strip() == TEXT.format("Monday")
    assert texts[record_id(7)].startswith("a text that")
    assert not bad


def test_characters_in_elements_of_their_own_are_kept(tmp_path):
    """The extraction of main content would drop them, and make both pages equal."""
    pages = [page(1, "产品<b>不</b>合格，见<a href='/2'>图</a>一"), page(2, "产品合格，见<a href='/2'>图</a>一")]
    (tmp_path / "a.warc").write_bytes(b"".join(pages))
    texts, bad, _ = read(tmp_path / "a.warc")
    assert [text.strip() for text in texts.values()] == ["产品不合格，见图一", "产品合格，见图一"]
    assert not bad


def test_pages_are_html_where_the_recipe_reads_it(tmp_path):
    plain = record("response", http(b"if a < b & c then a tag <p> stays", "text/plain"), number=9)
    (tmp_path / "a.warc").write_bytes(b"".join([*RECORDS, plain]))
    texts, _, _ = read(tmp_path / "a.warc", keeps_markup=True)
    assert "<title>page 2</title>" in texts[record_id(2)]
    assert texts[record_id(9)] == "if a &lt; b &amp; c then a tag &lt;p> stays"
    recipe = likewise.Recipe.minhash(0.8, markup="html")
    summary = dedup_files(tmp_path / "a.warc", tmp_path / "out", recipe)
    assert evidence(tmp_path / "out") == REMOVED
    assert summary["extractors"] == {}


def test_ids_and_fields(tmp_path):
    (tmp_path / "a.warc").write_bytes(b"".join(RECORDS))
    recipe = likewise.Recipe.minhash(0.8, keep="newest:date")
    pages = [RECORDS[2], RECORDS[3], RECORDS[5]]
    (tmp_path / "b.warc").write_bytes(b"".join(pages))
    dedup_files(tmp_path / "b.warc", tmp_path / "url", recipe, run=FileRun(id_field="url"))
    assert evidence(tmp_path / "url") == {"http://example.org/2": "http://example.org/5"}
    with pytest.raises(InvalidInput, match=r"a.warc:8: the record has no url"):
        dedup_files(tmp_path / "a.warc", tmp_path / "x", run=FileRun(id_field="url"))
    with pytest.raises(InvalidInput, match="record_id or url"):
        dedup_files(tmp_path / "a.warc", tmp_path / "x", run=FileRun(id_field="page"))
    with pytest.raises(InvalidInput, match="no field 'body'"):
        dedup_files(tmp_path / "a.warc", tmp_path / "x", run=FileRun(text_fields=("body",)))


@pytest.mark.parametrize("name", ["plain.warc", "members.warc.gz", "whole.warc.gz"])
@pytest.mark.parametrize("left", [0.3, 0.55, 0.9, 0.999])
def test_a_cut_archive_keeps_what_came_before(tmp_path, name, left):
    data = PACKINGS[name](RECORDS)
    (tmp_path / name).write_bytes(data[: int(len(data) * left)])
    with pytest.raises(InvalidInput, match=r"truncated|no record starts|not gzip"):
        dedup_files(tmp_path / name, tmp_path / "out")
    summary = dedup_files(tmp_path / name, tmp_path / "out", run=FileRun(on_error="skip", max_bad_rows=1.0))
    assert 0 < summary["num_bad_rows"] <= 2
    assert summary["inputs"][0]["num_cut"] <= 1
    texts, _, _ = read(tmp_path / name)
    whole = read_all(tmp_path, RECORDS)
    assert texts == dict(list(whole.items())[: len(texts)])


def read_all(tmp_path, records):
    (tmp_path / "reference.warc").write_bytes(b"".join(records))
    return read(tmp_path / "reference.warc")[0]


def test_a_record_shorter_than_it_says(tmp_path):
    """The WARC library returns a truncated block without an error."""
    cut = record("response", http(b"<p>half of a pa"), number=9, url="http://example.org/9", length=5000)
    (tmp_path / "a.warc").write_bytes(b"".join([*RECORDS[:3], cut]))
    (tmp_path / "a.warc.gz").write_bytes(by_member([RECORDS[2], cut, RECORDS[3]]))
    for name, line, count in (("a.warc", 3, 1), ("a.warc.gz", 1, 2)):
        texts, bad, file = read(tmp_path / name)
        assert list(bad) == [line]
        assert "of the 5000 bytes declared in its header" in bad[line]
        assert len(texts) == count
        assert file.facts()["num_cut"] == 1


@pytest.mark.parametrize("length", [10**9, 10**17, 1])
def test_a_wrong_length_takes_nothing_else_with_it(tmp_path, length):
    wrong = record("response", http(b"<p>some page that lies</p>"), number=9, length=length)
    (tmp_path / "a.warc").write_bytes(b"".join([RECORDS[2], wrong, RECORDS[3], RECORDS[5]]))
    texts, bad, _ = read(tmp_path / "a.warc")
    assert set(texts) >= {record_id(number) for number in (2, 3, 5)}
    assert bad


def test_junk_between_records(tmp_path):
    junk = [b"\0" * 5000, b"\nWARC/9.9.9 and so on\n", b"WARC/1.0\r\nno end of headers " * 10]
    parts = [RECORDS[2], junk[0] + b"\n", RECORDS[3], junk[1], RECORDS[5], junk[2]]
    (tmp_path / "a.warc").write_bytes(b"".join(parts))
    texts, bad, _ = read(tmp_path / "a.warc")
    assert set(texts) == {record_id(number) for number in (2, 3, 5)}
    assert len(bad) == 3
    packed = [gzip.compress(part) for part in RECORDS]
    damaged = bytearray(packed[3])
    damaged[40:60] = bytes(20)
    (tmp_path / "b.warc.gz").write_bytes(packed[2] + bytes(damaged) + packed[5] + b"junk behind" + packed[7])
    texts, bad, _ = read(tmp_path / "b.warc.gz")
    assert list(texts) == [record_id(number) for number in (2, 5, 7)]
    assert len(bad) == 2
    # The whole rest of the file is passed through.
    run = FileRun(on_error="keep")
    dedup_files(tmp_path / "b.warc.gz", tmp_path / "out", likewise.Recipe.minhash(1.0), run=run)
    kept = (tmp_path / "out" / "kept" / "b.warc.gz").read_bytes()
    assert kept == packed[2] + bytes(damaged) + b"junk behind" + packed[7]


def test_members_of_several_records_are_named(tmp_path):
    (tmp_path / "a.warc.gz").write_bytes(by_member(RECORDS[:3]) + gzip.compress(RECORDS[3] + RECORDS[5]))
    texts, bad, _ = read(tmp_path / "a.warc.gz")
    assert list(texts) == [record_id(2)]
    assert list(bad) == [3]
    assert bad[3].startswith("this gzip member contains several records, unlike those before it; decompress")


@pytest.mark.parametrize("too_few", [1, 2, 50, 200_000])
def test_a_length_that_is_too_small_is_named(tmp_path, too_few):
    block = http(b"<p>" + b"some page whose record lies about its length " * 10_000 + b"</p>")
    wrong = record("response", block, number=9, length=len(block) - too_few)
    for records in ([RECORDS[2], wrong, RECORDS[3], RECORDS[5]], [wrong, RECORDS[3], RECORDS[5]]):
        (tmp_path / "a.warc.gz").write_bytes(by_member(records))
        texts, bad, _ = read(tmp_path / "a.warc.gz")
        assert set(texts) >= {record_id(3), record_id(5)}
        line = records.index(wrong)
        if line:
            assert bad == {1: f"the record is longer than the {len(block) - too_few} bytes declared in its header"}
        else:
            # The archive counts as one whose records are not members, and is read like a plain one.
            assert bad
        run = FileRun(on_error="skip", max_bad_rows="100%")
        summary = dedup_files(tmp_path / "a.warc.gz", tmp_path / "out", run=run, overwrite=True)
        assert summary["num_bad_rows"] == 1


def test_zeros_between_and_after_members_are_padding(tmp_path):
    packed = [gzip.compress(part) for part in (RECORDS[2], RECORDS[3], RECORDS[5])]
    for between, behind in ((b"", bytes(10_000)), (bytes(512), bytes(3_000_000)), (bytes(1), b"")):
        (tmp_path / "a.warc.gz").write_bytes(packed[0] + between + packed[1] + packed[2] + behind)
        texts, bad, _ = read(tmp_path / "a.warc.gz")
        assert list(texts) == [record_id(number) for number in (2, 3, 5)]
        assert not bad


def revisit(number, *headers):
    return record("revisit", http(b""), number=number, url="http://example.org/new", headers=headers)


def test_revisits_of_removed_documents_are_counted(tmp_path):
    url = ("WARC-Refers-To-Target-URI: http://example.org/5", "WARC-Refers-To-Date: 2024-05-06T00:00:00Z")
    revisits = [
        revisit(20, f"WARC-Refers-To: {record_id(5)}"),
        revisit(21, f"WARC-Refers-To: {record_id(2)}"),
        revisit(22, *url),
        revisit(23, *url[:1], "WARC-Refers-To-Date: 2023-05-06T00:00:00Z"),
    ]
    # In the archive of the removed document, and in another one that is read before it.
    (tmp_path / "a.warc.gz").write_bytes(by_member(revisits[:1] * 2))
    (tmp_path / "b.warc").write_bytes(b"".join([*RECORDS, *revisits]))
    recipe = likewise.Recipe.minhash(0.8)
    summary = dedup_files([tmp_path / "a.warc.gz", tmp_path / "b.warc"], tmp_path / "out", recipe)
    assert evidence(tmp_path / "out") == REMOVED
    assert [entry.get("num_orphaned") for entry in summary["inputs"]] == [2, 2]
    kept = (tmp_path / "out" / "kept" / "b.warc").read_bytes()
    assert all(one in kept for one in revisits)
    done = likewise_command("dedup", "b.warc", "-o", "shown", "--threshold", "0.8", cwd=tmp_path)
    assert "2 revisit records refer to removed documents" in done.err
    summary = dedup_files(tmp_path / "b.warc", tmp_path / "none", recipe, write="evidence")
    assert "num_orphaned" not in summary["inputs"][0]


def test_bombs(tmp_path):
    inner = gzip.compress(bytes(30_000_000), 1)
    packed = http(inner, headers=["Content-Encoding: gzip"])
    bomb = record("response", packed, number=9, url="http://example.org/9")
    (tmp_path / "a.warc").write_bytes(bomb + RECORDS[3])
    texts, bad, _ = read(tmp_path / "a.warc", max_document_bytes=100_000)
    assert list(texts) == [record_id(3)]
    assert "--max-document limit of 100000 bytes" in bad[0]
    (tmp_path / "b.warc.gz").write_bytes(by_member([record("resource", bytes(66_000_000))]))
    with pytest.raises(InvalidInput, match="bomb"):
        read(tmp_path / "b.warc.gz")


def test_bodies_as_servers_sent_them(tmp_path):
    body = "<p>Grüße, wie sie ein Server vor Jahren geschickt hätte, mit Umlauten</p>"
    text = "Grüße, wie sie ein Server vor Jahren geschickt hätte, mit Umlauten"
    chunked = (
        b"5\r\n" + body.encode()[:5] + b"\r\n%x\r\n" % (len(body.encode()) - 5) + body.encode()[5:] + b"\r\n0\r\n\r\n"
    )
    packed = gzip.compress(body.encode())
    packed_in_chunks = b"%x\r\n" % len(packed) + packed + b"\r\n0\r\n\r\n"
    packer = zlib.compressobj(9, zlib.DEFLATED, 31)
    bare = zlib.compressobj(9, zlib.DEFLATED, -15)
    parted = b"%x;name=value\r\n" % len(body.encode()) + body.encode() + b"\r\n0;last\r\nExpires: never\r\n\r\n"
    twice = gzip.compress(gzip.compress(body.encode()))
    latin = body.encode("latin-1")
    named = f'<meta charset="iso-8859-1">{body}'.encode("latin-1")
    bodies = [
        http(chunked, headers=["Transfer-Encoding: chunked"]),
        http(packed_in_chunks, headers=["Transfer-Encoding: chunked", "Content-Encoding: gzip"]),
        http(body.encode(), headers=["Transfer-Encoding: chunked"]),
        http(packer.compress(body.encode()) + packer.flush(), headers=["Content-Encoding: gzip"]),
        http(body.encode(), headers=["Content-Encoding: gzip"]),
        http(zlib.compress(body.encode()), headers=["Content-Encoding: deflate"]),
        http(bare.compress(body.encode()) + bare.flush(), headers=["Content-Encoding: deflate"]),
        http(body.encode(), headers=["Content-Encoding: deflate"]),
        http(gzip.compress(body.encode()), headers=["Content-Encoding: x-gzip"]),
        http(zlib.compress(body.encode()), headers=["Content-Encoding: x-deflate"]),
        http(parted.replace(b"\r\n", b"\n", 1), headers=["Transfer-Encoding: chunked"]),
        http(gzip.compress(body.encode()), headers=["content-encoding: GZIP"]),
        http(gzip.compress(body.encode())),
        http(gzip.compress(body.encode())[:-8], headers=["Content-Encoding: gzip"]),
        http(twice, headers=["Content-Encoding: gzip, gzip"]),
        http(twice, headers=["Content-Encoding: gzip", "Transfer-Encoding: gzip"]),
        http(zstd_bytes(body.encode()), headers=["Content-Encoding: zstd"]),
        http(body.encode(), headers=["Content-Encoding: br"]),
        http(body.encode(), headers=["Content-Encoding: utf-8"]),
        http(parted, headers=["Transfer-Encoding: chunked"]),
        http(parted.upper()[:14].lower() + parted[14:], headers=["Transfer-Encoding: identity, chunked"]),
        http(b"%x\r\n" % 1000 + body.encode(), headers=["Transfer-Encoding: chunked"]),
        http(
            chunked_of(gzip.compress(body.encode())), headers=["Content-Encoding: gzip", "Transfer-Encoding: chunked"]
        ),
        http(brotli(body.encode()), headers=["Content-Encoding: br"]),
        http(brotli(latin), "text/html; charset=ISO-8859-1", headers=["Content-Encoding: br"]),
        *(
            http(latin, "text/html; charset=ISO-8859-1", headers=[f"Content-Encoding: {name}"])
            for name in ("br", "gzip", "deflate", "zstd", "snappy", "identity", "none")
        ),
        http(b"\xff\xfe" + body.encode("utf-16-le"), "text/html; charset=utf-16", headers=["Content-Encoding: none"]),
        http(latin, "text/html; charset=ISO-8859-1"),
        http(latin, "text/html; charset=no-such-charset"),
        http(named, "text/html"),
        http(b"\xef\xbb\xbf" + body.encode(), "TEXT/HTML"),
        http(text.encode("latin-1"), "text/plain; charset=latin1"),
        http(text.encode(), "text/plain"),
    ]
    records = [record("response", data, number=i) for i, data in enumerate(bodies)]
    (tmp_path / "a.warc").write_bytes(b"".join(records))
    # An iterator of FastWARC that decodes bodies itself stops at an empty member and after a chunked gzip body.
    (tmp_path / "a.warc.gz").write_bytes(by_member(records[:2]) + gzip.compress(b"") + by_member(records[2:]))
    for name in ("a.warc", "a.warc.gz"):
        texts, bad, _ = read(tmp_path / name)
        assert not bad
        assert {i: value.strip() for i, value in enumerate(texts.values())} == dict.fromkeys(range(len(bodies)), text)


@pytest.mark.parametrize("window", [15, -15], ids=["zlib", "bare"])
def test_a_body_that_was_cut_is_decoded_up_to_there(tmp_path, window):
    words = " ".join(f"wort{number * 7919 % 1000}" for number in range(300))
    packer = zlib.compressobj(9, zlib.DEFLATED, window)
    body = (packer.compress(f"<p>{words}</p>".encode()) + packer.flush())[:-40]
    (tmp_path / "a.warc").write_bytes(record("response", http(body, headers=["Content-Encoding: deflate"])))
    texts, bad, _ = read(tmp_path / "a.warc")
    (text,) = texts.values()
    assert not bad
    assert words.startswith(text.strip())
    assert len(text) > len(words) // 2


def brotli(data):
    return pa.compress(data, "brotli", asbytes=True)


def chunked_of(data):
    return b"".join(b"%x ; a\r\n" % len(part) + part + b"\r\n" for part in (data[:7], data[7:])) + b"0\r\n\r\n"


def test_bodies_that_cannot_be_decoded_are_bad_rows(tmp_path):
    """They would become texts of random bytes."""
    page = b"<p>a page of some words</p>" * 20
    damaged = bytearray(gzip.compress(page))
    damaged[20:24] = b"\xff" * 4
    bodies = [
        (bytes(damaged), "Content-Encoding: gzip"),
        (bytes(damaged), "Content-Encoding: br"),
        (b"\x78\x9c" + bytes(damaged), "Content-Encoding: deflate"),
        (b"\x1f\x9d" + bytes(damaged), "Content-Encoding: compress"),
        (b"\x28\xb5\x2f\xfd" + bytes(damaged), "Content-Encoding: zstd"),
    ]
    noise = random.Random(7).randbytes(3000)
    for seed, name in enumerate(["br", "gzip", "deflate", "zstd", "snappy", "utf-8", "br, gzip", "dcb", "aws-chunked"]):
        bodies += [(random.Random(seed).randbytes(size), f"Content-Encoding: {name}") for size in (120, 3000, 70_000)]
    bodies += [(gzip.compress(noise), "Content-Encoding: br, gzip"), (brotli(page)[5:], "Content-Encoding: br")]
    bodies += [(chunked_of(noise), "Content-Encoding: br\r\nTransfer-Encoding: chunked")]
    records = [record("response", http(data, headers=[head]), number=i) for i, (data, head) in enumerate(bodies)]
    image = record("response", http(bytes(damaged), "image/png", headers=["Content-Encoding: gzip"]), number=50)
    (tmp_path / "a.warc").write_bytes(b"".join([*records, image, RECORDS[2]]))
    texts, bad, _ = read(tmp_path / "a.warc")
    assert list(texts) == [record_id(2)]
    assert list(bad) == list(range(len(bodies)))
    assert all(reason.startswith("cannot decode the body: ") for reason in bad.values())


def test_arc(tmp_path):
    body = http(b"<p>an old page of an old archive, from before the standard</p>")
    head = b"filedesc://old.arc 0.0.0.0 20050101000000 text/plain 15\n1 0 Somebody\n\n\n\n"
    url = b"http://example.org/a page 192.0.2.1 20050102030405 text/html %d\n" % len(body)
    data = [head, url + body + b"\n", b"http://example.org/b 192.0.2.1 20050102030406 image/gif 6\nGIF89a\n"]
    for name, packed in (("old.arc", b"".join(data)), ("old.arc.gz", by_member(data))):
        (tmp_path / name).write_bytes(packed)
        texts, bad, file = read(tmp_path / name, id_field="url", fields=("date", "status"))
        assert {key: value.strip() for key, value in texts.items()} == {
            "http://example.org/a%20page": "an old page of an old archive, from before the standard"
        }
        assert not bad
        assert file.facts()["num_records"] == {"response": 2, "warcinfo": 1}


class OnceItHangs(threading.Thread):
    """A timer that expires only when a file exists: until then, reading may take as long as it needs."""

    def __init__(self, sign, end):
        super().__init__()
        self._sign, self._end = sign, end
        self._is_cancelled = threading.Event()

    def run(self):
        while not self._is_cancelled.wait(0.005):
            if self._sign.exists():
                self._sign.unlink()
                self._end()
                return

    def cancel(self):
        self._is_cancelled.set()


def test_an_extractor_that_hangs_or_dies(monkeypatch):
    """The error names one page of a batch, and the others are read."""
    from likewise.io.archives import html_process

    page = (b"<p>a page</p>", "")
    source = Path(html_process.__file__).read_text()
    hostile = source.replace(
        "    def text_of(page: bytes, charset: str) -> str:\n",
        "    def text_of(page: bytes, charset: str) -> str:\n"
        "        import os, time\n"
        "        if page == b'hang':\n"
        "            open(__file__ + '.hangs', 'w').close()\n"
        "            time.sleep(1000)\n"
        "        if page == b'die': os._exit(1)\n",
    )
    assert hostile != source
    readers = HtmlReaders()
    with pytest.MonkeyPatch.context() as patch:
        import tempfile

        with tempfile.TemporaryDirectory() as place:
            script = Path(place) / "process.py"
            script.write_text(hostile)
            patch.setattr(html_process, "__file__", str(script))
            patch.setattr(threading, "Timer", lambda _, end: OnceItHangs(script.with_name("process.py.hangs"), end))
            found = readers.texts([page, (b"die", ""), page, (b"hang", ""), page])
            readers.close()
    assert [text and text.strip() for text, _ in found] == ["a page", None, "a page", None, "a page"]
    assert "crashes the extractor" in found[1][1]
    assert "took more than" in found[3][1]


def test_command_and_names(tmp_path):
    (tmp_path / "crawl").mkdir()
    (tmp_path / "crawl" / "a.warc.gz").write_bytes(by_member(RECORDS))
    (tmp_path / "crawl" / "b.dat").write_bytes(b"".join(RECORDS[:3]))
    done = likewise_command("dedup", "crawl", "-o", "out", cwd=tmp_path)
    assert done.status == 0, done.err
    done = likewise_command("dedup", "crawl/b.dat", "-o", "out2", cwd=tmp_path)
    assert done.status == 0, done.err
    assert likewise_command("diff", "out", "out", cwd=tmp_path).status == 0
    packed = (tmp_path / "crawl" / "a.warc.gz").read_bytes()
    done = likewise_command("dedup", "-", "--format", "warc", "-o", "out3", cwd=tmp_path, stdin=packed)
    assert done.status == 0, done.err
    assert (tmp_path / "out3" / "kept" / "stdin.warc.gz").exists()
    (tmp_path / "no.warc").write_bytes(b"<html>not an archive</html>" * 10)
    done = likewise_command("dedup", "no.warc", "-o", "out4", cwd=tmp_path)
    assert done.status == 2
    assert "not a web archive" in done.err


@pytest.mark.parametrize("suffix", ["warc", "warc.gz"])
def test_damage_at_the_start_takes_no_other_record(tmp_path, suffix):
    records = [page(n, TEXT.format(n)) for n in range(3)]
    if suffix == "warc":
        data = records[0].replace(b"Content-Length: ", b"Content-Length: 1000000000000000000") + b"".join(records[1:])
    else:
        packed = by_member(records)
        data = packed[:12] + b"\xff" * 48 + packed[60:]
    (tmp_path / f"a.{suffix}").write_bytes(data)
    texts, bad, _ = read(tmp_path / f"a.{suffix}")
    assert list(texts) == [record_id(1), record_id(2)]
    assert list(bad) == [0]


@pytest.mark.skipif(not REAL.is_dir(), reason="the labeled sets are not here")
def test_real_archives():
    """The numbers of records and the fetched bodies are those found by another reader."""
    expected = json.loads((REAL / "expected.json").read_text())
    checked = 0
    for name, of_one in expected.items():
        _, bad, file = read(REAL / name)
        assert not bad, (name, bad)
        counts = dict(of_one["counts"])
        assert file.facts()["num_records"] == dict(sorted(counts.items())), name
        found = [found for found in bodies(file) if found[0] == "response"]
        wanted = [entry for entry in of_one["records"] if entry["type"] == "response"]
        assert len(found) == len(wanted), name
        for (_, url, status, body), entry in zip(found, wanted, strict=True):
            assert url == entry["uri"], name
            # The other reader did not decode Brotli, and returned no bodies of responses that are not HTTP.
            if "sha1" in entry and entry.get("encoding") != "br":
                assert (entry["size"], entry["sha1"]) == (len(body), hashlib.sha1(body).hexdigest()), entry
                assert status == entry["status"]
                checked += 1
    assert checked > 190


def bodies(file):
    from likewise.io.archives import warc_documents

    data = file.path.read_bytes()
    for place in file._places(file.path.parent):
        packed = data[place.offset : place.offset + place.length]
        record = record_bytes(packed, is_packed=file.codec is not None, most=1 << 30)
        if file._arc:
            record, kind = warc_documents._warc_of(record)
            if kind == "warcinfo":
                continue
        opened = opened_record(record)
        body = body_of(opened, 1 << 30)
        kind = str(opened.record_type).rpartition(".")[2].lower()
        http = opened.http_headers
        status = "" if http is None else str(http.status_code or "")
        yield kind, opened.headers.get("WARC-Target-URI"), status, body


@pytest.mark.parametrize("name", PACKINGS)
def test_records_that_an_earlier_run_had_read(tmp_path, name):
    """A continued run does not read jobs stored in parts again; records to copy are found when needed."""
    data = PACKINGS[name](RECORDS)
    (tmp_path / name).write_bytes(data)
    codec = "gzip" if data[:2] == b"\x1f\x8b" else None
    offsets, lengths = [], []
    for is_continued in (False, True):
        file = WarcFile(tmp_path / name, name, len(data), ReadRules(), codec)
        for number, job in enumerate(file.jobs(1, tmp_path)):
            if is_continued and number % 2:
                continue
            for piece in job.read():
                if not is_continued:
                    offsets += piece.offsets.tolist()
                    lengths += piece.lengths.tolist()
        assert file.facts()["num_records"]["response"] == 5
        places = np.array(offsets, np.uint64), np.array(lengths, np.uint32)
        file.write_kept(tmp_path / f"kept-{is_continued}", Kept(*places, threads=2))
        kept = (tmp_path / f"kept-{is_continued}").read_bytes()
        assert kept == (by_member(RECORDS) if codec else data) or members(kept) == RECORDS
