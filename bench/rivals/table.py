"""Write the results as Markdown into the documentation."""

import re
from pathlib import Path

METHODS = {"minhash": "MinHash, threshold .8", "simhash": "SimHash, distance <= 3"}


def _file_rows(result: dict) -> list[str]:
    lines = []
    for corpus in dict.fromkeys(row["corpus"] for row in result["files"]):
        for method, title in METHODS.items():
            rows = [row for row in result["files"] if (row["corpus"], row["method"]) == (corpus, method)]
            if not rows:
                continue
            first = rows[0]
            pairs = next((row["num_pairs_0.8"] for row in rows if "num_pairs_0.8" in row), 0)
            lines += [
                "",
                f"**{corpus}: {first['num_documents']:,} documents, JSONL to kept documents by {title}** "
                f"({pairs:,} pairs with J >= .8)",
                "",
                "| tool | seconds | peak MB | kept | found, J >= .8 | J >= .9 | removed, no match kept at .8 | at .7 "
                "| verified |",
                "|---|---|---|---|---|---|---|---|---|",
            ]
            for row in rows:
                name = f"{row['tool']} {row['version']}" if row.get("version") else row["tool"]
                if "seconds" not in row:
                    lines.append(f"| {name} | {row['not_run'].replace('|', '/')} | | | | | | | {row['verified']} |")
                    continue
                lines.append(
                    f"| {name} | {row['seconds']:.2f} | {row['peak_anonymous_mb']:,.0f} | {row['num_kept']:,} "
                    f"| {row['recall_0.8']:.4f} | {row['recall_0.9']:.4f} | {row['num_removed_without_kept_0.8']:,} "
                    f"| {row['num_removed_without_kept_0.7']:,} | {row['verified']} |"
                )
    return lines


def _sketch_rows(result: dict) -> list[str]:
    lines = []
    for corpus in dict.fromkeys(row["corpus"] for row in result["sketches"]):
        lines += [
            "",
            f"**{corpus}: text to sketch, one thread, MB/s**",
            "",
            "| sketch | tool | MB/s |",
            "|---|---|---|",
        ]
        for row in result["sketches"]:
            if row["corpus"] == corpus:
                rate = f"{row['mb_per_s']:,.1f}" if "mb_per_s" in row else row["not_run"].replace("|", "/")
                lines.append(f"| {row['sketch']} | {row['tool']} | {rate} |")
    return lines


def _rounds(repeats: int) -> str:
    if repeats == 1:
        return "One round; each tool runs once."
    return f"Medians of {repeats} rounds; each tool runs once per round."


def summary(result: dict) -> str:
    """Return seconds, memory and recall on the largest corpus by MinHash: the short table of the overview."""
    facts = result["machine"]
    rows = [row for row in result["files"] if row["method"] == "minhash" and "seconds" in row]
    largest = max(row["num_documents"] for row in rows)
    rows = [row for row in rows if row["num_documents"] == largest]
    lines = [
        f"{largest:,} {rows[0]['corpus']} documents, from JSON Lines to kept documents, MinHash at threshold 0.8 "
        f"({rows[0]['num_pairs_0.8']:,} pairs with J >= .8).",
        f"{facts['cpu']}, {facts['num_cores']} cores, {facts['date'][:10]}. {_rounds(result['repeats'])}",
        "Command: `python bench/rivals/run.py`.",
        "",
        "| tool | seconds | peak MB | found, J >= .8 | removed, no match kept at .8 | removals verified |",
        "|---|---|---|---|---|---|",
    ]
    for row in rows:
        name = f"{row['tool']} {row['version']}" if row.get("version") else row["tool"]
        lines.append(
            f"| {name} | {row['seconds']:.2f} | {row['peak_anonymous_mb']:,.0f} | {row['recall_0.8']:.4f} "
            f"| {row['num_removed_without_kept_0.8']:,} | {row['verified']} |"
        )
    return "\n".join(lines) + "\n"


def markdown(result: dict) -> str:
    """Return the tables, with the machine above and the settings below."""
    facts = result["machine"]
    lines = [
        f"{facts['cpu']}, {facts['num_cores']} cores, {facts['isa']}, Python {facts['python']}, {facts['date']}.",
        f"{_rounds(result['repeats'])} Load average at the start: {facts['load_average'][0]:.1f}.",
    ]
    lines += _sketch_rows(result) + _file_rows(result)
    settings = {(row["tool"], row["method"]): row["settings"] for row in result["files"]}
    if settings:
        lines += ["", "Settings:", ""]
        lines += [f"- {tool}, {METHODS[method]}: `{text}`" for (tool, method), text in settings.items()]
    for package, reason in result["not_installed"].items():
        lines.append(f"- {package} could not be installed: {reason}")
    return "\n".join(lines) + "\n"


def chinese(result: dict) -> str:
    """Return seconds and recall on the Chinese corpus by MinHash, for the Chinese README."""
    rows = [row for row in result["files"] if (row["corpus"], row["method"]) == ("Chinese", "minhash")]
    found = {row["tool"]: (row["seconds"], row["recall_0.8"]) for row in rows if "seconds" in row}
    ours, recall = found["likewise"]
    others = "；".join(
        f"{tool} 用时 {found[tool][0]:.2f} 秒，找到 {found[tool][1]:.1%}"
        for tool in ("rensa", "datasketch", "text-dedup")
        if tool in found
    )
    facts = result["machine"]
    year, month, day = (int(part) for part in facts["date"][:10].split("-"))
    rounds = "只跑一轮" if result["repeats"] == 1 else f"{result['repeats']} 轮取中位数"
    return (
        f"速度：阈值取 0.8，{rows[0]['num_documents']:,} 篇中文文档从 JSONL 到去重结果用时 {ours:.2f} 秒，"
        f"找到 {recall:.1%} 的真实重复对（Jaccard ≥ 0.8）；{others}。\n\n"
        f"测试机器为 {facts['num_cores']} 核 {facts['cpu']}，{year} 年 {month} 月 {day} 日"
        f"用 `make bench` 实测，{rounds}；"
        "[全部数据和各工具的参数](docs/benchmarks/packages.md)。\n"
    )


def insert(page: Path, name: str, text: str) -> None:
    """Write the text between `<!-- name: begin -->` and `<!-- name: end -->`."""
    begin, end = f"<!-- {name}: begin -->", f"<!-- {name}: end -->"
    old = page.read_text(encoding="utf-8")
    if begin not in old or end not in old:
        raise SystemExit(f"{page} has no markers {begin} ... {end}")
    pattern = re.compile(re.escape(begin) + ".*?" + re.escape(end), re.S)
    page.write_text(pattern.sub(lambda _: f"{begin}\n{text}{end}", old), encoding="utf-8")
