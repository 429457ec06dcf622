"""URLs of object stores: read as if they were local, and written directly."""

import functools
import http.server
import json
import os
import threading

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import likewise
from likewise.batch.files import dedup_files
from likewise.batch.pair_files import pair_files, sketch_files
from likewise.corpus import decontaminate_files, find_copies, leak_files
from likewise.errors import InvalidInput
from likewise.io.places import is_remote, local_path
from likewise.io.remote import fetch, remote_files
from tests.io.files import REMOVED, ROWS, WRITERS, jsonl

fsspec = pytest.importorskip("fsspec", reason="names of stores need the extra likewise[remote]")
RECIPE = likewise.Recipe.minhash(0.8)


@pytest.fixture
def store():
    memory = fsspec.filesystem("memory")
    memory.store.clear()
    memory.pseudo_dirs[:] = [""]
    yield memory
    memory.store.clear()


def contents(memory, place):
    return {path.removeprefix(place): memory.cat(path) for path in memory.find(place)}


def evidence(data):
    found = pq.read_table(pa.BufferReader(data))
    return dict(zip(found["doc_id"].to_pylist(), found["kept_id"].to_pylist(), strict=True))


def test_names():
    assert all(map(is_remote, ("s3://a/b", "memory://x", "hf://datasets/a/b/c.parquet", "https://example.org/x")))
    assert not any(map(is_remote, ("a.jsonl", "/a/b", "-", "a:b", "file:///a/b", "://x")))
    assert local_path("file:///a/b%20c.jsonl") == local_path("FILE://localhost/a/b%20c.jsonl") == "/a/b c.jsonl"


@pytest.mark.parametrize("name", ["in.jsonl", "in.csv.gz", "in.parquet", "file.arrow"])
def test_read_and_written_through(store, tmp_path, name):
    store.pipe(f"/crawl/{name}", WRITERS[name](ROWS))
    summary = dedup_files(f"memory://crawl/{name}", "memory://result/out", RECIPE)
    found = contents(store, "/result/out")
    assert set(found) == {f"/kept/{name}", "/removed.parquet", "/summary.json"}
    assert evidence(found["/removed.parquet"]) == REMOVED
    assert json.loads(found["/summary.json"])["num_kept"] == summary["num_kept"] == 4
    # The same as from a local file.
    (tmp_path / name).write_bytes(WRITERS[name](ROWS))
    dedup_files(tmp_path / name, tmp_path / "out", RECIPE)
    assert (tmp_path / "out" / "kept" / name).read_bytes() == found[f"/kept/{name}"]
    assert pq.read_table(tmp_path / "out" / "removed.parquet").equals(
        pq.read_table(pa.BufferReader(found["/removed.parquet"]))
    )


def test_directories_globs_and_local_files_beside(store, tmp_path):
    store.pipe("/crawl/2024/a.jsonl", jsonl(ROWS[:3]))
    store.pipe("/crawl/2024/deep/b.jsonl", jsonl(ROWS[3:5]))
    store.pipe("/crawl/2024/notes.bin", b"\0not read")
    (tmp_path / "c.jsonl").write_bytes(jsonl(ROWS[5:]))
    summary = dedup_files(["memory://crawl/2024", tmp_path / "c.jsonl"], tmp_path / "out", RECIPE)
    assert [entry["path"] for entry in summary["inputs"]] == ["a.jsonl", "deep/b.jsonl", "c.jsonl"]
    assert any("notes.bin" in name for name in summary["skipped_files"])
    assert evidence((tmp_path / "out" / "removed.parquet").read_bytes()) == REMOVED
    summary = dedup_files("memory://crawl/*/*.jsonl", tmp_path / "glob", RECIPE)
    assert [entry["path"] for entry in summary["inputs"]] == ["a.jsonl"]
    (tmp_path / "d.jsonl").write_bytes(jsonl(ROWS))
    url = (tmp_path / "d.jsonl").as_uri()
    assert dedup_files(url, (tmp_path / "url").as_uri(), RECIPE)["num_removed"] == 2
    assert (tmp_path / "url" / "summary.json").exists()


def test_pairs_and_sketches(store, tmp_path):
    store.pipe("/in.jsonl", jsonl(ROWS))
    pair_files("memory://in.jsonl", "memory://pairs.tsv", RECIPE)
    lines = store.cat("/pairs.tsv").decode().splitlines()
    assert [line.split("\t")[:2] for line in lines[1:]] == [["a", "d"], ["c", "f"]]
    sketches = sketch_files("memory://in.jsonl", RECIPE)
    assert sketches.doc_ids == tuple(row["id"] for row in ROWS)


def test_places_that_are_not_free(store):
    store.pipe("/in.jsonl", jsonl(ROWS))
    dedup_files("memory://in.jsonl", "memory://out", RECIPE)
    before = contents(store, "/out")
    with pytest.raises(InvalidInput, match="finished run"):
        dedup_files("memory://in.jsonl", "memory://out", RECIPE)
    store.pipe("/bad.jsonl", b'{"text": 5}\n')
    with pytest.raises(InvalidInput):
        dedup_files("memory://bad.jsonl", "memory://out", RECIPE, overwrite=True)
    assert contents(store, "/out") == before
    dedup_files("memory://in.jsonl", "memory://out", RECIPE, write="evidence", overwrite=True)
    assert set(contents(store, "/out")) == {"/removed.parquet", "/summary.json"}
    store.pipe("/out/mine.txt", b"x")
    with pytest.raises(InvalidInput, match=r"mine\.txt"):
        dedup_files("memory://in.jsonl", "memory://out", RECIPE, overwrite=True)
    with pytest.raises(InvalidInput, match="inside"):
        dedup_files("memory://in", "memory://in/out", RECIPE)


def test_what_stores_refuse(store, tmp_path):
    with pytest.raises(FileNotFoundError, match=r"memory://nothing\.jsonl"):
        dedup_files("memory://nothing.jsonl", tmp_path / "out", RECIPE)
    with pytest.raises(FileNotFoundError):
        dedup_files("memory://no/*.jsonl", tmp_path / "out", RECIPE)
    with pytest.raises(InvalidInput, match="nosuch://a"):
        dedup_files("nosuch://a/b.jsonl", tmp_path / "out", RECIPE)
    with pytest.raises(InvalidInput, match=r"s3fs|cannot access the store"):
        dedup_files("nosuch2://a/b.jsonl", "nosuch2://out", RECIPE)
    assert not (tmp_path / "out").exists()


def test_a_file_that_comes_short(store, tmp_path):
    store.pipe("/in.jsonl", jsonl(ROWS))
    (file,) = remote_files("memory://in.jsonl").files
    store.pipe("/in.jsonl", jsonl(ROWS)[:-9])
    with pytest.raises(InvalidInput, match=r"received \d+ of \d+ bytes"):
        fetch([file], [tmp_path / "copy"])


def test_times_are_those_of_the_store(store, tmp_path):
    """A copy fetched again counts as the same file while the store's file is unchanged."""
    store.pipe("/in.jsonl", jsonl(ROWS))
    for number in range(2):
        fetch(remote_files("memory://in.jsonl").files, [tmp_path / str(number)])
    times = [os.stat(tmp_path / str(number)).st_mtime_ns for number in range(2)]
    assert times[0] == times[1] > 0


def test_over_http(tmp_path):
    pytest.importorskip("aiohttp", reason="fsspec reads http by aiohttp")
    (tmp_path / "served").mkdir()
    (tmp_path / "served" / "in.jsonl").write_bytes(jsonl(ROWS))
    handler = functools.partial(http.server.SimpleHTTPRequestHandler, directory=tmp_path / "served")
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        url = f"http://127.0.0.1:{server.server_port}/in.jsonl?token=1"
        assert dedup_files(url, tmp_path / "out", RECIPE)["num_removed"] == 2
        server.shutdown()


def test_questions_between_collections(store):
    text = "one two three four five six seven eight nine ten eleven twelve thirteen fourteen"
    store.pipe("/train.jsonl", jsonl([{"text": text}]))
    store.pipe("/test.jsonl", jsonl([{"question": text, "text": text}]))
    names = {"train": "memory://train.jsonl", "test": "memory://test.jsonl"}
    assert leak_files(names, "memory://leaks", RECIPE)["num_pairs"] == 1
    found = decontaminate_files("memory://train.jsonl", {"quiz": "memory://test.jsonl"}, "memory://clean")
    assert found["num_contaminated"] == 1
    copies = find_copies(["memory://train.jsonl"], files="memory://test.jsonl", output="memory://copies")
    assert copies.copies.num_rows
    held = store.find("/")
    assert "/copies/copies.parquet" in held
    assert {"/leaks/leaks.parquet", "/clean/items.parquet", "/clean/summary.json"} <= set(held)


@pytest.mark.parametrize(
    ("cause", "kind"),
    [
        (None, FileNotFoundError),
        (FileNotFoundError("absent"), FileNotFoundError),
        (ConnectionRefusedError(111, "refused"), InvalidInput),
        (ValueError("a certificate that has expired"), InvalidInput),
    ],
)
def test_what_a_server_fails_with_is_told(store, monkeypatch, tmp_path, cause, kind):
    """The HTTP file system of fsspec calls every failure a missing file, and the failure its cause."""

    def info(path, **_):
        raise FileNotFoundError(path) from cause

    monkeypatch.setattr(store, "info", info)
    with pytest.raises(kind) as caught:
        dedup_files("memory://in.jsonl", tmp_path / "out")
    assert kind is FileNotFoundError or f"cannot access the store: {cause}" in str(caught.value)


def test_a_server_that_refuses_is_not_a_missing_file(tmp_path):
    pytest.importorskip("aiohttp", reason="fsspec reads http by aiohttp")
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), http.server.BaseHTTPRequestHandler) as server:
        url = f"http://127.0.0.1:{server.server_port}/in.jsonl"
    # Its port is closed now.
    with pytest.raises(InvalidInput, match="cannot access the store: "):
        dedup_files(url, tmp_path / "out")

    class Refusing(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            self.send_error(404 if "absent" in self.path else 403)

        do_HEAD = do_GET

        def log_message(self, *_):
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Refusing) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        url = f"http://127.0.0.1:{server.server_port}/"
        try:
            with pytest.raises(InvalidInput, match="cannot access the store: 403"):
                dedup_files(f"{url}in.jsonl", tmp_path / "out")
            with pytest.raises(FileNotFoundError):
                dedup_files(f"{url}absent.jsonl", tmp_path / "out")
        finally:
            server.shutdown()
