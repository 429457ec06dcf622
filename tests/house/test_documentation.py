"""The Python that the documentation shows runs, and its commands print what it says."""

import re
import shlex

import pytest

from tests.command import likewise_command
from tests.house.test_house import ROOT


def blocks(page, language):
    return re.findall(rf"```{language}\n(.*?)```", (ROOT / page).read_text(encoding="utf-8"), re.S)


@pytest.mark.parametrize("page", ["README.md", "docs/tutorial.md"])
def test_python_runs(page):
    found = blocks(page, "python")
    assert found
    for block in found:
        names = {}
        exec(compile(block, page, "exec"), names)
        assert names["result"].kept.tolist() == [True, False, True]


def test_the_tutorial_prints_what_it_says(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "notes.jsonl").write_text(blocks("docs/tutorial.md", "json")[0], encoding="utf-8")
    shown = blocks("docs/tutorial.md", "console")
    assert len(shown) == 2
    for block in shown:
        command, *output = block.strip().splitlines()
        ran = likewise_command(*shlex.split(command.removeprefix("$ likewise ")))
        assert ran.status == 0, ran.err
        for line in output:
            assert line in ran.out.decode() + ran.err
