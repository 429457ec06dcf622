"""Store one of each kind of file that outlives an update, written by this release, and the answers from them.

``python -m tests.released.make`` writes ``tests/released/VERSION.tar.gz``. After the release it is never made again:
it contains the files of that release, and a test that fails on them means that users cannot open theirs. Tests that
use a writer and a reader which change together cannot notice that. Before the release, an archive may be deleted
and made again for a stated reason.
"""

import gzip
import io
import json
import sys
import tarfile
import tempfile
from pathlib import Path

import numpy as np

import likewise
from likewise.stages.weights import count_weights
from tests.released.answers import INDEXES, RECIPES, SKETCHES, answers
from tests.released.documents import documents

HERE = Path(__file__).parent


def leave(folder):
    """Write everything into a folder."""
    rows = documents()
    ids, texts = [row[0] for row in rows], [row[1] for row in rows]
    table = count_weights(texts, likewise.Recipe.minhash(0.45, shingle=2, weights="idf"))
    table.write(folder / "counted.lww")
    likewise.Weights.from_terms({"ka": 9, "lo min": 15, "ter": 0}).write(folder / "lexicon.lww")

    recipes = {name: make() for name, make in RECIPES.items()}
    fields = {name: json.loads(recipe.to_json()) for name, recipe in recipes.items()}
    (folder / "recipes.json").write_text(json.dumps(fields, indent=1) + "\n", encoding="utf-8")
    recipes["weighted"] = likewise.Recipe.minhash(0.45, shingle=2, weights=table)

    for name in SKETCHES:
        sketches = likewise.sketch(texts, recipes[name])
        sketches.write(folder / f"{name}.parquet")
        sketches.write(folder / f"{name}.npy")

    fingerprints = likewise.sketch(texts, recipes["simhash-distance"])
    with likewise.HammingIndex(fingerprints, ids=ids, within=6) as index:
        index.remove(["original-3", "short-0"])
        index.save(folder / "ids.hamming")
    plain = np.random.default_rng(7).integers(0, 2**64, 1500, np.uint64, endpoint=False)
    with likewise.HammingIndex(np.concatenate([plain, plain[:50] ^ np.uint64(5)]), within=3) as index:
        index.add(plain[50:60] ^ np.uint64(9))
        index.remove([7, 8, 9])
        index.save(folder / "rows.hamming")

    for name, (recipe, options) in INDEXES.items():
        half = len(rows) // 2
        with likewise.Index(folder / name, recipes[recipe], **options) as index:
            index.check_and_add_batch(ids[:half], texts[:half])
            index.remove("original-2")
            index.compact()
            index.rebuild()
            # No segment contains these.
            index.check_and_add_batch(ids[half:], texts[half:])
            index.remove("original-16")
            index.remove("near-20")

    lines = [json.dumps({"id": id_, "text": text, "n": i}) + "\n" for i, (id_, text) in enumerate(rows)]
    (folder / "documents.jsonl").write_text("".join(lines), encoding="utf-8")
    likewise.dedup_files([folder / "documents.jsonl"], folder / "run", recipes["minhash"])
    # The only field of a run with the location of its inputs.
    summary = folder / "run" / "summary.json"
    summary.write_text(summary.read_text(encoding="utf-8").replace(str(folder), "/data"), encoding="utf-8")


def packed(folder):
    """Return a folder as a .tar.gz without traces of the machine."""
    content = io.BytesIO()
    with tarfile.open(fileobj=content, mode="w", format=tarfile.PAX_FORMAT) as archive:
        for path in sorted(folder.rglob("*")):
            if path.is_file():
                about = tarfile.TarInfo(path.relative_to(folder).as_posix())
                about.size, about.mode = path.stat().st_size, 0o644
                with path.open("rb") as file:
                    archive.addfile(about, file)
    return gzip.compress(content.getvalue(), mtime=0)


def unpack(archive, folder):
    """Unpack such an archive into an empty folder."""
    with tarfile.open(archive) as files:
        files.extractall(folder, filter="data")


def main():
    """Write the archive of this version, unless it exists."""
    target = HERE / f"{likewise.__version__}.tar.gz"
    if target.exists():
        print(f"{target.name} is there: files of a release are not made again", file=sys.stderr)
        return 1
    with tempfile.TemporaryDirectory() as scratch:
        left, asked = Path(scratch, "left"), Path(scratch, "asked")
        left.mkdir()
        leave(left)
        content = packed(left)
        Path(scratch, "left.tar.gz").write_bytes(content)
        unpack(Path(scratch, "left.tar.gz"), asked)
        (left / "answers.json").write_text(json.dumps(answers(asked), indent=1) + "\n", encoding="utf-8")
        target.write_bytes(packed(left))
    print(f"{target}: {target.stat().st_size} bytes", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main())
