"""Copy each collection of a service, and delete all but its newest copies. Needs the standard library only.

``LIKEWISE_API_KEY=KEY python rotate_snapshots.py http://127.0.0.1:8765 --keep 7``: the key needs the right `admin`.
Prints one line for each new and each deleted snapshot. A collection that cannot be copied makes the exit status 1 and
keeps its older snapshots.
"""

import argparse
import json
import os
import sys
import urllib.error
import urllib.request
from typing import Any


def ask(url: str, method: str, path: str) -> Any:
    """Return the JSON of a response."""
    request = urllib.request.Request(f"{url.rstrip('/')}/v1/collections{path}", method=method)
    if key := os.environ.get("LIKEWISE_API_KEY"):
        request.add_header("authorization", f"Bearer {key}")
    with urllib.request.urlopen(request) as response:
        return json.load(response)


def rotate(url: str, name: str, num_kept: int) -> None:
    """Add a snapshot of a collection; then delete the oldest ones."""
    print(f"{name}: new {ask(url, 'POST', f'/{name}/snapshots')['snapshot']}")
    for snapshot in ask(url, "GET", f"/{name}/snapshots")["snapshots"][:-num_kept]:
        ask(url, "DELETE", f"/{name}/snapshots/{snapshot}")
        print(f"{name}: deleted {snapshot}")


def main() -> int:
    """Rotate the snapshots of all collections, or of the named ones."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("url", help="address of the service")
    parser.add_argument("--keep", type=int, default=7, help="snapshots of each collection to keep (default: 7)")
    parser.add_argument("--collection", action="append", help="name of a collection, repeatable (default: all)")
    given = parser.parse_args()
    if given.keep < 1:
        parser.error("--keep must be at least 1")
    status = 0
    listed = ask(given.url, "GET", "")
    for name, reason in listed["broken"].items():
        print(f"{name}: cannot be used: {reason}", file=sys.stderr)
        status = 1
    for name in given.collection or [one["name"] for one in listed["collections"]]:
        try:
            rotate(given.url, name, given.keep)
        except urllib.error.HTTPError as error:
            print(f"{name}: {json.load(error)['detail']}", file=sys.stderr)
            status = 1
    return status


if __name__ == "__main__":
    sys.exit(main())
