"""Naming only a method scores on the gating sets as recorded."""

import importlib
import json
import shutil
import subprocess
import sys

import pytest

from tests.conftest import LABELED, ROOT
from tests.waiting import LIMIT_S

RESULTS = ROOT / "bench" / "results" / "quality.json"


@pytest.fixture
def module(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "bench"))
    return importlib.import_module("quality_gate")


@pytest.fixture
def gate(module, monkeypatch, capsys):
    """Run the quick gate; return its status and output."""
    if not (LABELED / "warc-real").is_dir():
        pytest.skip("the labeled sets are not at ../shared/data")

    def run(*arguments):
        monkeypatch.setattr(sys, "argv", ["quality_gate.py", "--quick", *arguments])
        return module.main(), capsys.readouterr().out

    return run


def test_no_figure_of_the_gating_sets_fell(gate):
    status, said = gate()
    assert status == 0, said
    assert said.startswith("16 runs compared")


def test_a_figure_that_fell_fails_by_name(gate, module, monkeypatch, tmp_path):
    monkeypatch.setattr(module, "QUICK", ("minhash, defaults",))
    results = json.loads(RESULTS.read_text())
    row = results["sets"]["warc-real"]["recipes"]["minhash, defaults"]
    then, row["f1"] = row["f1"], row["f1"] + 0.011
    (tmp_path / "raised.json").write_text(json.dumps(results))
    status, said = gate("--set", "warc-real", "--results", str(tmp_path / "raised.json"))
    assert status == 1
    assert f"warc-real, minhash, defaults: f1 fell from {then + 0.011:.4f} to {then:.4f}" in said


def test_a_figure_that_is_no_number_fell(module):
    fallen = module.fallen
    then = dict.fromkeys(("f1", "precision", "recall", "ari"), 0.9)
    assert fallen(then, then) == []
    assert fallen(then, {**then, "f1": float("nan")}) == ["f1 fell from 0.9000 to nan"]


def test_no_set_is_no_success(tmp_path):
    (tmp_path / "bench" / "results").mkdir(parents=True)
    for path in (ROOT / "bench").glob("*.py"):
        shutil.copy(path, tmp_path / "bench")
    shutil.copy(RESULTS, tmp_path / "bench" / "results")
    command = [sys.executable, tmp_path / "bench" / "quality_gate.py", "--quick"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT_S)
    assert done.returncode == 2
    assert "nothing was compared" in done.stdout


def test_nothing_to_compare_with_is_no_success(gate, tmp_path):
    (tmp_path / "empty.json").write_text('{"sets": {}}')
    status, said = gate("--set", "warc-real", "--results", str(tmp_path / "empty.json"))
    assert status == 2
    assert "make quality" in said
