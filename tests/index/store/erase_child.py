"""A process that is killed while it erases documents.

As a program, it waits for jobs, one line of JSON each, and forks a child for each, like `crash_child`.
"""

import json
import os
import sys
import traceback
from pathlib import Path


def run(job):
    """Erase the documents of a job, and write the error, or that it is done, to a file."""
    from tests.index.store.crash_index import open_small

    said = "done"
    try:
        with open_small(Path(job["path"]), job["recipe"]) as index:
            Path(job["begun"]).touch()
            index.erase(job["ids"])
    except BaseException:
        said = traceback.format_exc()
    unfinished = Path(f"{job['ended']}.unfinished")
    unfinished.write_text(said)
    unfinished.replace(job["ended"])


def main():
    for line in sys.stdin:
        pid = os.fork()
        if pid == 0:
            run(json.loads(line))
            os._exit(0)
        print(pid, flush=True)
        os.waitpid(pid, 0)
        print("dead", flush=True)


if __name__ == "__main__":
    import likewise

    likewise.Index  # noqa: B018 - loaded before the first fork
    main()
