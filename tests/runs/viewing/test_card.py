"""The section for a dataset card states what the summary of the run says."""

import json

import pytest

from likewise import InvalidInput, Recipe, dedup_files
from tests.command import likewise_command
from tests.runs.viewing.runs import make_named_run, make_run


def test_the_card_states_counts_rule_and_recipe(tmp_path):
    out = make_named_run(tmp_path)
    summary = json.loads((out / "summary.json").read_text())
    done = likewise_command("report", out, "--card")
    assert done.status == 0
    text = done.out.decode()
    assert text.startswith("## Deduplication\n")
    assert f"Of {summary['num_documents']:,} documents, {summary['num_kept']:,} were kept" in text
    for stated in (summary["verification"], summary["recipe_id"], f"P = {summary['recall']:.4f}"):
        assert stated in text
    assert f"{summary['differences']['lead']:,} in first words" in text
    assert not (out / "report.html").exists()
    assert likewise_command("report", out, "--card", "-o", tmp_path / "card.md").status == 0
    assert (tmp_path / "card.md").read_text() == text


def test_the_card_lists_sources_and_the_chosen_threshold(tmp_path):
    text = likewise_command("report", make_run(tmp_path, count_by="source"), "--card").out.decode()
    assert "| source | documents | removed |" in text
    assert r"| \<b\>copy\</b\> |" in text
    dedup_files(tmp_path / "in.jsonl", tmp_path / "auto")
    assert "- **Threshold.** threshold " in likewise_command("report", tmp_path / "auto", "--card").out.decode()
    dedup_files(tmp_path / "in.jsonl", tmp_path / "equal", Recipe.exact())
    assert "Features" not in likewise_command("report", tmp_path / "equal", "--card").out.decode()


def test_values_are_shown_as_they_are(tmp_path):
    values = ["x | `y`\n# [z](u)", "_q_*"]
    rows = [{"id": str(n), "a|b": values[n % 2], "n|m": n, "text": f"{n // 4} one of two"} for n in range(40)]
    (tmp_path / "in.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    dedup_files(tmp_path / "in.jsonl", tmp_path / "out", Recipe.minhash(0.9, keep="max:n|m"), count_by="a|b")
    text = likewise_command("report", tmp_path / "out", "--card").out.decode()
    assert r"The first by max:n\|m;" in text
    assert "| a\\|b | documents | removed |\n|---|---|---|\n" in text
    shown = r"x \| \`y\` \# \[z\](u)"
    assert f"| {shown} | 20 | " in text
    assert r"| \_q\_\* | 20 | " in text
    assert f"of {shown} removed" in text


def test_other_runs_have_no_card(tmp_path):
    from likewise.batch.parts import PartRules, dedup_parts
    from likewise.runs.report.sections import card

    (tmp_path / "in.jsonl").write_text('{"text": "a"}\n')
    dedup_parts(tmp_path / "in.jsonl", tmp_path / "out", PartRules("line"))
    with pytest.raises(InvalidInput, match="a card describes a run of likewise dedup"):
        card(tmp_path / "out")
