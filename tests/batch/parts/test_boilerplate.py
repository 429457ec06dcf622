"""Boilerplate by site: lines shared by many documents of one site are removed in all copies; the rest is unchanged."""

import gzip
import json
import random
from collections import Counter

import pyarrow.parquet as pq
import pytest

from likewise.batch.parts import BoilerplateRules, remove_boilerplate
from likewise.errors import InvalidInput, InvalidParameter
from likewise.job.reading import FileRun
from tests.batch.parts.naive import lines, paragraphs
from tests.command import likewise_command
from tests.files import jsonl
from tests.oracle.normalize import normalize

PLACES = {"line": lines, "paragraph": paragraphs}


def pages(seed, num_documents=120):
    """Return pages of sites with menus; some lines are frequent on one site only."""
    rng = random.Random(seed)
    rows = []
    for i in range(num_documents):
        site = rng.choice(["a.example", "a.example", "B.example", "c.example", "tiny.example"])
        if site == "tiny.example" and rng.random() < 0.85:
            site = "a.example"
        parts = [
            f"Story {i} of {site}",
            f"{rng.choice(['common', 'frequent', 'rare'])} line",
            f"line {rng.randrange(9)}",
        ]
        if rng.random() < 0.8:
            parts.insert(0, rng.choice(["HOME | News", "home |  news"]))
        if rng.random() < 0.5:
            parts += ["", f"(c) {site}", f"(c) {site}"]
        parts = [f"{site} since 1901", "", *parts]
        url = rng.choice([f"https://{site}/p{i}", f"http://{site.upper()}:8080/?q={i}"])
        rows.append({"id": f"d{i}", "url": url if rng.random() < 0.95 else None, "text": "\n".join(parts), "more": [i]})
    return rows


def host(url):
    return url.split("/")[2].split(":")[0].lower()


def expected(rows, unit, share, min_documents):
    """Return texts without boilerplate, and (row, start, end, documents, site's documents) of each removed part."""
    of_site = Counter(host(row["url"]) for row in rows if row["url"])
    counts = Counter()
    for row in rows:
        if row["url"]:
            own = {normalize(row["text"][a:b]) for a, b in PLACES[unit](row["text"])}
            counts.update((host(row["url"]), part) for part in own)
    left, gone = [], []
    for number, row in enumerate(rows):
        text, site, at, kept = row["text"], row["url"] and host(row["url"]), 0, []
        for start, end in PLACES[unit](text):
            num = counts[site, normalize(text[start:end])] if site else 0
            # In integers, to hundredths of the share.
            is_frequent = site and num * 100 >= round(share * 100) * of_site[site] and num >= 2
            if is_frequent and of_site[site] >= min_documents:
                gone.append((number, start, end, num, of_site[site]))
                kept.append(text[at:start])
                at = end
        left.append("".join([*kept, text[at:]]))
    return left, gone


def lines_of(path):
    return [json.loads(line) for line in path.read_text().splitlines()]


@pytest.mark.parametrize("unit", ["line", "paragraph"])
@pytest.mark.parametrize(("share", "min_documents"), [(0.3, 10), (0.1, 2), (1.0, 2), (0.57, 30)])
@pytest.mark.parametrize("seed", range(2))
def test_what_goes_is_what_the_oracle_says(tmp_path, unit, share, min_documents, seed):
    rows = pages(seed)
    half = len(rows) // 2
    inputs = [jsonl(tmp_path / "a.jsonl", rows[:half]), jsonl(tmp_path / "b.jsonl", rows[half:])]
    left, gone = expected(rows, unit, share, min_documents)
    rules = BoilerplateRules("url", share, unit, min_documents)
    found = []
    for threads in (1, 3):
        out = tmp_path / f"out-{threads}"
        summary = remove_boilerplate(inputs, out, rules, run=FileRun(threads=threads))
        kept = [row for name in ("a", "b") for row in lines_of(out / "kept" / f"{name}.jsonl")]
        # Texts left without a visible character are dropped.
        assert [row["text"] for row in kept] == [text for text in left if text.strip()]
        assert [row | {"text": ""} for row in kept] == [
            row | {"text": ""} for row, text in zip(rows, left, strict=True) if text.strip()
        ]
        evidence = pq.read_table(out / "removed.parquet").to_pylist()
        names = ("row", "span_start", "span_end", "num_documents", "num_site_documents")
        assert [tuple(row[name] for name in names) for row in evidence] == gone
        for row in evidence:
            assert row["doc_id"] == rows[row["row"]]["id"]
            assert row["site"] == host(rows[row["row"]]["url"])
            assert row["share"] == row["num_documents"] / row["num_site_documents"]
        assert summary["num_removed_parts"] == len(gone)
        found.append([(out / name).read_bytes() for name in ("kept/a.jsonl", "removed.parquet", "sites.parquet")])
    assert found[0] == found[1]
    assert gone
    sites = {row["site"]: row for row in pq.read_table(tmp_path / "out-1" / "sites.parquet").to_pylist()}
    of_site = Counter(host(row["url"]) for row in rows if row["url"])
    assert {site: row["num_documents"] for site, row in sites.items()} == of_site
    checked = {site for site, count in of_site.items() if count >= min_documents}
    assert {site for site, row in sites.items() if row["status"] == "checked"} == checked
    removed = Counter(host(rows[row]["url"]) for row, *_ in gone)
    assert {site: row["num_removed_parts"] for site, row in sites.items() if row["num_removed_parts"]} == removed
    assert summary["num_without_site"] == sum(row["url"] is None for row in rows)


def test_sites_are_told_by_any_value_and_minimum_lengths_hold(tmp_path):
    rows = [{"site": 7, "text": f"}}\nthe same long line\nown {i}"} for i in range(10)]
    rows += [{"site": "seven", "text": f"the same long line\nother {i}"} for i in range(3)]
    path = tmp_path / "in.jsonl.gz"
    path.write_bytes(gzip.compress("".join(json.dumps(row) + "\n" for row in rows).encode()))
    remove_boilerplate(path, tmp_path / "out", BoilerplateRules("site", min_tokens=2))
    kept = gzip.decompress((tmp_path / "out" / "kept" / "in.jsonl.gz").read_bytes()).decode().splitlines()
    texts = [json.loads(line)["text"] for line in kept]
    assert texts == [f"}}\nown {i}" for i in range(10)] + [row["text"] for row in rows[10:]]
    dry = remove_boilerplate(path, tmp_path / "dry", BoilerplateRules("site", min_tokens=2), dry_run=True)
    assert dry["num_removed_parts"] == 10
    assert not (tmp_path / "dry").exists()


def test_a_share_is_met_by_the_whole_number_that_is_meant(tmp_path):
    """In floating point, 0.07 * 100 exceeds 7."""
    rows = [{"s": "x", "text": f"own {i}" + ("\nshared" if i < 7 else "")} for i in range(100)]
    summary = remove_boilerplate(
        jsonl(tmp_path / "in.jsonl", rows), tmp_path / "out", BoilerplateRules("s", share=0.07), dry_run=True
    )
    assert summary["num_removed_parts"] == 7


def test_the_command_tells_what_went(tmp_path):
    path = jsonl(tmp_path / "in.jsonl", pages(5))
    done = likewise_command("boilerplate", path, "--site", "url", "-o", tmp_path / "out")
    assert done.status == 0, done.err
    assert "lines removed from" in done.err
    assert "fewer than 10 documents" in done.err
    assert "without a value in 'url'" in done.err
    again = likewise_command("boilerplate", path, "--site", "url", "-o", tmp_path / "out")
    assert again.status == 2
    assert "contains a finished run" in again.err
    done = likewise_command("boilerplate", path, "--site", "url", "-o", tmp_path / "out", "--overwrite", "--json")
    assert json.loads(done.out)["num_removed_parts"] > 0
    done = likewise_command("audit", tmp_path / "out")
    assert "output of likewise boilerplate, not of a deduplication" in done.err


def test_what_makes_no_sense_is_refused(tmp_path):
    path = jsonl(tmp_path / "in.jsonl", pages(0, 20))
    for rules, error, message in [
        ({"share": 0}, InvalidParameter, "share"),
        ({"share": float("nan")}, InvalidParameter, "share"),
        ({"share": 1.1}, InvalidParameter, "share"),
        ({"unit": "span"}, InvalidParameter, "unit"),
        ({"min_documents": 1}, InvalidParameter, "min_documents"),
        ({"min_tokens": -1}, InvalidParameter, "min_tokens"),
        ({"site": ""}, InvalidParameter, "site"),
        ({"site": "nope"}, InvalidInput, "no document has a value in the field 'nope'"),
    ]:
        with pytest.raises(error, match=message):
            remove_boilerplate(path, tmp_path / "out", BoilerplateRules(**{"site": "url", **rules}))
        assert not (tmp_path / "out").exists()
    with pytest.raises(InvalidParameter, match="memory"):
        remove_boilerplate(path, tmp_path / "out", BoilerplateRules("url"), run=FileRun(memory_bytes="1GB"))
    with pytest.raises(InvalidParameter, match="single field"):
        remove_boilerplate(path, tmp_path / "out", BoilerplateRules("url"), run=FileRun(text_fields=("text", "id")))
    empty = jsonl(tmp_path / "empty.jsonl", [])
    assert remove_boilerplate(empty, tmp_path / "none", BoilerplateRules("url"))["num_documents"] == 0
    (tmp_path / "bad.jsonl").write_text('{"url": "x", "text": "a"}\n{broken\n')
    with pytest.raises(InvalidInput, match="fix the row"):
        remove_boilerplate(tmp_path / "bad.jsonl", tmp_path / "out", BoilerplateRules("url"))
    run = FileRun(on_error="keep", max_bad_rows=1)
    summary = remove_boilerplate(tmp_path / "bad.jsonl", tmp_path / "out", BoilerplateRules("url"), run=run)
    assert summary["num_bad_rows"] == 1
    assert (tmp_path / "out" / "kept" / "bad.jsonl").read_bytes() == (tmp_path / "bad.jsonl").read_bytes()
