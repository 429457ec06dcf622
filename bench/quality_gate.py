"""Check quality: no figure of the gating sets may fall by more than .01 below results/quality.json.

    quality_gate.py [--quick] [--set NAME ...] [--results FILE]

Runs the recipes of quality.py on the gating sets, scored by the sets' own scorer; `--quick` only those that name
just a method, which takes some seconds. Exit status 0: nothing fell. 1: something did, each figure named. 2: no sets
or no results to compare. If a figure fell on purpose, `make quality` writes the new ones.
Missing sets are named and skipped.
"""

import argparse
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from labeled import GATING, is_there, load
from quality import RECIPES, run

RESULTS = Path(__file__).parent / "results" / "quality.json"
FIGURES = ("f1", "precision", "recall", "ari")
MOST_LOST = 0.01
# Figures are stored with four digits.
ROUNDING = 1e-6
QUICK = ("minhash, defaults", "minhash by rarity, defaults", "simhash distance, defaults", "simhash verified, defaults")


def fallen(then: dict[str, Any], now: dict[str, Any]) -> list[str]:
    """Describe each figure that fell by more than allowed; one that is not a number fell."""
    return [
        f"{figure} fell from {then[figure]:.4f} to {now[figure]:.4f}"
        for figure in FIGURES
        if not now[figure] >= then[figure] - MOST_LOST - ROUNDING
    ]


def compared(
    sets: tuple[str, ...], names: tuple[str, ...], results: dict[str, Any]
) -> Iterator[tuple[str, str, list[str]]]:
    """Yield each set and recipe with the figures that fell; KeyError if the results lack it."""
    for set_name in sets:
        if not is_there(set_name):
            print(f"{set_name}: skipped, not at ../shared/data")
            continue
        entry = load(set_name)
        for name in names:
            then = results["sets"][set_name]["recipes"][name]
            yield set_name, name, fallen(then, run(entry, RECIPES[name]))


def main() -> int:
    """Compare, and print what fell."""
    parser = argparse.ArgumentParser(description="Fail where quality fell on the gating sets.")
    parser.add_argument("--quick", action="store_true", help="only the recipes that a user gets by naming a method")
    parser.add_argument("--set", action="append", choices=GATING, help="only this set")
    parser.add_argument("--results", type=Path, default=RESULTS)
    options = parser.parse_args()
    num_compared, num_fallen = 0, 0
    try:
        results = json.loads(options.results.read_text())
        names = QUICK if options.quick else tuple(RECIPES)
        for set_name, name, what in compared(tuple(options.set or GATING), names, results):
            num_compared += 1
            num_fallen += len(what)
            for figure in what:
                print(f"{set_name}, {name}: {figure}", flush=True)
    except (OSError, ValueError, KeyError) as error:
        print(f"{options.results} has no figures to compare with ({error!r}); make quality writes them")
        return 2
    if not num_compared:
        print("no set is there, so nothing was compared")
        return 2
    print(f"{num_compared} runs compared, {num_fallen} figures fell by more than {MOST_LOST:g}")
    return 1 if num_fallen else 0


if __name__ == "__main__":
    sys.exit(main())
