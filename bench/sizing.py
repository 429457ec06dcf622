"""Write the tables of docs/sizing.md and docs/zh/sizing.md: plans with a memory limit for up to a billion documents.

`python bench/sizing.py` writes the tables. The figures come from the plan that `likewise dedup --memory`
prints before it starts; nothing is run.
"""

from pathlib import Path

from likewise.batch.memory import MemoryPlan, _planned, _Task
from likewise.errors import InvalidParameter
from likewise.recipe.recipe import Recipe
from rivals import table

DOCS = Path(__file__).parent.parent / "docs"
PAGE, CHINESE_PAGE = DOCS / "sizing.md", DOCS / "zh" / "sizing.md"
MARK = "sizing"
DOCUMENT_BYTES = 1_173
THREADS = 2
RECIPES = {"`--threshold 0.55 --weights none`": Recipe.minhash(0.55).resolve(), "default": Recipe.preset("default")}
SIZES = {10**7: 2, 10**8: 16, 10**9: 64}
CHINESE = {10**8: "1 亿", 10**9: "10 亿", "default": "默认"}


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


def chinese_rows() -> list[str]:
    """Return the lines of the Chinese table: the larger sizes, without passes."""
    lines = ["| 文档数 | 配方 | 最少内存 | 给定内存 | 磁盘 | 用时 |", "|---|---|---|---|---|---|"]
    for line in rows()[2:]:
        num, _, name, *figures, _, hours = (cell.strip() for cell in line.strip("|").split("|"))
        documents = CHINESE.get(int(num.replace(",", "")))
        if documents is not None:
            lines.append(f"| {documents} | {CHINESE.get(name, name)} | {' | '.join(figures)} | {hours} 小时 |")
    return lines


def main() -> None:
    """Write the tables between their markers."""
    table.insert(PAGE, MARK, "\n".join(rows()) + "\n")
    table.insert(CHINESE_PAGE, MARK, "\n".join(chinese_rows()) + "\n")


if __name__ == "__main__":
    main()
