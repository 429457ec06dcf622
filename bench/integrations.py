"""Measure the cost of frames and datasets: seconds and memory of the integrations, compared with a call on a list.

    integrations.py [--corpus FILE] [--documents N] [--repeats N] [--forms FORM,...]

Writes N documents (default 100,000) of a corpus (default data/plain.jsonl, which corpus.py makes from documentation on
this machine) as Parquet. Each form is read from it and deduplicated in a process of its own, forms in turns; only the
call is timed. The DuckDB relation reads the file during the call. Memory is the peak growth of anonymous memory
during the call; memory that reading freed and the call reuses is not included. Writes
results/integrations.json; forms that are not run, such as those whose library is absent, keep the figures of the
last run of the same corpus.
"""

import argparse
import importlib.util
import json
import subprocess
import sys
import tempfile
from itertools import islice
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

import machine

RESULTS = Path(__file__).parent / "results" / "integrations.json"
RECIPE = "likewise.Recipe.minhash(0.55)"
# Library, input, and call.
FORMS = {
    "list": ("pyarrow", "pq.read_table(path).column('text').to_pylist()", "likewise.dedup(given, recipe).kept.sum()"),
    "arrow": ("pyarrow", "pq.read_table(path)", "likewise.dedup(given, recipe).kept.sum()"),
    "pandas": ("pandas", "pd.read_parquet(path, dtype_backend='pyarrow')", "len(given.likewise.dedup('text', recipe))"),
    "polars": ("polars", "pl.read_parquet(path)", "given.likewise.dedup('text', recipe).height"),
    "polars lazy": ("polars", "pl.read_parquet(path).lazy()", "given.likewise.dedup('text', recipe).collect().height"),
    "duckdb": ("duckdb", "connection.read_parquet(path)", "len(dedup(given, 'text', recipe))"),
    "datasets": ("datasets", "Dataset.load_from_disk(saved)", "len(dedup(given, recipe))"),
    "datasets shuffled": (
        "datasets",
        "Dataset.load_from_disk(saved).shuffle(1)",
        "len(dedup(given, recipe, duplicate_ids='allow'))",
    ),
    "datasets stream": (
        "datasets",
        "Dataset.load_from_disk(saved).to_iterable_dataset()",
        "likewise.dedup(given, recipe).kept.sum()",
    ),
}
IMPORTS = {
    "pyarrow": "",
    "pandas": "import pandas as pd; import likewise.integrations.pandas",
    "polars": "import polars as pl; import likewise.integrations.polars",
    "duckdb": "import duckdb; from likewise.integrations.duckdb import dedup; connection = duckdb.connect()",
    "datasets": "from datasets import Dataset; from likewise.integrations.datasets import dedup",
}
CHILD = """
import json, sys, time
import pyarrow.parquet as pq
import likewise
path, saved = sys.argv[1:]
{imports}
recipe = {recipe}
likewise.dedup(["a b c d", "e f g h"], recipe)
given = {given}
def status(name):
    for line in open("/proc/self/status"):
        if line.startswith(name):
            return int(line.split()[1]) * 1024

before, began = status("RssAnon"), time.perf_counter()
import threading
peak, done = [before], threading.Event()
def watch():
    while not done.wait(0.005):
        peak[0] = max(peak[0], status("RssAnon"))
watcher = threading.Thread(target=watch)
watcher.start()
num_kept = int({call})
seconds = time.perf_counter() - began
done.set()
watcher.join()
print(json.dumps({{"seconds": seconds, "num_kept": num_kept, "peak_growth_bytes": peak[0] - before}}))
"""


def write_inputs(work, corpus, num_documents):
    with corpus.open(encoding="utf-8") as lines:
        table = pa.table({"text": [json.loads(line)["text"] for line in islice(lines, num_documents)]})
    pq.write_table(table, work / "in.parquet")
    if importlib.util.find_spec("datasets"):
        from datasets import Dataset, disable_progress_bars

        disable_progress_bars()
        Dataset(table).save_to_disk(work / "saved")
    return table.nbytes


def run(form, work):
    library, given, call = FORMS[form]
    code = CHILD.format(imports=IMPORTS[library], recipe=RECIPE, given=given, call=call)
    done = subprocess.run(
        [sys.executable, "-c", code, work / "in.parquet", work / "saved"], check=True, capture_output=True, text=True
    )
    return json.loads(done.stdout.splitlines()[-1])


def kept_figures(corpus, num_documents):
    if not RESULTS.exists():
        return {}
    last = json.loads(RESULTS.read_text(encoding="utf-8"))
    return last["forms"] if (last.get("corpus"), last["num_documents"]) == (corpus, num_documents) else {}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--corpus", type=Path, default=Path(__file__).parent / "data" / "plain.jsonl")
    parser.add_argument("--documents", type=int, default=100_000)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--forms", default=",".join(FORMS))
    args = parser.parse_args()
    forms = [form for form in args.forms.split(",") if importlib.util.find_spec(FORMS[form][0])]
    runs = {form: [] for form in forms}
    with tempfile.TemporaryDirectory() as directory:
        num_bytes = write_inputs(Path(directory), args.corpus, args.documents)
        for _ in range(args.repeats):
            for form in forms:
                runs[form].append(run(form, Path(directory)))
    found = kept_figures(args.corpus.name, args.documents)
    for form, measured in runs.items():
        best = min(measured, key=lambda one: one["seconds"])
        peak = max(one["peak_growth_bytes"] for one in measured)
        found[form] = (
            best
            | {"peak_growth_bytes": peak}
            | {"ratio": best["seconds"] / min(one["seconds"] for one in runs["list"])}
        )
        print(form, json.dumps(found[form]), flush=True)
    versions = {name: importlib.import_module(name).__version__ for name in {FORMS[form][0] for form in forms}}
    for form in forms:
        found[form]["libraries"] = {FORMS[form][0]: versions[FORMS[form][0]]}
    machine.write_results(
        RESULTS,
        corpus=args.corpus.name,
        num_documents=args.documents,
        repeats=args.repeats,
        text_bytes=num_bytes,
        forms=found,
    )


if __name__ == "__main__":
    main()
