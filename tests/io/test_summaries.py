"""Summaries that lack a field or contain another value are read, or rejected with an error that names the field."""

import contextlib
import copy
import json
import shutil

import pytest

from likewise import InvalidInput, Recipe, dedup_files
from likewise.batch.parts import PartRules, dedup_parts
from likewise.cli import main
from likewise.io.output.summaries import read_summary
from likewise.runs.report.sections import threshold_chart
from tests.runs.audit.corpora import graded, made_up, write

COMMANDS = [
    ["report", "run", "-o", "report.html"],
    ["diff", "run", "whole"],
    ["dedup", "in.jsonl", "-o", "out", "--overwrite", "--against", "run"],
    ["audit", "run", "-o", "audit.json", "--sample", "10"],
]
ABSENT = object()


def places(value, path=()):
    """Yield every path in a summary, except those inside its recipe, which recipes check."""
    if path:
        yield path
    inner = value.items() if isinstance(value, dict) else enumerate(value[:1]) if isinstance(value, list) else ()
    for name, part in inner:
        if name not in ("recipe", "thread_s"):
            yield from places(part, (*path, name))


def with_value(summary, path, value):
    changed = copy.deepcopy(summary)
    inner = changed
    for name in path[:-1]:
        inner = inner[name]
    if value is ABSENT:
        del inner[path[-1]]
    else:
        inner[path[-1]] = value
    return changed


@pytest.fixture
def home(tmp_path):
    dedup_files(write(tmp_path / "in.jsonl", graded(20, 3)), tmp_path / "run", Recipe.minhash(0.6))
    shutil.copytree(tmp_path / "run", tmp_path / "whole")
    return tmp_path


@pytest.mark.parametrize("value", [ABSENT, None, "x", float("inf")], ids=["absent", "null", "text", "infinite"])
def test_any_field_may_be_gone_or_another(home, capfd, value):
    path = home / "run" / "summary.json"
    summary = json.loads(path.read_text())
    refused, read = [], []
    for place in places(summary):
        path.write_text(json.dumps(with_value(summary, place, value)))
        try:
            read_summary(home / "run")
        except InvalidInput as error:
            refused.append((place, str(error)))
            continue
        read.append(place)
        for command in COMMANDS:
            with contextlib.chdir(home), contextlib.suppress(SystemExit):
                main(command)
            said = capfd.readouterr().err
            assert "unexpected" not in said, (place, command, said)
    assert len(refused) > 25
    assert [
        place for place, said in refused if not any(str(name) in said for name in place) and place != ("inputs", 0)
    ] == []
    assert ("skipped_files",) in read


@pytest.mark.parametrize(
    "recipe",
    [
        *(getattr(Recipe, method)() for method in ("minhash", "simhash", "exact", "shingles", "bloom")),
        Recipe.simhash(measure="cosine"),
        Recipe.minhash(0.5, group="components"),
        Recipe.minhash(weights="idf"),
    ],
)
def test_what_every_method_writes_is_read(home, recipe):
    summary = dedup_files(home / "in.jsonl", home / "other", recipe)
    assert read_summary(home / "other") == summary


def test_runs_over_parts_have_summaries_too(home):
    summary = dedup_parts(home / "in.jsonl", home / "lines", PartRules("line"))
    assert read_summary(home / "lines") == summary


VERSIONS = [text for number in range(60) for text in (made_up(50, number), f"{made_up(50, number)} and more")]


@pytest.mark.parametrize(("texts", "reason"), [(graded(20, 3), "few pairs"), (VERSIONS, None)])
def test_what_is_said_of_a_chosen_threshold_is_refused_by_its_name_or_told(tmp_path, texts, reason):
    dedup_files(write(tmp_path / "in.jsonl", texts), tmp_path / "run", Recipe.minhash("auto"))
    path = tmp_path / "run" / "summary.json"
    summary = json.loads(path.read_text())
    assert summary["chosen_threshold"]["reason"] == reason
    refused, told = [], 0
    for place in places(summary["chosen_threshold"], ("chosen_threshold",)):
        for value in (ABSENT, None, "x", float("inf"), [], [0.5]):
            path.write_text(json.dumps(with_value(summary, place, value)))
            try:
                found = read_summary(tmp_path / "run")
            except InvalidInput as error:
                refused.append((place, str(error)))
                continue
            assert (threshold_chart(found) is None) == ("chosen_threshold" not in found)
            told += 1
    assert [place for place, said in refused if not any(str(name) in said for name in place)] == []
    assert len(refused) > 50
    assert told > 2
