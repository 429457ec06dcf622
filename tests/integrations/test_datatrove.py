"""Datatrove pipelines with its own readers, writers and executor; skipped without it."""

import gzip
import json
import random

import pytest

import likewise
from likewise.errors import IndexLocked, InvalidInput, InvalidParameter, RecipeMismatch
from tests.integrations.texts import half_copies

pytest.importorskip("datatrove", reason="needs likewise[datatrove]")

NUM_TASKS = 4
NUM_FILES = 6
EVIDENCE = ("kept_id", "measure", "similarity", "distance")


def write_input(folder, num_documents):
    """Write files of shuffled documents; return them in the order of their tasks, as (id, text)."""
    texts = half_copies(num_documents, num_words=60, num_changed=9)
    random.Random(7).shuffle(texts)
    folder.mkdir()
    files = []
    for number in range(NUM_FILES):
        rows = [{"id": f"doc-{i}", "text": texts[i], "at": i} for i in range(number, num_documents, NUM_FILES)]
        with gzip.open(folder / f"{number}.jsonl.gz", "wt") as file:
            file.writelines(json.dumps(row) + "\n" for row in rows)
        files.append([(row["id"], row["text"]) for row in rows])
    return [doc for rank in range(NUM_TASKS) for file in files[rank::NUM_TASKS] for doc in file]


def read_back(folder):
    found = {}
    for path in sorted(folder.glob("*.jsonl.gz")):
        with gzip.open(path, "rt") as file:
            rows = [json.loads(line) for line in file]
        found |= {row["id"]: row for row in rows}
    return found


def run(home, name, steps, tasks=NUM_TASKS, workers=1):
    """Run a pipeline; return its statistics by step."""
    from datatrove.executor import LocalPipelineExecutor

    executor = LocalPipelineExecutor(steps, tasks=tasks, workers=workers, logging_dir=str(home / "logs" / name))
    return {one.name: one.stats for one in executor.run().stats}


def reader(home):
    from datatrove.pipeline.readers import JsonlReader

    return JsonlReader(str(home / "in"), glob_pattern="*.jsonl.gz")


def writer(home, name):
    from datatrove.pipeline.writers import JsonlWriter

    return JsonlWriter(str(home / name))


def evidence_of(metadata):
    return {name: metadata[f"likewise_{name}"] for name in EVIDENCE}


@pytest.mark.parametrize(
    ("num_documents", "recipe", "workers"),
    [
        (1200, None, 1),
        (1200, likewise.Recipe.simhash(threshold=0.6, keep="longest"), 1),
        pytest.param(20_000, likewise.Recipe.minhash(0.5), NUM_TASKS, marks=pytest.mark.slow),
        pytest.param(20_000, None, NUM_TASKS, marks=pytest.mark.slow),
    ],
)
def test_three_steps_give_what_the_plain_call_gives(tmp_path, num_documents, recipe, workers):
    from likewise.integrations.datatrove import LikewiseDedupDecision, LikewiseDedupFilter, LikewiseDedupTexts

    documents = write_input(tmp_path / "in", num_documents)
    ids, texts = zip(*documents, strict=True)
    plain = likewise.dedup(list(texts), recipe, ids=list(ids))
    expected = {row["doc_id"]: {name: row[name] for name in EVIDENCE} for row in plain.removed.to_pylist()}
    assert num_documents * 0.3 < len(expected) < num_documents * 0.7
    work = str(tmp_path / "work")
    run(tmp_path, "1", [reader(tmp_path), LikewiseDedupTexts(work)], workers=workers)
    decided = run(tmp_path, "2", [LikewiseDedupDecision(work, recipe)], tasks=1)
    steps = [reader(tmp_path), LikewiseDedupFilter(work, writer(tmp_path, "removed")), writer(tmp_path, "kept")]
    filtered = run(tmp_path, "3", steps, workers=workers)
    kept, removed = read_back(tmp_path / "kept"), read_back(tmp_path / "removed")
    assert {doc_id: evidence_of(row["metadata"]) for doc_id, row in removed.items()} == expected
    assert kept.keys() == set(ids) - expected.keys()
    assert {row["metadata"]["filter_reason"] for row in removed.values()} == {"near-duplicate"}
    # Metadata from the reader is preserved.
    assert all(doc_id == f"doc-{row['metadata']['at']}" for doc_id, row in (kept | removed).items())
    sizes = dict.fromkeys(kept, 1)
    for row in expected.values():
        sizes[row["kept_id"]] += 1
    assert {doc_id: row["metadata"]["likewise_group_size"] for doc_id, row in kept.items()} == sizes
    stats = next(value for name, value in filtered.items() if "Likewise" in name)
    assert stats["dropped_near-duplicate"].total == stats["similarity"].n == len(expected)
    assert stats["forwarded"].total == len(kept)
    decision = next(value for name, value in decided.items() if "Likewise" in name)
    assert decision["num_removed"].total == len(expected)
    summary = json.loads((tmp_path / "work" / "summary.json").read_text())
    assert summary["recipe_id"] == plain.summary["recipe_id"]


def test_steps_that_do_not_fit_are_errors(tmp_path):
    from likewise.integrations.datatrove import LikewiseDedupDecision, LikewiseDedupFilter, LikewiseDedupTexts

    write_input(tmp_path / "in", 60)
    work = str(tmp_path / "work")
    docs = [list(reader(tmp_path).run(rank=rank, world_size=2)) for rank in range(2)]
    with pytest.raises(InvalidInput, match="not the output of all tasks"):
        LikewiseDedupDecision(work).run()
    LikewiseDedupTexts(work).run(iter(docs[0]), 0, 2)
    with pytest.raises(InvalidInput, match="not the output of all tasks"):
        LikewiseDedupDecision(work).run()
    LikewiseDedupTexts(work).run(iter(docs[1]), 1, 2)
    with pytest.raises(InvalidParameter, match="must run as one task"):
        LikewiseDedupDecision(work).run(world_size=2)
    LikewiseDedupDecision(work).run()
    with pytest.raises(InvalidInput, match="number of tasks"):
        list(LikewiseDedupFilter(work).run(iter(docs[0]), 0, 4))
    with pytest.raises(InvalidInput, match="read the same documents as in the first step"):
        list(LikewiseDedupFilter(work).run(iter(docs[1][:30]), 0, 2))
    with pytest.raises(InvalidInput, match="29 documents, but the first step read 30"):
        list(LikewiseDedupFilter(work).run(iter(docs[0][:-1]), 0, 2))


def test_a_filter_against_an_index(tmp_path):
    from likewise.integrations.datatrove import LikewiseFilter

    recipe = likewise.Recipe.minhash(0.5, keep="first")
    documents = write_input(tmp_path / "in", 2400)
    ids, texts = zip(*documents, strict=True)
    plain = likewise.dedup(list(texts), recipe, ids=list(ids))
    expected = {row["doc_id"]: {name: row[name] for name in EVIDENCE} for row in plain.removed.to_pylist()}
    for name, num_known in (("first", 0), ("again", len(ids))):
        seen = LikewiseFilter(tmp_path / "seen.lw", recipe, exclusion_writer=writer(tmp_path, f"{name}-removed"))
        stats = run(tmp_path, name, [reader(tmp_path), seen, writer(tmp_path, name)])
        removed = read_back(tmp_path / f"{name}-removed")
        assert {doc_id: evidence_of(row["metadata"]) for doc_id, row in removed.items()} == expected
        assert read_back(tmp_path / name).keys() == set(ids) - expected.keys()
        counts = next(value for step, value in stats.items() if "Likewise" in step)
        assert counts["known"].total == num_known
        assert counts["dropped_near-duplicate"].total == len(expected)
    # Read-only and in parallel: each document is found.
    steps = [reader(tmp_path), LikewiseFilter(tmp_path / "seen.lw", add=False), writer(tmp_path, "none")]
    stats = run(tmp_path, "compared", steps, workers=2)
    assert next(value for step, value in stats.items() if "Likewise" in step)["dropped"].total == len(ids)
    with likewise.Index(tmp_path / "seen.lw") as index:
        assert len(index) == len(ids)
        docs = reader(tmp_path).run()
        with pytest.raises(IndexLocked):
            next(LikewiseFilter(tmp_path / "seen.lw").run(docs))
    with pytest.raises(RecipeMismatch):
        next(LikewiseFilter(tmp_path / "seen.lw", "online").run(docs))
    with pytest.raises(InvalidParameter, match="URL of a service"):
        next(LikewiseFilter(tmp_path / "seen.lw", collection="pages").run(docs))
