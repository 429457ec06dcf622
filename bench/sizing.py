"""Write the table of docs/sizing.md: the plans of runs with a memory limit for 10 million to a billion documents.

`python bench/sizing.py` writes the table. The figures come from the plan that `likewise dedup --memory`
prints before it starts; nothing is run.
"""

from pathlib import Path

from likewise.batch.memory import MemoryPlan, _planned, _Task
from likewise.errors import InvalidParameter
from likewise.recipe.recipe import Recipe
from rivals import table

PAGE = Path(__file__).parent.parent / "docs" / "sizing.md"
MARK = "sizing"
DOCUMENT_BYTES = 1_173
THREADS = 2
RECIPES = {"`--threshold 0.55 --weights none`": Recipe.minhash(0.55).resolve(), "default": Recipe.preset("default")}
SIZES = {10**7: 2, 10**8: 16, 10**9: 64}


def plan(recipe: Recipe, num_documents: int, memory_bytes: int) -> MemoryPlan:
    """Return the plan of a run on uncompressed JSON Lines whose kept documents are copied."""
    text_bytes = num_documents * DOCUMENT_BYTES
    task = _Task(_planned(recipe), memory_bytes, THREADS, 1, text_bytes, text_bytes, 0.0, 0)
    return task.plan(num_documents, is_estimated=False)


def least_memory(recipe: Recipe, num_documents: int) -> int:
    """Return the least limit that the plan accepts, to a tenth of a gigabyte."""
    memory_bytes = 300_000_000
    while True:
        try:
            plan(recipe, num_documents, memory_bytes)
        except InvalidParameter:
            memory_bytes += 100_000_000
        else:
            return memory_bytes


def rows() -> list[str]:
    """Return the lines of the table."""
    lines = [
        "| documents | text | recipe | smallest `--memory` | `--memory` in this row | disk | passes | hours, 2 cores |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for num_documents, memory_gb in SIZES.items():
        for name, recipe in RECIPES.items():
            made = plan(recipe, num_documents, memory_gb * 10**9)
            lines.append(
                f"| {num_documents:,} | {num_documents * DOCUMENT_BYTES / 1e9:,.0f} GB | {name} "
                f"| {least_memory(recipe, num_documents) / 1e9:.1f} GB | {memory_gb} GB "
                f"| {made.disk_bytes / 1e9:,.0f} GB | {made.num_passes} | {made.seconds / 3600:.2g} |"
            )
    return lines


def main() -> None:
    """Write the table between its markers."""
    table.insert(PAGE, MARK, "\n".join(rows()) + "\n")


if __name__ == "__main__":
    main()
