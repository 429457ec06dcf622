"""The report: one document that loads and runs nothing, and reports the facts of the run."""

import json
import re

import pyarrow.parquet as pq
import pytest

from likewise import Recipe
from likewise.runs.report import report
from tests.command import likewise_command
from tests.runs.viewing.runs import make_named_run, make_run, rows
from tests.runs.viewing.test_drawing import Parsed


@pytest.mark.parametrize("form", ["jsonl", "parquet", "txt"])
def test_it_stands_alone_and_shows_what_the_run_did(tmp_path, form):
    out = make_run(tmp_path, form)
    text = report(out)
    summary = json.loads((out / "summary.json").read_text())
    style, rest = text.split("</style>")
    parsed = Parsed(re.sub(r"<meta\b[^>]*>|<!doctype html>", "", rest.split("</head>")[1].replace("</html>", "")))
    assert not {"script", "img", "link", "iframe", "a"} & set(parsed.tags)
    assert not re.search(r"\b(src|href|url)\s*[=(]", text.replace("src=x onerror=", ""))
    assert "default-src 'none'" in style
    for name in ("num_documents", "num_kept", "num_removed"):
        assert f"<b>{summary[name]:,}</b>" in text
    assert summary["recipe_id"] in text
    assert text.count('class="pair"') == min(20, summary["num_removed"])
    assert "<del>" in text
    assert "<ins>" in text


def test_it_opens_with_the_least_certain_removals_of_each_kind(tmp_path):
    out = make_named_run(tmp_path)
    evidence = pq.read_table(out / "removed.parquet").to_pylist()
    text = report(out)
    assert text.count('class="pair"') == 20
    assert text.index("Differ in first words: ") < text.index(">Inputs<")
    first = min(
        (row for row in evidence if "lead" in row["differs_in"].split(",")),
        key=lambda row: row["similarity"] - row["required"],
    )
    sample = text[text.index("Differ in first words: ") :].split('class="pair"')[1]
    assert f"<b>{first['doc_id']}</b>" in sample
    assert f"{first['similarity']:.4f} is at least {first['required']:.4f}" in sample
    # Of 20 removals, few are of equal texts.
    assert text.count("only differences that the recipe ignores") <= 5


def test_without_samples_it_holds_no_word_of_a_document(tmp_path):
    out = make_run(tmp_path)
    text = report(out, samples=False)
    words = {word for row in rows() for word in re.findall(r"\w{4,}", row["text"])}
    ours = set(re.findall(r"\w{4,}", re.sub(r"<style>.*?</style>", "", text, flags=re.S)))
    assert len(words) > 300
    # Words that the report itself uses.
    own = set(
        re.findall(r"\w{4,}", re.sub(r"<style>.*?</style>", "", report(_other(tmp_path), samples=False), flags=re.S))
    )
    assert words & ours <= own
    assert not any(row["id"] in text for row in rows() if "-" in row["id"])


def _other(tmp_path):
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "in.jsonl").write_text(
        '{"id": "1", "text": "zzzz yyyy"}\n' * 1 + '{"id": "2", "text": "qqqq"}\n'
    )
    assert likewise_command("dedup", tmp_path / "other/in.jsonl", "-o", tmp_path / "other/out").status == 0
    return tmp_path / "other/out"


def test_hostile_documents_stay_text_in_it(tmp_path):
    text = report(make_run(tmp_path, recipe=Recipe.minhash(0.8)))
    assert "<script" not in text
    assert "<img" not in text
    assert "&lt;b&gt;hostile&lt;/b&gt;" in text
    assert "\u202e" not in text


def test_runs_of_every_kind_have_reports(tmp_path):
    recipes = [
        Recipe.exact(), Recipe.shingles(0.5), Recipe.bloom(0.5), Recipe.simhash(within=3),
        Recipe.simhash(threshold=0.8),
        Recipe.simhash(within=20, bits=128), Recipe.minhash(0.5, group="components"),
        Recipe.minhash(0.8, measure="containment"), Recipe.minhash(weights="idf"), Recipe.minhash(tokens="chinese"),
    ]  # fmt: skip
    for number, recipe in enumerate(recipes):
        folder = tmp_path / str(number)
        folder.mkdir()
        text = report(make_run(folder, recipe=recipe))
        assert recipe.method in text
    assert "<b>0</b>removed" in report(_other(tmp_path))


def test_the_command_writes_it_where_it_is_told(tmp_path):
    out = make_run(tmp_path)
    ran = likewise_command("report", out)
    assert (ran.status, ran.out) == (0, b"")
    assert "wrote" in ran.err
    written = (out / "report.html").read_bytes()
    assert written.startswith(b"<!doctype html>")
    assert likewise_command("report", out, "-q", "-o", "-").out == written
    assert likewise_command("report", out, "--no-samples", "-o", tmp_path / "short.html").status == 0
    assert (tmp_path / "short.html").stat().st_size < len(written)
    for wrong in ([tmp_path], [tmp_path / "nothing"], [out, "-o", tmp_path / "no" / "x.html"]):
        ran = likewise_command("report", *wrong)
        assert ran.status == 2, ran.err
        assert "Traceback" not in ran.err
