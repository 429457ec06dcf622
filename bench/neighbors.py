"""Measure the top-10 neighbors of an online index: latencies, and the share of true ones found.

    neighbors.py [--documents N] [--queries N] [--work FOLDER] [--page-only]

SimHash: N real fingerprints (default 1,000,000) by distance within 3 and within 6; queries are stored ones with up to
as many bits changed. The truth comes from comparing all. MinHash: N made-up documents of 60 to 200 words, half of them
near-copies; queries are stored ones with words changed. The truth is an exact join of the feature sets. Writes
results/neighbors.json and the tables of docs/benchmarks/index.md; with --page-only these alone, from the last results.
"""

import argparse
import json
import random
import tempfile
import time
from pathlib import Path

import numpy as np

import hamming_data
import likewise
import machine
from rivals import table

RESULTS = Path(__file__).parent / "results" / "neighbors.json"
PAGE = Path(__file__).parent.parent / "docs" / "benchmarks" / "index.md"
K = 10


def simhash(num_documents, num_queries, within, work):
    recipe = likewise.Recipe.simhash(within=within).resolve()

    def sketches(array):
        return likewise.Sketches(array[:, 0], recipe, np.zeros(len(array), bool), np.full(len(array), 1_000, np.uint32))

    made = hamming_data.Codes("real", 64, work=work)
    codes = np.concatenate([made.chunk(i)[0] for i in range(-(-num_documents // hamming_data.CHUNK_ROWS))])
    codes = codes[:num_documents]
    chance = np.random.default_rng(5)
    queries = codes[chance.integers(0, num_documents, num_queries)]
    queries = hamming_data.flip(queries, chance.integers(0, within + 1, num_queries), 64, chance)
    with likewise.Index.in_memory(recipe, threads=1) as index:
        for start in range(0, num_documents, 50_000):
            part = codes[start : start + 50_000]
            index.add_batch(range(start, start + len(part)), sketches(part))
        is_kept = np.array([index.get(doc_id).is_new for doc_id in index.ids()])
        kept = np.flatnonzero(is_kept)
        seconds, found = [], []
        for query in queries:
            asked = sketches(query[None])
            began = time.perf_counter()
            found.append(index.neighbors(asked, K, among="candidates"))
            seconds.append(time.perf_counter() - began)
        began = time.perf_counter()
        in_a_batch = index.neighbors_batch(sketches(queries), K, among="candidates")
        batch_s = time.perf_counter() - began
        assert in_a_batch == found
    num_true, num_wrong = 0, 0
    for query, neighbors in zip(queries, found, strict=True):
        distances = np.bitwise_count(codes[kept, 0] ^ query[0])
        near = np.flatnonzero(distances <= within)
        order = near[np.lexsort((near, distances[near]))][:K]
        expected = [(str(kept[i]), int(distances[i])) for i in order]
        num_true += len(expected)
        num_wrong += expected != [(one.doc_id, one.distance) for one in neighbors]
    return figures(num_documents, seconds, batch_s) | {
        "within": within,
        "num_kept": len(kept),
        "num_true": num_true,
        "num_queries_wrong": num_wrong,
    }


def minhash(num_documents, num_queries):
    recipe = likewise.Recipe.minhash(0.8, shingle=1).resolve()
    chance = random.Random(3)
    words = [f"w{number}" for number in range(30_000)]
    texts = [" ".join(chance.sample(words, chance.randrange(60, 200))) for _ in range(num_documents)]
    queries = []
    for _ in range(num_queries):
        text = chance.choice(texts).split()
        for place in chance.sample(range(len(text)), chance.randrange(0, len(text) // 3)):
            text[place] = chance.choice(words)
        queries.append(" ".join(text))
    with likewise.Index.in_memory(recipe, threads=1) as index:
        for start in range(0, num_documents, 10_000):
            index.add_batch(range(start, min(start + 10_000, num_documents)), texts[start : start + 10_000])
        kept = [doc_id for doc_id in index.ids() if index.get(doc_id).is_new]
        seconds, found = [], []
        for query in queries:
            began = time.perf_counter()
            found.append(index.neighbors(query, K, among="candidates"))
            seconds.append(time.perf_counter() - began)
    exact = likewise.Recipe.shingles(0.3, shingle=1)
    held = [texts[int(doc_id)] for doc_id in kept]
    pairs = likewise.pairs(queries, exact, against=held, against_ids=kept)
    by_query = [{} for _ in queries]
    for row in pairs.to_pylist():
        by_query[row["row_a"]][row["doc_id_b"]] = row["similarity"]
    recalls = []
    bands, rows = recipe.sketch.bands, recipe.sketch.rows
    for low in np.arange(0.3, 1.0, 0.1):
        of_band = [
            (doc_id in {one.doc_id for one in neighbors}, 1 - (1 - similarity**rows) ** bands)
            for true, neighbors in zip(by_query, found, strict=True)
            for doc_id, similarity in sorted(true.items(), key=lambda item: -item[1])[:K]
            if low <= similarity < low + 0.1 + 1e-9 * (low > 0.85)
        ]
        if of_band:
            hits, stated = np.array(of_band, float).T
            recalls.append(
                {"from": round(float(low), 1), "num_true": len(hits), "found": hits.mean(), "stated": stated.mean()}
            )
    return figures(num_documents, seconds, None) | {
        "bands": bands,
        "rows": rows,
        "num_kept": len(kept),
        "recall_by_similarity": recalls,
    }


def figures(num_documents, seconds, batch_s):
    micro = np.array(seconds) * 1e6
    return {
        "num_documents": num_documents,
        "num_queries": len(seconds),
        "p50_us": float(np.percentile(micro, 50)),
        "p99_us": float(np.percentile(micro, 99)),
        "batch_us_each": None if batch_s is None else batch_s / len(seconds) * 1e6,
    }


def markdown(found):
    simhash, minhash = found["simhash"], found["minhash"]
    names = [f"SimHash, 64 bits within {one['within']}" for one in simhash]
    names.append(f"MinHash, {minhash['bands']} bands of {minhash['rows']}")
    lines = [
        f"{found['machine']['num_cores']} cores of {found['machine']['cpu']}, {found['machine']['date'][:10]}.",
        "",
        "| recipe | documents | queries | p50 | p99 |",
        "|---|---|---|---|---|",
    ]
    lines += [
        f"| {name} | {one['num_documents']:,} | {one['num_queries']:,} | {one['p50_us']:,.0f} µs | "
        f"{one['p99_us']:,.0f} µs |"
        for name, one in zip(names, [*simhash, minhash], strict=True)
    ]
    wrong = sum(one["num_queries_wrong"] for one in simhash)
    lines += [
        "",
        f"With SimHash, {wrong} of {sum(one['num_queries'] for one in simhash):,} answers differ from a comparison "
        "with all kept documents.",
        "With MinHash, the share of the true neighbors that is found depends on their similarity, as the recipe "
        "states:",
        "",
        "| similarity | true neighbors | found | stated |",
        "|---|---|---|---|",
    ]
    lines += [
        f"| {one['from']:.1f} to {one['from'] + 0.1:.1f} | {one['num_true']} | {one['found']:.3f} | "
        f"{one['stated']:.3f} |"
        for one in minhash["recall_by_similarity"]
    ]
    return "\n".join(lines) + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--documents", type=int, default=1_000_000)
    parser.add_argument("--queries", type=int, default=2_000)
    parser.add_argument("--work", type=Path, default=Path(tempfile.gettempdir()) / "likewise-hamming")
    parser.add_argument("--page-only", action="store_true")
    options = parser.parse_args()
    if options.page_only:
        table.insert(PAGE, "neighbors", markdown(json.loads(RESULTS.read_text(encoding="utf-8"))))
        return
    found = {
        "k": K,
        "simhash": [simhash(options.documents, options.queries, within, options.work) for within in (3, 6)],
        "minhash": minhash(options.documents, options.queries),
    }
    machine.write_results(RESULTS, **found)
    table.insert(PAGE, "neighbors", markdown(json.loads(RESULTS.read_text(encoding="utf-8"))))
    print(json.dumps(found, indent=2))


if __name__ == "__main__":
    main()
