"""The report of a run over parts: the most frequent removed parts, documents without text, and no other text."""

import json
import re

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from likewise.batch.parts import PartRules, dedup_parts
from likewise.errors import InvalidInput
from likewise.runs.report import report
from tests.batch.parts.test_parts import mixed
from tests.command import likewise_command
from tests.runs.viewing.test_drawing import Parsed

HOSTILE = "<b>hostile</b> & <script>alert(1)</script>"


def run(tmp_path, texts, unit="line", *, name="in.jsonl", **options):
    rows = [{"id": f"doc-{i}", "text": text} for i, text in enumerate(texts)]
    if name.endswith("parquet"):
        pq.write_table(pa.Table.from_pylist(rows), tmp_path / name)
    else:
        (tmp_path / name).write_text("".join(json.dumps(row) + "\n" for row in rows))
    dedup_parts(tmp_path / name, tmp_path / "out", PartRules(unit, options.pop("min_tokens", None)), **options)
    return tmp_path / "out"


def body(text):
    return text.split("</style>")[1].split("</head>")[1].replace("</html>", "")


@pytest.mark.parametrize("name", ["in.jsonl", "in.parquet"])
@pytest.mark.parametrize("unit", ["line", "sentence", "span"])
def test_it_stands_alone_and_shows_what_went(tmp_path, name, unit):
    out = run(tmp_path, mixed(1, 80), unit, name=name, min_tokens=8 if unit == "span" else None)
    summary, text = json.loads((out / "summary.json").read_text()), report(out)
    parsed = Parsed(body(text))
    assert not {"script", "img", "link", "iframe", "a"} & set(parsed.tags)
    for field in ("num_documents", "num_changed", "num_removed_parts", "num_removed_bytes"):
        assert f"<b>{summary[field]:,}</b>" in text
    assert summary["verification"] in text
    samples = re.findall(r'<div class="pair"><div><b>(doc-\d+)</b> repeats <b>doc-', text)
    assert 10 < len(samples) <= 20
    assert len(set(samples)) == len(samples)
    assert text.count("<del>") >= len(samples)
    changed = {row["doc_id"] for row in pq.read_table(out / "removed.parquet").to_pylist()}
    assert set(samples) <= changed


def test_a_sample_by_hand(tmp_path):
    out = run(tmp_path, ["one é\ntwo\n", "zero\none é\ntwo\nthree\n"])
    assert "zero\n<del>one é\ntwo\n</del>three" in re.sub(r"</del><del>", "", report(out))
    assert "<b>doc-1</b> repeats <b>doc-0</b>" in report(out)


def test_without_samples_it_holds_no_word_of_a_document(tmp_path):
    out = run(tmp_path, ["grapefruit tangerine\n" * 2, "pomegranate\ngrapefruit tangerine\n"])
    assert "grapefruit" in report(out)
    bare = report(out, samples=False)
    for word in ("grapefruit", "tangerine", "pomegranate", "doc-1"):
        assert word not in bare


def test_hostile_documents_stay_text_in_it(tmp_path):
    text = report(run(tmp_path, [f"{HOSTILE}\n", f"{HOSTILE}\nx\n"]))
    assert "<script" not in text
    assert "<b>hostile" not in text
    assert "&lt;b&gt;hostile&lt;/b&gt;" in text


def test_what_is_missing_is_said(tmp_path):
    out = run(tmp_path, ["a b\nc\n", "a b\nd\n"])
    (tmp_path / "moved").mkdir()
    (tmp_path / "in.jsonl").rename(tmp_path / "moved" / "in.jsonl")
    assert "is missing" in report(out)
    assert "<del>a b" in report(out, inputs=tmp_path / "moved")
    (out / "removed.parquet").write_bytes(b"PAR1")
    with pytest.raises(InvalidInput, match="evidence of the run is missing or damaged"):
        report(out)
    assert report(out, samples=False)


def test_nothing_removed(tmp_path):
    assert "Nothing was removed." in report(run(tmp_path, ["a\n", "b\n"]))


def test_command(tmp_path):
    out = run(tmp_path, ["a b\nc\n", "a b\nd\n"])
    done = likewise_command("report", out)
    assert done.status == 0, done.err
    assert (out / "report.html").read_text() == report(out)
