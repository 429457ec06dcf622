"""Changes that an operator makes to the directories of a running run cause a clear error, never a wrong output."""

import json
import os
import shutil

import pytest

from likewise import Recipe, dedup_files
from likewise.errors import InvalidInput
from likewise.progress import StageAdvanced

RECIPE = Recipe.minhash(threshold=0.5)
# Events that begin or end a stage.
NUM_EVENTS = 6


def write_inputs(folder):
    folder.mkdir(parents=True)
    for number in range(3):
        lines = [
            {"id": f"{number}-{i}", "text": f"document {i % 15} of {number} about the {i % 7} seas, {i % 15 * i % 15}"}
            for i in range(40)
        ]
        (folder / f"{number}.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    return folder


def delete(out, _):
    shutil.rmtree(out)


def rename(out, _):
    out.rename(out.with_name("moved"))


def rename_back(out, _):
    rename(out, _)
    out.with_name("moved").rename(out)


def replace(out, _):
    rename(out, _)
    out.mkdir()
    (out / "of-somebody-else.txt").write_text("mine")


def another_run(out, _):
    """Start another run under the same name."""
    rename(out, _)
    (out / ".unfinished" / "parts").mkdir(parents=True)
    (out / ".unfinished" / "identity.json").write_text("{}")


def copy(out, _):
    """Replace the output by a copy of files that are still being written."""
    rename(out, _)
    shutil.copytree(out.with_name("moved"), out)


def link(out, _):
    rename(out, _)
    out.with_name("elsewhere").mkdir()
    out.symlink_to(out.with_name("elsewhere"))


def delete_unfinished(out, _):
    shutil.rmtree(out / ".unfinished")


def append_input(_, inputs):
    with (inputs / "1.jsonl").open("a") as file:
        file.write('{"id": "more", "text": "more"}\n')


def truncate_input(_, inputs):
    os.truncate(inputs / "1.jsonl", 1000)


def delete_input(_, inputs):
    (inputs / "1.jsonl").unlink()


def replace_input(_, inputs):
    (inputs / "new").write_bytes((inputs / "1.jsonl").read_bytes().replace(b"seas", b"oats"))
    (inputs / "new").replace(inputs / "1.jsonl")


OF_OUTPUT = [delete, rename, replace, another_run, copy, link, delete_unfinished]
OF_INPUTS = [append_input, truncate_input, delete_input, replace_input]


def seen(folder):
    """Return all files in a directory, with their content."""
    return {
        path.relative_to(folder).as_posix(): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()
    }


def disturbed(folder, action, at):
    """Run while an operator acts at an event of the run; return the output at that moment, and the error."""
    inputs, out = write_inputs(folder / "in"), folder / "out"
    num, then = 0, {}

    def watch(event):
        nonlocal num, then
        # How often a stage reports progress depends on the clock; its begin and end do not.
        if isinstance(event, StageAdvanced):
            return
        if num == at:
            action(out, inputs)
            then = seen(out) if out.exists() else {}
        num += 1

    error = None
    try:
        dedup_files(inputs, out, RECIPE, progress=watch)
    except (InvalidInput, OSError) as caught:
        error = caught
    assert num > at, "the run has fewer events"
    return out, then, error


def check_round(folder, action, at):
    out, then, error = disturbed(folder, action, at)
    if action is rename_back:
        assert error is None
        assert (out / "summary.json").exists()
        return
    assert error is not None, "an output that is incomplete or wrong was called finished"
    assert not (out / "summary.json").exists()
    if action in OF_OUTPUT:
        assert isinstance(error, InvalidInput)
        assert str(error) == f"{out} was removed or replaced while the run was writing to it; run again"
        # Files that others put there are left alone.
        assert then.items() <= (seen(out) if out.exists() else {}).items()
    else:
        assert "1.jsonl" in str(error)
    # The same run succeeds if nobody disturbs it.
    for path in (out, folder / "in"):
        path.unlink() if path.is_symlink() else shutil.rmtree(path, ignore_errors=True)
    assert dedup_files(write_inputs(folder / "in"), out, RECIPE)["num_documents"] == 120


@pytest.mark.parametrize("action", [rename_back, *OF_OUTPUT, *OF_INPUTS], ids=lambda action: action.__name__)
def test_an_operator_disturbs_a_run(tmp_path, action):
    check_round(tmp_path, action, NUM_EVENTS - 1)


@pytest.mark.slow
@pytest.mark.parametrize("at", range(NUM_EVENTS))
@pytest.mark.parametrize("action", [rename_back, *OF_OUTPUT, *OF_INPUTS], ids=lambda action: action.__name__)
def test_an_operator_disturbs_a_run_at_every_event(tmp_path, action, at):
    check_round(tmp_path, action, at)
