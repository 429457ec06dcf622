"""Answers of a release's files as JSON values: recorded with the files, and computed by every later version."""

import hashlib
import json

import numpy as np

import likewise
from likewise.io.fingerprints.sketches import read_sketch_file
from likewise.recipe.weights import Weights
from tests.released.documents import documents, later_documents

# By name in recipes.json; every field is given, so that later defaults change nothing.
RECIPES = {
    "minhash": lambda: likewise.Recipe.minhash(0.6, shingle=3, overflow="levels"),
    "minhash-classical": lambda: likewise.Recipe.minhash(
        0.8, tokens="char", scheme="classical", num_slots=64, seed=5, overflow="levels"
    ),
    "simhash-distance": lambda: likewise.Recipe.simhash(within=6),
    "simhash-cosine": lambda: likewise.Recipe.simhash(threshold=0.8, tokens="word", shingle=2, bits=128),
    "simhash-256": lambda: likewise.Recipe.simhash(within=24, bits=256, tokens="char", fold=("digits", "width")),
    "shingles": lambda: likewise.Recipe.shingles(0.5, measure="containment"),
    "bloom": lambda: likewise.Recipe.bloom(0.6, filter_bits=1024, num_hashes=3),
    "exact": lambda: likewise.Recipe.exact(),
    "lines": lambda: likewise.Recipe.minhash(0.5, tokens="line", overflow="levels"),
}
SKETCHES = ("minhash", "simhash-distance", "simhash-256", "bloom")
# Directory -> recipe and options of the index.
INDEXES = {
    "index-distance": ("simhash-distance", {}),
    "index-shingles": ("minhash", {"store": "shingles"}),
    "index-text": ("simhash-cosine", {"store": "text", "ttl": 10**9}),
    "index-weighted": ("weighted", {"store": "shingles"}),
}


def answers(folder):
    """Compute all answers for a folder; indexes are written to, so pass a copy."""
    return {
        "recipes": recipe_answers(folder),
        "sketches": {name: sketch_answers(folder, name) for name in SKETCHES},
        "weights": {name: weight_answers(folder / name) for name in ("counted.lww", "lexicon.lww")},
        "hamming": {name: hamming_answers(folder, name) for name in ("ids.hamming", "rows.hamming")},
        "indexes": {name: index_answers(folder / name) for name in INDEXES},
        "run": run_answers(folder),
    }


def recipe_answers(folder):
    """Return identities and plans of the recipes, read from their JSON."""
    found = {}
    for name, fields in json.loads((folder / "recipes.json").read_text(encoding="utf-8")).items():
        recipe = likewise.Recipe.from_dict(fields)
        resolved = json.loads(recipe.resolve().to_json())
        found[name] = {"recipe_id": recipe.recipe_id, "sketch_id": recipe.sketch_id, "resolved": resolved}
    return found


def sketch_answers(folder, name):
    """Check that sketches read with their recipes equal, bit for bit, those made from the texts; return them."""
    texts = [text for _, text in documents()]
    found = {}
    for suffix in ("parquet", "npy"):
        content = read_sketch_file(folder / f"{name}.{suffix}")
        read = likewise.Sketches.read(folder / f"{name}.{suffix}")
        again = likewise.sketch(texts, read.recipe)
        assert np.array_equal(read.array, again.array), (name, suffix)
        assert np.array_equal(read.is_empty, again.is_empty), (name, suffix)
        found[suffix] = {
            "sketch_id": content.sketch_id,
            "array": hashlib.sha256(content.array.tobytes()).hexdigest(),
            "shape": list(content.array.shape),
            "dtype": str(content.array.dtype),
            "empty": np.flatnonzero(content.is_empty).tolist(),
            "num_features": content.num_features.tolist(),
            "ids": None if content.doc_ids is None else list(content.doc_ids),
        }
    return found


def weight_answers(path):
    """Return a table's facts, and sketches made with it."""
    table = Weights.read(path)
    recipe = likewise.Recipe.simhash(threshold=0.7, weights=table)
    return {
        "about": table.to_dict(),
        "bytes": table.to_bytes() == path.read_bytes(),
        "sketches": likewise.sketch([text for _, text in documents()[:12]], recipe).array.tolist(),
    }


def hamming_answers(folder, name):
    """Return matches of a Hamming index, before and after additions."""
    with likewise.HammingIndex.open(folder / name, verify=True) as index:
        queries = _queries(folder, name)
        found = {"length": len(index), "bits": index.bits, "within": index.within, "before": _matches(index, queries)}
        if name == "ids.hamming":
            index.add(likewise.sketch([text for _, text in later_documents()], index.recipe), [
                doc_id for doc_id, _ in later_documents()
            ])  # fmt: skip
        else:
            index.add(queries[:3] ^ np.uint64(1))
        index.save(folder / f"again-{name}")
    with likewise.HammingIndex.open(folder / f"again-{name}", verify=True) as index:
        return found | {"after": _matches(index, queries)}


def _queries(folder, name):
    if name == "ids.hamming":
        return likewise.Sketches.read(folder / "simhash-distance.parquet")
    return np.random.default_rng(7).integers(0, 2**64, 70, np.uint64, endpoint=False) ^ np.uint64(3)


def _matches(index, queries):
    found = index.query_batch(queries)
    return [np.asarray(column).tolist() for column in (found.offsets, found.rows, found.distances)]


def index_answers(path):
    """Return an index's contents, its verdicts on new documents, and its state after adding them."""
    rows, later = documents(), later_documents()
    with likewise.Index(path, read_only=True) as index:
        stats = index.stats
        found = {
            "recipe_id": index.recipe.recipe_id,
            "stats": {name: stats[name] for name in ("num_documents", "num_rows", "store", "ttl_s", "segment_rows")},
            "documents": [_known(index, doc_id) for doc_id, _ in rows],
            "checked": [_told(verdict) for verdict in index.check_batch([text for _, text in rows + later])],
            "neighbors": [
                [list(near[:4]) for near in index.neighbors(text, 3, among="candidates") if near.matches]
                for _, text in later
            ],
        }
    with likewise.Index(path) as index:
        # By the tables of the release, not rebuilt from its database.
        assert index.stats["num_rebuilt"] == 0
        assert index.verify(full=True) == []
        found["added"] = [
            _told(verdict)
            for verdict in index.check_and_add_batch([row[0] for row in later], [row[1] for row in later])
        ]
        found["removed"] = [list(index.remove(doc_id)) for doc_id in ("original-8", "short-2")]
        index.compact()
        index.rebuild()
        assert index.verify(full=True) == []
        found["later"] = [_known(index, doc_id) for doc_id, _ in rows + later]
    return json.loads(json.dumps(found))


def _known(index, doc_id):
    known = index.get(doc_id)
    # All but the arrival time.
    return None if known is None else list(known)[:-1]


def _told(verdict):
    return [verdict.doc_id, verdict.is_new, verdict.kept_id, verdict.measure, verdict.similarity, verdict.distance]


def run_answers(folder):
    """Return the evidence of a finished run, and what a later run against it removes."""
    import pyarrow.parquet as pq

    evidence = pq.read_table(folder / "run" / "removed.parquet")
    (folder / "later.jsonl").write_text(
        "".join(json.dumps({"id": id_, "text": text}) + "\n" for id_, text in later_documents()), encoding="utf-8"
    )
    recipe = likewise.Recipe.from_file(folder / "run" / "summary.json")
    likewise.dedup_files(
        [folder / "later.jsonl"], folder / "against", recipe, against=[folder / "run"], write="evidence"
    )
    removed = pq.read_table(folder / "against" / "removed.parquet")
    kept = folder / "run" / "kept" / "documents.jsonl"
    names = ("doc_id", "kept_id", "kept_source", "similarity", "distance")
    return {
        "recipe_id": recipe.recipe_id,
        "columns": {field.name: str(field.type) for field in evidence.schema},
        "evidence": evidence.drop_columns(["file", "kept_file"]).to_pylist(),
        "kept": [json.loads(line)["id"] for line in kept.read_text(encoding="utf-8").splitlines()],
        "against": removed.select(names).to_pylist(),
    }
