"""Results in memory: counts that add up, samples, and the same facts as report, figure, saved run and pages."""

import builtins
import json
import pickle
import urllib.request

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import likewise
from likewise import InvalidInput, InvalidParameter, Recipe
from likewise.job.reading import FileRun
from tests.runs.viewing.runs import rows

TEXTS = [row["text"] for row in rows()]
IDS = [row["id"] for row in rows()]


@pytest.fixture(scope="module")
def result():
    return likewise.dedup([*TEXTS, None], threshold=0.5, ids=[*IDS, "none"], nulls="keep")


def test_counts_add_up_and_name_the_rule(result):
    summary = result.summary
    num_kept, num_removed = summary["num_kept"], summary["num_removed"]
    assert num_kept + num_removed + 1 == len(result) == len(TEXTS) + 1
    told = f"{len(result)} documents: {num_kept} kept, {num_removed} removed, 1 without text"
    assert repr(result) == f"<Deduplication of {told}; jaccard >= 0.5>"
    assert told in result._repr_html_()
    assert repr(pickle.loads(pickle.dumps(result))) == repr(result)
    by_distance = likewise.dedup(TEXTS, Recipe.simhash(within=3))
    assert repr(by_distance).endswith("; distance <= 3 of 64 bits>")
    assert repr(likewise.dedup(TEXTS, Recipe.exact())).endswith("; equal normalized texts>")


def test_a_sample_shows_both_texts(result):
    found = result.sample(5, seed=3)
    assert found.num_rows == 5
    assert found.equals(result.sample(5, seed=3))
    texts = dict(zip(IDS, TEXTS, strict=True))
    for row in found.to_pylist():
        assert (row["text"], row["kept_text"]) == (texts[row["doc_id"]], texts[row["kept_id"]])
    everything = result.sample(10_000)
    assert everything["doc_id"].to_pylist() == result.removed["doc_id"].to_pylist()
    assert likewise.dedup(["a text"]).sample().num_rows == 0


def test_later_changes_of_a_list_are_not_shown():
    texts = list(TEXTS)
    result = likewise.dedup(texts)
    before = result.sample()
    texts[:] = ["another text"] * len(texts)
    assert result.sample().equals(before)


def test_a_path_that_cannot_be_written_is_an_error_that_says_why(result, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for write in (result.report, result.save, lambda path: likewise.dedup_files("a.jsonl", path)):
        with pytest.raises(InvalidInput, match=r"~/x: ~ is not replaced here; give the path as os\.path\.expanduser"):
            write("~/x")
        with pytest.raises(InvalidInput, match="5 is not a path"):
            write(5)
    with pytest.raises(InvalidInput, match=r"~/x: ~ is not replaced here"):
        likewise.Index("~/x")
    for path in (tmp_path, tmp_path / "absent" / "x.html"):
        with pytest.raises(InvalidInput, match="not a file in an existing directory; choose another path"):
            result.report(path)
    assert not list(tmp_path.iterdir())
    with pytest.raises(InvalidParameter, match="'x' is not an integer from 0 to 65535"):
        result.serve("x")


@pytest.mark.parametrize("form", ["list", "table"])
def test_a_saved_result_is_the_run_over_the_same_file(tmp_path, form):
    file = tmp_path / "in.jsonl"
    file.write_text("".join(json.dumps({"id": a, "text": b}) + "\n" for a, b in zip(IDS, TEXTS, strict=True)))
    likewise.dedup_files(file, tmp_path / "files")
    given = TEXTS if form == "list" else pa.table({"id": IDS, "text": TEXTS})
    result = likewise.dedup(given, ids=IDS if form == "list" else None)
    assert result.save(tmp_path / "saved") == tmp_path / "saved"
    evidence = [
        pq.read_table(tmp_path / run / "removed.parquet").drop_columns(
            ["file", "offset", "length", "kept_file", "kept_offset"]
        )
        for run in ("files", "saved")
    ]
    assert evidence[0].equals(evidence[1])
    with pytest.raises(likewise.InvalidInput, match="overwrite"):
        result.save(tmp_path / "saved")
    result.save(tmp_path / "saved", overwrite=True)


def test_a_saved_result_passes_its_audit(tmp_path, result):
    result.save(tmp_path / "saved")
    found = likewise.audit(tmp_path / "saved")
    assert found.passed
    lines = repr(found).splitlines()
    assert lines[0] == "<Audit: passed"
    assert 2 <= len(lines) <= 10


def test_decisions_are_saved(tmp_path):
    texts = {"ids": ["a", "b"], "decisions": {"b": "keep"}, "threshold": 0.5}
    likewise.dedup([TEXTS[0], TEXTS[0] + " again"], **texts).save(tmp_path / "saved")
    assert (tmp_path / "saved" / "overruled.parquet").exists()


def test_the_report_shows_the_texts_in_a_frame(tmp_path, result):
    page = result.report(tmp_path / "report.html")
    assert (tmp_path / "report.html").read_text() == page
    assert "baker who wants" in page
    assert "<script>document" not in page
    assert page._repr_html_().startswith('<iframe srcdoc="&lt;!doctype html&gt;')


def test_the_figure_shows_the_threshold(result):
    pytest.importorskip("matplotlib", reason="needs matplotlib")
    similar, sizes, documents = result.plot().axes
    assert sum(bar.get_height() for bar in similar.patches) == len(result.removed)
    assert similar.lines[0].get_xdata()[0] == 0.5
    assert sum(bar.get_width() for bar in sizes.patches) == len(set(result.removed["kept_id"].to_pylist()))
    assert [bar.get_width() for bar in documents.patches] == [result.summary["num_kept"], len(result.removed)]
    likewise.dedup(["one text"]).plot().canvas.draw()


def test_without_matplotlib_the_charts_are_svg(result, monkeypatch):
    own = builtins.__import__

    def without(name, *arguments, **more):
        if name.startswith("matplotlib"):
            raise ImportError(name)
        return own(name, *arguments, **more)

    monkeypatch.setattr(builtins, "__import__", without)
    page = result.plot()
    assert "<svg" in page
    assert "threshold 0.5" in page


def test_the_pages_of_a_result(result):
    pytest.importorskip("fastapi", reason="needs likewise[server]")
    with result.serve() as served:
        assert served.url in served._repr_html_()
        with urllib.request.urlopen(f"{served.url}/look/result/groups") as answer:
            assert b"There are no groups" not in answer.read()
    assert not served.folder.exists()


def test_results_of_streams_say_that_they_hold_no_texts(tmp_path, result):
    for held in (likewise.dedup(iter(TEXTS)), pickle.loads(pickle.dumps(result))):
        with pytest.raises(likewise.InvalidInput, match="does not hold the texts"):
            held.save(tmp_path / "saved")
    given = pd.DataFrame({"text": TEXTS})
    changed = likewise.dedup(given)
    given.loc[len(given)] = "more"
    with pytest.raises(likewise.InvalidInput, match="documents changed"):
        changed.sample()


def test_recipes_and_comparisons_are_short():
    found = likewise.compare("one fine day", "one rainy day " + "x" * 100)
    assert repr(found).startswith("<Comparison: no match by jaccard, required ")
    assert "'fine' -> 'rainy'" in repr(found)
    for shown in (found, Recipe.preset("default"), Recipe.simhash(within=3), Recipe.minhash(0.8).resolve()):
        assert len(repr(shown).splitlines()) <= 10
        assert max(map(len, repr(shown).splitlines())) <= 150


def test_pairs_of_distinct_texts():
    texts = ["one fine day in may", "One fine day in May", "one fine day in march", "", "", "one fine day in march"]
    found = likewise.pairs(texts, Recipe.minhash(0.3, tokens="char"), distinct=True)
    assert list(zip(found["row_a"].to_pylist(), found["row_b"].to_pylist(), strict=True)) == [(0, 2)]
    every = likewise.pairs(texts, Recipe.minhash(0.3, tokens="char"))
    assert every.num_rows == 2 * 2 + 1 + 1 + 1
    with pytest.raises(likewise.InvalidParameter, match="against"):
        likewise.pairs(texts, distinct=True, against=texts)


def test_files_are_read_by_the_names_of_the_command(tmp_path):
    file = tmp_path / "in.jsonl"
    file.write_text(
        '{"key": "a", "body": "one fine day"}\n{"key": "b", "body": null}\n{"key": "c", "body": "One fine day!"}\n'
    )
    summary = likewise.dedup_files(
        file, tmp_path / "out", text_field="body", id_field="key", on_error="skip", memory="512MB", threshold=0.8,
        run=FileRun(text_fields=("other",), max_bad_rows="100%"),
    )  # fmt: skip
    assert (summary["num_documents"], summary["num_removed"], summary["num_bad_rows"]) == (2, 1, 1)
    assert (summary["options"]["text_field"], summary["options"]["id_field"]) == (["body"], "key")
