"""Real rows in several formats: are the verdicts those of JSON Lines, and what does Lance's own MinHash index find?

    tables.py SETS WORK

SETS is the folder of the labeled sets. Needs pylance 14. Prints seconds of the processor, since other
work on the machine changes those of a clock.
"""

import gzip
import io
import json
import multiprocessing
import os
import sys
import tarfile
import time
from pathlib import Path

import lance
import pyarrow as pa
import pyarrow.parquet as pq
from lance.query import MinHashQuery

import likewise

SETS = (
    "en-cpp-errors", "zh-docs-tidb", "laws-de", "descriptions-it", "man-nine", "api-gtk", "readmes-crates",
    "licenses-spdx",
)  # fmt: skip
LEAST = 0.8


def rows(folder: Path) -> list[dict[str, str]]:
    """Return id and text of all documents."""
    found = []
    for name in SETS:
        with gzip.open(folder / name / "docs.jsonl.gz", "rt", encoding="utf-8") as lines:
            for row in map(json.loads, lines):
                found.append({"id": f"{name}/{row['id'].replace('.', '-')}", "text": row["text"]})
    return found


def write(folder: Path, work: Path) -> None:
    """Write the rows in each format."""
    all_rows = rows(folder)
    with (work / "rows.jsonl").open("w", encoding="utf-8", newline="\n") as file:
        file.writelines(json.dumps(row, ensure_ascii=False) + "\n" for row in all_rows)
    with tarfile.open(work / "rows.tar", "w") as archive:
        for row in all_rows:
            content = row["text"].encode()
            member = tarfile.TarInfo(f"{row['id']}.txt")
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
    table = pa.Table.from_pylist(all_rows)
    pq.write_table(table, work / "rows.parquet")
    lance.write_dataset(table, str(work / "rows.lance"))


def run(path: Path) -> list[dict[str, object]]:
    """Deduplicate a file in a process of its own; return the evidence."""
    out = path.parent / f"out-{path.suffix[1:]}"
    command = [sys.executable, "-m", "likewise", "dedup", str(path), "-o", str(out), "--preset", "strict", "--quiet"]
    _, status, used = os.wait4(os.spawnv(os.P_NOWAIT, sys.executable, command), 0)
    assert status == 0
    seconds = used.ru_utime + used.ru_stime
    print(f"{path.suffix[1:]}: {seconds:.1f} s, {used.ru_maxrss / 1024:.0f} MB", flush=True)
    columns = ["row", "doc_id", "kept_row", "similarity"]
    return list(pq.ParquetFile(out / "removed.parquet").read(columns).to_pylist())


def by_likewise(dataset: lance.LanceDataset, recipe: likewise.Recipe) -> set[int]:
    """Return the rows that are in a pair."""
    start = time.process_time()
    found = likewise.pairs(dataset, recipe)
    print(f"{recipe.method}: {time.process_time() - start:.1f} s")
    return {*found["row_a"].to_pylist(), *found["row_b"].to_pylist()}


def by_lance(dataset: lance.LanceDataset, all_rows: list[dict[str, str]]) -> set[int]:
    """Return the rows for which a query by their text finds another row."""
    start = time.process_time()
    dataset.create_scalar_index("text", "MINHASHLSH")
    dataset = lance.dataset(dataset.uri)
    print(f"index of Lance: {time.process_time() - start:.1f} s")
    found = set()
    for number, row in enumerate(all_rows):
        near = dataset.to_table(["id", "_distance"], nearest=MinHashQuery(row["text"], "text"), limit=10).to_pylist()
        if any(one["id"] != row["id"] and one["_distance"] <= 1 - LEAST + 1e-9 for one in near):
            found.add(number)
    print(f"with queries: {time.process_time() - start:.1f} s")
    return found


def main() -> None:
    """Print all figures."""
    folder, work = map(Path, sys.argv[1:])
    work.mkdir()
    # The memory of this process would count as that of its children.
    writer = multiprocessing.get_context("spawn").Process(target=write, args=(folder, work))
    writer.start()
    writer.join()
    expected, *others = [run(work / f"rows.{ending}") for ending in ("jsonl", "tar", "parquet", "lance")]
    assert all(other == expected for other in others)
    all_rows, dataset = rows(folder), lance.dataset(str(work / "rows.lance"))
    exact = by_likewise(dataset, likewise.Recipe.shingles(LEAST))
    ours, theirs = by_likewise(dataset, likewise.Recipe.minhash(LEAST)), by_lance(dataset, all_rows)
    print(f"{len(all_rows):,} rows, {len(exact):,} in pairs")
    print(f"Likewise {len(ours & exact):,}, others {len(ours - exact):,}")
    print(f"Lance {len(theirs & exact):,}, others {len(theirs - exact):,}")


if __name__ == "__main__":
    main()
