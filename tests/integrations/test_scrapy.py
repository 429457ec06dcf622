"""Crawls of a local site with `LikewisePipeline`; skipped without Scrapy."""

import contextlib
import json
import subprocess
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import SimpleNamespace

import pytest

import likewise
from likewise.errors import InvalidParameter
from tests.integrations.texts import half_copies
from tests.waiting import LIMIT_S, wait_until

pytest.importorskip("scrapy", reason="needs likewise[scrapy]")

PROGRAM = Path(__file__).with_name("crawl.py")
RECIPE = likewise.Recipe.minhash(0.5, keep="first")


def half_copied_pages(num_pages):
    return {str(number): text for number, text in enumerate(half_copies(num_pages))}


class Site(ThreadingHTTPServer):
    """A site of pages, with a root page that links to all of them."""

    def __init__(self, pages):
        super().__init__(("127.0.0.1", 0), Page)
        self.pages, self.num_served = pages, 0
        # Number of pages served until `resumed` is set; all if None.
        self.pause_at, self.resumed = None, threading.Event()
        self.url = f"http://127.0.0.1:{self.server_port}/"


class Page(BaseHTTPRequestHandler):
    def do_GET(self):
        name = self.path.strip("/")
        if name in self.server.pages:
            body = f"<p>{self.server.pages[name]}</p>"
            if self.server.pause_at is not None and self.server.num_served >= self.server.pause_at:
                self.server.resumed.wait()
            self.server.num_served += 1
        else:
            body = "".join(f'<a href="/{page}">{page}</a>' for page in self.server.pages)
        self.send_response(200)
        self.send_header("content-type", "text/html")
        self.end_headers()
        self.wfile.write(body.encode())

    def log_message(self, *_):
        pass


@contextlib.contextmanager
def site_of(pages):
    with Site(pages) as site:
        thread = threading.Thread(target=site.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield site
        site.shutdown()
        thread.join()


def started(site, export, **settings):
    command = [sys.executable, PROGRAM, site.url, export, json.dumps(settings)]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    return subprocess.Popen(command, stdin=subprocess.DEVNULL, text=True, **pipes)


def crawl(site, export, **settings):
    with started(site, export, **settings) as process:
        out, err = process.communicate(timeout=LIMIT_S)
    assert process.returncode == 0, err
    return (json.loads(out) if out else None), err


def exported(path):
    """Return the items of an export by id; the last line of a killed crawl may be cut."""
    *lines, rest = path.read_text().split("\n") if path.exists() else [""]
    items = [json.loads(line) for line in lines]
    if rest:
        with contextlib.suppress(ValueError):
            items.append(json.loads(rest))
    assert len({item["url"] for item in items}) == len(items)
    return {item["url"]: item for item in items}


def evidence(verdict):
    return {name: verdict[name] for name in ("kept_id", "measure", "similarity", "distance")}


def plain(index, pages):
    """Return the plain call's evidence of removed pages, by id, for the order in which the index received them."""
    ids = sorted(pages, key=lambda name: index.get(name).seq)
    removed = likewise.dedup([pages[name] for name in ids], RECIPE, ids=ids).removed.to_pylist()
    return {row["doc_id"]: evidence(row | {"distance": None}) for row in removed}


def test_items_are_dropped_with_evidence(tmp_path):
    pages = half_copied_pages(40)
    likewise.Index(tmp_path / "seen.lw", RECIPE).close()
    with site_of(pages) as site:
        found, err = crawl(site, tmp_path / "out.jsonl", LIKEWISE_INDEX=str(tmp_path / "seen.lw"))
    assert err.count("near-duplicate") == 0
    with likewise.Index(tmp_path / "seen.lw", read_only=True) as seen:
        expected = plain(seen, pages)
    assert len(expected) == 20
    kept = exported(tmp_path / "out.jsonl")
    assert {url: evidence(verdict) for url, verdict in found["dropped"].items()} == expected
    assert kept.keys() == pages.keys() - expected.keys()
    assert all(item["likewise"] == {"is_new": True, "known": False} for item in kept.values())
    assert found["stats"] == {"likewise/new": 20, "likewise/duplicate": 20}
    url, verdict = next(iter(found["dropped"].items()))
    assert verdict["message"].startswith(f"{url} is a near-duplicate of {verdict['kept_id']} (jaccard 0.")


def test_dropped_items_are_logged_without_their_text(tmp_path):
    pages = half_copied_pages(4)
    settings = {"LIKEWISE_INDEX": str(tmp_path / "seen.lw"), "LOG_LEVEL": "INFO"}
    with site_of(pages) as site:
        _, err = crawl(site, tmp_path / "out.jsonl", **settings)
    lines = [line for line in err.splitlines() if "near-duplicate" in line]
    assert len(lines) == 2
    assert all("INFO: Dropped: " in line for line in lines)
    assert not any(text in err for text in pages.values())


def test_tagged_items_and_a_service(tmp_path):
    pytest.importorskip("fastapi", reason="needs likewise[server]")
    pytest.importorskip("httpx2", reason="needs likewise[client]")
    from tests.service.http.conftest import Service

    pages = half_copied_pages(20)
    service = Service(tmp_path / "collections")
    try:
        with service.client() as client, site_of(pages) as site:
            client.create_collection("pages", RECIPE)
            settings = {"LIKEWISE_INDEX": service.url, "LIKEWISE_COLLECTION": "pages", "LIKEWISE_ACTION": "tag"}
            found, _ = crawl(site, tmp_path / "out.jsonl", **settings)
            again, _ = crawl(site, tmp_path / "again.jsonl", **settings)
        with service.client("pages") as client:
            expected = plain(client, pages)
    finally:
        service.kill()
    assert found == {"stats": {"likewise/new": 10, "likewise/duplicate": 10}, "dropped": {}}
    assert again["stats"] == found["stats"] | {"likewise/known": 20}
    for name, known in (("out.jsonl", False), ("again.jsonl", True)):
        marks = {url: item["likewise"] for url, item in exported(tmp_path / name).items()}
        assert marks.keys() == pages.keys()
        for url, mark in marks.items():
            assert mark == {"is_new": url not in expected, "known": known} | expected.get(url, {})


def test_items_without_text_and_ids_with_another_text(tmp_path):
    settings = {"LIKEWISE_INDEX": str(tmp_path / "seen.lw")}
    pages = half_copied_pages(4) | {"empty": ""}
    with site_of(pages) as site:
        found, err = crawl(site, tmp_path / "fail.jsonl", **settings)
        assert "no field 'text' in the item (found: url); set LIKEWISE_FIELD" in err
        assert found["stats"] == {"likewise/new": 2, "likewise/duplicate": 2, "likewise/no_text": 1}
        assert "empty" not in exported(tmp_path / "fail.jsonl")
        crawl(site, tmp_path / "keep.jsonl", LIKEWISE_NULLS="keep", **settings)
        assert "likewise" not in exported(tmp_path / "keep.jsonl")["empty"]
        found, err = crawl(site, tmp_path / "drop.jsonl", LIKEWISE_NULLS="drop", **settings)
        assert found["dropped"]["empty"]["message"] == "no text in the field 'text'"
        assert not err.count("Traceback")
        _, err = crawl(site, tmp_path / "id.jsonl", LIKEWISE_ID_FIELD="link", **settings)
        assert "no field 'link' in the item (found: url, text); set LIKEWISE_ID_FIELD" in err
        _, err = crawl(site, tmp_path / "tag.jsonl", LIKEWISE_TAG_FIELD="mark", **settings)
        assert "Page has no field 'mark'; add it, or set LIKEWISE_TAG_FIELD" in err
        pages["0"] = "another text"
        _, err = crawl(site, tmp_path / "changed.jsonl", **settings)
        assert "another text" in err
        assert "Error processing" in err


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({}, "LIKEWISE_INDEX: set it to the directory"),
        ({"LIKEWISE_INDEX": "seen.lw", "LIKEWISE_ACTION": "keep"}, "must be one of drop, tag, not 'keep'"),
        ({"LIKEWISE_INDEX": "seen.lw", "LIKEWISE_NULLS": "skip"}, "must be one of fail, keep, drop, not 'skip'"),
    ],
)
def test_settings_that_are_rejected(settings, message):
    from scrapy.settings import Settings

    from likewise.integrations.scrapy import LikewisePipeline

    with pytest.raises(InvalidParameter, match=message):
        LikewisePipeline.from_crawler(SimpleNamespace(settings=Settings(settings), stats=None))


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"LIKEWISE_RECIPE": "online"}, "RecipeMismatch"),
        ({"LIKEWISE_COLLECTION": "pages"}, "a collection or a key requires the URL of a service"),
        ({"LIKEWISE_INDEX": "http://127.0.0.1:1", "LIKEWISE_RECIPE": "online"}, "a service has its own recipe"),
    ],
)
def test_an_index_that_does_not_open_ends_the_crawl(tmp_path, settings, message):
    likewise.Index(tmp_path / "seen.lw", RECIPE).close()
    with site_of(half_copied_pages(2)) as site:
        _, err = crawl(site, tmp_path / "out.jsonl", **({"LIKEWISE_INDEX": str(tmp_path / "seen.lw")} | settings))
        assert site.num_served == 0
    assert message in err


@pytest.mark.parametrize("num_pages", [100, pytest.param(2000, marks=pytest.mark.slow)])
def test_a_killed_crawl_is_continued(tmp_path, num_pages):
    pages = half_copied_pages(num_pages)
    likewise.Index(tmp_path / "seen.lw", RECIPE).close()
    settings = {"LIKEWISE_INDEX": str(tmp_path / "seen.lw")}
    with site_of(pages) as site:
        site.pause_at = num_pages // 2
        process = started(site, tmp_path / "first.jsonl", **settings)
        with process, likewise.Index(tmp_path / "seen.lw", read_only=True) as seen:
            assert wait_until(lambda: len(seen) >= num_pages // 4 or process.poll() is not None)
            assert process.poll() is None, process.communicate()
            process.kill()
            process.communicate()
            num_known = len(seen)
        site.resumed.set()
        found, _ = crawl(site, tmp_path / "second.jsonl", **settings)
    assert 0 < num_known < num_pages
    assert found["stats"]["likewise/known"] == num_known
    with likewise.Index(tmp_path / "seen.lw", read_only=True) as seen:
        expected = plain(seen, pages)
        known = {name for name in pages if seen.get(name).seq <= num_known}
    assert len(expected) == num_pages // 2
    first, second = exported(tmp_path / "first.jsonl"), exported(tmp_path / "second.jsonl")
    # The first may lack items it had added; the second exports every kept item and marks those as known.
    assert second.keys() == pages.keys() - expected.keys()
    assert {url: evidence(verdict) for url, verdict in found["dropped"].items()} == expected
    for url, item in second.items():
        assert item["likewise"] == {"is_new": True, "known": url in known}
    assert first.keys() <= known
