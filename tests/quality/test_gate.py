"""Quality holds: what a user gets by naming a method scores on the gating sets as it did when it was last written."""

import json
import subprocess
import sys

import pytest

from tests.conftest import LABELLED, ROOT

RESULTS = ROOT / "bench" / "results" / "quality.json"


def gate(*arguments):
    """Run the quick gate: status and output."""
    if not (LABELLED / "warc-real").is_dir():
        pytest.skip("the labelled sets are not at ../shared/data")
    command = [sys.executable, ROOT / "bench" / "quality_gate.py", "--quick", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=100)
    return done.returncode, done.stdout + done.stderr


def test_no_figure_of_the_gating_sets_fell():
    status, said = gate()
    assert status == 0, said
    assert said.startswith("16 runs compared")


def test_a_figure_that_fell_fails_by_name(tmp_path):
    results = json.loads(RESULTS.read_text())
    row = results["sets"]["warc-real"]["recipes"]["minhash, defaults"]
    then, row["f1"] = row["f1"], row["f1"] + 0.011
    (tmp_path / "raised.json").write_text(json.dumps(results))
    status, said = gate("--set", "warc-real", "--results", str(tmp_path / "raised.json"))
    assert status == 1
    assert f"warc-real, minhash, defaults: f1 fell from {then + 0.011:.4f} to {then:.4f}" in said


def test_nothing_to_compare_with_is_no_success(tmp_path):
    (tmp_path / "empty.json").write_text('{"sets": {}}')
    status, said = gate("--set", "warc-real", "--results", str(tmp_path / "empty.json"))
    assert status == 2
    assert "make quality" in said
