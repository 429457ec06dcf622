"""Measure Hamming search, ours and the rivals' in one run; write bench/results/hamming.json and its pages.

    hamming.py [--only PATTERNS] [--sizes 1e6,1e7,1e8] [--tools NAMES|ours|rivals] [--repeats N] [--work FOLDER]
               [--minutes N] [--list] [--page-only]

Each row and tool is a process of its own with a time limit; a failure is recorded with its reason, and the
run continues. Results are merged into the JSON, so that it can be measured in slices: --only 'queries-1e6-*'.
Rivals have rows of 1e6 and 1e7, with ten seconds of queries each; --sizes 1e6,1e7,1e8 takes about half an hour, which
--minutes 35 ensures. Rows of 5e8 and more need up to 21 GB in --work, which --clean removes at the end.
"""

import argparse
import importlib.util
import json
import os
import shutil
import sys
import time
from pathlib import Path

BENCH = Path(__file__).parent
sys.path.insert(0, str(BENCH))

import hamming_page
import hamming_rows
import machine
from hamming_data import WORK, flat_name
from hamming_ours import Likewise
from rivals import hamming_registry, process
from rivals.protocol import version

LEAST_S = 20  # least time left to begin a row
ONE_THREAD = {"OPENBLAS_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}


def measure(row: hamming_rows.Row, tool: str, work: Path, repeats: int, limit_s: float) -> dict:
    """Measure one row with one tool in fresh processes: one for all radii if one index serves them, else one each."""
    used = Likewise if tool == hamming_rows.OURS else hamming_registry.find(tool)
    result: dict = {"version": version(used.package), "settings": used.settings, "within": {}}
    wanted = row.radii_of(tool)
    unfinished = ""
    for radii in [wanted] if used.builds_once else [(within,) for within in wanted]:
        names = [str(within) for within in radii]
        command = [
            sys.executable,
            str(BENCH / "hamming_one.py"),
            row.id,
            tool,
            ",".join(names),
            str(work),
            str(repeats),
        ]
        if unfinished:  # a wider radius takes at least as long
            result["within"] |= {name: {"not_run": f"not tried: {unfinished}"} for name in names}
            continue
        done = process.run(command, limit_s=limit_s, env=ONE_THREAD)
        found: dict[str, dict] = {}
        for line in done.said.splitlines():  # a radius finished before a failure keeps its figures
            if line.startswith(f"{row.id} "):
                _, within, figures = line.split(" ", 2)
                found[within] = json.loads(figures)
        reason = done.failure
        if reason == process.ended_after(limit_s):
            reason = f"not finished in {limit_s:.0f} s"
            unfinished = f"k={names[0]} was {reason}" if tool != hamming_rows.OURS else ""
        if not reason:
            reason = json.loads(done.output.splitlines()[-1]).get("not_run", "")
        whole = {"process_s": done.seconds, "peak_anonymous_bytes": done.peak_bytes}
        for within in names:
            result["within"][within] = whole | found.get(within, {"not_run": reason})
            print(f"{row.id} k={within} {tool}: {brief(result['within'][within])}", file=sys.stderr, flush=True)
    return result


def is_wanted(tool: str, names: str | None) -> bool:
    """Return whether a tool is among the names of --tools."""
    if names in (None, "ours", "rivals"):
        return names is None or (tool == hamming_rows.OURS) == (names == "ours")
    return tool in names.split(",")


def most_seconds(row: hamming_rows.Row, tool: str) -> float:
    """Return the maximum seconds of the processes of a row."""
    used = Likewise if tool == hamming_rows.OURS else hamming_registry.find(tool)
    return row.limit_of(tool) * (1 if used.builds_once else len(row.radii_of(tool)))


def forget(row: hamming_rows.Row, later: list[hamming_rows.Row], work: Path) -> None:
    """Remove the flat file and the index file of a row if no later one reads them."""
    name = flat_name(row.data, row.bits, row.n)
    if all(flat_name(other.data, other.bits, other.n) != name for other in later):
        (work / name).unlink(missing_ok=True)
    if row not in later:
        for left in work.glob(f"{row.id}.*"):
            left.unlink()


def brief(figures: dict) -> dict:
    """Return the figures rounded to fit a line."""
    return {
        key: float(f"{value:.4g}") if isinstance(value, float) else value
        for key, value in figures.items()
        if not isinstance(value, (list, dict))
    }


def merged(path: Path) -> dict:
    """Return the results so far; start over if they come from another machine."""
    facts = machine.facts()
    old = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    same = all(old.get("machine", {}).get(key) == facts[key] for key in ("cpu", "num_cores", "isa"))
    return {"machine": facts, "rows": old.get("rows", {}) if same else {}}


def main() -> None:
    """Measure and write."""
    parser = argparse.ArgumentParser(description="Measure Hamming search.")
    parser.add_argument("--only", help="patterns of row ids, comma list")
    parser.add_argument("--huge", action="store_true", help="only the file of a billion: 20 GB under --work, 4 minutes")
    parser.add_argument("--sizes", help="numbers of fingerprints, comma list")
    parser.add_argument("--tools", help="names, comma list, or 'ours' or 'rivals'; all of the row where absent")
    parser.add_argument("--repeats", type=int, default=3, help="at most; the 1e9 rows run once")
    parser.add_argument("--limit-s", type=float, help="of one row by one tool; each row has its own where absent")
    parser.add_argument(
        "--minutes", type=float, default=1e6, help="of the whole; what is not begun by then is left out"
    )
    parser.add_argument("--work", type=Path, default=WORK)
    parser.add_argument("--name", default="hamming", help="of the JSON; another name leaves the documentation alone")
    parser.add_argument("--list", action="store_true", help="print the rows and stop")
    parser.add_argument("--page-only", action="store_true", help="write the page from the JSON and stop")
    parser.add_argument("--keep", action="store_true", help="keep flat files and index files for the next slice")
    parser.add_argument("--clean", action="store_true", help="remove the work folder at the end")
    options = parser.parse_args()
    rows = hamming_rows.chosen("mapped-1e9-*" if options.huge else options.only, options.sizes)
    if options.page_only:
        written = json.loads((BENCH / "results" / f"{options.name}.json").read_text(encoding="utf-8"))
        page = BENCH.parent / "docs" / "benchmarks" / "hamming.md"
        hamming_page.write(written, page, with_plot=importlib.util.find_spec("matplotlib") is not None)
        return
    if options.list:
        for row in rows:
            most = sum(most_seconds(row, tool) for tool in row.tools if is_wanted(tool, options.tools))
            print(f"{row.id:24} at most {most:5.0f} s: {row.title} ({', '.join(row.tools)})")
        return
    path = BENCH / "results" / f"{options.name}.json"
    page = BENCH.parent / "docs" / "benchmarks" / "hamming.md"
    result = merged(path)
    options.work.mkdir(parents=True, exist_ok=True)
    wanted = [(row, tool) for row in rows for tool in row.tools if is_wanted(tool, options.tools)]
    # Ours first: if time runs out, only rivals are missing.
    wanted.sort(key=lambda pair: pair[1] != hamming_rows.OURS)
    end = time.monotonic() + 60 * options.minutes
    for place, (row, tool) in enumerate(wanted):
        left_s = end - time.monotonic()
        if left_s < LEAST_S:
            print(f"{row.id} {tool}: left as it was, {options.minutes:g} minutes are over", file=sys.stderr)
            continue
        found = measure(row, tool, options.work, options.repeats, min(left_s, options.limit_s or row.limit_of(tool)))
        entry = result["rows"].setdefault(row.id, {"tools": {}})
        entry["tools"][tool] = found | {
            "date": machine.facts()["date"], "load_average": os.getloadavg()[0], "repeats": options.repeats,
        }  # fmt: skip
        path.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
        if not options.keep:
            forget(row, [later for later, _ in wanted[place + 1 :]], options.work)
    if options.name == "hamming":
        hamming_page.write(result, page)
    print(hamming_page.markdown(result))
    if options.clean:
        shutil.rmtree(options.work)


if __name__ == "__main__":
    main()
