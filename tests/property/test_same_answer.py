"""P4: threads, batch sizes, pieces and shards of the same sequence change nothing."""

import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import likewise
from tests.golden.texts import made_up
from tests.quality.test_promises import planted
from tests.recipes import RECIPES, quick_first
from tests.strategies import corpora

SOME = ["minhash", "minhash-containment", "simhash", "simhash-cosine", "shingles-weighted"]


@pytest.fixture(scope="module")
def texts():
    return planted()


@pytest.mark.parametrize("name", quick_first())
def test_threads_change_nothing(name, texts):
    results = [likewise.dedup(texts, RECIPES[name], threads=threads) for threads in (1, 2, 7)]
    assert all(result.removed.equals(results[0].removed) for result in results)
    assert all((result.kept == results[0].kept).all() for result in results)
    counts = [{k: v for k, v in r.summary.items() if k not in ("timings", "num_measured")} for r in results]
    assert counts[1:] == counts[:-1]


@pytest.mark.parametrize("name", SOME)
def test_threads_change_no_pairs(name, texts):
    tables = [likewise.pairs(texts, RECIPES[name], threads=threads) for threads in (1, 2, 7)]
    assert tables[0].num_rows > 100
    assert all(table.equals(tables[0]) for table in tables)


@given(texts=corpora(), sizes=st.lists(st.integers(1, 9), min_size=1, max_size=9), name=st.sampled_from(SOME))
@settings(max_examples=25)
def test_chunks_of_a_column_change_nothing(texts, sizes, name):
    chunks, at = [], 0
    for size in [*sizes, len(texts)]:
        chunks.append(pa.array(texts[at : at + size], pa.string()))
        at += size
    whole = likewise.dedup(texts, RECIPES[name])
    parts = likewise.dedup(pa.chunked_array(chunks, pa.string()), RECIPES[name])
    assert parts.removed.equals(whole.removed)


def run_files(tmp_path, name, files, recipe, **options):
    out = tmp_path / f"out-{name}"
    summary = likewise.dedup_files(files, out, recipe, **options)
    kept = b"".join((out / "kept" / path.name).read_bytes() for path in files if path.suffix == ".jsonl")
    evidence = pq.read_table(out / "removed.parquet").drop(["file", "offset", "length", "kept_file", "kept_offset"])
    return kept, evidence, summary


@pytest.mark.parametrize("name", SOME)
def test_shards_of_the_same_sequence_change_nothing(tmp_path, name, texts):
    lines = [json.dumps({"id": i, "text": text}).encode() + b"\n" for i, text in enumerate(texts)]
    answers = []
    for num_shards in (1, 2, 5):
        folder = tmp_path / str(num_shards)
        folder.mkdir()
        files = []
        for shard in range(num_shards):
            part = lines[len(lines) * shard // num_shards : len(lines) * (shard + 1) // num_shards]
            files.append(folder / f"part-{shard}.jsonl")
            files[-1].write_bytes(b"".join(part))
        answers.append(run_files(tmp_path, str(num_shards), files, RECIPES[name])[:2])
    in_memory = likewise.dedup(texts, RECIPES[name], ids=[str(i) for i in range(len(texts))]).removed
    for kept, evidence in answers:
        assert kept == answers[0][0]
        assert evidence.equals(in_memory.drop(["file", "offset", "length", "kept_file", "kept_offset"]))


@pytest.mark.parametrize("name", SOME)
def test_row_groups_change_nothing(tmp_path, name, texts):
    # Enough for row groups of one row each: writing many takes long.
    known = [text.encode("utf-8", "replace").decode() for text in texts[:150]]
    table = pa.table({"id": [str(i) for i in range(len(known))], "text": known})
    answers = []
    for size in (1000, 37, 1):
        path = tmp_path / f"rows{size}.parquet"
        pq.write_table(table, path, row_group_size=size)
        likewise.dedup_files(path, tmp_path / f"out{size}", RECIPES[name])
        kept = pq.read_table(tmp_path / f"out{size}" / "kept" / path.name)
        evidence = pq.read_table(tmp_path / f"out{size}" / "removed.parquet").drop(["file", "kept_file"])
        answers.append((kept, evidence))
    in_memory = likewise.dedup(known, RECIPES[name])
    assert in_memory.removed.num_rows > 40
    for kept, evidence in answers:
        assert kept.equals(table.filter(pa.array(in_memory.kept)))
        assert evidence.equals(answers[0][1])


def test_turning_the_order_turns_who_stays(texts):
    """Metamorphic: the kept document is always the first of its kind, so a doubled corpus keeps the same documents."""
    for name in SOME:
        once = likewise.dedup(texts, RECIPES[name].replace(keep="first"))
        twice = likewise.dedup(texts + texts, RECIPES[name].replace(keep="first"))
        assert twice.kept[: len(texts)].tolist() == once.kept.tolist()
        assert not twice.kept[len(texts) :].any()


def test_what_normalization_drops_changes_nothing(texts):
    """Metamorphic: case, width, spacing."""
    loud = [f"\t{text.swapcase()}\u3000\n" if text.isascii() else f" {text} " for text in texts]
    for name in SOME:
        recipe = RECIPES[name].replace(keep="first")
        assert likewise.dedup(loud, recipe).removed.equals(likewise.dedup(texts, recipe).removed)


def test_kept_documents_alone_are_all_kept(texts):
    """Metamorphic: a second run over the kept documents removes no pair that the first compared."""
    for name in ("simhash", "simhash-cosine"):
        recipe = RECIPES[name].replace(keep="first")
        kept = likewise.dedup(texts, recipe).kept
        again = likewise.dedup([text for text, stays in zip(texts, kept, strict=True) if stays], recipe)
        assert again.kept.all()


def test_short_check_against_a_longer_document_from_parquet(tmp_path):
    """A pair of 62 and 68 features is checked by Jaccard too, since one of them is short.

    A Hamming-only run over a Parquet file must store the text of the longer document too: with the texts of short
    documents alone, it would take another document for the longer one and lose the pair.
    """
    words = [f"word{i}" for i in range(68)]
    filler = [f"filler{i} {made_up(80, i)}" for i in range(20)]
    texts = [*filler[:7], " ".join(words), *filler[7:], " ".join(words[:62]), "some other short text"]
    recipe = likewise.Recipe.simhash(within=20, shingle=1, weights="none", short_threshold=0.9)
    pq.write_table(pa.table({"text": texts}), tmp_path / "in.parquet", row_group_size=9)
    likewise.dedup_files(tmp_path / "in.parquet", tmp_path / "out", recipe)
    found = pq.read_table(tmp_path / "out" / "removed.parquet")
    expected = likewise.dedup(texts, recipe).removed
    assert expected.column("row").to_pylist() == [21]
    assert found.select(["row", "kept_row", "similarity"]).equals(expected.select(["row", "kept_row", "similarity"]))
