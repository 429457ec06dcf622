"""Find near-duplicates in the text that came with this Python: `python examples/demo.py OUT`.

Gathers the sources, licenses and package metadata under the interpreter's own library folder and this environment into
one JSONL file, runs `likewise dedup` on it, and shows three of the removals with their differences.
"""

import json
import subprocess
import sys
import sysconfig
from collections.abc import Iterator
from pathlib import Path

import pyarrow.parquet as pq

SUFFIXES = {".py", ".pyi", ".txt", ".md", ".rst", ".h", ".toml", ".cfg", ".html", ".css", ".js"}
NAMES = {"METADATA", "LICENSE", "COPYING", "NOTICE", "AUTHORS", "README"}
ENOUGH_FILES = 1_500
MAX_FILES = 20_000


def text_files() -> Iterator[tuple[str, Path]]:
    """Yield the text files under the interpreter's library folders, sorted, each once, with a short name."""
    seen = set()
    for name in ("stdlib", "purelib", "include"):
        root = Path(sysconfig.get_path(name)).resolve()
        for path in sorted(root.rglob("*")):
            wanted = path.suffix in SUFFIXES or path.name.partition(".")[0] in NAMES
            if wanted and path.is_file() and not path.is_symlink() and path not in seen:
                seen.add(path)
                yield f"{name}/{path.relative_to(root)}", path


def gather(target: Path) -> int:
    """Write one JSON line (id, text) a file; return their number."""
    num_files = 0
    with target.open("w", encoding="utf-8") as out:
        for name, path in text_files():
            try:
                text = path.read_text(encoding="utf-8")
            except (UnicodeDecodeError, OSError):
                continue
            if "\0" in text or not text.strip():
                continue
            out.write(json.dumps({"id": name, "text": text}, ensure_ascii=False) + "\n")
            num_files += 1
            if num_files == MAX_FILES:
                break
    return num_files


def likewise(*arguments: str) -> None:
    """Run the command line of Likewise, showing the command first."""
    print("\n$ likewise " + " ".join(arguments), flush=True)
    subprocess.run([sys.executable, "-m", "likewise", *arguments], check=True)


def main(out: Path) -> None:
    """Gather, deduplicate, show."""
    out.mkdir(parents=True, exist_ok=True)
    documents = out / "documents.jsonl"
    num_files = gather(documents)
    size_mb = documents.stat().st_size / 1e6
    print(f"Gathered {num_files:,} text files of this Python into {documents} ({size_mb:.0f} MB).")
    if num_files < ENOUGH_FILES:
        print(f"(Fewer than {ENOUGH_FILES:,}: this Python comes with little text; the run is the same, only smaller.)")
    run = out / "run"
    likewise("dedup", str(documents), "-o", str(run), "--overwrite")

    removed = pq.read_table(run / "removed.parquet", columns=["doc_id", "kept_id", "similarity"]).to_pylist()
    # Exact copies have nothing to show: take the near-duplicates, from the most to the least alike.
    near = sorted((row for row in removed if row["similarity"] < 1), key=lambda row: -row["similarity"])
    shown = [near[i] for i in sorted({0, len(near) // 2, len(near) - 1})] if near else removed[:3]
    print(f"\n{len(removed):,} documents were removed, {len(near):,} of them near-duplicates. Three of these:")
    for row in shown:
        likewise("compare", str(documents), "--ids", row["doc_id"], row["kept_id"])
    print(f"\nKept documents: {run / 'kept' / documents.name}")
    print(f"Evidence:       {run / 'removed.parquet'}")
    print(f"Summary:        {run / 'summary.json'}")


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "demo-out"))
