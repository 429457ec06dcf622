"""A process that forks a run for each job it receives, one JSON object per line, and reports how each ended.

Pieces and parts are small, so that little text makes many of them. A job may kill its run at a chosen moment.
"""

import json
import os
import signal
import sys
from pathlib import Path

import numpy as np
import pyarrow.ipc
import pyarrow.parquet  # noqa: F401

import likewise
from likewise.batch import files
from likewise.batch.against import index as indexed
from likewise.batch.against.index import IndexUse
from likewise.batch.decide import decision, verification
from likewise.batch.read import ingest, resume
from likewise.index.online import BatchRun
from likewise.io import kept
from likewise.job.output import OutputDirectory
from likewise.job.reading import FileRun
from tests.recipes import RECIPES

NAMED = {"keep": likewise.Recipe.minhash(0.6, shingle=2, keep="max:date,longest")}
PIECE_BYTES, PART_BYTES = 6_000, 24_000


def kill():
    os.kill(os.getpid(), signal.SIGKILL)


def die_after(calls, owner, name):
    """Make a function kill the process when it has returned `calls` times."""
    plain = getattr(owner, name)
    count = 0

    def counted(*arguments, **options):
        nonlocal count
        done = plain(*arguments, **options)
        count += 1
        if count == calls:
            kill()
        return done

    setattr(owner, name, counted)


MOMENTS = {
    "part": (resume, "write_part"),
    "verdicts": (decision, "write_part"),
    "decided": (files, "write_evidence"),
    "written": (kept, "write_kept"),
    "summed": (files, "summarize"),
    "added": (BatchRun, "add_batch"),
    "all added": (indexed.BesideIndex, "add_kept"),
    "named": (OutputDirectory, "finish"),
}


def run(job):
    ingest.PIECE_BYTES, resume.PART_BYTES = PIECE_BYTES, job.get("part_bytes", PART_BYTES)
    resume.SAVED_AFTER_S = 0.0
    resume.COLUMN_BYTES = job.get("column_bytes", resume.COLUMN_BYTES)
    # So that a run killed later has written all parts but the last.
    resume._MOST_WAITING = 1
    indexed._AT_ONCE = job.get("added_at_once", indexed._AT_ONCE)
    decision.SECONDS_BETWEEN = job.get("seconds_between", decision.SECONDS_BETWEEN)
    verification._RANGE, verification._FIRST_RANGE = job.get("range", 4096), min(256, job.get("range", 4096))
    if "moment" in job:
        die_after(job["calls"], *MOMENTS[job["moment"]])
    if "index" in job:
        with likewise.Index(job["index"], read_only=True) as index:
            recipe = index.recipe
    else:
        recipe = NAMED.get(job["recipe"]) or RECIPES[job["recipe"]]
    likewise.dedup_files(
        [Path(name) for name in job["inputs"]],
        job["out"],
        recipe,
        run=FileRun(threads=job.get("threads", 2), **job.get("run", {})),
        fresh=job.get("fresh", False),
        overwrite=job.get("overwrite", False),
        index=IndexUse(against=Path(job["index"]), add=True) if "index" in job else None,
    )


def main():
    np.zeros(1)
    for line in sys.stdin:
        job = json.loads(line)
        pid = os.fork()
        if pid == 0:
            status = 0
            try:
                run(job)
            except BaseException as error:
                Path(job["out"] + ".error").write_text(f"{type(error).__name__}: {error}")
                status = 1
            os._exit(status)
        print(pid, flush=True)
        _, code = os.waitpid(pid, 0)
        print(os.waitstatus_to_exitcode(code), flush=True)


if __name__ == "__main__":
    main()
