"""SimHash runs on Spark, decided slab by slab, give the results of a local run."""

import numpy as np
import pyarrow as pa
import pytest

import likewise
from likewise import Recipe
from likewise.errors import InvalidInput
from tests.batch.spark.test_spark import check_same

pytestmark = [pytest.mark.timeout(900), pytest.mark.filterwarnings("ignore")]


def set_slabs(monkeypatch, num_slabs):
    """Set the number of slabs of SimHash runs here. The kept documents of each slab are searched in several tasks."""
    from dataclasses import replace

    from likewise.batch.spark.hamming import deciding, pairing

    monkeypatch.setattr(pairing, "LEAST_PIECE", 20)
    plan = deciding.plan_rounds
    monkeypatch.setattr(
        deciding, "plan_rounds", lambda *given, **more: replace(plan(*given, **more), num_slabs=num_slabs)
    )


@pytest.fixture
def in_slabs(monkeypatch):
    """A function that sets the number of slabs."""
    return lambda num_slabs: set_slabs(monkeypatch, num_slabs)


RECIPES = {
    "64": Recipe.simhash(bits=64, within=3),
    "128": Recipe.simhash(bits=128, within=20),
    "wide": Recipe.simhash(bits=128, within=40, short_threshold=0.2, keep="longest"),
    "components": Recipe.simhash(bits=64, within=8, group="components"),
}


@pytest.mark.parametrize(
    "name", ["64", *(pytest.param(name, marks=pytest.mark.slow) for name in RECIPES if name != "64")]
)
def test_slabs_decide_as_a_local_run(frame, table, in_slabs, name):
    from likewise.spark import dedup

    in_slabs(4)
    found, local = dedup(frame, RECIPES[name]), likewise.dedup(table, RECIPES[name])
    assert 5 < local.summary["num_removed"] < len(table) - 5
    check_same(found, local)


@pytest.mark.slow
def test_pairs_of_slabs(frame, table, in_slabs):
    from likewise.spark import pairs

    in_slabs(3)
    found = likewise.pairs(table, RECIPES["wide"])
    assert pairs(frame, RECIPES["wide"]).toArrow().to_pylist() == found.to_pylist()


@pytest.mark.slow
def test_candidates_of_slabs(frame, table, in_slabs):
    from likewise.spark import dedup

    in_slabs(3)
    for group in ("leaders", "components"):
        recipe = Recipe.simhash(threshold=0.8, group=group)
        check_same(dedup(frame, recipe), likewise.dedup(table, recipe))


def random_slabs(seed, num=400, num_slabs=5):
    """Return ranks, fingerprints near one of a few centers, features, texts of short documents, and rows by slab."""
    random = np.random.default_rng(seed)
    centers = random.integers(0, 2**64, (num // 40, 2), np.uint64)
    words = centers[random.integers(0, len(centers), num)]
    for _ in range(8):
        place = random.integers(0, 128, num)
        words[np.arange(num), place // 64] ^= np.uint64(1) << (place % 64).astype(np.uint64)
    ranks = np.sort(random.choice(10 * num, num, replace=False)) + 2**33
    texts = [
        f"{'one two three four five six seven eight nine ten' * (number % 2)} w{number % 7}" for number in range(num)
    ]
    features = np.where(random.random(num) < 0.3, 10, 500)
    held = pa.array([text if few == 10 else None for text, few in zip(texts, features, strict=True)], pa.string())
    return ranks, words, features, held, np.array_split(np.arange(num), num_slabs)


@pytest.mark.usefixtures("pyspark_installed")
@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.slow) for seed in (1, 2))])
def test_a_round_at_a_time_is_the_oracle(tmp_path, seed):
    """Without Spark, the workers' functions, run slab by slab, agree with the rule in plain Python."""
    from likewise.batch.spark.hamming.deciding import RunSlab, decide_slab, matching, search_kept

    recipe = Recipe.simhash(bits=128, within=14, short_threshold=0.5).resolve()
    ranks, words, features, texts, parts = random_slabs(seed)
    every = RunSlab(ranks, words, features, texts)
    directory, kept, verdicts = str(tmp_path), [], {}
    for part in parts:
        name = every.take(part).write(directory)
        tasks = [(kept_name, low, min(low + 7, num)) for kept_name, num in kept for low in range(0, num, 7)]
        numbers = pa.record_batch({"id": pa.array(range(len(tasks) + 1))})
        cut = [numbers.slice(0, 3), numbers.slice(3)]
        found = [
            batch
            for batches in cut
            for batch in search_kept(iter([batches]), directory=directory, name=name, tasks=tasks, recipe=recipe)
        ]
        *rows, last = decide_slab(iter(found), directory=directory, name=name, recipe=recipe)
        kept.append((last.column("name")[0].as_py(), last.column("num_kept")[0].as_py()))
        for batch in rows:
            for row in batch.to_pylist():
                assert row["rank"] not in verdicts
                verdicts[row["rank"]] = (row["kept_rank"], row["distance"])
    edges, num_unlike = [], 0
    for later in range(len(ranks)):
        distance = np.bitwise_count(words[:later] ^ words[later]).sum(axis=1)
        for earlier in np.flatnonzero(distance <= 14).tolist():
            same, _ = matching(every, np.array([earlier]), every, np.array([later]), recipe)
            num_unlike += not same[0]
            if same[0]:
                edges.append((later, earlier, int(distance[earlier])))
    removed = {}
    kept_places = set()
    for later in range(len(ranks)):
        near = [(distance, earlier) for place, earlier, distance in edges if place == later and earlier in kept_places]
        if near:
            distance, earlier = min(near)
            removed[int(ranks[later])] = (int(ranks[earlier]), distance)
        else:
            kept_places.add(later)
    assert verdicts == removed
    assert 50 < len(removed) < 390
    assert num_unlike > 10


@pytest.mark.usefixtures("pyspark_installed")
def test_a_dense_group_is_not_listed(tmp_path):
    """In a thousand documents that are all near each other, each is compared only with the kept one."""
    from likewise.batch.spark.hamming.deciding import RunSlab, joined_pairs, pairs_of_run, search_kept

    recipe = Recipe.simhash(bits=64, within=4, short_threshold=0.5).resolve()
    words = (np.uint64(1) << np.arange(1000, dtype=np.uint64) % np.uint64(64)).reshape(-1, 1)
    slab = RunSlab(np.arange(1000), words, np.full(1000, 500), pa.nulls(1000, pa.string()))
    name = slab.write(str(tmp_path))
    tasks = [(0, 0, low, low + 500) for low in (0, 500)]
    numbers = pa.record_batch({"id": pa.array([0, 1])})
    joined = list(joined_pairs(iter([numbers]), directory=str(tmp_path), names=[name], tasks=tasks, recipe=recipe))
    assert sum(batch.num_rows for batch in joined) < 2000
    kept = slab.take(np.array([0])).write(str(tmp_path))
    found = list(
        search_kept(
            iter([numbers.slice(0, 1)]), directory=str(tmp_path), name=name, tasks=[(kept, 0, 1)], recipe=recipe
        )
    )
    assert sum(batch.num_rows for batch in found) == 1001
    # Where all pairs are listed, too many are an error.
    cut = [numbers.slice(0, 1), numbers.slice(1)]
    options = {"directory": str(tmp_path), "names": [name], "tasks": tasks, "recipe": recipe}
    listed = sum(batch.num_rows for batch in pairs_of_run(iter(cut), **options, max_pairs=500_000))
    assert listed == 1000 * 999 // 2
    # The tasks list 124,750 and 374,750 pairs.
    assert listed == sum(batch.num_rows for batch in pairs_of_run(iter(cut), **options, max_pairs=374_750))
    with pytest.raises(InvalidInput, match="one task lists more than 300,000 pairs"):
        list(pairs_of_run(iter(cut), **options, max_pairs=300_000))


def test_the_plan_of_a_run():
    from likewise.batch.budget.cluster_plans import plan_rounds

    narrow, wide = plan_rounds(10**6, 64, 3, 8), plan_rounds(10**6, 128, 20, 8)
    assert narrow.num_slabs == 1
    assert 3 < wide.num_slabs < 50
    assert plan_rounds(10**8, 64, 3, 8).worker_bytes <= 10**9
    assert "impractical" in plan_rounds(10**9, 128, 24, 2000).warning
    assert plan_rounds(0, 64, 3, 8).num_slabs == 1
