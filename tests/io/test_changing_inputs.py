"""A file that changes while it is read: each command refuses it, and publishes nothing."""

import io
import os

import pytest

import likewise
from likewise.batch.files import dedup_files, stream_dedup
from likewise.batch.pair_files import pair_files, sketch_files
from likewise.batch.parts import BoilerplateRules, PartRules, dedup_parts, remove_boilerplate
from likewise.batch.weights import weigh_files
from likewise.corpus import decontaminate_files, find_copies, leak_files
from likewise.corpus.matching import match_files
from likewise.errors import InvalidInput
from likewise.progress import StageFinished
from likewise.tuning.labels import as_labels
from likewise.tuning.tuning import tune_files
from tests.golden.texts import made_up
from tests.io.files import jsonl

RECIPE = likewise.Recipe.minhash(0.8)
LINES = "\n".join(made_up(12, number) for number in range(6))
ROWS = [{"id": str(number), "site": "s", "text": f"{made_up(30, number // 2)}\n{LINES}"} for number in range(40)]
LABELS = [(str(n), str(n + 1), n % 2 == 0) for n in range(0, 30)]


class Changes:
    """Progress that changes a file once, when the first stage is finished, or that of a name."""

    def __init__(self, path, stage=None):
        self.path, self.stage, self.is_done = path, stage, False

    def __call__(self, event):
        if isinstance(event, StageFinished) and not self.is_done and self.stage in (None, event.stage):
            self.is_done = True
            with self.path.open("ab") as file:
                file.write(b"\n")


# Command -> what it does with an input, another one, an output, and progress.
COMMANDS = {
    "dedup": lambda a, b, out, seen: dedup_files([a, b], out, RECIPE, progress=seen),
    "dedup --against": lambda a, b, out, seen: dedup_files(b, out, RECIPE, against=[a], progress=seen),
    "dedup -o -": lambda a, b, out, seen: stream_dedup([a, b], io.BytesIO(), RECIPE, progress=seen),
    "pairs": lambda a, b, out, seen: pair_files([a, b], f"{out}.parquet", RECIPE, progress=seen),
    "pairs --against": lambda a, b, out, seen: pair_files(b, f"{out}.tsv", RECIPE, against=[a], progress=seen),
    "sketch": lambda a, b, out, seen: sketch_files([b, a], RECIPE, progress=seen),
    "weights": lambda a, b, out, seen: weigh_files([b, a], progress=seen),
    "leaks": lambda a, b, out, seen: leak_files({"x": a, "y": b}, out, RECIPE, progress=seen),
    "decontaminate": lambda a, b, out, seen: decontaminate_files(a, {"x": b}, out, progress=seen),
    "decontaminate --against": lambda a, b, out, seen: decontaminate_files(b, {"x": a}, out, progress=seen),
    "copies": lambda a, b, out, seen: find_copies([b, a], texts=[ROWS[0]["text"]], output=out, progress=seen),
    "copies FILE": lambda a, b, out, seen: find_copies([b], files=[a], output=out, progress=seen),
    "match": lambda a, b, out, seen: match_files(a, b, f"{out}.parquet", progress=seen),
    "match --in": lambda a, b, out, seen: match_files(b, a, f"{out}.parquet", progress=seen),
    "repeats": lambda a, b, out, seen: dedup_parts([a, b], out, PartRules("line"), progress=seen),
    "repeats span": lambda a, b, out, seen: dedup_parts([a, b], out, PartRules("span"), progress=seen),
    "repeats --against": lambda a, b, out, seen: dedup_parts(b, out, PartRules("line"), against=[a], progress=seen),
    "boilerplate": lambda a, b, out, seen: remove_boilerplate([a, b], out, BoilerplateRules("site"), progress=seen),
    "tune": lambda a, b, out, seen: tune_files([a, b], as_labels(LABELS), progress=seen),
}
# Commands that read these inputs in a stage that is not their first.
STAGES = {}


@pytest.mark.parametrize("command", COMMANDS)
def test_nothing_is_published(tmp_path, command):
    paths = [tmp_path / "a.jsonl", tmp_path / "b.jsonl"]
    for path, rows in zip(paths, (ROWS, [{**row, "id": f"b{row['id']}"} for row in ROWS[:20]]), strict=True):
        path.write_bytes(jsonl(rows))
        os.utime(path, (1, 1))
    changes = Changes(paths[0], STAGES.get(command))
    with pytest.raises(InvalidInput, match=r"a\.jsonl: the file changed during reading; run again"):
        COMMANDS[command](*paths, tmp_path / "out", changes)
    assert changes.is_done
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.jsonl", "b.jsonl"]
    # The same command succeeds once the file no longer changes.
    COMMANDS[command](*paths, tmp_path / "out", None)
